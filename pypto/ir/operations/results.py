"""Result types: promotion, broadcasting, and the constructors the type rules share (spec ops 1.5, 1.7, 1.10)."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TensorView, TileType, TileView
from pypto.ir.operations import dims
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.show import show

Shaped = TensorType | TileType


def promote(left: DataType, right: DataType) -> DataType:
    """Element dtype of a mixed pair: the float one, else the wider, else the signed one, else the left."""
    if left == right:
        return left
    if left.is_float() != right.is_float():
        return left if left.is_float() else right
    if left.get_bit() != right.get_bit():
        return left if left.get_bit() > right.get_bit() else right
    if left.is_int() and left.is_signed_int() != right.is_signed_int():
        return left if left.is_signed_int() else right
    return left


def broadcast(left: Sequence[Dim], right: Sequence[Dim]) -> tuple[Dim, ...]:
    """NumPy broadcasting of two shapes; ``ValueError`` names both."""
    rank = max(len(left), len(right))
    a, b = ((1,) * (rank - len(left)) + tuple(left)), ((1,) * (rank - len(right)) + tuple(right))
    result: list[Dim] = []
    for x, y in zip(a, b):
        if x == 1:
            result.append(y)
        elif y == 1 or not dims.differ(x, y):
            result.append(x)
        else:
            raise OperandValueError(
                f"shapes {dims.listing(left)} and {dims.listing(right)} do not broadcast: "
                "aligned from the right, each axis must be equal or 1"
            )
    return tuple(result)


def tile(
    shape: Sequence[int],
    dtype: DataType,
    space: MemorySpace | None = MemorySpace.Vec,
    valid: Sequence[Dim] | None = None,
    pad: int | None = None,
    blayout: int | None = None,
    slayout: int | None = None,
) -> TileType:
    """A tile type; a valid shape equal to the shape is left implicit."""
    partial = () if valid is None or dims.all_equal(valid, shape) else tuple(map(dims.simplify, valid))
    view = TileView(valid_shape=partial, pad=pad or None, blayout=blayout, slayout=slayout)
    return TileType(tuple(shape), dtype, space, None if view == TileView() else view)


def tensor(
    shape: Sequence[Dim],
    dtype: DataType,
    valid: Sequence[Dim] | None = None,
    stride: Sequence[Dim] = (),
    layout: TensorLayout = TensorLayout.ND,
    pad: int = 0,
) -> TensorType:
    """A tensor type; a valid shape equal to the shape is left implicit."""
    partial = () if valid is None or dims.all_equal(valid, shape) else tuple(map(dims.simplify, valid))
    view = TensorView(valid_shape=partial, stride=tuple(stride), layout=layout, pad=pad)
    return TensorType(tuple(shape), dtype, None if view == TensorView() else view)


def like(source: Shaped, dtype: DataType | None = None) -> Shaped:
    """A fresh value of the source's shape and valid shape."""
    if isinstance(source, TileType):
        return tile(source.shape, dtype or source.dtype, valid=source.valid_shape)
    return tensor(source.shape, dtype or source.dtype, valid=source.valid_shape)


def fresh(source: Shaped, shape: Sequence[Dim], dtype: DataType, valid: Sequence[Dim] | None = None) -> Shaped:
    """A new value of the source's level: a tile in ``Vec`` or a tensor."""
    if isinstance(source, TileType):
        return tile(static(shape), dtype, valid=valid)
    return tensor(shape, dtype, valid=valid)


def static(shape: Sequence[Dim]) -> tuple[int, ...]:
    """The shape as integers; ``ValueError`` when an axis is only known at run time."""
    known = [dims.constant(extent) for extent in shape]
    if None in known:
        raise OperandValueError(f"shape {dims.listing(shape)} must be static")
    return tuple(extent for extent in known if extent is not None)


