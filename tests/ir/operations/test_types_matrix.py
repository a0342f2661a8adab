"""Result types of matrix products (spec ops 12)."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import BF16, BOOL, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT32
from pypto.ir.enums import Mem
from pypto.ir.nodes import Const
from pypto.ir.operations.errors import OperandTypeError, OperandValueError

from .written import N, call, scalar, tensor, tile, typed

A, B = tile(32, 64, dtype=BF16), tile(64, 16, dtype=BF16)
ACC = tile(32, 16, space=Mem.Acc)
XA, XB = tensor(32, 64, dtype=BF16), tensor(64, 16, dtype=BF16)
MX = (
    tile(32, 64, dtype=FP8E4M3FN), tile(32, 2, dtype=FP8E8M0),
    tile(64, 32, dtype=FP8E4M3FN), tile(2, 32, dtype=FP8E8M0),
)  # fmt: skip

LEGAL = [
    ("pl.matmul", (A, B), {}, "tile [32, 16] FP32 in Acc"),
    ("pl.matmul", (tile(32, 64, dtype=INT8), tile(64, 16, dtype=INT8)), {}, "tile [32, 16] INT32 in Acc"),
    ("pl.matmul", (tile(32, 64, valid=(8, N)), tile(64, 16, valid=(64, 4))), {},
     "tile [32, 16] FP32 valid [8, 4] in Acc"),
    ("pl.matmul", (XA, XB), {}, "tensor [32, 16] BF16"),
    ("pl.matmul", (XA, XB), {"out_dtype": FP32}, "tensor [32, 16] FP32"),
    ("pl.matmul", (tensor(64, 32), tensor(16, 64)), {"a_trans": True, "b_trans": True}, "tensor [32, 16] FP32"),
    ("pl.matmul", (tensor(32, 64, valid=(8, 64)), tensor(64, 16)), {}, "tensor [32, 16] FP32 valid [8, 16]"),
    ("pl.matmul", (tensor(64), tensor(64)), {}, "tensor [] FP32"),
    ("pl.matmul", (tensor(32, 64), tensor(64)), {}, "tensor [32] FP32"),
    ("pl.matmul", (tensor(64), tensor(64, 16)), {}, "tensor [16] FP32"),
    ("pl.matmul", (tensor(4, 1, 32, 64), tensor(3, 64, 16)), {}, "tensor [4, 3, 32, 16] FP32"),
    ("pl.matmul_acc", (ACC, A, B), {}, "tile [32, 16] FP32 in Acc"),
    ("pl.matmul_acc", (ACC, A, B), {"init_cond": True}, "tile [32, 16] FP32 in Acc"),
    ("pl.matmul_acc", (tensor(32, 16), XA, XB), {}, "tensor [32, 16] FP32"),
    ("pl.matmul_bias", (A, B, tile(1, 16)), {}, "tile [32, 16] FP32 in Acc"),
    ("pl.batch_matmul", (tile(4, 1, 32, 64), tile(3, 64, 16)), {}, "tile [4, 3, 32, 16] FP32 in Acc"),
    ("pl.gemv", (tile(1, 64), tile(64, 16)), {}, "tile [16, 16] FP32 valid [1, 16] in Acc"),
    ("pl.gemv_bias", (tile(1, 64), tile(64, 16), tile(1, 16)), {"acc_phase": "final"},
     "tile [16, 16] FP32 valid [1, 16] in Acc"),
    ("pl.matmul_mx", MX, {}, "tile [32, 32] FP32 in Acc"),
    ("pl.matmul_mx_bias", (*MX, tile(1, 32)), {}, "tile [32, 32] FP32 in Acc"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "result"), LEGAL)
def test_result_type(spelling, args, kwargs, result):
    assert typed(spelling, *args, **kwargs) == result


ILLEGAL = [
    ("pl.matmul", (A, tile(32, 16, dtype=BF16)), {}, r"lhs \[32, 64\] has K = 64 and rhs \[32, 16\] K = 32"),
    ("pl.matmul", (A, tile(64, 16)), {}, "lhs is BF16 and rhs is FP32; both must have one dtype"),
    ("pl.matmul", (XA, tensor(64, 16)), {}, "lhs is BF16 and rhs is FP32; the cube takes equal dtypes"),
    ("pl.matmul", (tile(4, 32, 64), tile(4, 64, 16)), {}, "lhs needs 2 axes"),
    ("pl.matmul", (tile(32, 64), tile(64, 16, valid=(32, 16))), {}, "rhs is valid in 32 rows, lhs in 64 columns"),
    ("pl.matmul", (tensor(64), tensor(64, 16)), {"a_trans": True}, "with a_trans=True needs at least 2 axes"),
    ("pl.matmul_acc", (tile(32, 16, dtype=BF16), A, B), {}, "acc is BF16, the accumulator is FP32"),
    ("pl.matmul_acc", (tensor(32, 16, dtype=BF16), XA, XB), {}, "give the first matmul out_dtype=pl.FP32"),
    ("pl.matmul_acc", (tile(32, 32), A, B), {}, r"acc has shape \[32, 32\], the product \[32, 16\]"),
    ("pl.matmul_acc", (tile(32, 16, valid=(8, 16)), A, B), {}, "which does not cover the product's"),
    ("pl.matmul_acc", (ACC, A, B), {"init_cond": scalar(INT32)}, "init_cond needs a scalar of BOOL, got INT32"),
    ("pl.matmul_acc", (tensor(2, 32, 16), tensor(2, 32, 64), tensor(2, 64, 16)), {"init_cond": True},
     "init_cond is for two"),
    ("pl.matmul_bias", (A, B, tile(1, 32)), {}, r"bias must be \[1, 16\], got \[1, 32\]"),
    ("pl.matmul_bias", (A, B, tile(1, 16, dtype=BF16)), {}, "bias is BF16, the accumulator is FP32"),
    ("pl.batch_matmul", (tile(4, 32, 64), tile(3, 64, 16)), {}, r"shapes \[4\] and \[3\] do not broadcast"),
    ("pl.gemv", (tile(2, 64), tile(64, 16)), {}, "lhs must have one row"),
    ("pl.gemv", (tile(1, 64, dtype=INT32), tile(64, 16, dtype=INT32)), {},
     "lhs is INT32; legal: INT8, FP16, BF16, FP32"),
    ("pl.gemv", (tile(1, 64), tile(64, 16)), {"acc_phase": "middle"}, "acc_phase is 'middle'; legal: 'unspecified'"),
    ("pl.gemv_acc", (tile(16, 16), tile(1, 64), tile(64, 16)), {}, "the valid shapes must be provably equal"),
    ("pl.matmul_mx", (tile(32, 64, dtype=FP16), *MX[1:]), {}, "lhs is FP16; legal: FP8E4M3FN"),
    ("pl.matmul_mx", (tile(24, 64, dtype=FP8E4M3FN), *MX[1:]), {}, "M is 24; it must be a multiple of 16"),
    ("pl.matmul_mx", (MX[0], tile(32, 4, dtype=FP8E8M0), *MX[2:]), {}, r"lhs_scale must be \[32, 2\]"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "message"), ILLEGAL)
def test_a_broken_contract_is_named(spelling, args, kwargs, message):
    with pytest.raises(OperandValueError, match=message):
        call(spelling, *args, **kwargs)


def test_a_condition_may_be_a_python_bool_or_a_bool_scalar():
    by_keyword = call("pl.matmul_acc", ACC, A, B, init_cond=True)
    assert by_keyword.arguments["init_cond"] == Const(True, BOOL)
    assert call("pl.tile.matmul_acc", ACC, A, B, True) == by_keyword
    at_run_time = scalar(BOOL)
    assert call("pl.matmul_acc", ACC, A, B, init_cond=at_run_time).arguments["init_cond"] is at_run_time


def test_options_of_the_tensor_form_are_refused_on_tiles():
    with pytest.raises(OperandTypeError, match="a_trans= is for tensors"):
        call("pl.matmul_acc", ACC, A, B, a_trans=True)
