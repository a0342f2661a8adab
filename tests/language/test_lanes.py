"""``pl.split`` over both vector cores (spec language 5.2): what is halved, what stays whole, equal bits everywhere."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from round_trip import PLATFORMS, assert_round_trips, random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

UP_DOWN, LEFT_RIGHT = pl.SplitMode.UP_DOWN, pl.SplitMode.LEFT_RIGHT


def run(kernel, *arguments):
    """The arguments after runs on all platforms, and the text of the vector part."""
    kernel.cache_clear()
    results, text = [], ""
    for platform in PLATFORMS:
        own = [a.clone() for a in arguments]
        compiled = kernel.compile(*own, config=RunConfig(platform=platform))
        compiled(*own)
        results.append(own)
        text = next((compiled.output_dir / "kernels/aiv").glob("*.pto")).read_text()
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))
    assert_round_trips(kernel.lower(*arguments))
    return results[0], text


def close(got, want):
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)


def halves(seed=0):
    return random(64, 64, seed=seed, dtype=torch.float16)


@pl.jit
def row_softmax(
    q: pl.Tensor[[64, 64], pl.FP16],
    k: pl.Tensor[[64, 64], pl.FP16],
    scale: pl.Tensor[[1, 64], pl.FP32],
    o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        s = pl.col_expand_mul(pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32), scale)
        e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
        o[:] = pl.row_expand_div(e, pl.row_sum(e))
    return o


def test_rows_are_halved_and_a_row_of_scales_is_not():
    q, k, scale = halves(), halves(1), random(1, 64)
    got, text = run(row_softmax, q, k, scale, torch.zeros(64, 64))
    close(got[3], torch.softmax(q.float() @ k.float().T * scale, -1))
    assert "tile %row_sum : vec<32x1xfp32>" in text and "vec<1x64xfp32>" in text


@pl.jit
def column_maximum(
    q: pl.Tensor[[64, 64], pl.FP16],
    k: pl.Tensor[[64, 64], pl.FP16],
    bias: pl.Tensor[[64, 64], pl.FP32],
    o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)]):
        s = pl.add(pl.matmul(q, k, out_dtype=pl.FP32), bias)
        o[:] = pl.col_expand_sub(s, pl.col_max(s))
    return o


def test_columns_are_halved():
    q, k, bias = halves(), halves(1), random(64, 64)
    got, text = run(column_maximum, q, k, bias, torch.zeros(64, 64))
    s = q.float() @ k.float() + bias
    close(got[3], s - s.max(0, keepdim=True).values)
    assert "vec<64x32xfp32>" in text


@pl.jit
def row_maximum(
    q: pl.Tensor[[64, 64], pl.FP16], k: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)]):
        s = pl.matmul(q, k, out_dtype=pl.FP32)
        o[:] = pl.row_expand_sub(s, pl.row_max(s))
    return o


def test_a_reduction_along_the_split_axis_keeps_one_lane():
    q, k = halves(), halves(1)
    got, text = run(row_maximum, q, k, torch.zeros(64, 64))
    s = q.float() @ k.float()
    close(got[2], s - s.max(1, keepdim=True).values)
    assert "ssubblock" not in text and "vec<64x64xfp32>" in text


@pl.jit
def accumulated(
    q: pl.Tensor[[64, 64], pl.FP16],
    k: pl.Tensor[[64, 64], pl.FP16],
    v: pl.Tensor[[64, 64], pl.FP16],
    o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        acc = pl.full([64, 64], dtype=pl.FP32, value=0.0)
        for _ in pl.range(3):
            p = pl.cast(pl.exp(pl.mul(pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32), 0.01)), pl.FP16)
            acc = pl.add(acc, pl.matmul(p, v, out_dtype=pl.FP32))
        o[:] = acc
    return o


def test_values_go_back_to_the_cube_in_a_loop():
    q, k, v = halves(), halves(1), halves(2)
    got, text = run(accumulated, q, k, v, torch.zeros(64, 64))
    p = torch.exp(q.float() @ k.float().T * 0.01).half().float()
    close(got[3], 3 * (p @ v.float()))
    assert "tile %acc_carried : vec<32x64xfp32>" in text and "tpush_to_aic" in text


@pl.jit
def partly_whole(
    q: pl.Tensor[[64, 64], pl.FP16],
    k: pl.Tensor[[64, 64], pl.FP16],
    c: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        o[:] = pl.exp(pl.mul(pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32), 0.01))
        c[:] = pl.col_sum(pl.matmul(k, q, b_trans=True, out_dtype=pl.FP32))
    return c, o


def test_one_value_is_halved_while_another_stays_whole():
    q, k = halves(), halves(1)
    got, text = run(partly_whole, q, k, torch.zeros(1, 64), torch.zeros(64, 64))
    close(got[2], (k.float() @ q.float().T).sum(0, keepdim=True))
    close(got[3], torch.exp(q.float() @ k.float().T * 0.01))
    assert "split = 1" in text and "split = 0" in text


@pytest.mark.parametrize("rows", [30, 31])
def test_rows_that_do_not_halve_stay_whole(rows):
    @pl.jit
    def kernel(x: pl.Tensor, w: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
            o[:] = pl.exp(pl.mul(pl.matmul(x[:], w[:], out_dtype=pl.FP32), 0.01))
        return o

    x, w = random(rows, 64, dtype=torch.float16), halves(1)
    got, text = run(kernel, x, w, torch.zeros(rows, 64))
    close(got[2], torch.exp(x.float() @ w.float() * 0.01))
    assert ("ssubblock" in text) == (rows % 2 == 0)


@pl.jit
def deep(q: pl.Tensor[[64, 64], pl.FP16], k: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[pl.Tensor[[512, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.cross_core_slot(slot_num=3)]):
        for i in pl.range(8):
            o[i * 64 : i * 64 + 64, :] = pl.exp(pl.mul(pl.matmul(q, k, out_dtype=pl.FP32), 0.01))
    return o


def test_the_depth_of_the_ring_is_stated_in_the_text():
    q, k = halves(), halves(1)
    compiled = deep.compile(q, k, torch.zeros(512, 64), config=RunConfig(platform="a2a3"))
    text = (compiled.output_dir / "kernels/aic/gate_aic.pto").read_text()
    assert "slots = 3" in text
    got, _ = run(deep, q, k, torch.zeros(512, 64))
    close(got[2], torch.exp(q.float() @ k.float() * 0.01).repeat(8, 1))


@pl.jit
def with_scalars(
    q: pl.Tensor[[64, 64], pl.FP16],
    k: pl.Tensor[[64, 64], pl.FP16],
    n: pl.Tensor[[1, 8], pl.INT32],
    s: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
    o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        e = pl.exp(pl.mul(pl.matmul(q, k, out_dtype=pl.FP32), 0.01))
        o[:] = e
        total = pl.col_sum(pl.matmul(k, q, out_dtype=pl.FP32))
        for i in pl.range(pl.cast(pl.read(n, [0, 0]), pl.INDEX)):
            pl.write(s, [0, i], pl.read(total, [0, i]))
    return s, o


def test_scalars_are_written_by_one_lane():
    q, k, n = halves(), halves(1), torch.full((1, 8), 5, dtype=torch.int32)
    got, text = run(with_scalars, q, k, n, torch.zeros(1, 8), torch.zeros(64, 64))
    want = torch.zeros(1, 8)
    want[0, :5] = (k.float() @ q.float()).sum(0)[:5]
    close(got[3], want)
    close(got[4], torch.exp(q.float() @ k.float() * 0.01))
    assert "tile %exp : vec<32x64xfp32>" in text and "split = 1" in text and "split = 0" in text


@pl.jit
def read_back(
    q: pl.Tensor[[64, 64], pl.FP16], k: pl.Tensor[[64, 64], pl.FP16], s: pl.InOut[pl.Tensor[[1, 8], pl.FP32]],
    o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        pl.write(s, [0, 1], pl.read(s, [0, 0]) + 1.0)
        o[:] = pl.mul(pl.matmul(q, k, out_dtype=pl.FP32), pl.read(s, [0, 1]))
    return s, o


def test_scalars_that_are_read_back_keep_one_lane():
    q, k = halves(), halves(1)
    got, text = run(read_back, q, k, torch.ones(1, 8), torch.zeros(64, 64))
    close(got[3], 2 * (q.float() @ k.float()))
    assert "ssubblock" not in text


STEPS = (
    "pl.exp(pl.mul({0}, 0.01))",
    "pl.add({0}, {1})",
    "pl.maximum({0}, 0.5)",
    "pl.row_expand_sub({0}, pl.row_max({0}))",
    "pl.row_expand_mul({0}, pl.row_sum({1}))",
    "pl.col_expand_sub({0}, pl.col_min({0}))",
    "pl.col_expand_mul({0}, bias)",
    "pl.cast(pl.cast({0}, pl.BF16), pl.FP32)",
    "pl.matmul(pl.cast({0}, pl.FP16), w, out_dtype=pl.FP32)",
)


def mixed_program(steps, mode):
    """A product followed by ``steps``, each over the values so far."""
    lines = ["v0 = pl.matmul(x, w, out_dtype=pl.FP32)"]
    for number, (step, first, second) in enumerate(steps):
        lines.append(f"v{number + 1} = {step.format(f'v{first % (number + 1)}', f'v{second % (number + 1)}')}")
    body = "\n            ".join([*lines, f"y[:] = v{len(steps)}"])
    return pl.parse(f"""
@pl.program
class Mixed:
    @pl.function
    def main(self, x: pl.Tensor[[32, 32], pl.FP16], w: pl.Tensor[[32, 32], pl.FP16],
             bias: pl.Tensor[[1, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.{mode})]):
            {body}
        return y
""")


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_splitting_never_changes_a_value(steps):
    x, w, bias = (random(32, 32, dtype=torch.float16), random(32, 32, seed=1, dtype=torch.float16), random(1, 32))
    results = []
    for mode in ("NONE", "UP_DOWN", "LEFT_RIGHT"):
        y = torch.zeros(32, 32)
        ir.compile(mixed_program(steps, mode), platform="a2a3sim", dump_passes=False)(x, w, bias, y)
        results.append(y)
    assert all(torch.equal(results[0].view(torch.int32), other.view(torch.int32)) for other in results[1:])
