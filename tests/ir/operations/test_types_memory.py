"""Result types of creation, movement, views and padding (spec ops 2, 3, 13)."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import BF16, FP8E8M0, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32
from pypto.ir.enums import AtomicType, Mem, PadValue, TensorLayout, TileLayout
from pypto.ir.nodes import Const, Symbol, TensorType, TensorView, Var
from pypto.ir.operations import results
from pypto.ir.operations.errors import OperandTypeError, OperandValueError

from .written import M, N, call, scalar, tensor, tile, typed

T, X = tile(32, 64), tensor(64, 256)
PART = tile(32, 64, valid=(16, N))
HALF_X = tensor(64, 256, valid=(40, 256))
EMPTY = tensor(64, 256, valid=(0, 0))
MAT = tile(32, 64, space=Mem.Mat)
R = Symbol("R")

LEGAL = [
    # creation
    ("pl.create_tensor", ((R, 8), FP32), {}, "tensor [R, 8] FP32"),
    ("pl.create_tensor", ((4, 8), INT32), {"init_value": 3}, "tensor [4, 8] INT32"),
    ("pl.create_tile", ((4, 8), FP16, Mem.Mat), {"transpose": True}, "tile [4, 8] FP16 in Mat"),
    ("pl.create_l1", ((16, 64), BF16), {}, "tensor [16, 64] BF16"),
    ("pl.full", ((4, 8), BF16), {"value": 1.5}, "tensor [4, 8] BF16"),
    ("pl.tile.full", ((4, 8), INT8), {"value": 2.7}, "tile [4, 8] INT8"),
    ("pl.arange", (0, (1, 64)), {}, "tensor [1, 64] INT32"),
    ("pl.tile.ci", (scalar(UINT16), (1, 1, 64)), {"dtype": UINT16}, "tile [1, 1, 64] UINT16"),
    ("pl.tri", (1, (16, 16)), {"valid_shape": (N, 16), "dtype": FP32}, "tile [16, 16] FP32 valid [n, 16]"),
    ("pl.tile.random", (1, 2, 3, 4, 5, 6, (8, 64)), {"rounds": 7}, "tile [8, 64] UINT32"),
    # loads and stores
    ("pl.load", (X, (0, 0), (32, 64)), {}, "tile [32, 64] FP32"),
    ("pl.load", (X, (N, 0), (32, 64)), {"target_memory": Mem.Mat}, "tile [32, 64] FP32 in Mat"),
    ("pl.load", (X, (48, 0), (32, 64)), {"valid_shape": (16, N)}, "tile [32, 64] FP32 valid [16, n]"),
    ("pl.load", (X, (48, 0), (32, 64)), {"clamp": True}, "tile [32, 64] FP32 valid [16, 64]"),
    ("pl.load", (X, (N, 0), (32, 64)), {"clamp": True}, "tile [32, 64] FP32 valid [min(max((64 - n), 0), 32), 64]"),
    ("pl.load", (HALF_X, (32, 0), (32, 64)), {}, "tile [32, 64] FP32 valid [8, 64]"),
    ("pl.load", (HALF_X, (48, 0), (16, 64)), {}, "tile [16, 64] FP32 valid [0, 64]"),
    ("pl.load", (tensor(4, 64, 256), (0, 0), (32, 64)), {}, "tile [32, 64] FP32"),
    ("pl.store", (T, (0, 0), X), {}, "tensor [64, 256] FP32"),
    ("pl.store", (T, (0, 0), EMPTY), {}, "tensor [64, 256] FP32 valid [32, 64]"),
    ("pl.store", (tile(8, 256), (40, 0), HALF_X), {}, "tensor [64, 256] FP32 valid [48, 256]"),
    ("pl.store", (T, (0, 0), X), {"atomic": AtomicType.Add}, "tensor [64, 256] FP32"),
    ("pl.move", (PART, Mem.Mat), {}, "tile [32, 64] FP32 valid [16, n] in Mat"),
    ("pl.move", (tile(16, 32, dtype=UINT8, space=Mem.Mat), Mem.LeftScale), {}, "tile [16, 32] FP8E8M0 in LeftScale"),
    ("pl.tile.extract", (MAT, 16, N, (16, 16)), {"target_memory": Mem.Left}, "tile [16, 16] FP32 in Left"),
    ("pl.assemble", (X, tensor(8, 8), (0, 0)), {}, "tensor [64, 256] FP32"),
    ("pl.assemble", (tensor(2, 64, 256), X, (1, 0, 0)), {}, "tensor [2, 64, 256] FP32"),
    ("pl.assemble", (T, tile(8, 64), (8, 0)), {}, "tile [32, 64] FP32"),
    ("pl.assemble", (tile(32, 64, dtype=BF16, space=Mem.Mat), tile(8, 64, space=Mem.Acc), (8, 0)), {},
     "tile [32, 64] BF16 in Mat"),
    ("pl.read", (X, (N, 3)), {}, "FP32 scalar"),
    ("pl.read", (tensor(8), 3), {}, "FP32 scalar"),
    ("pl.write", (X, (0, 0), 2.0), {}, "tensor [64, 256] FP32"),
    ("pl.write", (tile(4, 4, dtype=INT32), (0, 0), Const(2, INT32)), {}, "tile [4, 4] INT32"),
    ("pl.gather_row", (MAT, X, (N, 0), (M, 0), (1, 64)), {}, "tile [32, 64] FP32 in Mat"),
    ("pl.gather_row", (MAT, X, (0, 0), (0, 0), (64, 32), True), {}, "tile [32, 64] FP32 in Mat"),
    # views
    ("pl.slice", (X, (32, 64), (N, 0)), {}, "tensor [32, 64] FP32"),
    ("pl.slice", (X, (1, 64), (N, 0)), {"drop_dims": (0,)}, "tensor [64] FP32"),
    ("pl.slice", (tensor(4, 64, 256), (32, 64), (0, 0)), {}, "tensor [32, 64] FP32"),
    ("pl.slice", (X, (32, 64), (48, 0)), {"clamp": True}, "tensor [32, 64] FP32 valid [16, 64]"),
    ("pl.slice", (T, (1, 64), (8, 0)), {"drop_dims": (0,)}, "tile [1, 64] FP32"),
    ("pl.slice", (PART, (16, 64), (8, 0)), {}, "tile [16, 64] FP32 valid [8, min(max(n, 0), 64)]"),
    ("pl.slice", (MAT, (16, 64), (8, 0)), {}, "tile [16, 64] FP32 in Mat"),
    ("pl.reshape", (X, (2, 32, 256)), {}, "tensor [2, 32, 256] FP32"),
    ("pl.reshape", (tensor(R, 64), (R, 8, 8)), {}, "tensor [R, 8, 8] FP32"),
    ("pl.reshape", (T, (64, 32)), {}, "tile [64, 32] FP32"),
    ("pl.transpose", (tensor(4, 64, 256, valid=(4, 64, 8)), 1, 2), {}, "tensor [4, 256, 64] FP32 valid [4, 8, 64]"),
    ("pl.transpose", (PART, -1, 0), {}, "tile [64, 32] FP32"),
    ("pl.tile.transpose_view", (tile(32, 64, valid=(16, 64), space=Mem.Mat),), {},
     "tile [64, 32] FP32 valid [64, 16] in Mat"),
    ("pl.concat", (PART, tile(32, 8)), {}, "tile [32, 72] FP32"),
    ("pl.reinterpret_view", (T, INT16), {}, "tile [32, 128] INT16"),
    ("pl.reinterpret_view", (tile(32, 64, dtype=INT8, valid=(32, 16)), FP32), {}, "tile [32, 16] FP32 valid [32, 4]"),
    ("pl.reinterpret_view", (X, UINT32), {"shape": (256, 64)}, "tensor [256, 64] UINT32"),
    ("pl.tensor.view", (X, (32, 512)), {}, "tensor [32, 512] FP32"),
    ("pl.tensor.view", (X,), {"layout": TensorLayout.DN}, "tensor [256, 64] FP32"),
    ("pl.tensor.view", (tensor(2, 32, 256, valid=(2, 32, 8)), (64, 256)), {"valid_shape": (64, 8)},
     "tensor [64, 256] FP32 valid [64, 8]"),
    ("pl.set_validshape", (T, 16, N), {}, "tile [32, 64] FP32 valid [16, n]"),
    ("pl.set_validshape", (PART, 32, 64), {}, "tile [32, 64] FP32"),
    ("pl.fillpad", (PART,), {"pad_value": PadValue.min}, "tile [32, 64] FP32"),
    ("pl.fillpad_expand", (PART, (64, 64)), {}, "tile [64, 64] FP32"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "result"), LEGAL)
def test_result_type(spelling, args, kwargs, result):
    assert typed(spelling, *args, **kwargs) == result


ILLEGAL = [
    ("pl.create_tile", ((0, 8), FP32), {}, "shape axis 0 is 0; an extent must be positive"),
    ("pl.create_tile", ((N, 8), FP32), {}, "shape axis 0 must be a compile-time integer"),
    ("pl.create_tile", ((8, 8), FP32, Mem.LeftScale), {}, "target_memory is LeftScale"),
    ("pl.create_tile", ((8, 8), FP32), {"transpose": True}, "for a Mat tile with two axes"),
    ("pl.create_tensor", ((8, 8), FP32), {"init_value": float("inf")}, "init_value is inf; it must be finite"),
    ("pl.create_tensor", ((8, 8), INT64), {"init_value": 2**54}, r"the largest magnitude is 2\*\*53"),
    ("pl.full", ((8, 8), INT32), {"value": float("nan")}, "value is nan, which INT32 cannot hold"),
    ("pl.arange", (0, (2, 64)), {}, r"shape is \[2, 64\]; every axis before the last must be 1"),
    ("pl.arange", (0, (1, 1)), {}, "the last axis must be longer than 1"),
    ("pl.arange", (N, (1, 64)), {}, "start is INDEX and dtype is INT32; convert with pl.cast"),
    ("pl.arange", (0, (1, 64)), {"dtype": FP32}, "dtype is FP32; legal: INT16"),
    ("pl.tri", (N, (16, 16)), {}, "diagonal must be an int or an INT32 scalar, got INDEX"),
    ("pl.random", (1, 2, 3, 4, 5, 6, (8, 64)), {"rounds": 8}, "rounds is 8; legal: 7, 10"),
    ("pl.load", (X, (0, 0), (32, 64)), {"target_memory": Mem.Left}, "target_memory is Left; legal: Vec, Mat"),
    ("pl.load", (X, (0,), (32, 64)), {}, r"offsets \[0\] has 1 entries for 2 axes"),
    ("pl.load", (X, (-1, 0), (32, 64)), {}, r"offsets\[0\] is -1; it must not be negative"),
    ("pl.load", (X, (48, 0), (32, 64)), {}, "the window 48:80 of axis 0 ends outside the tensor, which has 64; "
     "the last legal offset is 32"),
    ("pl.load", (X, (0, 0), (32, 512)), {}, "the window spans 512 of axis 1, but the tensor has 256"),
    ("pl.load", (X, (0, 0), (32, 64)), {"valid_shape": (33, 64)}, r"valid_shape\[0\] is 33; legal: 0 to 32"),
    ("pl.load", (X, (0, 0), (32, 64)), {"valid_shape": (32,)}, "differ in rank"),
    ("pl.store", (T, (48, 0), X), {}, "the window 48:80 of axis 0 ends outside the tensor"),
    ("pl.store", (T, (48, 0), HALF_X), {}, "the window 48:80"),
    ("pl.store", (T, (0, 0), tensor(1, 64)), {}, "the tensor has 1; pl.set_validshape(.*) states the part"),
    ("pl.assemble", (tensor(1, 64), X, (0, 0)), {}, "the target has 1; pl.set_validshape(.*) states the part"),
    ("pl.store", (tile(8, 256), (48, 0), HALF_X), {}, "leaves no box"),
    ("pl.store", (T, (8, 0), EMPTY), {}, "the destination is empty, so the first write must start at 0"),
    ("pl.store", (tile(32, 64, dtype=UINT8), (0, 0), tensor(64, 256, dtype=UINT8)), {"atomic": AtomicType.Add},
     "atomic addition to UINT8 does not exist; legal: FP32, BF16"),
    ("pl.store", (tile(32, 64, space=Mem.Left), (0, 0), X), {}, "a tile in Left cannot be stored"),
    ("pl.move", (T, Mem.DDR), {}, "target_memory is DDR; pl.store writes to GM"),
    ("pl.move", (T, Mem.LeftScale), {}, "LeftScale takes UINT8 or FP8E8M0"),
    ("pl.tile.extract", (MAT, 24, 0, (16, 16)), {"target_memory": Mem.Left}, "the window 24:40 of axis 0"),
    ("pl.assemble", (X, tensor(2, 64, 256), (0, 0)), {}, "source has 3 axes and target 2"),
    ("pl.assemble", (T, tile(8, 64, dtype=BF16),
    (0, 0)), {}, "target is FP32 and source BF16; the dtypes must be equal"),
    ("pl.read", (X, (3,)), {}, r"indices \[3\] must have one index per axis of the tensor \[64, 256\] FP32"),
    ("pl.read", (X, (64, 0)), {}, r"indices\[0\] is 64; legal for the tensor \[64, 256\] FP32: 0 to 63"),
    ("pl.write", (X, (0, 0), Const(2, INT32)), {}, "value is INT32 and the elements are FP32"),
    ("pl.dim", (X, 2), {}, "axis is 2; legal for 2 axes: -2 to 1"),
    ("pl.gather_row", (MAT, tensor(64, 256, dtype=BF16), (0, 0), (0, 0), (1, 64)), {}, "dst is FP32 and src is BF16"),
    ("pl.gather_row", (MAT, X, (0, 0), (0, 0), (1, 64), True), {"valid_shape": (1, N)}, "exclude each other"),
    ("pl.gather_row", (MAT, X, (0, 0), (0, 0),
    (1, 128)), {}, "the window spans 128 of axis 1, but the destination has 64"),
    ("pl.slice", (X, (32, 64), (48, 0)), {}, "ends outside the tensor"),
    ("pl.slice", (X, (2, 64), (0, 0)), {"drop_dims": (0,)}, "only axes of 1 can go"),
    ("pl.slice", (X, (1, 1), (0, 0)), {"drop_dims": (0, 1)}, "use pl.read for one element"),
    ("pl.slice", (X, (1, 64), (0, 0)), {"drop_dims": (0, 0)}, "names an axis twice"),
    ("pl.slice", (T, (16, 64), (24, 0)), {"valid_shape": (8, 64)}, "the window 24:40 of axis 0 ends outside the tile"),
    ("pl.slice", (T, (64,), (0,)), {}, "must have the 2 axes"),
    ("pl.reshape", (T, (64, 64)), {}, r"\[32, 64\] has 2048 elements, \[64, 64\] 4096"),
    ("pl.reshape", (tile(16, 64, valid=(8, 40)), (32, 32)), {}, "use pl.fillpad or pl.set_validshape first"),
    ("pl.transpose", (X, 0, 0), {}, "axis1 and axis2 are both axis 0"),
    ("pl.transpose", (tensor(8), 0, 0), {}, "needs at least 2 axes"),
    ("pl.concat", (T, tile(16, 64)), {}, "src0 has 32 rows and src1 16"),
    ("pl.concat", (T, tile(32, 64, dtype=BF16)), {}, "both must have one dtype"),
    ("pl.reinterpret_view", (T, FP32), {}, "dtype is FP32; legal: INT8"),
    ("pl.reinterpret_view", (tile(32, 63, dtype=INT8), FP32), {}, "63 columns of INT8 are 63 bytes, no multiple of 4"),
    ("pl.reinterpret_view", (X, INT16), {"shape": (64, 256)}, "differ in bytes"),
    ("pl.tensor.view", (X,), {}, "needs shape or layout"),
    ("pl.tensor.view", (X,), {"layout": TensorLayout.NZ}, "layout is limited to ND and DN"),
    ("pl.tensor.view", (HALF_X, (32, 512)), {}, "needs an explicit valid_shape"),
    ("pl.set_validshape", (T, 33, 64), {}, "valid_rows is 33; legal: 0 to 32"),
    ("pl.set_validshape", (T, scalar(INT32), 64), {},
     "valid_rows needs a scalar of INT64 or UINT64 or INDEX, got INT32"),
    ("pl.fillpad_expand", (T, (16, 64)), {}, r"shape \[16, 64\] must cover the source's \[32, 64\]"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "message"), ILLEGAL)
def test_a_broken_contract_is_named(spelling, args, kwargs, message):
    with pytest.raises(OperandValueError, match=message) as caught:
        call(spelling, *args, **kwargs)
    assert str(caught.value).startswith(f"{spelling}: ")


def test_dim_of_a_static_axis_is_its_extent():
    assert call("pl.dim", X, -1) == Const(256, call("pl.dim", X, -1).type.dtype)
    assert call("pl.dim", tensor(R, 8), 0).op == "tensor.dim"


def test_layout_flags_of_a_mat_tile():
    zn = call("pl.create_tile", (16, 64), FP16, Mem.Mat, transpose=True).type.view
    assert (zn.blayout, zn.slayout) == (TileLayout.row_major, TileLayout.col_major)
    flat = call("pl.create_tile", (16, 64), FP16, Mem.Mat, flat_layout=True).type.view
    assert (flat.blayout, flat.slayout) == (TileLayout.row_major, TileLayout.none_box)


def test_a_transposed_tensor_carries_permuted_strides():
    kind = call("pl.transpose", X, 0, 1).type
    assert kind.view.stride == (1, 256) and kind.layout is TensorLayout.DN
    window = call("pl.slice", Var("y", kind), (8, 8), (0, 0)).type
    assert window.view.stride == (1, 256)


def test_a_window_keeps_the_strides_of_its_parent():
    assert call("pl.slice", X, (1, 64), (3, 0), drop_dims=(0,)).type.view.stride == (1,)
    assert call("pl.slice", X, (8, 64), (3, 0)).type.view.stride == (256, 1)


def test_a_pad_that_cannot_matter_is_warned_about():
    with pytest.warns(UserWarning, match=r"pad_value=zero cannot matter: the window \[8, 64\] is fully valid"):
        call("pl.slice", X, (8, 64), (0, 0), pad_value=PadValue.zero)
    kind = call("pl.slice", X, (32, 64), (48, 0), clamp=True, pad_value=float("-inf")).type
    assert kind.view.pad == PadValue.min


def test_only_a_zero_pad_survives_reinterpretation():
    for pad, kept in ((PadValue.zero, PadValue.zero), (PadValue.max, 0)):
        padded = Var("p", TensorType((8, 16), FP32, TensorView(valid_shape=(8, 4), pad=int(pad))))
        assert call("pl.reinterpret_view", padded, INT16).type.view.pad == kept


def test_a_scale_tensor_goes_to_mat_only():
    scales = Var("s", results.tensor((16, 32), FP8E8M0, layout=TensorLayout.MX_A_ZZ))
    assert typed("pl.load", scales, (0, 0), (16, 32), target_memory=Mem.Mat) == "tile [16, 32] FP8E8M0 in Mat"
    with pytest.raises(OperandValueError, match="an MX scale tensor has two axes"):
        call("pl.load", scales, (0, 0), (16, 32))


def test_an_operand_that_is_no_tensor_is_a_type_error():
    with pytest.raises(OperandTypeError, match="tensor needs a tensor, got 3"):
        call("pl.load", tensor=3, offsets=(0, 0), shapes=(8, 8))
    with pytest.raises(OperandTypeError, match="target_memory needs a pl.MemorySpace, got 'Vec'"):
        call("pl.load", X, (0, 0), (8, 8), target_memory="Vec")


def test_int16_scatter_range_is_a_run_time_matter():
    found = typed("pl.tile.scatter", tile(8, 8, dtype=FP16), tile(8, 8, dtype=FP16), tile(8, 8, dtype=INT16))
    assert found == "tile [8, 8] FP16"
