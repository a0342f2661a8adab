"""Small on-core arrays with one axis (spec ops 18)."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import BOOL, TASK_ID, DataType
from pypto.ir.nodes import ArrayType, ScalarType, Type
from pypto.ir.operations import dims
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import Axis, ElementScalar, OffsetScalar
from pypto.ir.operations.row import Lowering
from pypto.ir.operations.table import define


def _create(extent: Axis, dtype: DataType) -> Type:
    if extent <= 0:
        raise OperandValueError(f"extent is {extent}; it must be positive")
    if not dtype.is_int() and dtype not in (BOOL, TASK_ID):
        raise OperandValueError(f"dtype is {dtype.constant}; legal: integers, BOOL, TASK_ID")
    return ArrayType(extent, dtype)


def _need_slot(array: ArrayType, index: Any) -> None:
    known = dims.constant(index)
    if known is not None and not 0 <= known < array.extent:
        raise OperandValueError(f"index is {known}; legal for an array of {array.extent}: 0 to {array.extent - 1}")


def _get(array: ArrayType, index: OffsetScalar) -> Type:
    _need_slot(array, index)
    return ScalarType(array.dtype)


def _update(array: ArrayType, index: OffsetScalar, value: ElementScalar) -> Type:
    _need_slot(array, index)
    if scalar_dtype(value) != array.dtype:
        raise OperandValueError(f"value is {scalar_dtype(value).constant}, the elements are {array.dtype.constant}")
    return array


_ROW: dict[str, Any] = {"kind": "array", "spec": "18"}
define("array.create", _create, **_ROW, summary="a new array of zeros (task ids: of invalid ones)")
define("array.get_element", _get, **_ROW, lowering=Lowering("aget", ("array", "index")), summary="one element")
define(
    "array.update_element",
    _update,
    **_ROW,
    summary="one element replaced",
    lowering=Lowering("aset", ("index", "value"), destination="array"),
)
