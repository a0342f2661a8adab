"""Sorting of (value, index) records (spec ops 15)."""

from __future__ import annotations

from typing import Annotated, Any

from pypto.ir.dtype import FP16, FP32, INT16, INT32, INT64, UINT32
from pypto.ir.dtype import INDEX as INDEX_DTYPE
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import Index
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.table import define

_RUN = 32
_SMALLEST_BLOCK = 64
BlockLength = Annotated[Dim, Index((INT16, INT32, INT64, INDEX_DTYPE))]


def _need_values(src: results.Shaped, name: str) -> None:
    results.need_dtype(src, (FP16, FP32), name)
    if src.dtype == FP16:
        raise OperandValueError(
            f"{name} is FP16, whose records need four columns each while the result declares two; pl.cast to FP32 first"
        )


def _records(src: results.Shaped) -> results.Shaped:
    return results.fresh(src, (*src.shape[:-1], dims.mul(src.shape[-1], 2)), src.dtype)


def _sort32_tensor(src: TensorType, idx: TensorType) -> Type:
    if idx.dtype == INT32:
        raise OperandValueError(
            "idx is INT32; legal: UINT32, e.g. pl.arange(0, shape, dtype=pl.UINT32) or "
            "pl.reinterpret_view(idx, pl.UINT32)"
        )
    results.need_dtype(idx, (UINT32,), "idx")
    return _sorted(src, idx)


def _sort32_tile(src: TileType, idx: TileType) -> Type:
    results.need_dtype(idx, (UINT32, INT32), "idx")
    return _sorted(src, idx)


def _sorted(src: results.Shaped, idx: results.Shaped) -> Type:
    _need_values(src, "src")
    results.need_same_shape(src, idx, ("src", "idx"))
    last = dims.constant(src.shape[-1])
    if last is not None and last % _RUN:
        raise OperandValueError(f"src has {last} columns; the last axis must be a multiple of {_RUN}")
    return _records(src)


def _need_block(src: results.Shaped, block_len: Dim) -> None:
    known = dims.constant(block_len)
    if known is not None and (known <= 0 or known % _SMALLEST_BLOCK):
        raise OperandValueError(f"block_len is {known}; it must be a positive multiple of {_SMALLEST_BLOCK}")
    _need_values(src, "src0")


def _lists(*sources: results.Shaped | None) -> list[results.Shaped]:
    """The lists that were given; a gap between them is an error."""
    given = [source for source in sources if source is not None]
    if any(source is None for source in sources[: len(given)]):
        raise OperandValueError("src1, src2 and src3 are filled from the left")
    for position, source in enumerate(given):
        _need_values(source, f"src{position}")
        results.need_same_dtype(given[0], source, ("src0", f"src{position}"))
        results.need_rank(source, 2, f"src{position}")
    return given


def _need_one_form(src1: results.Shaped | None, block_len: Dim | None) -> None:
    if (src1 is None) == (block_len is None):
        raise OperandValueError("needs either block_len= (merge the runs of one list) or src1 (merge lists), not both")


def _merge_tensors(
    src0: TensorType,
    src1: TensorType | None = None,
    src2: TensorType | None = None,
    src3: TensorType | None = None,
    *,
    exhausted: bool = False,
    block_len: BlockLength | None = None,
) -> Type:
    _need_one_form(src1, block_len)
    if block_len is not None:
        _need_block(src0, block_len)
        return results.tensor(src0.shape, src0.dtype)
    width: Dim = 0
    for source in _lists(src0, src1, src2, src3):
        width = dims.add(width, source.shape[-1])
    return results.tensor((1, width), src0.dtype)


def _merge_tiles(
    src0: TileType,
    src1: TileType | None = None,
    src2: TileType | None = None,
    src3: TileType | None = None,
    tmp: TileType | None = None,
    exhausted: bool = False,
    *,
    block_len: BlockLength | None = None,
) -> Type:
    _need_one_form(src1, block_len)
    if block_len is not None:
        _need_block(src0, block_len)
        return results.tile(src0.shape, src0.dtype)
    _lists(src0, src1, src2, src3)
    if tmp is None:
        raise OperandValueError("merging lists needs tmp, whose shape the result takes")
    return results.tile(tmp.shape, src0.dtype)


def _merge_runs(src: TileType, block_len: BlockLength) -> Type:
    return results.tile(src.shape, src.dtype)


def _merge_2(src0: TileType, src1: TileType, tmp: TileType, exhausted: bool = False) -> Type:
    return results.tile(tmp.shape, src0.dtype)


def _merge_3(src0: TileType, src1: TileType, src2: TileType, tmp: TileType, exhausted: bool = False) -> Type:
    return results.tile(tmp.shape, src0.dtype)


def _merge_4(
    src0: TileType, src1: TileType, src2: TileType, src3: TileType, tmp: TileType, exhausted: bool = False
) -> Type:
    return results.tile(tmp.shape, src0.dtype)


def _merge(call: Call, b: Builder) -> Expr:
    """The instruction by the number of lists; one list is merged run by run."""
    given = call.arguments
    if given["block_len"] is not None:
        return b.tile("mrgsort_format1", src=given["src0"], block_len=given["block_len"])
    sources = {name: given[name] for name in ("src0", "src1", "src2", "src3") if given[name] is not None}
    return b.tile(f"mrgsort_format2_{len(sources)}", **sources, tmp=given["tmp"], exhausted=given["exhausted"])


def _merge_with_scratch(call: Call, b: Builder) -> Expr:
    given = {name: value for name, value in call.arguments.items() if value is not None}
    if "block_len" not in given:
        width = sum(shape_of(given[f"src{k}"])[-1] for k in range(4) if f"src{k}" in given)
        given["tmp"] = b.create_tile((1, width), dtype_of(given["src0"]))
    return b.tile("mrgsort", **given)


_SORT: dict[str, Any] = {"kind": "sort", "spec": "15"}
_RUNS = "records of each run of 32 columns, in descending order"
define("tensor.sort32", _sort32_tensor, **_SORT, tile_form="tile.sort32", summary=_RUNS)
define(
    "tile.sort32", _sort32_tile, **_SORT, summary=_RUNS, lowering=Lowering("tsort32", ("src", "idx"), may_share=False)
)
define("tensor.mrgsort", _merge_tensors, **_SORT, tile_form=_merge_with_scratch, summary="sorted runs or lists merged")
define("tile.mrgsort", _merge_tiles, **_SORT, expand=_merge, summary="sorted runs or lists merged")
define(
    "tile.mrgsort_format1",
    _merge_runs,
    **_SORT,
    summary="groups of four sorted runs merged, written by mrgsort",
    lowering=Lowering("tmrgsort", ("src", "block_len"), may_share=False),
)
for _count, _rule in ((2, _merge_2), (3, _merge_3), (4, _merge_4)):
    define(
        f"tile.mrgsort_format2_{_count}",
        _rule,
        **_SORT,
        summary=f"{_count} sorted lists merged, written by mrgsort",
        lowering=Lowering(
            f"tmrgsort{_count}",
            tuple(f"src{k}" for k in range(_count)),
            {"exhausted": "exhausted"},
            scratch=("tmp",),
            may_share=False,
        ),
    )
