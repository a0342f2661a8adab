"""Launches that between them use every mechanism of the clock, and the prices of every instruction."""

import functools

import numpy as np
from watch import Watch

from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim.timing import codes
from pypto.sim.timing.costs import program_costs
from pypto.sim.timing.cycles import cycles
from pypto.sim.timing.recipes import RECIPES
from pypto.validation.attention import Attention, attention
from pypto.validation.gemm import Gemm, gemm
from pypto.validation.streams import vector_add
from pypto.validation.writer import AIC, AIV, Kernel, Launch, one


def vector_programs():
    """A program per vector instruction: by dtype and by shape of the tile; and one per conversion."""
    for mnemonic in (m for m in RECIPES if m in INSTRUCTIONS):
        k = Kernel(mnemonic)
        for kind in ("fp32", "fp16", "int32"):
            tiles = [k.tile(16, 64, kind, at=at) for at in (0, 0x10020, 0x10000)]
            wide = [k.tile(8, 320, kind, at=at, stride=512) for at in (0, 0x10100, 0x20000)]
            for a, b, d in (tiles, wide):
                k.do(mnemonic, [d], [a, b])
        yield k.program()
    for source, result in (("fp32", "fp16"), ("fp16", "int8"), ("fp16", "fp8e4m3fn"), ("fp32", "fp8e4m3fn"),
                           ("bfloat16", "fp4"), ("fp8e4m3fn", "fp32"), ("fp4", "bfloat16"), ("fp16", "fp32"),
                           ("fp32", "int32"), ("fp16", "int16")):  # fmt: skip
        k = Kernel(f"{source} to {result}")
        yield k.do("tcvt", [k.tile(8, 256, result)], [k.tile(8, 256, source)]).program()
    for kind in ("fp32", "fp16"):
        k = Kernel(f"precise {kind}")
        tile = k.tile(8, 256, kind)
        yield k.do("trecip", [tile], [tile], high_precision=1).program()


def cube_kernel():
    """Loads, moves, multiplies of every operand type, drains."""
    k = Kernel("cube", AIC)
    acc = k.tile(32, 32, "fp32", "acc")
    for kind in ("fp16", "int8", "fp32", "fp8e4m3fn", "fp4", "int4"):
        source = k.tile(64, 64, kind, "mat")
        left, right = k.tile(32, 64, kind, "left"), k.tile(64, 32, kind, "right")
        k.load(source, 0, rows=64, cols=64, pitch=1 << 12).do("tmov", [left], [source]).do("tmov", [right], [source])
        k.matmul(acc, left, right).matmul(acc, left, right, False)
    source, bias = k.tile(1, 64, "fp32", "mat"), k.tile(1, 64, "fp32", "bias")
    scale, scales = k.tile(16, 64, "fp8e8m0", "mat"), k.tile(16, 64, "fp8e8m0", "leftscale")
    k.load(source, 1 << 16, rows=1, cols=8).do("tmov", [bias], [source])
    k.load(scale, 1 << 16).do("tmov", [scales], [scale])
    k.do("tmov", [source], [acc])
    k.do("tstore", reads=[acc], report=(1 << 20, 32, 96 * 4, 96 * 4), valid=(32, 96))
    k.do("tstore", reads=[acc], report=(1 << 20, 32, 8, 96 * 4), valid=(32, 2), unit_flag=1)
    return k


def copies_kernel():
    """Copies of one small row, of rows far apart and of rows across lines, both ways; scalar accesses, barriers."""
    k = Kernel("copies")
    tile = k.tile(64, 64)
    for _ in range(4):
        k.load(tile, 0, rows=1, cols=8).store(tile, 1 << 20, rows=1, cols=8)
        k.load(tile, 0, rows=64, cols=16, pitch=4096).store(tile, 1 << 20, rows=64, cols=16, pitch=4096)
        k.load(tile, 100, rows=64, cols=60, pitch=740).store(tile, (1 << 20) + 100, rows=64, cols=60, pitch=740)
        k.do("pipe_barrier", pipe="V").do("sload", reads=[tile]).do("sload")
    k.do("mgather", [tile], report=(0, 16, 256, 256), valid=(16, 64))
    return k


def lanes(split):
    """Tiles handed from the cube to both vector lanes."""
    cube, lane = Kernel("c", AIC), Kernel("v")
    acc, tile = cube.tile(64, 64, "fp32", "acc"), lane.tile(64, 64)
    for i in range(12):
        cube.do("tpush_to_aiv", reads=[acc], report=(0, i, 0, 0), pipe="FIX", split=split)
        lane.do("tpop_from_aic", writes=[tile], report=(0, i, 0, 0), pipe="MTE2").do("texp", [tile], [tile])
        lane.do("tfree_to_aic", reads=[tile], report=(0, i, 0, 0), pipe="S")
    run = Launch()
    run.submit([[cube, lane]])
    return run.recording()


def little(name="k", work=1):
    k = Kernel(name)
    tile = k.tile(64, 64)
    k.load(tile, 0)
    for _ in range(work):
        k.do("texp", [tile], [tile])
    return k.store(tile, 1 << 20)


