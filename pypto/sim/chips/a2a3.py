"""Ascend 910B / 910C die (architecture dav-2201). Section numbers are those of the hardware notes."""

from __future__ import annotations

from .aicpu import HOST, RUNTIME
from .description import (
    Chip,
    Confidence,
    Constant,
    Cores,
    Cube,
    Fixpipe,
    Link,
    Memory,
    Mte1,
    OpTable,
    Path,
    RepeatOp,
    RepeatVector,
    Scalar,
    Space,
    Spaces,
    Sync,
)

C = Constant

_TABLE = "pto-isa A2A3 cost model (6.1)"
_LINE = "pto-isa, measured stand-alone line: 23 cycles beside the repeats (6.1)"
_TILE = "pto-isa A2A3 formulas, head and tail together (6.4)"
_PROFILE = "pto-isa profiles: 4 cycles beside the repeats (X1)"
_AS_PROFILED = "as the integer forms with a profile (X1)"
_DEFAULT = "pto-isa default head and slope, not fitted (6.1); tail so that start-up and drain are 20 (6.3)"
# name: head, slope per repeat, tail
_UB_OPS: dict[str, tuple[float, float, float, str, Confidence]] = {
    # slopes of two-source operations are those without a bank clash; the clash is added from the addresses (6.2)
    "add": (10, 1, 14, _TABLE, "F"),
    "max": (10, 1, 13, _LINE, "F"),
    "mul": (10, 1, 15, _TABLE, "F"),
    "div": (11, 4, 19, _TABLE, "F"),
    "div_half": (11, 8, 19, "pto-isa A2A3 formulas: 9/128 of a cycle per element with the duplicate (6.4)", "F"),
    "logic": (8, 1, 12, _TABLE, "F"),
    "adds": (12, 1, 13, _TILE, "F"),
    "muls": (11, 1, 15, _TABLE, "F"),
    "maxs": (10, 1, 13, _TABLE, "F"),
    "abs": (2, 1, 2, _PROFILE, "M"),
    "add_int": (2, 1, 2, _AS_PROFILED, "G"),
    "max_int": (2, 1, 2, _AS_PROFILED, "G"),
    "mul_int": (2, 1, 2, _AS_PROFILED, "G"),
    "adds_int": (2, 1, 2, _PROFILE, "M"),
    "muls_int": (2, 1, 2, _AS_PROFILED, "G"),
    "maxs_int": (2, 1, 2, _PROFILE, "M"),
    "relu": (10, 1, 13, _TABLE, "F"),
    "lrelu": (11, 1, 15, _TABLE, "F"),
    "exp": (13, 2, 17, _TILE, "F"),
    "ln": (13, 2, 20, _TABLE, "F"),
    "sqrt": (14, 2, 25, _TABLE, "F"),
    "rsqrt": (10, 1, 14, _TABLE, "F"),
    "select": (13, 2, 14, _TABLE, "F"),
    "compare": (14, 2, 22, _TABLE, "F"),
    "copy": (11, 1, 13, _TABLE, "F"),
    "brcb": (0, 1, 18, "pto-isa A2A3 cost model (6.1); a repeat takes a cycle at least (6.2)", "F"),
    "cadd": (14, 7, 30, _TILE, "F"),
    "cmax": (14, 7, 18, _TILE, "F"),
    "reduce_mask": (14, 14, 20, _TABLE, "F"),
    "gather": (24, 2, 0, _TABLE, "F"),
    "convert": (14, 2, 18, _TABLE, "F"),
    "sort4": (20, 78, 0, _TABLE, "M"),
    "sort32": (0, 1, 0, "pto-isa profile: 8 repeats in 8 cycles (X1)", "M"),
    "shift": (6, 2, 14, _DEFAULT, "G"),
    "transpose": (6, 2, 14, _DEFAULT, "G"),
}


def _op(head: float, slope: float, tail: float, source: str, confidence: Confidence) -> RepeatOp:
    return RepeatOp(
        C(head, "cycles", source, confidence),
        C(slope, "cycles/repeat", source, confidence),
        C(tail, "cycles", source, confidence),
    )


def _space(capacity: int, alignment: int) -> Space:
    return Space(
        C(capacity, "bytes", "PyPTO memory planner, asc-devkit (2.1; language notes 7.1)", "V"),
        C(alignment, "bytes", "PyPTO memory planner (2.3)", "V"),
    )


SPACES = Spaces(
    vec=_space(188416, 128),
    mat=_space(524288, 128),
    left=_space(65536, 64),
    right=_space(65536, 64),
    acc=_space(131072, 128),
    bias=_space(1024, 64),
    fixpipe=_space(2048, 64),
)

