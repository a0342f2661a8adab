"""Python functions in place of C++ kernels: what their parameters say they touch is ordered like other accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig
from pypto.sim.checks.stand_ins import boxes

from .programs.case import rnd, zeros

T = pl.Tensor[[64, 64], pl.FP32]


def program(body: str) -> Any:
    """A program of two C++ kernels (``scale`` in to out, ``strip`` of rows in place) and a tile kernel ``negate``."""
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    source = f"""
import pypto.language as pl

T = pl.Tensor[[64, 64], pl.FP32]

@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV, external_source="scale.cpp")
    def scale(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]: ...

    @pl.function(type=pl.FunctionType.AIV, external_source="strip.cpp")
    def strip(self, y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], first: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64, 64], pl.FP32]: ...

    @pl.function(type=pl.FunctionType.AIV)
    def negate(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
        y = pl.store(pl.neg(pl.load(x, [0, 0], [64, 64])), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], z: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.manual_scope():
{lines}
"""  # noqa: E501 - the program as an author would write it, one signature a line
    return source


def scale(x, y):
    y[:] = 2 * x


def strip(y, first):
    y[first : first + 32] += 1


@pytest.fixture
def findings(tmp_path, monkeypatch):
    """Kinds, tensors and texts of what is found in a program with this body; results stand in ``y`` and ``z``."""
    monkeypatch.chdir(tmp_path)

    def run(body: str, checks: str = "all"):
        path = tmp_path / "stands.py"
        path.write_text(program(body), "utf-8")
        space: dict[str, Any] = {}
        exec(compile(path.read_text("utf-8"), str(path), "exec"), space)
        compiled = ir.compile(space["P"], platform="a2a3")
        for function in (scale, strip):
            if function.__name__ in body:
                compiled.bind_external(function.__name__, function)
        config = RunConfig(platform="a2a3", checks=checks, checks_mode="collect")
        arguments = rnd(64, 64), zeros(64, 64), zeros(64, 64)
        compiled(*arguments, config=config)
        return compiled.last_findings, arguments

    return run


FIRST = "y, first = pl.submit(self.{}, x, y)"
RACES = {
    "raw": ("y, a = pl.submit(self.scale, x, y)", "z, b = pl.submit(self.negate, y, z{})"),
    "war": ("z, a = pl.submit(self.scale, y, z)", "y, b = pl.submit(self.negate, x, y{})"),
    "waw": ("y, a = pl.submit(self.scale, x, y)", "y, b = pl.submit(self.negate, x, y{})"),
    "two_stand_ins": ("y, a = pl.submit(self.scale, x, y)", "z, b = pl.submit(self.scale, y, z{})"),
    "in_place": ("y, a = pl.submit(self.strip, y, 0)", "z, b = pl.submit(self.negate, y, z{})"),
    "one_strip": ("y, a = pl.submit(self.strip, y, 0)", "y, b = pl.submit(self.strip, y, 16{})"),
}


@pytest.mark.parametrize("name", RACES)
def test_a_race_with_a_stand_in_is_told(name, findings):
    first, second = RACES[name]
    found, _ = findings(f"{first}\n{second.format('')}")
    assert [finding.kind for finding in found] == [name if name in ("war", "waw") else "raw"]
    text = str(found[0])
    assert f"{first}\n" in text and second.format(", deps=[a]") in text, text
    if name == "one_strip":
        assert found[0].index_ranges == ((16, 32), (0, 64))


@pytest.mark.parametrize("name", RACES)
def test_what_waits_is_silent(name, findings):
    first, second = RACES[name]
    found, _ = findings(f"{first}\n{second.format(', deps=[a]')}")
    assert [str(finding) for finding in found] == []


def test_disjoint_strips_and_readers_are_silent(findings):
    found, (x, y, z) = findings(
        "y, a = pl.submit(self.strip, y, 0)\ny, b = pl.submit(self.strip, y, 32)\nz, c = pl.submit(self.scale, x, z)\n"
    )
    assert [str(finding) for finding in found] == []
    assert torch.equal(y, torch.ones(64, 64)) and torch.equal(z, 2 * x)


@settings(max_examples=200, deadline=None)
@given(
    extents=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    gaps=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    size=st.integers(1, 5),
)
def test_runs_become_few_boxes_with_the_same_bytes(extents, gaps, size):
    pitches, reach = [], size
    for gap, extent in zip(gaps, reversed(extents)):
        pitches.append(reach + gap)
        reach = (extent - 1) * pitches[-1] + reach
    strides = pitches[::-1]
    runs = [(sum(i * s for i, s in zip(index, strides)), size) for index in np.ndindex(*extents)]
    found = list(boxes(runs))
    assert bytes_of(found) == sorted(at + k for at, length in runs for k in range(length))


def test_the_rows_of_a_window_are_one_box():
    planes = [(plane * 4096 + row * 256, 64) for plane in range(3) for row in range(8)]
    assert [box.tolist() for box in boxes(planes)] == [[0, 64, 1, 0, 1, 0, 3, 4096, 8, 256]]


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 6)), max_size=20))
def test_any_runs_keep_their_bytes(runs):
    runs = sorted({at * 8: (at * 8, size) for at, size in runs}.values())
    assert bytes_of(boxes(runs)) == sorted(at + k for at, length in runs for k in range(length))


def bytes_of(found) -> list[int]:
    result = []
    for box in found:
        base, size, *pairs = box.tolist()
        counts, pitches = pairs[::2], pairs[1::2]
        for index in np.ndindex(*counts):
            start = base + sum(i * p for i, p in zip(index, pitches))
            result += range(start, start + size)
    return sorted(result)
