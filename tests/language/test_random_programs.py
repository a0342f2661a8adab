"""Random kernels of tensor code with branches, loops and windows against torch, to the bit, and their text forms.

Values are whole numbers of at most 50, so that every sum is exact in FP32 whatever its order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from round_trip import assert_round_trips

import pypto.language as pl
from pypto import ir

LIMIT = 50


@dataclass(frozen=True)
class Operation:
    """``text`` with a value per letter of ``takes``: F is the whole matrix, R a column of row values, C a row."""

    gives: str
    takes: str
    text: str
    oracle: Callable[..., torch.Tensor]


def _rounded(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x.to(dtype).to(x.dtype)


OPERATIONS = [
    *(Operation(k, k, "pl.neg({0})", torch.neg) for k in "FRC"),
    *(Operation(k, k * 2, "pl.sub({0}, {1})", torch.sub) for k in "FRC"),
    *(Operation(k, k * 2, "pl.maximum({0}, {1})", torch.maximum) for k in "FRC"),
    Operation("F", "F", "pl.cast(pl.cast({0}, pl.BF16, mode='rint'), pl.FP32)", _rounded(torch.bfloat16)),
    Operation("F", "F", "pl.cast(pl.cast({0}, pl.INT32, mode='rint'), pl.FP32)", lambda x: x),
    Operation("R", "F", "pl.row_sum({0})", lambda x: x.sum(1, keepdim=True)),
    Operation("R", "F", "pl.row_min({0})", lambda x: x.amin(1, keepdim=True)),
    Operation("C", "F", "pl.col_sum({0})", lambda x: x.sum(0, keepdim=True)),
    Operation("C", "F", "pl.col_max({0})", lambda x: x.amax(0, keepdim=True)),
    Operation("F", "FR", "pl.row_expand_add({0}, {1})", torch.add),
    Operation("F", "FR", "pl.row_expand_max({0}, {1})", torch.maximum),
    Operation("F", "FC", "pl.col_expand_sub({0}, {1})", torch.sub),
]
NAMES = {"F": ("f0", "f1", "f2"), "R": ("r0", "r1"), "C": ("c0", "c1")}


@st.composite
def assignments(draw):
    operation = draw(st.sampled_from(OPERATIONS))
    target = draw(st.sampled_from(NAMES[operation.gives]))
    sources = tuple(draw(st.sampled_from(NAMES[kind])) for kind in operation.takes)
    return ("assign", target, operation, sources, draw(st.booleans()))


def blocks(statement):
    body = st.lists(statement, min_size=1, max_size=3)
    branch = st.tuples(
        st.just("if"), st.sampled_from(("n", "m")), st.integers(0, 2), body, st.lists(statement, max_size=2)
    )
    counts = st.integers(0, 3) | st.sampled_from(("n", "m"))
    loop = st.tuples(st.just("for"), st.sampled_from(("range", "pipeline")), counts, body)
    unrolled = st.tuples(st.just("for"), st.just("unroll"), st.integers(0, 3), body)
    return branch | loop | unrolled


WINDOWS = st.tuples(
    st.just("window"), st.sampled_from(NAMES["F"]), st.sampled_from(NAMES["F"]), st.integers(0, 9), st.integers(0, 9)
)
PROGRAMS = st.lists(st.recursive(assignments() | WINDOWS, blocks, max_leaves=8), min_size=1, max_size=5)


def clamped(text: str) -> str:
    return f"pl.minimum(pl.maximum({text}, -{LIMIT}.0), {LIMIT}.0)"


class Program:
    """One random kernel: its text, and what torch says of the same statements."""

    def __init__(self, body, rows: int, cols: int):
        self.body, self.rows, self.cols, self._locals = body, rows, cols, 0

    def text(self) -> str:
        shape = f"[{self.rows}, {self.cols}]"
        head = f"""@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[{shape}, pl.FP32], k: pl.Tensor[[2], pl.INT32], y: pl.Out[pl.Tensor[{shape}, pl.FP32]],
             z: pl.Out[pl.Tensor[[{self.rows}, 1], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.cast(pl.read(k, [0]), pl.INDEX)
            m = pl.cast(pl.read(k, [1]), pl.INDEX)
            f0 = pl.add(x, 1.0)
            f1 = pl.neg(x)
            f2 = pl.mul(x, 2.0)
            r0 = pl.row_max(x)
            r1 = pl.row_min(x)
            c0 = pl.col_max(x)
            c1 = pl.col_min(x)
"""
        lines = self._lines(self.body, " " * 12)
        tail = [
            " " * 12 + line
            for line in (
                "y[:] = pl.col_expand_add(pl.add(f0, pl.sub(f1, f2)), pl.add(c0, c1))",
                "z[:] = pl.add(r0, r1)",
            )
        ]
        return head + "\n".join([*lines, *tail, "        return y, z"]) + "\n"

    def _lines(self, body, indent):
        for item in body:
            if item[0] == "assign":
                _, target, operation, sources, through_local = item
                value = clamped(operation.text.format(*sources))
                if through_local:
                    self._locals += 1
                    yield f"{indent}t{self._locals} = {value}"
                    value = f"pl.mul(t{self._locals}, 1.0)"
                yield f"{indent}{target} = {value}"
            elif item[0] == "window":
                _, target, source, first, last = item
                rows = slice(*self._window(first, last))
                yield f"{indent}{target}[{rows.start}:{rows.stop}, :] = pl.neg({source}[{rows.start}:{rows.stop}, :])"
            elif item[0] == "if":
                yield f"{indent}if {item[1]} > {item[2]}:"
                yield from self._lines(item[3], indent + "    ")
                if item[4]:
                    yield f"{indent}else:"
                    yield from self._lines(item[4], indent + "    ")
            else:
                self._locals += 1
                stage = ", stage=2" if item[1] == "pipeline" else ""
                yield f"{indent}for i{self._locals} in pl.{item[1]}({item[2]}{stage}):"
                yield from self._lines(item[3], indent + "    ")

    def _window(self, first: int, last: int) -> tuple[int, int]:
        first = first % self.rows
        return first, first + 1 + last % (self.rows - first)

    def run(self, x: torch.Tensor, scalars: dict[str, int]) -> tuple[torch.Tensor, torch.Tensor]:
        v = {"f0": x + 1, "f1": -x, "f2": x * 2, "r0": x.amax(1, keepdim=True), "r1": x.amin(1, keepdim=True)}
        v |= {"c0": x.amax(0, keepdim=True), "c1": x.amin(0, keepdim=True)}
        self._run(self.body, v, scalars)
        return v["f0"] + (v["f1"] - v["f2"]) + (v["c0"] + v["c1"]), v["r0"] + v["r1"]

    def _run(self, body, v, scalars) -> None:
        for item in body:
            if item[0] == "assign":
                v[item[1]] = item[2].oracle(*(v[name] for name in item[3])).clamp(-LIMIT, LIMIT)
            elif item[0] == "window":
                rows = slice(*self._window(*item[3:]))
                v[item[1]] = v[item[1]].clone()
                v[item[1]][rows] = -v[item[2]][rows]
            elif item[0] == "if":
                self._run(item[3] if scalars[item[1]] > item[2] else item[4], v, scalars)
            else:
                for _ in range(scalars.get(item[2], item[2])):
                    self._run(item[3], v, scalars)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(PROGRAMS, st.sampled_from((1, 2, 8, 17)), st.sampled_from((1, 5, 16, 40)), st.integers(0, 3), st.integers(0, 3))
def test_values_and_text(body, rows, cols, n, m):
    program = Program(body, rows, cols)
    source = pl.parse(program.text())
    x = torch.randint(-6, 7, (rows, cols), generator=torch.Generator().manual_seed(rows * cols)).float()
    y, z = torch.zeros(rows, cols), torch.zeros(rows, 1)
    ir.compile(source, platform="a2a3sim", dump_passes=False)(x, torch.tensor([n, m], dtype=torch.int32), y, z)
    want = program.run(x, {"n": n, "m": m})
    assert torch.equal(y, want[0]) and torch.equal(z, want[1])
    assert_round_trips(source)
