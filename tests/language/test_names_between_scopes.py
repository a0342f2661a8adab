"""What leaves a core scope: values read behind it before their name is bound again (spec language 5.6)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from round_trip import assert_round_trips, random

import pypto.language as pl
from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX
from pypto.ir.liveness import live_behind
from pypto.runtime import RunConfig

ROWS = pl.dynamic("ROWS")


@pl.jit
def scalars_of_their_own(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    n = pl.tensor.dim(x, 0)
    t = pl.create_tensor([n, 64], dtype=pl.FP32)
    for b in pl.spmd(4):
        rows = pl.min(16, n - b * 16)
        if rows > 0:
            t = pl.assemble(t, pl.exp(pl.slice(x, [16, 64], [b * 16, 0], valid_shape=[rows, 64])), [b * 16, 0])
    for r in pl.range(0, n, 16):
        rows = pl.min(16, n - r)
        with pl.at(level=pl.Level.CORE_GROUP):
            kept = pl.slice(t, [16, 64], [r, 0], valid_shape=[rows, 64])
            y = pl.assemble(y, pl.add(kept, 1.0), [r, 0])
    with pl.spmd(2) as done:
        lane = pl.get_block_idx()
        y[lane : lane + 1, 0:8] = pl.neg(x[lane : lane + 1, 0:8])
    with pl.spmd(2, deps=[done]) as _second:
        lane = pl.get_block_idx()
        y[lane : lane + 1, 8:16] = pl.neg(x[lane : lane + 1, 8:16])
    return y


@pytest.mark.parametrize("rows", [2, 16, 37, 64])
def test_a_scalar_name_may_be_used_again_in_every_scope(rows):
    x, y = random(rows, 64), torch.zeros(rows, 64)
    scalars_of_their_own(x, y, config=RunConfig(platform="a2a3"))
    want = torch.exp(x) + 1
    want[:2, :16] = -x[:2, :16]
    torch.testing.assert_close(y, want)
    assert_round_trips(scalars_of_their_own.lower(x, y))


def test_a_scalar_parameter_that_is_an_extent_is_that_extent():
    text = """@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, n: pl.Scalar[pl.INDEX], t: pl.InOut[pl.Tensor[[n, 64], pl.FP32]]) -> pl.Tensor[[n, 64], pl.FP32]:
        v = pl.load(t, [0, 0], [16, 64], valid_shape=[n, 64])
        t = pl.store(pl.add(v, 1.0), [0, 0], t)
        return t

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[16, 64], pl.FP32]], rows: pl.Scalar[pl.INDEX]):
        n = rows + 1
        part = pl.slice(x, [n, 64], [0, 0])
        part = self.k(n, part)
        return x
"""
    program = pl.parse(text)
    load = program.functions["k"].body[0]
    assert load.value.arguments["valid_shape"][0] == ir.Symbol("n") == program.functions["k"].params[1].type.shape[0]
    assert_round_trips(program)


# --- liveness -----------------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
KIND = ir.ScalarType(INDEX)


def assign(target, source):
    return ir.Assign(ir.Var(target, KIND), ir.Binary("+", ir.Var(source, KIND), ir.index(1), INDEX))


SIMPLE = st.builds(assign, st.sampled_from(NAMES), st.sampled_from(NAMES))


def compound(below):
    body = st.lists(below, min_size=1, max_size=3)
    condition = ir.Var("choice", KIND)
    branch = st.builds(lambda a, b: ir.If(condition, a, b), body, st.lists(below, max_size=3))
    return branch | st.builds(lambda b: ir.While(condition, b), body)


BODIES = st.lists(st.recursive(SIMPLE, compound, max_leaves=5), min_size=1, max_size=4)


def paths(body):
    """Statements executed on the paths through ``body`` with at most two rounds of each loop."""
    if not body:
        yield []
        return
    first, rest = body[0], body[1:]
    if isinstance(first, ir.If):
        heads = [*paths(first.then_body), *paths(first.else_body)]
    elif isinstance(first, ir.While):
        once = list(paths(first.body))
        heads = [[], *once, *([*a, *b] for a in once for b in once)]
    else:
        heads = [[first]]
    for head in heads:
        for tail in paths(rest):
            yield [*head, *tail]


def is_read_first(name, path, after):
    for stmt in path:
        if stmt.value.left.name == name:
            return True
        if stmt.target.name == name:
            return False
    return name in after


@settings(max_examples=200, deadline=None)
@given(BODIES, st.sets(st.sampled_from(NAMES)))
def test_a_name_is_live_when_some_path_reads_it_first(body, after):
    found = live_behind(body, after)
    for position in range(len(body)):
        ways = list(paths(body[position + 1 :]))
        want = {name for name in NAMES if any(is_read_first(name, way, after) for way in ways)}
        assert found[position] - {"choice"} == want
