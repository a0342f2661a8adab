"""Every operation in a kernel of its own against torch: name, arguments, lowering and kernel fit together.

A test's id starts with the spelling it checks; the coverage page is made from these ids. Accuracy over dtypes and special
values is the subject of the kernel tests.
"""

from __future__ import annotations

import pytest
import torch

from .kernels import on_tensors, on_tiles
from .value_cases import CASES, Case


@pytest.mark.parametrize(("spelling", "case"), CASES)
def test_value(spelling: str, case: Case) -> None:
    expected = case.oracle(*case.inputs.values()).contiguous()
    run = on_tiles if case.level == "tile" else on_tensors
    found = run(case.lines(spelling), torch.zeros_like(expected), **case.inputs)
    torch.testing.assert_close(found, expected, rtol=case.rtol, atol=case.rtol, equal_nan=True)