def strides(tensor: TensorType) -> tuple[Dim, ...]:
    """Row-major strides, or those of a DN tensor (spec language 2.3)."""
    if tensor.view is not None and tensor.view.stride:
        return tensor.view.stride
    rank = len(tensor.shape)
    if tensor.layout is TensorLayout.DN and rank >= 2:
        outer = [dims.product(tensor.shape[axis + 1 :]) for axis in range(rank - 2)]
        return (*outer, 1, tensor.shape[-2])
    return row_major(tensor.shape)


def row_major(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Strides in elements of a packed row-major array."""
    return tuple(dims.product(shape[axis + 1 :]) for axis in range(len(shape)))


def swapped(values: Sequence[Dim], first: int, second: int) -> tuple[Dim, ...]:
    """The values with two of them exchanged."""
    result = list(values)
    result[first], result[second] = result[second], result[first]
    return tuple(result)


def shape_of(value: Expr | Call) -> tuple[int, ...]:
    """The static shape of a tile, or of a tensor held on chip."""
    if not isinstance(value.type, (TensorType, TileType)):
        raise OperandValueError(f"needs a tile, got a {show(value.type)}")
    return static(value.type.shape)


def dtype_of(value: Expr | Call) -> DataType:
    """The element dtype of a tile or tensor."""
    if not isinstance(value.type, (TensorType, TileType)):
        raise OperandValueError(f"needs a tile, got a {show(value.type)}")
    return value.type.dtype


# --- checks -----------------------------------------------------------------------------------------------------------


def fully_valid(source: Shaped) -> bool:
    """Whether the whole value is provably valid."""
    return dims.all_equal(source.valid_shape, source.shape)


def need_rank(source: Shaped, rank: int, name: str, at_least: bool = False) -> None:
    """``ValueError`` unless the operand has ``rank`` axes (or at least that many)."""
    found = len(source.shape)
    if found < rank if at_least else found != rank:
        wanted = f"at least {rank}" if at_least else str(rank)
        raise OperandValueError(f"{name} needs {wanted} axes, got a {show(source)}")


def need_dtype(source: Shaped, legal: Sequence[DataType], name: str) -> None:
    """``ValueError`` unless the operand's dtype is one of ``legal``."""
    if source.dtype not in legal:
        raise OperandValueError(f"{name} is {source.dtype.constant}; legal: {', '.join(d.constant for d in legal)}")


def need_same_dtype(left: Shaped, right: Shaped, names: tuple[str, str]) -> None:
    """``ValueError`` unless both operands have one dtype."""
    if left.dtype != right.dtype:
        raise OperandValueError(
            f"{names[0]} is {left.dtype.constant} and {names[1]} is {right.dtype.constant}; both must have one dtype"
        )


def need_same_shape(left: Shaped, right: Shaped, names: tuple[str, str]) -> None:
    """``ValueError`` when the shapes provably differ."""
    same_rank = len(left.shape) == len(right.shape)
    if not same_rank or any(map(dims.differ, left.shape, right.shape)):
        raise OperandValueError(
            f"{names[0]} has shape {dims.listing(left.shape)} and {names[1]} {dims.listing(right.shape)}; "
            "the shapes must be equal"
        )


def need_same_valid(left: Shaped, right: Shaped, names: tuple[str, str]) -> None:
    """``ValueError`` unless both valid shapes are provably equal."""
    if not dims.all_equal(left.valid_shape, right.valid_shape):
        raise OperandValueError(
            f"{names[0]} is valid in {dims.listing(left.valid_shape)} and {names[1]} in "
            f"{dims.listing(right.valid_shape)}; the valid shapes must be provably equal"
        )


def axis_of(axis: int, rank: int, name: str = "axis") -> int:
    """A possibly negative axis as 0 … rank-1."""
    if not -rank <= axis < rank:
        raise OperandValueError(f"{name} is {axis}; legal for {rank} axes: {-rank} to {rank - 1}")
    return axis % rank
