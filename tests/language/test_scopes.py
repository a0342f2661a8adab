"""Placement scopes, loops and scalar expressions (spec language 4.3, 4.8, 5)."""

import pytest
import torch
from round_trip import assert_round_trips, random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def test_level_scope():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            with pl.at(pl.Level.CHIP, pl.Role.Orchestrator, name_hint="chip_part"):  # noqa: SIM117
                with pl.at(level=pl.Level.CORE_GROUP):
                    y[:] = pl.add(x[:], 1.0)
            return y

    assert_round_trips(P)
    x, y = random(32, 64), torch.zeros(32, 64)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x + 1)


def test_level_scope_opaque():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            with pl.at(level=pl.Level.CHIP):
                t = pl.create_tensor([32, 64], dtype=pl.FP32)
                with pl.at(level=pl.Level.CORE_GROUP):
                    t[:] = pl.add(x[:], 1.0)
                with pl.at(level=pl.Level.CORE_GROUP):
                    y[:] = pl.mul(t[:], 2.0)
            return y

    assert_round_trips(P)
    x, y = random(32, 64), torch.zeros(32, 64)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, (x + 1) * 2)


def test_scalar_exprs():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self,
            a: pl.Scalar[pl.INT32],
            b: pl.Scalar[pl.INT64],
            f: pl.Scalar[pl.FP32],
            y: pl.Out[pl.Tensor[[1, 16], pl.INT32]],
            z: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
        ):
            pl.write(y, [0, 0], pl.cast(a + b, pl.INT32))
            pl.write(y, [0, 1], pl.cast(a * 3 - b // 2, pl.INT32))
            pl.write(y, [0, 2], pl.cast(b % 5, pl.INT32))
            pl.write(y, [0, 3], pl.cast((a << 3) >> 1, pl.INT32))
            pl.write(y, [0, 4], pl.cast(~a, pl.INT32))
            pl.write(y, [0, 5], pl.cast(-b, pl.INT32))
            pl.write(y, [0, 6], pl.min(a, pl.const(4, pl.INT32)))
            pl.write(y, [0, 7], pl.cast(pl.max(b, 2), pl.INT32))
            n = 0
            if a > 3 and b < 100 or not (f > 1.0):
                n = 1
            pl.write(y, [0, 8], pl.cast(n, pl.INT32))
            pl.write(y, [0, 9], pl.cast(f * 2.0, pl.INT32))
            pl.write(y, [0, 10], pl.cast(a / 2, pl.INT32))
            pl.write(y, [0, 11], pl.cast(pl.FP16.get_byte() + 2**5, pl.INT32))
            pl.write(z, [0, 0], f / 3.0)
            pl.write(z, [0, 1], pl.cast(a, pl.FP32) + f)
            pl.write(z, [0, 2], pl.abs(-f))
            return y, z

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.Scalar[pl.INT32],
            b: pl.Scalar[pl.INT64],
            f: pl.Scalar[pl.FP32],
            y: pl.Out[pl.Tensor[[1, 16], pl.INT32]],
            z: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
        ):
            y, z = self.k(a, b, f, y, z)
            return y, z

    assert_round_trips(P)
    y = torch.zeros(1, 16, dtype=torch.int32)
    z = torch.zeros(1, 8)
    ir.compile(P, platform="a2a3sim")(7, 13, 1.5, y, z)
    assert y[0, :12].tolist() == [20, 15, 3, 28, -8, -13, 4, 13, 1, 3, 3, 34], y
    torch.testing.assert_close(z[0, :3], torch.tensor([0.5, 8.5, 1.5]))


def test_cluster_forms():
    @pl.jit
    def k(x: pl.Tensor[[64, 64], pl.FP16], w: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.cluster(name_hint="cl"):
            for b in pl.spmd(4):
                s = pl.matmul(x[b * 16 : b * 16 + 16, :], w, out_dtype=pl.FP32)
                o[b * 16 : b * 16 + 16, :] = pl.exp(pl.mul(s, 0.01))
        return o

    x, w, o = random(64, 64, dtype=torch.float16), random(64, 64, dtype=torch.float16, seed=1), torch.zeros(64, 64)
    k(x, w, o, config=SIM)
    torch.testing.assert_close(o, torch.exp(x.float() @ w.float() * 0.01), rtol=1e-2, atol=1e-2)
    assert_round_trips(k.lower(x, w, o))


def test_pipeline_init():
    @pl.jit
    def k(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            zero = pl.full([16, 64], dtype=pl.FP32, value=0.0)
            for i, (acc,) in pl.pipeline(4, stage=2, init_values=(zero,)):
                nxt = pl.add(acc, x[i * 16 : i * 16 + 16, :])
                res = pl.yield_(nxt)
            o[:] = res
        return o

    x, o = random(64, 64), torch.zeros(16, 64)
    k(x, o, config=SIM)
    torch.testing.assert_close(o, x.view(4, 16, 64).sum(0))
    assert_round_trips(k.lower(x, o))


def test_negative_steps():
    @pl.jit
    def k(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for i in pl.range(3, -1, -1):
            with pl.at(level=pl.Level.CORE_GROUP):
                for j in pl.range(15, -1, -1):
                    r = i * 16 + j
                    o[r : r + 1, :] = pl.add(x[r : r + 1, :], 1.0)
        return o

    x, o = random(64, 64), torch.zeros(64, 64)
    k(x, o, config=SIM)
    torch.testing.assert_close(o, x + 1)


def test_orch_control():
    @pl.jit
    def k(x: pl.Tensor[[64, 64], pl.FP32], c: pl.Tensor[[4], pl.INT32], o: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        i = 0
        while i < 4:
            n = pl.read(c, [i])
            i = i + 1
            if n == 0:
                continue
            if n > 5:
                break
            with pl.at(level=pl.Level.CORE_GROUP):
                r = (i - 1) * 16
                o[r : r + 16, :] = pl.mul(x[r : r + 16, :], pl.cast(n, pl.FP32))
        return o

    x, o = random(64, 64), torch.zeros(64, 64)
    k(x, torch.tensor([2, 0, 3, 9], dtype=torch.int32), o, config=SIM)
    w = torch.zeros(64, 64)
    w[:16] = 2 * x[:16]
    w[32:48] = 3 * x[32:48]
    torch.testing.assert_close(o, w)


def test_forward_calls_spmd_fn():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            with pl.spmd(4, sync_start=True, name_hint="z"):
                y = self.k(x, y)
            y2, t = pl.spmd_submit(self.k, x, y, core_num=4, allow_early_resolve=True)
            return y2

        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            b = pl.tile.get_block_idx()
            y = pl.store(
                pl.add(pl.load(x, [b * 16, 0], [16, 64]), pl.cast(pl.tile.get_block_num(), pl.FP32)), [b * 16, 0], y
            )
            return y

    x, y = random(64, 64), torch.zeros(64, 64)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x + 4)
    assert_round_trips(P)


def test_spmd_function_type():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.AIV)
        def k(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            b = pl.tile.get_block_idx()
            y = pl.store(pl.add(pl.load(x, [b * 16, 0], [16, 64]), 1.0), [b * 16, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            with pl.spmd(core_num=4) as tid:
                y = self.k(x, y)
            return y

    x, y = random(64, 64), torch.zeros(64, 64)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x + 1)
    assert_round_trips(P)


@pl.jit
def asserted(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    pl.static_assert(x.shape[0] == 16, "sixteen rows")
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(x[:], 1.0)
    return y


def test_static_assert_sees_the_shapes_of_a_specialisation():
    x = random(16, 64)
    y = torch.zeros_like(x)
    asserted(x, y, config=SIM)
    torch.testing.assert_close(y, x + 1)
    with pytest.raises(pl.parser.ParserError, match="sixteen rows"):
        asserted(random(8, 64), torch.zeros(8, 64), config=SIM)


@pl.jit
def partial_sums(x: pl.Tensor, n: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        m = pl.cast(pl.read(n, [0]), pl.INDEX)
        acc = pl.full([1, 64], dtype=pl.FP32, value=0.0)
        for i in pl.range((m + 15) // 16):
            t = pl.slice(x, [16, 64], [i * 16, 0], valid_shape=[pl.min(16, m - i * 16), 64])
            acc = pl.add(acc, pl.col_sum(pl.fillpad(t, pad_value=pl.PadValue.zero)))
        y[:] = acc
    return y


@pytest.mark.parametrize("rows", [5, 16, 40])
def test_a_loop_over_a_length_read_from_a_tensor(rows):
    x, y = random(64, 64), torch.zeros(1, 64)
    partial_sums(x, torch.tensor([rows], dtype=torch.int32), y, config=SIM)
    torch.testing.assert_close(y, x[:rows].sum(0, keepdim=True), rtol=1e-5, atol=1e-5)


@pl.jit
def carried_tensor(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    cur = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        cur[:] = pl.add(x[:], 0.0)
    for _ in pl.range(5):
        nxt = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            nxt[:] = pl.mul(cur[:], 2.0)
        cur = nxt
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(cur[:], 1.0)
    return y


def test_a_tensor_name_carried_through_an_orchestration_loop():
    x = random(16, 64)
    y = torch.zeros_like(x)
    carried_tensor(x, y, config=SIM)
    torch.testing.assert_close(y, x * 32 + 1)
    assert_round_trips(carried_tensor.lower(x, y))


@pl.jit
def piped(x: pl.Tensor[[40, 64], pl.FP32], y: pl.Out[pl.Tensor[[40, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.pipeline(5, stage=3):
            t = pl.mul(x[i * 8 : i * 8 + 8, :], 2.0)
            for j in pl.range(8):
                y[i * 8 + j : i * 8 + j + 1, :] = t[j : j + 1, :]
    return y


def test_text_of_a_pipelined_loop_with_a_remainder():
    x, y = random(40, 64), torch.zeros(40, 64)
    piped(x, y, config=SIM)
    torch.testing.assert_close(y, 2 * x)
    assert_round_trips(piped.lower(x, y))


@pl.jit
def nested_pipelines(x: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, dumps=[x]):
        for i in pl.pipeline(0, 16, 4, stage=3):
            acc = pl.full([4, 32], dtype=pl.FP32, value=0.0)
            for k in pl.range(3):
                t = pl.mul(x[i : i + 4, :], 2.0)
                n = k * 2
                if n > 2:
                    u = pl.add(t, 1.0)
                    acc = pl.add(acc, u)
                for z in pl.pipeline(2, -1, -2, stage=2):
                    w = pl.mul(x[i + z : i + z + 2, :], 0.5)
                    o[i + z : i + z + 2, :] = w
                acc = pl.add(acc, t)
            o[i : i + 4, :] = pl.add(acc, o[i : i + 4, :])
    return o


def test_copies_of_nested_pipelines_have_names_of_their_own():
    x, o = random(16, 32), torch.zeros(16, 32)
    nested_pipelines(x, o, config=RunConfig(platform="a2a3"))
    torch.testing.assert_close(o, 8.5 * x + 1)
    assert_round_trips(nested_pipelines.lower(x, o))


@pl.jit
def neighbours(x: pl.Tensor, t: pl.InOut[pl.Tensor], y: pl.Out[pl.Tensor]):
    with pl.spmd(pl.system.available_aiv_count(), sync_start=True, name_hint="meet"):
        b = pl.get_block_idx()
        pl.store(pl.mul(pl.load(x, [b, 0], [1, 32]), 2.0), [b, 0], t)
        pl.system.syncall(core_type="aiv_only")
        nearest = (b + 1) % pl.get_block_num()
        pl.store(pl.add(pl.load(t, [nearest, 0], [1, 32]), 1.0), [b, 0], y)
    return y


@pytest.mark.parametrize(("platform", "cores"), [("a2a3", 48), ("a2a3sim", 48), ("a5", 64), ("a5sim", 64)])
def test_a_launch_of_every_vector_core_meets_at_a_barrier_on_every_platform(platform, cores):
    x, t, y = random(cores, 32), torch.zeros(cores, 32), torch.zeros(cores, 32)
    neighbours(x, t, y, config=RunConfig(platform=platform))
    assert torch.equal(y, (x * 2).roll(-1, 0) + 1)


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_blocks_beyond_the_chip_cannot_start_together(platform):
    @pl.jit
    def wide(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        for b in pl.spmd(49, sync_start=True, name_hint="wide"):
            y[b : b + 1, :] = pl.neg(x[b : b + 1, :])
        return y

    x = random(49, 8)
    with pytest.raises(RuntimeError, match="sync_start.*the chip runs 48 of them at once") as caught:
        wide(x, torch.zeros_like(x), config=RunConfig(platform=platform))
    assert "49 blocks" in str(caught.value)
