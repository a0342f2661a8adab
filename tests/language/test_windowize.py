"""``windowize=True``: what a kernel provably touches is what dependency inference sees (spec language 5.2)."""

import json

import pytest
import torch
from round_trip import assert_round_trips, random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]],
             n: pl.Tensor[[8], pl.INT32]):
"""


def program(body):
    """A program over ``x``, ``y`` and ``n`` with ``AT`` standing for a core scope that asks for windows."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    return pl.parse(
        HEAD + lines.replace("AT", "with pl.at(level=pl.Level.CORE_GROUP, windowize=True)") + "        return y\n"
    )


def graph(source, tmp_path, *arguments):
    """Edges between tasks by position after a run."""
    assert_round_trips(source)
    compiled = ir.compile(source, platform="a2a3sim", output_dir=str(tmp_path), dump_passes=False)
    compiled(*arguments, config=RunConfig(platform="a2a3sim", enable_dep_gen=True))
    found = json.loads((tmp_path / "dfx_outputs" / "deps.json").read_text())
    place = {task["task_id"]: i for i, task in enumerate(found["tasks"])}
    return {(place[e["pred"]], place[e["succ"]]) for e in found["edges"]}


N = torch.tensor([3, 0, 2, 1, 0, 0, 0, 0], dtype=torch.int32)

ROW_BANDS = """
for i in pl.range(4):
    AT:
        y[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
"""
SMALLER_STEPS = """
for i in pl.range(4):
    AT:
        for r in pl.range(0, 16, 4):
            at = i * 16 + r
            y[at : at + 4, 8:40] = pl.add(x[at : at + 4, 8:40], 1.0)
"""
TILES = """
for i in pl.range(4):
    AT:
        part = pl.load(x, [i * 16, 8], [16, 32])
        y = pl.store(pl.add(part, 1.0), [i * 16, 8], y)
"""
BACKWARDS = """
for i in pl.range(4):
    AT:
        for r in pl.range(3, -1, -1):
            y[(i * 4 + r) * 4 : (i * 4 + r) * 4 + 4, 8:40] = pl.add(x[i * 16 + 4 * r : i * 16 + 4 * r + 4, 8:40], 1.0)
"""
ELEMENTS = """
for i in pl.range(4):
    AT:
        for r in pl.range(16):
            for c in pl.range(8, 40):
                pl.write(y, [i * 16 + r, c], pl.read(x, [i * 16 + r, c]) + 1.0)
"""


@pytest.mark.parametrize("body", [ROW_BANDS, SMALLER_STEPS, TILES, BACKWARDS, ELEMENTS])
def test_tasks_on_different_windows_are_independent(body, tmp_path):
    x, y = random(64, 64), torch.zeros(64, 64)
    assert graph(program(body), tmp_path, x, y, N) == set()
    columns = slice(0, 64) if body is ROW_BANDS else slice(8, 40)
    want = torch.zeros(64, 64)
    want[:, columns] = x[:, columns] + 1
    torch.testing.assert_close(y, want)


def test_without_the_option_they_are_ordered(tmp_path):
    source = program(ROW_BANDS)
    text = source.as_python().replace(", windowize=True", "")
    assert graph(pl.parse(text), tmp_path, random(64, 64), torch.zeros(64, 64), N) >= {(0, 1), (1, 2), (2, 3)}


def test_the_caller_passes_slices_with_the_strides_of_the_tensor():
    text = program(SMALLER_STEPS)
    lowered = ir.PassManager.get_strategy(ir.OptimizationStrategy.Default).run_passes(text).as_python()
    assert "pl.tensor.slice(x, [16, 32], [i * 16, 8])" in lowered and "stride=[64, 1]" in lowered
    assert "windowize" not in lowered


def test_overlapping_windows_stay_ordered(tmp_path):
    body = """
for i in pl.range(4):
    AT:
        y[i * 8 : i * 8 + 16, :] = pl.add(y[i * 8 : i * 8 + 16, :], x[i * 8 : i * 8 + 16, :])
"""
    x, y = random(64, 64), torch.zeros(64, 64)
    assert graph(program(body), tmp_path, x, y, N) >= {(0, 1), (1, 2), (2, 3)}
    want = torch.zeros(64, 64)
    for i in range(4):
        want[i * 8 : i * 8 + 16] += x[i * 8 : i * 8 + 16]
    torch.testing.assert_close(y, want)


DATA_DEPENDENT = """
for i in pl.range(4):
    AT:
        at = pl.cast(pl.read(n, [i]), pl.INDEX) * 16
        y[at : at + 16, :] = pl.add(x[at : at + 16, :], 1.0)
"""
WHOLE = """
for i in pl.range(4):
    AT:
        t = pl.add(x[:], 1.0)
        y[i * 16 : i * 16 + 16, :] = t[i * 16 : i * 16 + 16, :]
        y[:, 0:8] = y[:, 0:8]
"""
IN_A_BRANCH = """
for i in pl.range(5):
    AT:
        if i < 4:
            y[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
"""


@pytest.mark.parametrize("body", [DATA_DEPENDENT, WHOLE, IN_A_BRANCH])
def test_what_cannot_be_proven_keeps_the_tensor(body, tmp_path):
    x, y = random(64, 64), torch.zeros(64, 64)
    assert graph(program(body), tmp_path, x, y, N) >= {(0, 1), (1, 2), (2, 3)}
    torch.testing.assert_close(y, x + 1)


ROWS = pl.dynamic("ROWS")


@pl.jit
def dynamic_rows(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    for i in pl.range(rows // 16):
        with pl.at(level=pl.Level.CORE_GROUP, windowize=True) as done:
            y[i * 16 : i * 16 + 16, :] = pl.exp(x[i * 16 : i * 16 + 16, :])
        with pl.at(level=pl.Level.CORE_GROUP, windowize=True, deps=[done]):
            y[i * 16 : i * 16 + 16, :] = pl.add(y[i * 16 : i * 16 + 16, :], 1.0)
    return y


@pytest.mark.parametrize("rows", [16, 48, 80])
def test_a_dynamic_extent(rows):
    x, y = random(rows, 64), torch.zeros(rows, 64)
    dynamic_rows(x, y, config=RunConfig(platform="a2a3"))
    torch.testing.assert_close(y, torch.exp(x) + 1)


@pl.jit
def computed_inside(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, windowize=True):
        half = pl.mul(x[0:16, :], 0.5)
    with pl.at(level=pl.Level.CORE_GROUP, windowize=True):
        y[16:32, :] = half
    with pl.at(level=pl.Level.CORE_GROUP, windowize=True):
        y[0:16, :] = pl.neg(half)
    return y


def test_tensors_computed_in_a_scope():
    x, y = random(32, 64), torch.zeros(32, 64)
    computed_inside(x, y, config=RunConfig(platform="a2a3"))
    torch.testing.assert_close(y, torch.cat([-x[:16] / 2, x[:16] / 2]))
