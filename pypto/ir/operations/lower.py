"""One call as one instruction: which mnemonic, which operands in which order, which attributes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.nodes import Call, Const, Dim, Expr, TensorType, TileType, TupleType, Type, as_expr
from pypto.ir.operations import dims, table
from pypto.ir.operations.row import Operation
from pypto.ir.operations.scalars import convert_literal

Operand = Expr | tuple[Expr, ...]


@dataclass(frozen=True)
class Lowered:
    """An instruction before registers: ``operands`` follow the destination in text order.

    ``destination`` is the operand updated in place, or ``None`` when the result is a new tile (one per item when
    ``results`` is more than 1).
    """

    instruction: str
    operands: tuple[Operand, ...]
    attributes: dict[str, str | int]
    destination: Expr | None
    results: int
    may_share: bool


def instruction_of(call: Call) -> Lowered | None:
    """The instruction of a call, or ``None`` when its row has none (a buffer, a view, something to expand)."""
    row = table.row(call.op)
    rule = row.lowering
    if rule is None:
        return None
    operands = [_operand(row, call, name) for name in rule.operands]
    attributes = {
        name: _attribute(rule.instruction, name, _value(call, source)) for name, source in rule.attributes.items()
    }
    destination = call.arguments[rule.destination] if rule.destination else None
    results = len(call.type.items) if isinstance(call.type, TupleType) else 1
    present = tuple(operand for operand in operands if operand is not None)
    known = {name: value for name, value in attributes.items() if value is not None}
    return Lowered(rule.instruction, present, known, destination, results, rule.may_share)


def _operand(row: Operation, call: Call, name: str) -> Operand | None:
    if "|" in name:
        first, _, second = name.partition("|")
        return _operand(row, call, first if call.arguments[first] is not None else second)
    owner, _, part = name.partition(".")
    if not part:
        value = call.arguments[owner]
        return value if value is None or isinstance(value, (Expr, tuple)) else _literal(call, value)
    if part in ("row", "col"):
        return as_expr(_place(row, call, call.arguments[owner], part))
    extents = _type(call, owner)
    return tuple(map(as_expr, extents.shape if part == "shape" else extents.valid_shape))


def _literal(call: Call, value: float) -> Expr:
    """A compile-time number as an operand: an axis, or the fill value in the dtype of the result."""
    if isinstance(call.type, (TileType, TensorType)):
        return Const(convert_literal(value, call.type.dtype), call.type.dtype, call.span)
    return as_expr(int(value))


def _place(row: Operation, call: Call, offsets: tuple[Expr, ...], part: str) -> Dim:
    """A tile of more axes is held as rows = product of the leading axes: the offset folds the same way."""
    if part == "col":
        return offsets[-1]
    assert row.lowering is not None and row.lowering.destination is not None
    shape = _type(call, row.lowering.destination).shape
    flat: Dim = offsets[0]
    for extent, offset in zip(shape[1:-1], offsets[1:-1]):
        flat = dims.add(dims.mul(flat, extent), offset)
    return flat


def _type(call: Call, owner: str) -> TileType | TensorType:
    found: Type = call.type if owner == "result" else call.arguments[owner].type
    if not isinstance(found, (TileType, TensorType)):
        raise TypeError(f"{call.op}: {owner} has no shape")
    return found


def _value(call: Call, source: str | int) -> Any:
    if isinstance(source, int):
        return source
    if source.endswith(".batch"):
        shape = call.arguments[source.removesuffix(".batch")].type.shape
        return dims.constant(dims.product(shape[:-2]))
    return call.arguments[source]


def _attribute(mnemonic: str, name: str, value: Any) -> str | int | None:
    """An attribute as the text writes it: a name where the instruction's row has names, a number otherwise."""
    from pypto.ir.instructions import INSTRUCTIONS

    if value is None:
        return None
    if isinstance(value, DataType):
        return value.to_string()
    row = INSTRUCTIONS.get(mnemonic)
    attribute = next((a for a in row.attributes if a.name == name), None) if row else None
    if attribute is not None and not isinstance(attribute.encoding, str):
        if isinstance(value, str):
            return value
        return next(word for word, code in attribute.encoding.items() if code == int(value))
    if isinstance(value, Const):
        value = value.value
    return int(value) if isinstance(value, (bool, IntEnum, int)) else value
