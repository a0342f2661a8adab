"""Extent arithmetic agrees with integers, and what it calls provable is true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pypto.ir.dtype import INDEX
from pypto.ir.nodes import Binary, Const, Dim, ScalarType, Symbol, Var
from pypto.ir.operations import dims

VARIABLES = (Var("a", ScalarType(INDEX)), Var("b", ScalarType(INDEX)), Symbol("R"))
WORDS = st.integers(-40, 40)
EXTENTS = st.recursive(
    st.one_of(WORDS, WORDS.map(lambda v: Const(v, INDEX)), st.sampled_from(VARIABLES)),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from((dims.add, dims.sub, dims.minimum, dims.maximum)), inner, inner).map(
            lambda made: made[0](made[1], made[2])
        ),
        st.tuples(inner, st.integers(-5, 5)).map(lambda made: dims.mul(*made)),
        st.tuples(inner, st.integers(1, 9)).map(lambda made: dims.floor_div(*made)),
    ),
    max_leaves=6,
)
PLACES = st.fixed_dictionaries({"a": WORDS, "b": WORDS, "R": st.integers(0, 40)})
OPERATORS = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "//": lambda x, y: x // y,
    "min": min, "max": max,
}  # fmt: skip


def value(extent: Dim, at: dict[str, int]) -> int:
    """The number an extent stands for when its variables are known."""
    if isinstance(extent, Binary):
        return OPERATORS[extent.op](value(extent.left, at), value(extent.right, at))
    if isinstance(extent, (Var, Symbol)):
        return at[extent.name]
    return int(extent.value) if isinstance(extent, Const) else extent


@given(EXTENTS, EXTENTS, PLACES)
def test_arithmetic_agrees_with_integers(left, right, at):
    a, b = value(left, at), value(right, at)
    assert value(dims.add(left, right), at) == a + b
    assert value(dims.sub(left, right), at) == a - b
    assert value(dims.minimum(left, right), at) == min(a, b)
    assert value(dims.maximum(left, right), at) == max(a, b)


@given(EXTENTS, st.integers(-6, 6), st.integers(1, 9), PLACES)
def test_multiples_and_quotients_agree_with_integers(extent, factor, divisor, at):
    known = value(extent, at)
    assert value(dims.mul(extent, factor), at) == known * factor
    assert value(dims.floor_div(extent, divisor), at) == known // divisor
    assert value(dims.ceil_div(extent, divisor), at) == -(-known // divisor)


@given(EXTENTS, EXTENTS, PLACES)
def test_provable_relations_hold_everywhere(left, right, at):
    a, b = value(left, at), value(right, at)
    assert not dims.equal(left, right) or a == b
    assert not dims.differ(left, right) or a != b
    assert not dims.less(left, right) or a < b
    assert not dims.at_most(left, right) or a <= b


@given(EXTENTS)
def test_simplify_keeps_constants_as_integers(extent):
    known = dims.constant(extent)
    assert known is None or dims.simplify(extent) == known


def test_a_difference_of_equal_terms_is_a_number():
    a = VARIABLES[0]
    assert dims.sub(dims.add(dims.mul(a, 16), 48), dims.mul(a, 16)) == 48


def test_minimum_is_decided_by_a_constant_distance():
    a = VARIABLES[0]
    assert dims.minimum(dims.add(a, 1), a) == a
    assert dims.minimum(dims.minimum(a, 64), 128) == dims.minimum(a, 64)


def test_declared_extents_are_not_negative():
    rows = VARIABLES[2]
    assert dims.maximum(rows, 0) == rows
    assert dims.less(rows, 0) is False
    assert dims.less(-1, rows)


def test_text_is_what_the_author_wrote():
    a = VARIABLES[0]
    assert dims.listing((dims.minimum(dims.sub(64, a), 32), 8)) == "[min((64 - a), 32), 8]"
