"""What every timeline keeps, whatever the program: sums, order, bounds, and the same answer however it is asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from task_graphs import ROWS, programs

import pypto.language as pl
from pypto import ir
from pypto.sim import DeviceState, Recording, chip, explain, record

ARGUMENTS = [torch.ones(ROWS, ROWS) for _ in range(3)]
CHANGES = (
    {},
    {"clusters": 8},
    {"clock_mhz": 900},
    {"hbm_gbps": 90.0},
    {"scheduler_threads": 1},
    {"core_pickup": 5000.0},
)
quietly = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def recorded(text: str, platform: str) -> Recording:
    return record(ir.compile(pl.parse(text), platform=platform, dump_passes=False), ARGUMENTS)


def told(timeline):
    """Everything a timeline says."""
    return (
        timeline.phases, timeline.bottlenecks, timeline.roofline, timeline.records(), timeline.core_pipe_busy_us(),
        timeline.core_busy_us(), timeline.device_wall_us, timeline.effective_us,
    )  # fmt: skip


@given(programs(), st.sampled_from(["a2a3", "a5"]), st.sampled_from(CHANGES), st.booleans())
@quietly
def test_sums_order_and_bounds(text, platform, changes, warm):
    recording, state = recorded(text, platform), DeviceState()
    device = chip(platform).replace(**changes)
    if warm:
        recording.time(device, state)
    explanation = explain(recording, device, state)
    timeline = recording.time(device, state)
    records = timeline.records()

    assert sum(timeline.bottlenecks.values()) == pytest.approx(timeline.effective_ns, abs=1)
    assert timeline.roofline_ns <= timeline.effective_ns
    assert timeline.device_wall_ns == max(start + duration for start, duration in timeline.phases.values())
    assert explanation.timeline.bottlenecks == timeline.bottlenecks
    assert {kind: us * 1000 for kind, us in explanation.class_us().items()} == pytest.approx(timeline.bottlenecks)
    assert all(a.stop_ps == b.start_ps for a, b in pairwise(explanation.steps))

    ran, on_core, ends, starts = Counter(), defaultdict(list), Counter(), {}
    for one in records:
        assert one.submit_ns <= one.ready_ns <= one.start_ns
        assert one.dispatch_ns <= one.receive_ns <= one.start_ns <= one.end_ns <= one.finish_ns
        ran[timeline.core_names[one.core]] += one.end_ns - one.start_ns
        on_core[one.core].append((one.start_ns, one.end_ns))
        ends[one.task] = max(ends[one.task], one.end_ns)
        starts[one.task] = min(starts.get(one.task, one.start_ns), one.start_ns)
    for intervals in on_core.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(intervals)))
    for task, (first, last) in enumerate(pairwise(recording.deps_start)):
        assert all(ends[int(producer)] <= starts[task] for producer in recording.deps[first:last])
    for name, pipes in timeline.core_pipe_busy_us().items():
        assert timeline.core_busy_us()[name] * 1000 == pytest.approx(ran[name], abs=len(records))
        assert max(pipes.values()) <= timeline.core_busy_us()[name] + 1e-9


@given(programs(), st.sampled_from(["a2a3", "a5"]))
@quietly
def test_the_same_answer_however_it_is_asked_for(tmp_path, text, platform):
    recording = recorded(text, platform)
    digest, answer = recording.digest(), told(recording.time())
    assert told(recording.time()) == answer and recording.digest() == digest
    recording.save(tmp_path / "launch.npz")
    loaded = Recording.load(tmp_path / "launch.npz")
    assert loaded.digest() == digest and told(loaded.time()) == answer
    with ThreadPoolExecutor(4) as pool:
        assert all(one == answer for one in pool.map(lambda _: told(recording.time()), range(8), timeout=120))
    compiled = ir.compile(pl.parse(text), platform=platform, dump_passes=False)
    assert record(compiled, ARGUMENTS, values=False).digest() == digest


def test_what_a_prompt_shows_is_one_line():
    from pypto.sim import chip
    from pypto.sim.timing.ahead import smallest_recording

    recording = smallest_recording()
    timeline = recording.time()
    assert repr(recording) == "Recording('ahead' on a2a3: 1 tasks, 0 blocks, 0 instructions)"
    assert repr(timeline).startswith(
        f"Timeline('ahead' on a2a3: device wall {timeline.device_wall_us:.2f} us, effective"
    )
    assert repr(chip("a2a3")) == "Chip('a2a3': 24 clusters at 1800 MHz; .constants() has its figures)"
    assert repr(chip("a5").replace(clusters=4)).startswith("Chip('a5 clusters=4': 4 clusters at 1650 MHz")
