"""One instruction may make more separate accesses than the log has room for: all of them are compared."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim.checks import words as w
from pypto.sim.checks.cells import CELLS

ROWS, COLS = 96, 128
COUNT = ROWS * COLS  # elements, no two of them side by side
BESIDE, FAR = 2, 2 * CELLS  # elements from one to the next: many in a block of memory, or a block for each
WIDE = FAR * COUNT + 32


@pl.jit
def scatter_beside_store(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    index: pl.Tensor[[ROWS, COLS], pl.INT32],
    y: pl.InOut[pl.Tensor[[1, WIDE], pl.FP32]],
):
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="spread"):
            t, i = pl.load(x, [0, 0], [ROWS, COLS]), pl.load(index, [0, 0], [ROWS, COLS])
            pl.mscatter(t, i, y)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="other"):
            pl.store(pl.tile.full([1, 8], dtype=pl.FP32, value=1.0), [0, 0], y)
    return y


@pl.jit
def gather_beside_store(
    index: pl.Tensor[[ROWS, COLS], pl.INT32],
    mid: pl.InOut[pl.Tensor[[1, WIDE], pl.FP32]],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
            i = pl.load(index, [0, 0], [ROWS, COLS])
            pl.store(pl.mgather(mid, i, coalesce="elem"), [0, 0], y)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="other"):
            pl.store(pl.tile.full([1, 8], dtype=pl.FP32, value=1.0), [0, 0], mid)
    return y


def apart(clash: int | None, distance: int) -> torch.Tensor:
    """Elements from 32 on, ``distance`` apart and in any order; number ``clash`` is element 0."""
    index = 32 + distance * torch.randperm(COUNT, generator=torch.Generator().manual_seed(1)).int()
    if clash is not None:
        index[clash] = 0
    return index.reshape(ROWS, COLS)


def findings(kernel, *args):
    config = RunConfig(platform="a2a3sim", checks={"war", "waw", "raw", "uninit"}, checks_mode="collect")
    compiled = kernel.compile(*args, config=config)
    compiled(*args, config=config)
    return compiled.last_findings


@pytest.mark.parametrize("distance", [BESIDE, FAR])
@pytest.mark.parametrize("clash", [None, 0, 4096, w.LOG_ROWS - 1, w.LOG_ROWS, COUNT - 1])
def test_every_element_of_a_scatter_is_compared(clash, distance):
    x, index, y = torch.randn(ROWS, COLS), apart(clash, distance), torch.zeros(1, WIDE)
    found = findings(scatter_beside_store, x, index, y)
    assert [f.kind for f in found] == ([] if clash is None else ["waw"])
    assert all(f.bytes == (0, 4) and f.tensor == "y" for f in found)
    scattered = torch.zeros(WIDE)
    scattered[index.reshape(-1).long()] = x.reshape(-1)
    assert torch.equal(y[0, 8:], scattered[8:])


@pytest.mark.parametrize("distance", [BESIDE, FAR])
@pytest.mark.parametrize("clash", [None, 0, 4096, w.LOG_ROWS - 1, w.LOG_ROWS, COUNT - 1])
def test_every_element_of_a_gather_is_compared(clash, distance):
    mid, index, y = torch.randn(1, WIDE), apart(clash, distance), torch.zeros(ROWS, COLS)
    before = mid.clone()
    found = findings(gather_beside_store, index, mid, y)
    assert [f.kind for f in found] == ([] if clash is None else ["war"])
    assert all(f.bytes == (0, 4) and f.tensor == "mid" for f in found)
    assert torch.equal(y, before[0][index.long()])
