"""Movement between GM and tiles, between tiles, and element access (spec ops 3)."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.ir.dtype import BF16, FP8E8M0, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8
from pypto.ir.enums import AtomicType, MemorySpace, TensorLayout, TileLayout
from pypto.ir.nodes import Call, Const, Dim, Expr, ScalarType, TensorType, TileType, Type, as_dim
from pypto.ir.operations import dims, results, windows
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import AnyScalar, Axis, Dims, IndexScalar, StaticDims
from pypto.ir.operations.results import Shaped, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_ATOMIC_DTYPES = (FP32, BF16, FP16, INT32, INT16, INT8)
_SCALE_LAYOUTS = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)
_SCALE_SPACES = (MemorySpace.LeftScale, MemorySpace.RightScale)
_PARTLY_WRITTEN = "; pl.set_validshape(value, rows, cols) states the part of the value that is written"


def load(
    tensor: TensorType,
    offsets: Dims,
    shapes: StaticDims,
    valid_shape: Dims | None = None,
    target_memory: MemorySpace = MemorySpace.Vec,
    clamp: bool = False,
) -> TileType:
    """A window of a tensor at ``offsets``, as a tile in ``target_memory`` (spec ops 3)."""
    if target_memory not in (MemorySpace.Vec, MemorySpace.Mat):
        raise OperandValueError(f"target_memory is {target_memory.name}; legal: Vec, Mat (pl.move goes on from there)")
    windows.need_offsets(offsets, len(shapes))
    if valid_shape is not None:
        windows.need_request(valid_shape, shapes)
    if tensor.layout in _SCALE_LAYOUTS:
        _need_scale_source(tensor, target_memory)
    reach = shapes if valid_shape is None else valid_shape
    if len(shapes) != len(tensor.shape):
        return results.tile(shapes, tensor.dtype, target_memory, valid=valid_shape)
    windows.need_inside(offsets, reach, tensor.shape, "tensor", clamp)
    valid = windows.read_valid(tensor, offsets, shapes, valid_shape, clamp)
    return results.tile(shapes, tensor.dtype, target_memory, valid=valid)


def _need_scale_source(tensor: TensorType, target: MemorySpace) -> None:
    if tensor.dtype not in (FP8E8M0, UINT8) or len(tensor.shape) != 2 or target is not MemorySpace.Mat:
        raise OperandValueError(
            f"an MX scale tensor has two axes, is FP8E8M0 or UINT8 and goes to Mat; got a {show(tensor)} "
            f"for {target.name}"
        )


def need_atomic(atomic: AtomicType, target: Shaped) -> None:
    """``ValueError`` when the destination's dtype has no atomic addition."""
    if atomic is AtomicType.Add and target.dtype not in _ATOMIC_DTYPES:
        legal = ", ".join(d.constant for d in _ATOMIC_DTYPES)
        raise OperandValueError(f"atomic addition to {target.dtype.constant} does not exist; legal: {legal}")


