"""Which instructions a kernel runs under a condition on its vector lane, where the lanes differ on purpose."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from pypto.sim.syntax import For, If, Instruction, Register, Statement, While

if TYPE_CHECKING:
    from pypto.sim.tile_program import TileProgram

_KNOWN: Final[WeakKeyDictionary[TileProgram, frozenset[int]]] = WeakKeyDictionary()


def under_lane_condition(program: TileProgram, index: int) -> bool:
    """Whether the instruction is in a branch or loop whose condition, bounds or step depend on the lane."""
    if program not in _KNOWN:
        _KNOWN[program] = frozenset(_guarded(program))
    return index in _KNOWN[program]


def _guarded(program: TileProgram) -> Iterator[int]:
    """Indices of instructions that are under such a condition."""
    depends: set[str] = set()
    before = -1
    while len(depends) != before:
        before = len(depends)
        _spread(program.body, depends, program.symbols, guarded=False)
    numbers = {id(statement): index for index, statement in enumerate(program.statements)}
    for statement in _under(program.body, depends, guarded=False):
        if id(statement) in numbers:
            yield numbers[id(statement)]


def _parts(statement: Statement) -> Iterator[Statement]:
    """The statements directly inside of one."""
    if isinstance(statement, For):
        yield from statement.body
    elif isinstance(statement, If):
        yield from statement.then
        yield from statement.orelse
    elif isinstance(statement, While):
        yield from statement.test
        yield from statement.body


def _decides(statement: Statement, depends: set[str]) -> bool:
    """Whether what decides about a branch or loop depends on the lane."""
    if isinstance(statement, For):
        return any(_named(bound) & depends for bound in (statement.low, statement.high, statement.step))
    return isinstance(statement, If | While) and statement.condition.name in depends


def _named(operand: object) -> set[str]:
    if isinstance(operand, Register):
        return {operand.name}
    return set().union(*map(_named, operand)) if isinstance(operand, tuple) else set()


def _spread(statements: tuple[Statement, ...], depends: set[str], memories: Container[str], *, guarded: bool) -> None:
    """Add the scalars, not ``memories``, that are made from the lane, or under a condition on it."""
    for statement in statements:
        if isinstance(statement, Instruction):
            target = statement.operands[0] if statement.operands else None
            made = statement.mnemonic == "ssubblock" or any(_named(o) & depends for o in statement.operands[1:])
            if isinstance(target, Register) and (made or guarded) and target.name not in memories:
                depends.add(target.name)
            continue
        decided = guarded or _decides(statement, depends)
        if decided and isinstance(statement, For):
            depends.add(statement.index.name)
        _spread(tuple(_parts(statement)), depends, memories, guarded=decided)


def _under(statements: tuple[Statement, ...], depends: set[str], *, guarded: bool) -> Iterator[Statement]:
    for statement in statements:
        if isinstance(statement, Instruction):
            if guarded:
                yield statement
            continue
        yield from _under(tuple(_parts(statement)), depends, guarded=guarded or _decides(statement, depends))
