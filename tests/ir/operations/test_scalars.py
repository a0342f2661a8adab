"""Scalar operators: promotion, conversion and what they refuse (spec ops 1.14)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pypto.ir.dtype import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    TASK_ID,
    UINT8,
    UINT32,
)  # fmt: skip
from pypto.ir.nodes import Binary, Cast, Const, Unary, literal
from pypto.ir.operations import binary, scalar_cast, scalars, unary
from pypto.ir.operations.errors import OperandTypeError

from .written import call, scalar, tensor, tile

PROMOTED = [
    (INT32, INT64, INT64), (INT64, INT32, INT64), (UINT32, INT32, UINT32), (INT32, UINT32, INT32),
    (INDEX, INT32, INDEX), (INT64, INDEX, INT64), (INDEX, INT64, INDEX), (FP16, FP32, FP32), (FP16, BF16, FP16),
    (INT8, UINT8, INT8),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "result"), PROMOTED)
@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%", "min", "max"])
def test_the_wider_dtype_wins_and_a_tie_keeps_the_left(op, left, right, result):
    made = binary(op, scalar(left), scalar(right))
    assert made.type.dtype == result


@pytest.mark.parametrize(("left", "right", "result"), PROMOTED)
def test_a_comparison_is_bool_over_operands_of_one_dtype(left, right, result):
    made = binary("<", scalar(left), scalar(right))
    assert made.type.dtype == BOOL
    sides = {made.left.type.dtype, made.right.type.dtype}
    assert sides == {result} or sides == {INDEX, INT64}


def test_the_narrower_side_is_cast():
    narrow, wide = scalar(INT32), scalar(INT64, "w")
    assert binary("+", narrow, wide) == Binary("+", Cast(narrow, INT64), wide, INT64)


def test_index_and_int64_combine_without_a_cast():
    left, right = scalar(INDEX), scalar(INT64, "w")
    assert binary("+", left, right) == Binary("+", left, right, INDEX)


def test_an_integer_literal_widens_int32_to_index():
    assert binary("+", scalar(INT32), literal(1)).type.dtype == INDEX
    assert binary("max", scalar(INT32), literal(3)).type.dtype == INDEX
    assert binary("+", scalar(INT32), Const(1, INT32)).type.dtype == INT32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: binary("+", scalar(FP32), literal(1)), "mixes FP32 and INDEX.*write 1.0"),
        (lambda: binary("<", scalar(INT32), literal(1.0)), "mixes INT32 and FP32"),
        (lambda: binary("+", scalar(BOOL), literal(1)), r"\+ does not take BOOL operands"),
        (lambda: binary("==", scalar(BOOL), scalar(BOOL)), "== does not take BOOL"),
        (lambda: binary("<<", scalar(FP32), literal(1)), "<< needs integers, got FP32"),
        (lambda: binary("**", scalar(INT32), literal(2)), r"no operator \*\*"),
        (lambda: binary("+", scalar(TASK_ID), literal(1)), "TASK_ID; task ids have no arithmetic"),
        (lambda: binary("+", tensor(4, 4), literal(1.0)), r"tensor \[4, 4\] FP32; use pl.add"),
        (lambda: binary("<", tile(4, 4), tile(4, 4)), r"tile \[4, 4\] FP32; use pl.cmp"),
        (lambda: binary("+", 1, literal(1)), "needs a scalar expression, got 1"),
        (lambda: unary("~", scalar(FP32)), "~ needs an integer, got FP32"),
        (lambda: unary("-", scalar(BOOL)), "- does not take BOOL"),
        (lambda: unary("-", tile(2, 2)), "builds scalar expressions only"),
        (lambda: scalar_cast(scalar(FP32), TASK_ID), "no conversion to TASK_ID"),
        (lambda: scalar_cast(tile(2, 2), FP16), "builds scalar expressions only"),
    ],
)
def test_what_is_refused_says_why(make, message):
    with pytest.raises(OperandTypeError, match=message):
        make()


def test_logic_takes_any_scalar_and_gives_bool():
    assert binary("and", scalar(BOOL), scalar(INT32)).type.dtype == BOOL
    assert unary("not", scalar(INT32)) == Unary("not", scalar(INT32), BOOL)


def test_unary_keeps_the_dtype():
    assert unary("-", scalar(FP16)).type.dtype == FP16
    assert unary("~", scalar(INT16)).type.dtype == INT16
    assert unary("abs", scalar(INT32)).type.dtype == INT32


def test_a_cast_to_the_same_dtype_is_the_value_itself():
    value = scalar(INT32)
    assert scalar_cast(value, INT32) is value
    assert scalar_cast(value, INT64) == Cast(value, INT64)


@given(st.floats(-3e4, 3e4), st.sampled_from([INT8, UINT8, INT16, INT32]))
def test_a_float_literal_truncates_and_wraps_like_c(value, dtype):
    made = scalar_cast(literal(value), dtype)
    expected = np.int64(np.trunc(value)).astype(dtype.storage)
    assert made == Const(int(expected), dtype)


@given(st.floats(allow_nan=False, width=64))
def test_a_literal_is_rounded_to_the_float_dtype(value):
    for dtype, torch_dtype in ((FP16, torch.float16), (FP32, torch.float32)):
        assert scalars.round_literal(value, dtype) == torch.tensor(value, dtype=torch.float64).to(torch_dtype).item()
    single = torch.tensor(value, dtype=torch.float64).to(torch.float32)
    assert scalars.round_literal(value, BF16) == single.to(torch.bfloat16).item()


def test_functions_of_two_scalars_are_operators():
    a, b = scalar(INT32, "a"), scalar(INT32, "b")
    assert call("pl.add", a, b) == Binary("+", a, b, INT32)
    assert call("pl.div", a, b) == Binary("/", a, b, INT32)
    assert call("pl.max", a, b) == Binary("max", a, b, INT32)
    assert call("pl.tile.min", a, b) == Binary("min", a, b, INT32)
    assert call("pl.neg", a) == Unary("-", a, INT32)
    assert call("pl.cast", a, target_type=INT64) == Cast(a, INT64)