def store(
    tile: TileType,
    offsets: Dims,
    output_tensor: TensorType,
    shapes: Dims | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> TensorType:
    """``output_tensor`` with the valid region of ``tile`` written at ``offsets`` (spec ops 3)."""
    need_atomic(atomic, output_tensor)
    if tile.space not in (None, MemorySpace.Vec, MemorySpace.Acc, MemorySpace.Mat):
        raise OperandValueError(f"a tile in {tile.space.name} cannot be stored; legal: Vec, Acc, Mat")
    if shapes is not None:
        windows.need_offsets(offsets, len(shapes))
        return output_tensor
    windows.need_offsets(offsets, len(offsets))
    if len(offsets) != len(output_tensor.shape) or len(tile.shape) != len(offsets):
        return output_tensor
    windows.need_inside(offsets, tile.valid_shape, output_tensor.shape, "tensor", remedy=_PARTLY_WRITTEN)
    valid = windows.write_union(output_tensor.shape, output_tensor.valid_shape, offsets, tile.valid_shape)
    return with_valid(output_tensor, valid)


def with_valid(tensor: TensorType, valid: Sequence[Dim]) -> TensorType:
    """The tensor type with another valid shape; layout, strides and pad stay."""
    if dims.all_equal(valid, tensor.valid_shape):
        return tensor
    view = tensor.view
    made = results.tensor(
        tensor.shape, tensor.dtype, valid, view.stride if view else (), tensor.layout, view.pad if view else 0
    )
    return TensorType(made.shape, made.dtype, made.view, tensor.distributed, tensor.memref)


def move(
    tile: TileType,
    target_memory: MemorySpace,
    blayout: TileLayout | None = None,
    slayout: TileLayout | None = None,
) -> TileType:
    """The same elements in another memory space or fractal layout (spec ops 3)."""
    if target_memory in _SCALE_SPACES:
        if len(tile.shape) != 2 or tile.dtype not in (UINT8, FP8E8M0):
            raise OperandValueError(f"{target_memory.name} takes UINT8 or FP8E8M0 with two axes, got a {show(tile)}")
        if tile.space not in (None, MemorySpace.Mat):
            raise OperandValueError(f"{target_memory.name} is filled from Mat, the tile is in {tile.space.name}")
        if blayout is not None or slayout is not None:
            raise OperandValueError(f"{target_memory.name} has one layout; blayout and slayout must be left out")
        return results.tile(tile.shape, FP8E8M0, target_memory, valid=tile.valid_shape)
    if target_memory is MemorySpace.DDR:
        raise OperandValueError("target_memory is DDR; pl.store writes to GM")
    pad = tile.view.pad if tile.view else None
    return results.tile(
        tile.shape, tile.dtype, target_memory, tile.valid_shape, pad,
        blayout=None if blayout is None else int(blayout), slayout=None if slayout is None else int(slayout),
    )  # fmt: skip


def extract(
    src: TileType, index_row: IndexScalar, index_col: IndexScalar, shape: StaticDims, *, target_memory: MemorySpace
) -> TileType:
    """A block of ``src`` of ``shape`` at (``index_row``, ``index_col``) in another memory space (spec ops 3)."""
    results.need_rank(src, 2, "src")
    if len(shape) != 2:
        raise OperandValueError(f"shape is {dims.listing(shape)}; two axes are needed")
    offsets = (index_row, index_col)
    windows.need_offsets(offsets, 2, "index")
    windows.need_inside(offsets, shape, src.shape, "tile")
    return results.tile(shape, src.dtype, target_memory, valid=windows.read_valid(src, offsets, shape, None))


def assemble_tensor(
    target: TensorType, source: TensorType, offset: Dims, *, atomic: AtomicType = AtomicType.None_
) -> TensorType:
    """``target`` with ``source`` written at ``offset`` (spec ops 3)."""
    need_atomic(atomic, target)
    rank = len(target.shape)
    if len(source.shape) > rank:
        raise OperandValueError(f"source has {len(source.shape)} axes and target {rank}")
    if len(offset) > rank:
        raise OperandValueError(f"offset {dims.listing(offset)} has {len(offset)} entries for {rank} axes")
    windows.need_offsets(offset, len(offset), "offset")
    if len(offset) != rank or len(source.shape) != rank:
        return target
    windows.need_inside(offset, source.valid_shape, target.shape, "target", remedy=_PARTLY_WRITTEN)
    return with_valid(target, windows.write_union(target.shape, target.valid_shape, offset, source.valid_shape))


def assemble_tile(target: TileType, source: TileType, offset: Dims) -> TileType:
    """``target`` with ``source`` written at ``offset``; FP32 narrows to FP16 or BF16 (spec ops 3)."""
    rank = len(target.shape)
    if len(source.shape) != rank:
        raise OperandValueError(f"target has {rank} axes and source {len(source.shape)}")
    windows.need_offsets(offset, rank, "offset")
    windows.need_inside(offset, source.shape, target.shape, "target")
    narrows = source.dtype == FP32 and target.dtype in (BF16, FP16)
    if source.dtype != target.dtype and not narrows:
        raise OperandValueError(
            f"target is {target.dtype.constant} and source {source.dtype.constant}; the dtypes must be equal "
            "(an FP32 accumulator may go into a BF16 or FP16 tile)"
        )
    valid = windows.write_union(target.shape, target.valid_shape, offset, source.shape)
    return tile_with_valid(target, valid)


def _blocks(call: Call, b: Builder) -> Expr | None:
    """A source whose rows are not one run of the target's rows goes in matrix by matrix."""
    target, source, offset = (call.arguments[name] for name in ("target", "source", "offset"))
    shape = shape_of(source)
    if windows.is_one_run(shape, shape_of(target)):
        return None
    block = (*(1,) * (len(shape) - 2), *shape[-2:])
    for at in windows.positions(shape[:-2]):
        start = (*at, 0, 0)
        part = b.tile("slice", tile=source, shape=block, offset=start)
        place = tuple(dims.add(as_dim(o), step) for o, step in zip(offset, start))
        target = b.tile("assemble", target=target, source=part, offset=place)
    return target


def tile_with_valid(tile: TileType, valid: Sequence[Dim]) -> TileType:
    """The tile type with another valid shape; space, layout and pad stay."""
    view = tile.view
    return results.tile(
        tile.shape, tile.dtype, tile.space, valid, view.pad if view else None,
        view.blayout if view else None, view.slayout if view else None,
    )  # fmt: skip


def _need_element(source: Shaped, indices: Sequence[Dim], name: str) -> None:
    if len(indices) != len(source.shape):
        raise OperandValueError(f"{name} {dims.listing(indices)} must have one index per axis of the {show(source)}")
    for axis, (at, extent) in enumerate(zip(indices, source.shape)):
        if dims.less(at, 0) or dims.at_most(extent, at):
            raise OperandValueError(
                f"{name}[{axis}] is {dims.text(at)}; legal for the {show(source)}: "
                f"0 to {dims.text(dims.sub(extent, 1))}"
            )


def read_tensor(tensor: TensorType, indices: Dims) -> Type:
    """One element of a tensor as a scalar of its dtype (spec ops 3)."""
    _need_element(tensor, indices, "indices")
    return ScalarType(tensor.dtype)


def read_tile(tile: TileType, indices: Dims) -> Type:
    """One element of a tile as a scalar of its dtype (spec ops 3)."""
    _need_element(tile, indices, "indices")
    return ScalarType(tile.dtype)


def _write(target: Shaped, indices: Sequence[Dim], value: Expr) -> None:
    _need_element(target, indices, "indices")
    dtype = scalar_dtype(value)
    if dtype != target.dtype:
        literal = value.value if isinstance(value, Const) else None
        wanted = target.dtype.constant
        fix = f"pl.const({literal}, pl.{wanted})" if literal is not None else f"pl.cast(..., pl.{wanted})"
        raise OperandValueError(f"value is {dtype.constant} and the elements are {wanted}; write {fix}")


def write_tensor(tensor: TensorType, indices: Dims, value: AnyScalar) -> Type:
    """``tensor`` with one element replaced (spec ops 3)."""
    _write(tensor, indices, value)
    return tensor


def write_tile(tile: TileType, indices: Dims, value: AnyScalar) -> Type:
    """``tile`` with one element replaced (spec ops 3)."""
    _write(tile, indices, value)
    return tile


def dim(tensor: TensorType, axis: Axis) -> Type | Expr:
    """Extent of one axis: a constant where it is static, an INDEX scalar where it is dynamic."""
    extent = tensor.shape[results.axis_of(axis, len(tensor.shape))]
    return Const(extent, INDEX) if isinstance(extent, int) else ScalarType(INDEX)


def _gather_row(
    dst: Shaped, src: TensorType, dst_offset: Sequence[Dim], src_offset: Sequence[Dim], shapes: Sequence[int],
    transpose: bool, valid_shape: Sequence[Dim] | None,
) -> None:  # fmt: skip
    results.need_same_dtype(dst, src, ("dst", "src"))
    windows.need_offsets(dst_offset, len(dst.shape), "dst_offset")
    windows.need_offsets(src_offset, len(src.shape), "src_offset")
    if len(shapes) != len(src.shape):
        raise OperandValueError(f"shapes {dims.listing(shapes)} must have one extent per axis of the {show(src)}")
    if valid_shape is not None:
        windows.need_request(valid_shape, shapes)
        if transpose and any(dims.constant(v) is None for v in valid_shape):
            raise OperandValueError("a run-time valid_shape and transpose=True exclude each other")
    reach = tuple(valid_shape or shapes)
    windows.need_inside(src_offset, reach, src.shape, "source")
    if transpose and len(shapes) != 2:
        raise OperandValueError(f"transpose=True needs a window with two axes, got {dims.listing(shapes)}")
    landing = reach[::-1] if transpose else reach
    if len(landing) == len(dst.shape):
        windows.need_inside(dst_offset, landing, dst.shape, "destination")


def gather_row_tile(
    dst: TileType, src: TensorType, dst_offset: Dims, src_offset: Dims, shapes: StaticDims, transpose: bool = False,
    *, valid_shape: Dims | None = None,
) -> TileType:  # fmt: skip
    """``dst`` with rows of the tensor ``src`` copied in (spec ops 3)."""
    if dst.space not in (None, MemorySpace.Mat, MemorySpace.Vec):
        raise OperandValueError(f"dst is in {dst.space.name}; legal: Mat, Vec")
    _gather_row(dst, src, dst_offset, src_offset, shapes, transpose, valid_shape)
    return dst


def gather_row_tensor(
    acc: TensorType, src: TensorType, dst_offset: Dims, src_offset: Dims, shapes: StaticDims, transpose: bool = False,
    *, valid_shape: Dims | None = None,
) -> TensorType:  # fmt: skip
    """``acc`` with rows of ``src`` copied in (spec ops 3)."""
    _gather_row(acc, src, dst_offset, src_offset, shapes, transpose, valid_shape)
    return acc


define(
    "tile.load",
    load,
    promoted=("load",),
    kind="memory",
    spec="3",
    lowering=Lowering("tload", ("tensor", "offsets", "shapes", "result.valid")),
    summary="a window of a tensor as a tile",
)
define(
    "tile.store",
    store,
    promoted=("store",),
    kind="memory",
    spec="3",
    lowering=Lowering(
        "tstore", ("tile", "offsets", "tile.shape", "tile.valid"), {"atomic": "atomic"}, destination="output_tensor"
    ),
    summary="the valid region of a tile into a tensor",
)
define(
    "tile.move",
    move,
    promoted=("move",),
    kind="memory",
    spec="3",
    lowering=Lowering("tmov", ("tile",), may_share=False),
    summary="a copy in another memory",
)
define(
    "tile.extract",
    extract,
    kind="memory",
    spec="3",
    lowering=Lowering("textract", ("src", "index_row", "index_col"), may_share=False),
    summary="a window of a tile in another memory",
)
define("tensor.assemble", assemble_tensor, kind="transform", spec="3", summary="a window of a tensor replaced")
define(
    "tile.assemble",
    assemble_tile,
    kind="transform",
    spec="3",
    lowering=Lowering("tinsert", ("source", "offset.row", "offset.col"), destination="target"),
    expand=_blocks,
    summary="a window of a tile replaced",
)
define(
    "tensor.read",
    read_tensor,
    kind="memory",
    spec="3",
    tile_form="tile.read",
    lowering=Lowering("sload", ("tensor", "indices")),
    summary="one element",
)
define(
    "tile.read",
    read_tile,
    kind="memory",
    spec="3",
    lowering=Lowering("sload", ("tile", "indices")),
    summary="one element",
)
define(
    "tensor.write",
    write_tensor,
    kind="memory",
    spec="3",
    tile_form="tile.write",
    lowering=Lowering("sstore", ("indices", "value"), destination="tensor"),
    summary="one element replaced",
)
define(
    "tile.write",
    write_tile,
    kind="memory",
    spec="3",
    lowering=Lowering("sstore", ("indices", "value"), destination="tile"),
    summary="one element replaced",
)
define(
    "tensor.dim",
    dim,
    promoted=("dim",),
    kind="memory",
    spec="3",
    lowering=Lowering("dim", ("tensor", "axis")),
    summary="the run-time extent of an axis",
)
define(
    "tile.gather_row",
    gather_row_tile,
    kind="gather",
    spec="3",
    lowering=Lowering(
        "tgather_row",
        ("src", "dst_offset", "src_offset", "shapes", "valid_shape|shapes"),
        {"transpose": "transpose"},
        destination="dst",
        may_share=False,
    ),
    summary="a window of a tensor into a window of a tile",
)
define(
    "tensor.gather_row",
    gather_row_tensor,
    kind="gather",
    spec="3",
    tile_form="tile.gather_row",
    stays_in_memory=("src",),
    summary="a window of a tensor into a window of an on-chip accumulator",
)
