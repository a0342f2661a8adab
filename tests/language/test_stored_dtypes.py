"""Tiles stored in tensors of another dtype: the declared types are followed, and the author is told where."""

from __future__ import annotations

import inspect
import warnings

import pytest
import torch

import pypto.language as pl


@pl.jit
def stored(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.exp(pl.load(a, [0, 0], [16, 64])), [0, 0], out)


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b)


@pytest.mark.parametrize("wanted", [torch.bfloat16, torch.float16])
def test_a_vector_store_that_converts_names_the_line_and_the_cast(wanted):
    a, out = torch.randn(16, 64), torch.zeros(16, 64, dtype=wanted)
    with pytest.warns(UserWarning, match=r"a value of FP32 is converted for 'out', .*pl\.cast\(value, pl\.") as caught:
        stored(a, out)
    lines, first = inspect.getsourcelines(stored.__wrapped__)
    (line,) = {w.lineno for w in caught if "is converted for" in str(w.message)}
    assert "pl.store" in lines[line - first]
    torch.testing.assert_close(out, a.exp().to(wanted))


def test_what_the_accumulator_narrows_and_equal_dtypes_are_not_remarked_on():
    a, b = torch.randn(32, 32).bfloat16(), torch.randn(32, 32).bfloat16()
    out, same = torch.zeros(32, 32, dtype=torch.bfloat16), torch.zeros(16, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        product(a, b, out)
        stored(a[:16].float().repeat(1, 2), same)
    torch.testing.assert_close(out, (a.float() @ b.float()).bfloat16(), rtol=2e-2, atol=2e-2)
