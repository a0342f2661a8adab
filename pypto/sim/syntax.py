"""Syntax objects of the kernel text (docs/architecture.md 1): what the parser reads and the printer writes.

Positions in the text take no part in equality, so a printed and re-read unit equals the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Direction = Literal["in", "out", "inout"]
Core = Literal["aiv", "aic"]


@dataclass(frozen=True)
class Position:
    """Where something stands in the text itself, both counted from 1; ``width`` characters long."""

    line: int
    column: int
    width: int = 1


NOWHERE = Position(0, 0)


@dataclass(frozen=True)
class Place:
    """The source line an instruction came from: ``@file:line``, ``file`` an index into :attr:`Unit.files`."""

    file: int
    line: int


@dataclass(frozen=True)
class Register:
    """``%name``: a scalar, tile, tensor or array register."""

    name: str

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class KernelName:
    """``@name``: a kernel or a group."""

    name: str

    def __str__(self) -> str:
        return f"@{self.name}"


Operand: TypeAlias = "Register | KernelName | int | float | tuple[Operand, ...]"
Attribute: TypeAlias = "str | int | float | Register | tuple[int, ...]"


@dataclass(frozen=True)
class Instruction:
    """``mnemonic operand, … {name = value, …} @file:line``; destinations first."""

    mnemonic: str
    operands: tuple[Operand, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    place: Place | None = None
    position: Position = field(default=NOWHERE, compare=False, repr=False)
    operand_positions: tuple[Position, ...] = field(default=(), compare=False, repr=False)

    def operand_position(self, index: int) -> Position:
        """Where operand ``index`` stands, or the mnemonic when that is not known."""
        return self.operand_positions[index] if index < len(self.operand_positions) else self.position


@dataclass(frozen=True)
class For:
    """``for %i = lo to hi step st { … }``: ``hi`` excluded, also for a negative step."""

    index: Register
    low: Register | int
    high: Register | int
    step: Register | int
    body: tuple[Statement, ...]
    place: Place | None = None
    position: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class If:
    """``if %c { … } else { … }``."""

    condition: Register
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    place: Place | None = None
    position: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class While:
    """``while { test … } do %c { body … }``: runs ``test``, then ``body`` while ``%c`` is not zero."""

    test: tuple[Statement, ...]
    condition: Register
    body: tuple[Statement, ...]
    place: Place | None = None
    position: Position = field(default=NOWHERE, compare=False, repr=False)


Statement: TypeAlias = "Instruction | For | If | While"


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """The statements and those inside of them, in the order of the text."""
    for statement in statements:
        yield statement
        if isinstance(statement, For):
            yield from walk(statement.body)
        elif isinstance(statement, If):
            yield from walk(statement.then)
            yield from walk(statement.orelse)
        elif isinstance(statement, While):
            yield from walk(statement.test)
            yield from walk(statement.body)


@dataclass(frozen=True)
class TensorParameter:
    """``param %p : tensor<256x?xfp32> in``; ``-1`` is a dynamic extent."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    direction: Direction
    window: bool = False
    position: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class ScalarParameter:
    """``param %n : scalar<int32>``."""

    name: str
    dtype: str
    position: Position = field(default=NOWHERE, compare=False, repr=False)


Parameter: TypeAlias = "TensorParameter | ScalarParameter"


@dataclass(frozen=True)
class Slots:
    """``slots K pitch BYTES by %s``: the tile lives at OFFSET + pitch·(s mod K)."""

    count: int
    pitch: int
    by: Register


@dataclass(frozen=True)
class Tile:
    """``tile %t : vec<32x64xfp32> at OFFSET …``; extents and ``stride`` in elements, ``offset`` in bytes."""

    name: str
    space: str
    rows: int
    cols: int
    dtype: str
    offset: int
    stride: int | None = None
    slots: Slots | None = None
    valid: tuple[int, int] | None = None
    layout: str | None = None
    position: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class TensorRegister:
    """``tensor %v : RANK x dtype``: a view computed at run time."""

    name: str
    rank: int
    dtype: str
    position: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Array:
    """``array %a : N x dtype``."""

    name: str
    length: int
    dtype: str
    position: Position = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Unit:
    """A kernel (``core`` given) or an orchestration (``core`` is ``None``)."""

    name: str
    core: Core | None
    files: Mapping[int, str] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    tiles: tuple[Tile, ...] = ()
    tensors: tuple[TensorRegister, ...] = ()
    arrays: tuple[Array, ...] = ()
    body: tuple[Statement, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Register -> name of the value in the source text, where the two differ."""


@dataclass(frozen=True)
class Group:
    """``group @name { aic @a aiv @b lanes = 2 }``: the members of one cluster, which share their parameters."""

    name: str
    aic: str | None = None
    aiv: str | None = None
    lanes: int = 1
