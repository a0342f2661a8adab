"""Result types of element-wise operations, broadcasts, reductions and casts (spec ops 4-11)."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import (
    BF16,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
)  # fmt: skip
from pypto.ir.operations.errors import OperandTypeError, OperandValueError

from .written import N, call, scalar, tensor, tile, typed

T, X = tile(32, 64), tensor(32, 64)
PART, PART_X = tile(32, 64, valid=(16, N)), tensor(32, 64, valid=(16, 64))
COLUMN, ROW = tile(32, 1), tile(1, 64)
MASK, LINE = tile(32, 32, dtype=UINT8), tile(1, 32, dtype=UINT8)


def of(dtype, *shape):
    return tile(*(shape or (32, 64)), dtype=dtype)


def on(dtype, *shape):
    return tensor(*(shape or (32, 64)), dtype=dtype)


LEGAL = [
    # promotion and broadcast of tensors
    ("pl.add", (X, X), "tensor [32, 64] FP32"),
    ("pl.add", (on(FP16), on(BF16)), "tensor [32, 64] FP16"),
    ("pl.add", (on(INT32), on(FP16)), "tensor [32, 64] FP16"),
    ("pl.mul", (on(INT16), on(UINT16)), "tensor [32, 64] INT16"),
    ("pl.mul", (on(INT16), on(INT64)), "tensor [32, 64] INT64"),
    ("pl.sub", (X, tensor(32, 1)), "tensor [32, 64] FP32"),
    ("pl.sub", (tensor(32, 1), X), "tensor [32, 64] FP32"),
    ("pl.add", (tensor(4, 1, 64), tensor(32, 1)), "tensor [4, 32, 64] FP32"),
    ("pl.maximum", (X, tensor(64)), "tensor [32, 64] FP32"),
    ("pl.add", (tensor(N, 64), tensor(N, 64)), "tensor [n, 64] FP32"),
    # valid shapes: kept between equals, else full; tiles take the left operand's
    ("pl.add", (PART_X, PART_X), "tensor [32, 64] FP32 valid [16, 64]"),
    ("pl.add", (PART_X, X), "tensor [32, 64] FP32"),
    ("pl.cmp", (PART_X, PART_X), "tensor [32, 64] FP32"),
    ("pl.part_add", (PART_X, PART_X), "tensor [32, 64] FP32"),
    ("pl.add", (PART, T), "tile [32, 64] FP32 valid [16, n]"),
    ("pl.add", (T, PART), "tile [32, 64] FP32"),
    ("pl.part_max", (PART, T), "tile [32, 64] FP32 valid [16, n]"),
    ("pl.exp", (PART,), "tile [32, 64] FP32 valid [16, n]"),
    # scalars
    ("pl.add", (on(FP16), 2), "tensor [32, 64] FP16"),
    ("pl.add", (on(FP16), 0.5), "tensor [32, 64] FP32"),
    ("pl.sub", (on(FP16), 0.5), "tensor [32, 64] FP16"),
    ("pl.sub", (on(INT16), 2.0), "tensor [32, 64] INT16"),
    ("pl.tensor.fmods", (on(INT32), 2.0), "tensor [32, 64] FP32"),
    ("pl.minimum", (on(BF16), scalar(FP32)), "tensor [32, 64] FP32"),
    ("pl.add", (of(FP16), 0.5), "tile [32, 64] FP16"),
    ("pl.div", (of(UINT32), 3), "tile [32, 64] UINT32"),
    ("pl.minimums", (of(INT32), 2.5), "tile [32, 64] INT32"),
    ("pl.rems", (of(INT32), 2.5, of(INT32)), "tile [32, 64] FP32"),
    ("pl.addsc", (T, 2.0, T), "tile [32, 64] FP32"),
    ("pl.subc", (T, T, T), "tile [32, 64] FP32"),
    ("pl.div", (on(FP16), on(FP32, 32, 1)), "tensor [32, 64] FP32"),
    # unary
    ("pl.exp", (on(INT32),), "tensor [32, 64] FP32"),
    ("pl.exp", (of(INT32),), "tile [32, 64] INT32"),
    ("pl.neg", (on(INT8),), "tensor [32, 64] INT8"),
    ("pl.recip", (on(BF16),), "tensor [32, 64] BF16"),
    ("pl.sin", (X,), "tensor [32, 64] FP32"),
    ("pl.not_", (of(UINT16),), "tile [32, 64] UINT16"),
    ("pl.lrelu", (of(FP16), 0.1), "tile [32, 64] FP16"),
    ("pl.prelu", (T, T, of(UINT8)), "tile [32, 64] FP32"),
    ("pl.tile.rsqrt", (T, T), "tile [32, 64] FP32"),
    # comparison: packed predicates on tiles, 0 and 1 on tensors
    ("pl.cmp", (T, T), "tile [32, 32] UINT8 valid [32, 8]"),
    ("pl.cmps", (tile(4, 300), 0.0), "tile [4, 64] UINT8 valid [4, 38]"),
    ("pl.cmps", (tile(2, 4, 512), 0.0), "tile [2, 4, 64] UINT8"),
    ("pl.cmp", (PART, 1.0), "tile [32, 32] UINT8 valid [16, ((n + 7) // 8)]"),
    ("pl.cmp", (on(INT32), 1.5), "tensor [32, 64] FP32"),
    ("pl.sel", (MASK, T, T, LINE), "tile [32, 64] FP32"),
    ("pl.sels", (MASK, of(INT8), LINE, 3), "tile [32, 64] INT8"),
    # bitwise
    ("pl.and_", (of(INT16), of(INT32)), "tile [32, 64] INT32"),
    ("pl.shl", (of(INT16), of(INT32)), "tile [32, 64] INT16"),
    ("pl.shr", (on(UINT8), 3), "tensor [32, 64] UINT8"),
    ("pl.xor", (of(INT32), of(INT32), of(INT32)), "tile [32, 64] INT32"),
    ("pl.xors", (tensor(32, 64, dtype=INT32, valid=(16, 64)), 3), "tensor [32, 64] INT32"),
    # broadcast
    ("pl.row_expand_mul", (PART, COLUMN), "tile [32, 64] FP32 valid [16, n]"),
    ("pl.row_expand_mul", (PART_X, tensor(32, 1)), "tensor [32, 64] FP32"),
    ("pl.col_expand_add", (of(BF16), ROW), "tile [32, 64] FP32"),
    ("pl.row_expand", (T, COLUMN), "tile [32, 64] FP32"),
    ("pl.row_expand_add", (T, tile(32, 8)), "tile [32, 64] FP32"),
    ("pl.expands", (on(BF16), 2.0), "tensor [32, 64] BF16"),
    ("pl.expands", (of(BF16), 2.0), "tile [32, 64] FP32"),
    ("pl.expand_clone", (tensor(1, 8, 16), tensor(4, 8, 16)), "tensor [4, 8, 16] FP32"),
    # reductions
    ("pl.row_sum", (PART, T), "tile [32, 1] FP32 valid [16, 1]"),
    ("pl.row_sum", (tensor(2, 3, 64),), "tensor [2, 3, 1] FP32"),
    ("pl.col_max", (PART,), "tile [1, 64] FP32 valid [1, n]"),
    ("pl.col_max", (tensor(2, 3, 64),), "tensor [2, 1, 64] FP32"),
    ("pl.col_max", (tile(4, 3, 64),), "tile [1, 3, 64] FP32"),
    ("pl.row_argmax", (of(FP16), of(FP16)), "tile [32, 1] INT32"),
    ("pl.col_argmin", (X,), "tensor [1, 64] INT32"),
    ("pl.col_sum", (T, tile(1, 1)), "tile [1, 64] FP32"),
    ("pl.row_max", (tensor(64),), "tensor [1] FP32"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "result"), LEGAL)
def test_result_type(spelling, args, result):
    assert typed(spelling, *args) == result


ILLEGAL = [
    ("pl.mul", (T, tile(16, 32)), r"shapes \[32, 64\] and \[16, 32\] do not broadcast"),
    ("pl.and_", (on(INT32), on(INT32, 32, 1)), r"lhs has shape \[32, 64\] and rhs \[32, 1\]; the shapes must be equal"),
    ("pl.and_", (T, T), "needs integers, got FP32"),
    ("pl.and_", (of(INT32), 1.5), "needs an integer scalar, got FP32"),
    ("pl.shl", (on(INT32), -1), "the shift count is -1; it must not be negative"),
    ("pl.not_", (of(INT32),), "the operand is INT32; legal: INT16, UINT16"),
    ("pl.div", (on(BF16), on(BF16)), "lhs is BF16; legal: INT16, INT32, FP16, FP32"),
    ("pl.div", (T, of(FP16)), "lhs is FP32 and rhs is FP16; both must have one dtype"),
    ("pl.div", (T, COLUMN), "the shapes must be equal"),
    ("pl.div", (T, PART), r"valid in \[32, 64\] and rhs in \[16, n\]; the valid shapes must be provably equal"),
    ("pl.tile.subs", (of(UINT32), 1), "lhs is UINT32; legal: INT8"),
    ("pl.tile.subs", (T, scalar(INT64)), "rhs is INT64; legal: INT8"),
    ("pl.log", (of(INT32),), "the operand is INT32; legal: FP16, FP32"),
    ("pl.sin", (of(FP16),), "the operand is FP16; legal: FP32"),
    ("pl.prelu", (T, of(FP16), of(UINT8)), "tile is FP32 and slope is FP16"),
    ("pl.part_add", (T, of(FP16)), "both must have one dtype"),
    ("pl.part_add", (T, 1.0), "src1 needs a tile, got an FP32 scalar"),
    ("pl.sel", (MASK, T, tile(32, 32), LINE), "the shapes must be equal"),
    ("pl.sel", (tile(16, 32, dtype=UINT8), T, T, LINE), r"mask must have the rows of the tile \[32, 64\] FP32"),
    ("pl.sels", (MASK, of(BF16), LINE, 1), "src is BF16; legal: FP16"),
    ("pl.sels", (MASK, tile(32, 512), LINE, 1.0), "mask must hold 64 bytes per row"),
    ("pl.row_expand", (T, ROW), "row_vec must have one column, got a tile"),
    ("pl.row_expand", (T, tile(16, 1)), "row_vec has 16 rows and target 32; they must agree"),
    ("pl.col_expand", (T, COLUMN), "col_vec must have one row"),
    ("pl.col_expand_mul", (X, tensor(1, 32)), "col_vec has 32 columns and tensor 64"),
    ("pl.row_expand_add", (of(BF16), of(BF16, 32, 1)), "tile is BF16; legal: INT8"),
    ("pl.row_expand_add", (T, tile(32, 4)), "row_vec must have 1 column or 8"),
    ("pl.row_expand_add", (PART, COLUMN), "row_vec is valid in 32 rows and tile in 16"),
    ("pl.expand_clone", (tensor(1, 1, 16), tensor(4, 8, 16)), "except for one axis of 1"),
    ("pl.row_sum", (T, tile(32, 32)), r"tmp_tile \[32, 32\] must be at least \[32, 64\]"),
    ("pl.row_argmax", (T, tile(64, 64)), r"tmp_tile \[64, 64\] must be exactly \[32, 64\]"),
    ("pl.row_sum", (T, of(FP16)), "tmp_tile must have the dtype and rank"),
    ("pl.row_min", (of(INT8), of(INT8)), "tile is INT8; legal: FP16, FP32, INT16, INT32"),
    ("pl.col_sum", (tensor(64),), "needs at least 2 axes"),
    ("pl.row_max", (tile(32, 64, valid=(0, 64)), T), "axis 0 of the tile .* has no valid element"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "message"), ILLEGAL)
def test_a_broken_contract_is_named(spelling, args, message):
    with pytest.raises(OperandValueError, match=message) as caught:
        call(spelling, *args)
    assert str(caught.value).startswith(f"{spelling}: ")


def test_precise_division_needs_equal_shapes_and_floats():
    with pytest.raises(OperandValueError, match="needs equal shapes"):
        call("pl.div", X, tensor(32, 1), high_precision=True)
    with pytest.raises(OperandValueError, match="is for floats, lhs is INT32"):
        call("pl.div", of(INT32), of(INT32), high_precision=True)
    with pytest.raises(OperandValueError, match="with high_precision=True the operand is BF16"):
        call("pl.recip", on(BF16), high_precision=True)


def test_casts_keep_the_shape_and_refuse_their_own_dtype():
    assert typed("pl.cast", PART, target_type=BF16) == "tile [32, 64] BF16 valid [16, n]"
    assert call("pl.cast", X, FP16, mode=3).arguments["mode"] == "floor"
    with pytest.raises(OperandValueError, match="the operand is FP32 already"):
        call("pl.cast", X, FP32)
    with pytest.raises(OperandTypeError, match="target_type needs a dtype such as pl.FP32, got 'fp32'"):
        call("pl.cast", X, target_type="fp32")
