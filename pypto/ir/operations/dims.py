"""Arithmetic on extents: integers where it can be decided, expressions where it cannot.

An extent is read as a linear form (a sum of integer multiples of opaque terms), so ``(i + 16) - i`` is 16. A comparison
is *provable* when the interval of the difference excludes the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pypto.ir.dtype import INDEX, INT64
from pypto.ir.nodes import Binary, Call, Cast, Const, Dim, Expr, ScalarType, Symbol, Unary, Var, as_expr

Terms = dict[Expr, int]
Interval = tuple["int | None", "int | None"]
Order = Callable[[Dim, Dim], bool]


def constant(value: Dim) -> int | None:
    """The number an extent is known to be, or ``None``."""
    if type(value) is int:
        return value
    terms, rest = _linear(value)
    return None if terms else rest


def simplify(value: Dim) -> Dim:
    """The shortest form known: an ``int`` when the extent is constant, else the expression itself."""
    known = constant(value)
    return value if known is None else known


def add(left: Dim, right: Dim) -> Dim:
    """Sum of two extents, folded where both are integers."""
    return _combine("+", left, right, 1)


def sub(left: Dim, right: Dim) -> Dim:
    """Difference of two extents, folded where both are integers."""
    return _combine("-", left, right, -1)


def mul(left: Dim, right: Dim) -> Dim:
    """Product; one side is normally a constant."""
    a, b = constant(left), constant(right)
    if a is not None and b is not None:
        return a * b
    if a == 1:
        return right
    if b == 1:
        return left
    return 0 if 0 in (a, b) else Binary("*", as_index(left), as_index(right), INDEX)


def floor_div(value: Dim, divisor: int) -> Dim:
    """``value // divisor`` for a positive divisor."""
    known = constant(value)
    if known is not None:
        return known // divisor
    return Binary("//", as_index(value), as_expr(divisor), INDEX) if divisor != 1 else value


def ceil_div(value: Dim, divisor: int) -> Dim:
    """``ceil(value / divisor)`` for a positive divisor."""
    return floor_div(add(value, divisor - 1), divisor)


def minimum(left: Dim, right: Dim) -> Dim:
    """Lesser of two extents, decided at compile time where their order is known."""
    return _select("min", left, right, at_most)


def maximum(left: Dim, right: Dim) -> Dim:
    """Greater of two extents, decided at compile time where their order is known."""
    return _select("max", left, right, lambda a, b: at_most(b, a))


def at_most(left: Dim, right: Dim) -> bool:
    """Whether ``left <= right`` is provable."""
    _, high = _difference(left, right)
    return high is not None and high <= 0


def less(left: Dim, right: Dim) -> bool:
    """Whether ``left < right`` is provable."""
    _, high = _difference(left, right)
    return high is not None and high < 0


def equal(left: Dim, right: Dim) -> bool:
    """Whether both extents are provably the same."""
    return _difference(left, right) == (0, 0)


def differ(left: Dim, right: Dim) -> bool:
    """Whether both extents are provably not the same."""
    return less(left, right) or less(right, left)


def all_equal(left: Sequence[Dim], right: Sequence[Dim]) -> bool:
    """Whether two extent lists have one rank and provably equal axes."""
    return len(left) == len(right) and all(map(equal, left, right))


def product(values: Iterable[Dim]) -> Dim:
    """Product of extents; 1 for none."""
    result: Dim = 1
    for value in values:
        result = mul(result, value)
    return result


def text(value: Dim) -> str:
    """An extent as the author would write it."""
    match value:
        case int():
            return str(value)
        case Const():
            return str(value.value)
        case Var() | Symbol():
            return value.name
        case Binary(op="min" | "max"):
            return f"{value.op}({text(value.left)}, {text(value.right)})"
        case Binary():
            return f"({text(value.left)} {value.op} {text(value.right)})"
        case Unary():
            return f"{value.op}{text(value.operand)}"
        case Cast():
            return text(value.operand)
        case Call():
            return f"{value.op.rpartition('.')[2]}(...)"
    return "?"


def listing(values: Iterable[Dim]) -> str:
    """An extent list as the author would write it."""
    return f"[{', '.join(map(text, values))}]"


def as_index(value: Dim) -> Expr:
    """The extent as a 64-bit expression; narrower integers are converted."""
    expr = as_expr(value)
    if isinstance(expr.type, ScalarType) and expr.type.dtype not in (INDEX, INT64):
        return Cast(expr, INDEX)
    return expr


