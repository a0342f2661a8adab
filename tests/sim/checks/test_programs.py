"""Faulty programs of every kind: the report names what is wrong where, the repaired twin is silent and right."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pypto.runtime import RunConfig
from pypto.sim import ExecutionError, Finding

from .programs import addresses, bounds, harmless, order, values, waits
from .programs.case import Case

CASES = [case for module in (order, values, addresses, bounds, waits) for case in module.CASES]


def run(kernel: Any, arguments: list[torch.Tensor], checks: Any = "all") -> list[Finding]:
    """Findings of one launch; what stops it counts like what is collected."""
    config = RunConfig(platform="a2a3", checks=checks, checks_mode="collect")
    try:
        compiled = kernel.compile(*arguments, config=config)
        compiled(*arguments, config=config)
    except ExecutionError as error:
        return list(getattr(error, "findings", ()))
    return list(compiled.last_findings)


def lacking(case: Case, finding: Finding) -> list[str]:
    """What a report does not say although it should."""
    text = str(finding)
    missing = [f"task {task}" for task in case.tasks if task not in finding.tasks]
    if case.tensor and finding.tensor != case.tensor:
        missing.append(f"tensor {case.tensor} (says {finding.tensor!r})")
    if case.ranges and finding.index_ranges != case.ranges:
        missing.append(f"ranges {case.ranges} (says {finding.index_ranges})")
    if case.repair not in finding.suggestion:
        missing.append(f"repair {case.repair}")
    return missing + [f"line with {line}" for line in case.lines if line not in text]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_faulty_program_is_reported(case: Case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(case.faulty, case.arguments())
    of_kind = [finding for finding in found if finding.kind == case.kind]
    assert of_kind, [str(finding) for finding in found]
    assert [] in [lacking(case, finding) for finding in of_kind], "\n".join(
        f"{finding}\nlacks {lacking(case, finding)}" for finding in of_kind
    )


@pytest.mark.parametrize("case", CASES + harmless.CASES, ids=lambda case: case.name)
def test_a_sound_program_is_silent_and_right(case: Case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = case.arguments()
    expected = case.expected(*(argument.clone() for argument in arguments))
    assert [str(finding) for finding in run(case.fixed, arguments)] == []
    for position, wanted in expected.items():
        torch.testing.assert_close(arguments[position], wanted, rtol=1e-3, atol=1e-3)
