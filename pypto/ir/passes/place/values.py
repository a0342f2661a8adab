"""What a name of a kernel stands for while it is placed: GM windows, products not yet drained, or plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.operations import dims


@dataclass(frozen=True)
class Window:
    """A part of a tensor in GM: nothing has been loaded yet.

    ``offsets`` and ``extents`` have the rank of ``base``; ``dropped`` axes do not appear in the value's shape.
    """

    base: ir.Var
    offsets: tuple[ir.Expr, ...]
    extents: tuple[ir.Dim, ...]
    dropped: tuple[int, ...]
    type: ir.TensorType

    @property
    def is_whole(self) -> bool:
        """True when the window is the tensor itself."""
        base = self.base.type
        assert isinstance(base, ir.TensorType)
        zero = all(ir.as_dim(o) == 0 for o in self.offsets)
        return zero and not self.dropped and dims.all_equal(self.extents, base.shape)

    @property
    def is_run(self) -> bool:
        """True when its elements are provably adjacent, as far as those of the base are."""
        base = self.base.type
        assert isinstance(base, ir.TensorType)
        cut = [a for a in range(len(base.shape)) if not dims.all_equal(self.extents[a : a + 1], base.shape[a : a + 1])]
        return not cut or all(extent == 1 for extent in self.extents[: cut[-1]])

    def kept(self) -> tuple[int, ...]:
        """Axes of the base that the value has."""
        return tuple(a for a in range(len(self.extents)) if a not in self.dropped)

    def full_offsets(self, offsets: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """``offsets`` into the value as offsets into the base; a shorter list addresses the trailing axes."""
        kept = self.kept()
        placed = list(self.offsets)
        for axis, offset in zip(kept[len(kept) - len(offsets) :], offsets):
            placed[axis] = ir.as_expr(dims.add(ir.as_dim(placed[axis]), ir.as_dim(offset)))
        return tuple(placed)

    def full_extents(self, extents: tuple[ir.Dim, ...]) -> tuple[ir.Dim, ...]:
        """``extents`` of a value as extents of the base: 1 on dropped and leading axes."""
        kept = self.kept()
        placed: list[ir.Dim] = [1] * len(self.extents)
        for axis, extent in zip(kept[len(kept) - len(extents) :], extents):
            placed[axis] = extent
        return tuple(placed)


@dataclass(frozen=True)
class Operand:
    """A matrix operand: a value with two axes of matrices and, before them, axes of a stack.

    ``row`` and ``col`` say where in the logical matrix it begins; a ``transposed`` one is stored the other way round.
    """

    value: Value
    transposed: bool = False
    row: ir.Dim = 0
    col: ir.Dim = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the logical matrix."""
        rows, cols = self.value.type.shape[-2:]
        return (cols, rows) if self.transposed else (rows, cols)

    @property
    def valid(self) -> tuple[ir.Dim, ir.Dim]:
        """Valid rows and columns of the logical matrix."""
        rows, cols = self.value.type.valid_shape[-2:]
        return (cols, rows) if self.transposed else (rows, cols)

    def at(self, row: ir.Dim, col: ir.Dim) -> Operand:
        """The operand from ``row`` and ``col`` on."""
        return replace(self, row=dims.add(self.row, row), col=dims.add(self.col, col))


@dataclass(frozen=True)
class Product:
    """A sum of matrix products that is computed block by block by the store that consumes it.

    It exceeds the accumulator, or its operands exceed Mat; operands are then still in GM.
    """

    terms: tuple[tuple[Operand, Operand], ...]
    type: ir.TileType
    bias: Operand | None = None

    def reads(self, base: ir.Var) -> bool:
        """Whether an operand is a part of the tensor ``base`` in GM."""
        values = [operand.value for term in self.terms for operand in term]
        return any(isinstance(v, Window) and v.base == base for v in values)


Value = Any
"""``Window``, ``Product`` or an ``ir.Expr`` (tile variable, scalar expression, tuple item)."""


def whole(base: ir.Var) -> Window:
    """The window that is all of ``base``."""
    kind = base.type
    assert isinstance(kind, ir.TensorType)
    return Window(base, tuple(ir.index(0) for _ in kind.shape), kind.shape, (), kind)
