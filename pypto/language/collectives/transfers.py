"""Put and get: a region goes to a peer, or comes from one, through staging tiles (spec distributed 2.7, 2.12)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import nodes as ir
from pypto.ir.enums import AtomicType
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims

from .chunks import padded
from .expansion import Expansion
from .regions import matrix_of

STAGE_BYTES = 32 * 1024
"""Of the staging tile."""

# The names inside the functions below belong to the language: they are parsed, not run.


def _put(band: int, chunk: int, adds: bool) -> Any:
    """Copy a matrix to the peer in staging tiles of ``band`` x ``chunk`` elements."""
    atomic = pl.AtomicType.Add if adds else pl.AtomicType.None_

    @pl.inline
    def put(dst, peer, src, rows, cols):
        for i in pl.range(0, rows, band):
            for j in pl.range(0, cols, chunk):
                part = pl.load(
                    src, [i, j], [band, chunk], valid_shape=[pl.min(band, rows - i), pl.min(chunk, cols - j)]
                )
                pld.tile.remote_store(part, dst, peer=peer, offsets=[i, j], atomic=atomic)

    return put


def _get(band: int, chunk: int) -> Any:
    @pl.inline
    def get(dst, peer, src, rows, cols):
        for i in pl.range(0, rows, band):
            for j in pl.range(0, cols, chunk):
                part = pld.tile.remote_load(
                    src,
                    peer=peer,
                    offsets=[i, j],
                    shape=[band, chunk],
                    valid_shape=[pl.min(band, rows - i), pl.min(chunk, cols - j)],
                )
                pl.store(part, [i, j], dst)

    return get


def _put_in_turns(band: int, chunk: int, adds: bool) -> Any:
    """Like :func:`_put` with two staging tiles: one is filled while the other is sent."""
    atomic = pl.AtomicType.Add if adds else pl.AtomicType.None_

    @pl.inline
    def put(dst, peer, src, rows, cols):
        across = (cols + chunk - 1) // chunk
        for k in pl.pipeline(0, (rows + band - 1) // band * across, stage=2):
            i = k // across * band
            j = k % across * chunk
            part = pl.load(src, [i, j], [band, chunk], valid_shape=[pl.min(band, rows - i), pl.min(chunk, cols - j)])
            pld.tile.remote_store(part, dst, peer=peer, offsets=[i, j], atomic=atomic)

    return put


def _get_in_turns(band: int, chunk: int) -> Any:
    @pl.inline
    def get(dst, peer, src, rows, cols):
        across = (cols + chunk - 1) // chunk
        for k in pl.pipeline(0, (rows + band - 1) // band * across, stage=2):
            i = k // across * band
            j = k % across * chunk
            part = pld.tile.remote_load(
                src,
                peer=peer,
                offsets=[i, j],
                shape=[band, chunk],
                valid_shape=[pl.min(band, rows - i), pl.min(chunk, cols - j)],
            )
            pl.store(part, [i, j], dst)

    return get


def transfers(call: ir.Call) -> Iterator[Expansion]:
    """The matrices that a put or a get moves, one per leading index; ``CompileError`` unless those are static."""
    a = call.arguments
    writes = call.op.endswith(".put")
    dst, src = a["dst"], a["src"]
    shape = tuple(map(ir.as_dim, a["shape"])) if a.get("shape") is not None else dst.type.shape
    rows, cols = shape[-2] if len(shape) > 1 else 1, shape[-1]
    band, chunk = _staging(a, rows, cols, dst.type.dtype.get_byte())
    body = _transfer(writes, bool(a.get("pipeline")), band, chunk, a.get("atomic", AtomicType.None_) is AtomicType.Add)
    leading = shape[:-2]
    if any(not isinstance(extent, int) for extent in leading):
        raise CompileError(f"{call.op}: the leading extents {dims.listing(leading)} must be static", call.span)
    for index in product(*(range(int(extent)) for extent in leading)):  # type: ignore[arg-type]
        parts = [matrix_of(t, o, index, shape) for t, o in ((dst, a.get("dst_offsets")), (src, a.get("src_offsets")))]
        yield body, [parts[0], a["peer"], parts[1], ir.as_expr(rows), ir.as_expr(cols)]


def _transfer(writes: bool, in_turns: bool, band: int, chunk: int, adds: bool) -> Any:
    """The inline function that moves one matrix."""
    if writes:
        return (_put_in_turns if in_turns else _put)(band, chunk, adds)
    return (_get_in_turns if in_turns else _get)(band, chunk)


def _staging(a: Any, rows: ir.Dim, cols: ir.Dim, element_bytes: int) -> tuple[int, int]:
    """Rows and columns of the staging tile."""
    stage = a.get("stage")
    if stage is not None:
        extents = stage.type.shape
        return (extents[-2] if len(extents) > 1 else 1), extents[-1]
    widest = STAGE_BYTES // element_bytes
    chunk = int(a["chunk_cols"]) or min(int(cols), widest)  # type: ignore[arg-type]
    if isinstance(cols, int):
        chunk = min(chunk, cols)
    chunk = padded(chunk, element_bytes)
    band = int(a["chunk_rows"]) or max(1, widest // chunk)
    return (min(band, rows) if isinstance(rows, int) else band), chunk
