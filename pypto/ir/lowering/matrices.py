"""Tiles of any rank as matrices: leading axes become rows."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims


def flat_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows (product of the leading axes) and columns of a tile of any rank."""
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return rows, shape[-1] if shape else 1


def flat_valid(shape: tuple[int, ...], valid: tuple[ir.Dim, ...], span: Any) -> tuple[ir.Dim, ir.Dim]:
    """Valid rows and columns; leading axes must be full or one of them partial with the others 1 or full before it."""
    lead = list(zip(shape[:-1], valid[:-1]))
    rows: ir.Dim = 1
    for position, (extent, good) in enumerate(lead):
        if good != extent and any(v != 1 for _, v in lead[:position]):
            raise CompileError(
                f"valid shape {list(map(str, valid))} of a {list(shape)} tile is not a range of rows", span
            )
        rows = dims.mul(rows, good)
    return rows, valid[-1] if valid else 1


def flat_offset(shape: tuple[int, ...], offset: tuple[ir.Expr, ...]) -> tuple[int, int] | None:
    """Row and column of a constant ``offset`` in a tile of any rank; ``None`` when a part of it is computed."""
    numbers = [ir.as_dim(o) for o in offset]
    if not all(isinstance(n, int) for n in numbers):
        return None
    row = 0
    for extent, number in zip(shape[:-1], numbers[:-1]):
        row = row * extent + int(number)  # type: ignore[arg-type]
    return row, int(numbers[-1])  # type: ignore[arg-type]


def matrix_offset(shape: tuple[int, ...], offset: tuple[ir.Expr, ...]) -> tuple[ir.Dim, ir.Dim]:
    """Row and column of ``offset``, constant or computed, in a tile of any rank."""
    row: ir.Dim = 0
    for extent, number in zip(shape[:-1], offset[:-1]):
        row = dims.add(dims.mul(row, extent), ir.as_dim(number))
    return row, ir.as_dim(offset[-1])
