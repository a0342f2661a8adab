"""Transfers, cube, scalar unit and flags of a2a3 against the hardware notes, sections 3, 4, 5, 8 and 9."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instructions import A2A3, busy_cycles, copies, odd, operands, per_copy, run_cycles

from pypto.sim.timing import DeviceState, time_recording
from pypto.validation.writer import AIC, Kernel, Launch, one

ISSUE = A2A3.scalar.tile_issue.value
FLAG = 20  # 9: 15 to 25 cycles from a pipe to the next


# 3.3: bytes per cycle of one core


@pytest.mark.parametrize(("space", "hit", "miss"), [("vec", 67, 58), ("mat", 111, 78)])
def test_rates_of_one_core_from_cache_and_from_memory(space, hit, miss):
    tile = 65536
    shape = {"rows": 1, "row_bytes": tile, "pitch": tile, "space": space}
    assert per_copy(**shape) == pytest.approx(tile / hit, rel=0.002)
    assert per_copy(warm=False, **shape) == pytest.approx(tile / miss, rel=0.002)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 255), st.integers(1, 64))
def test_rows_far_apart_cost_eight_cycles_or_their_bytes(rows, blocks):
    """t = max(rows * 8, bytes / 67) beside the latency, 20 at least per copy; long rows take whole lines (3.2, 3.3)."""
    row_bytes = 32 * blocks
    charged = row_bytes if blocks <= 16 else -(-row_bytes // 512) * 512
    got = per_copy(4, rows=rows, row_bytes=row_bytes, pitch=4096)
    assert got == pytest.approx(max(20, 8 * rows, rows * charged / 67), rel=0.002)


def test_a_small_copy_takes_its_issue():
    """128 bytes per instruction: 20.6 cycles each (3.2)."""
    assert per_copy(rows=1, row_bytes=128, pitch=128) == pytest.approx(20.6, abs=1)


@pytest.mark.parametrize(("row_bytes", "slowest", "fastest", "warm"), [
    (128, 32, 36, True), (256, 64, 72, True), (1024, 77, 85, False), (2048, 110, 112, True),
])  # fmt: skip
def test_rows_converted_to_fractals_reach_what_was_measured(row_bytes, slowest, fastest, warm):
    """3.4 to 4.0 cycles per row: 32 to 36 bytes a cycle for rows of 128, 72, 77 to 85, and 111 from L2 (3.2)."""
    rows = 65536 // row_bytes
    rate = 65536 / (per_copy(rows=rows, row_bytes=row_bytes, pitch=8192, space="mat", warm=warm) - 40)
    assert slowest <= rate <= fastest


def test_converting_costs_forty_cycles_and_a_run_of_bytes_nothing():
    rows, run = ({"rows": r, "row_bytes": 32768 // r, "pitch": p, "space": "mat"} for r, p in ((32, 4096), (1, 32768)))
    assert per_copy(**rows) - per_copy(**run) == pytest.approx(40, abs=0.5)


def test_latencies_of_independent_copies_overlap():
    """Two copies of 8 KB on one vector core: 701 cycles (3.3)."""
    assert run_cycles(copies(2, 1, 8192, 8192)) - ISSUE == pytest.approx(701, rel=0.05)


@pytest.mark.parametrize("warm", [True, False])
def test_rows_that_are_no_whole_lines_take_the_lines_they_touch(warm):
    """Rows of 2046 bytes at an odd pitch: 1.28 of the time, 5 lines for 4 (3.2)."""
    odd, even = (per_copy(4, rows=64, row_bytes=2048 - d, pitch=24576 - d, warm=warm) for d in (2, 0))
    assert odd / even == pytest.approx(1.28, rel=0.04)


def test_out_of_the_unified_buffer():
    """A copy of 8 KB takes 292 cycles until it is visible: 28 bytes a cycle (3.3)."""
    assert run_cycles(copies(1, 1, 8192, 8192, store=True)) - ISSUE == pytest.approx(292, abs=3)


# 4.1: L1 to L0 and to the tables


@pytest.mark.parametrize(("left", "right", "measured"), [
    ((64, 64), (64, 64), 143), ((128, 64), (64, 256), 367),
])  # fmt: skip
def test_operand_loads_take_what_a_product_of_8192_spends(left, right, measured):
    """8 KB + 8 KB: 143 cycles; 16 KB + 32 KB: 367 cycles (4.1)."""
    pair = (busy_cycles(operands(20, left, right), "MTE1") - busy_cycles(operands(10, left, right), "MTE1")) / 10
    assert pair == pytest.approx(measured, rel=0.01)


@pytest.mark.parametrize(("kind", "size"), [("fp16", 2), ("bfloat16", 2), ("int8", 1), ("fp32", 4)])
@pytest.mark.parametrize(("space", "rate"), [("left", 256), ("right", 128)])
def test_an_operand_load_is_latency_plus_bytes(kind, size, space, rate):
    def load(rows, cols):
        kernel = Kernel(core=AIC)
        source, target = kernel.tile(128, 128, kind, "mat"), kernel.tile(rows, cols, kind, space)
        return run_cycles(kernel.do("tmov", [target], [source], valid=(rows, cols))) - ISSUE

    assert load(64, 64) == pytest.approx(28 + 64 * 64 * size / rate, abs=2)
    # fractals of 16 rows by 32 bytes
    assert load(17, 33) == pytest.approx(28 + 32 * -(-33 * size // 32) * 32 / rate, abs=2)


def test_the_bias_table():
    kernel = Kernel(core=AIC)
    source, bias = kernel.tile(1, 256, "fp32", "mat"), kernel.tile(1, 256, "fp32", "bias")
    got = busy_cycles(kernel.do("tmov", [bias], [source], valid=(16, 256)), "MTE1")
    assert got == pytest.approx(20 + 16 * 256 * 4 / 32, abs=1), "latency of 20, 32 bytes a cycle"


# 4.2: out of the accumulator


@pytest.mark.parametrize(("rows", "cols"), [(64, 64), (128, 256), (16, 100)])
def test_the_accumulator_to_l1_moves_64_elements_a_cycle(rows, cols):
    kernel = Kernel(core=AIC)
    acc, target = kernel.tile(128, 256, "fp32", "acc"), kernel.tile(128, 256, "fp16", "mat")
    got = busy_cycles(kernel.do("tmov", [target], [acc], valid=(rows, cols)), "FIX")
    assert got == pytest.approx(20 + rows * cols / 64, abs=1)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 128), st.integers(1, 256), st.sampled_from([("fp32", 4), ("fp16", 2), ("bfloat16", 2), ("int8", 1)])
)
def test_the_accumulator_to_memory(m, n, kind):
    """164 + m (max(4.45, c n / 118) + 2.6 (odd(ceil(n c / 32)) - 1)) (4.2)."""
    name, size = kind
    kernel = Kernel(core=AIC)
    acc = kernel.tile(128, 256, name, "acc")
    kernel.do("tstore", reads=[acc], report=(0, m, n * size, 1024), valid=(m, n))
    rule = 164 + m * (max(4.45, size * n / 118) + 2.6 * (odd(-(-n * size // 32)) - 1))
    assert busy_cycles(kernel, "FIX") == pytest.approx(rule, abs=1.5)


# 5: the cube


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 128), st.integers(1, 128), st.integers(1, 128),
    st.sampled_from([("fp16", 16, 1), ("bfloat16", 16, 1), ("int8", 32, 1), ("fp32", 8, 2), ("int4", 64, 1)]),
)  # fmt: skip
def test_a_multiply_takes_its_steps(m, k, n, kind):
    """H + p ceil(M/16) ceil(N/16) ceil(K/kf) (5.1)."""
    name, depth, passes = kind
    kernel = Kernel(core=AIC)
    left, right = kernel.tile(m, k, name, "left"), kernel.tile(k, n, name, "right")
    kernel.matmul(kernel.tile(m, n, "fp32", "acc"), left, right)
    steps = passes * -(-m // 16) * -(-n // 16) * -(-k // depth)
    assert busy_cycles(kernel, "M") == pytest.approx(6 + steps, abs=0.1), "head of an idle cube: 6 (5.2)"


@pytest.mark.parametrize(("m", "n"), [(128, 256), (256, 256)])
def test_multiplies_back_to_back_take_nine_cycles_more(m, n):
    """521 cycles for 512 steps, 1033 for 1024 (5.2)."""

    def chain(count):
        kernel = Kernel(core=AIC)
        left, right = kernel.tile(m, 64, "fp16", "left"), kernel.tile(64, n, "fp16", "right")
        acc = kernel.tile(m, n, "fp32", "acc")
        for i in range(count):
            kernel.matmul(acc, left, right, i == 0)
        return run_cycles(kernel)

    assert (chain(30) - chain(10)) / 20 == pytest.approx(m * n * 64 / 4096 + 9, abs=0.5)


# 8, 9: issue, queues, flags


@pytest.mark.parametrize("depth", [8, 32])
def test_an_instruction_is_issued_when_its_queue_has_room(depth):
    """The scalar unit waits when a queue holds as many as it takes; what stands behind waits with it (8)."""
    count, work = 100, 30 + 2 * 64

    def start_of_the_load(target):
        kernel = Kernel()
        tile, other = kernel.tile(64, 64), kernel.tile(1, 8)
        for _ in range(count):
            kernel.do("texp", [tile], [tile])
        return run_cycles(kernel.load(other, 0), target)

    whole = start_of_the_load(A2A3.replace(pipe_queue_depth=1000))
    assert whole == pytest.approx(ISSUE + count * work, rel=0.01), "the load is hidden by a queue that takes everything"
    late = 4000  # cycles of latency, so that the load is last
    slow = {"gm_ub.latency": late}
    got = start_of_the_load(A2A3.replace(pipe_queue_depth=depth, **slow))
    waited = (count - depth) * work
    assert got == pytest.approx(max(waited + late, ISSUE + count * work), rel=0.02)


def test_the_default_queue_takes_32():
    assert A2A3.cores.pipe_queue_depth.value == 32


def test_a_flag_between_pipes():
    """From the end of a load to the start of what reads it: 15 to 25 cycles (9)."""
    kernel = Kernel()
    tile = kernel.tile(8, 64)
    alone = run_cycles(kernel.load(tile, 0))
    both = run_cycles(kernel.do("tmuls", [tile], [tile]))
    assert both - alone == pytest.approx(8 + 26 + FLAG, abs=1)


@pytest.mark.parametrize("mnemonic", ["sync_set", "sync_wait"])
def test_a_flag_that_is_set_costs_one_cycle(mnemonic):
    from pypto.sim.timing.costs import program_costs
    from pypto.sim.timing.cycles import cycles

    program = Kernel().do(mnemonic, pipe="V").program()
    assert cycles(program_costs(program, A2A3)[0], 0, 0, 0, 0, 0) == 1


def test_a_scalar_loop_takes_34_cycles_per_element():
    """Two reads, an addition, a write (8)."""

    def loop(count):
        kernel = Kernel()
        tile = kernel.tile(64, 64, "fp16")
        for _ in range(count):
            kernel.do("sload", reads=[tile]).do("sload", reads=[tile]).do("sstore", [tile])
        return run_cycles(kernel)

    assert (loop(40) - loop(20)) / 20 == pytest.approx(34, abs=0.5)


def test_a_tile_handed_from_the_cube_to_a_lane():
    """A hand-shake of 1000 cycles on the chip, with the latencies of memory, beside both transfers (9)."""
    cube, lane = Kernel("c", AIC), Kernel("v")
    acc, tile = cube.tile(128, 64, "fp32", "acc"), lane.tile(128, 64)
    cube.do("tpush_to_aiv", reads=[acc], report=(0, 0, 0, 0), pipe="FIX")
    lane.do("tpop_from_aic", writes=[tile], report=(0, 0, 0, 0), pipe="MTE2")
    run = Launch()
    run.submit([[cube, lane]])
    recording, state = run.recording(), DeviceState()
    for _ in range(2):
        records = {r.core_type: r for r in time_recording(recording, A2A3, state).records()}
    got = (records["aiv"].end_ns - records["aic"].start_ns) * A2A3.clock_mhz / 1000
    drain, load = 164 + 128 * 4.45, 128 * 64 * 4 / 67
    assert got - drain - load == pytest.approx(1000, rel=0.2)


def test_pipes_of_a_core_work_side_by_side():
    """Load, compute and store of different tiles take as long as the slowest of them (10)."""
    kernel = Kernel()
    ins = [kernel.tile(64, 128) for _ in range(2)]
    outs = [kernel.tile(64, 128) for _ in range(2)]
    for i in range(40):
        kernel.load(ins[i % 2], i * 32768)
        kernel.do("texp", [outs[i % 2]], [ins[i % 2]])
        kernel.store(outs[i % 2], (1 << 25) + i * 32768)
    busy = max(time_recording(one(kernel), A2A3).pipe_busy_us().values()) * A2A3.clock_mhz
    assert run_cycles(kernel) < 1.2 * busy + 2 * 450
