"""The engine on launches written by hand: closed forms, order, sharing, conservation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim.chips import chip
from pypto.sim.timing import DeviceState, time_recording
from pypto.validation.writer import AIC, AIV, Kernel, Launch, one

A2A3 = chip("a2a3")
CYCLE_NS = 1000 / 1800


def kernel_ns(kernel, target=A2A3):
    """Time of a kernel alone on a core, first row to last end."""
    record = time_recording(one(kernel), target).records()[0]
    return record.end_ns - record.start_ns


def stream(tiles, buffers, exps=4, rows=64):
    """Load, compute, store, with so many buffers."""
    k = Kernel()
    ins = [k.tile(rows, 64) for _ in range(buffers)]
    outs = [k.tile(rows, 64) for _ in range(buffers)]
    for i in range(tiles):
        b = i % buffers
        k.load(ins[b], i * rows * 256)
        for _ in range(exps):
            k.do("texp", [outs[b]], [ins[b]])
        k.store(outs[b], (1 << 25) + i * rows * 256)
    return k


def test_one_load_is_latency_plus_bytes():
    k = Kernel()
    k.load(k.tile(64, 64), 0)
    expected = (450 + 16384 / 58 + 18) * CYCLE_NS
    assert kernel_ns(k) == pytest.approx(expected, abs=2)


def test_independent_loads_overlap_their_latency():
    k = Kernel()
    for i in range(4):
        k.load(k.tile(64, 64), i * 16384)
    assert kernel_ns(k) == pytest.approx((450 + 4 * 16384 / 58 + 18) * CYCLE_NS, abs=4)


@pytest.mark.parametrize(("core", "space"), [(AIV, "vec"), (AIC, "mat")])
@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_rows_of_odd_length_are_slow_where_each_is_handled_by_itself(generation, core, space):
    """Into L1 odd rows are converted one by one, gaps in memory or not; into UB rows without gaps share their lines."""

    def load_ns(nbytes, pitch):
        k = Kernel(core=core)
        for i in range(4):
            k.load(k.tile(64, 256, "fp16", space), i << 16, rows=64, cols=nbytes // 2, pitch=pitch)
        return kernel_ns(k, chip(generation))

    whole, odd, window = load_ns(512, 512), load_ns(510, 510), load_ns(510, 512 * 7 - 2)
    assert whole < window and odd <= window
    if space == "mat":
        assert whole < odd
    else:
        assert odd == pytest.approx(whole, rel=0.02), "X1: 128 rows of 254 bytes in 519 cycles, 4 each"


def test_isolated_and_back_to_back_matrix_multiplies():
    def cube(n):
        k = Kernel(core=AIC)
        left, right = k.tile(128, 64, "fp16", "left"), k.tile(64, 256, "fp16", "right")
        acc = k.tile(128, 256, "fp32", "acc")
        for i in range(n):
            k.matmul(acc, left, right, i == 0)
        return kernel_ns(k) / CYCLE_NS

    assert cube(1) == pytest.approx(512 + 62 + 18, abs=4), "isolated MMAD: 61 to 63 cycles beside its steps"
    assert (cube(40) - cube(20)) / 20 == pytest.approx(521, abs=1), "back to back: 521 cycles for 512 steps"


def test_two_buffers_hide_the_transfers():
    single, double = kernel_ns(stream(32, 1)), kernel_ns(stream(32, 2))
    assert single / double > 1.8


@given(st.integers(1, 40), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_more_work_never_takes_less_time(tiles, buffers):
    assert kernel_ns(stream(tiles + 1, buffers)) > kernel_ns(stream(tiles, buffers))


def test_twice_the_tiles_is_twice_the_time():
    times = [kernel_ns(stream(n, 1)) for n in (16, 32, 64)]
    assert (times[2] - times[1]) / (times[1] - times[0]) == pytest.approx(2.0, rel=0.02)


def all_cores(blocks, tiles, spread=1 << 20):
    launch = Launch()
    kernels = []
    for b in range(blocks):
        k = Kernel(f"k{b}")
        buffers = [k.tile(128, 64) for _ in range(2)]
        for i in range(tiles):
            k.load(buffers[i % 2], b * spread + i * 32768)
        kernels.append(k)
    launch.submit(kernels)
    return launch.recording(memory=1 << 28)


def test_all_vector_cores_together_get_what_the_memory_sustains():
    r = all_cores(48, 32)
    cold = time_recording(r, A2A3)
    moved = 48 * 32 * 32768
    records = cold.records()
    span = max(x.end_ns for x in records) - min(x.start_ns for x in records)
    assert moved / span < 1490
    assert moved / span > 0.75 * 1490
    state = DeviceState()
    time_recording(r, A2A3, state)
    warm = time_recording(r, A2A3, state)
    assert sum(x.hbm_bytes for x in warm.records()) == 0, "50 MB fit the cache"
    assert warm.effective_ns < cold.effective_ns


def test_a_stream_larger_than_the_cache_never_hits():
    k = Kernel()
    tile = k.tile(128, 256)
    for i in range(3 * 100):
        k.load(tile, (i % 100) * 131072)
    small = A2A3.replace(l2_bytes=8 << 20)
    record = time_recording(one(k), small).records()[0]
    assert record.hbm_bytes == record.bytes
    record = time_recording(one(k), A2A3).records()[0]
    assert record.hbm_bytes == record.bytes // 3


def test_same_launch_same_nanoseconds():
    r = all_cores(48, 8)
    a, b = time_recording(r, A2A3), time_recording(r, A2A3)
    assert a.records() == b.records() and a.phases == b.phases


def test_states_have_digests_of_their_content():
    r = all_cores(8, 8)
    a, b = DeviceState(), DeviceState()
    assert a.digest() == b.digest()
    time_recording(r, A2A3, a)
    assert a.digest() != b.digest()
    time_recording(r, A2A3, b)
    assert a.digest() == b.digest()
    c = a.copy()
    time_recording(all_cores(1, 4, spread=1 << 24), A2A3, c)
    assert a.digest() == b.digest()
    with pytest.raises(ValueError, match="512 bytes.*lines of 128"):
        time_recording(r, chip("a5"), a)


def small_kernel(name="k"):
    k = Kernel(name)
    tile = k.tile(64, 64)
    return k.load(tile, 0).do("texp", [tile], [tile]).store(tile, 1 << 20)


def test_a_chain_pays_a_hop_per_task_and_a_fan_does_not():
    def launch(chained):
        run = Launch()
        for i in range(24):
            run.submit(small_kernel(), deps=[i - 1] if chained and i else [])
        return time_recording(run.recording(), A2A3).effective_us

    chain, fan = launch(True), launch(False)
    assert chain > 2 * fan and 2.0 < chain / 24 < 8.0


def test_early_resolve_shortens_the_hop():
    def hop(flags):
        run = Launch()
        run.submit(stream(16, 2), flags=flags)
        run.submit(small_kernel(), deps=[0])
        first, second = time_recording(run.recording(), A2A3).records()
        return second.start_ns - first.end_ns

    assert hop(1) < hop(0)


@given(st.integers(2, 30), st.sampled_from(["a2a3", "a5"]))
@settings(max_examples=10, deadline=None)
def test_early_resolve_never_slows_a_chain(tasks, generation):
    def chain(flags):
        run = Launch()
        for i in range(tasks):
            run.submit(small_kernel(), deps=[i - 1] if i else [], flags=flags)
        return time_recording(run.recording(), chip(generation)).effective_us

    assert chain(1) < chain(0)


@given(st.sampled_from([0, 600, 5000, 50000]), st.integers(0, 3), st.integers(2, 8), st.booleans())
@settings(max_examples=20, deadline=None)
def test_nothing_starts_before_its_producers_are_done(dummy_ns, leaves, blocks, early):
    """Dummies of any length, a synchronised start, staged blocks: a cause lies before its effect."""
    run = Launch()
    first = [run.submit(small_kernel(), flags=int(early)) for _ in range(leaves)]
    gate = run.submit([], kind=3, deps=first)
    together = run.submit([small_kernel(f"s{i}") for i in range(blocks)], flags=2, deps=[gate])
    run.submit(small_kernel(), deps=[together])
    timeline = time_recording(run.recording(), A2A3.replace(dummy=dummy_ns))
    done: dict[int, int] = {}
    for one_record in timeline.records():
        assert one_record.start_ns >= one_record.ready_ns >= one_record.submit_ns, one_record
        done[one_record.task] = max(done.get(one_record.task, 0), one_record.end_ns)
    by_task = {r.task: r.start_ns for r in timeline.records()}
    assert by_task[together + 1] >= done[together]
    assert all(by_task[together] >= done[leaf] + dummy_ns for leaf in first)


def test_tiny_tasks_are_bound_by_the_orchestrator():
    run = Launch()
    k = small_kernel()
    for _ in range(512):
        run.submit(k, tensors=3, lookups=2)
    t = time_recording(run.recording(), A2A3)
    assert t.phases["orch"][1] / 512 == pytest.approx(260 + 2 * 100 + 40, abs=5)
    assert t.effective_us < 512


def test_a_mixed_task_hands_tiles_from_the_cube_to_the_vector_lanes():
    cube = Kernel("c", AIC)
    acc = cube.tile(64, 64, "fp32", "acc")
    left, right = cube.tile(64, 64, "fp16", "left"), cube.tile(64, 64, "fp16", "right")
    lane = Kernel("v")
    tile = lane.tile(64, 64)
    for i in range(12):
        cube.matmul(acc, left, right)
        cube.do("tpush_to_aiv", reads=[acc], report=(0, i, 0, 0), pipe="FIX")
        lane.do("tpop_from_aic", writes=[tile], report=(0, i, 0, 0), pipe="MTE2")
        for _ in range(20):
            lane.do("texp", [tile], [tile])
        lane.do("tfree_to_aic", reads=[tile], report=(0, i, 0, 0), pipe="S")
    run = Launch()
    run.submit([[cube, lane]])
    records = time_recording(run.recording(), A2A3).records()
    by_core = {r.core_type: r for r in records}
    assert by_core["aiv"].end_ns > by_core["aic"].end_ns
    busy = 12 * 20 * (128 + 30) * CYCLE_NS
    assert by_core["aiv"].end_ns - by_core["aiv"].start_ns > busy
    slots = 8 * 20 * (128 + 30) * CYCLE_NS
    assert by_core["aic"].end_ns - by_core["aic"].start_ns < by_core["aiv"].end_ns - by_core["aiv"].start_ns
    assert by_core["aic"].end_ns - by_core["aic"].start_ns > (12 - 8 - 1) / 8 * slots / 2, "the ring has eight slots"


def test_a_pop_that_nobody_answers_is_named():
    lane = Kernel("v")
    cube = Kernel("c", AIC)
    cube.tile(64, 64, "fp32", "acc")
    lane.do("tpop_from_aic", writes=[lane.tile(64, 64)], report=(0, 0, 0, 0), pipe="MTE2")
    cube.do("tpop_from_aiv", writes=[cube.tile(64, 64, "fp16", "mat")], report=(16, 0, 0, 0), pipe="MTE2")
    cube.do("tpush_to_aiv", reads=[0], report=(0, 0, 0, 0), pipe="FIX")
    lane.do("tpush_to_aic", reads=[0], report=(16, 0, 0, 0), pipe="MTE3")
    cube.trace[1], cube.trace[0] = cube.trace[1], cube.trace[0]
    run = Launch("waits")
    run.submit([[cube, lane]])
    r = run.recording()
    # the cube's pop must come before its push to close the circle
    with pytest.raises(ValueError, match="'waits' cannot end.*task0"):
        time_recording(circular(r), A2A3)


def circular(recording):
    """Make every push wait for the pop before it by reading what was popped."""
    for program in recording.programs:
        pcs = [i for i, name in enumerate(program.mnemonic) if program.mnemonics[name].startswith("tpush")]
        writes = program.writes[0]
        program.reads[program.reads_start[pcs[0]]] = writes
    return recording


def test_a_ring_that_is_never_given_back_is_named():
    run = Launch("full")
    for _ in range(20):
        run.submit(small_kernel())
    with pytest.raises(ValueError, match="window 8 tasks"):
        time_recording(run.recording(), A2A3.replace(ring_window=8))
    run.events.insert(0, (2, 1, 0, 0))
    for position in range(20, 0, -4):
        run.events[position + 1 : position + 1] = [(3, 1, 0, 0), (2, 1, 0, 0)]
    assert time_recording(run.recording(), A2A3.replace(ring_window=8)).effective_us > 0


def test_sync_start_begins_all_blocks_together_and_refuses_more_than_fit():
    run = Launch()
    run.submit([small_kernel(f"k{i}") for i in range(32)], flags=2)
    t = time_recording(run.recording(), A2A3)
    starts = [r.dispatch_ns for r in t.records()]
    assert max(starts) == min(starts)
    with pytest.raises(ValueError, match="room for 12"):
        time_recording(run.recording(), A2A3.replace(clusters=6))


def test_predicate_and_dummy_tasks_do_not_run():
    run = Launch()
    a = run.submit([], kind=3)
    b = run.submit(small_kernel(), deps=[a], flags=4)
    run.submit(small_kernel(), deps=[b])
    records = time_recording(run.recording(), A2A3).records()
    assert records[0].core == -1 and records[1].core >= 0


def test_fewer_clusters_are_slower_and_a_faster_clock_is_faster():
    r = all_cores(96, 32)
    base = time_recording(r, A2A3)
    assert time_recording(r, A2A3.replace(clusters=2)).effective_us > 1.5 * base.effective_us
    one_core = one(stream(32, 1))
    assert (
        time_recording(one_core, A2A3.replace(clock_mhz=3600)).effective_us
        < time_recording(one_core, A2A3).effective_us
    )


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_bottlenecks_add_up_and_nothing_beats_the_roofline(shape, seed):
    rng = np.random.default_rng(seed)
    run = Launch()
    for i, size in enumerate(shape):
        producers = [int(p) for p in rng.choice(i, min(i, size % 3), replace=False)] if i else []
        run.submit(stream(1 + size % 5, 1 + size % 2, exps=size % 4), deps=producers)
    t = time_recording(run.recording(), A2A3)
    assert sum(t.bottlenecks.values()) == pytest.approx(t.effective_ns, abs=2)
    assert t.roofline_ns <= t.effective_ns
    order = {r.task: r for r in t.records()}
    for task in range(len(shape)):
        assert order[task].submit_ns <= order[task].ready_ns <= order[task].start_ns <= order[task].end_ns


def test_phases_nest_as_the_device_writes_them():
    t = time_recording(one(small_kernel()), A2A3)
    p = t.phases
    assert p["preamble"][0] == 0
    assert p["graph_build"][0] == p["preamble"][1]
    assert p["orch"][0] == p["sched"][0] == p["sm_reset"][0] + p["sm_reset"][1]
    assert p["post_orch"][0] == p["graph_build"][0] + p["graph_build"][1]
    assert t.device_wall_ns == p["post_orch"][0] + p["post_orch"][1]
    assert t.effective_ns == p["sched"][1] > p["orch"][1]


def test_scalar_code_keeps_the_vector_pipe_waiting_and_hardly_uses_it():
    k = Kernel()
    tile, other = k.tile(8, 64, "int32"), k.tile(8, 64, "int32")
    k.do("tadds", [tile], [tile]).do("tdivs", [tile], [tile]).do("tadds", [other], [other])
    timeline = time_recording(one(k), A2A3)
    element = A2A3.scalar.element.value
    busy = {pipe: us * 1800 for pipe, us in timeline.pipe_busy_us().items()}
    assert busy["S"] > 8 * 64 * element
    assert busy["V"] == pytest.approx(2 * (4 + 8) + 4, abs=0.1), "two additions and four flags"
    assert kernel_ns(k) / CYCLE_NS > 8 * 64 * element + 2 * 20, "both flags are waited for"
    assert max(timeline.bottlenecks, key=timeline.bottlenecks.get) in ("scalar", "scheduler")


def test_rows_close_together_share_their_lines():
    def load(rows, width, pitch):
        k = Kernel()
        k.load(k.tile(rows, width // 4), 0, rows=rows, cols=width // 4, pitch=pitch)
        state, recording = DeviceState(), one(k)
        time_recording(recording, A2A3, state)
        record = time_recording(recording, A2A3, state).records()[0]
        return (record.end_ns - record.start_ns) / CYCLE_NS

    scattered, dense = load(128, 128, 4096), load(128, 128, 256)
    assert scattered - dense == pytest.approx(128 * 8 - 128 * 256 / 512 * 8, abs=2)


def accumulators(tiles, unit_flag):
    """Tiles of 128 x 256 x 64 multiplied and drained, one accumulator for all."""
    k = Kernel(core=AIC)
    left, right = k.tile(128, 64, "fp16", "left"), k.tile(64, 256, "fp16", "right")
    acc = k.tile(128, 256, "fp32", "acc")
    for i in range(tiles):
        for step in range(4):
            k.matmul(acc, left, right, step == 0)
        k.do("tstore", reads=[acc], report=(i * 131072, 128, 1024, 1024), valid=(128, 256), unit_flag=unit_flag)
    return k


def test_unit_flags_overlap_the_last_multiply_with_the_drain():
    late, early = (kernel_ns(accumulators(8, flag)) / CYCLE_NS for flag in (0, 1))
    hidden = (late - early) / 8
    assert 0.8 * 521 < hidden < 521 + 56, "what is hidden is the last multiply but its first granule"
    by_chip = kernel_ns(accumulators(8, 1), A2A3.replace(unit_flag=0)), kernel_ns(accumulators(8, 0))
    assert by_chip[0] < by_chip[1], "the instruction decides before the chip"


def test_a_drain_never_ends_before_the_multiply_it_follows():
    k = Kernel(core=AIC)
    left, right = k.tile(128, 512, "fp32", "left"), k.tile(512, 16, "fp32", "right")
    acc = k.tile(128, 16, "fp32", "acc")
    k.matmul(acc, left, right)
    k.do("tstore", reads=[acc], report=(0, 128, 64, 64), valid=(128, 16), unit_flag=1)
    steps = 8 * 1 * 512 / 4
    assert kernel_ns(k) / CYCLE_NS > steps + A2A3.cube.start.value + A2A3.cube.drain.value
    t = time_recording(one(k), A2A3)
    assert sum(t.bottlenecks.values()) == pytest.approx(t.effective_ns, abs=2)
