"""Flash attention of one head as a mixed task: the cube multiplies, both vector cores keep the running softmax.

The cube works two score tiles ahead of the probabilities it waits for, as the published kernels do.
"""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pypto.language as pl
from pypto.sim.recording import Recording

from .programs import recorded, tensor

ROWS = 128  # queries of a cluster at a time
_DEPTH = 128  # width of the head


@dataclass(frozen=True)
class Attention:
    """``queries`` x ``keys`` scores, blocks of 128 queries dealt out to ``clusters``, ``tile`` keys per step."""

    queries: int
    keys: int
    clusters: int
    tile: int = 256


def attention(a: Attention, platform: str = "a2a3") -> Recording:
    """The launch: one mixed SPMD task."""
    arguments = (
        tensor(a.queries, _DEPTH), tensor(a.keys, _DEPTH), tensor(a.keys, _DEPTH), tensor(a.queries, _DEPTH),
    )  # fmt: skip
    return recorded(_program(a), *arguments, platform=platform)


def _program(a: Attention) -> Any:
    queries, keys, tile = a.queries, a.keys, a.tile
    depth, rows = _DEPTH, ROWS
    half, part_keys = rows // 2, tile // 2
    blocks, steps = queries // rows, keys // tile
    used = min(a.clusters, blocks)
    slot = rows * part_keys * 4
    # places of their own: what arrives for the next step need not wait for what this one still reads
    scores, parts, weights = pl.MemRef("scores", slots=2), pl.MemRef("parts"), pl.MemRef("weights")
    wide_keys, wide_values = pl.MemRef("wide_keys", slots=2), pl.MemRef("wide_values", slots=2)
    arrived, rights, sums = pl.MemRef("arrived", slots=2), pl.MemRef("rights", slots=2), pl.MemRef("sums", slots=2)

    @pl.program
    class FlashAttention:
        @pl.function(type=pl.FunctionType.AIC)
        def cube(
            self,
            q: pl.Tensor[[queries, depth], pl.FP16],
            k: pl.Tensor[[depth, keys], pl.FP16],
            v: pl.Tensor[[keys, depth], pl.FP16],
            o: pl.Out[pl.Tensor[[queries, depth], pl.FP16]],
        ):
            there = pl.import_peer_buffer(name="there", peer_func="vector")
            back = pl.reserve_buffer(name="back", size=4 * rows * part_keys * 2)
            pl.aic_initialize_pipe(there, back, dir_mask=3, slot_size=slot)
            for block in pl.range(pl.get_block_idx(), blocks, used):
                mq = pl.load(q, [block * rows, 0], [rows, depth], target_memory=pl.Mem.Mat)
                left = pl.move(mq, target_memory=pl.Mem.Left)
                for step in pl.range(steps + 2):
                    if step < steps:
                        mk: pl.Tile[[depth, tile], pl.FP16, wide_keys[step % 2], pl.Mem.Mat] = pl.load(
                            k, [0, step * tile], [depth, tile], target_memory=pl.Mem.Mat
                        )
                        for h in pl.unroll(2):
                            rk: pl.Tile[[depth, part_keys], pl.FP16, rights[h], pl.Mem.Right] = pl.tile.extract(
                                mk, 0, h * part_keys, [depth, part_keys], target_memory=pl.Mem.Right
                            )
                            score: pl.Tile[[rows, part_keys], pl.FP32, sums[h], pl.Mem.Acc] = pl.matmul(left, rk)
                            pl.tpush_to_aiv(score, split=1, id=0)
                    if step >= 2:
                        mv: pl.Tile[[tile, depth], pl.FP16, wide_values[step % 2], pl.Mem.Mat] = pl.load(
                            v, [(step - 2) * tile, 0], [tile, depth], target_memory=pl.Mem.Mat
                        )
                        part: pl.Tile[[rows, depth], pl.FP32, sums[0], pl.Mem.Acc] = pl.create_tile(
                            [rows, depth], dtype=pl.FP32, target_memory=pl.Mem.Acc
                        )
                        for h in pl.unroll(2):
                            mp: pl.Tile[[rows, part_keys], pl.FP16, arrived[h], pl.Mem.Mat] = pl.tpop_from_aiv(
                                split=1, id=1
                            )
                            lp = pl.move(mp, target_memory=pl.Mem.Left)
                            pl.tfree_to_aiv(mp, split=1, id=1)
                            rv: pl.Tile[[part_keys, depth], pl.FP16, rights[h], pl.Mem.Right] = pl.tile.extract(
                                mv, h * part_keys, 0, [part_keys, depth], target_memory=pl.Mem.Right
                            )
                            part = pl.matmul_acc(part, lp, rv, init_cond=h == 0)
                        pl.tpush_to_aiv(part, split=1, id=2)

        @pl.function(type=pl.FunctionType.AIV)
        def vector(
            self,
            q: pl.Tensor[[queries, depth], pl.FP16],
            k: pl.Tensor[[depth, keys], pl.FP16],
            v: pl.Tensor[[keys, depth], pl.FP16],
            o: pl.Out[pl.Tensor[[queries, depth], pl.FP16]],
        ) -> pl.Tensor[[queries, depth], pl.FP16]:
            there = pl.reserve_buffer(name="there", size=4 * half * part_keys * 4)
            back = pl.import_peer_buffer(name="back", peer_func="cube")
            pl.aiv_initialize_pipe(there, back, dir_mask=3, slot_size=slot)
            lane = pl.get_subblock_idx()
            scratch = pl.create_tile([half, part_keys], dtype=pl.FP32)
            for block in pl.range(pl.get_block_idx(), blocks, used):
                top = pl.tile.full([half, 1], dtype=pl.FP32, value=-30000.0)
                total = pl.tile.full([half, 1], dtype=pl.FP32, value=0.0)
                acc = pl.tile.full([half, depth], dtype=pl.FP32, value=0.0)
                shrink1 = pl.tile.full([half, 1], dtype=pl.FP32, value=1.0)
                shrink2 = pl.tile.full([half, 1], dtype=pl.FP32, value=1.0)
                for step in pl.range(steps + 2):
                    shrink = shrink1
                    if step < steps:
                        low: pl.Tile[[half, part_keys], pl.FP32, scores[0], pl.Mem.Vec] = pl.tpop_from_aic(
                            split=1, id=0
                        )
                        high: pl.Tile[[half, part_keys], pl.FP32, scores[1], pl.Mem.Vec] = pl.tpop_from_aic(
                            split=1, id=0
                        )
                        peak: pl.Tile[[half, part_keys], pl.FP32, parts, pl.Mem.Vec] = pl.maximum(low, high)
                        higher = pl.maximum(top, pl.row_max(peak, scratch))
                        shrink = pl.exp(pl.sub(top, higher))
                        wl = pl.exp(pl.row_expand_sub(low, higher))
                        pl.tfree_to_aic(low, split=1, id=0)
                        nl: pl.Tile[[half, part_keys], pl.FP16, weights, pl.Mem.Vec] = pl.cast(wl, pl.FP16, mode="rint")
                        pl.tpush_to_aic(nl, split=1, id=1)
                        total = pl.add(pl.mul(total, shrink), pl.row_sum(wl, scratch))
                        wh = pl.exp(pl.row_expand_sub(high, higher))
                        pl.tfree_to_aic(high, split=1, id=0)
                        nh: pl.Tile[[half, part_keys], pl.FP16, weights, pl.Mem.Vec] = pl.cast(wh, pl.FP16, mode="rint")
                        pl.tpush_to_aic(nh, split=1, id=1)
                        total = pl.add(total, pl.row_sum(wh, scratch))
                        top = higher
                    if step >= 2:
                        part: pl.Tile[[half, depth], pl.FP32, parts, pl.Mem.Vec] = pl.tpop_from_aic(split=1, id=2)
                        acc = pl.add(pl.row_expand_mul(acc, shrink2), part)
                        pl.tfree_to_aic(part, split=1, id=2)
                    shrink2 = shrink1
                    shrink1 = shrink
                result = pl.cast(pl.row_expand_div(acc, total), pl.FP16, mode="rint")
                o = pl.store(result, [block * rows + lane * half, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self,
            q: pl.Tensor[[queries, depth], pl.FP16],
            k: pl.Tensor[[depth, keys], pl.FP16],
            v: pl.Tensor[[keys, depth], pl.FP16],
            o: pl.Out[pl.Tensor[[queries, depth], pl.FP16]],
        ) -> pl.Tensor[[queries, depth], pl.FP16]:
            pl.func_attr({"dual_aiv_dispatch": True})
            self.cube(q, k, v, o)
            o = self.vector(q, k, v, o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            q: pl.Tensor[[queries, depth], pl.FP16],
            k: pl.Tensor[[keys, depth], pl.FP16],
            v: pl.Tensor[[keys, depth], pl.FP16],
            o: pl.Out[pl.Tensor[[queries, depth], pl.FP16]],
        ) -> pl.Tensor[[queries, depth], pl.FP16]:
            o, done = pl.spmd_submit(self.pair, q, pl.transpose(k, 0, 1), v, o, core_num=used)
            return o

    return FlashAttention
