"""Tiles handed between the cube core and the two vector lanes of a cluster (spec ops 17)."""

from __future__ import annotations

from typing import Annotated, Any

from pypto.ir.dtype import INDEX, INT32, DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Binary, Call, Cast, Dim, Expr, NoneType, ScalarType, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandTypeError, OperandValueError, OutsideRegionError
from pypto.ir.operations.kinds import Scalar
from pypto.ir.operations.parameters import StaticDims
from pypto.ir.operations.row import Lowering
from pypto.ir.operations.table import define

AUTO = -1
"""``base`` of a reserved buffer that the memory planner places."""

_ROWS, _COLUMNS = 1, 2
_LANES = 2
_SPLITS = range(5)
Address = Annotated[Expr, Scalar((), INT32)]


def _need_split(split: int) -> None:
    if split not in _SPLITS:
        raise OperandValueError(f"split is {split}; legal: 0 whole, 1 rows, 2 columns, 3 or 4 for odd extents")


# --- hand-written rings -----------------------------------------------------------------------------------------------


def _push_to_aiv(tile: TileType, *, split: int, lane_stride: int | None = None, id: int | None = None) -> Type:
    _need_split(split)
    return NoneType()


def _push_to_aic(tile: TileType, *, split: int, id: int | None = None) -> Type:
    _need_split(split)
    return NoneType()


def _popped(shape: tuple[int, ...] | None, dtype: DataType | None, split: int, space: MemorySpace) -> TileType:
    _need_split(split)
    if shape is None or dtype is None:
        raise OperandTypeError("needs shape= and dtype=, or an annotation on the variable it is assigned to")
    return results.tile(shape, dtype, space)


def _pop_from_aic(
    *, shape: StaticDims | None = None, dtype: DataType | None = None, split: int = 0, lane_stride: int | None = None,
    id: int | None = None,
) -> Type:  # fmt: skip
    return _popped(shape, dtype, split, MemorySpace.Vec)


def _pop_from_aiv(
    *, shape: StaticDims | None = None, dtype: DataType | None = None, split: int = 0, id: int | None = None
) -> Type:
    return _popped(shape, dtype, split, MemorySpace.Mat)


def _free(tile: TileType, *, split: int | None = None, id: int | None = None) -> Type:
    return NoneType()


def _initialize(
    c2v_consumer_buf: Address = 0, v2c_consumer_buf: Address = 0, *, dir_mask: int, slot_size: int,  # type: ignore[assignment]
    slot_num: int | None = None, local_slot_num: int | None = None, id: int | None = None,
) -> Type:  # fmt: skip
    if dir_mask not in (1, 2, 3):
        raise OperandValueError(f"dir_mask is {dir_mask}; legal: 1 cube to vector, 2 vector to cube, 3 both")
    for name, value in (("slot_size", slot_size), ("slot_num", slot_num), ("local_slot_num", local_slot_num)):
        if value is not None and value <= 0:
            raise OperandValueError(f"{name} is {value}; it must be positive")
    return NoneType()


def _reserve(*, name: str, size: int, base: int = AUTO) -> Type:
    if size <= 0:
        raise OperandValueError(f"size is {size} bytes; it must be positive")
    return ScalarType(INT32)


def _import_peer(*, name: str, peer_func: Any) -> Type:
    return ScalarType(INT32)


# --- regions ----------------------------------------------------------------------------------------------------------


def _need_region(value: results.Shaped, split: int | None) -> int:
    if split is None:
        raise OutsideRegionError("is legal only inside 'for lane in pl.split_aiv(2, mode=...)'")
    if split not in (0, _ROWS, _COLUMNS):
        raise OperandValueError(f"split is {split}; legal: 0 whole, 1 rows, 2 columns")
    if isinstance(value, TensorType) and value.distributed:
        raise OperandValueError("a distributed tensor cannot cross between the cores of a cluster")
    results.need_rank(value, 2, "x")
    return split


def _at(value: results.Shaped, axis: int, shape: Dim, valid: Dim, space: MemorySpace) -> results.Shaped:
    shapes, valids = list(value.shape), list(value.valid_shape)
    shapes[axis], valids[axis] = shape, valid
    if isinstance(value, TensorType):
        return results.tensor(shapes, value.dtype, valids)
    return results.tile(results.static(shapes), value.dtype, space, valids)


def lane_index() -> Call:
    """The lane this code runs on, as an expression."""
    return Call("tile.get_subblock_idx", {}, ScalarType(INDEX))


