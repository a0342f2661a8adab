"""Folding of constant scalar expressions; semantics of the generated code (spec language 4.8)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import BOOL
from pypto.ir.walk import rewrite

FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "min": min,
    "max": max,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}


def fold(expr: ir.Expr) -> ir.Expr:
    """One node with its constant operands folded; identities with 0 and 1 removed."""
    if isinstance(expr, ir.Binary):
        return _binary(expr)
    if isinstance(expr, ir.Unary) and isinstance(expr.operand, ir.Const):
        return _unary(expr, expr.operand)
    if isinstance(expr, ir.Cast) and isinstance(expr.operand, ir.Const):
        return _cast(expr, expr.operand)
    return expr


def simplified(expr: ir.Expr) -> ir.Expr:
    """``expr`` with every constant subexpression folded."""
    return rewrite(expr, fold)


def _binary(expr: ir.Binary) -> ir.Expr:
    left, right = expr.left, expr.right
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return _fold_constants(expr, left.value, right.value)
    if expr.op in ("min", "max") and left == right:
        return left
    if expr.dtype.is_int() and isinstance(right, ir.Const):
        if right.value == 0 and expr.op in ("+", "-", "<<", ">>"):
            return left
        if right.value == 1 and expr.op in ("*", "//", "/"):
            return left
    if expr.dtype.is_int() and isinstance(left, ir.Const):
        if left.value == 0 and expr.op == "+":
            return right
        if left.value == 1 and expr.op == "*":
            return right
    return expr


def _fold_constants(expr: ir.Binary, a: Any, b: Any) -> ir.Expr:
    if expr.op == "/":
        if b == 0:
            return expr
        value: Any = int(a / b) if expr.dtype.is_int() else a / b
    elif expr.op in ("//", "%") and b == 0:
        return expr
    else:
        value = FOLD[expr.op](a, b)
    return ir.Const(value, expr.dtype, expr.span)


def _unary(expr: ir.Unary, operand: ir.Const) -> ir.Expr:
    value = operand.value
    if value is None:
        return expr
    folded: Any = {"-": lambda: -value, "not": lambda: not value, "~": lambda: ~int(value), "abs": lambda: abs(value)}[
        expr.op
    ]()
    return ir.Const(folded, expr.dtype, expr.span)


def _cast(expr: ir.Cast, operand: ir.Const) -> ir.Expr:
    value = operand.value
    if value is None:
        return expr
    if expr.dtype.is_float():
        return ir.Const(float(value), expr.dtype, expr.span)
    if expr.dtype == BOOL:
        return ir.Const(bool(value), BOOL, expr.span)
    if isinstance(value, float) and not (abs(value) < 2**63):
        return expr
    bits = max(expr.dtype.get_bit(), 8)
    whole = int(value) & ((1 << bits) - 1)
    if expr.dtype.is_signed_int() and whole >> (bits - 1):
        whole -= 1 << bits
    return ir.Const(whole, expr.dtype, expr.span)
