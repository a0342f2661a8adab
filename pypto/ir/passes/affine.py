"""Offsets as sums of terms: which part is fixed for a kernel, which runs with its loops, and how far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX, INT64
from pypto.ir.walk import walk

_LEAVES = (ir.Const, ir.Var, ir.Symbol, ir.Binary, ir.Unary, ir.Cast)


@dataclass(frozen=True)
class Affine:
    """``sum of term * factor + constant``, in elements."""

    terms: Mapping[ir.Expr, int] = field(default_factory=dict)
    constant: int = 0

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        terms = dict(self.terms)
        for term, factor in other.terms.items():
            terms[term] = terms.get(term, 0) + sign * factor
        return Affine({t: f for t, f in terms.items() if f}, self.constant + sign * other.constant)

    def times(self, factor: int) -> Affine:
        return Affine({t: f * factor for t, f in self.terms.items() if factor}, self.constant * factor)

    def expression(self) -> ir.Expr:
        """The sum as an INDEX expression."""
        result: ir.Expr | None = None
        for term, factor in self.terms.items():
            part = term if factor == 1 else ir.Binary("*", term, ir.index(factor), INDEX)
            result = part if result is None else ir.Binary("+", result, part, INDEX)
        if result is None:
            return ir.index(self.constant)
        return ir.Binary("+", result, ir.index(self.constant), INDEX) if self.constant else result


@dataclass(frozen=True)
class Range:
    """A loop variable runs over ``first + [0, reach]``; ``None`` for loops of run-time length."""

    first: Affine
    reach: int


class Offsets:
    """Reads offsets of one kernel body as affine sums."""

    def __init__(self, fixed: set[str] | None = None, changing: set[str] | None = None):
        self._fixed = fixed  # names of values that are the same all through the kernel; None: all but the others
        self._changing = changing or set()  # names with more than one value in the kernel
        self._known: dict[str, Affine] = {}
        self._ranges: dict[str, Range | None] = {}

    def define(self, name: str, value: ir.Expr) -> None:
        """Note the only assignment to a scalar."""
        found = self.read(value)
        if found is not None and name not in self._changing:
            self._known[name] = found

    def enter(self, loop: ir.For) -> bool:
        """Note a loop; False when it may run zero times or for a number of times known only at run time."""
        name = loop.var.name  # values computed from an earlier loop variable of this name are forgotten
        self._known = {k: v for k, v in self._known.items() if not any(getattr(t, "name", "") == name for t in v.terms)}
        start, stop, step = (self.read(e) for e in (loop.start, loop.stop, loop.step))
        self._ranges[name] = None
        if start is None or stop is None or step is None or step.terms or not step.constant:
            return False
        length = stop.plus(start, -1)
        if length.terms:
            return False
        values = range(0, length.constant, step.constant)
        if not values:
            return False
        low, high = min(values[0], values[-1]), max(values[0], values[-1])
        self._ranges[name] = Range(start.plus(Affine({}, low)), high - low)
        return True

    def read(self, expr: ir.Expr | int) -> Affine | None:
        """``expr`` over loop variables and values fixed for the kernel; ``None`` when it is anything else."""
        if isinstance(expr, int):
            return Affine({}, expr)
        if isinstance(expr, ir.Const):
            return Affine({}, expr.value) if type(expr.value) is int else None
        if isinstance(expr, ir.Var) and expr.name in self._known:
            return self._known[expr.name]
        if isinstance(expr, ir.Var) and expr.name in self._ranges:
            return Affine({expr: 1}) if self._ranges[expr.name] is not None else None
        if isinstance(expr, ir.Binary) and (found := self._binary(expr)) is not None:
            return found
        return Affine({_indexed(expr): 1}) if self._is_fixed(expr) else None

    def _binary(self, expr: ir.Binary) -> Affine | None:
        left, right = self.read(expr.left), self.read(expr.right)
        if left is None or right is None:
            return None
        if expr.op in "+-":
            return left.plus(right, 1 if expr.op == "+" else -1)
        if expr.op == "*" and not right.terms:
            return left.times(right.constant)
        if expr.op == "*" and not left.terms:
            return right.times(left.constant)
        return None

    def _is_fixed(self, expr: ir.Expr) -> bool:
        names = {e.name for e in walk(expr) if isinstance(e, ir.Var)}
        return (self._fixed is None or names <= self._fixed) and all(isinstance(e, _LEAVES) for e in walk(expr))

    def split(self, offset: Affine) -> tuple[Affine, int, int]:
        """The part fixed for the kernel, and the least and the greatest value of the rest."""
        fixed, low, high = Affine({}, offset.constant), 0, 0
        for term, factor in offset.terms.items():
            found = self._ranges.get(term.name) if isinstance(term, ir.Var) else None
            if found is None:
                fixed = fixed.plus(Affine({term: factor}))
                continue
            first, inner_low, inner_high = self.split(found.first)
            fixed = fixed.plus(first.times(factor))
            ends = sorted((inner_low * factor, (inner_high + found.reach) * factor))
            low, high = low + ends[0], high + ends[1]
        return Affine(fixed.terms), low + fixed.constant, high + fixed.constant


def _indexed(expr: ir.Expr) -> ir.Expr:
    kind = expr.type
    return expr if isinstance(kind, ir.ScalarType) and kind.dtype in (INDEX, INT64) else ir.Cast(expr, INDEX)


def symbols(*exprs: ir.Expr) -> Iterator[str]:
    """Names of the dynamic extents in ``exprs``."""
    for expr in exprs:
        yield from (e.name for e in walk(expr) if isinstance(e, ir.Symbol))