# --- linear forms -----------------------------------------------------------------------------------------------------


def _linear(value: Dim) -> tuple[Terms, int]:
    match value:
        case int():
            return {}, int(value)
        case Const(value=int() as number):
            return {}, int(number)
        case Binary(op="+" | "-" as op, left=left, right=right):
            return _sum(_linear(left), _linear(right), 1 if op == "+" else -1)
        case Binary(op="*", left=left, right=right):
            a, b = _linear(left), _linear(right)
            if not a[0]:
                return _scaled(b, a[1])
            if not b[0]:
                return _scaled(a, b[1])
    return {value: 1}, 0


def _sum(left: tuple[Terms, int], right: tuple[Terms, int], sign: int) -> tuple[Terms, int]:
    terms = dict(left[0])
    for term, factor in right[0].items():
        terms[term] = terms.get(term, 0) + sign * factor
    return {term: factor for term, factor in terms.items() if factor}, left[1] + sign * right[1]


def _scaled(form: tuple[Terms, int], factor: int) -> tuple[Terms, int]:
    return ({term: f * factor for term, f in form[0].items()} if factor else {}), form[1] * factor


def _expression(terms: Terms, rest: int) -> Dim:
    """The sum as an expression: what is added first, then what is subtracted."""
    parts = [
        (as_index(term) if abs(f) == 1 else Binary("*", as_index(term), as_expr(abs(f)), INDEX), f > 0)
        for term, f in terms.items()
    ]
    if rest or not parts:
        parts.append((as_expr(abs(rest)), rest >= 0))
    if not any(added for _, added in parts):
        parts.insert(0, (as_expr(0), True))
    parts.sort(key=lambda part: not part[1])
    result = parts[0][0]
    for part, added in parts[1:]:
        result = Binary("+" if added else "-", result, part, INDEX)
    return rest if not terms else result


def _combine(op: str, left: Dim, right: Dim, sign: int) -> Dim:
    if type(left) is int and type(right) is int:
        return left + sign * right
    a, b = _linear(left), _linear(right)
    terms, rest = _sum(a, b, sign)
    if len(terms) < len(a[0]) + len(b[0]) or not (a[0] and b[0]):
        return _expression(terms, rest)
    return Binary(op, as_index(left), as_index(right), INDEX)


def _difference(left: Dim, right: Dim) -> Interval:
    if type(left) is int and type(right) is int:
        return left - right, left - right
    return _interval(*_sum(_linear(left), _linear(right), -1))


def _interval(terms: Terms, rest: int) -> Interval:
    low: int | None = rest
    high: int | None = rest
    for term, factor in terms.items():
        a, b = _bounds(term)
        if factor < 0:
            a, b = b, a
        low = None if low is None or a is None else low + factor * a
        high = None if high is None or b is None else high + factor * b
    return low, high


def _bounds(term: Expr) -> Interval:
    """What is known of an opaque term: declared extents are not negative, ``min``/``max``/``%`` bound their result."""
    match term:
        case Symbol():
            return 0, None
        case Binary(op="min", left=left, right=right):
            (a, b), (c, d) = _interval(*_linear(left)), _interval(*_linear(right))
            return (None if a is None or c is None else min(a, c)), _known(min, b, d)
        case Binary(op="max", left=left, right=right):
            (a, b), (c, d) = _interval(*_linear(left)), _interval(*_linear(right))
            return _known(max, a, c), (None if b is None or d is None else max(b, d))
        case Binary(op="%", right=Const(value=int() as modulus)) if modulus > 0:
            return 0, modulus - 1
    return None, None


def _known(choose: Callable[[list[int]], int], left: int | None, right: int | None) -> int | None:
    known = [value for value in (left, right) if value is not None]
    return choose(known) if known else None


def _select(op: str, left: Dim, right: Dim, wins: Order) -> Dim:
    left, right = simplify(left), simplify(right)
    if wins(left, right):
        return left
    if wins(right, left):
        return right
    if isinstance(left, Binary) and left.op == op:
        for kept, other in ((left.left, left.right), (left.right, left.left)):
            if wins(right, other):
                return _select(op, kept, right, wins)
    return Binary(op, as_index(left), as_index(right), INDEX)
