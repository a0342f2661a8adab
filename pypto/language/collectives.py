"""Bulk transfers and collectives between ranks, written in the language itself (spec distributed 2.7, 2.12, 2.13).

A call of ``pld.tensor.allreduce`` and its like is expanded where it stands; in a HOST orchestrator it becomes a chip
program that is dispatched to every rank of the domain (:mod:`pypto.language.host_collectives`). All of them meet at the
credit barrier: each rank adds one to its own cell on every peer, waits until every peer has done so here, and takes the
credits back at the end, so that a signal is zero again when the call is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import nodes as ir
from pypto.ir.enums import AtomicType, ReduceOp
from pypto.ir.errors import CompileError, InvalidOperationError
from pypto.ir.operations import dims

CHUNK_BYTES = 16 * 1024  # of a collective's accumulator (spec distributed 2.13.4)
STAGE_BYTES = 32 * 1024  # of the staging tile of put and get
ROW_ALIGNMENT = 32  # bytes of a tile row
ROW_ELEMENTS = 16  # elements whose row is whole blocks in every dtype of a collective
Expansion = tuple[Any, list[ir.Expr]]
"""An inline function and its arguments."""

# The names inside the functions below belong to the language: they are parsed, not run.


# --- the credit barrier -----------------------------------------------------------------------------------------------


@pl.inline
def meet(signal, row, lane, me, nranks, generation):
    """Wait until every rank has come to this point: one signal cell per pair of ranks."""
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer=peer, offsets=[row + me, lane], value=1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(nranks):
        if src != me:
            pld.system.wait(signal, offsets=[row + src, lane], expected=generation, cmp=pld.WaitCmp.Ge)


@pl.inline
def settle(signal, row, lane, me, nranks, credits):
    """Add ``credits`` to this rank's own cell of every peer."""
    for src in pl.range(nranks):
        if src != me:
            pld.system.notify(signal, peer=me, offsets=[row + src, lane], value=credits, op=pld.NotifyOp.AtomicAdd)


@pl.inline
def _barrier(signal):
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    meet(signal, 0, 0, me, nranks, 1)
    settle(signal, 0, 0, me, nranks, -1)


# --- reductions -------------------------------------------------------------------------------------------------------


@pl.inline
def _sum(a, b):
    return pl.add(a, b)


@pl.inline
def _max(a, b):
    return pl.maximum(a, b)


@pl.inline
def _min(a, b):
    return pl.minimum(a, b)


@pl.inline
def _prod(a, b):
    return pl.mul(a, b)


COMBINE = {ReduceOp.Sum: _sum, ReduceOp.Max: _max, ReduceOp.Min: _min, ReduceOp.Prod: _prod}


