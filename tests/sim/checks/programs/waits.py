"""Cores that wait for each other, queues between them, and class programs in general."""

from __future__ import annotations

import torch

import pypto.language as pl

from .case import Case, Program, rnd, zeros

# --- the vector side pops one tile more than is pushed


@pl.program
class OnePopTooMany:
    @pl.function(type=pl.FunctionType.AIC)
    def multiply(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ):
        peer = pl.import_peer_buffer(name="tiles", peer_func="finish")
        pl.aic_initialize_pipe(dir_mask=1, slot_size=4096, c2v_consumer_buf=peer)
        ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        for i in pl.range(3):
            tb = pl.load(b, [0, i * 32], [64, 32], target_memory=pl.Mem.Mat)
            pl.tpush_to_aiv(pl.matmul(ta, pl.move(tb, target_memory=pl.Mem.Right)), split=0)

    @pl.function(type=pl.FunctionType.AIV)
    def finish(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        ring = pl.reserve_buffer(name="tiles", size=32768, base=0x8000)
        pl.aiv_initialize_pipe(dir_mask=1, slot_size=4096, c2v_consumer_buf=ring)
        for i in pl.range(4):
            got: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
            done = pl.add(got, 1.0)
            pl.tfree_to_aic(got)
            y = pl.store(done, [i * 32, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        self.multiply(a, b, y)
        y = self.finish(a, b, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        y = self.pair(a, b, y)
        return y


@pl.program
class AsManyPopsAsPushes:
    @pl.function(type=pl.FunctionType.AIC)
    def multiply(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ):
        peer = pl.import_peer_buffer(name="tiles", peer_func="finish")
        pl.aic_initialize_pipe(dir_mask=1, slot_size=4096, c2v_consumer_buf=peer)
        ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        for i in pl.range(4):
            tb = pl.load(b, [0, i % 3 * 32], [64, 32], target_memory=pl.Mem.Mat)
            pl.tpush_to_aiv(pl.matmul(ta, pl.move(tb, target_memory=pl.Mem.Right)), split=0)

    @pl.function(type=pl.FunctionType.AIV)
    def finish(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        ring = pl.reserve_buffer(name="tiles", size=32768, base=0x8000)
        pl.aiv_initialize_pipe(dir_mask=1, slot_size=4096, c2v_consumer_buf=ring)
        for i in pl.range(4):
            got: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
            done = pl.add(got, 1.0)
            pl.tfree_to_aic(got)
            y = pl.store(done, [i * 32, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        self.multiply(a, b, y)
        y = self.finish(a, b, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 96], pl.FP32], y: pl.Out[pl.Tensor[[128, 32], pl.FP32]]
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        y = self.pair(a, b, y)
        return y


def _products(a, b, y):
    parts = [a @ b[:, i % 3 * 32 : i % 3 * 32 + 32] + 1 for i in range(4)]
    return {2: torch.cat(parts)}


# --- the two sides hand over through memory without an event


@pl.program
class NoEvent:
    @pl.function(type=pl.FunctionType.AIC)
    def multiply(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        mid: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        tb = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        pl.system.sync_set(2, pipe=pl.PipeType.FIX)
        mid = pl.store(pl.matmul(ta, tb), [0, 0], mid)
        return mid

    @pl.function(type=pl.FunctionType.AIV)
    def finish(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        mid: pl.Tensor[[32, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        pl.system.sync_wait(2, pipe=pl.PipeType.MTE2)
        y = pl.store(pl.add(pl.load(mid, [0, 0], [32, 32]), 1.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        mid: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        self.multiply(a, b, mid, y)
        y = self.finish(a, b, mid, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        mid = pl.create_tensor([32, 32], dtype=pl.FP32)
        y = self.pair(a, b, mid, y)
        return y


@pl.program
class StoreThenSet:
    @pl.function(type=pl.FunctionType.AIC)
    def multiply(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        mid: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        tb = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        mid = pl.store(pl.matmul(ta, tb), [0, 0], mid)
        pl.system.sync_set(2, pipe=pl.PipeType.FIX)
        return mid

    @pl.function(type=pl.FunctionType.AIV)
    def finish(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        mid: pl.Tensor[[32, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        pl.system.sync_wait(2, pipe=pl.PipeType.MTE2)
        y = pl.store(pl.add(pl.load(mid, [0, 0], [32, 32]), 1.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        mid: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        self.multiply(a, b, mid, y)
        y = self.finish(a, b, mid, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        mid = pl.create_tensor([32, 32], dtype=pl.FP32)
        y = self.pair(a, b, mid, y)
        return y


# --- a barrier that one block does not reach


@pl.jit
def barrier_in_a_branch(
    x: pl.Tensor[[64, 32], pl.FP32], ws: pl.InOut[pl.Tensor[[1, 64], pl.INT32]], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    mid = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(8, name_hint="meet"):
        pl.store(pl.exp(pl.load(x, [b * 8, 0], [8, 32])), [b * 8, 0], mid)
        if b < 7:
            pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=8)
        pl.store(pl.neg(pl.load(mid, [b * 8, 0], [8, 32])), [b * 8, 0], y)
    return y


@pl.jit
def barrier_for_all(
    x: pl.Tensor[[64, 32], pl.FP32], ws: pl.InOut[pl.Tensor[[1, 64], pl.INT32]], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    mid = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(8, name_hint="meet"):
        pl.store(pl.exp(pl.load(x, [b * 8, 0], [8, 32])), [b * 8, 0], mid)
        pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=8)
        pl.store(pl.neg(pl.load(mid, [56 - b * 8, 0], [8, 32])), [b * 8, 0], y)
    return y


# --- an event is set for every tile; the other side waits for as many of them as ``waits`` says


def _awaited(waits: int) -> Program:
    @pl.program
    class Awaited:
        @pl.function(type=pl.FunctionType.AIC)
        def multiply(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 128], pl.FP16],
            y: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
        ):
            ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
            for i in pl.range(4):
                tb = pl.load(b, [0, i * 32], [64, 32], target_memory=pl.Mem.Mat)
                pl.store(pl.matmul(ta, pl.move(tb, target_memory=pl.Mem.Right)), [i * 32, 0], y)
                pl.system.sync_set(2, pipe=pl.PipeType.FIX, ffts_mode=2)

        @pl.function(type=pl.FunctionType.AIV)
        def finish(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 128], pl.FP16],
            y: pl.InOut[pl.Tensor[[128, 32], pl.FP32]],
        ) -> pl.Tensor[[128, 32], pl.FP32]:
            for i in pl.range(4):
                if i < waits:
                    pl.system.sync_wait(2, pipe=pl.PipeType.MTE2)
                y = pl.store(pl.add(pl.load(y, [i * 32, 0], [32, 32]), 1.0), [i * 32, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 128], pl.FP16],
            y: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
        ) -> pl.Tensor[[128, 32], pl.FP32]:
            self.multiply(a, b, y)
            y = self.finish(a, b, y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 128], pl.FP16],
            y: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
        ) -> pl.Tensor[[128, 32], pl.FP32]:
            y = self.pair(a, b, y)
            return y

    return Program(Awaited)


def _strips(a, b, y):
    product = a.float() @ b.float() + 1
    return {2: torch.cat([product[:, i * 32 : i * 32 + 32] for i in range(4)])}


CASES = [
    Case("the_last_set_is_not_awaited", "raw", _awaited(3), _awaited(4),
         lambda: [rnd(32, 64).half(), rnd(64, 128, seed=1).half(), zeros(128, 32)], _strips, "y", (),
         ((96, 128), (0, 32)), "sync_set after", ("pl.store(pl.matmul", "pl.load(y")),
    Case("one_pop_too_many", "deadlock", Program(OnePopTooMany), Program(AsManyPopsAsPushes),
         lambda: [rnd(32, 64), rnd(64, 96, seed=1), zeros(128, 32)], _products, "", ("finish",), (), "push as many",
         ("tpop_from_aic",)),
    Case("set_before_the_store", "raw", Program(NoEvent), Program(StoreThenSet),
         lambda: [rnd(32, 64), rnd(64, 32, seed=1), zeros(32, 32)], lambda a, b, y: {2: a @ b + 1}, "mid", (),
         ((0, 32), (0, 32)), "sync_set after", ("pl.store(pl.matmul", "pl.load(mid")),
    Case("barrier_in_a_branch", "deadlock", barrier_in_a_branch, barrier_for_all,
         lambda: [rnd(64, 32), zeros(1, 64, dtype=torch.int32), zeros(64, 32)],
         lambda x, ws, y: {2: -x.exp().reshape(8, 8, 32).flip(0).reshape(64, 32)}, "", ("meet",), (), "",
         ("syncall",)),
]  # fmt: skip
