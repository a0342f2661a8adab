"""Subscript reads and writes of tensors, tiles and arrays (spec language 4.7, spec ops 1.13)."""

from __future__ import annotations

import ast
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.dtype import INDEX, DataType
from pypto.language.parser.expressions import Expressions


@dataclass(frozen=True)
class Window:
    """A subscript as a window: offsets and extents per axis, and the axes an integer index drops."""

    offsets: tuple[ir.Expr, ...]
    extents: tuple[ir.Dim, ...]
    dropped: tuple[int, ...]
    valid: tuple[ir.Dim, ...] | None = None


class Subscripts(Expressions):
    """Turns ``x[...]`` into slices, reads and assembles."""

    def window(self, base: ir.Expr, node: ast.Subscript) -> Window:
        """The window ``node`` selects of ``base``."""
        shape = base.type.shape  # type: ignore[attr-defined]
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(indices) > len(shape):
            self.type_error(f"{len(indices)} indices for {self.describe(base.type)} of rank {len(shape)}", node)
        offsets: list[ir.Expr] = []
        extents: list[ir.Dim] = []
        dropped: list[int] = []
        for axis, extent in enumerate(shape):
            index = indices[axis] if axis < len(indices) else ast.Slice()
            if isinstance(index, ast.Slice):
                start, size = self._slice(index, extent)
                offsets.append(start)
                extents.append(size)
            else:
                offsets.append(self._index(index))
                extents.append(1)
                dropped.append(axis)
        return Window(tuple(offsets), tuple(extents), tuple(dropped))

    def _index(self, node: ast.expr) -> ir.Expr:
        if isinstance(node, ast.Constant) and (node.value is Ellipsis or node.value is None):
            self.type_error("'...' and None are not indices of the language", node)
        value = self.expression(node)
        if not (isinstance(value.type, ir.ScalarType) and value.type.dtype.is_int()):
            self.type_error(f"an index is an integer scalar, not {self.describe(value.type)}", node)
        if isinstance(value, ir.Const) and isinstance(value.value, int) and value.value < 0:
            self.syntax(f"index {value.value} is negative; there is no wrap-around", node)
        return value

    def _slice(self, node: ast.Slice, extent: ir.Dim) -> tuple[ir.Expr, ir.Dim]:
        if node.step is not None:
            self.unsupported("a slice has no step", node.step)
        start = self._index(node.lower) if node.lower is not None else ir.index(0)
        if node.upper is None and node.lower is None:
            return start, extent
        stop = self._index(node.upper) if node.upper is not None else ir.as_expr(extent)
        return start, difference(stop, start)

    # --- reads ---

    def subscript_read(self, base: ir.Expr, node: ast.Subscript) -> ir.Expr:
        window = self.window(base, node)
        if len(window.dropped) == len(window.offsets):
            return self.operation("pl", "read", [base, window.offsets], {}, node)
        if isinstance(base.type, ir.TileType):
            return self._tile_window(base, window, node)
        kwargs = {"drop_dims": window.dropped} if window.dropped else {}
        return self.operation("tensor", "slice", [base, window.extents, window.offsets], kwargs, node)

    def _tile_window(self, base: ir.Expr, window: Window, node: ast.Subscript) -> ir.Expr:
        shape = base.type.shape  # type: ignore[attr-defined]
        extents: list[ir.Dim] = []
        valid: list[ir.Dim] = []
        for axis, extent in enumerate(window.extents):
            offset = ir.as_dim(window.offsets[axis])
            if not isinstance(offset, int):
                self.type_error(
                    "the lower bound of a tile slice is a constant", node, "use pl.slice with a run-time offset"
                )
            extents.append(extent if isinstance(extent, int) else shape[axis] - offset)
            valid.append(extent)
        kwargs: dict[str, object] = {}
        if any(not isinstance(v, int) for v in valid):
            kwargs["valid_shape"] = tuple(valid)
        if window.dropped:
            kwargs["drop_dims"] = window.dropped
            if len(shape) - len(window.dropped) < 2:
                warnings.warn(
                    f"{self.span(node)}: a tile subscript below two axes is padded to two", UserWarning, stacklevel=2
                )
        return self.operation("tile", "slice", [base, tuple(extents), window.offsets], kwargs, node)

    # --- writes ---

    def subscript_write(self, target: ast.Subscript, value: ir.Expr, node: ast.stmt) -> None:
        """``name[...] = value``: rebind the name to the updated value."""
        if not isinstance(target.value, ast.Name):
            self.syntax("only a plain name can be written through a subscript", target)
        if self.options.strict_ssa:
            self.unsupported("a subscript assignment rebinds its target, which strict_ssa forbids", node)
        name = target.value.id
        base = self.expression(target.value)
        if isinstance(base.type, ir.ArrayType):
            value = as_element(value, base.type.dtype)
            updated = self.operation("array", "update_element", [base, self.expression(target.slice), value], {}, node)
        elif isinstance(base.type, (ir.TensorType, ir.TileType)):
            updated = self._assembled(base, self.window(base, target), value, target)
        else:
            self.type_error(f"{self.describe(base.type)} cannot be written through a subscript", target)
        self.assign_name(name, updated, node)

    @abstractmethod
    def assign_name(self, name: str, value: ir.Expr, node: ast.AST) -> None:
        """Bind ``name`` to ``value``; defined by the part for statements."""

    @abstractmethod
    def region_split(self) -> dict[str, Any]:
        """How the region of lanes around splits its values, nothing outside; defined by the part for scopes."""

    def _assembled(self, base: ir.Expr, window: Window, value: ir.Expr, node: ast.Subscript) -> ir.Expr:
        if isinstance(value.type, ir.ScalarType):
            self.unsupported(
                f"an element of {self.describe(base.type)} is not assigned by subscript",
                node,
                f"use pl.write({ast.unparse(node.value)}, [...], value)",
            )
        if type(value.type) is not type(base.type):
            self.type_error(f"{self.describe(value.type)} cannot be written into {self.describe(base.type)}", node)
        self._check_extents(window, value, node)
        if window.dropped:
            namespace = "tile" if isinstance(base.type, ir.TileType) else "tensor"
            full = tuple(1 if a in window.dropped else e for a, e in enumerate(window.extents))
            if len(value.type.shape) != len(full):  # type: ignore[attr-defined]
                value = self.operation(namespace, "reshape", [value, full], {}, node)
        return self.operation("pl", "assemble", [base, value, window.offsets], {}, node)

    def _check_extents(self, window: Window, value: ir.Expr, node: ast.Subscript) -> None:
        kept = [e for a, e in enumerate(window.extents) if a not in window.dropped]
        shape, valid = value.type.shape, value.type.valid_shape  # type: ignore[attr-defined]
        if isinstance(value.type, ir.TileType) and len(shape) == len(window.extents):
            kept = list(window.extents)  # a tile has at least two axes
        if len(kept) != len(shape):
            self.type_error(
                f"the window has {len(kept)} axes, the value {len(shape)}: {self.describe(value.type)}", node
            )
        for axis, (want, have, have_valid) in enumerate(zip(kept, shape, valid)):
            if isinstance(want, int) and isinstance(have, int) and want != have and want != have_valid:
                self.type_error(
                    f"axis {axis} of the window has extent {want}, the value {self.describe(value.type)} has {have}",
                    node,
                    self._halving_hint(want, have),
                )

    def _halving_hint(self, want: int, have: int) -> str | None:
        if not self.region_split() or have != 2 * want:
            return None
        return "bring a cube result into pl.split_aiv with pl.aiv_shard(x), which gives each lane its half"


