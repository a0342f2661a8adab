"""Jit functions: where their source comes from, what they capture, how they are specialised (spec language 3.2 to 3.5)."""

import functools
import linecache
import subprocess
import sys

import pytest
import torch
from round_trip import random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")

G = 4


@pl.jit.inline
def helper(x: pl.Tensor, n: pl.Scalar[pl.INT32], ids: pl.Array[4, pl.TASK_ID], y: pl.Tensor) -> pl.Tensor:
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="h") as tid:
            y[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
        ids[i] = tid
    return y


@pl.jit(auto_scope=False)
def prod(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.scope():
        t = pl.create_tensor([64, 64], dtype=pl.FP32)
        ids = pl.array.create(4, pl.TASK_ID)
        t = helper(x, 3, ids, t)
        gate = pl.system.task_dummy(deps=[ids])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[gate], name_hint="m"):
            y[:] = pl.mul(t[:], 2.0)
    return y


def test_inline_with_arrays():
    x, y = random(64, 64), torch.zeros(64, 64)
    prod(x, y, config=SIM)
    torch.testing.assert_close(y, (x + 1) * 2)


@pl.jit
def comp(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    ids = pl.array.create(4, pl.TASK_ID)
    with pl.manual_scope():
        for i in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="h") as tid:
                t[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
            ids[i] = tid
        with pl.spmd(4, deps=[ids[k] for k in range(4) if k != 7], name_hint="m", allow_early_resolve=True) as t2:
            b = pl.tile.get_block_idx()
            y[b * 16 : b * 16 + 16, :] = pl.mul(t[b * 16 : b * 16 + 16, :], 2.0)
    return y


def test_comprehension():
    x, y = random(64, 64), torch.zeros(64, 64)
    comp(x, y, config=SIM)
    torch.testing.assert_close(y, (x + 1) * 2)


@pl.jit
def shapes(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    R, C = x.shape
    n = x.shape[0] // 16
    for i in pl.parallel(n):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(x[i * 16 : i * 16 + 16, 0:C], pl.FP32)
            y[i * 16 : i * 16 + 16, :] = pl.cast(pl.add(t, G), x.dtype)
    return y


def test_shape_dtype():
    x = random(64, 64, dtype=torch.bfloat16)
    y = torch.zeros(64, 64, dtype=torch.bfloat16)
    shapes(x, y, config=SIM)
    torch.testing.assert_close(y.float(), (x.float() + 4).bfloat16().float())


M = pl.dynamic("M")


@pl.jit
def dyn(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    x.bind_dynamic(0, M)
    y.bind_dynamic(0, M)
    m = pl.tensor.dim(x, 0)
    for b in pl.spmd((m + 15) // 16, name_hint="dyn"):
        v = pl.min(16, m - b * 16)
        t = pl.load(x, [b * 16, 0], [16, 64], valid_shape=[v, 64])
        y = pl.store(pl.add(t, 1.0), [b * 16, 0], y)
    return y


def test_dynamic():
    for m in (16, 40, 7):
        x, y = random(m, 64), torch.zeros(m, 64)
        dyn(x, y, config=SIM)
        torch.testing.assert_close(y, x + 1)
    assert len(dyn._cache) == 1


def test_lower_then_compile():
    x, y = random(64, 64), torch.zeros(64, 64)
    p = comp.lower(x, y)
    assert pl.parse(p.as_python()) == p
    ir.compile(p, platform="a5sim")(x, y)
    torch.testing.assert_close(y, (x + 1) * 2)
    y2 = torch.zeros(64, 64)
    ir.compile(pl.parse(p.as_python()), platform="a5sim")(x, y2)
    assert torch.equal(y, y2)
    q = pl.parse(p.as_python(concise=True))
    y2 = torch.zeros(64, 64)
    ir.compile(q, platform="a5sim")(x, y2)
    assert torch.equal(y, y2)


def test_runtime_scalars():
    @pl.jit
    def sc(
        x: pl.Tensor[[16, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        a: pl.FP32,
        n: pl.INT32 = 3,
        flag: pl.Scalar[pl.BOOL] = True,
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.mul(x[:], a)
            for i in pl.range(n):
                t = pl.add(t, 1.0)
            if flag:
                t = pl.neg(t)
            y[:] = t
        return y

    x, y = random(16, 64), torch.zeros(16, 64)
    sc(x, y, 2.0, config=SIM)
    torch.testing.assert_close(y, -(2 * x + 3))
    c = sc.compile(a=pl.RUNTIME, n=pl.RUNTIME, flag=pl.RUNTIME, config=SIM)
    c(x, y, 0.5, 2, False)
    torch.testing.assert_close(y, x * 0.5 + 2)
    c(x, y, 0.5, 2, True)
    torch.testing.assert_close(y, -(x * 0.5 + 2))


def test_incore_entry():
    @pl.jit.incore
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], y)
        return y

    x, y = random(16, 64), torch.zeros(16, 64)
    k(x, y, config=SIM)
    torch.testing.assert_close(y, x + 1)

    @pl.jit.incore(level=pl.Level.AIV)
    def k2(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], y)
        return y

    k2(x, y, config=SIM)


def test_outs_inplace():
    # InOut used whole, then written
    @pl.jit
    def k(t: pl.InOut[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t[:] = pl.add(pl.mul(t, 2.0), 1.0)
        return t

    t = random(16, 64)
    w = t * 2 + 1
    k(t, config=SIM)
    torch.testing.assert_close(t, w)


def test_outputs_of_a_jit_body_without_an_arrow_may_not_be_left_out(tmp_path):
    """Only ``->`` declares results (spec language 3.7), whichever way the program was compiled."""

    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x[:], 1.0)
            z[:] = pl.mul(x[:], 2.0)
        return y, z

    x = random(17, 33)
    program = k.lower(x, torch.zeros_like(x), torch.zeros_like(x))
    compiled = k.compile(x, torch.zeros_like(x), torch.zeros_like(x), config=SIM)
    again = ir.CompiledProgram.from_dir(compiled.output_dir)
    for each in (compiled, again, ir.compile(program, output_dir=tmp_path, platform=SIM.platform)):
        assert not each.has_return
        with pytest.raises(TypeError):
            each(x)
        y, z = torch.zeros_like(x), torch.zeros_like(x)
        each(x, y, z)
        assert torch.equal(y, x + 1) and torch.equal(z, 2 * x)


def test_a_jit_body_without_return_has_no_results():
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x[:], 1.0)

    x = random(4, 8)
    assert not k.compile(x, torch.zeros_like(x), config=SIM).has_return


def test_return_style():
    @pl.jit
    def k(
        x: pl.Tensor[[16, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        z: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 64], pl.FP32], pl.Tensor[[16, 64], pl.FP32]]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x[:], 1.0)
            z[:] = pl.mul(x[:], 2.0)
        return y, z

    x = random(16, 64)
    y, z = k.compile(config=SIM)(x)
    torch.testing.assert_close(y, x + 1)
    torch.testing.assert_close(z, 2 * x)


def test_notebook():
    src = """@pl.jit
def nb(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:]=pl.add(x[:],1.0)
    return y
"""
    fn = "<ipython-input-1-abc>"
    linecache.cache[fn] = (len(src), None, src.splitlines(True), fn)
    ns = {"pl": pl, "__name__": "__main__"}
    exec(compile(src, fn, "exec"), ns)
    x, y = random(16, 64), torch.zeros(16, 64)
    ns["nb"](x, y, config=SIM)
    torch.testing.assert_close(y, x + 1)


def test_python_c():
    code = """
import torch, pypto.language as pl
from pypto.runtime import RunConfig
@pl.jit
def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:]=pl.add(x[:],1.0)
    return y
x=torch.ones(16,64); y=torch.zeros(16,64); k(x,y,config=RunConfig(platform="a2a3sim")); print(y.sum().item())
"""
    r = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "2048.0" in r.stdout, r.stderr[-800:]


def test_wrapped():
    def deco(f):
        @functools.wraps(f)
        def inner(*a, **k):
            return f(*a, **k)

        return inner

    @pl.jit
    @deco
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x[:], 1.0)
        return y

    x, y = random(16, 64), torch.zeros(16, 64)
    k(x, y, config=SIM)
    torch.testing.assert_close(y, x + 1)


GAIN = 2.0


@pl.jit
def gained(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.mul(x[:], GAIN)
    return y


def test_a_changed_module_number_is_another_program(monkeypatch):
    x, y = random(16, 64), torch.zeros(16, 64)
    first = gained.compile(x, y, config=SIM)
    assert gained.compile(x, y, config=SIM) is first
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    gained(x, y, config=SIM)
    torch.testing.assert_close(y, 3 * x)
    monkeypatch.setitem(globals(), "GAIN", 2.0)
    assert gained.compile(x, y, config=SIM) is first