MEMORY = Memory(
    hbm_gbps=C(1490, "GB/s", "asc-devkit DMA test, 48 AIV reading 302 MB (3.1)", "D"),
    hbm_nd2nz_gbps=C(1410, "GB/s", "asc-devkit DMA test, 24 AIC reading 302 MB (3.1)", "D"),
    hbm_write_back_gbps=C(
        1740,
        "GB/s",
        "asc-devkit vector add, with and without L2 bypass: 134 MB of results cost (257.6 - 178.5) us (3.1)",
        "D",
    ),
    l2_bytes=C(192 * 2**20, "bytes", "CANN platform ini (3.1)", "V"),
    l2_line_bytes=C(512, "bytes", "CANN platform ini (2.3)", "V"),
    l2_vector_gbps=C(5960, "GB/s", "asc-devkit DMA test, difference of four passes and one (3.1)", "D"),
    l2_cube_gbps=C(4940, "GB/s", "asc-devkit DMA test, ND to NZ (3.1)", "D"),
    same_line_vector=C(1.54, "ratio", "asc-devkit DMA test, same order against rotated order (3.2)", "M"),
    same_line_cube=C(1.14, "ratio", "asc-devkit DMA test, same order against rotated order (3.2)", "M"),
    same_line_row=C(512, "bytes", "seen on rows of 128 bytes (3.2), not on those of 512 and more of a tuned GEMM", "G"),
    same_line_lasts=C(4, "transfers", "guess: cores that walk the same addresses drift apart by a few (V1)", "G"),
)

_DMA = "asc-devkit DMA test (3.2, 3.3)"

