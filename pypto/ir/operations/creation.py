"""Creation: buffers, fills, index ramps, triangles, random words (spec ops 2)."""

from __future__ import annotations

from pypto.ir.dtype import BF16, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8, UINT16, UINT32, DataType
from pypto.ir.enums import MemorySpace, TensorLayout, TileLayout
from pypto.ir.nodes import Const, Dim, Expr, OpaqueType, TensorType, TileType
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import Dims, OffsetScalar, PositiveDims, StaticDims, Word32
from pypto.ir.operations.row import Lowering
from pypto.ir.operations.table import define

_RAMP_DTYPES = (INT16, INT32, UINT16, UINT32)
_TRIANGLE_DTYPES = (INT8, UINT8, INT16, UINT16, INT32, UINT32, FP16, BF16, FP32)
_RANDOM_ROUNDS = (7, 10)
_LARGEST_EXACT_FILL = 2**53


def create_tensor(
    shape: PositiveDims,
    dtype: DataType,
    layout: TensorLayout = TensorLayout.ND,
    manual_dep: bool = False,
    init_value: float | None = None,
) -> TensorType:
    """An uninitialised tensor of ``shape``, or one filled with ``init_value`` (spec ops 2)."""
    if init_value is not None:
        if init_value != init_value or abs(init_value) == float("inf"):
            raise OperandValueError(f"init_value is {init_value}; it must be finite")
        if dtype.is_int() and isinstance(init_value, float) and not init_value.is_integer():
            raise OperandValueError(f"init_value is {init_value}, which {dtype.constant} cannot hold")
        if isinstance(init_value, int) and abs(init_value) > _LARGEST_EXACT_FILL:
            raise OperandValueError(f"init_value is {init_value}; the largest magnitude is 2**53")
    return results.tensor(shape, dtype, layout=layout)