def _mesh_allreduce(size: int, chunk: int, element_bytes: int, op: ReduceOp, cores: int) -> Any:
    """Every rank reads the others' chunk, meets them, and overwrites its own (spec distributed 2.13.4)."""
    combine, whole, rest = COMBINE[op], size // chunk, size % chunk
    chunks, tail, padded = whole + (rest > 0), whole * chunk, _padded(rest, element_bytes)

    @pl.inline
    def step(flat, signal, lane, me, nranks, offset, generation):
        acc = pl.load(flat, [0, offset], [1, chunk])
        for peer in pl.range(nranks):
            if peer != me:
                acc = combine(acc, pld.tile.remote_load(flat, peer=peer, offsets=[0, offset], shape=[1, chunk]))
        meet(signal, 0, lane, me, nranks, generation)
        pl.store(acc, [0, offset], flat)

    @pl.inline
    def last(flat, signal, lane, me, nranks, generation):
        acc = pl.load(flat, [0, tail], [1, padded], valid_shape=[1, rest])
        for peer in pl.range(nranks):
            if peer != me:
                acc = combine(
                    acc,
                    pld.tile.remote_load(flat, peer=peer, offsets=[0, tail], shape=[1, padded], valid_shape=[1, rest]),
                )
        meet(signal, 0, lane, me, nranks, generation)
        pl.store(acc, [0, tail], flat)

    @pl.inline
    def whole_only(flat, signal):
        ctx = pld.get_comm_ctx(signal)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        meet(signal, 0, 0, me, nranks, 1)
        for k in pl.range(whole):
            step(flat, signal, 0, me, nranks, k * chunk, k + 2)
        settle(signal, 0, 0, me, nranks, -1 - chunks)

    @pl.inline
    def tail_only(flat, signal):
        ctx = pld.get_comm_ctx(signal)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        meet(signal, 0, 0, me, nranks, 1)
        last(flat, signal, 0, me, nranks, 2)
        settle(signal, 0, 0, me, nranks, -2)

    @pl.inline
    def both(flat, signal):
        ctx = pld.get_comm_ctx(signal)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        meet(signal, 0, 0, me, nranks, 1)
        for k in pl.range(whole):
            step(flat, signal, 0, me, nranks, k * chunk, k + 2)
        last(flat, signal, 0, me, nranks, chunks + 1)
        settle(signal, 0, 0, me, nranks, -1 - chunks)

    @pl.inline
    def by_cores(flat, signal):
        ctx = pld.get_comm_ctx(signal)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        block = pl.tile.get_block_idx()
        meet(signal, 0, block, me, nranks, 1)
        own = (chunks - block + cores - 1) // cores
        for k in pl.range(own):
            offset = (block + k * cores) * chunk
            acc = pl.load(flat, [0, offset], [1, chunk], valid_shape=[1, pl.min(chunk, size - offset)])
            for peer in pl.range(nranks):
                if peer != me:
                    part = pld.tile.remote_load(
                        flat,
                        peer=peer,
                        offsets=[0, offset],
                        shape=[1, chunk],
                        valid_shape=[1, pl.min(chunk, size - offset)],
                    )
                    acc = combine(acc, part)
            meet(signal, 0, block, me, nranks, k + 2)
            pl.store(acc, [0, offset], flat)
        settle(signal, 0, block, me, nranks, 0 - 1 - own)

    if cores > 1:
        return by_cores
    return whole_only if not rest else tail_only if not whole else both


