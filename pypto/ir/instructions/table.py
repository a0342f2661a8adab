"""What one row of the instruction table says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

Kind = Literal["tile", "tensor", "scalar", "list"]
Access = Literal["in", "out", "inout"]
Encoding = Mapping[str, int] | Literal["int", "float", "dtype"]


class UnknownInstruction(KeyError):
    """No row has this mnemonic; the message names the nearest one."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Operand:
    """One operand in text order.

    ``like`` says how a scalar word is encoded: ``"int"``, ``"float"`` (float64 bits), or the name of the tile operand
    whose dtype decides (float64 bits when that dtype is a float). Lists hold integers.
    """

    name: str
    kind: Kind
    access: Access = "in"
    like: str = "int"


@dataclass(frozen=True)
class Attribute:
    """One attribute word. ``encoding`` maps names to words, or says what a number in the text means.

    ``default`` is the word used when the text leaves the attribute out; ``None``: it must be given.
    """

    name: str
    encoding: Encoding
    default: int | None = None


@dataclass(frozen=True)
class Instruction:
    """One mnemonic.

    ``kernel`` is ``family.factory`` under ``pypto.sim.kernels`` and ``variant`` the operation within it; an empty
    ``kernel`` is executed by the machine itself. ``pipe`` is a pipe name, ``"space"`` when the memory spaces decide
    (:func:`pypto.ir.instructions.pipe_of`), or ``"attribute"`` when the attribute ``pipe`` names it. ``cost`` is the
    class the timing engine keys on beside the mnemonic. ``work`` is the index of the operand whose valid shape is the
    amount of work (-1: none).
    """

    mnemonic: str
    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    kernel: str
    variant: str
    pipe: str
    cost: str
    work: int
    summary: str
    index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {operand.name: i for i, operand in enumerate(self.operands)})

    def destinations(self) -> tuple[int, ...]:
        """Indices of the operands the instruction writes."""
        return tuple(i for i, operand in enumerate(self.operands) if operand.access != "in")

    def sources(self) -> tuple[int, ...]:
        """Indices of the operands the instruction reads (``inout`` ones included)."""
        return tuple(i for i, operand in enumerate(self.operands) if operand.access != "out")


def tiles(*names: str) -> tuple[Operand, ...]:
    """Source tiles."""
    return tuple(Operand(name, "tile") for name in names)


def destination(name: str = "dst", access: Access = "out") -> Operand:
    """A tile the instruction writes."""
    return Operand(name, "tile", access)


def scalar(name: str, like: str = "int") -> Operand:
    """A scalar operand that is read; ``like`` names its kind."""
    return Operand(name, "scalar", "in", like)


def collect(families: Iterable[tuple[Instruction, ...]]) -> dict[str, Instruction]:
    """All rows by mnemonic; a mnemonic that two families define is a mistake in the table."""
    rows: dict[str, Instruction] = {}
    for family in families:
        for row in family:
            if row.mnemonic in rows:
                raise ValueError(f"instruction table: {row.mnemonic!r} is defined twice")
            rows[row.mnemonic] = row
    return rows


def find(rows: Mapping[str, Instruction], mnemonic: str) -> Instruction:
    """The row of ``mnemonic``; :class:`UnknownInstruction` names the nearest one."""
    try:
        return rows[mnemonic]
    except KeyError:
        near = get_close_matches(mnemonic, rows, n=1, cutoff=0.0)[0]
        raise UnknownInstruction(f"unknown instruction {mnemonic!r}; the nearest one is {near!r}") from None
