"""Operations that become several instructions: what they are written out to computes the right values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.ir.dtype import BOOL, FP32
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Const, ScalarType, Var, literal
from pypto.ir.operations import Emitter, results

from .evaluator import Evaluator, expanded

RANDOM = np.random.default_rng(7)


def floats(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def integers(*shape, dtype="int32", low=1, high=50):
    return RANDOM.integers(low, high, shape).astype(dtype)


PAIRS = [(name, getattr(torch, name)) for name in ("add", "sub", "mul", "maximum", "minimum")]
SHAPES = [((6, 8), (6, 1)), ((6, 8), (1, 8)), ((6, 1), (6, 8)), ((1, 8), (6, 8)), ((6, 1), (1, 8)), ((6, 8), (8,))]


@pytest.mark.parametrize(("name", "oracle"), PAIRS)
@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_pairs_broadcast(name, oracle, left, right, level):
    a, b = floats(*left), floats(*right)
    found, _ = expanded(f"pl.{level}.{name}", a, b)
    np.testing.assert_array_equal(found, oracle(torch.tensor(a), torch.tensor(b)).numpy())


@pytest.mark.parametrize(("left", "right"), SHAPES[:5])
def test_tensor_division_broadcasts(left, right):
    a, b = floats(*left), floats(*right) + 3
    np.testing.assert_allclose(expanded("pl.tensor.div", a, b)[0], a / b, rtol=1e-6)
    c, d = integers(*left, low=-50), integers(*right)
    found, _ = expanded("pl.tensor.div", c, d)
    assert (found == torch.div(torch.tensor(c), torch.tensor(d), rounding_mode="trunc").numpy()).all()


@pytest.mark.parametrize("dtypes", list(itertools.permutations(["float32", "float16", "int8", "int32"], 2)))
def test_mixed_dtypes_are_really_promoted(dtypes):
    a, b = (integers(4, 8, dtype=d) if "int" in d else floats(4, 8, dtype=d) for d in dtypes)
    found, ran = expanded("pl.tensor.add", a, b)
    assert "cast" in ran
    expected = torch.add(torch.tensor(a), torch.tensor(b)).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_a_float_literal_widens_a_half_tensor_and_truncates_for_an_integer_tile():
    half = floats(4, 8, dtype="float16")
    found, ran = expanded("pl.tensor.adds", half, literal(0.3))
    np.testing.assert_array_equal(found, half.astype("float32") + np.float32(0.3))
    whole = integers(4, 8)
    found, ran = expanded("pl.tile.adds", whole, literal(2.7))
    assert (found == whole + 2).all() and ran == ["adds"]


def test_equal_operands_take_one_instruction():
    a = floats(4, 8)
    for name in ("add", "sub", "mul", "div", "maximum", "cmp"):
        assert expanded(f"pl.tile.{name}", a, a)[1] == [name]


MODES = [(0, torch.eq), (1, torch.ne), (2, torch.lt), (3, torch.le), (4, torch.gt), (5, torch.ge)]


@pytest.mark.parametrize(("code", "oracle"), MODES)
def test_tensor_comparison_is_zero_or_one(code, oracle):
    a, b = integers(5, 20, high=4), integers(5, 1, high=4)
    found, _ = expanded("pl.tensor.cmp", a, b, cmp_type=code)
    np.testing.assert_array_equal(found, oracle(torch.tensor(a), torch.tensor(b)).int().numpy())
    found, _ = expanded("pl.tensor.cmp", a, literal(2), cmp_type=code)
    np.testing.assert_array_equal(found, oracle(torch.tensor(a), 2).int().numpy())


def test_integers_go_through_fp32_where_the_result_is_declared_so():
    a = integers(4, 8, high=4)
    np.testing.assert_allclose(expanded("pl.tensor.exp", a)[0], np.exp(a.astype("float32")), rtol=1e-6)
    assert (expanded("pl.tile.exp", a)[0] == np.trunc(np.exp(a.astype("float32"))).astype("int32")).all()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "argmax", "argmin"])
def test_column_reductions_of_three_axes(name):
    a = integers(3, 4, 8, high=6)
    reduce = getattr(np, name)
    np.testing.assert_array_equal(expanded(f"pl.tensor.col_{name}", a)[0], reduce(a, axis=1, keepdims=True))
    scratch = (a,) if name.startswith("arg") else ()
    np.testing.assert_array_equal(expanded(f"pl.tile.col_{name}", a, *scratch)[0], reduce(a, axis=0, keepdims=True))


def test_row_reductions_get_their_scratch_tile():
    a = floats(4, 8)
    found, ran = expanded("pl.tensor.row_max", a)
    np.testing.assert_array_equal(found, a.max(axis=1, keepdims=True))
    assert ran == ["create", "row_max"]


def test_a_vector_of_one_line_repeats_along_the_row():
    a, line = floats(4, 20), floats(4, 8)
    expected = a + np.tile(line, 3)[:, :20]
    np.testing.assert_array_equal(expanded("pl.tile.row_expand_add", a, line)[0], expected)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_gather_along_an_axis_is_torch_gather(data):
    rank = data.draw(st.integers(2, 3))
    shape = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    axis = data.draw(st.integers(0, rank - 1))
    wanted = tuple(data.draw(st.integers(1, 6 if k == axis else extent)) for k, extent in enumerate(shape))
    source = floats(*shape)
    index = RANDOM.integers(0, shape[axis], wanted).astype("int32")
    found, _ = expanded("pl.tensor.gather", source, axis, index)
    expected = torch.gather(torch.tensor(source), axis, torch.tensor(index, dtype=torch.int64))
    np.testing.assert_array_equal(found, expected.numpy())


def test_scatter_keeps_what_it_does_not_write():
    source = floats(6, 8)
    index = np.stack([RANDOM.permutation(8)[:3] for _ in range(4)]).astype("int32")
    rows = floats(4, 3)
    found, _ = expanded("pl.tensor.scatter", source, dim=1, index=index, src=rows)
    expected = torch.tensor(source).clone()
    expected[:4] = expected[:4].scatter(1, torch.tensor(index, dtype=torch.int64), torch.tensor(rows))
    np.testing.assert_array_equal(found, expected.numpy())


STACKS = [((3, 4, 8), (3, 8, 5)), ((2, 1, 4, 8), (3, 8, 5)), ((4, 8), (3, 8, 5)), ((4, 8), (8, 5))]


@pytest.mark.parametrize(("left", "right"), STACKS)
def test_batched_products_broadcast_their_leading_axes(left, right):
    a, b = integers(*left, high=9).astype("float32"), integers(*right, high=9).astype("float32")
    expected = torch.matmul(torch.tensor(a), torch.tensor(b)).numpy()
    np.testing.assert_array_equal(expanded("pl.tile.batch_matmul", a, b)[0], expected)
    start = np.ones_like(expected)
    np.testing.assert_array_equal(expanded("pl.tile.batch_matmul_acc", start, a, b)[0], expected + 1)


def test_init_cond_overwrites_or_accumulates():
    a, b, start = integers(4, 8).astype("float32"), integers(8, 4).astype("float32"), np.ones((4, 4), "float32")
    assert expanded("pl.tile.matmul_acc", start, a, b, init_cond=True)[1][-1] == "matmul_into"
    assert expanded("pl.tile.matmul_acc", start, a, b, init_cond=False)[1][-1] == "matmul_acc"
    for condition in (True, False):
        statements, labels = [], iter(range(100))
        emitter = Emitter(statements, lambda base, labels=labels: f"{base}_{next(labels)}")
        operands = {name: Var(name, results.tile(value.shape, FP32)) for name, value in (("lhs", a), ("rhs", b))}
        acc = Var("acc", results.tile((4, 4), FP32, MemorySpace.Acc))
        result = emitter.tile("matmul_acc", acc=acc, init_cond=Var("first", ScalarType(BOOL)), **operands)
        evaluator = Evaluator(acc=start.copy(), lhs=a, rhs=b, first=condition)
        evaluator.run(statements)
        np.testing.assert_array_equal(evaluator.value(result), a @ b + (0 if condition else 1))


@pytest.mark.parametrize("axes", list(itertools.combinations(range(4), 2)), ids=str)
def test_transposition_of_any_two_of_four_axes(axes):
    source = floats(2, 3, 4, 5)
    found, _ = expanded("pl.tile.transpose", source, *map(literal, axes))
    np.testing.assert_array_equal(found, np.swapaxes(source, *axes))


@given(st.data())
def test_windows_of_three_axes(data):
    """The evaluator refuses to reshape a view whose rows are not one run, so a wrong view would show."""
    shape = (3, 4, 6)
    window = tuple(data.draw(st.integers(1, extent)) for extent in shape)
    offset = tuple(data.draw(st.integers(0, extent - own)) for extent, own in zip(shape, window))
    places = tuple(slice(o, o + w) for o, w in zip(offset, window))
    source = floats(*shape)
    found, ran = expanded("pl.tile.slice", source, window, offset)
    np.testing.assert_array_equal(found, source[places])
    assert (ran == ["slice"]) == (window[0] == 1 or window[1] == shape[1])
    target = np.zeros(shape, "float32")
    found, _ = expanded("pl.tile.assemble", target, source[places].copy(), offset)
    target[places] = source[places]
    np.testing.assert_array_equal(found, target)


@pytest.mark.parametrize("shape", [(1, 3, 8), (4, 1, 8), (4, 3, 1), (4, 3, 8)])
def test_expand_clone_repeats_one_axis(shape):
    source, target = floats(*shape), np.zeros((4, 3, 8), "float32")
    found, _ = expanded("pl.tensor.expand_clone", source, target)
    np.testing.assert_array_equal(found, np.broadcast_to(source, (4, 3, 8)))


@pytest.mark.parametrize("transposed", [False, True])
def test_paged_gather_follows_the_page_table(transposed):
    table, pages = floats(32, 10), RANDOM.permutation(8).astype("int32")
    indices = RANDOM.integers(0, 32, 6).astype("int32")
    found, _ = expanded(
        "pl.tensor.paged_gather",
        table,
        indices,
        pages,
        block_size=4,
        size=6,
        max_indices=9,
        col_off=2,
        is_trans=transposed,
    )
    rows = table[pages[indices // 4] * 4 + indices % 4, 2:8]
    expected = np.concatenate([rows, np.zeros((3, 6), "float32")])
    np.testing.assert_array_equal(found, expected.T if transposed else expected)


def test_a_condition_that_is_a_literal_needs_no_branch():
    statements = []
    emitter = Emitter(statements, lambda base: base)
    spaces = {"acc": MemorySpace.Acc, "lhs": MemorySpace.Left, "rhs": MemorySpace.Right}
    tiles = {name: Var(name, results.tile((4, 4), FP32, space)) for name, space in spaces.items()}
    emitter.tile("matmul_acc", **tiles, init_cond=Const(True, BOOL))
    assert [s.value.op for s in statements] == ["tile.matmul_into"]
