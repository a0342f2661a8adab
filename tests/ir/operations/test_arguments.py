"""How names resolve and how arguments are bound: the rules of spec ops 1.2 to 1.4 and 1.6."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import BF16, BOOL, FP16, FP32, INDEX, INT16, INT32, INT64, TASK_ID, UINT8
from pypto.ir.enums import Mem, PadValue
from pypto.ir.nodes import Call, Const
from pypto.ir.operations import UnknownOperationError, build, exists
from pypto.ir.operations.errors import OperandTypeError, OperandValueError

from .written import N, call, scalar, tensor, tile

T, X, HALF = tile(32, 64), tensor(32, 64), tile(32, 64, dtype=BF16)
TMP, INTS = tile(32, 64, name="tmp"), tile(32, 64, dtype=INT32)

RESOLVED = [
    ("pl.add", (T, T), "tile.add"), ("pl.add", (X, X), "tensor.add"), ("pl.add", (T, 2), "tile.adds"),
    ("pl.add", (X, 2.0), "tensor.adds"), ("pl.tile.mul", (T, 2.0), "tile.muls"),
    ("pl.maximum", (T, 0.0), "tile.maximums"),
    ("pl.maximum", (X, 0.0), "tensor.maximum"), ("pl.cmp", (T, 0.0), "tile.cmps"), ("pl.cmp", (X, 0.0), "tensor.cmp"),
    ("pl.fmod", (T, 2.0), "tile.fmods"), ("pl.and_", (INTS, 3), "tile.ands"), ("pl.shl", (INTS, 3), "tile.shls"),
    ("pl.row_sum", (T, TMP), "tile.row_sum"), ("pl.row_sum", (X,), "tensor.row_sum"),
    ("pl.arange", (0, (1, 64)), "tensor.ci"),
    ("pl.tile.arange", (0, (1, 64)), "tile.ci"), ("pl.create_tile", ((8, 8), FP32), "tile.create"),
    ("pl.tensor.create_tensor", ((8, 8), FP32), "tensor.create"), ("pl.get_block_idx", (), "tensor.get_block_idx"),
    ("pl.tpush_to_aiv", (T,), "system.tpush_to_aiv"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "op"), RESOLVED)
def test_a_name_resolves_by_the_class_of_its_operands(spelling, args, op):
    kwargs = {"split": 0} if "tpush" in spelling else {}
    assert call(spelling, *args, **kwargs).op == op


def test_arguments_are_stored_in_signature_order_with_every_default():
    made = call("pl.load", X, offsets=(N, 0), shapes=(8, 64))
    assert isinstance(made, Call)
    assert list(made.arguments) == ["tensor", "offsets", "shapes", "valid_shape", "target_memory", "clamp"]
    assert made.arguments["offsets"] == (N, Const(0, INDEX))
    assert made.arguments["target_memory"] is Mem.Vec and made.arguments["clamp"] is False


def test_unified_keywords_differ_from_the_level_specific_ones():
    assert call("pl.read", src=X, offset=(0, 1)).arguments["indices"] == (Const(0, INDEX), Const(1, INDEX))
    with pytest.raises(OperandTypeError, match="no parameter src; it takes tensor, indices"):
        call("pl.tensor.read", src=X, offset=(0, 1))


@pytest.mark.parametrize(
    ("spelling", "args", "kwargs", "error", "message"),
    [
        ("pl.add", (2.0, T), {}, OperandTypeError, "scalar on the left of a tile.*swap the operands"),
        ("pl.sub", (2.0, X), {}, OperandTypeError, "scalar on the left of a tensor.*pl.neg and pl.add"),
        ("pl.div", (2.0, T), {}, OperandTypeError, "pl.recip and pl.mul"),
        (
            "pl.div",
            (T, 2.0),
            {"high_precision": True},
            OperandTypeError,
            "no parameter high_precision|high_precision= is",
        ),
        (
            "pl.add",
            (T, X),
            {},
            OperandTypeError,
            r"tile \[32, 64\] FP32 and a tensor \[32, 64\] FP32 in one call.*pl.load",
        ),
        ("pl.row_sum", (T,), {}, OperandTypeError, "needs tmp_tile"),
        ("pl.row_sum", (X, TMP), {}, OperandTypeError, "tmp_tile= is for tiles"),
        ("pl.col_sum", (X, TMP), {}, OperandTypeError, "tmp_tile= is for tiles"),
        ("pl.xor", (INTS, INTS), {}, OperandTypeError, "needs tmp"),
        ("pl.rsqrt", (T,), {"high_precision": True}, OperandTypeError, "high_precision= is for tensors"),
        ("pl.matmul", (T, tile(64, 32)), {"b_trans": True}, OperandTypeError, "b_trans= is for tensors"),
        (
            "pl.matmul",
            (T, tile(64, 32)),
            {"out_dtype": BF16},
            OperandTypeError,
            "out_dtype=bfloat16 is for tensors.*FP32",
        ),
        ("pl.slice", (T, (8, 8), (0, 0)), {"clamp": True}, OperandTypeError, "clamp= is for tensors"),
        (
            "pl.batch_matmul",
            (X, tensor(64, 32)),
            {},
            OperandTypeError,
            "does not take tensors; for tensors use pl.matmul",
        ),
        (
            "pl.cast",
            (scalar(FP32),),
            {"target_type": INT32, "mode": "floor"},
            OperandTypeError,
            "mode='floor' is for tensors",
        ),
        ("pl.tile.adds", (X, 1.0), {}, OperandValueError, r"lhs needs a tile, got a tensor \[32, 64\] FP32"),
        ("pl.relu", (X,), {}, OperandValueError, "tile needs a tile, got a tensor"),
        ("pl.cmp", (T, T, 2), {}, OperandTypeError, "cmp_type is a compile-time option: write it as a keyword"),
        ("pl.cmp", (T, T), {"cmp_type": 6}, OperandValueError, r"cmp_type is 6; legal: 'eq' \(0\)"),
        ("pl.full", ((4, 4), FP32, 1.0), {}, OperandTypeError, "value is a compile-time option"),
        (
            "pl.full",
            ((4, 4), FP32),
            {"value": scalar(FP32)},
            OperandTypeError,
            "compile-time option, got an FP32 scalar",
        ),
        ("pl.write", (X, (0, 0)), {"value": 2}, OperandTypeError, "value needs a scalar expression, got 2"),
        ("pl.write", (tensor(4, 4, dtype=INT32), (0, 0), 2), {}, OperandValueError, r"write pl.const\(2, pl.INT32\)"),
        (
            "pl.write",
            (tensor(4, 4, dtype=FP16), (0, 0), scalar(FP32)),
            {},
            OperandValueError,
            r"pl.cast\(..., pl.FP16\)",
        ),
        ("pl.add", (T, N), {}, OperandValueError, "run-time INDEX scalar; convert it with pl.cast"),
        ("pl.cast", (T,), {"target_type": FP16, "mode": "ROUND"}, OperandValueError, "mode is 'ROUND'; legal: 'none'"),
        ("pl.cast", (T,), {"target_type": FP16, "mode": True}, OperandValueError, "mode is True"),
        ("pl.add", (T,), {}, OperandTypeError, "needs rhs"),
        ("pl.add", (T, T, T), {}, OperandTypeError, "takes 2 positional arguments"),
        ("pl.add", (T,), {"lhs": T}, OperandTypeError, "got lhs twice"),
        ("pl.exp", (scalar(FP32),), {}, OperandTypeError, "needs a tensor or tile, got an FP32 scalar"),
        ("pl.fillpad", (T,), {"pad_value": 3}, OperandValueError, "pad_value is 3; legal: pl.PadValue"),
        ("pl.fillpad", (T,), {"pad_value": True}, OperandTypeError, "needs a pl.PadValue"),
        ("pl.fillpad", (T,), {"pad_value": PadValue.null}, OperandValueError, "legal: zero, max, min"),
        ("pl.no_dep", (X,), {}, OperandTypeError, "marks an argument of a kernel call"),
        ("pl.load", (X, (0, 0), (N, 64)), {}, OperandValueError, "shapes axis 0 must be a compile-time integer"),
        ("pl.transpose", (T, N, 1), {}, OperandTypeError, "axis1 needs a compile-time integer"),
    ],
)
def test_a_wrong_call_names_the_operation_and_what_is_legal(spelling, args, kwargs, error, message):
    with pytest.raises(error, match=message) as caught:
        call(spelling, *args, **kwargs)
    assert str(caught.value).startswith(f"{spelling}: ")


def test_unknown_names_come_with_the_nearest_ones():
    with pytest.raises(UnknownOperationError, match="unknown operation pl.row_sun; did you mean pl.row_sum") as caught:
        build("pl", "row_sun", [X], {})
    assert caught.value.name == "pl.row_sun" and "pl.row_sum" in caught.value.nearest
    with pytest.raises(UnknownOperationError, match=r"pl.tile.lod; did you mean pl.tile.load"):
        build("tile", "lod", [X], {})
    assert not exists("tile", "lod") and exists("tile", "load") and exists("pl", "max")


LITERALS = [
    (2, FP32, Const(2.0, FP32)), (2, BF16, Const(2.0, BF16)), (2, INT16, Const(2, INT16)),
    (0.5, FP32, Const(0.5, FP32)),
    (0.5, BF16, Const(0.5, FP32)), (True, INT32, Const(1, INT32)), (Const(0.5, BF16), BF16, Const(0.5, BF16)),
    (Const(3, INT64), INT32, Const(3, INT64)),
]  # fmt: skip


@pytest.mark.parametrize(("given", "dtype", "stored"), LITERALS)
def test_a_literal_takes_the_dtype_of_its_tile(given, dtype, stored):
    assert call("pl.tile.adds", tile(8, 8, dtype=dtype), given).arguments["rhs"] == stored


def test_lrelu_slopes_are_fp32_and_sels_literals_exact():
    assert call("pl.lrelu", tile(8, 64, dtype=FP16), 2).arguments["slope"] == Const(2.0, FP32)
    mask, line = tile(32, 32, dtype=UINT8), tile(1, 32, dtype=UINT8)
    assert call("pl.sels", mask, INTS, line, 3.0).arguments["scalar"] == Const(3, INT32)
    assert call("pl.sels", mask, tile(32, 64, dtype=UINT8), line, -1).arguments["scalar"] == Const(255, UINT8)
    with pytest.raises(OperandValueError, match="scalar is 2.5, which INT32 cannot hold"):
        call("pl.sels", mask, INTS, line, 2.5)


def test_the_pad_sugar_is_a_pad_value():
    infinity = float("inf")
    for number, pad in ((0, PadValue.zero), (0.0, PadValue.zero), (infinity, PadValue.max), (-infinity, PadValue.min)):
        assert call("pl.fillpad", T, pad_value=number).arguments["pad_value"] is pad


def test_none_leaves_an_optional_argument_out():
    given = call("pl.load", X, (0, 0), (8, 8), None, Mem.Mat)
    assert given == call("pl.load", X, (0, 0), (8, 8), target_memory=Mem.Mat)


def test_a_tile_product_may_repeat_its_own_dtype():
    assert call("pl.matmul", HALF, tile(64, 32, dtype=BF16), out_dtype=FP32).op == "tile.matmul"


def test_scatter_update_has_three_call_shapes():
    index, rows = tile(1, 8, dtype=INT32), tile(8, 64)
    expected = call("pl.scatter_update", T, -2, index, rows)
    assert expected.arguments["dim"] == -2
    assert call("pl.scatter_update", T, index, rows, dim=-2) == expected
    assert call("pl.scatter_update", T, -2, index=index, src=rows) == expected
    assert call("pl.tile.scatter_update", T, index, rows) == expected


def test_words_of_the_random_generator_are_32_bits():
    made = call("pl.tile.random", 0xFFFFFFFF, 2, 3, 4, 5, 6, (8, 64))
    assert made.arguments["key0"] == Const(-1, INT32) and made.arguments["counter3"] == Const(6, INT32)


def test_an_invalid_task_id_and_bool_arrays():
    assert call("pl.system.task_invalid") == Const(None, TASK_ID)
    tasks = call("pl.array.create", 2, TASK_ID)
    assert call("pl.array.update_element", tasks, 0, None).arguments["value"] == Const(None, TASK_ID)
    array = call("pl.array.create", 4, BOOL)
    assert call("pl.array.get_element", array, 1).type.dtype == BOOL
