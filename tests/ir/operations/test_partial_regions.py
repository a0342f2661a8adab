"""Operations on partly valid tiles: what is stored is the valid region, and padding never takes part (spec ops 1.10)."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from .kernels import on_tiles
from .value_cases import COLUMN, ROW, X, Y

REGIONS = [(20, 40), (1, 64), (32, 1), (32, 63)]
SETUP = (
    "p = pl.set_validshape(x_tile, {rows}, {cols})\n"
    "tmp = pl.create_tile([32, 64], dtype=pl.FP32)\n"
    "line = pl.create_tile([1, 32], dtype=pl.UINT8)\n"
)


def within(value: torch.Tensor, rows: int, cols: int) -> torch.Tensor:
    """The value in the region, zero elsewhere."""
    result = torch.zeros_like(value)
    result[:rows, :cols] = value[:rows, :cols]
    return result


ELEMENTWISE = {
    "pl.exp(p)": lambda x, y, c, r: x.exp(),
    "pl.add(p, y_tile)": lambda x, y, c, r: x + y,
    "pl.add(p, 2.0)": lambda x, y, c, r: x + 2,
    "pl.add(p, r_tile)": lambda x, y, c, r: x + r,
    "pl.row_expand_mul(p, c_tile)": lambda x, y, c, r: x * c,
    "pl.col_expand_sub(p, r_tile)": lambda x, y, c, r: x - r,
    "pl.cast(p, pl.INT32, mode='floor')": lambda x, y, c, r: x.floor().int(),
    "pl.add(p, pl.cast(y_tile, pl.FP16, mode='rint'))": lambda x, y, c, r: x + y.half().float(),
    "pl.sel(pl.cmp(p, y_tile, cmp_type=4), p, y_tile, line)": lambda x, y, c, r: torch.maximum(x, y),
    "pl.move(pl.move(p, pl.Mem.Mat), pl.Mem.Vec)": lambda x, y, c, r: x,
}
REDUCED = {
    "pl.row_sum(p, tmp)": lambda v: v.sum(1, keepdim=True),
    "pl.row_max(p, tmp)": lambda v: v.amax(1, keepdim=True),
    "pl.row_argmin(p, tmp)": lambda v: v.argmin(1, keepdim=True).int(),
    "pl.col_sum(p)": lambda v: v.sum(0, keepdim=True),
    "pl.col_min(p)": lambda v: v.amin(0, keepdim=True),
    "pl.col_argmax(p, tmp)": lambda v: v.argmax(0, keepdim=True).int(),
}


@pytest.mark.parametrize("region", REGIONS, ids=str)
@pytest.mark.parametrize("expression", ELEMENTWISE)
def test_elementwise_results_keep_the_region(expression, region):
    inputs = {"x": X, "y": Y, "c": COLUMN, "r": ROW}
    expected = within(ELEMENTWISE[expression](*inputs.values()), *region)
    found = on_tiles(SETUP.format(rows=region[0], cols=region[1]) + expression, torch.zeros_like(expected), **inputs)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("region", REGIONS, ids=str)
@pytest.mark.parametrize("expression", REDUCED)
def test_reductions_see_valid_elements_only(expression, region):
    rows, cols = region
    part = REDUCED[expression](X[:rows, :cols])
    full = (32, 1) if "row_" in expression else (1, 64)
    expected = torch.zeros(full, dtype=part.dtype)
    expected[: part.shape[0], : part.shape[1]] = part
    found = on_tiles(SETUP.format(rows=rows, cols=cols) + expression, torch.zeros_like(expected), x=X)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("region", REGIONS, ids=str)
def test_a_product_sums_over_the_valid_inner_extent(region):
    rows, cols = region
    expected = F.pad(X[:rows, :cols] @ Y.T[:cols], (0, 0, 0, 32 - rows))
    lines = SETUP.format(rows=rows, cols=cols) + "pl.matmul(p, pl.tile.transpose(y_tile, 0, 1))"
    found = on_tiles(lines, torch.zeros(32, 32), x=X, y=Y)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_partial_operations_take_the_operand_that_is_valid():
    lines = "p = pl.set_validshape(x_tile, 20, 40)\nq = pl.set_validshape(y_tile, 12, 50)\npl.part_add(p, q)"
    found = on_tiles(lines, torch.zeros(32, 64), x=X, y=Y)
    torch.testing.assert_close(found, within(X + within(Y, 12, 50), 20, 40))


def test_a_window_of_a_partial_tile_is_valid_where_the_tile_is():
    lines = "p = pl.set_validshape(x_tile, 20, 40)\npl.add(pl.slice(p, [16, 32], [10, 20]), 0.0)"
    found = on_tiles(lines, torch.zeros(16, 32), x=X)
    torch.testing.assert_close(found, F.pad(X[10:20, 20:40], (0, 12, 0, 6)))


def test_reshape_maps_a_flat_prefix():
    lines = "p = pl.set_validshape(x_tile, 16, 64)\npl.add(pl.reshape(p, [64, 32]), 0.0)"
    found = on_tiles(lines, torch.zeros(64, 32), x=X)
    torch.testing.assert_close(found, F.pad(X[:16].reshape(32, 32), (0, 0, 0, 32)))


def test_concatenation_places_the_second_after_the_last_valid_column():
    lines = "pl.concat(pl.set_validshape(x_tile, 32, 40), y_tile)"
    found = on_tiles(lines, torch.zeros(32, 128), x=X, y=Y)
    torch.testing.assert_close(found[:, :104], torch.cat([X[:, :40], Y], 1))
