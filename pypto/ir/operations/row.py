"""The row of an operation: one object says everything the front end and the lowering know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Call, Dim, Expr, Type
from pypto.ir.operations.parameters import Parameter

OperationKind = Literal[
    "array",
    "broadcast",
    "cast",
    "crosscore",
    "debug",
    "elementwise",
    "gather",
    "matmul",
    "memory",
    "reduce",
    "sort",
    "sync",
    "system",
    "transform",
]
Generation = Literal["a2a3", "a5"]


@dataclass(frozen=True)
class Lowering:
    """How a tile operation becomes one instruction.

    ``operands`` name parameters in the order they follow the destination; a list-valued parameter becomes a list
    operand and a missing optional one is left out. ``x.shape`` and ``x.valid`` are the extents of ``x`` (``result``: of
    the call), ``x.row`` and ``x.col`` the two parts of an offset list into the destination, ``x|y`` is ``y`` where
    ``x`` was not given. An attribute maps to a parameter name (``str``) or a constant (``int``). ``destination``
    names the parameter updated in place; ``None`` asks for a new tile of the result type. ``scratch`` parameters never
    become operands. ``may_share=False``: the result must not occupy the buffer of an operand (spec ops 1.11).
    :func:`pypto.ir.operations.lower.instruction_of` resolves all of this for one call.
    """

    instruction: str
    operands: tuple[str, ...]
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    destination: str | None = None
    scratch: tuple[str, ...] = ()
    may_share: bool = True


class Builder(Protocol):
    """What an expansion writes with: every call adds one tile operation and returns its result."""

    generation: Generation

    def tile(self, op: str, **arguments: Any) -> Expr:
        """Append the operation ``op`` (``"add"`` or ``"tile.add"``) and return the value it defines."""

    def create_tile(self, shape: Sequence[int], dtype: DataType, space: MemorySpace = MemorySpace.Vec) -> Expr:
        """Append an uninitialised tile: scratch, or a destination updated in place."""

    def scalar(self, op: str, left: Expr | int, right: Expr | int) -> Expr:
        """The scalar expression ``left op right`` in 64 bits."""

    def repeat(self, count: int, body: Callable[[Expr], None]) -> None:
        """Append a loop over 0 ... count-1; ``body`` writes one iteration for the loop variable."""

    def either(self, condition: Expr, then: Callable[[], Expr], otherwise: Callable[[], Expr]) -> Expr:
        """Append a branch whose two arms update one value in place, and return that value."""


Expansion = Callable[[Call, Builder], Expr | None]
"""Writes a call with other tile operations; ``None`` means that the row's own instruction serves."""


@dataclass(frozen=True)
class Operation:
    """One operation.

    ``infer`` takes the arguments as the rule sees them (operands as types, extents as ``int`` where known) and returns
    the result type, or an expression that replaces the call. ``scalar_form`` is the row that takes over when the second
    operand is a scalar. ``tile_form`` (tensor rows): the
    tile row that does the work in a kernel, or a function that writes it; it gets the call with every tensor operand
    replaced by the tile that holds it, except those in ``stays_in_memory``, which are used in GM.
    """

    name: str
    parameters: tuple[Parameter, ...]
    infer: Callable[..., Type | Expr]
    kind: OperationKind
    summary: str
    spec: str
    lowering: Lowering | None = None
    expand: Expansion | None = None
    tile_form: str | Expansion | None = None
    scalar_form: str | None = None
    stays_in_memory: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]

    def parameter(self, name: str) -> Parameter | None:
        """The parameter called ``name``, or ``None``."""
        return next((p for p in self.parameters if p.name == name), None)

    def signature(self) -> str:
        """The parameter list as Python text."""
        parts: list[str] = []
        for p in self.parameters:
            if p.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(p.text())
        return f"({', '.join(parts)})"


__all__ = ["Builder", "Dim", "Expansion", "Generation", "Lowering", "Operation", "OperationKind"]
