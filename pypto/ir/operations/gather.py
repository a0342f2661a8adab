"""Gather: by flat index, along an axis, by column pattern, by comparison, by 32-byte block, from GM (spec ops 14.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.dtype import (
    BF16,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    HF8,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    DataType,
)  # fmt: skip
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, TupleType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import Axis, Coalesce, ComparisonName, Dims, ExactElement, OffsetScalar, OutOfRange
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.table import define
from pypto.ir.operations.windows import positions

GATHERED = (FP16, FP32, INT16, INT32)
_WORDS = (INT8, UINT8, INT16, UINT16, INT32, UINT32, FP16, BF16, FP32)
_FETCHED = (*_WORDS, FP8E4M3FN, FP8E5M2, HF8)
_PAGED = (FP16, BF16, FP32, INT8)
_STEP = {1: 2, 2: 2, 3: 4, 4: 4, 5: 4, 6: 4, 7: 1}
_LINE_BYTES = 32
_MAT_ROWS = 16


def need_index(data: DataType, index: DataType, name: str) -> None:
    """``ValueError`` unless an index dtype goes with the data: INT32, or INT16 for 16-bit data."""
    if index != INT32 and not (index == INT16 and data.get_bit() == 16):
        legal = "INT32 or INT16" if data.get_bit() == 16 else "INT32"
        raise OperandValueError(f"{name} is {index.constant}; legal for {data.constant} data: {legal}")


def pattern_step(pattern: int) -> int:
    """One of how many columns a pattern keeps; ``ValueError`` for an unknown pattern."""
    if pattern not in _STEP:
        raise OperandValueError(f"mask_pattern is {pattern}; legal: 1 (P0101) to 7 (P1111)")
    return _STEP[pattern]


# --- on-chip type rules -----------------------------------------------------------------------------------------------


def _flat(src: TileType, indices: TileType, tmp: TileType) -> Type:
    results.need_dtype(src, GATHERED, "src")
    need_index(src.dtype, indices.dtype, "indices")
    return results.tile(indices.shape, src.dtype)


def _along_axis(src: TileType, indices: TileType, axis: Axis) -> Type:
    return results.tile(indices.shape, src.dtype)


def _masked(src: results.Shaped, pattern: int, output_dtype: DataType | None, legal: Sequence[DataType]) -> Type:
    results.need_rank(src, 2, "the operand")
    results.need_dtype(src, legal, "the operand")
    step = pattern_step(pattern)
    cols = dims.constant(src.shape[1])
    if cols is not None and cols % step:
        raise OperandValueError(f"{cols} columns are no multiple of {step}, which pattern {pattern} needs")
    dtype = output_dtype or src.dtype
    if dtype.get_bit() != src.dtype.get_bit():
        raise OperandValueError(f"output_dtype is {dtype.constant}; it must be as wide as {src.dtype.constant}")
    return results.fresh(src, (src.shape[0], dims.floor_div(src.shape[1], step)), dtype)


def _gather_mask(src: TileType, mask_pattern: Axis, *, output_dtype: DataType | None = None) -> Type:
    return _masked(src, mask_pattern, output_dtype, _WORDS)


def _compared(src: results.Shaped, kvalue: Expr, out_cols: int, count_dtype: DataType | None) -> Type:
    results.need_rank(src, 2, "the operand")
    if scalar_dtype(kvalue) != src.dtype:
        raise OperandValueError(f"kvalue is {scalar_dtype(kvalue).constant}, the elements are {src.dtype.constant}")
    if out_cols <= 0:
        raise OperandValueError(f"out_cols is {out_cols}; it must be positive")
    count = count_dtype or INT32
    if count not in (INT32, UINT32):
        raise OperandValueError(f"count_dtype is {count.constant}; legal: INT32, UINT32")
    rows = src.shape[0]
    return TupleType((results.fresh(src, (rows, out_cols), INT32), results.fresh(src, (1, rows), count)))


def _gather_compare(
    src: TileType, kvalue: ExactElement, tmp: TileType, *, cmp_mode: ComparisonName = "eq", offset: int = 0,
    out_cols: int, count_dtype: DataType | None = None,
) -> Type:  # fmt: skip
    return _compared(src, kvalue, out_cols, count_dtype)


def _blocks(src: TileType, offset: TileType, *, output_dtype: DataType | None = None) -> Type:
    dtype = output_dtype or src.dtype
    results.need_dtype(src, _WORDS, "src")
    if dtype not in _WORDS:
        raise OperandValueError(f"output_dtype is {dtype.constant}; legal: {', '.join(d.constant for d in _WORDS)}")
    results.need_dtype(offset, (UINT32,), "offset")
    results.need_rank(offset, 2, "offset")
    if offset.shape[1] % 8:
        raise OperandValueError(f"offset has {offset.shape[1]} columns; a positive multiple of 8 is needed")
    per_block = _LINE_BYTES // dtype.get_byte()
    valid = (offset.valid_shape[0], dims.mul(offset.valid_shape[1], per_block))
    return results.tile((offset.shape[0], offset.shape[1] * per_block), dtype, valid=valid)


# --- tensor.gather ----------------------------------------------------------------------------------------------------


def _gather(
    input: TensorType,
    dim: Axis | None = None,
    index: TensorType | None = None,
    *,
    mask_pattern: Axis | None = None,
    output_dtype: DataType | None = None,
    kvalue: ExactElement | None = None,
    cmp_mode: ComparisonName | None = None,
    out_cols: int | None = None,
    offset: int = 0,
    count_dtype: DataType | None = None,
) -> Type:
    forms = {"index": index is not None, "mask_pattern": mask_pattern is not None, "kvalue": kvalue is not None}
    if sum(forms.values()) != 1:
        raise OperandTypeError("needs one of index (with dim), mask_pattern, or kvalue (with cmp_mode and out_cols)")
    if mask_pattern is not None:
        return _masked(input, mask_pattern, output_dtype, GATHERED)
    if kvalue is not None:
        if cmp_mode is None or out_cols is None:
            raise OperandTypeError("the compare form needs cmp_mode and out_cols")
        return _compared(input, kvalue, out_cols, count_dtype)
    assert index is not None
    if dim is None:
        raise OperandTypeError("the index form needs dim")
    return _indexed(input, dim, index)


def _indexed(input: TensorType, dim: int, index: TensorType) -> Type:
    results.need_rank(input, 2, "input", at_least=True)
    if len(index.shape) != len(input.shape):
        raise OperandValueError(f"index has {len(index.shape)} axes and input {len(input.shape)}")
    axis = results.axis_of(dim, len(input.shape), "dim")
    results.need_dtype(input, GATHERED, "input")
    need_index(input.dtype, index.dtype, "index")
    for k, (have, own) in enumerate(zip(index.shape, input.shape)):
        if k != axis and dims.less(own, have):
            raise OperandValueError(f"axis {k} of index is {dims.text(have)}; input has {dims.text(own)}")
    return results.tensor(index.shape, input.dtype)


def _gather_form(call: Call, b: Builder) -> Expr:
    given = call.arguments
    if given["mask_pattern"] is not None:
        return b.tile(
            "gather_mask", src=given["input"], mask_pattern=given["mask_pattern"], output_dtype=given["output_dtype"]
        )
    if given["kvalue"] is not None:
        names = ("kvalue", "cmp_mode", "offset", "out_cols", "count_dtype")
        scratch = b.create_tile(shape_of(given["input"]), UINT8)
        return b.tile("gather_compare", src=given["input"], tmp=scratch, **{name: given[name] for name in names})
    return gather_along(given["input"], given["index"], given["dim"] % len(shape_of(given["input"])), b)


def gather_along(source: Expr, index: Expr, axis: int, b: Builder) -> Expr:
    """``torch.gather`` on tiles of any rank: matrices one by one, or the leading axis over flattened rows."""
    shape, wanted = shape_of(source), shape_of(index)
    rank = len(shape)
    if rank == 2:
        return b.tile("gather_axis", src=source, indices=index, axis=axis)
    if axis < rank - 2:
        return _gather_outer(source, index, axis, b)
    target = b.create_tile(wanted, dtype_of(source))
    lead = (1,) * (rank - 2)
    for at in positions(wanted[:-2]):
        matrix = _matrix(source, (*lead, *shape[-2:]), (*at, 0, 0), b)
        part = b.tile(
            "gather_axis",
            src=matrix,
            axis=axis - (rank - 2),
            indices=_matrix(index, (*lead, *wanted[-2:]), (*at, 0, 0), b),
        )
        part = b.tile("reshape", tile=part, shape=(*lead, *wanted[-2:]))
        target = b.tile("assemble", target=target, source=part, offset=(*at, 0, 0))
    return target


def _matrix(source: Expr, window: Sequence[int], at: Sequence[int], b: Builder) -> Expr:
    return b.tile("reshape", tile=b.tile("slice", tile=source, shape=window, offset=at), shape=tuple(window[-2:]))


def _gather_outer(source: Expr, index: Expr, axis: int, b: Builder) -> Expr:
    """Along a leading axis: what follows the axis is one row; what the index does not reach is cut off first."""
    shape, wanted = shape_of(source), shape_of(index)
    if axis != 0:
        raise OperandValueError(f"dim {axis} of {len(shape)} axes is not supported; use 0 or one of the last two")
    if wanted[1:] != shape[1:]:
        part = b.tile("slice", tile=source, shape=(shape[0], *wanted[1:]), offset=(0,) * len(shape))
        packed = b.create_tile(shape_of(part), dtype_of(source))
        source = b.tile("assemble", target=packed, source=part, offset=(0,) * len(shape))
    width = results.static((dims.product(wanted[1:]),))[0]
    rows = b.tile("reshape", tile=source, shape=(shape[0], width))
    found = b.tile("gather_axis", src=rows, indices=b.tile("reshape", tile=index, shape=(wanted[0], width)), axis=0)
    return b.tile("reshape", tile=found, shape=wanted)


# --- from GM ----------------------------------------------------------------------------------------------------------


def _fetch(
    mem: TensorType,
    idx: TileType | TensorType,
    coalesce: Coalesce = "row",
    *,
    gather_oob: OutOfRange = "undefined",
    target_memory: MemorySpace = MemorySpace.Vec,
    scratch: TensorType | None = None,
    valid_shape: Dims | None = None,
) -> Type:
    results.need_dtype(mem, _FETCHED, "mem")
    results.need_dtype(idx, (INT32,), "idx")
    results.need_rank(idx, 2, "idx")
    on_chip = isinstance(idx, TileType)
    if target_memory is not (MemorySpace.Vec if on_chip else MemorySpace.Mat):
        raise OperandValueError(
            f"target_memory is {target_memory.name}; an index tile fills Vec, an index tensor fills Mat"
        )
    shape, valid = _fetched_shape(mem, idx, coalesce)
    if not on_chip:
        _need_mat(mem, idx, shape, coalesce, scratch)
    if valid_shape is not None:
        valid = _requested(valid_shape, shape, on_chip)
    return results.tile(shape, mem.dtype, target_memory, valid)


def _fetched_shape(mem: TensorType, idx: results.Shaped, coalesce: str) -> tuple[tuple[int, ...], tuple[Dim, ...]]:
    shape = results.static(idx.shape)
    if coalesce == "elem":
        return shape, idx.valid_shape
    if 1 not in shape:
        raise OperandValueError(f"idx must be [1, R] or [R, 1] for whole rows, got {dims.listing(shape)}")
    axis = 1 if shape[0] == 1 else 0
    width = results.static(mem.shape[-1:])[0]
    return (shape[axis], width), (idx.valid_shape[axis], width)


def _need_mat(
    mem: TensorType, idx: results.Shaped, shape: Sequence[int], coalesce: str, scratch: TensorType | None
) -> None:
    columns = _LINE_BYTES // mem.dtype.get_byte()
    if shape[0] % _MAT_ROWS or shape[1] % columns:
        raise OperandValueError(
            f"a Mat result of {dims.listing(shape)} needs rows in multiples of {_MAT_ROWS} and columns of {columns}"
        )
    if coalesce == "row" and idx.shape[0] != 1:
        raise OperandValueError(f"whole rows into Mat need idx [1, R], got {dims.listing(idx.shape)}")
    if coalesce == "elem":
        if scratch is None:
            raise OperandValueError(f"elements into Mat need a scratch tensor of {shape[0] * shape[1]} elements")
        if dims.less(dims.product(scratch.shape), shape[0] * shape[1]):
            raise OperandValueError(f"scratch {dims.listing(scratch.shape)} must hold {shape[0] * shape[1]} elements")


def _requested(valid_shape: Sequence[Dim], shape: Sequence[int], on_chip: bool) -> tuple[Dim, ...]:
    if on_chip:
        raise OperandValueError("valid_shape is for a Mat result")
    known = [dims.constant(extent) for extent in valid_shape]
    if len(known) != 2 or any(v is None or not 0 < v <= extent for v, extent in zip(known, shape)):
        raise OperandValueError(
            f"valid_shape {dims.listing(valid_shape)} must be constant, positive and in {dims.listing(shape)}"
        )
    return tuple(valid_shape)


def _fetch_gm(mem: TensorType, idx: TensorType, coalesce: Coalesce, gather_oob: OutOfRange, valid_shape: Dims) -> Type:
    shape, _ = _fetched_shape(mem, idx, coalesce)
    return results.tile(shape, mem.dtype, MemorySpace.Mat, valid_shape)


def _fetch_form(call: Call, b: Builder) -> Expr | None:
    """Indices in GM are another instruction."""
    given = call.arguments
    if isinstance(given["idx"].type, TileType):
        return None
    names = ("mem", "idx", "coalesce", "gather_oob")
    valid = given["valid_shape"] or shape_of(call)
    return b.tile("mgather_gm", **{name: given[name] for name in names}, valid_shape=valid)


def _paged(
    src: TensorType,
    indices: TensorType,
    block_table: TensorType,
    block_size: int,
    size: int,
    max_indices: int,
    *,
    space: MemorySpace = MemorySpace.Mat,
    col_off: OffsetScalar = 0,
    is_trans: bool = False,
    is_b_matrix: bool = False,
) -> Type:
    results.need_rank(src, 2, "src")
    results.need_dtype(src, _PAGED, "src")
    results.need_dtype(indices, (INT32,), "indices")
    flat = [extent for extent in indices.shape if extent != 1]
    if len(indices.shape) > 2 or (len(indices.shape) == 2 and indices.shape[0] != 1) or len(flat) > 1:
        raise OperandValueError(f"indices must be [n] or [1, n], got {dims.listing(indices.shape)}")
    for name, value in (("block_size", block_size), ("size", size), ("max_indices", max_indices)):
        if value <= 0:
            raise OperandValueError(f"{name} is {value}; it must be positive")
    if is_trans and space is not MemorySpace.Mat:
        raise OperandValueError(f"is_trans=True needs space=Mat, got {space.name}")
    return results.tensor((size, max_indices) if is_trans else (max_indices, size), src.dtype)


def _paged_form(call: Call, b: Builder) -> Expr:
    """One row per index: read the index and its page, copy the row. The tensors stay in GM."""
    given = call.arguments
    size, rows = given["size"], given["max_indices"]
    shape = (size, rows) if given["is_trans"] else (rows, size)
    target = b.create_tile(shape, dtype_of(given["src"]), given["space"])
    count = dims.constant(shape_of(given["indices"])[-1])

    def one_row(row: Expr) -> None:
        at = _element(given["indices"], row, b)
        page = _element(given["block_table"], b.scalar("//", at, given["block_size"]), b)
        start = b.scalar("*", page, given["block_size"])
        place = b.scalar("+", start, b.scalar("%", at, given["block_size"]))
        offset = (0, row) if given["is_trans"] else (row, 0)
        b.tile(
            "gather_row",
            dst=target,
            src=given["src"],
            dst_offset=offset,
            src_offset=(place, given["col_off"]),
            shapes=(1, size),
            transpose=given["is_trans"],
        )

    b.repeat(rows if count is None else min(rows, count), one_row)
    return target


def _element(tensor: Expr, index: Expr, b: Builder) -> Expr:
    """One INDEX-typed element of a list held in GM."""
    lead = (0,) * (len(shape_of(tensor)) - 1)
    return b.scalar("+", b.tile("tensor.read", tensor=tensor, indices=(*lead, index)), 0)


# --- rows -------------------------------------------------------------------------------------------------------------

_ROW: dict[str, Any] = {"kind": "gather", "spec": "14.1"}
define(
    "tensor.gather",
    _gather,
    promoted=("gather",),
    **_ROW,
    tile_form=_gather_form,
    summary="elements along an axis, a column pattern, or the columns that satisfy a comparison",
)
define(
    "tile.gather",
    _flat,
    **_ROW,
    summary="elements at flat row-major indices",
    lowering=Lowering("tgather", ("src", "indices"), scratch=("tmp",), may_share=False),
)
define(
    "tile.gather_axis",
    _along_axis,
    **_ROW,
    summary="elements along an axis, written by tensor.gather",
    lowering=Lowering("tgather_axis", ("src", "indices"), {"axis": "axis"}, may_share=False),
)
define(
    "tile.gather_mask",
    _gather_mask,
    **_ROW,
    summary="a fixed pattern of columns",
    lowering=Lowering("tgather_mask", ("src",), {"pattern": "mask_pattern"}, may_share=False),
)
define(
    "tile.gather_compare",
    _gather_compare,
    **_ROW,
    summary="positions that satisfy a comparison, and their number",
    lowering=Lowering(
        "tgather_compare",
        ("src", "kvalue"),
        {"mode": "cmp_mode", "offset": "offset"},
        scratch=("tmp",),
        may_share=False,
    ),
)
define(
    "tile.gatherb",
    _blocks,
    promoted=("gatherb",),
    **_ROW,
    summary="32-byte blocks at byte offsets",
    lowering=Lowering("tgatherb", ("src", "offset"), may_share=False),
)
define(
    "tile.mgather",
    _fetch,
    promoted=("mgather",),
    **_ROW,
    expand=_fetch_form,
    summary="rows or elements of a tensor at unsigned indices",
    lowering=Lowering(
        "mgather", ("mem", "idx"), {"coalesce": "coalesce", "oob": "gather_oob"}, scratch=("scratch",), may_share=False
    ),
)
define(
    "tile.mgather_gm",
    _fetch_gm,
    **_ROW,
    summary="mgather with the indices in GM, written by mgather",
    lowering=Lowering("mgather_gm", ("mem", "idx"), {"coalesce": "coalesce", "oob": "gather_oob"}),
)
define(
    "tensor.paged_gather",
    _paged,
    promoted=("paged_gather",),
    **_ROW,
    tile_form=_paged_form,
    stays_in_memory=("src", "indices", "block_table"),
    summary="rows of a paged table at logical indices",
)