def as_element(value: ir.Expr, dtype: DataType) -> ir.Expr:
    """An integer scalar converted to the dtype of the array that takes it."""
    kind = value.type
    if isinstance(kind, ir.ScalarType) and kind.dtype != dtype and kind.dtype.is_int() and dtype.is_int():
        return (
            ir.Const(value.value, dtype, value.span)
            if isinstance(value, ir.Const)
            else ir.Cast(value, dtype, value.span)
        )
    return value


def difference(stop: ir.Expr, start: ir.Expr) -> ir.Dim:
    """``stop - start``, simplified: constants fold, ``(b + c) - b`` is ``c``."""
    if start == ir.index(0):
        return ir.as_dim(stop)
    a_terms, a_const = linear(stop)
    b_terms, b_const = linear(start)
    for term, factor in b_terms.items():
        a_terms[term] = a_terms.get(term, 0) - factor
    remaining = {t: f for t, f in a_terms.items() if f}
    if not remaining:
        return a_const - b_const
    return operations.binary("-", stop, start)


def linear(expr: ir.Expr) -> tuple[dict[ir.Expr, int], int]:
    """``expr`` as a sum of integer multiples of terms plus a constant."""
    if isinstance(expr, ir.Const) and isinstance(expr.value, int):
        return {}, int(expr.value)
    if isinstance(expr, ir.Cast) and expr.dtype == INDEX:
        return linear(expr.operand)
    if isinstance(expr, ir.Binary) and expr.op in ("+", "-"):
        terms, const = linear(expr.left)
        other, other_const = linear(expr.right)
        sign = 1 if expr.op == "+" else -1
        for term, factor in other.items():
            terms[term] = terms.get(term, 0) + sign * factor
        return terms, const + sign * other_const
    if isinstance(expr, ir.Binary) and expr.op == "*":
        for scale, term in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(scale, ir.Const) and isinstance(scale.value, int):
                terms, const = linear(term)
                return {t: f * scale.value for t, f in terms.items()}, const * scale.value
    return {expr: 1}, 0
