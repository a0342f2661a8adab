"""Printer of the kernel text: ``parse(to_text(unit)) == unit``."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.sim.syntax import (
    Array,
    Attribute,
    For,
    Group,
    If,
    Instruction,
    Operand,
    Parameter,
    Place,
    ScalarParameter,
    Statement,
    TensorRegister,
    Tile,
    Unit,
)

HEADER = "// pypto text 1"
_PLACE_COLUMN = 56


def to_text(unit: Unit | Group) -> str:
    """The text of ``unit``, ending in a newline."""
    lines = _group_lines(unit) if isinstance(unit, Group) else _unit_lines(unit)
    return "\n".join((HEADER, *lines)) + "\n"


def _group_lines(group: Group) -> Iterator[str]:
    yield f"group @{group.name} {{"
    if group.aic is not None:
        yield f"  aic @{group.aic}"
    if group.aiv is not None:
        yield f"  aiv @{group.aiv}"
    yield f"  lanes = {group.lanes}"
    yield "}"


def _unit_lines(unit: Unit) -> Iterator[str]:
    yield f"kernel @{unit.name} {unit.core} {{" if unit.core else f"orchestration @{unit.name} {{"
    for index, path in unit.files.items():
        yield f'  file {index} "{path}"'
    for register, name in unit.names.items():
        yield f'  name %{register} "{name}"'
    for declaration in (*unit.parameters, *unit.tiles, *unit.tensors, *unit.arrays):
        yield "  " + _declaration(declaration)
    yield from _block(unit.body, "  ")
    yield "}"


def _declaration(item: Parameter | Tile | TensorRegister | Array) -> str:
    if isinstance(item, ScalarParameter):
        return f"param %{item.name} : scalar<{item.dtype}>"
    if isinstance(item, Tile):
        return _tile(item)
    if isinstance(item, TensorRegister):
        return f"tensor %{item.name} : {item.rank} x {item.dtype}"
    if isinstance(item, Array):
        return f"array %{item.name} : {item.length} x {item.dtype}"
    shape = "x".join("?" if extent < 0 else str(extent) for extent in item.shape)
    return f"param %{item.name} : tensor<{shape}x{item.dtype}> {item.direction}{' window' if item.window else ''}"


def _tile(tile: Tile) -> str:
    text = f"tile %{tile.name} : {tile.space}<{tile.rows}x{tile.cols}x{tile.dtype}> at {tile.offset}"
    if tile.stride is not None:
        text += f" stride {tile.stride}"
    if tile.slots is not None:
        text += f" slots {tile.slots.count} pitch {tile.slots.pitch} by {tile.slots.by}"
    if tile.valid is not None:
        text += f" valid {tile.valid[0]} {tile.valid[1]}"
    if tile.layout is not None:
        text += f" layout {tile.layout}"
    return text


def _block(statements: tuple[Statement, ...], indent: str) -> Iterator[str]:
    inner = indent + "  "
    for statement in statements:
        if isinstance(statement, Instruction):
            yield _placed(indent + _instruction(statement), statement.place)
            continue
        if isinstance(statement, For):
            head = f"for {statement.index} = {statement.low} to {statement.high} step {statement.step} {{"
            yield _placed(indent + head, statement.place)
            yield from _block(statement.body, inner)
        elif isinstance(statement, If):
            yield _placed(f"{indent}if {statement.condition} {{", statement.place)
            yield from _block(statement.then, inner)
            if statement.orelse:
                yield indent + "} else {"
                yield from _block(statement.orelse, inner)
        else:
            yield _placed(f"{indent}while {{", statement.place)
            yield from _block(statement.test, inner)
            yield f"{indent}}} do {statement.condition} {{"
            yield from _block(statement.body, inner)
        yield indent + "}"


def _placed(line: str, place: Place | None) -> str:
    return line if place is None else f"{line:<{_PLACE_COLUMN}} @{place.file}:{place.line}"


def _instruction(instruction: Instruction) -> str:
    text = instruction.mnemonic
    if instruction.operands:
        text += " " + ", ".join(map(_operand, instruction.operands))
    if instruction.attributes:
        text += " {" + ", ".join(f"{name} = {_attribute(v)}" for name, v in instruction.attributes.items()) + "}"
    return text


def _operand(operand: Operand) -> str:
    if isinstance(operand, tuple):
        return "[" + ", ".join(map(_operand, operand)) + "]"
    return str(operand)


def _attribute(value: Attribute) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)
