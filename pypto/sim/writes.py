"""Which arguments of an orchestration its tasks may change, from the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pypto.sim.syntax import For, If, Instruction, Register, Statement, Unit, While

_VIEWS = frozenset({"view", "reshape", "permute", "reinterpret"})
_READS = frozenset({0, 1})  # directions of a submit: scalar, input


def written_parameters(unit: Unit) -> frozenset[str]:
    """Names of the parameters that are stored to or submitted as more than an input, also through views.

    What a register stands for may depend on the path taken: it counts as everything it ever is.
    """
    instructions = list(_instructions(unit.body))
    roots = {parameter.name: {parameter.name} for parameter in unit.parameters}
    views = [_names(i.operands[:2]) for i in instructions if i.mnemonic in _VIEWS]
    for _ in views:  # a view of a view of …: at most as many steps as there are views
        for target, source in (pair for pair in views if len(pair) == 2):
            roots.setdefault(target, set()).update(roots.get(source, ()))
    written = [name for instruction in instructions for name in _written(instruction)]
    return frozenset(root for name in written for root in roots.get(name, ()))


def _written(instruction: Instruction) -> list[str]:
    if instruction.mnemonic == "sstore":
        return _names(instruction.operands[:1])
    if instruction.mnemonic != "submit" or len(instruction.operands) < 5:
        return []
    arguments, directions = instruction.operands[2], instruction.operands[4]
    if not isinstance(arguments, tuple) or not isinstance(directions, tuple):
        return []
    return _names(a for a, direction in zip(arguments, directions) if direction not in _READS)


def _names(operands: Iterable[object]) -> list[str]:
    return [operand.name for operand in operands if isinstance(operand, Register)]


def _instructions(statements: Iterable[Statement]) -> Iterator[Instruction]:
    for statement in statements:
        if isinstance(statement, Instruction):
            yield statement
        elif isinstance(statement, For):
            yield from _instructions(statement.body)
        elif isinstance(statement, If):
            yield from _instructions((*statement.then, *statement.orelse))
        elif isinstance(statement, While):
            yield from _instructions((*statement.test, *statement.body))
