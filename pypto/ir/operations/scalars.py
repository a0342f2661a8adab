"""Scalar expressions: operators, promotion, conversion (spec ops 1.14, language 4.8)."""

from __future__ import annotations

import struct
from typing import Any

from pypto.ir.dtype import BF16, BOOL, FP16, FP32, INDEX, INT64, TASK_ID, DataType
from pypto.ir.nodes import Binary, Cast, Const, Expr, ScalarType, TensorType, TileType, Unary
from pypto.ir.operations.errors import OperandTypeError
from pypto.ir.operations.show import show
from pypto.ir.span import UNKNOWN_SPAN, Span

ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "min", "max"})
SHIFTS = frozenset({"<<", ">>"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGICAL = frozenset({"and", "or"})
_INTERCHANGEABLE = frozenset({INDEX, INT64})
_FUNCTION_OF = {"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "cmp", "<": "cmp", ">": "cmp"}


def binary(op: str, left: Expr, right: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``left op right`` on two scalars; the narrower side is converted. ``TypeError`` says which rule is broken."""
    a, b = _scalar(op, left), _scalar(op, right)
    if op in LOGICAL:
        return Binary(op, left, right, BOOL, span)
    if op in SHIFTS:
        for dtype in (a, b):
            if not dtype.is_int():
                raise OperandTypeError(f"{op} needs integers, got {dtype.constant}")
    elif op not in ARITHMETIC and op not in COMPARISONS:
        raise OperandTypeError(f"scalars have no operator {op}")
    dtype = promote_scalars(op, a, b)
    result = BOOL if op in COMPARISONS else dtype
    return Binary(op, _converted(left, dtype), _converted(right, dtype), result, span)


def unary(op: str, operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``- ~ not abs`` on one scalar."""
    dtype = _scalar(op, operand)
    if op == "not":
        return Unary(op, operand, BOOL, span)
    if op == "~" and not dtype.is_int():
        raise OperandTypeError(f"~ needs an integer, got {dtype.constant}")
    if op not in ("-", "~", "abs"):
        raise OperandTypeError(f"scalars have no operator {op}")
    if dtype == BOOL:
        raise OperandTypeError(f"{op} does not take BOOL; use pl.cast to an integer first")
    return Unary(op, operand, dtype, span)


def scalar_cast(operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Expr:
    """Conversion with C semantics: float to integer truncates. Literals are converted at once."""
    source = _scalar("cast", operand)
    if dtype == TASK_ID:
        raise OperandTypeError(f"a {source.constant} scalar has no conversion to TASK_ID")
    if source == dtype:
        return operand
    if isinstance(operand, Const):
        return Const(convert_literal(operand.value, dtype), dtype, span)
    return Cast(operand, dtype, span)


def promote_scalars(op: str, left: DataType, right: DataType) -> DataType:
    """The dtype both sides are converted to: one class, the wider wins, a tie keeps the left."""
    for dtype in (left, right):
        if dtype == BOOL:
            raise OperandTypeError(f"{op} does not take BOOL operands; use pl.cast to an integer first")
    if left.is_float() != right.is_float():
        raise OperandTypeError(
            f"{op} mixes {left.constant} and {right.constant}; both sides must be integers or both floats "
            "(write 1.0 instead of 1, or pl.cast)"
        )
    return right if right.get_bit() > left.get_bit() else left


def convert_literal(value: Any, dtype: DataType) -> bool | int | float:
    """A Python number as an element of ``dtype``: truncated and wrapped, or rounded to nearest even."""
    if dtype == BOOL:
        return bool(value)
    if dtype.is_float():
        return round_literal(float(value), dtype)
    number = int(value)
    bits = dtype.get_bit()
    number &= (1 << bits) - 1
    return number - (1 << bits) if dtype.is_signed_int() and number >> (bits - 1) else number


def round_literal(value: float, dtype: DataType) -> float:
    """``value`` rounded to FP32, FP16 or BF16 (overflow becomes infinite); narrower formats are left to the cast."""
    if dtype == BF16:
        (bits,) = struct.unpack("<I", struct.pack("<f", round_literal(value, FP32)))
        if value != value:
            return value
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    code = {FP32: "<f", FP16: "<e"}.get(dtype)
    if code is None:
        return value
    try:
        return float(struct.unpack(code, struct.pack(code, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _scalar(op: str, operand: Any) -> DataType:
    if not isinstance(operand, Expr):
        raise OperandTypeError(f"{op} needs a scalar expression, got {operand!r}")
    if isinstance(operand.type, (TensorType, TileType)):
        name = _FUNCTION_OF.get(op)
        instead = f"use pl.{name}(...)" if name else "use the pl.* functions"
        raise OperandTypeError(f"{op} builds scalar expressions only and got a {show(operand.type)}; {instead}")
    if not isinstance(operand.type, ScalarType):
        raise OperandTypeError(f"{op} needs a scalar, got a {show(operand.type)}")
    if operand.type.dtype == TASK_ID and op not in LOGICAL and op != "not":
        raise OperandTypeError(f"{op} does not take a TASK_ID; task ids have no arithmetic")
    return operand.type.dtype


def _converted(operand: Expr, dtype: DataType) -> Expr:
    source = _scalar("cast", operand)
    if source == dtype or {source, dtype} <= _INTERCHANGEABLE:
        return operand
    if isinstance(operand, Const):
        return Const(convert_literal(operand.value, dtype), dtype, operand.span)
    return Cast(operand, dtype, operand.span)
