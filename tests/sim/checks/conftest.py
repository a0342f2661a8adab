"""Small programs, run with every check and their findings collected."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pypto.runtime import RunConfig
from pypto.sim import Finding


@pytest.fixture
def findings(tmp_path, monkeypatch):
    """Compile a kernel for its arguments, run it once, return what was found."""
    monkeypatch.chdir(tmp_path)

    def run(kernel: Any, *arguments: torch.Tensor, **options: Any) -> list[Finding]:
        config = RunConfig(platform="a2a3", checks=options.pop("checks", "all"), checks_mode="collect", **options)
        compiled = kernel.compile(*arguments, config=config)
        compiled(*arguments, config=config)
        return list(compiled.last_findings)

    return run
