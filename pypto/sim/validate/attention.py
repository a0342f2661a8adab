"""Flash attention of one head as a mixed task: the cube multiplies, the vector lanes keep the running softmax."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.dtype import DataType
from pypto.sim.recording import AIC, Recording

from .writer import Kernel, Launch

_HALF, _WIDE = 2, 4
_QUERIES = 128


@dataclass(frozen=True)
class Attention:
    """``queries`` x ``keys`` scores of width ``depth``, 128 queries per cluster at a time, ``tile`` keys per step.

    ``ahead``: score tiles the cube computes before it needs the first probabilities.
    """

    queries: int
    keys: int
    clusters: int
    depth: int = 128
    tile: int = 256
    ahead: int = 3


def attention(a: Attention) -> Recording:
    """The launch: blocks of queries dealt out to the clusters, one mixed SPMD task."""
    blocks = -(-a.queries // _QUERIES)
    used = min(a.clusters, blocks)
    launch = Launch("attention")
    launch.submit([
        [_cube(a, range(first, blocks, used)), _lane(a, range(first, blocks, used), 0),
         _lane(a, range(first, blocks, used), 1)]
        for first in range(used)
    ])
    memory = (2 * a.queries + 2 * a.keys) * a.depth * _HALF + 2 * a.queries * a.depth * _WIDE
    return launch.recording(memory=memory)


def _cube(a: Attention, blocks: range) -> Kernel:
    k = Kernel(f"cube{blocks.start}", AIC)
    q_l1 = k.tile(_QUERIES, a.depth, "fp16", "mat")
    k_l1 = [k.tile(a.tile, a.depth, "fp16", "mat") for _ in range(2)]
    v_l1 = [k.tile(a.tile, a.depth, "fp16", "mat") for _ in range(2)]
    p_l1 = [k.tile(_QUERIES, a.tile, "fp16", "mat") for _ in range(2)]
    left = [k.tile(_QUERIES, max(a.depth, a.tile), "fp16", "left") for _ in range(2)]
    right = [k.tile(max(a.depth, a.tile), max(a.depth, a.tile), "fp16", "right") for _ in range(2)]
    scores, output = k.tile(_QUERIES, a.tile, "fp32", "acc"), k.tile(_QUERIES, a.depth, "fp32", "acc")
    keys_at = a.queries * a.depth * _HALF
    values_at = keys_at + a.keys * a.depth * _HALF
    steps = a.keys // a.tile
    pushed = popped = 0
    for block in blocks:
        k.load(q_l1, block * _QUERIES * a.depth * _HALF, scalars=20)
        for step in range(steps + a.ahead):
            if step < steps:
                k.load(k_l1[step % 2], keys_at + step * a.tile * a.depth * _HALF, scalars=10)
                k.do("tmov", [left[0]], [q_l1], valid=(_QUERIES, a.depth), scalars=10)
                k.do("tmov", [right[0]], [k_l1[step % 2]], valid=(a.depth, a.tile), scalars=10)
                k.do("tmatmul", [scores], [left[0], right[0]], valid=(_QUERIES, a.tile),
                     report=(0, _QUERIES, a.depth, a.tile), scalars=10)
                k.do("tpush_to_aiv", reads=[scores], report=(0, pushed, 0, 0), split=1, scalars=10)
                pushed += 1
            late = step - a.ahead
            if late >= 0:
                k.load(v_l1[late % 2], values_at + late * a.tile * a.depth * _HALF, scalars=10)
                k.do("tpop_from_aiv", [p_l1[late % 2]], report=(16, popped, 0, 0), scalars=10)
                k.do("tmov", [left[1]], [p_l1[late % 2]], valid=(_QUERIES, a.tile), scalars=10)
                k.do("tfree_to_aiv", reads=[p_l1[late % 2]], report=(16, popped, 0, 0))
                k.do("tmov", [right[1]], [v_l1[late % 2]], valid=(a.tile, a.depth), scalars=10)
                k.do("tmatmul", [output], [left[1], right[1]], valid=(_QUERIES, a.depth),
                     report=(0, _QUERIES, a.tile, a.depth), scalars=10)
                k.do("tpush_to_aiv", reads=[output], report=(1, popped, 0, 0), split=1, scalars=10)
                popped += 1
    return k


def _lane(a: Attention, blocks: range, lane: int) -> Kernel:
    k = Kernel(f"lane{blocks.start}_{lane}")
    rows = _QUERIES // 2
    scores = [k.tile(rows, a.tile) for _ in range(2)]
    probabilities = [k.tile(rows, a.tile, "fp16") for _ in range(2)]
    partial, total = [k.tile(rows, a.depth) for _ in range(2)], k.tile(rows, a.depth)
    result = k.tile(rows, a.depth, "fp16")
    peak, new_peak, sums, factor, part = (k.tile(rows, 8) for _ in range(5))
    out_at = (a.queries + 2 * a.keys) * a.depth * _HALF
    column = (1, rows)      # the column of row statistics, looked at as one row
    pops = updates = 0
    half = DataType.from_string("fp16")
    steps = a.keys // a.tile
    for block in blocks:
        for step in range(steps + a.ahead):
            if step < steps:
                s, p = scores[step % 2], probabilities[step % 2]
                k.do("tpop_from_aic", [s], report=(0, pops, 0, 0), scalars=10)
                k.do("trowmax", [new_peak], [s], valid=(rows, a.tile))
                k.do("tmax", [new_peak], [new_peak, peak], valid=column)
                k.do("tsub", [factor], [peak, new_peak], valid=column)
                k.do("texp", [factor], [factor], valid=column)
                k.do("trowexpandsub", [s], [s, new_peak])
                k.do("texp", [s], [s])
                k.do("trowsum", [part], [s], valid=(rows, a.tile))
                k.do("tmul", [sums], [sums, factor], valid=column)
                k.do("tadd", [sums], [sums, part], valid=column)
                k.do("tcvt", [p], [s], dtype=half)
                k.do("tfree_to_aic", reads=[s], report=(0, pops, 0, 0))
                k.do("tpush_to_aic", reads=[p], report=(16, pops, 0, 0), scalars=10)
                pops += 1
            if step >= a.ahead:
                o = partial[updates % 2]
                k.do("tpop_from_aic", [o], report=(1, updates, 0, 0), scalars=10)
                k.do("trowexpandmul", [total], [total, factor])
                k.do("tadd", [total], [total, o])
                k.do("tfree_to_aic", reads=[o], report=(1, updates, 0, 0))
                updates += 1
        k.do("trowexpanddiv", [total], [total, sums])
        k.do("tcvt", [result], [total], dtype=half)
        k.store(result, out_at + (block * _QUERIES + lane * rows) * a.depth * _HALF, scalars=20)
    return k
