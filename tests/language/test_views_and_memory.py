"""Views, declared allocations, dynamic extents and task forms, each against torch (spec language 2.6, 2.7, 5.3, 6, 7.6)."""

import pytest
import torch
from round_trip import assert_round_trips

import pypto.language as pl
from pypto import ir
from pypto.pypto_core.passes import MemoryPlanner, PassContext
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def rnd(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# --- declared allocations ---


ring = pl.MemRef(slots=2)


@pl.program
class Rotating:
    @pl.function(type=pl.FunctionType.InCore)
    def rotate(
        self, src: pl.Tensor[[256, 32], pl.FP32], dst: pl.Out[pl.Tensor[[256, 32], pl.FP32]]
    ) -> pl.Tensor[[256, 32], pl.FP32]:
        for k in pl.range(8):
            row: pl.Tile[[32, 32], pl.FP32, ring[k % 2], pl.Mem.Vec] = pl.load(src, [k * 32, 0], [32, 32])
            dst = pl.store(row, [k * 32, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, src: pl.Tensor[[256, 32], pl.FP32], dst: pl.Out[pl.Tensor[[256, 32], pl.FP32]]
    ) -> pl.Tensor[[256, 32], pl.FP32]:
        dst = self.rotate(src, dst)
        return dst


def test_slots_of_a_declared_allocation_rotate(tmp_path):
    x = rnd(256, 32)
    compiled = ir.compile(Rotating, platform="a2a3sim", output_dir=tmp_path)
    assert torch.equal(compiled(x), x)
    text = (tmp_path / "kernels/aiv/rotate.pto").read_text()
    assert "slots 2 pitch 4096" in text


@pl.program
class RotatingViews:
    @pl.function(type=pl.FunctionType.InCore)
    def rotate(
        self, x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        for k in pl.range(2):
            small: pl.Tile[[8, 32], pl.FP32, ring[(k + 1) % 2], pl.Mem.Vec] = pl.load(x, [k * 32, 0], [8, 32])
            big: pl.Tile[[24, 32], pl.FP32, ring[k % 2], pl.Mem.Vec] = pl.load(x, [k * 32 + 8, 0], [24, 32])
            head, tail = small[0:4, :], big[16:24, :]
            filled = pl.fillpad(pl.set_validshape(big, 4, 32), pad_value=pl.PadValue.zero)
            y = pl.store(small, [k * 32, 0], y)
            y = pl.store(filled, [k * 32 + 8, 0], y)
            y = pl.store(pl.add(head, 1.0), [k * 32, 0], y)
            y = pl.store(pl.add(tail, 1.0), [k * 32 + 24, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        y = self.rotate(x, y)
        return y


def test_views_follow_their_slot_and_slots_are_as_large_as_the_largest_tile():
    x = rnd(64, 32)
    want = x.clone().view(2, 32, 32)
    want[:, 12:32] = 0
    want[:, 0:4] += 1
    want[:, 24:32] = x.view(2, 32, 32)[:, 24:32] + 1
    torch.testing.assert_close(ir.compile(RotatingViews, platform="a2a3")(x), want.view(64, 32))
    assert_round_trips(RotatingViews)


halves, sums = pl.MemRef("halves", slots=2), pl.MemRef("sums", slots=2)


@pl.program
class UnrolledProducts:
    @pl.function(type=pl.FunctionType.InCore)
    def multiply(
        self,
        a: pl.Tensor[[32, 16], pl.FP16],
        b: pl.Tensor[[16, 32], pl.FP16],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        right = pl.move(pl.load(b, [0, 0], [16, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for h in pl.unroll(2):
            block: pl.Tile[[16, 16], pl.FP16, halves[1 - h], pl.Mem.Mat] = pl.load(
                a, [h * 16, 0], [16, 16], target_memory=pl.Mem.Mat
            )
            acc: pl.Tile[[16, 32], pl.FP32, sums[h], pl.Mem.Acc] = pl.matmul(
                pl.move(block, target_memory=pl.Mem.Left), right
            )
            c = pl.store(acc, [h * 16, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 16], pl.FP16],
        b: pl.Tensor[[16, 32], pl.FP16],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        c = self.multiply(a, b, c)
        return c


def test_an_unrolled_body_names_slots_by_its_loop_variable_and_products_are_placed_where_they_are_declared(tmp_path):
    a, b = rnd(32, 16, dtype=torch.float16), rnd(16, 32, seed=1, dtype=torch.float16)
    compiled = ir.compile(UnrolledProducts, platform="a2a3", output_dir=tmp_path)
    torch.testing.assert_close(compiled(a, b), a.float() @ b.float(), rtol=1e-3, atol=1e-3)
    tiles = [line for line in (tmp_path / "kernels/aic/multiply.pto").read_text().splitlines() if "  tile " in line]
    blocks, products = ([line.split(" at ")[1] for line in tiles if kind in line] for kind in ("mat<16x16", "acc<"))
    assert int(blocks[0]) == int(blocks[1]) + 512 and int(products[1]) == int(products[0]) + 16 * 32 * 4


def test_a_slot_that_an_unrolled_body_does_not_have_is_refused():
    @pl.program
    class TooFar:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(
            self, x: pl.Tensor[[24, 32], pl.FP32], y: pl.Out[pl.Tensor[[24, 32], pl.FP32]]
        ) -> pl.Tensor[[24, 32], pl.FP32]:
            for h in pl.unroll(3):
                row: pl.Tile[[8, 32], pl.FP32, ring[h], pl.Mem.Vec] = pl.load(x, [h * 8, 0], [8, 32])
                y = pl.store(row, [h * 8, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[24, 32], pl.FP32], y: pl.Out[pl.Tensor[[24, 32], pl.FP32]]
        ) -> pl.Tensor[[24, 32], pl.FP32]:
            y = self.copy(x, y)
            return y

    with pytest.raises(Exception, match=r"'ring' has 2 slots, the tile 'row' names slot 2"):
        ir.compile(TooFar, platform="a2a3")


def test_the_plan_is_written_and_buffers_are_reused(tmp_path):
    @pl.jit
    def chain(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = x[:, :]
            for _ in pl.unroll(16):
                t = pl.exp(pl.neg(t))
            y[:] = t
        return y

    x, y = rnd(64, 64), torch.zeros(64, 64)
    compiled = ir.compile(chain.lower(x, y), platform="a2a3sim", output_dir=tmp_path)
    compiled(x, y)
    want = x
    for _ in range(16):
        want = torch.exp(-want)
    torch.testing.assert_close(y, want, rtol=1e-5, atol=1e-5)
    plan = (tmp_path / "report/memory.txt").read_text()
    assert "peak Vec" in plan and "16,384 bytes" in plan, "33 values of 16 KiB share one buffer"


@pl.jit
def attention_scores(q: pl.Tensor, k: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.pipeline(0, 64, 16, stage=2):
            score = pl.matmul(q[r : r + 16, :], k[:], b_trans=True, out_dtype=pl.FP32)
            e = pl.exp(pl.row_expand_sub(score, pl.row_max(score)))
            y[r : r + 16, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


def test_every_planner_gives_the_same_values_and_its_own_plan(tmp_path, caplog):
    q, k = rnd(64, 32, dtype=torch.float16), rnd(48, 32, seed=1, dtype=torch.float16)
    plans, results = {}, []
    for planner in MemoryPlanner:
        y = torch.zeros(64, 48)
        config = RunConfig(platform="a2a3", memory_planner=planner)
        compiled = attention_scores.compile(q, k, y, config=config)
        compiled(q, k, y)
        results.append(y)
        plans[planner.name] = (compiled.output_dir / "report/memory.txt").read_text()
        assert plans[planner.name].startswith(f"planner {planner.name}\n")
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    torch.testing.assert_close(results[0], torch.softmax(q.float() @ k.float().T, -1), rtol=1e-4, atol=1e-4)
    bodies = {name: text.split("\n", 1)[1] for name, text in plans.items()}
    assert bodies["PTOAS"] != bodies["PYPTO"], "without the compiler's reuse buffers lie elsewhere"
    assert [r.message for r in caplog.records if "assembler" in r.message], "the assembler's plan is announced"


def test_the_planner_of_the_active_context_counts():
    x, y = rnd(16, 32), torch.zeros(16, 32)

    @pl.jit
    def negate(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)
        return y

    with PassContext(memory_planner=MemoryPlanner.DSA_RP):
        inside = negate.compile(x, y)
    assert (inside.output_dir / "report/memory.txt").read_text().startswith("planner DSA_RP")
    assert negate.compile(x, y) is not inside
    with pytest.raises(TypeError, match=r"memory_planner is 'fast'; legal: MemoryPlanner.PYPTO"):
        negate.compile(x, y, config=RunConfig(memory_planner="fast"))


# --- views in orchestration ---


@pl.jit.incore
def add_one(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    R, C = x.shape
    y = pl.store(pl.add(pl.load(x, [0, 0], [R, C]), 1.0), [0, 0], y)
    return y


@pl.jit
def views(
    x: pl.Tensor[[4, 16, 32], pl.FP32],
    y: pl.Out[pl.Tensor[[4, 16, 32], pl.FP32]],
    z: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
):
    for i in pl.range(3):
        one = y[i]
        one = add_one(x[i], one)
    flat = pl.reshape(x, [64, 32])
    turned = pl.transpose(flat, -2, -1)
    with pl.at(level=pl.Level.CORE_GROUP):
        z[:] = pl.mul(turned, 2.0)
        y[3, 0:8, :] = pl.neg(x[3, 8:16, :])
    return y, z


def test_slices_reshape_and_transpose_are_views():
    x, y, z = rnd(4, 16, 32), torch.zeros(4, 16, 32), torch.zeros(32, 64)
    views(x, y, z, config=SIM)
    torch.testing.assert_close(y[:3], x[:3] + 1)
    torch.testing.assert_close(y[3, :8], -x[3, 8:])
    assert (y[3, 8:] == 0).all()
    torch.testing.assert_close(z, 2 * x.reshape(64, 32).T)


@pl.jit
def two_shapes(a: pl.Tensor, b: pl.Tensor, x: pl.Out[pl.Tensor], y: pl.Out[pl.Tensor]):
    x = add_one(a, x)
    y = add_one(b, y)
    return x, y


def test_one_dependency_at_two_shapes():
    a, b = rnd(16, 32), rnd(48, 64, seed=1)
    x, y = torch.zeros_like(a), torch.zeros_like(b)
    two_shapes(a, b, x, y, config=SIM)
    torch.testing.assert_close(x, a + 1)
    torch.testing.assert_close(y, b + 1)


# --- dynamic extents ---

B, S = pl.dynamic("B"), pl.dynamic("S")


@pl.jit
def ragged(x: pl.Tensor, lengths: pl.Tensor, y: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, B)
    y.bind_dynamic(0, B)
    lengths.bind_dynamic(1, B)
    rows = pl.tensor.dim(x, 0)
    for r in pl.parallel(rows):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="row"):
            n = pl.cast(pl.read(lengths, [0, r]), pl.INDEX)
            t = pl.load(x, [r, 0], [1, 64], valid_shape=[1, n])
            y = pl.store(pl.fillpad(t, pad_value=pl.PadValue.zero), [r, 0], y)
    return y


def test_bind_dynamic_and_run_time_valid_shapes():
    ragged._cache.clear()
    for rows in (1, 5, 9):
        x, y = rnd(rows, 64), torch.full((rows, 64), 3.0)
        n = torch.arange(1, rows + 1, dtype=torch.int32)[None] * 7
        ragged(x, n, y, config=SIM)
        keep = torch.arange(64)[None] < n[0][:, None]
        torch.testing.assert_close(y, torch.where(keep, x, 0.0))
    assert len(ragged._cache) == 1


@pl.jit
def tail(x: pl.Tensor[[S, 32], pl.FP32], y: pl.Out[pl.Tensor[[S, 32], pl.FP32]]):
    for r in pl.range(0, S, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            here = pl.min(S - r, 16)
            t = pl.load(x, [r, 0], [16, 32], valid_shape=[here, 32])
            y = pl.store(pl.mul(t, 3.0), [r, 0], y)
    return y


@pytest.mark.parametrize("rows", [1, 16, 17, 50])
def test_a_symbol_in_a_body_and_a_partial_last_block(rows):
    x, y = rnd(rows, 32), torch.zeros(rows, 32)
    tail(x, y, config=SIM)
    torch.testing.assert_close(y, 3 * x)


# --- groups and clusters ---


@pl.program
class Pair:
    @pl.function(type=pl.FunctionType.AIC)
    def multiply(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32]):
        left = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        right = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        pl.tpush_to_aiv(pl.matmul(left, right), split=0)

    @pl.function(type=pl.FunctionType.AIV)
    def finish(self, y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]) -> pl.Tensor[[32, 32], pl.FP32]:
        got: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        done = pl.add(got, 1.0)
        pl.tfree_to_aic(got)
        y = pl.store(done, [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        self.multiply(a, b)
        y = self.finish(y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        y = self.pair(a, b, y)
        return y


def test_a_group_written_by_hand():
    a, b = rnd(32, 64), rnd(64, 32, seed=1)
    torch.testing.assert_close(ir.compile(Pair, platform="a2a3sim")(a, b), a @ b + 1, rtol=1e-4, atol=1e-4)


@pl.jit
def clustered(
    a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.cluster(name_hint="together"):
        with pl.at(level=pl.Level.CORE_GROUP):
            s = pl.matmul(a, b, out_dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.exp(pl.mul(s, 0.1))
    return y


def test_a_cluster_of_scopes_is_one_task():
    a, b, y = rnd(32, 64, dtype=torch.float16), rnd(64, 32, seed=1, dtype=torch.float16), torch.zeros(32, 32)
    clustered(a, b, y, config=SIM)
    torch.testing.assert_close(y, torch.exp(0.1 * (a.float() @ b.float())), rtol=1e-3, atol=1e-3)


# --- launches ---


@pl.program
class SpmdSubmit:
    @pl.function(type=pl.FunctionType.InCore)
    def block(
        self, x: pl.Tensor[[128, 16], pl.FP32], y: pl.Out[pl.Tensor[[128, 16], pl.FP32]]
    ) -> pl.Tensor[[128, 16], pl.FP32]:
        b = pl.get_block_idx()
        n = pl.get_block_num()
        t = pl.load(x, [b * 16, 0], [16, 16])
        return pl.store(pl.mul(t, pl.cast(n, pl.FP32)), [b * 16, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[128, 16], pl.FP32], y: pl.Out[pl.Tensor[[128, 16], pl.FP32]]
    ) -> pl.Tensor[[128, 16], pl.FP32]:
        mid, first = pl.spmd_submit(self.block, x, core_num=8, allow_early_resolve=True)
        y, _ = pl.spmd_submit(self.block, mid, y, core_num=8, deps=[first], sync_start=True)
        return y


def test_spmd_submit_with_an_output_left_to_the_runtime():
    x = rnd(128, 16)
    torch.testing.assert_close(ir.compile(SpmdSubmit, platform="a2a3sim")(x), x * 64)


@pl.jit
def branches(
    x: pl.Tensor[[16, 16], pl.FP32], flag: pl.Tensor[[1, 1], pl.INT32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
):
    n = pl.read(flag, [0, 0])
    if n > 0 and n < 10:
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)
    elif n == 10:
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.exp(x)
    else:
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x
    return y


@pytest.mark.parametrize("n,op", [(3, torch.neg), (10, torch.exp), (-1, torch.clone)])
def test_orchestration_branches_on_data(n, op):
    x, y = rnd(16, 16), torch.zeros(16, 16)
    branches(x, torch.tensor([[n]], dtype=torch.int32), y, config=SIM)
    torch.testing.assert_close(y, op(x), rtol=1e-5, atol=1e-5)


def test_static_helpers(capsys):
    @pl.jit
    def k(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.static_assert(1 + 1 == 2, "arithmetic")
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.neg(x)
            pl.static_print("value", t)
            y[:] = t
        return y

    k(rnd(16, 16), torch.zeros(16, 16), config=SIM)
    out = capsys.readouterr().out
    assert "static_print [" in out and "test_views_and_memory.py" in out and "[16, 16]" in out


def test_same_bits_on_every_platform():
    x = rnd(64, 64)
    results = []
    for platform in ("a2a3", "a2a3sim", "a5", "a5sim"):

        @pl.jit
        def k(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            for r in pl.parallel(0, 64, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = x[r : r + 16, :]
                    y[r : r + 16, :] = pl.row_expand_div(pl.exp(t), pl.row_sum(pl.exp(t)))
            return y

        y = torch.zeros(64, 64)
        k(x, y, config=RunConfig(platform=platform))
        results.append(y)
    assert all(torch.equal(results[0], r) for r in results)


@pytest.mark.parametrize("program", [Rotating, Pair, SpmdSubmit], ids=lambda p: p.name)
def test_text_between_all_passes(program):
    assert_round_trips(program)


# --- one name for views of several strides, in text form ---


@pl.jit
def views_in_turn(x: pl.Tensor, y: pl.Tensor, flag: pl.Scalar[pl.BOOL], o: pl.Out[pl.Tensor]):
    v = x[:, 0:16]
    for i in pl.unroll(3):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[i * 8 : i * 8 + 8, :] = pl.exp(v[:, 0:16])
        if flag:
            v = y[:, i * 16 : i * 16 + 16]
        else:
            v = x[:, 16:32]
    return o


@pytest.mark.parametrize("flag", [True, False])
def test_a_name_of_views_with_different_strides_is_written_out(flag):
    x, y, o = rnd(8, 32), rnd(8, 64, seed=1), torch.zeros(24, 16)
    views_in_turn(x, y, flag, o, config=SIM)
    later = [y[:, :16], y[:, 16:32]] if flag else [x[:, 16:]] * 2
    torch.testing.assert_close(o, torch.cat([x[:, :16], *later]).exp())
    assert_round_trips(views_in_turn.lower(x, y, flag, o))


@pl.jit.incore
def alone(x: pl.Tensor, n: pl.Scalar[pl.INT32], o: pl.Out[pl.Tensor]):
    o = pl.store(pl.mul(pl.load(x, [0, 0], [9, 24]), pl.cast(n, pl.FP32)), [0, 0], o)
    return o


def test_a_kernel_called_on_its_own_with_a_number_has_a_text_form():
    x, o = rnd(9, 24), torch.zeros(9, 24)
    alone(x, 3, o, config=SIM)
    torch.testing.assert_close(o, 3 * x)
    assert_round_trips(alone.lower(x, 3, o))


pair = pl.MemRef(slots=2)


@pl.program
class ConstantSlots:
    @pl.function(type=pl.FunctionType.InCore)
    def fold(
        self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        low: pl.Tile[[16, 64], pl.FP32, pair[0], pl.Mem.Vec] = pl.load(x, [0, 0], [16, 64])
        high: pl.Tile[[16, 64], pl.FP32, pair[1], pl.Mem.Vec] = pl.load(x, [16, 0], [16, 64])
        y = pl.store(pl.sub(low, high), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        y = self.fold(x, y)
        return y


def test_two_constant_slots_of_one_declaration_hold_two_values():
    x, y = torch.randn(32, 64), torch.zeros(16, 64)
    ir.compile(ConstantSlots, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x[:16] - x[16:])


@pytest.mark.parametrize("platform", ["a2a3", "a5sim"])
def test_a_group_that_splits_its_transfers_runs_both_vector_cores(platform):
    @pl.program
    class Halves:
        @pl.function(type=pl.FunctionType.AIC)
        def multiply(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32]):
            left = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
            right = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
            pl.tpush_to_aiv(pl.matmul(left, right), split=1)

        @pl.function(type=pl.FunctionType.AIV)
        def finish(self, y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]) -> pl.Tensor[[32, 32], pl.FP32]:
            got: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
            done = pl.add(got, 1.0)
            pl.tfree_to_aic(got, split=1)
            y = pl.store(done, [pl.tile.get_subblock_idx() * 16, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self,
            a: pl.Tensor[[32, 64], pl.FP32],
            b: pl.Tensor[[64, 32], pl.FP32],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            self.multiply(a, b)
            y = self.finish(y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP32],
            b: pl.Tensor[[64, 32], pl.FP32],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            y = self.pair(a, b, y)
            return y

    a, b = rnd(32, 64), rnd(64, 32, seed=1)
    torch.testing.assert_close(ir.compile(Halves, platform=platform)(a, b), a @ b + 1, rtol=1e-4, atol=1e-4)
