"""Every construct of the language on small programs with a torch answer (spec language 3 to 6)."""

from pathlib import Path

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def rnd(*shape, seed=0, dtype=torch.float32, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g) * scale).to(dtype)


# --- loops with explicit state ---


@pl.program
class ExplicitState:
    @pl.function(type=pl.FunctionType.InCore)
    def total(self, src: pl.Tensor[[6, 8], pl.FP32], dst: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
        zero = pl.tile.full([1, 8], dtype=pl.FP32, value=0.0)
        for i, (acc,) in pl.range(6, init_values=(zero,)):
            nxt = pl.add(acc, pl.load(src, [i, 0], [1, 8]))
            summed = pl.yield_(nxt)
        pl.store(summed, [0, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, src: pl.Tensor[[6, 8], pl.FP32], dst: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
        dst = self.total(src, dst)
        return dst


def test_init_values_and_yield():
    x, y = rnd(6, 8), torch.zeros(1, 8)
    ir.compile(ExplicitState, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x.sum(0, keepdim=True), rtol=1e-5, atol=1e-5)


@pl.jit
def fibonacci(x: pl.Tensor[[1, 16], pl.FP32], y: pl.Out[pl.Tensor[[1, 16], pl.FP32]], n: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [1, 16])
        b = a
        i = 0
        while i < n:
            a, b = b, pl.add(a, b)
            i = i + 1
        y = pl.store(a, [0, 0], y)
    return y


@pytest.mark.parametrize("n", [0, 1, 7])
def test_while_with_a_simultaneous_assignment(n):
    x, y = torch.ones(1, 16), torch.zeros(1, 16)
    fibonacci.compile(n=pl.RUNTIME, config=SIM)(x, y, n)
    a, b = 1.0, 1.0
    for _ in range(n):
        a, b = b, a + b
    assert (y == a).all()


@pl.jit
def state_machine(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left0 = 5
        for left, row in pl.while_(init_values=(left0, 0)):
            pl.cond(left > 0)
            pl.store(pl.mul(pl.load(x, [row, 0], [1, 16]), 2.0), [row, 0], y)
            left_end, row_end = pl.yield_(left - 1, row + 1)
    return y


def test_while_construct():
    x, y = rnd(8, 16), torch.zeros(8, 16)
    state_machine(x, y, config=SIM)
    torch.testing.assert_close(y[:5], 2 * x[:5])
    assert (y[5:] == 0).all()


@pl.jit
def skipping(x: pl.Tensor[[16, 16], pl.FP32], y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.tile.full([1, 16], dtype=pl.FP32, value=0.0)
        for i in pl.range(16):
            if i % 2 == 1:
                continue
            if i == 10:
                break
            acc = pl.add(acc, pl.load(x, [i, 0], [1, 16]))
        pl.store(acc, [0, 0], y)
    return y


def test_break_and_continue_carry_what_they_should():
    x, y = rnd(16, 16), torch.zeros(16, 16)
    skipping(x, y, config=SIM)
    torch.testing.assert_close(y[0], x[[0, 2, 4, 6, 8]].sum(0), rtol=1e-5, atol=1e-5)


@pl.jit
def unrolled(x: pl.Tensor[[4, 16], pl.FP32], y: pl.Out[pl.Tensor[[4, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.unroll(4):
            t = pl.load(x, [i, 0], [1, 16])
            if i >= 2:
                t = pl.neg(t)
            y = pl.store(t, [i, 0], y)
    return y


def test_unroll_folds_its_index():
    x, y = rnd(4, 16), torch.zeros(4, 16)
    unrolled(x, y, config=SIM)
    torch.testing.assert_close(y, torch.cat([x[:2], -x[2:]]))


@pytest.mark.parametrize("trips", [1, 2, 5, 7, 8])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_pipeline_with_a_remainder(trips, stage):
    n = trips * 8

    @pl.jit
    def k(x: pl.Tensor[[n, 16], pl.FP32], y: pl.Out[pl.Tensor[[1, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile.full([8, 16], dtype=pl.FP32, value=0.0)
            for r in pl.pipeline(0, n, 8, stage=stage):
                acc = pl.add(acc, pl.load(x, [r, 0], [8, 16]))
            pl.store(pl.col_sum(acc), [0, 0], y)
        return y

    x, y = rnd(n, 16), torch.zeros(1, 16)
    k(x, y, config=SIM)
    torch.testing.assert_close(y, x.sum(0, keepdim=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("outer", [1, 2, 3])
@pytest.mark.parametrize("inner", [1, 2, 3])
@pytest.mark.parametrize("trips", [(2, 4), (3, 5), (5, 3)])
def test_a_pipeline_in_a_pipeline(trips, outer, inner):
    blocks, steps = trips
    n, m = blocks * 16, steps * 16

    @pl.jit
    def k(x: pl.Tensor[[n, m], pl.FP32], y: pl.Out[pl.Tensor[[n, m], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.pipeline(0, n, 16, stage=outer):
                band = pl.load(x, [r, 0], [16, m])
                for c in pl.pipeline(0, m, 16, stage=inner):
                    part = pl.slice(band, [16, 16], [0, c])
                    y = pl.store(pl.mul(part, 2.0), [r, c], y)
        return y

    x, y = rnd(n, m), torch.zeros(n, m)
    k(x, y, config=SIM)
    torch.testing.assert_close(y, 2 * x)


def test_a_product_accumulates_over_two_levels_of_buffers():
    """The accumulator fills the whole of Acc, the operands of two stages all of Left and Right."""
    m, k_total, n = 128, 512, 256

    @pl.jit
    def k(
        a: pl.Tensor[[m, k_total], pl.FP16],
        b: pl.Tensor[[k_total, n], pl.FP16],
        c: pl.Out[pl.Tensor[[m, n], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.create_tile([m, n], dtype=pl.FP32, target_memory=pl.Mem.Acc)
            for k1 in pl.pipeline(0, k_total, 128, stage=2):
                la = pl.load(a, [0, k1], [m, 128], target_memory=pl.Mem.Mat)
                lb = pl.load(b, [k1, 0], [128, n], target_memory=pl.Mem.Mat)
                for k0 in pl.pipeline(0, 128, 64, stage=2):
                    left = pl.tile.extract(la, 0, k0, [m, 64], target_memory=pl.Mem.Left)
                    right = pl.tile.extract(lb, k0, 0, [64, n], target_memory=pl.Mem.Right)
                    if k1 + k0 == 0:
                        acc = pl.matmul(left, right)
                    else:
                        acc = pl.matmul_acc(acc, left, right)
            c = pl.store(acc, [0, 0], c)
        return c

    a, b, c = rnd(m, k_total).half(), rnd(k_total, n).half(), torch.zeros(m, n)
    compiled = k.compile(a, b, c, config=SIM)
    (text,) = Path(compiled.output_dir).rglob("*.pto")
    places = {line.split()[-1] for line in text.read_text().splitlines() if " : right<" in line}
    assert places == {"0", "32768"}, "two copies of the inner loop take turns"
    compiled(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-2)


# --- functions ---


@pl.inline
def halve_then_add(u, v):
    return pl.add(pl.mul(u, 0.5), v)


@pl.program
class UsesInline:
    @pl.function(type=pl.FunctionType.InCore)
    def work(
        self, a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32], c: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        x = pl.load(a, [0, 0], [16, 16])
        y = pl.load(b, [0, 0], [16, 16])
        return pl.store(halve_then_add(x, halve_then_add(y, x)), [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32], c: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        c = self.work(a, b, c)
        return c


def test_inline_macro():
    a, b = rnd(16, 16), rnd(16, 16, seed=1)
    torch.testing.assert_close(ir.compile(UsesInline, platform="a2a3sim")(a, b), 0.5 * a + (0.5 * b + a))


@pl.jit.inline
def scaled_rows(x: pl.Tensor, y: pl.Tensor, factor: pl.Scalar[pl.FP32]):
    for r in pl.range(0, 32, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[r : r + 16, :] = pl.mul(x[r : r + 16, :], factor)
    return y


@pl.jit
def twice_inlined(
    x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]], z: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    y = scaled_rows(x, y, 2.0)
    z = scaled_rows(y, z, 3.0)
    return y, z


def test_jit_inline_splices_orchestration_code():
    x, y, z = rnd(32, 32), torch.zeros(32, 32), torch.zeros(32, 32)
    twice_inlined(x, y, z, config=SIM)
    torch.testing.assert_close(y, 2 * x)
    torch.testing.assert_close(z, 6 * x)


@pl.jit.incore
def damp(src: pl.Tensor, gain: pl.Scalar[pl.FP32], dst: pl.Out[pl.Tensor]):
    for i in pl.range(4):
        block = pl.load(src, [i * 16, 0], [16, 128])
        pl.store(pl.mul(block, gain), [i * 16, 0], dst)
    return dst


@pl.jit
def run_damp(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    y = damp(x, gain=0.5, dst=y)
    return y


def test_dependency_with_keywords_and_bare_tensors():
    x, y = rnd(64, 128), torch.zeros(64, 128)
    run_damp(x, y, config=SIM)
    torch.testing.assert_close(y, 0.5 * x)


def test_an_incore_function_runs_on_its_own():
    x, y = rnd(64, 128), torch.zeros(64, 128)
    damp(x, 2.0, y, config=SIM)
    torch.testing.assert_close(y, 2 * x)


@pl.jit
def shapes_from_parameters(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    R, C = x.shape
    half = x.shape[1] // 2
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [R, half])
        u = pl.load(x, [0, half], [R, half])
        y[:, 0:half] = (
            pl.create_tensor([R, half], dtype=x.dtype) if False else pl.create_tensor([R, half], dtype=x.dtype)
        )
    return y


def test_conditional_expressions_are_refused_with_the_place():
    with pytest.raises(pl.parser.ParserError) as e:
        shapes_from_parameters(rnd(16, 32), torch.zeros(16, 32), config=SIM)
    assert "if statement" in str(e.value) and "test_constructs.py" in str(e.value)


@pl.jit
def swap_halves(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    R, C = x.shape
    half = x.shape[1] // 2
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.load(x, [0, 0], [R, half])
        right = pl.load(x, [0, half], [R, half])
        pl.store(right, [0, 0], y)
        pl.store(left, [0, half], y)
    return y


def test_shape_of_a_parameter():
    x, y = rnd(16, 32), torch.zeros(16, 32)
    swap_halves(x, y, config=SIM)
    torch.testing.assert_close(y, torch.cat([x[:, 16:], x[:, :16]], 1))


# --- several kernels, tasks, ids ---


@pl.program
class TaskGraph:
    @pl.function(type=pl.FunctionType.InCore)
    def leaf(
        self, x: pl.Tensor[[64, 16], pl.FP32], part: pl.Out[pl.Tensor[[64, 16], pl.FP32]], i: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[64, 16], pl.FP32]:
        return pl.store(pl.exp(pl.load(x, [i * 16, 0], [16, 16])), [i * 16, 0], part)

    @pl.function(type=pl.FunctionType.InCore)
    def join(
        self, part: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]
    ) -> pl.Tensor[[1, 16], pl.FP32]:
        return pl.store(pl.col_sum(pl.load(part, [0, 0], [64, 16])), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]
    ) -> pl.Tensor[[1, 16], pl.FP32]:
        part = pl.create_tensor([64, 16], dtype=pl.FP32)
        with pl.manual_scope():
            ids = pl.array.create(4, pl.TASK_ID)
            for i in pl.range(4):
                part, tid = pl.submit(self.leaf, x, part, i)
                ids[i] = tid
            gate = pl.system.task_dummy(deps=[ids])
            out, _ = pl.submit(self.join, part, out, deps=[gate])
        return out


def test_submit_arrays_of_ids_and_a_fence():
    x = rnd(64, 16)
    compiled = ir.compile(TaskGraph, platform="a2a3sim")
    torch.testing.assert_close(compiled(x), torch.exp(x).sum(0, keepdim=True), rtol=1e-5, atol=1e-5)


@pl.program
class Chained:
    @pl.function(type=pl.FunctionType.InCore)
    def step(self, a: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        return pl.store(pl.add(pl.load(a, [0, 0], [16, 16]), 1.0), [0, 0], a)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        last = None
        for i in pl.range(5):
            a, last = pl.submit(self.step, a, deps=[last])
        return a


def test_a_chain_of_task_ids_in_place():
    a = rnd(16, 16)
    want = a + 5
    ir.compile(Chained, platform="a2a3sim")(a)
    torch.testing.assert_close(a, want)


@pl.jit
def spmd_blocks(src: pl.Tensor[[512, 32], pl.FP32], dst: pl.Out[pl.Tensor[[512, 32], pl.FP32]]):
    for b in pl.spmd(16, name_hint="fold_spmd"):
        strip = src[b * 32 : b * 32 + 32, :]
        dst[b * 32 : b * 32 + 32, :] = pl.exp(strip)
    return dst


@pl.jit
def spmd_with(src: pl.Tensor[[512, 32], pl.FP32], dst: pl.Out[pl.Tensor[[512, 32], pl.FP32]]):
    with pl.spmd(8) as tid:
        lane = pl.get_block_idx()
        dst[lane * 64 : lane * 64 + 64, :] = pl.exp(src[lane * 64 : lane * 64 + 64, :])
    with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
        dst[0:1, :] = pl.neg(dst[0:1, :])
    return dst


def test_spmd_forms():
    x, y = rnd(512, 32), torch.zeros(512, 32)
    spmd_blocks(x, y, config=SIM)
    torch.testing.assert_close(y, torch.exp(x), rtol=1e-5, atol=1e-6)
    y.zero_()
    spmd_with(x, y, config=SIM)
    want = torch.exp(x)
    want[0] = -want[0]
    torch.testing.assert_close(y, want, rtol=1e-5, atol=1e-6)


@pl.jit
def predicated(
    x: pl.Tensor[[16, 16], pl.FP32], active: pl.Tensor[[1, 8], pl.INT32], y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]
):
    with pl.spmd(1, predicate=active[0, 2] > 0, name_hint="extra"):
        lane = pl.get_block_idx()
        y[lane * 16 : lane * 16 + 16, :] = pl.neg(x)
    return y


@pytest.mark.parametrize("flag", [0, 3])
def test_predicate(flag):
    x, y = rnd(16, 16), torch.full((16, 16), 7.0)
    active = torch.zeros(1, 8, dtype=torch.int32)
    active[0, 2] = flag
    predicated(x, active, y, config=SIM)
    torch.testing.assert_close(y, -x if flag else torch.full((16, 16), 7.0))


# --- values that cross scopes ---


@pl.jit
def created_in_a_scope(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        h = pl.exp(x)
        x = pl.mul(h, 2.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(h, x)
    return y


def test_a_tensor_computed_in_one_scope_is_read_in_another():
    x, y = rnd(16, 32), torch.zeros(16, 32)
    keep = x.clone()
    created_in_a_scope(x, y, config=SIM)
    torch.testing.assert_close(y, 3 * torch.exp(keep), rtol=1e-5, atol=1e-5)
    assert torch.equal(x, keep)


@pl.jit
def reads_an_element(
    x: pl.Tensor[[16, 16], pl.FP32], at: pl.Tensor[[1, 4], pl.INT32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
):
    row = pl.read(at, [0, 1])
    with pl.at(level=pl.Level.CORE_GROUP):
        scale = pl.read(x, [row, 3])
        t = pl.mul(pl.load(x, [0, 0], [16, 16]), scale)
        pl.store(t, [0, 0], y)
        pl.system.fence()
        pl.write(y, [0, 0], pl.cast(row, pl.FP32))
    return y


def test_scalars_read_from_tensors():
    x, y = rnd(16, 16), torch.zeros(16, 16)
    at = torch.tensor([[0, 5, 0, 0]], dtype=torch.int32)
    reads_an_element(x, at, y, config=SIM)
    want = x * x[5, 3]
    want[0, 0] = 5.0
    torch.testing.assert_close(y, want)


# --- mixed kernels ---


@pl.jit
def linear_relu(
    x: pl.Tensor[[32, 64], pl.FP16],
    w: pl.Tensor[[64, 48], pl.FP16],
    y: pl.Out[pl.Tensor[[32, 48], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        h = pl.matmul(x, w, out_dtype=pl.FP32)
        y[:] = pl.maximum(h, 0.0)
    return y


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_cube_then_vector_in_one_scope(platform):
    x, w, y = rnd(32, 64, dtype=torch.float16), rnd(64, 48, seed=1, dtype=torch.float16), torch.zeros(32, 48)
    linear_relu(x, w, y, config=RunConfig(platform=platform))
    torch.testing.assert_close(y, torch.relu(x.float() @ w.float()), rtol=1e-3, atol=1e-3)


@pl.jit
def attention_block(
    q: pl.Tensor[[16, 64], pl.FP16],
    k: pl.Tensor[[32, 64], pl.FP16],
    v: pl.Tensor[[32, 64], pl.FP16],
    o: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.mul(pl.matmul(q, k, out_dtype=pl.FP32, b_trans=True), 0.125)
        e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
        p = pl.row_expand_div(e, pl.row_sum(e))
        o[:] = pl.matmul(pl.cast(p, pl.FP16), v, out_dtype=pl.FP32)
    return o


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_cube_vector_cube_in_one_scope(platform):
    q, k, v = (rnd(n, 64, seed=i, dtype=torch.float16) for i, n in enumerate((16, 32, 32)))
    o = torch.zeros(16, 64)
    attention_block(q, k, v, o, config=RunConfig(platform=platform))
    want = torch.softmax(q.float() @ k.float().T * 0.125, -1) @ v.float()
    torch.testing.assert_close(o, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("m,k,n", [(128, 512, 256), (64, 1024, 64), (256, 256, 512), (16, 4096, 32)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matmul_of_any_size(m, k, n, dtype):
    pdt = pl.FP16 if dtype == torch.float16 else pl.BF16

    @pl.jit
    def mm(a: pl.Tensor[[m, k], pdt], b: pl.Tensor[[k, n], pdt], c: pl.Out[pl.Tensor[[m, n], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:] = pl.matmul(a, b, out_dtype=pl.FP32)
        return c

    a, b, c = rnd(m, k, dtype=dtype), rnd(k, n, seed=1, dtype=dtype), torch.zeros(m, n)
    mm(a, b, c, config=SIM)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-2)


@pl.jit
def k_loop(a: pl.Tensor[[32, 256], pl.BF16], b: pl.Tensor[[256, 32], pl.BF16], c: pl.Out[pl.Tensor[[32, 32], pl.BF16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([32, 32], dtype=pl.FP32)
        for i in pl.range(4):
            acc = pl.matmul_acc(acc, a[:, i * 64 : i * 64 + 64], b[i * 64 : i * 64 + 64, :], init_cond=i == 0)
        c[:] = acc
    return c


def test_matmul_acc_with_init_cond():
    a, b, c = (
        rnd(32, 256, dtype=torch.bfloat16),
        rnd(256, 32, seed=1, dtype=torch.bfloat16),
        torch.zeros(32, 32, dtype=torch.bfloat16),
    )
    k_loop(a, b, c, config=SIM)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-1)


# --- text form ---


@pytest.mark.parametrize("program", [ExplicitState, UsesInline, TaskGraph, Chained], ids=lambda p: p.name)
def test_text_form_is_a_fixed_point(program):
    text = program.as_python()
    assert pl.parse(text) == program
    assert pl.parse(text).as_python() == text


@pytest.mark.parametrize(
    "kernel,shapes",
    [
        (spmd_blocks, [(512, 32)] * 2),
        (spmd_with, [(512, 32)] * 2),
        (twice_inlined, [(32, 32)] * 3),
        (created_in_a_scope, [(16, 32)] * 2),
        (skipping, [(16, 16)] * 2),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_text_form_of_lowered_kernels(kernel, shapes):
    lowered = kernel.lower(*(torch.zeros(*s) for s in shapes))
    assert pl.parse(lowered.as_python()) == lowered