def task_graph():
    """Chains, early resolve, dummies, a synchronised start, scopes, allocations, more tasks than cores."""
    run = Launch()
    for i in range(24):
        run.submit(little(), deps=[i - 1] if i % 4 else [], flags=int(i % 3 == 0), scalars=3)
    for _ in range(3):
        run.submit(little(), deps=[22])
    dummy = run.submit([], kind=3, deps=[23])
    start = run.submit([little(f"s{i}") for i in range(8)], flags=2, deps=[dummy])
    slow = Kernel("slow")
    tile = slow.tile(64, 64)
    for _ in range(400):
        slow.do("texp", [tile], [tile])
    run.submit([slow] * 300, deps=[start])
    run.events = [(5, 100, 0, 0), (2, 1, 0, 0), (1, 4096, 0, 1), *run.events, (3, 1, 0, 0)]
    return run.recording()


def ring_pressure(nbytes=0):
    """Scopes of four tasks each, one waiting for its slots or its heap from the one before."""
    run = Launch()
    for i in range(16):
        run.submit(little(work=20), depth=1 + i // 4 % 2)
    events = []
    for i, event in enumerate(run.events):
        events += [(2, 1 + i // 4 % 2, 0, 0)] if i % 4 == 0 else []
        events += [(1, nbytes, 1 + i // 4 % 2, i), event]
        events += [(3, 1 + i // 4 % 2, 0, 0)] if i % 4 == 3 else []
    run.events = events
    return run.recording()


def barrier():
    blocks = []
    for b in range(8):
        k = Kernel(f"b{b}")
        tile = k.tile(64, 64)
        for i in range(3):
            k.do("texp", [tile], [tile]).do("syncall", report=(0, i, 0, 0), pipe="S")
        blocks.append(k)
    run = Launch()
    run.submit(blocks)
    return run.recording()


def deep_queue():
    """More instructions than a queue takes before a load that the last one waits for."""
    k = Kernel("deep")
    short, tile = k.tile(1, 64), k.tile(64, 64)
    for _ in range(100):
        k.do("texp", [short], [short])
    return one(k.load(tile, 0).do("texp", [tile], [tile]))


def readers(cores, tiles, apart, pitch=2048, core=AIV, cols=128):
    """Tiles of 64 rows of ``cols`` floats, read from places so many bytes ``apart`` per core."""
    blocks = []
    for b in range(cores):
        k = Kernel(f"r{b}", core)
        buffers = [k.tile(64, cols, "fp32", "mat" if core == AIC else "vec") for _ in range(2)]
        for i in range(tiles):
            k.load(buffers[i % 2], b * apart + i % 8 * 64 * pitch, rows=64, cols=cols, pitch=pitch)
        blocks.append(k)
    run = Launch()
    run.submit(blocks)
    return run.recording()


def drains():
    """An accumulator that is drained while it is filled."""
    k = Kernel("drains", AIC)
    left, right = k.tile(128, 64, "fp16", "left"), k.tile(64, 64, "fp16", "right")
    acc = k.tile(128, 64, "fp32", "acc")
    for i in range(4):
        k.matmul(acc, left, right)
        k.do("tstore", reads=[acc], report=(i << 16, 128, 256, 256), valid=(128, 64), unit_flag=1)
    return one(k)


@functools.cache
def recordings():
    """Launches of every kind; the chip they are timed on says of which generation."""
    return [
        one(cube_kernel()), one(copies_kernel()), lanes(0), lanes(1), task_graph(), barrier(), deep_queue(),
        gemm(Gemm(512, 512, 512, (4, 6), (128, 256, 64), 2, 2)), attention(Attention(512, 512, 4)),
        readers(48, 60, 1 << 15), readers(24, 60, 1 << 15, core=AIC), readers(48, 30, 0, cols=32),
        readers(24, 30, 0, core=AIC, cols=32),
        readers(48, 8, 1 << 20), readers(24, 8, 1 << 20, pitch=4094, core=AIC), drains(),
        vector_add(48, 1 << 20, 4096, 2), readers(24, 8, 1 << 20, pitch=4128, core=AIC),
    ]  # fmt: skip


EXTENTS = ((1, 300), (7, 20), (16, 64), (8, 320), (300, 8), (300, 64))


@functools.cache
def programs():
    """Programs that between them hold every instruction."""
    return [*vector_programs(), *(p for recording in recordings()[:6] for p in recording.programs)]


def prices(program, target):
    """Nanoseconds of every instruction for extents of one row, some and many, with what follows on the pipe."""
    table = program_costs(program, target)
    values = [cycles(row, *extent, 64, 64, 64) + row[codes.TAIL] for row in table for extent in EXTENTS]
    return np.array(values) * 1000 / target.clock_mhz


@functools.cache
def priced(target):
    """Per program: its prices on ``target`` and the figures they come from."""
    watch = Watch(target)
    return [watch.of(lambda chip, p=p: prices(p, chip)) for p in programs()]
