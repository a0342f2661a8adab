"""Every finding says all that it can: kind, message, tensor, tasks, lines, bytes, indices, repair."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto.sim import Finding
from pypto.sim.checks.selection import KINDS

from .test_programs import CASES, run

WITHOUT_BYTES = {"deadlock", "misuse", "fifo"}
"""Kinds about waiting and about numbers in registers: no byte of memory is wrong."""
WITHOUT_INDICES = {"deadlock", "misuse"}


def lacking(finding: Finding) -> list[str]:
    """The fields that a finding leaves empty although its kind has them."""
    missing = [] if finding.kind in KINDS else ["kind"]
    for name in ("message", "tasks", "locations", "suggestion"):
        if not getattr(finding, name):
            missing.append(name)
    missing += [f"line of {place}" for place in finding.locations if place.line < 1 or not Path(place.file).exists()]
    if not finding.tensor and finding.kind not in WITHOUT_INDICES:
        missing.append("tensor")
    if not finding.byte_ranges and finding.kind not in WITHOUT_BYTES:
        missing.append("bytes")
    if not finding.index_ranges and finding.kind not in WITHOUT_INDICES:
        missing.append("index_ranges")
    missing += [f"order of {r}" for r in (*finding.byte_ranges, *finding.index_ranges) if r[0] > r[1]]
    return missing


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_fields(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for finding in run(case.faulty, case.arguments()):
        assert lacking(finding) == [], str(finding)
