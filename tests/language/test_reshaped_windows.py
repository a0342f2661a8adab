"""Reshapes of windows and of transposes in a kernel: neither has its elements adjacent (spec language 7.6, ops 13)."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from round_trip import random, run_everywhere

import pypto.language as pl
from pypto import ir

KERNEL = """
@pl.program
class Reshaped:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[{rows}, {cols}], pl.FP32], y: pl.Out[pl.Tensor[{shape}, pl.FP32]]):
        part = {part}
        y[:] = pl.{view}
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{rows}, {cols}], pl.FP32], y: pl.Out[pl.Tensor[{shape}, pl.FP32]]):
        y = self.kernel(x, y)
        return y
"""


@st.composite
def windows(draw):
    rows, cols = draw(st.integers(1, 20)), draw(st.integers(1, 40))
    height, width = draw(st.integers(1, rows)), draw(st.integers(1, cols))
    top, left = draw(st.integers(0, rows - height)), draw(st.integers(0, cols - width))
    count = height * width
    first = draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0]))
    return rows, cols, top, left, height, width, (first, count // first), draw(st.booleans())


@settings(max_examples=12, deadline=None)
@given(windows())
def test_any_window_takes_any_shape(case):
    rows, cols, top, left, height, width, shape, turned = case
    part = f"x[{top}:{top + height}, {left}:{left + width}]"
    part = f"pl.transpose({part}, 0, 1)" if turned else part
    text = KERNEL.format(rows=rows, cols=cols, shape=list(shape), part=part, view=f"reshape(part, {list(shape)})")
    x = random(rows, cols)
    want = x[top : top + height, left : left + width]
    want = want.T if turned else want
    _, got = run_everywhere(pl.parse(text), x, torch.zeros(shape))
    assert torch.equal(got, want.reshape(shape))


def test_a_reshape_of_a_reshaped_window():
    part = "pl.reshape(x[2:6, 8:24], [8, 8])"
    text = KERNEL.format(rows=8, cols=32, shape=[2, 32], part=part, view="reshape(part, [2, 32])")
    x = random(8, 32)
    _, got = run_everywhere(pl.parse(text), x, torch.zeros(2, 32))
    assert torch.equal(got, x[2:6, 8:24].reshape(2, 32))


def test_the_bits_of_a_window():
    text = KERNEL.format(rows=8, cols=32, shape=[4, 32], part="x[2:6, 8:24]", view="reinterpret_view(part, pl.INT16)")
    text = text.replace("[4, 32], pl.FP32", "[4, 32], pl.INT16")
    x = random(8, 32)
    _, got = run_everywhere(pl.parse(text), x, torch.zeros(4, 32, dtype=torch.int16))
    assert torch.equal(got, x[2:6, 8:24].contiguous().view(torch.int16))


def test_a_view_of_an_output_is_not_copied():
    """A copy would lose what is written through the view."""
    text = KERNEL.format(rows=4, cols=4, shape=[4, 8], part="pl.reshape(y[:, 0:4], [2, 8])", view="neg(x)")
    text = text.replace("y[:] = pl.neg(x)", "part[:] = pl.reshape(x, [2, 8])")
    with pytest.raises(RuntimeError, match=re.escape("'y' of shape [4, 4] cannot be viewed as [2, 8]")):
        ir.compile(pl.parse(text), platform="a2a3sim")(random(4, 4), torch.zeros(4, 8))


def test_a_view_that_orchestration_code_cannot_have_is_named_as_its_author_calls_it():
    @pl.jit
    def reshaped(x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 4], pl.FP32]]):
        part = pl.reshape(x[0:4, 8:16], [8, 4])
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = part
        return y

    with pytest.raises(RuntimeError, match=re.escape("'x' of shape [4, 8] cannot be viewed as [8, 4]")):
        reshaped(random(8, 32), torch.zeros(8, 4))
