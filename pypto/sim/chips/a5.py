"""Ascend 950 (architecture dav-3510). Section numbers are those of the hardware notes."""

from __future__ import annotations

from dataclasses import replace

from . import a2a3
from .aicpu import HOST, RUNTIME
from .description import (
    Chip,
    Constant,
    Cores,
    Cube,
    Fixpipe,
    Link,
    Memory,
    Mte1,
    OpTable,
    Path,
    RegisterOp,
    RegisterVector,
    Scalar,
    Space,
    Spaces,
    Sync,
)

C = Constant

_VF = "pto-isa A5 vector-function simulator (7.1)"
# name: latency fp32, latency 16-bit, same-op interval fp32, 16-bit, result forwarded after fp32, 16-bit, issue ports
_REGISTER_OPS: dict[str, tuple[float, float, float, float, float, float, float]] = {
    "add": (7, 7, 1, 1, 3, 3, 2),
    "mul": (8, 8, 1, 1, 4, 4, 2),
    "max": (6, 6, 1, 1, 2, 2, 2),
    "abs": (5, 5, 1, 1, 2, 2, 2),
    "logic": (6, 6, 1, 1, 2, 2, 2),
    "compare": (6, 6, 1, 1, 4, 4, 2),
    "select": (6, 6, 1, 1, 2, 2, 2),
    "duplicate": (6, 6, 1, 1, 8, 8, 1),
    "exp": (16, 21, 4, 8, 13, 18, 2),
    "div": (17, 22, 4, 8, 14, 19, 2),
    "ln": (18, 23, 4, 8, 15, 20, 2),
    "sqrt": (17, 22, 4, 8, 14, 19, 2),
    "row_max": (16, 17, 1, 2, 13, 14, 1),
    "row_sum": (22, 24, 1, 1, 20, 21, 1),
    "convert": (7, 7, 1, 1, 3, 3, 2),
    "convert_int": (8, 8, 2, 2, 4, 4, 2),
    "pack": (6, 6, 1, 1, 2, 2, 1),
}


def _register_op(row: tuple[float, ...], source: str = _VF) -> RegisterOp:
    units = ("cycles",) * 6 + ("ports",)
    return RegisterOp(*(C(value, unit, source, "F") for value, unit in zip(row, units)))


# an iterative division of which nothing overlaps
_PRECISE_DIV = (345.2, 168.1, 345.2, 168.1, 345.2, 168.1, 1)


def _space(capacity: int, alignment: int) -> Space:
    return Space(
        C(capacity, "bytes", "PyPTO memory planner, asc-devkit (2.1; language notes 7.1)", "V"),
        C(alignment, "bytes", "PyPTO memory planner (2.3)", "V"),
    )


SPACES = Spaces(
    vec=_space(245760, 128),
    mat=_space(524288, 128),
    left=_space(65536, 64),
    right=_space(65536, 64),
    acc=_space(262144, 128),
    bias=_space(4096, 64),
    fixpipe=_space(4096, 64),
    leftscale=_space(4096, 32),
    rightscale=_space(4096, 32),
)

MEMORY = Memory(
    hbm_gbps=C(1630, "GB/s", "asc-devkit DMA test, 64 AIV reading 302 MB (3.1)", "D"),
    hbm_nd2nz_gbps=C(1610, "GB/s", "asc-devkit DMA test, 32 AIC reading 302 MB (3.1)", "D"),
    hbm_write_back_gbps=C(1740, "GB/s", "as on a2a3; 1.71 TB/s of reads and writes through L2 (3.1)", "D"),
    l2_bytes=C(128 * 2**20, "bytes", "asc-devkit (3.1)", "V"),
    l2_line_bytes=C(128, "bytes", "asc-devkit (2.3)", "V"),
    l2_vector_gbps=C(5400, "GB/s", "asc-devkit DMA test, difference of four passes and one (3.1)", "D"),
    l2_cube_gbps=C(4470, "GB/s", "asc-devkit DMA test, ND to NZ (3.1)", "D"),
    same_line_vector=C(1.02, "ratio", "asc-devkit DMA test, same order against rotated order (3.2)", "M"),
    same_line_cube=C(1.98, "ratio", "asc-devkit DMA test, same order against rotated order (3.2)", "M"),
    same_line_row=C(512, "bytes", "seen on rows of 128 bytes (3.2), not on those of 512 and more of a tuned GEMM", "G"),
    same_line_lasts=C(4, "transfers", "guess: cores that walk the same addresses drift apart by a few (V1)", "G"),
)

_DMA = "asc-devkit DMA test (3.2, 3.3)"

