"""What each constant of a chip does to the time of something: nothing in a description is there for show."""

import functools

import pytest
from launches import priced, prices, programs, recordings, ring_pressure
from watch import Watch

from pypto.sim.chips import chip
from pypto.sim.recording import Recording
from pypto.sim.timing import DeviceState, time_recording

# what time does not depend on, and why
ELSEWHERE = {
    "cores.counter_mhz": "unit of swimlane records",
    "ub_gm.miss_rate": "writes never miss",
    "l0c_gm.miss_rate": "writes never miss",
    "l0c_gm.row": "fixpipe.gm_row", "l0c_gm.issue": "fixpipe.gm_base", "l0c_gm.fixed": "fixpipe.gm_base",
    "l0c_gm.split_lines": "fixpipe.gm_odd", "l0c_gm.odd_row": "fixpipe.gm_odd",
    **{f"gm_l1.{part}": "prefetches only, which nobody waits for" for part in (
        "hit_rate", "miss_rate", "row", "issue", "fixed", "latency", "split_lines", "odd_row")},
}  # fmt: skip
ON_ONE_CHIP = {"a2a3": ("mte1.scale_rate", "fixpipe.split_elements"), "a5": ("scalar.element",)}
OTHER_LAYERS = ("spaces.", "host.", "link.")  # tests/sim/chips/test_other_layers.py


RINGS = ("runtime.ring_window", "runtime.ring_heap", "runtime.rings")


def moves(name, before, after):
    """Whether any price differs between two chips, or wall and time on cores of any launch, cold or warm.

    ``name``: the figure in which they differ; what does not read it cannot differ."""
    for program, (base, figures) in zip(programs(), priced(before)):
        if name in figures and (prices(program, after) != base).any():
            return True
    for recording, (base, figures) in zip(recordings(), timed(before)):
        if name in figures and times(recording, after) != base:
            return True
    return False


@functools.cache
def timed(target):
    """Per launch: its times on ``target`` and the figures they come from."""
    watch = Watch(target)
    return [watch.of(lambda chip, r=r: times(r, chip)) for r in recordings()]


def times(recording, target):
    state, found = DeviceState(), []
    for _ in range(2):
        timeline = time_recording(recording, target, state)
        found += [timeline.device_wall_ns, timeline.phases["orch"], *timeline.core_busy_us().values()]
    return found


def legal_beside(row):
    """Other figures that the constant may have."""
    if not row.value:
        return (50.0,) if row.unit != "switch" else (1,)
    if row.unit in ("clusters", "cores", "threads", "instructions", "bytes", "repeats", "groups"):
        return (int(row.value * 2), max(int(row.value / 8), 1), int(row.value * 8))
    return (row.value * 2, row.value / 8, row.value * 8)


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_every_constant_moves_some_time(generation):
    target = chip(generation).replace(l2_bytes=2 << 20)  # so small that it evicts
    moving: dict[str, bool] = {}
    for row in target.constants():
        if row.name.startswith(OTHER_LAYERS) or row.name in (*ELSEWHERE, *RINGS, *ON_ONE_CHIP[generation]):
            continue
        # one figure of an instruction may be hidden behind the others: together they must count
        name = row.name.rsplit(".", 1)[0] if row.name.startswith("vector.ops.") else row.name
        if not moving.get(name):
            others = legal_beside(row)
            moving[name] = any(moves(row.name, target, target.replace(**{row.name: other})) for other in others)
    still = " ".join(name for name, moved in moving.items() if not moved)
    assert not still, still


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_full_rings_hold_up_the_orchestrator(generation):
    base = chip(generation)

    def time(recording, **figures):
        return time_recording(recording, base.replace(**figures)).phases["orch"][1]

    slots, heap = ring_pressure(), ring_pressure(1 << 20)
    assert time(slots, ring_window=5) > time(slots)
    assert time(heap, ring_heap=4 << 20) > time(heap)
    assert time(slots, ring_window=8, rings=1) > time(slots, ring_window=8, rings=4)


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
@pytest.mark.parametrize("figures", [{}, {"clusters": 6, "l2_bytes": 1 << 20}, {"unit_flag": 1, "clock_mhz": 900}])
def test_what_holds_for_launches_of_every_kind(generation, figures, tmp_path):
    target = chip(generation).replace(**figures)
    for recording in recordings():
        timeline = time_recording(recording, target)
        assert sum(timeline.bottlenecks.values()) == pytest.approx(timeline.effective_ns, abs=2)
        assert timeline.roofline_ns <= timeline.effective_ns
        recording.save(tmp_path / "one.npz")
        again = Recording.load(tmp_path / "one.npz")
        assert again.digest() == recording.digest()
        assert time_recording(again, target).records() == timeline.records()
