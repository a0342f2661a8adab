"""Matrix products on the cube unit (spec ops 12)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from pypto.ir.dtype import BF16, BOOL, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT32, DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Call, Const, Dim, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import Scalar
from pypto.ir.operations.parameters import AccumulatePhase
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define
from pypto.ir.operations.windows import positions

Condition = Annotated[Expr, Scalar((BOOL,), BOOL)]

_GEMV_DTYPES = (INT8, FP16, BF16, FP32)
_GEMV_ROWS = 16
_MX_BLOCK = 32
_MX_MULTIPLES = (("M", 16), ("K", 64), ("N", 32))


def accumulator_dtype(dtype: DataType) -> DataType:
    """Dtype of the accumulator for operands of ``dtype``: INT32 for integers, FP32 otherwise."""
    return INT32 if dtype.is_int() else FP32


def _need_inner(lhs: results.Shaped, rhs: results.Shaped, a: Sequence[Dim], b: Sequence[Dim]) -> None:
    if dims.differ(a[-1], b[-2]):
        raise OperandValueError(
            f"lhs {dims.listing(a)} has K = {dims.text(a[-1])} and rhs {dims.listing(b)} K = {dims.text(b[-2])}; "
            "the last axis of lhs must equal the second-last of rhs"
        )


def _need_valid_inner(lhs: TileType, rhs: TileType) -> None:
    if dims.less(rhs.valid_shape[-2], lhs.valid_shape[-1]):
        raise OperandValueError(
            f"rhs is valid in {dims.text(rhs.valid_shape[-2])} rows, lhs in {dims.text(lhs.valid_shape[-1])} columns; "
            "the sum runs over the valid columns of lhs"
        )


def _product(lhs: TileType, rhs: TileType) -> TileType:
    results.need_rank(lhs, 2, "lhs")
    results.need_rank(rhs, 2, "rhs")
    results.need_same_dtype(lhs, rhs, ("lhs", "rhs"))
    _need_inner(lhs, rhs, lhs.shape, rhs.shape)
    _need_valid_inner(lhs, rhs)
    valid = (lhs.valid_shape[0], rhs.valid_shape[1])
    return results.tile((lhs.shape[0], rhs.shape[1]), accumulator_dtype(lhs.dtype), MemorySpace.Acc, valid)


def _need_accumulator(acc: results.Shaped, shape: Sequence[Dim], valid: Sequence[Dim], dtype: DataType) -> None:
    if acc.dtype != dtype:
        hint = f"; give the first matmul out_dtype=pl.{dtype.constant}" if isinstance(acc, TensorType) else ""
        raise OperandValueError(f"acc is {acc.dtype.constant}, the accumulator is {dtype.constant}{hint}")
    if len(acc.shape) != len(shape) or any(map(dims.differ, acc.shape, shape)):
        raise OperandValueError(f"acc has shape {dims.listing(acc.shape)}, the product {dims.listing(shape)}")
    if any(map(dims.less, acc.valid_shape, valid)):
        raise OperandValueError(
            f"acc is valid in {dims.listing(acc.valid_shape)}, which does not cover the product's {dims.listing(valid)}"
        )


def _need_bias(bias: TileType, product: TileType) -> None:
    if bias.dtype != product.dtype:
        raise OperandValueError(f"bias is {bias.dtype.constant}, the accumulator is {product.dtype.constant}")
    if bias.shape != (1, product.shape[-1]):
        raise OperandValueError(f"bias must be [1, {product.shape[-1]}], got {dims.listing(bias.shape)}")


# --- tiles ------------------------------------------------------------------------------------------------------------


def _matmul(lhs: TileType, rhs: TileType) -> Type:
    return _product(lhs, rhs)


def _matmul_acc(acc: TileType, lhs: TileType, rhs: TileType, init_cond: Condition | None = None) -> Type:
    made = _product(lhs, rhs)
    _need_accumulator(acc, made.shape, made.valid_shape, made.dtype)
    return acc


def _matmul_into(acc: TileType, lhs: TileType, rhs: TileType) -> Type:
    return _matmul_acc(acc, lhs, rhs)


def _matmul_bias(lhs: TileType, rhs: TileType, bias: TileType) -> Type:
    made = _product(lhs, rhs)
    _need_bias(bias, made)
    return made


def _matmul_bias_into(acc: TileType, lhs: TileType, rhs: TileType, bias: TileType) -> Type:
    _matmul_bias(lhs, rhs, bias)
    return _matmul_acc(acc, lhs, rhs)


def _batched(lhs: results.Shaped, rhs: results.Shaped, a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    """Shape of the product of two stacks of matrices: leading axes broadcast."""
    _need_inner(lhs, rhs, a, b)
    return (*results.broadcast(a[:-2], b[:-2]), a[-2], b[-1])


def _batch_matmul(lhs: TileType, rhs: TileType) -> TileType:
    for value, name in ((lhs, "lhs"), (rhs, "rhs")):
        results.need_rank(value, 2, name, at_least=True)
    results.need_same_dtype(lhs, rhs, ("lhs", "rhs"))
    shape = results.static(_batched(lhs, rhs, lhs.shape, rhs.shape))
    _need_valid_inner(lhs, rhs)
    valid = (*shape[:-2], lhs.valid_shape[-2], rhs.valid_shape[-1])
    return results.tile(shape, accumulator_dtype(lhs.dtype), MemorySpace.Acc, valid)


def _batch_matmul_acc(acc: TileType, lhs: TileType, rhs: TileType) -> Type:
    made = _batch_matmul(lhs, rhs)
    _need_accumulator(acc, made.shape, made.valid_shape, made.dtype)
    return acc


def _row_product(lhs: TileType, rhs: TileType) -> TileType:
    results.need_dtype(lhs, _GEMV_DTYPES, "lhs")
    if lhs.shape[0] != 1:
        raise OperandValueError(f"lhs must have one row, got {dims.listing(lhs.shape)}")
    made = _product(lhs, rhs)
    return results.tile((_GEMV_ROWS, made.shape[1]), made.dtype, MemorySpace.Acc, (1, made.valid_shape[1]))


def _gemv(lhs: TileType, rhs: TileType, acc_phase: AccumulatePhase = "unspecified") -> Type:
    return _row_product(lhs, rhs)


def _gemv_acc(acc: TileType, lhs: TileType, rhs: TileType, acc_phase: AccumulatePhase = "unspecified") -> Type:
    made = _row_product(lhs, rhs)
    _need_accumulator(acc, made.shape, made.valid_shape, made.dtype)
    results.need_same_valid(acc, made, ("acc", "the product"))
    return acc


def _gemv_bias(lhs: TileType, rhs: TileType, bias: TileType, acc_phase: AccumulatePhase = "unspecified") -> Type:
    made = _row_product(lhs, rhs)
    _need_bias(bias, made)
    return made


# --- block-scaled products --------------------------------------------------------------------------------------------


def _scaled_product(lhs: TileType, lhs_scale: TileType, rhs: TileType, rhs_scale: TileType) -> TileType:
    for value, name in ((lhs, "lhs"), (rhs, "rhs")):
        results.need_rank(value, 2, name)
        results.need_dtype(value, (FP8E4M3FN,), name)
    _need_inner(lhs, rhs, lhs.shape, rhs.shape)
    (rows, inner), cols = lhs.shape, rhs.shape[1]
    for (name, multiple), extent in zip(_MX_MULTIPLES, (rows, inner, cols)):
        if extent % multiple:
            raise OperandValueError(f"{name} is {extent}; it must be a multiple of {multiple}")
    blocks = -(-inner // _MX_BLOCK)
    for scale, shape, name in ((lhs_scale, (rows, blocks), "lhs_scale"), (rhs_scale, (blocks, cols), "rhs_scale")):
        results.need_dtype(scale, (FP8E8M0,), name)
        if scale.shape != shape:
            raise OperandValueError(f"{name} must be {dims.listing(shape)}, got a {show(scale)}")
    _need_valid_inner(lhs, rhs)
    return results.tile((rows, cols), FP32, MemorySpace.Acc, (lhs.valid_shape[0], rhs.valid_shape[1]))


def _matmul_mx(lhs: TileType, lhs_scale: TileType, rhs: TileType, rhs_scale: TileType) -> Type:
    return _scaled_product(lhs, lhs_scale, rhs, rhs_scale)


def _matmul_mx_acc(acc: TileType, lhs: TileType, lhs_scale: TileType, rhs: TileType, rhs_scale: TileType) -> Type:
    made = _scaled_product(lhs, lhs_scale, rhs, rhs_scale)
    _need_accumulator(acc, made.shape, made.valid_shape, FP32)
    return acc


def _matmul_mx_bias(lhs: TileType, lhs_scale: TileType, rhs: TileType, rhs_scale: TileType, bias: TileType) -> Type:
    made = _scaled_product(lhs, lhs_scale, rhs, rhs_scale)
    _need_bias(bias, made)
    return made


# --- tensors ----------------------------------------------------------------------------------------------------------


def _swapped(value: TensorType, swap: bool, name: str) -> TensorType:
    if not swap:
        return value
    results.need_rank(value, 2, f"{name} with {name[0]}_trans=True", at_least=True)
    shape, valid = list(value.shape), list(value.valid_shape)
    shape[-2:], valid[-2:] = shape[:-3:-1], valid[:-3:-1]
    return results.tensor(shape, value.dtype, valid)


def _tensor_product(lhs: TensorType, rhs: TensorType, dtype: DataType) -> TensorType:
    if len(lhs.shape) == 1 or len(rhs.shape) == 1:
        return _with_vector(lhs, rhs, dtype)
    shape = _batched(lhs, rhs, lhs.shape, rhs.shape)
    return results.tensor(shape, dtype, (*shape[:-2], lhs.valid_shape[-2], rhs.valid_shape[-1]))


def _with_vector(lhs: TensorType, rhs: TensorType, dtype: DataType) -> TensorType:
    """``[K]·[K]``, matrix·vector and vector·matrix: the vector is a matrix whose extra axis is dropped again."""
    a = lhs.shape if len(lhs.shape) > 1 else (1, *lhs.shape)
    b = rhs.shape if len(rhs.shape) > 1 else (*rhs.shape, 1)
    shape = list(_batched(lhs, rhs, a, b))
    if len(rhs.shape) == 1:
        del shape[-1]
    if len(lhs.shape) == 1:
        del shape[-1 if len(rhs.shape) == 1 else -2]
    return results.tensor(shape, dtype)


def _tensor_matmul(
    lhs: TensorType,
    rhs: TensorType,
    out_dtype: DataType | None = None,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
) -> Type:
    if lhs.dtype != rhs.dtype:
        raise OperandValueError(
            f"lhs is {lhs.dtype.constant} and rhs is {rhs.dtype.constant}; the cube takes equal dtypes, use pl.cast"
        )
    dtype = out_dtype or lhs.dtype
    return _tensor_product(_swapped(lhs, a_trans, "a (lhs)"), _swapped(rhs, b_trans, "b (rhs)"), dtype)


def _tensor_matmul_acc(
    acc: TensorType,
    lhs: TensorType,
    rhs: TensorType,
    a_trans: bool = False,
    b_trans: bool = False,
    init_cond: Condition | None = None,
) -> Type:
    results.need_same_dtype(lhs, rhs, ("lhs", "rhs"))
    made = _tensor_product(
        _swapped(lhs, a_trans, "a (lhs)"), _swapped(rhs, b_trans, "b (rhs)"), accumulator_dtype(lhs.dtype)
    )
    if init_cond is not None and len(made.shape) > 2:
        raise OperandValueError("init_cond is for two axes")
    _need_accumulator(acc, made.shape, made.valid_shape, made.dtype)
    return acc


# --- staging ----------------------------------------------------------------------------------------------------------

_BUFFERS = {
    "lhs": MemorySpace.Left, "rhs": MemorySpace.Right, "bias": MemorySpace.Bias, "lhs_scale": MemorySpace.LeftScale,
    "rhs_scale": MemorySpace.RightScale,
}  # fmt: skip


def _in_mat(value: Expr, b: Builder) -> Expr:
    """An operand in L1, from where the cube's buffers are filled."""
    space = value.type.space if isinstance(value.type, TileType) else None
    if space in (MemorySpace.Mat, *_BUFFERS.values()):
        return value
    return b.tile("move", tile=value, target_memory=MemorySpace.Mat)