GM_UB = Path(
    hit_rate=C(51, "B/cycle", _DMA, "D"),
    miss_rate=C(45, "B/cycle", "asc-devkit single-core vector add, 899 cycles per step of 8 KB (V2)", "D"),
    row=C(8, "cycles/row", "asc-devkit DMA test, 65536 rows of 128 B per core from L2 in 333 us (V1)", "D"),
    issue=C(39, "cycles", _DMA, "D"),
    fixed=C(0, "cycles", "no term in the recommended formula (3.3)", "D"),
    latency=C(250, "cycles", "asc-devkit single-core vector add, 899 cycles per step (V2)", "D"),
    split_lines=C(0.33, "ratio", "asc-devkit DMA test, 2046 B rows take 1.02 of the time, 17 lines for 16 (3.2)", "D"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)
GM_L1 = Path(
    hit_rate=C(85, "B/cycle", _DMA, "D"),
    miss_rate=C(50, "B/cycle", _DMA, "D"),
    row=C(1.5, "cycles/row", _DMA, "D"),
    issue=C(39, "cycles", _DMA, "D"),
    fixed=C(0, "cycles", "no term in the recommended formula (3.3)", "D"),
    latency=C(550, "cycles", "pto-isa engram sample (3.1)", "M"),
    split_lines=C(0.33, "ratio", "asc-devkit DMA test, rows of 510 B take 1.08 of the time, 5 lines for 4 (3.2)", "D"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)
GM_L1_ND2NZ = replace(
    GM_L1,
    fixed=C(180, "cycles", "asc-devkit DMA test, 64 rows of 128 B in 346 cycles (V1)", "D"),
)
UB_GM = Path(
    hit_rate=C(50, "B/cycle", "scaled from loads (3.3)", "G"),
    miss_rate=C(50, "B/cycle", "writes are absorbed by L2 (3.1)", "D"),
    row=C(4, "cycles/row", "as for loads (3.3)", "G"),
    issue=C(39, "cycles", "as for loads (3.2)", "D"),
    fixed=C(0, "cycles", "no term in the recommended formula (3.3)", "D"),
    latency=C(60, "cycles", "asc-devkit single-core vector add, 899 cycles per step (V2)", "D"),
    split_lines=C(0.33, "ratio", "as for loads (3.2)", "G"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)
L0C_GM = Path(
    hit_rate=C(75, "B/cycle", "asc-devkit GEMM: 256x256 to half in 1720-1830 cycles (4.2)", "D"),
    miss_rate=C(75, "B/cycle", "writes are absorbed by L2 (3.1)", "D"),
    row=C(4.59, "cycles/row", "PyPTO L0 model (4.2)", "F"),
    issue=C(39, "cycles", "as for loads (3.2)", "D"),
    fixed=C(26, "cycles", "asc-devkit fixpipe test (4.2)", "V"),
    latency=C(300, "cycles", "as UB to GM (3.3)", "G"),
    split_lines=C(0, "ratio", "the odd-factor rule covers it (4.2)", "F"),
    odd_row=C(0, "cycles/row", "no row cost beyond the lines seen (3.2)", "D"),
)

MTE1 = Mte1(
    left_rate=C(256, "B/cycle", "asc-devkit load test (4.1)", "V"),
    right_rate=C(256, "B/cycle", "asc-devkit load test (4.1)", "V"),
    latency=C(30, "cycles", "asc-devkit load test (4.1)", "V"),
    hidden=C(16, "cycles", "8192^3 GEMM on 950PR: 91 and 283 cycles per pair, about 14 of latency left (4.1)", "D"),
    table_rate=C(32, "B/cycle", "asc-devkit load test (4.1)", "V"),
    table_latency=C(20, "cycles", "asc-devkit load test (4.1)", "V"),
    scale_rate=C(32, "B/cycle", "asc-devkit load test (4.1)", "V"),
    slows_loads=C(1, "ratio", "8192^3 GEMM on 950PR, case 6: 87 B/cycle, 85 alone (3.2)", "D"),
)

FIXPIPE = Fixpipe(
    on_chip_elements=C(64, "elements/cycle", "asc-devkit fixpipe test (4.2)", "V"),
    split_elements=C(128, "elements/cycle", "asc-devkit fixpipe test (4.2)", "V"),
    latency=C(26, "cycles", "asc-devkit fixpipe test (4.2)", "V"),
    gm_base=C(26, "cycles", "asc-devkit fixpipe test; the simulator fit of 343 is not seen on chip (4.2)", "D"),
    gm_row=C(4.59, "cycles/row", "PyPTO L0 model (4.2)", "F"),
    gm_rate=C(75, "B/cycle", "asc-devkit GEMM: 256x256 to half in 1720-1830 cycles (4.2, 14.8)", "D"),
    gm_odd=C(0.26, "cycles/row", "PyPTO L0 model (4.2)", "F"),
    unit_flag_bytes=C(512, "bytes", "asc-devkit guide (4.2)", "V"),
    unit_flag=C(0, "switch", "a mode kernels choose (4.2; G2 case 8); whether PyPTO's do is not published", "G"),
)

_MMAD = "asc-devkit mmad test; pto-isa (5.1)"

CUBE = Cube(
    fp16_macs=C(4096, "MAC/cycle", _MMAD, "V"),
    int8_macs=C(8192, "MAC/cycle", _MMAD, "V"),
    int4_macs=C(8192, "MAC/cycle", "not on this chip; runs as int8 (5.1)", "G"),
    fp8_macs=C(8192, "MAC/cycle", "asc-devkit (5.1)", "V"),
    fp4_macs=C(16384, "MAC/cycle", "asc-devkit (5.1)", "V"),
    fp32_macs=C(256, "MAC/cycle", "asc-devkit; pto-isa; PyPTO (5.1)", "V"),
    back_to_back=C(9, "cycles", "asc-devkit GEMM (5.2)", "D"),
    start=C(25, "cycles", "PyPTO L0 model (5.2)", "F"),
    drain=C(65, "cycles", "asc-devkit GEMM, isolated MMAD costs 92 (5.2)", "D"),
)

VECTOR = RegisterVector(
    register_bytes=C(256, "bytes", "all sources (2.3)", "V"),
    startup=C(23, "cycles", _VF, "F"),
    drain=C(12, "cycles", _VF, "F"),
    load=C(9, "cycles", _VF, "F"),
    load_forward=C(6, "cycles", _VF, "F"),
    store=C(9, "cycles", _VF, "F"),
    barrier=C(20, "cycles", _VF, "F"),
    predicate=C(2, "cycles", "pto-isa A5 formula model, fallback per instruction (7.2)", "F"),
    loop_start=C(2, "cycles", _VF, "F"),
    overlap=C(1, "cycles", "even rows of X3", "D"),
    dispatch=C(5, "instructions/cycle", _VF, "F"),
    accesses=C(2, "accesses/cycle", "asc-devkit bank samples (2.2)", "V"),
    restart=C(6, "cycles", "even rows of X3; the gap of nested loops, 7, counts both ends (7.1)", "D"),
    widening_loop=C(5, "cycles", "even rows of X3", "D"),
    narrow_lanes=C(128, "elements", "pto-isa A5 formula model (7.2)", "F"),
    gather=C(33, "cycles", "PyPTO A5 roofline notes (7.3)", "M"),
    scatter=C(30, "cycles", "PyPTO A5 roofline notes (7.3)", "M"),
    ops=OpTable(
        (
            *((name, _register_op(row)) for name, row in _REGISTER_OPS.items()),
            ("precise_div", _register_op(_PRECISE_DIV, "pto-isa A5 formula model (7.2)")),
        )
    ),
)

SCALAR = Scalar(
    instruction=C(1.2, "cycles", "Dhrystone 0.95 DMIPS/MHz, pto-isa scalar report (8)", "D"),
    tile_issue=C(18, "cycles", "as the previous generation (8)", "G"),
    gather_row=C(730, "cycles", "PyPTO-lib, 0.44 us per row of 1 KB on the previous generation (3.2)", "G"),
    element=C(30, "cycles", "asc-devkit single-core scalar add (8)", "D"),
    gm_access=C(550, "cycles", "a load that misses the scalar cache waits for HBM (3.1, 8)", "D"),
)

SYNC = Sync(
    flag=C(1, "cycles", "pto-isa (9)", "F"),
    pipe_to_pipe=C(20, "cycles", "isolated against pipelined costs (9)", "G"),
    cross_core=C(220, "cycles", "pto-isa flash-attention model, simulator; the hand-over is direct (9)", "F"),
    soft_barrier_ns=C(1000, "ns", "simpler (9)", "M"),
)

LINK: Link = replace(
    a2a3.LINK,
    gbps=C(29.5, "GB/s", "pto-isa fused GEMM and AllReduce, pair of 950PR (13b)", "M"),
    free_cores=C(0, "cores", "24 of 64 slow the GEMM by 5 to 8 %, in proportion to 24 % for all (timings C1)", "D"),
)

A5 = Chip(
    name="a5",
    generation="a5",
    cores=Cores(
        clusters=C(32, "clusters", "asc-devkit runs on 950PR (1.1, 15)", "V"),
        vectors_per_cluster=C(2, "cores", "all sources (1.1)", "V"),
        clock_mhz=C(1650, "MHz", "PyPTO back-end; asc-devkit (1.1)", "V"),
        counter_mhz=C(1000, "MHz", "simpler platform configuration (1.3)", "V"),
        scheduler_threads=C(4, "threads", "simpler, 5 AICPU threads: 4 schedulers and 1 orchestrator (1.2)", "V"),
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
