"""The moments of a block in their order, for graphs and figures of every kind: a cause lies before its effect."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pypto.sim.chips import chip
from pypto.sim.timing import time_recording
from pypto.validation.writer import AIC, AIV, DUMMY, Kernel, Launch

EARLY, SYNC = 1, 2
RUNTIME = [row.name for row in chip("a2a3").constants() if row.name.startswith("runtime.") and row.unit == "ns"]


def block(name, core, work):
    k = Kernel(name, core)
    tile = k.tile(64, 64, "fp32", "mat" if core == AIC else "vec")
    for i in range(work):
        k.load(tile, i << 14)
    return k


@st.composite
def graphs(draw):
    """Tasks with producers among those before them; blocks of one core, of a cluster, or none."""
    run = Launch()
    for number in range(draw(st.integers(2, 8))):
        deps = draw(st.sets(st.integers(max(number - 3, 0), number - 1), max_size=2)) if number else set()
        kind = draw(st.sampled_from([AIV, AIV, AIC, "mixed", DUMMY]))
        if kind == DUMMY:
            run.submit([], kind=DUMMY, deps=sorted(deps), flags=draw(st.sampled_from([0, EARLY])))
            continue
        cores = (AIC, AIV) if kind == "mixed" else (kind,)
        blocks = draw(st.sampled_from([1, 2, 16, 60]))
        members = [block(f"t{number}c{core}", core, draw(st.integers(1, 12))) for core in cores]
        flags = draw(st.sampled_from([0, EARLY, EARLY, SYNC] if blocks < 16 else [0, EARLY]))
        run.submit([members] * blocks, deps=sorted(deps), flags=flags)
    return run


def chain(blocks, flags):
    """SPMD tasks in a row, each the producer of the next."""
    run = Launch()
    for number, flag in enumerate(flags):
        run.submit([block(f"t{number}", AIV, 1)] * blocks, deps=[number - 1] if number else [], flags=flag)
    return run


figures = st.dictionaries(st.sampled_from(RUNTIME), st.sampled_from([0, 0.1, 8, 100, 2000]), max_size=3)


@given(graphs(), figures, st.sampled_from(["a2a3", "a5"]))
@example(chain(16, (EARLY, EARLY, 0)), {"runtime.submit": 2000}, "a2a3")
@example(chain(72, (EARLY, 0)), {}, "a2a3")
@example(chain(72, (EARLY, EARLY, 0)), {}, "a5")
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_moments_of_a_block_are_in_order(run, factors, generation):
    target = chip(generation)
    values = {row.name: row.value for row in target.constants()}
    target = target.replace(**{name: type(values[name])(values[name] * by) for name, by in factors.items()})
    recording = run.recording(platform=generation)
    records = time_recording(recording, target).records()
    ends: dict[int, int] = {}
    for one in records:
        assert one.submit_ns <= one.ready_ns <= one.start_ns
        assert one.submit_ns <= one.dispatch_ns <= one.receive_ns <= one.start_ns <= one.end_ns <= one.finish_ns
        ends[one.task] = max(ends.get(one.task, 0), one.end_ns)
    for one in records:
        producers = recording.deps[recording.deps_start[one.task] : recording.deps_start[one.task + 1]]
        assert all(ends.get(int(producer), 0) <= one.ready_ns for producer in producers)
