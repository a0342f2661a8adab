"""A dearer chip is never faster: which way time goes when one figure of a chip changes."""

import pytest
from launches import (
    barrier,
    copies_kernel,
    cube_kernel,
    deep_queue,
    drains,
    lanes,
    little,
    priced,
    prices,
    programs,
    recordings,
)  # fmt: skip
from watch import Watch

from pypto.sim.chips import chip
from pypto.sim.timing import time_recording
from pypto.validation.writer import Launch, one

# more of these is faster, of everything else slower
BETTER_UNITS = (
    "MHz", "GB/s", "B/cycle", "elements/cycle", "MAC/cycle", "instructions/cycle", "accesses/cycle", "ports",
    "instructions", "tasks", "rings", "elements",
)  # fmt: skip
BETTER = ("memory.l2_bytes", "runtime.ring_heap", "mte1.hidden", "vector.fold_hidden", "vector.overlap")
# figures that have no better and no worse, and why
NO_DIRECTION = {
    "cores.counter_mhz": "the unit of swimlane records",
    "cores.clusters": "more cores also means farther ones, whose first start takes longer",
    "cores.vectors_per_cluster": "a mixed kernel is written for two lanes",
    "cores.scheduler_threads": "a thread polls fewer cores, but hands a task's blocks on to the next thread",
    "memory.l2_line_bytes": "longer lines cost isolated rows more and shared ones less",
    "vector.repeat_bytes": "the width of the vectors: also where rows become ragged",
    "vector.register_bytes": "the width of the vectors",
    "vector.max_repeats": "a field of the instruction",
    "vector.bank_groups": "an address map: other addresses clash",
    "fixpipe.unit_flag": "a mode",
    "memory.same_line_vector": "1 means no slow-down, less than that means nothing",
}
OTHER_LAYERS = ("spaces.", "host.")  # tests/sim/chips/test_other_layers.py
FACTORS = (0.8, 1.5)


def chain():
    """Tasks one after the other, a dummy and a synchronised start among them.

    None is staged early: whether the next one is there in time to be staged decides which core, cold or warm, it gets.
    """
    run = Launch()
    for i in range(6):
        run.submit(little(), deps=[i - 1] if i else [], scalars=3)
    dummy = run.submit([], kind=3, deps=[5])
    run.submit([little("a"), little("b")], flags=2, deps=[dummy])
    run.events = [(5, 100, 0, 0), (2, 1, 0, 0), (1, 4096, 0, 1), *run.events, (3, 1, 0, 0)]
    return run.recording()


def alone():
    """Launches in which nobody competes: what runs where, and in which order, is the same on every chip.

    With several cores at work an arrival a little later may find a cheaper order: another core reads a line first,
    another end falls into the same sweep of a scheduler, another block gets the near core. List scheduling has such
    anomalies (Graham, Bounds on multiprocessing timing anomalies, 1969), caches and polling have them too, on the card
    as here.
    """
    kernels = (cube_kernel(), copies_kernel())
    return [*map(one, kernels), lanes(0), lanes(1), barrier(), deep_queue(), drains(), chain()]


def changes(target):
    """Chips that differ from ``target`` in one figure, and whether it got dearer (1) or cheaper (-1)."""
    for row in target.constants():
        if row.name in NO_DIRECTION or row.name.startswith(OTHER_LAYERS):
            continue
        better = row.unit in BETTER_UNITS or row.name in BETTER
        if row.unit == "elements" and not row.value:
            continue  # 0 stands for as many as the operands leave room for
        for value in {_whole(row, row.value * factor) for factor in FACTORS} if row.value else {1.0}:
            if value != row.value:
                yield row.name, target.replace(**{row.name: value}), 1 if (value > row.value) != better else -1


def _whole(row, value):
    counts = ("tasks", "rings", "bytes", "instructions", "elements", "cores")
    return max(round(value), 1) if row.unit in counts else value


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_no_instruction_gets_faster_by_a_dearer_figure(generation):
    """A figure is changed in the programs that read it; to the others it makes no difference."""
    target = chip(generation)
    wrong, read = set(), set()
    for name, other, dearer in changes(target):
        for program, (base, figures) in zip(programs(), priced(target)):
            if name in figures:
                read.add(name)
                if ((prices(program, other) - base) * dearer < -1e-6).any():
                    wrong.add((name, program.name))
    assert not wrong and len(read) > 100


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_no_launch_gets_faster_by_a_dearer_figure(generation):
    # several scheduler threads compete for the next task of a chain: who is first decides whether its core is warm
    target = chip(generation).replace(scheduler_threads=1)
    watch = Watch(target)
    launches = alone()
    timed = [watch.of(lambda chip, r=r: time_recording(r, chip).effective_ns) for r in launches]
    wrong, read = set(), set()
    for name, other, dearer in changes(target):
        for recording, (base, figures) in zip(launches, timed):
            if name in figures:
                read.add(name)
                if (time_recording(recording, other).effective_ns - base) * dearer < 0:
                    wrong.add((name, recording.name))
    assert not wrong and len(read) > 100


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_anomalies_of_many_cores_are_small(generation):
    """A figure that is 1.5 times as dear; see ``alone`` for why the bound is not zero."""
    target = chip(generation)
    watch = Watch(target)
    launches = [recordings()[number] for number in (7, 8, 13)]  # a product, attention, copies
    timed = [watch.of(lambda chip, r=r: time_recording(r, chip).effective_ns) for r in launches]
    for name, other, dearer in changes(target):
        if dearer > 0 and not name.startswith("vector.ops"):
            for recording, (before, figures) in zip(launches, timed):
                if name in figures:
                    assert time_recording(recording, other).effective_ns > 0.97 * before, (name, recording.name)


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_a_figure_that_is_not_read_changes_nothing(generation):
    """What the tests above leave out: every tenth figure that a launch does not read."""
    target = chip(generation)
    watch = Watch(target)
    recording = one(copies_kernel())
    base, figures = watch.of(lambda chip: time_recording(recording, chip).effective_ns)
    left_out = [other for name, other, _ in changes(target) if name not in figures]
    assert len(left_out) > 100
    for other in left_out[::10]:
        assert time_recording(recording, other).effective_ns == base
