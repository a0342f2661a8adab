"""The verdict on a program does not depend on the order in which its tasks happened to run."""

from __future__ import annotations

import pytest

from pypto.runtime import RunConfig

from .programs import harmless, order
from .programs.case import Case
from .schedules import Replay

SCHEDULES = 1000


def judged(case: Case, kernel, monkeypatch, tmp_path, count: int) -> Replay:
    monkeypatch.chdir(tmp_path)
    replay = Replay(monkeypatch, count)
    arguments = case.arguments()
    config = RunConfig(platform="a2a3", checks="all", checks_mode="collect")
    kernel.compile(*arguments, config=config)(*arguments, config=config)
    return replay


@pytest.mark.parametrize("case", [c for c in order.CASES if c.kind != "alias-view"], ids=lambda case: case.name)
def test_a_race_is_found_whatever_the_schedule(case, monkeypatch, tmp_path):
    replay = judged(case, case.faulty, monkeypatch, tmp_path, SCHEDULES)
    assert len(replay.verdicts) == SCHEDULES and len(replay.orders) > 1
    assert set(replay.verdicts) == {replay.verdicts[0]} and (case.kind, case.tensor) in replay.verdicts[0]


@pytest.mark.parametrize(
    "case", [c for c in harmless.CASES if c.name in ("ping_pong", "halo_in_two_launches", "partial_sums_by_atomics")],
    ids=lambda case: case.name,
)  # fmt: skip
def test_an_ordered_program_is_silent_whatever_the_schedule(case, monkeypatch, tmp_path):
    replay = judged(case, case.fixed, monkeypatch, tmp_path, 200)
    assert len(replay.verdicts) == 200 and not any(replay.verdicts)