def _ring_allreduce(size: int, nranks: int, chunk: int, granule: int, op: ReduceOp) -> Any:
    """Reduce-scatter, then all-gather, each rank reading its left neighbour (spec distributed 2.13.5).

    Segment i starts at ``i * size // nranks``, rounded up to ``granule`` elements.
    """
    combine, rounds = COMBINE[op], nranks - 1
    longest = -(-size // nranks) + granule
    width = min(-(-longest // ROW_ELEMENTS) * ROW_ELEMENTS, chunk)
    parts = -(-longest // width)
    up = granule - 1

    @pl.inline
    def meet_row(signal, row, me, generation):
        for peer in pl.range(nranks):
            if peer != me:
                pld.system.notify(signal, peer=peer, offsets=[row, me], value=1, op=pld.NotifyOp.AtomicAdd)
        for src in pl.range(nranks):
            if src != me:
                pld.system.wait(signal, offsets=[row, src], expected=generation, cmp=pld.WaitCmp.Ge)

    @pl.inline
    def reduce(flat, signal, row, me, left, offset, length, generation):
        if length > 0:
            acc = pl.load(flat, [0, offset], [1, width], valid_shape=[1, length])
            part = pld.tile.remote_load(flat, peer=left, offsets=[0, offset], shape=[1, width], valid_shape=[1, length])
            acc = combine(acc, part)
            meet_row(signal, row, me, generation)
            pl.store(acc, [0, offset], flat)
        else:
            meet_row(signal, row, me, generation)

    @pl.inline
    def copy(flat, signal, row, me, left, offset, length, generation):
        if length > 0:
            part = pld.tile.remote_load(flat, peer=left, offsets=[0, offset], shape=[1, width], valid_shape=[1, length])
            meet_row(signal, row, me, generation)
            pl.store(part, [0, offset], flat)
        else:
            meet_row(signal, row, me, generation)

    @pl.inline
    def allreduce(flat, signal):
        ctx = pld.get_comm_ctx(signal)
        me = pl.cast(pld.rank(ctx), pl.INDEX)
        left = (me + nranks - 1) % nranks
        for s in pl.range(rounds):
            segment = (me + 2 * nranks - s - 1) % nranks
            first = pl.min((segment * size // nranks + up) // granule * granule, size)
            end = pl.min(((segment + 1) * size // nranks + up) // granule * granule, size)
            for k in pl.range(parts):
                meet_row(signal, s, me, 2 * k + 1)
                reduce(flat, signal, s, me, left, first + k * width, pl.min(width, end - first - k * width), 2 * k + 2)
        for s in pl.range(rounds):
            segment = (me + 2 * nranks - s) % nranks
            first = pl.min((segment * size // nranks + up) // granule * granule, size)
            end = pl.min(((segment + 1) * size // nranks + up) // granule * granule, size)
            for k in pl.range(parts):
                meet_row(signal, rounds + s, me, 2 * k + 1)
                copy(
                    flat,
                    signal,
                    rounds + s,
                    me,
                    left,
                    first + k * width,
                    pl.min(width, end - first - k * width),
                    2 * k + 2,
                )
        for row in pl.range(2 * rounds):
            for src in pl.range(nranks):
                if src != me:
                    pld.system.notify(signal, peer=me, offsets=[row, src], value=-2 * parts, op=pld.NotifyOp.AtomicAdd)

    return allreduce


# --- the other collectives --------------------------------------------------------------------------------------------


def _columns(cols: int, element_bytes: int, budget: int = CHUNK_BYTES) -> tuple[int, int, int]:
    """Full column chunks, elements of one, and elements left over."""
    chunk = min(_padded(cols, element_bytes), budget // element_bytes)
    return cols // chunk, chunk, cols % chunk


def _padded(count: int, element_bytes: int) -> int:
    """``count`` elements rounded up to whole blocks of a tile row."""
    granule = max(1, ROW_ALIGNMENT // element_bytes)
    return -(-count // granule) * granule


def _broadcast(cols: int, element_bytes: int, root: int) -> Any:
    _, chunk, _ = _columns(cols, element_bytes)

    @pl.inline
    def broadcast(flat, signal):
        ctx = pld.get_comm_ctx(signal)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        meet(signal, 0, 0, me, nranks, 1)
        for j in pl.range(0, cols, chunk):
            part = pld.tile.remote_load(
                flat, peer=root, offsets=[0, j], shape=[1, chunk], valid_shape=[1, pl.min(chunk, cols - j)]
            )
            pl.store(part, [0, j], flat)
        settle(signal, 0, 0, me, nranks, -1)

    return broadcast


def _allgather(cols: int, element_bytes: int) -> Any:
    _, chunk, _ = _columns(cols, element_bytes)

    @pl.inline
    def allgather(local, target, signal):
        ctx = pld.get_comm_ctx(target)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        for j in pl.range(0, cols, chunk):
            part = pl.load(local, [0, j], [1, chunk], valid_shape=[1, pl.min(chunk, cols - j)])
            for peer in pl.range(nranks):
                pld.tile.remote_store(part, target, peer=peer, offsets=[me, j])
        meet(signal, 0, 0, me, nranks, 1)
        settle(signal, 0, 0, me, nranks, -1)

    return allgather


def _reduce_scatter(cols: int, element_bytes: int) -> Any:
    _, chunk, _ = _columns(cols, element_bytes)

    @pl.inline
    def reduce_scatter(target, signal):
        ctx = pld.get_comm_ctx(target)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        meet(signal, 0, 0, me, nranks, 1)
        for j in pl.range(0, cols, chunk):
            acc = pl.load(target, [me, j], [1, chunk], valid_shape=[1, pl.min(chunk, cols - j)])
            for peer in pl.range(nranks):
                if peer != me:
                    part = pld.tile.remote_load(
                        target, peer=peer, offsets=[me, j], shape=[1, chunk], valid_shape=[1, pl.min(chunk, cols - j)]
                    )
                    acc = pl.add(acc, part)
            pl.store(acc, [me, j], target)
        meet(signal, 0, 0, me, nranks, 2)
        settle(signal, 0, 0, me, nranks, -2)

    return reduce_scatter


def _all_to_all(cols: int, element_bytes: int) -> Any:
    _, chunk, _ = _columns(cols, element_bytes)

    @pl.inline
    def all_to_all(source, target, signal):
        ctx = pld.get_comm_ctx(target)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        for dest in pl.range(nranks):
            for j in pl.range(0, cols, chunk):
                part = pl.load(source, [dest, j], [1, chunk], valid_shape=[1, pl.min(chunk, cols - j)])
                pld.tile.remote_store(part, target, peer=dest, offsets=[me, j])
        meet(signal, 0, 0, me, nranks, 1)
        settle(signal, 0, 0, me, nranks, -1)

    return all_to_all


def _all_to_all_v(rows: int, cols: int, element_bytes: int, flat_counts: bool) -> Any:
    _, chunk, _ = _columns(cols, element_bytes)

    @pl.inline
    def count_of(counts, dest):
        return pl.read(counts, [dest, 0])

    @pl.inline
    def flat_count_of(counts, dest):
        return pl.read(counts, [dest])

    count = flat_count_of if flat_counts else count_of

    @pl.inline
    def all_to_all_v(source, target, signal, send_counts, recv_counts):
        ctx = pld.get_comm_ctx(target)
        me = pld.rank(ctx)
        nranks = pld.nranks(ctx)
        for dest in pl.range(nranks):
            sent = pl.min(count(send_counts, dest), rows)
            pld.system.notify(recv_counts, peer=dest, offsets=[me, 0], value=sent, op=pld.NotifyOp.Set)
            for i in pl.range(rows):
                for j in pl.range(0, cols, chunk):
                    part = pl.load(source, [dest * rows + i, j], [1, chunk], valid_shape=[1, pl.min(chunk, cols - j)])
                    pld.tile.remote_store(part, target, peer=dest, offsets=[me * rows + i, j])
        meet(signal, 0, 0, me, nranks, 1)
        settle(signal, 0, 0, me, nranks, -1)

    return all_to_all_v


# --- put and get ------------------------------------------------------------------------------------------------------


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


# --- from calls to expansions -----------------------------------------------------------------------------------------


def expansions(call: ir.Call) -> tuple[list[Expansion], ir.Expr | None]:
    """The inline functions that a transfer or collective stands for, and its value."""
    if call.op in ("pld.tensor.put", "pld.tensor.get", "pld.tile.put", "pld.tile.get"):
        return list(_transfers(call)), None
    return [_COLLECTIVES[call.op](call.arguments, call)], call.arguments.get("target", call.arguments["signal"])


def _transfers(call: ir.Call) -> Iterator[Expansion]:
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
        parts = [_matrix(t, o, index, shape) for t, o in ((dst, a.get("dst_offsets")), (src, a.get("src_offsets")))]
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
    chunk = _padded(chunk, element_bytes)
    band = int(a["chunk_rows"]) or max(1, widest // chunk)
    return (min(band, rows) if isinstance(rows, int) else band), chunk


def _matrix(tensor: ir.Expr, offsets: Any, index: tuple[int, ...], shape: tuple[ir.Dim, ...]) -> ir.Expr:
    """The matrix at ``index`` of the leading axes of a region of ``tensor``."""
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    rank = len(kind.shape)
    start = [ir.index(0)] * rank if offsets is None else list(offsets)
    for axis, step in enumerate(index):
        start[axis] = ir.as_expr(dims.add(ir.as_dim(start[axis]), step))
    if rank == 1:
        flat = ir.Call(
            "tensor.reshape",
            {"tensor": tensor, "shape": (ir.index(1), ir.as_expr(kind.shape[0]))},
            ir.TensorType((1, kind.shape[0]), kind.dtype, None, kind.distributed),
            {},
            tensor.span,
        )
        return _slice(flat, [ir.index(0), *start], (1, shape[-1]), ())
    if offsets is None and rank == 2:
        return tensor
    full = (*([1] * (rank - 2)), *shape[-2:])
    return _slice(tensor, start, full, tuple(range(rank - 2)))


def _slice(tensor: ir.Expr, offsets: list[ir.Expr], shape: tuple[ir.Dim, ...], dropped: tuple[int, ...]) -> ir.Call:
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    kept = tuple(e for axis, e in enumerate(shape) if axis not in dropped)
    arguments = {
        "tensor": tensor,
        "shape": tuple(map(ir.as_expr, shape)),
        "offset": tuple(offsets),
        "valid_shape": None,
        "drop_dims": dropped or None,
        "pad_value": None,
        "clamp": False,
    }
    return ir.Call("tensor.slice", arguments, ir.TensorType(kept, kind.dtype, None, kind.distributed), {}, tensor.span)


def _reshaped(tensor: ir.Expr, shape: tuple[ir.Dim, ...]) -> ir.Expr:
    """``tensor`` under another shape; a window stays one."""
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    if kind.shape == shape:
        return tensor
    arguments = {"tensor": tensor, "shape": tuple(map(ir.as_expr, shape)), "valid_shape": None}
    return ir.Call(
        "tensor.reshape", arguments, ir.TensorType(shape, kind.dtype, None, kind.distributed), {}, tensor.span
    )


def _flat(tensor: ir.Expr, call: ir.Call) -> tuple[ir.Expr, int]:
    """``tensor`` as one row, and its elements."""
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    size = dims.constant(dims.product(kind.shape))
    if size is None:
        raise CompileError(f"{call.op}: the target needs a static shape, got {dims.listing(kind.shape)}", call.span)
    return _reshaped(tensor, (1, size)), size


def _signal(signal: ir.Expr, call: ir.Call, lanes: int = 1) -> ir.Expr:
    """A mesh signal as ``[ranks, lanes]``."""
    kind = signal.type
    assert isinstance(kind, ir.TensorType)
    if len(kind.shape) == 1 and call.attrs.get("host"):
        if lanes > 1:
            raise CompileError(
                f"{call.op}: core_num={lanes} needs a signal of shape [ranks, {lanes}], got {dims.listing(kind.shape)}",
                call.span,
            )
        return _reshaped(signal, (kind.shape[0], 1))
    if (
        len(kind.shape) != 2
        or dims.less(kind.shape[1], lanes)
        or (lanes == 1 and not call.attrs.get("host") and kind.shape[1] != 1)
    ):
        raise CompileError(f"{call.op}: the signal must be [ranks, {lanes}], got {dims.listing(kind.shape)}", call.span)
    return signal


def _bytes(tensor: ir.Expr) -> int:
    return int(tensor.type.dtype.get_byte())  # type: ignore[attr-defined]


def _row_length(tensor: ir.Expr, call: ir.Call) -> int:
    size = dims.constant(tensor.type.shape[-1])  # type: ignore[attr-defined]
    if size is None:
        raise CompileError(f"{call.op}: rows need a static length", call.span)
    return size


def _on_allreduce(a: Any, call: ir.Call) -> Expansion:
    if a["signal"] is None:
        raise InvalidOperationError(
            f"{call.op} in a kernel needs an explicit signal: it expects a DistributedTensor signal", call.span
        )
    flat, size = _flat(a["target"], call)
    element_bytes = _bytes(flat)
    chunk = min(_padded(size, element_bytes), CHUNK_BYTES // element_bytes)
    if a["mode"] == "ring":
        return _ring(a, call, flat, size, chunk)
    cores = int(a["core_num"])
    if cores > 1 and not call.attrs.get("host"):
        raise CompileError(f"{call.op}: core_num={cores} belongs to the HOST form; in a kernel it is 1", call.span)
    if cores > 1:
        chunk = min(chunk, 256)
    return _mesh_allreduce(size, chunk, element_bytes, a["op"], cores), [flat, _signal(a["signal"], call, cores)]


def _ring(a: Any, call: ir.Call, flat: ir.Expr, size: int, chunk: int) -> Expansion:
    shape = a["signal"].type.shape
    nranks = dims.constant(shape[1]) if len(shape) == 2 else None
    if nranks is None or nranks < 2 or dims.less(shape[0], 2 * (nranks - 1)):
        raise CompileError(
            f"{call.op}: mode='ring' needs a signal of shape [2 * (ranks - 1), ranks], "
            f"both constant, got {dims.listing(shape)}",
            call.span,
        )
    granule = 16 if _bytes(flat) == 2 else 1
    width = max(granule, chunk // granule * granule)
    return _ring_allreduce(size, nranks, _padded(width, _bytes(flat)), granule, a["op"]), [flat, a["signal"]]


def _on_barrier(a: Any, call: ir.Call) -> Expansion:
    return _barrier, [_signal(a["signal"], call)]


def _on_broadcast(a: Any, call: ir.Call) -> Expansion:
    flat, size = _flat(a["target"], call)
    return _broadcast(size, _bytes(flat), a["root"]), [flat, _signal(a["signal"], call)]


def _on_allgather(a: Any, call: ir.Call) -> Expansion:
    target = a["target"]
    _need_distinct(call, a["local_data"], target)
    return _allgather(_row_length(target, call), _bytes(target)), [a["local_data"], target, _signal(a["signal"], call)]


def _on_reduce_scatter(a: Any, call: ir.Call) -> Expansion:
    target = a["target"]
    return _reduce_scatter(_row_length(target, call), _bytes(target)), [target, _signal(a["signal"], call)]


def _on_all_to_all(a: Any, call: ir.Call) -> Expansion:
    target = a["target"]
    _need_distinct(call, a["input"], target)
    return _all_to_all(_row_length(target, call), _bytes(target)), [a["input"], target, _signal(a["signal"], call)]


def _on_all_to_all_v(a: Any, call: ir.Call) -> Expansion:
    target, counts = a["target"], a["send_counts"]
    _need_distinct(call, a["input"], target)
    rows = int(target.type.shape[0]) // int(a["signal"].type.shape[0])
    body = _all_to_all_v(rows, _row_length(target, call), _bytes(target), len(counts.type.shape) == 1)
    return body, [a["input"], target, _signal(a["signal"], call), counts, _signal(a["recv_counts"], call)]


def _need_distinct(call: ir.Call, source: ir.Expr, target: ir.Expr) -> None:
    if source == target:
        raise CompileError(f"{call.op}: input and target must be different buffers", call.span)


_COLLECTIVES: dict[str, Callable[[Any, ir.Call], Expansion]] = {
    "pld.tensor.allreduce": _on_allreduce,
    "pld.tensor.barrier": _on_barrier,
    "pld.tensor.broadcast": _on_broadcast,
    "pld.tensor.allgather": _on_allgather,
    "pld.tensor.reduce_scatter": _on_reduce_scatter,
    "pld.tensor.all_to_all": _on_all_to_all,
    "pld.tensor.all_to_all_v": _on_all_to_all_v,
}