def _shard(x: TileType | TensorType, *, split: int | None = None) -> Type:
    axis = _need_region(x, split) - 1
    if axis < 0:
        return _at(x, 0, x.shape[0], x.valid_shape[0], MemorySpace.Vec)
    half = dims.ceil_div(x.shape[axis], _LANES)
    if dims.equal(x.valid_shape[axis], dims.mul(half, _LANES)):
        return _at(x, axis, half, half, MemorySpace.Vec)
    rest = dims.sub(x.valid_shape[axis], Binary("*", lane_index(), dims.as_index(half), INDEX))
    return _at(x, axis, half, dims.minimum(dims.maximum(rest, 0), half), MemorySpace.Vec)


def _rejoin(x: TileType | TensorType, *, split: int | None = None) -> Type:
    axis = _need_region(x, split) - 1
    if axis < 0:
        return _at(x, 0, x.shape[0], x.valid_shape[0], MemorySpace.Mat)
    half, whole = x.shape[axis], dims.mul(x.shape[axis], _LANES)
    first, second = (_on_lane(x.valid_shape[axis], lane) for lane in range(_LANES))
    if dims.differ(first, half) and dims.differ(second, 0):
        raise OperandValueError(
            f"lane 0 holds {dims.text(first)} of {dims.text(half)} valid cells along axis {axis}, so the halves do not "
            "abut; use pl.fillpad or pl.set_validshape first"
        )
    return _at(x, axis, whole, dims.add(first, second), MemorySpace.Mat)


def _on_lane(value: Dim, lane: int) -> Dim:
    """An extent with the lane index replaced by a number."""
    if isinstance(value, Call) and value.op.endswith(".get_subblock_idx"):
        return lane
    if isinstance(value, Cast):
        return _on_lane(value.operand, lane)
    if not isinstance(value, Binary):
        return value
    left, right = _on_lane(value.left, lane), _on_lane(value.right, lane)
    rebuild = {"min": dims.minimum, "max": dims.maximum, "+": dims.add, "-": dims.sub, "*": dims.mul}.get(value.op)
    if rebuild is not None:
        return rebuild(left, right)
    return Binary(value.op, dims.as_index(left), dims.as_index(right), value.dtype)


# --- rows -------------------------------------------------------------------------------------------------------------

_ROW: dict[str, Any] = {"kind": "crosscore", "spec": "17"}
_RING = {"split": "split", "id": "id"}


def _both(name: str, rule: Any, summary: str, lowering: Lowering | None = None, tile: bool = False) -> None:
    """The ``system`` row, promoted to ``pl.``, and the same name under ``pl.tile`` where it has one."""
    define(f"system.{name}", rule, promoted=(name,), **_ROW, summary=summary, lowering=lowering)
    if tile:
        define(f"tile.{name}", rule, **_ROW, summary=summary, lowering=lowering)


_both(
    "tpush_to_aiv",
    _push_to_aiv,
    "hand a tile to the vector lanes",
    tile=True,
    lowering=Lowering("tpush_to_aiv", ("tile",), {**_RING, "lane_stride": "lane_stride"}),
)
_both("tpush_to_aic", _push_to_aic, "hand a tile to the cube", Lowering("tpush_to_aic", ("tile",), _RING), tile=True)
_both(
    "tpop_from_aic",
    _pop_from_aic,
    "receive a tile from the cube",
    tile=True,
    lowering=Lowering("tpop_from_aic", (), {**_RING, "lane_stride": "lane_stride"}),
)
_both(
    "tpop_from_aiv",
    _pop_from_aiv,
    "receive a tile from the vector lanes",
    Lowering("tpop_from_aiv", (), _RING),
    tile=True,
)
_both(
    "tfree_to_aic", _free, "give the slot of a popped tile back to the cube", Lowering("tfree_to_aic", ("tile",), _RING)
)
_both(
    "tfree_to_aiv",
    _free,
    "give the slot of a popped tile back to the lanes",
    Lowering("tfree_to_aiv", ("tile",), _RING),
)
_both("aic_initialize_pipe", _initialize, "declare the ring of the cube side")
_both("aiv_initialize_pipe", _initialize, "declare the ring of a vector lane")
_both("reserve_buffer", _reserve, "reserve a named buffer for a ring; its base address")
_both("import_peer_buffer", _import_peer, "base address of a buffer that another function reserved")
for _level in ("tensor", "tile"):
    define(f"{_level}.aiv_shard", _shard, **_ROW, summary="each lane's part of a cube value, inside pl.split_aiv")
    define(f"{_level}.aic_gather", _rejoin, **_ROW, summary="the lanes' parts joined for the cube, inside pl.split_aiv")
