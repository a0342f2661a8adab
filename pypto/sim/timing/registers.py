"""Figures of a tile instruction on a5: a vector function over registers, from its recipe and the chip (hardware 7).

A function is a loop over steps: load, compute, store. Figures say what its four mechanisms take: the pipeline from the
first load to the end, the dispatch of a step and of a row, the issue ports, and the accesses to UB. ``register_cycles``
adds them up for the extents of a tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.chips.description import RegisterOp, RegisterVector

from . import codes as c
from .recipes import Recipe

Row = NDArray[np.float64]

_RULES: Final = {
    "row_reduce": c.REGISTER_ROW_REDUCE,
    "col_reduce": c.REGISTER_COL_REDUCE,
    "sort": c.REGISTER_SORT,
}


def register_costs(p: Row, recipe: Recipe, bits: int, unit: RegisterVector, sorted_words: int) -> None:
    """Fill row ``p`` for elements of ``bits``, the widest that go through; a sort takes ``sorted_words`` per step."""
    p[c.ELEMENTS_PER_REPEAT] = sorted_words if recipe.shape == "sort" else unit.register_bytes.value * 8 // bits
    p[c.PORTS] = 1
    if recipe.shape in ("gather", "elements"):
        p[c.RULE] = c.REGISTER_GATHER
        p[c.OVERHEAD] = _frame(unit)
        p[c.SLOPE] = unit.scatter.value if recipe.shape == "elements" else unit.gather.value
        return
    ops = [unit.ops[name] for name in recipe.register]
    source, result = recipe.cast
    if source != result:
        _resize(p, ops, source, result, unit)
    elif recipe.masked and bits == 32:
        _masks_by_pairs(p, recipe, unit)
    else:
        _loop(p, recipe, ops, bits <= 16, unit)


def _loop(p: Row, recipe: Recipe, ops: Sequence[RegisterOp], half: bool, unit: RegisterVector) -> None:
    loads = recipe.sources if recipe.shape == "elementwise" else max(recipe.sources, 1)
    p[c.RULE] = _RULES.get(recipe.shape, c.REGISTER_ELEMENTWISE)
    intervals = [(op.interval_half if half else op.interval).value for op in ops]
    if len(ops) == 1:
        p[c.PORTS], service = ops[0].ports.value, intervals[0]
    else:
        service = sum(interval / op.ports.value for interval, op in zip(intervals, ops))
    _pipeline(p, _chain_latency(ops, half), service, unit)
    # a mask that is read is also unpacked
    _steps(p, loads + recipe.masked, 1, len(ops) + recipe.masked, unit)
    if p[c.RULE] != c.REGISTER_ELEMENTWISE:
        port = service / p[c.PORTS]
        p[c.SLOPE] = max(port, p[c.ISSUE], p[c.EXTRA])
        chain = [(op.forward_half if half else op.forward).value for op in ops]
        p[c.LOOP] = sum(chain) if recipe.shape == "col_reduce" else 0


def _pipeline(p: Row, latency: float, service: float, unit: RegisterVector) -> None:
    p[c.OVERHEAD] = _frame(unit) + latency
    p[c.SLOPE] = p[c.LOOP] = service
    p[c.MEMORY] = _outside(unit) + unit.store.value - 1
    p[c.ROW] = unit.restart.value


def _steps(p: Row, loads: int, stores: int, arithmetic: int, unit: RegisterVector) -> None:
    """Cycles to dispatch the instructions of a step, and to make its accesses."""
    p[c.ISSUE] = math.ceil((loads + stores + arithmetic) / unit.dispatch.value)
    p[c.EXTRA] = math.ceil((loads + stores) / unit.accesses.value)


def _outside(unit: RegisterVector) -> float:
    return unit.startup.value + unit.drain.value - unit.overlap.value


def _frame(unit: RegisterVector) -> float:
    """Start, first load, last store and drain of a vector function."""
    return _outside(unit) + unit.load_forward.value + unit.store.value


def _chain_latency(ops: Sequence[RegisterOp], half: bool) -> float:
    forwarded = sum((op.forward_half if half else op.forward).value for op in ops[:-1])
    return forwarded + (ops[-1].latency_half if half else ops[-1].latency).value


# casts that change the width of elements


def _resize(p: Row, ops: Sequence[RegisterOp], source: int, result: int, unit: RegisterVector) -> None:
    if max(source, result) == 2 * min(source, result):
        _resize_by_two(p, ops, max(source, result), unit)
    elif result > source:
        _widen(p, ops, source, result, unit)
    else:
        _narrow(p, ops, source, unit)


def _resize_by_two(p: Row, ops: Sequence[RegisterOp], wide: int, unit: RegisterVector) -> None:
    """Two registers on one side, one on the other, and a move that packs or unpacks."""
    pack = unit.ops["pack"]
    p[c.RULE] = c.REGISTER_ELEMENTWISE
    p[c.ELEMENTS_PER_REPEAT] = 2 * unit.register_bytes.value * 8 // wide
    service = 2 * sum(op.interval.value / op.ports.value for op in ops) + pack.interval.value / pack.ports.value
    _pipeline(p, pack.forward.value + _chain_latency(ops, False), service, unit)
    _steps(p, 1, 2, 2 * len(ops) + 1, unit)


def _widen(p: Row, ops: Sequence[RegisterOp], source: int, result: int, unit: RegisterVector) -> None:
    """To four times the width: two moves, not forwarded, then the conversion, all on the port of the moves.

    A step gives one register of results, of 4-bit values as many as a register has bytes.
    """
    pack, bytes_wide = unit.ops["pack"], source >= 8
    p[c.RULE] = c.REGISTER_ELEMENTWISE
    p[c.ELEMENTS_PER_REPEAT] = unit.register_bytes.value * 8 // (result if bytes_wide else 8)
    service = 2 * pack.interval.value / pack.ports.value + sum(op.interval.value for op in ops)
    _pipeline(p, 2 * pack.latency.value + _chain_latency(ops, False), service, unit)
    _steps(p, 1, 1 if bytes_wide else 2, 0, unit)
    if bytes_wide:
        p[c.LOOP] = unit.widening_loop.value


def _narrow(p: Row, ops: Sequence[RegisterOp], source: int, unit: RegisterVector) -> None:
    """To a quarter of the width: the conversion, then two moves that do not overlap.

    In a loop over rows of several steps every half of a step's result, and the end of the row, goes through UB.
    """
    latency, moves = _chain_latency(ops, False), 2 * unit.ops["pack"].latency.value
    p[c.RULE] = c.REGISTER_NARROW
    p[c.ELEMENTS_PER_REPEAT] = unit.register_bytes.value * 8 // source
    p[c.EXTRA] = unit.narrow_lanes.value
    p[c.OVERHEAD], p[c.ISSUE] = _frame(unit) + latency + moves, _frame(unit) + latency
    p[c.SLOPE] = moves
    p[c.ROW] = unit.store.value + unit.barrier.value + unit.load.value


def _masks_by_pairs(p: Row, recipe: Recipe, unit: RegisterVector) -> None:
    """A mask has a bit per lane; one load of it serves two registers of 32-bit lanes, which unpack a half each."""
    _steps(p, recipe.sources + 1, 1, 2, unit)
    p[c.RULE] = c.REGISTER_MASKED
    p[c.OVERHEAD], p[c.SLOPE] = _outside(unit), max(p[c.ISSUE], p[c.EXTRA])
    select = unit.ops["select"].latency.value
    p[c.ROW] = unit.load.value + unit.predicate.value + select + unit.store.value
    p[c.EXTRA] = unit.loop_start.value


__all__ = ["register_costs"]