def create_tile(
    shape: StaticDims,
    dtype: DataType,
    target_memory: MemorySpace = MemorySpace.Vec,
    transpose: bool | None = None,
    *,
    flat_layout: bool | None = None,
) -> TileType:
    """An uninitialised tile of ``shape`` in ``target_memory`` (spec ops 2)."""
    if target_memory in (MemorySpace.LeftScale, MemorySpace.RightScale, MemorySpace.DDR):
        raise OperandValueError(
            f"target_memory is {target_memory.name}; scale buffers are filled with pl.move, GM with pl.create_tensor"
        )
    if transpose and (target_memory is not MemorySpace.Mat or len(shape) != 2):
        raise OperandValueError("transpose=True is for a Mat tile with two axes")
    if flat_layout and (target_memory is not MemorySpace.Mat or transpose):
        raise OperandValueError("flat_layout=True is for a Mat tile without transpose")
    if transpose:
        return results.tile(shape, dtype, target_memory, blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    if flat_layout:
        return results.tile(shape, dtype, target_memory, blayout=TileLayout.row_major, slayout=TileLayout.none_box)
    return results.tile(shape, dtype, target_memory)


def create_l1(shape: StaticDims, dtype: DataType, transpose: bool = False) -> TensorType:
    """An uninitialised tensor of ``shape`` that lives in the L1 buffer (spec ops 2)."""
    return results.tensor(shape, dtype)


def _fill_value(value: float, dtype: DataType) -> None:
    if dtype.is_int() and (value != value or abs(value) == float("inf")):
        raise OperandValueError(f"value is {value}, which {dtype.constant} cannot hold")


def full_tensor(shape: PositiveDims, dtype: DataType, value: float) -> TensorType:
    """A tensor of ``shape`` that holds ``value`` everywhere (spec ops 2)."""
    _fill_value(value, dtype)
    return results.tensor(shape, dtype)


def full_tile(shape: StaticDims, dtype: DataType, value: float) -> TileType:
    """A tile of ``shape`` that holds ``value`` everywhere (spec ops 2)."""
    _fill_value(value, dtype)
    return results.tile(shape, dtype)


def _ramp(start: Expr, shape: tuple[Dim, ...], dtype: DataType) -> None:
    if dtype not in _RAMP_DTYPES:
        raise OperandValueError(f"dtype is {dtype.constant}; legal: {', '.join(d.constant for d in _RAMP_DTYPES)}")
    if any(extent != 1 for extent in shape[:-1]):
        raise OperandValueError(f"shape is {dims.listing(shape)}; every axis before the last must be 1")
    if shape[-1] == 1:
        raise OperandValueError(f"shape is {dims.listing(shape)}; the last axis must be longer than 1")
    found = scalar_dtype(start)
    if found != dtype and not (isinstance(start, Const) and found in (INDEX, INT32)):
        raise OperandValueError(f"start is {found.constant} and dtype is {dtype.constant}; convert with pl.cast")


def ramp_tensor(start: Word32, shape: PositiveDims, dtype: DataType = INT32, descending: bool = False) -> TensorType:
    """A tensor that counts up or down from ``start`` in steps of one (spec ops 2)."""
    _ramp(start, shape, dtype)
    return results.tensor(shape, dtype)


def ramp_tile(start: Word32, shape: StaticDims, dtype: DataType = INT32, descending: bool = False) -> TileType:
    """A tile that counts up or down from ``start`` in steps of one (spec ops 2)."""
    _ramp(start, shape, dtype)
    return results.tile(shape, dtype)


def triangle(
    diagonal: Word32,
    shape: StaticDims,
    valid_shape: Dims | None = None,
    dtype: DataType = INT32,
    upper: bool = False,
) -> TileType:
    """A mask of ones on one side of ``diagonal`` and zeros elsewhere (spec ops 2)."""
    if dtype not in _TRIANGLE_DTYPES:
        raise OperandValueError(f"dtype is {dtype.constant}; legal: {', '.join(d.constant for d in _TRIANGLE_DTYPES)}")
    if scalar_dtype(diagonal) != INT32:
        raise OperandValueError(f"diagonal must be an int or an INT32 scalar, got {scalar_dtype(diagonal).constant}")
    return _matrix(shape, dtype, valid_shape)


def _matrix(shape: tuple[int, ...], dtype: DataType, valid: tuple[Dim, ...] | None) -> TileType:
    if len(shape) != 2:
        raise OperandValueError(f"shape is {dims.listing(shape)}; two axes are needed")
    if valid is not None:
        need_within(valid, shape)
    return results.tile(shape, dtype, valid=valid)


def need_within(valid: tuple[Dim, ...], shape: tuple[Dim, ...]) -> None:
    """``ValueError`` when a requested valid shape has another rank or provably leaves the shape."""
    if len(valid) != len(shape):
        raise OperandValueError(f"valid_shape {dims.listing(valid)} and shape {dims.listing(shape)} differ in rank")
    if any(dims.less(extent, v) or dims.less(v, 0) for v, extent in zip(valid, shape)):
        raise OperandValueError(f"valid_shape {dims.listing(valid)} does not lie in the shape {dims.listing(shape)}")


def _random(dtype: DataType, rounds: int, words: tuple[Expr, ...]) -> None:
    if dtype not in (INT32, UINT32):
        raise OperandValueError(f"dtype is {dtype.constant}; legal: INT32, UINT32")
    if rounds not in _RANDOM_ROUNDS:
        raise OperandValueError(f"rounds is {rounds}; legal: 7, 10")
    for word in words:
        if scalar_dtype(word).get_bit() != 32 and not isinstance(word, Const):
            raise OperandValueError(f"keys and counters are 32-bit scalars, got {scalar_dtype(word).constant}")


def random_tensor(
    key0: Word32, key1: Word32, counter0: Word32, counter1: Word32, counter2: Word32, counter3: Word32,
    shape: PositiveDims, dtype: DataType = UINT32, rounds: int = 10,
) -> TensorType:  # fmt: skip
    """A matrix of counter-based random words from a two-word key and a four-word counter (spec ops 2)."""
    _random(dtype, rounds, (key0, key1, counter0, counter1, counter2, counter3))
    if len(shape) != 2:
        raise OperandValueError(f"shape is {dims.listing(shape)}; two axes are needed")
    return results.tensor(shape, dtype)


def random_tile(
    key0: Word32, key1: Word32, counter0: Word32, counter1: Word32, counter2: Word32, counter3: Word32,
    shape: StaticDims, valid_shape: Dims | None = None, dtype: DataType = UINT32, rounds: int = 10,
) -> TileType:  # fmt: skip
    """A tile of counter-based random words from a two-word key and a four-word counter (spec ops 2)."""
    _random(dtype, rounds, (key0, key1, counter0, counter1, counter2, counter3))
    return _matrix(shape, dtype, valid_shape)


def alloc_tile(memory_space: MemorySpace, size: OffsetScalar, *, pinned: bool = False) -> OpaqueType:
    """Storage of ``size`` bytes in an on-chip memory space; the text form of a placed tile."""
    return OpaqueType("Ptr")


def alloc_tensor(memory_space: MemorySpace, size: OffsetScalar) -> OpaqueType:
    """Storage of ``size`` bytes in global memory; the text form of a placed tensor."""
    return OpaqueType("Ptr")


_KEYS = ("key0", "key1", "counter0", "counter1", "counter2", "counter3")

define(
    "tensor.create",
    create_tensor,
    aliases=("create_tensor",),
    promoted=("create_tensor",),
    kind="memory",
    spec="2",
    summary="a new tensor, uninitialised or filled with init_value",
)
define(
    "tile.create",
    create_tile,
    aliases=("create_tile",),
    promoted=("create_tile",),
    kind="memory",
    spec="2",
    summary="a new uninitialised tile",
)
define(
    "tensor.create_l1",
    create_l1,
    promoted=("create_l1",),
    kind="memory",
    spec="2",
    summary="a tensor-typed value held in L1, filled by gather_row",
)
define(
    "tensor.full",
    full_tensor,
    promoted=("full",),
    kind="memory",
    spec="2",
    tile_form="tile.full",
    summary="every element = value",
)
define(
    "tile.full",
    full_tile,
    kind="memory",
    spec="2",
    lowering=Lowering("texpands", ("value",)),
    summary="every element = value",
)
define(
    "tensor.ci",
    ramp_tensor,
    aliases=("arange",),
    promoted=("arange",),
    kind="memory",
    spec="2",
    tile_form="tile.ci",
    summary="start, start + 1, ... (or descending) along the last axis",
)
define(
    "tile.ci",
    ramp_tile,
    aliases=("arange",),
    kind="memory",
    spec="2",
    lowering=Lowering("tci", ("start",), {"descending": "descending"}),
    summary="start, start + 1, ... (or descending) along the last axis",
)
define(
    "tile.tri",
    triangle,
    promoted=("tri",),
    kind="memory",
    spec="2",
    lowering=Lowering("ttri", ("diagonal",), {"upper": "upper"}),
    summary="1 on and below (upper: above) a diagonal, 0 elsewhere",
)
define(
    "tensor.random",
    random_tensor,
    promoted=("random",),
    kind="memory",
    spec="2.1",
    tile_form="tile.random",
    summary="words of a counter-based generator",
)
define(
    "tile.random",
    random_tile,
    kind="memory",
    spec="2.1",
    lowering=Lowering("trandom", _KEYS, {"rounds": "rounds"}),
    summary="words of a counter-based generator",
)
define("tile.alloc", alloc_tile, kind="memory", spec="2", summary="buffer declaration of the memory planner")
define("tensor.alloc", alloc_tensor, kind="memory", spec="2", summary="buffer declaration of the memory planner")
