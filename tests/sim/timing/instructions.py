"""One instruction on tiles of given shapes: its price, and its time on the pipe in a launch."""

from pypto.ir.dtype import DataType
from pypto.sim.chips import chip
from pypto.sim.timing import DeviceState, time_recording
from pypto.sim.timing.costs import program_costs
from pypto.sim.timing.cycles import cycles
from pypto.validation.writer import AIC, AIV, Kernel, one

A2A3 = chip("a2a3")
CYCLE_NS = 1000 / A2A3.clock_mhz


def price(mnemonic, kind, rows, cols, *, sources=1, result=None, stride=None, shape="tile", at=None, target=A2A3):
    """Cycles of ``mnemonic`` on tiles of ``rows`` x ``cols`` elements of ``kind``.

    ``shape`` of the result: ``tile``, ``row`` (a value per row) or ``col`` (a value per column). ``at``: byte offsets of
    sources and result; without them they lie one after the other at multiples of 512.
    """
    kernel = Kernel()
    places = at or [None] * (sources + 1)
    width = 1 if mnemonic == "trowexpand" else cols
    tiles = [kernel.tile(rows, width, kind, stride=stride, at=place) for place in places[:-1]]
    high, wide = {"tile": (rows, cols), "row": (rows, 1), "col": (1, cols)}[shape]
    out = kernel.tile(high, wide, result or kind, stride=stride if shape == "tile" else None, at=places[-1])
    kernel.do(mnemonic, [out], tiles, valid=(rows, cols), dtype=DataType.from_string(result or kind))
    return float(cycles(program_costs(kernel.program(), target)[0], rows, cols, 0, 0, 0))


def busy_cycles(kernel, pipe, target=A2A3, warm=False):
    """Core cycles in which ``pipe`` works while ``kernel`` runs alone; ``warm``: in a second launch."""
    state, recording = DeviceState(), one(kernel)
    for _ in range(2 if warm else 1):
        timeline = time_recording(recording, target, state)
    return timeline.pipe_busy_us()[pipe] * target.clock_mhz


def run_cycles(kernel, target=A2A3, warm=False):
    """Core cycles from the first row of ``kernel`` to its last end, alone on a core."""
    state, recording = DeviceState(), one(kernel)
    for _ in range(2 if warm else 1):
        record = time_recording(recording, target, state).records()[0]
    return (record.end_ns - record.start_ns) * target.clock_mhz / 1000


def copies(count, rows, row_bytes, pitch, *, space="vec", store=False, apart=None):
    """So many copies of ``rows`` rows, ``pitch`` bytes apart, into (or out of) one of two tiles in turn."""
    kernel = Kernel(core=AIC if space == "mat" else AIV)
    tiles = [kernel.tile(rows, row_bytes, "int8", space) for _ in range(2)]
    for i in range(count):
        move = kernel.store if store else kernel.load
        move(tiles[i % 2], i * (apart or rows * pitch), pitch=pitch)
    return kernel


def per_copy(count=12, warm=True, target=A2A3, **shape):
    """Cycles from one copy to the next in a stream of them."""
    pipe = "MTE3" if shape.get("store") else "MTE2"
    long, short = (busy_cycles(copies(n, **shape), pipe, target, warm) for n in (2 * count, count))
    return (long - short) / count


def operands(count, left, right, kind="fp16"):
    """Pairs of loads of ``left`` and ``right`` (rows, cols) into L0, two slots each, nobody waiting."""
    kernel = Kernel(core=AIC)
    source = kernel.tile(256, 256, kind, "mat")
    tiles = [
        [kernel.tile(*shape, kind, space) for _ in range(2)] for shape, space in ((left, "left"), (right, "right"))
    ]
    for i in range(count):
        for pair in tiles:
            kernel.do("textract", [pair[i % 2]], [source])
    return kernel


def odd(x):
    """``x`` divided by its largest power-of-two factor."""
    return x if x % 2 else odd(x // 2)