GM_UB = Path(
    hit_rate=C(67, "B/cycle", _DMA, "D"),
    miss_rate=C(58, "B/cycle", "pto-isa A2A3 cost model, 100.9 GiB/s (3.3)", "F"),
    row=C(8, "cycles/row", _DMA, "D"),
    issue=C(20, "cycles", _DMA, "D"),
    fixed=C(0, "cycles", "no term in the recommended formula (3.3)", "D"),
    latency=C(450, "cycles", "asc-devkit, two 8 KB copies on one AIV (3.3)", "D"),
    split_lines=C(1, "ratio", "asc-devkit DMA test, rows of 2046 B take 1.28 of the time, 5 lines for 4 (3.2)", "D"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)
GM_L1 = Path(
    hit_rate=C(111, "B/cycle", _DMA, "D"),
    miss_rate=C(78, "B/cycle", "pto-isa A2A3 cost model, 135 GiB/s (3.3)", "F"),
    row=C(3.6, "cycles/row", _DMA, "D"),
    issue=C(20, "cycles", _DMA, "D"),
    fixed=C(0, "cycles", "no term in the recommended formula (3.3)", "D"),
    latency=C(450, "cycles", "asc-devkit, single-core copies (3.3)", "D"),
    split_lines=C(1, "ratio", "asc-devkit DMA test, rows of 510 B take 1.97 of the time, 2 lines for 1 (3.2)", "D"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)
GM_L1_ND2NZ = Path(
    hit_rate=GM_L1.hit_rate,
    miss_rate=GM_L1.miss_rate,
    row=GM_L1.row,
    issue=GM_L1.issue,
    fixed=C(40, "cycles", "asc-devkit, two-point solve on the single-core GEMM (3.2)", "D"),
    latency=GM_L1.latency,
    split_lines=GM_L1.split_lines,
    odd_row=C(32, "cycles/row", "asc-devkit DMA test, 422 us for 24576 rows of 510 B per core (3.2, V1)", "D"),
)
UB_GM = Path(
    # published for a core: 109 (cost model without a start-up term), 28 (8 KB copies), 16 (strided fit), 18 (32 KB
    # copies of all cores, V2); the ini file gives 32, which with the latency below is the measured 8 KB copy
    hit_rate=C(32, "B/cycle", "CANN platform ini, rate of a core to memory (3.1); 8 KB in 292 cycles (3.3, V2)", "V"),
    miss_rate=C(32, "B/cycle", "writes are absorbed by L2 (3.1)", "D"),
    row=C(8, "cycles/row", "asc-devkit (3.3)", "D"),
    issue=C(20, "cycles", "as for loads (3.2)", "D"),
    fixed=C(0, "cycles", "no term in the recommended formula (3.3)", "D"),
    latency=C(36, "cycles", "asc-devkit, rest of the 292 cycles of an 8 KB copy (3.3)", "D"),
    split_lines=C(1, "ratio", "as for loads (3.2)", "G"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)
L0C_GM = Path(
    hit_rate=C(118, "B/cycle", "PyPTO L0 model (4.2)", "F"),
    miss_rate=C(118, "B/cycle", "writes are absorbed by L2 (3.1)", "D"),
    row=C(4.45, "cycles/row", "PyPTO L0 model (4.2)", "F"),
    issue=C(20, "cycles", "as for loads (3.2)", "D"),
    fixed=C(164, "cycles", "PyPTO L0 model (4.2)", "F"),
    latency=C(200, "cycles", "as UB to GM (3.3)", "G"),
    split_lines=C(0, "ratio", "the odd-factor rule covers it (4.2)", "F"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)

MTE1 = Mte1(
    left_rate=C(256, "B/cycle", "asc-devkit load test (4.1)", "V"),
    right_rate=C(128, "B/cycle", "asc-devkit load test (4.1)", "V"),
    latency=C(28, "cycles", "asc-devkit load test (4.1)", "V"),
    hidden=C(4.5, "cycles", "8192^3 GEMM on 910B1: 143 and 367 cycles per pair against 152 and 376 (4.1)", "D"),
    table_rate=C(32, "B/cycle", "asc-devkit load test (4.1)", "V"),
    table_latency=C(20, "cycles", "asc-devkit load test (4.1)", "V"),
    scale_rate=C(32, "B/cycle", "not on this chip; value of the next generation (4.1)", "G"),
    slows_loads=C(1.28, "ratio", "8192^3 GEMM on 910B1, cases 6 and 8: 83 and 88 B/cycle, 111 alone (3.2)", "D"),
)

FIXPIPE = Fixpipe(
    on_chip_elements=C(64, "elements/cycle", "asc-devkit fixpipe test (4.2)", "V"),
    split_elements=C(128, "elements/cycle", "not on this chip; value of the next generation (4.2)", "G"),
    latency=C(20, "cycles", "asc-devkit fixpipe test (4.2)", "V"),
    gm_base=C(164, "cycles", "PyPTO L0 model (4.2)", "F"),
    gm_row=C(4.45, "cycles/row", "PyPTO L0 model (4.2)", "F"),
    gm_rate=C(118, "B/cycle", "PyPTO L0 model (4.2)", "F"),
    gm_odd=C(2.6, "cycles/row", "PyPTO L0 model (4.2)", "F"),
    unit_flag_bytes=C(512, "bytes", "asc-devkit guide (4.2)", "V"),
    unit_flag=C(0, "switch", "a mode kernels choose (4.2; G2 case 8); whether PyPTO's do is not published", "G"),
)

_MMAD = "asc-devkit mmad test; pto-isa (5.1)"

CUBE = Cube(
    fp16_macs=C(4096, "MAC/cycle", _MMAD, "V"),
    int8_macs=C(8192, "MAC/cycle", _MMAD, "V"),
    int4_macs=C(16384, "MAC/cycle", "CANN platform ini (5.1)", "V"),
    fp8_macs=C(4096, "MAC/cycle", "not on this chip; runs as fp16 (5.1)", "G"),
    fp4_macs=C(4096, "MAC/cycle", "not on this chip; runs as fp16 (5.1)", "G"),
    fp32_macs=C(1024, "MAC/cycle", _MMAD, "V"),
    back_to_back=C(9, "cycles", "asc-devkit GEMM: 521 against 512, 1033 against 1024 (5.2)", "D"),
    start=C(6, "cycles", "pto-isa, head of an idle cube; time on the pipe (5.2)", "F"),
    drain=C(56, "cycles", "asc-devkit GEMM, isolated MMAD costs 61-63, less the head (5.2)", "D"),
)

VECTOR = RepeatVector(
    repeat_bytes=C(256, "bytes", "all sources (2.3)", "V"),
    max_repeats=C(255, "repeats", "ISA repeat field of 8 bits (6)", "V"),
    bank_groups=C(16, "groups", "asc-devkit bank samples (2.2)", "V"),
    clash=C(1.0, "cycles/repeat", "asc-devkit UB bank samples: 154 against 88.4 cycles for 64 repeats (6.2)", "D"),
    write_clash=C(0.8, "cycles/repeat", "asc-devkit UB bank samples: 139 cycles (6.2)", "D"),
    ragged=C(17, "cycles", "pto-isa A2A3 cost model (6.3)", "F"),
    chained=C(2, "cycles", "pto-isa A2A3 formulas: duplicate and divide, 45 cycles beyond the repeats (6.4)", "D"),
    lone_row=C(8, "cycles/repeat", "pto-isa profile, one row of 3072 in 390 cycles (X1)", "M"),
    lone_head=C(6, "cycles", "pto-isa default head (6.1); rest of the 390 cycles (X1)", "F"),
    masked=C(13, "cycles", "pto-isa A2A3 formulas: row reductions of 32 and 64 columns (6.4)", "D"),
    fold=C(16, "cycles", "pto-isa A2A3 formulas: row reductions of 64 to 336 columns (6.4)", "D"),
    fold_hidden=C(7, "cycles", "pto-isa A2A3 formulas: column maxima and sums (6.4)", "D"),
    fold_least=C(5, "cycles", "pto-isa: 4 of an integer instruction (X1, TMINS) and 1 of the barrier (6.3)", "D"),
    fold_slope=C(1.9, "cycles/repeat", "pto-isa A2A3 formulas: column sums of 64 to 336 columns (6.4)", "D"),
    row_issue=C(13, "cycles", "pto-isa A2A3 formulas: 14 cycles per row of one repeat (6.4)", "D"),
    row_loop=C(20.6, "cycles", "pto-isa gather, 46.6 cycles per row (6.1)", "F"),
    barrier=C(20, "cycles", "pto-isa (6.3)", "M"),
    ops=OpTable(tuple((name, _op(*row)) for name, row in _UB_OPS.items())),
)

SCALAR = Scalar(
    instruction=C(1.2, "cycles", "Dhrystone 0.96 DMIPS/MHz, pto-isa scalar report (8)", "D"),
    tile_issue=C(18, "cycles", "asc-devkit vector add: 3.424 us of scalar time for 344 instructions (8, V2)", "D"),
    gather_row=C(800, "cycles", "PyPTO-lib, 0.44 us per row of 1 KB (3.2)", "M"),
    element=C(34, "cycles", "asc-devkit single-core scalar add (8)", "D"),
    gm_access=C(450, "cycles", "a load that misses the scalar cache waits for HBM (3.1, 8)", "D"),
)

SYNC = Sync(
    flag=C(1, "cycles", "pto-isa (9)", "F"),
    pipe_to_pipe=C(20, "cycles", "isolated against pipelined costs (9)", "G"),
    cross_core=C(514, "cycles", "pto-isa flash-attention model: 1000 on chip, less write and read of memory (9)", "D"),
    soft_barrier_ns=C(1000, "ns", "simpler (9)", "M"),
)

LINK = Link(
    gbps=C(17, "GB/s", "pto-isa fused GEMM and AllReduce, pair of 910B; 30 is the nominal figure (13b)", "M"),
    latency_ns=C(1200, "ns", "CloudMatrix384 paper, small read in one node (13b)", "V"),
    staged_gbps=C(5.6, "GB/s", "pto-isa remote read sample (13b)", "D"),
    staged_ns=C(100, "ns", "pto-isa remote read sample (13b)", "D"),
    engine_gbps=C(20.7, "GB/s", "pto-isa asynchronous read sample (13b)", "D"),
    engine_ns=C(2600, "ns", "pto-isa asynchronous read sample (13b)", "D"),
    notify_ns=C(800, "ns", "no published figure; within 0.5-1 us (distributed notes 6.11)", "G"),
    idle_gbps=C(63.6, "GB/s", "pto-isa fused GEMM and AllReduce, 8 x 910B, stand-alone (13b)", "M"),
    busy_gbps=C(50, "GB/s", "the same under the GEMM (13b)", "M"),
    cube_slowdown=C(1.24, "ratio", "pto-isa fused GEMM and AllReduce, 48 vector cores communicating (10)", "M"),
    free_cores=C(24, "cores", "the same with 24: the GEMM ends after 367.2 us, alone after 368.1 (timings C1)", "D"),
)

A2A3 = Chip(
    name="a2a3",
    generation="a2a3",
    cores=Cores(
        clusters=C(24, "clusters", "simpler; CloudMatrix384 paper (1.1)", "V"),
        vectors_per_cluster=C(2, "cores", "all sources (1.1)", "V"),
        clock_mhz=C(1800, "MHz", "CANN platform ini; simpler (1.1)", "V"),
        counter_mhz=C(50, "MHz", "simpler platform configuration (1.3)", "V"),
        scheduler_threads=C(3, "threads", "simpler, 4 AICPU threads: 3 schedulers and 1 orchestrator (1.2)", "V"),
        pipe_queue_depth=C(32, "instructions", "asc-devkit guide for MTE1; taken for all pipes (8)", "G"),
    ),
    spaces=SPACES,
    memory=MEMORY,
    gm_ub=GM_UB,
    gm_l1=GM_L1,
    gm_l1_nd2nz=GM_L1_ND2NZ,
    ub_gm=UB_GM,
    l0c_gm=L0C_GM,
    mte1=MTE1,
    fixpipe=FIXPIPE,
    cube=CUBE,
    vector=VECTOR,
    scalar=SCALAR,
    sync=SYNC,
    runtime=RUNTIME,
    host=HOST,
    link=LINK,
)