def _stage(name: str, call: Call, b: Builder) -> Expr | None:
    """Operands that are not where the cube reads them are moved there (spec ops 12)."""
    given = dict(call.arguments)
    for operand, space in _BUFFERS.items():
        value = given.get(operand)
        if isinstance(value, Expr) and isinstance(value.type, TileType) and value.type.space is not space:
            given[operand] = b.tile("move", tile=_in_mat(value, b), target_memory=space)
    return None if all(given[key] is call.arguments[key] for key in given) else b.tile(name, **given)


# --- expansions -------------------------------------------------------------------------------------------------------


def _accumulate(call: Call, b: Builder) -> Expr | None:
    """``init_cond``: the accumulator is overwritten when it is true, added to when it is false."""
    condition = call.arguments["init_cond"]
    if condition is None:
        return _stage("matmul_acc", call, b)
    given = {key: call.arguments[key] for key in ("acc", "lhs", "rhs")}
    if isinstance(condition, Const):
        return b.tile("matmul_into" if condition.value else "matmul_acc", **given)
    return b.either(condition, lambda: b.tile("matmul_into", **given), lambda: b.tile("matmul_acc", **given))


def _batch(name: str, call: Call, b: Builder) -> Expr | None:
    """One product per batch index; leading axes of extent 1 repeat."""
    given, shape = call.arguments, shape_of(call)
    if len(shape) == 2:
        return b.tile(name, **given)
    lhs, rhs = _in_mat(given["lhs"], b), _in_mat(given["rhs"], b)
    acc = given.get("acc") or b.create_tile(shape, dtype_of(call), MemorySpace.Acc)
    step = "matmul_acc" if "acc" in given else "matmul_into"
    for at in positions(shape[:-2]):
        b.tile(step, acc=_matrix(acc, at, b), lhs=_matrix(lhs, at, b), rhs=_matrix(rhs, at, b))
    return acc


