"""One instruction on tiles of given shapes: its price, and its time on the pipe in a launch."""

from pypto.ir.dtype import DataType
from pypto.sim.chips import chip
from pypto.sim.timing import DeviceState, time_recording
from pypto.sim.timing.costs import program_costs
from pypto.sim.timing.cycles import cycles
from pypto.validation.writer import Kernel, one

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
