"""How a collective cuts its rows into tiles (spec distributed 2.13.4)."""

from __future__ import annotations

CHUNK_BYTES = 16 * 1024
"""Of a collective's accumulator."""
ROW_ALIGNMENT = 32
"""Bytes of a tile row."""


def padded(count: int, element_bytes: int) -> int:
    """``count`` elements rounded up to whole blocks of a tile row."""
    granule = max(1, ROW_ALIGNMENT // element_bytes)
    return -(-count // granule) * granule


def chunk_of(cols: int, element_bytes: int) -> int:
    """Elements of a column chunk of rows of ``cols`` elements."""
    return min(padded(cols, element_bytes), CHUNK_BYTES // element_bytes)