def _matrix(value: Expr, at: Sequence[int], b: Builder) -> Expr:
    """The matrix of a stack at a batch index, with broadcast axes at 0."""
    shape = shape_of(value)
    lead = len(shape) - 2
    if lead == 0:
        return value
    own = [index if extent > 1 else 0 for index, extent in zip(at[len(at) - lead :], shape)]
    part = b.tile("slice", tile=value, shape=(*(1,) * lead, *shape[-2:]), offset=(*own, 0, 0))
    return b.tile("reshape", tile=part, shape=shape[-2:])


# --- rows -------------------------------------------------------------------------------------------------------------

_MM: dict[str, Any] = {"kind": "matmul", "spec": "12"}
define("tensor.matmul", _tensor_matmul, **_MM, summary="matrix product")
define("tensor.matmul_acc", _tensor_matmul_acc, **_MM, summary="acc += matrix product")
define(
    "tile.matmul",
    _matmul,
    **_MM,
    lowering=Lowering("tmatmul", ("lhs", "rhs")),
    expand=partial(_stage, "matmul"),
    summary="matrix product",
)
define(
    "tile.matmul_acc",
    _matmul_acc,
    **_MM,
    expand=_accumulate,
    summary="acc += matrix product",
    lowering=Lowering("tmatmul_acc", ("lhs", "rhs"), destination="acc"),
)
define(
    "tile.matmul_into",
    _matmul_into,
    **_MM,
    lowering=Lowering("tmatmul", ("lhs", "rhs"), destination="acc"),
    expand=partial(_stage, "matmul_into"),
    summary="acc = matrix product, written by the expansion of matmul_acc",
)
define(
    "tile.matmul_bias",
    _matmul_bias,
    promoted=("matmul_bias",),
    **_MM,
    lowering=Lowering("tmatmul_bias", ("lhs", "rhs", "bias")),
    expand=partial(_stage, "matmul_bias"),
    summary="matrix product + bias[0,j]",
)
define(
    "tile.matmul_bias_into",
    _matmul_bias_into,
    **_MM,
    lowering=Lowering("tmatmul_bias", ("lhs", "rhs", "bias"), destination="acc"),
    expand=partial(_stage, "matmul_bias_into"),
    summary="acc = matrix product + bias[0,j], one band of a larger product",
)
define(
    "tile.batch_matmul", _batch_matmul, **_MM, expand=partial(_batch, "matmul"), summary="one product per batch index"
)
define(
    "tile.batch_matmul_acc",
    _batch_matmul_acc,
    **_MM,
    expand=partial(_batch, "matmul_acc"),
    summary="acc += one product per batch index",
)
define(
    "tile.gemv",
    _gemv,
    promoted=("gemv",),
    **_MM,
    lowering=Lowering("tgemv", ("lhs", "rhs")),
    expand=partial(_stage, "gemv"),
    summary="product of one row and a matrix",
)
define(
    "tile.gemv_acc",
    _gemv_acc,
    promoted=("gemv_acc",),
    **_MM,
    expand=partial(_stage, "gemv_acc"),
    summary="acc += product of one row and a matrix",
    lowering=Lowering("tgemv_acc", ("lhs", "rhs"), destination="acc"),
)
define(
    "tile.gemv_bias",
    _gemv_bias,
    promoted=("gemv_bias",),
    **_MM,
    expand=partial(_stage, "gemv_bias"),
    summary="product of one row and a matrix + bias",
    lowering=Lowering("tgemv_bias", ("lhs", "rhs", "bias")),
)

_SCALED = ("lhs", "lhs_scale", "rhs", "rhs_scale")
define(
    "tile.matmul_mx",
    _matmul_mx,
    promoted=("matmul_mx",),
    kind="matmul",
    spec="12.2",
    lowering=Lowering("tmatmul_mx", _SCALED),
    expand=partial(_stage, "matmul_mx"),
    summary="product with a power of two per 32 elements of K",
)
define(
    "tile.matmul_mx_acc",
    _matmul_mx_acc,
    promoted=("matmul_mx_acc",),
    kind="matmul",
    spec="12.2",
    lowering=Lowering("tmatmul_mx_acc", _SCALED, destination="acc"),
    expand=partial(_stage, "matmul_mx_acc"),
    summary="acc += block-scaled product",
)
define(
    "tile.matmul_mx_bias",
    _matmul_mx_bias,
    promoted=("matmul_mx_bias",),
    kind="matmul",
    spec="12.2",
    lowering=Lowering("tmatmul_mx_bias", (*_SCALED, "bias")),
    expand=partial(_stage, "matmul_mx_bias"),
    summary="block-scaled product + bias[0,j]",
)
