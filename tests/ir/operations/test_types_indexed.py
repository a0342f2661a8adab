"""Result types of gather, scatter and sort (spec ops 14, 15)."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import BF16, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8, UINT32
from pypto.ir.enums import Mem
from pypto.ir.nodes import Const, TupleType
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.show import show

from .written import N, call, scalar, tensor, tile, typed

T, X = tile(32, 64), tensor(32, 64)
INDEX_X, INDEX_T = tensor(8, 16, dtype=INT32), tile(8, 16, dtype=INT32)
TMP = tile(8, 16, dtype=INT32)
TABLE, LIST, PAGES = tensor(256, 64, dtype=BF16), tensor(40, dtype=INT32), tensor(8, dtype=INT32)
PAGED = {"block_size": 16, "size": 64, "max_indices": 48}

LEGAL = [
    ("pl.gather", (X, -1, INDEX_X), {}, "tensor [8, 16] FP32"),
    ("pl.gather", (tensor(4, 8, 64, dtype=FP16), 0, tensor(2, 8, 64, dtype=INT16)), {}, "tensor [2, 8, 64] FP16"),
    ("pl.gather", (X,), {"mask_pattern": 1}, "tensor [32, 32] FP32"),
    ("pl.gather", (X,), {"mask_pattern": 6, "output_dtype": INT32}, "tensor [32, 16] INT32"),
    ("pl.tile.gather", (T, INDEX_T, TMP), {}, "tile [8, 16] FP32"),
    ("pl.tile.gather_mask", (T, 7), {}, "tile [32, 64] FP32"),
    ("pl.gatherb", (tile(8, 64, dtype=UINT8), tile(4, 8, dtype=UINT32, valid=(4, 2))), {"output_dtype": FP16},
     "tile [4, 128] FP16 valid [4, 32]"),
    ("pl.mgather", (TABLE, tile(1, 16, dtype=INT32)), {}, "tile [16, 64] BF16"),
    ("pl.mgather", (TABLE, tile(16, 1, dtype=INT32, valid=(N, 1))), {}, "tile [16, 64] BF16 valid [n, 64]"),
    ("pl.mgather", (TABLE, INDEX_T), {"coalesce": "elem", "gather_oob": 3}, "tile [8, 16] BF16"),
    ("pl.mgather", (TABLE, tensor(1, 16, dtype=INT32)), {"target_memory": Mem.Mat}, "tile [16, 64] BF16 in Mat"),
    ("pl.paged_gather", (TABLE, LIST, PAGES), PAGED, "tensor [48, 64] BF16"),
    ("pl.paged_gather", (TABLE, tensor(1, 40, dtype=INT32), PAGES), {**PAGED, "is_trans": True},
     "tensor [64, 48] BF16"),
    ("pl.scatter", (X,), {"dim": -1, "index": tensor(8, 4, dtype=INT32), "src": tensor(8, 4)}, "tensor [32, 64] FP32"),
    ("pl.scatter", (X,), {"mask_pattern": 2, "dst": tensor(32, 128)}, "tensor [32, 128] FP32"),
    ("pl.tile.scatter", (T, tile(4, 8), tile(4, 8, dtype=INT32)), {}, "tile [32, 64] FP32"),
    ("pl.tile.scatter_mask", (tile(32, 256), T, 3), {}, "tile [32, 256] FP32"),
    ("pl.scatter_update", (X, -2, tensor(1, 8, dtype=INT32), tensor(8, 64)), {}, "tensor [32, 64] FP32"),
    ("pl.scatter_update", (tensor(4, 8, 1, 64), -2, INDEX_X, tensor(8, 16, 1, 64)), {}, "tensor [4, 8, 1, 64] FP32"),
    ("pl.mscatter", (T, tile(32, 64, dtype=INT32), tensor(4096)), {}, "tensor [4096] FP32"),
    ("pl.sort32", (X, tensor(32, 64, dtype=UINT32)), {}, "tensor [32, 128] FP32"),
    ("pl.mrgsort", (tile(1, 512),), {"block_len": 64}, "tile [1, 512] FP32"),
    ("pl.mrgsort", (tile(1, 128), tile(1, 64), None, None, tile(1, 192)), {}, "tile [1, 192] FP32"),
    ("pl.mrgsort", (tensor(1, 128), tensor(1, 64)), {"exhausted": True}, "tensor [1, 192] FP32"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "result"), LEGAL)
def test_result_type(spelling, args, kwargs, result):
    assert typed(spelling, *args, **kwargs) == result


ILLEGAL = [
    ("pl.gather", (X, 1, tensor(8, dtype=INT32)), {}, "index has 1 axes and input 2"),
    ("pl.gather", (X, 1, tensor(64, 8, dtype=INT32)), {}, "axis 0 of index is 64; input has 32"),
    ("pl.gather", (X, 2, INDEX_X), {}, "dim is 2; legal for 2 axes: -2 to 1"),
    ("pl.gather", (X, 1, tensor(8, 16, dtype=INT16)), {}, "index is INT16; legal for FP32 data: INT32"),
    ("pl.gather", (tensor(32, 64, dtype=BF16), 1, INDEX_X), {}, "input is BF16; legal: FP16, FP32, INT16, INT32"),
    ("pl.gather", (tensor(32, 63),), {"mask_pattern": 1}, "63 columns are no multiple of 2"),
    ("pl.gather", (X,), {"mask_pattern": 8}, "mask_pattern is 8; legal: 1"),
    ("pl.gather", (X,), {"mask_pattern": 1, "output_dtype": FP16}, "output_dtype is FP16; it must be as wide as FP32"),
    ("pl.gather", (X,), {"kvalue": scalar(INT32), "cmp_mode": "gt", "out_cols": 8},
     "kvalue is INT32, the elements are FP32"),
    ("pl.gather", (X,), {"kvalue": 1.0, "cmp_mode": "near", "out_cols": 8}, "cmp_mode is 'near'; legal: 'eq'"),
    ("pl.gatherb", (T, tile(4, 4, dtype=UINT32)), {}, "offset has 4 columns; a positive multiple of 8"),
    ("pl.mgather", (TABLE, INDEX_T), {}, r"idx must be \[1, R\] or \[R, 1\] for whole rows"),
    ("pl.mgather", (TABLE, INDEX_T), {"coalesce": "block"}, "coalesce is 'block'; legal: 'row'"),
    ("pl.mgather", (TABLE, INDEX_T), {"coalesce": "elem", "target_memory": Mem.Mat}, "an index tile fills Vec"),
    ("pl.mgather", (TABLE, tensor(1, 20, dtype=INT32)), {"target_memory": Mem.Mat}, "rows in multiples of 16"),
    ("pl.mgather", (TABLE, tensor(16, 16, dtype=INT32)), {"target_memory": Mem.Mat, "coalesce": "elem"},
     "need a scratch tensor of 256 elements"),
    ("pl.mgather", (TABLE, tile(1, 16, dtype=INT32)), {"valid_shape": (8, 64)}, "valid_shape is for a Mat result"),
    ("pl.paged_gather", (TABLE, LIST, PAGES), {**PAGED, "is_trans": True, "space": Mem.Vec},
     "is_trans=True needs space=Mat"),
    ("pl.paged_gather", (TABLE, tensor(2, 40, dtype=INT32), PAGES), PAGED, r"indices must be \[n\] or \[1, n\]"),
    ("pl.scatter", (X,), {"dim": 0, "index": INDEX_X, "src": tensor(8, 16)}, "dim is 0; legal: -1, 1"),
    ("pl.scatter", (X,), {"dim": 1, "index": tensor(8, 16, dtype=INT16), "src": tensor(8, 16)},
     "FP32 data takes INT32"),
    ("pl.scatter", (tensor(32, 64, dtype=UINT8),), {"dim": 1, "index": INDEX_X, "src": tensor(8, 16, dtype=UINT8)},
     "input is UINT8; legal: FP16"),
    ("pl.scatter", (X,), {"mask_pattern": 1, "dst": tensor(32, 64)}, r"dst must be \[32, 128\] for pattern 1"),
    ("pl.tile.scatter", (tile(8, 8, dtype=INT8), tile(4, 8, dtype=INT8), tile(4, 8, dtype=INT32)), {},
     "indexes is INT32; INT8 data takes INT16"),
    ("pl.scatter_update", (X, 0, INDEX_X, tensor(8, 64)), {}, "dim is 0; legal: -2"),
    ("pl.scatter_update", (X, -2, INDEX_X, tensor(8, 32)), {}, "input has 64 columns and src 32"),
    ("pl.mscatter", (T, INDEX_T, X), {}, "the shapes must be equal"),
    ("pl.sort32", (tensor(32, 48), tensor(32, 48, dtype=UINT32)), {},
     "src has 48 columns; the last axis must be a multiple of 32"),
    ("pl.sort32", (X, tensor(32, 64, dtype=INT32)), {}, "idx is INT32; legal: UINT32, e.g. pl.arange"),
    ("pl.sort32", (tile(1, 64, dtype=FP16), tile(1, 64, dtype=UINT32)), {}, "pl.cast to FP32 first"),
    ("pl.mrgsort", (tile(1, 512),), {"block_len": 96}, "block_len is 96; it must be a positive multiple of 64"),
    ("pl.mrgsort", (tile(1, 512),), {}, "needs either block_len=.* or src1"),
    ("pl.mrgsort", (tile(1, 128), tile(1, 64)), {"block_len": 64}, "not both"),
    ("pl.mrgsort", (tile(1, 128), tile(1, 64)), {}, "merging lists needs tmp, whose shape the result takes"),
    ("pl.mrgsort", (tensor(1, 128), tensor(1, 64), None, tensor(1, 64)), {}, "filled from the left"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "message"), ILLEGAL)
def test_a_broken_contract_is_named(spelling, args, kwargs, message):
    with pytest.raises(OperandValueError, match=message):
        call(spelling, *args, **kwargs)


@pytest.mark.parametrize(
    ("spelling", "args", "kwargs", "message"),
    [
        ("pl.gather", (X,), {}, "needs one of index"),
        ("pl.gather", (X, 1, INDEX_X), {"mask_pattern": 1}, "needs one of index"),
        ("pl.gather", (X,), {"index": INDEX_X}, "the index form needs dim"),
        ("pl.gather", (X,), {"kvalue": 1.0}, "needs cmp_mode and out_cols"),
        (
            "pl.scatter",
            (X, 1),
            {"index": INDEX_X, "src": tensor(8, 16)},
            "dim is a compile-time option: write it as a keyword",
        ),
        ("pl.scatter", (X,), {"mask_pattern": 1}, "the mask form takes input, mask_pattern and dst"),
        ("pl.paged_gather", (TABLE, LIST, PAGES, 16, 64, 48), {}, "block_size is a compile-time option"),
    ],
)
def test_a_mixed_up_form_is_a_type_error(spelling, args, kwargs, message):
    with pytest.raises(OperandTypeError, match=message):
        call(spelling, *args, **kwargs)


@pytest.mark.parametrize("spelling", ["pl.gather", "pl.tile.gather_compare"])
def test_the_compare_form_has_two_results(spelling):
    args = (X,) if spelling == "pl.gather" else (T, 1.0, TMP)
    kwargs = {"kvalue": 1.0} if spelling == "pl.gather" else {}
    kind = call(spelling, *args, cmp_mode=4, out_cols=8, count_dtype=UINT32, **kwargs).type
    level = "tensor" if spelling == "pl.gather" else "tile"
    assert isinstance(kind, TupleType)
    assert [show(item) for item in kind.items] == [f"{level} [32, 8] INT32", f"{level} [1, 32] UINT32"]


def test_a_block_length_may_be_a_scalar():
    length = scalar(INT32)
    assert call("pl.mrgsort", tile(1, 512), block_len=length).arguments["block_len"] is length
    assert call("pl.mrgsort", tile(1, 512), block_len=128).arguments["block_len"] == Const(128, INDEX)


def test_the_same_values_at_both_levels():
    assert typed("pl.sort32", T, tile(32, 64, dtype=INT32)) == "tile [32, 128] FP32"
    found = typed("pl.tile.gather", tile(8, 8, dtype=FP16), tile(4, 4, dtype=INT16), tile(4, 4, dtype=INT16))
    assert found == "tile [4, 4] FP16"
    assert call("pl.gather", X, 1, INDEX_X).type.dtype == FP32
