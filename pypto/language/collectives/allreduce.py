"""Allreduce between ranks, written in the language itself: mesh and ring (spec distributed 2.13.4, 2.13.5)."""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.enums import ReduceOp

from .chunks import padded
from .credits import meet, settle

ROW_ELEMENTS = 16
"""Elements whose row is whole blocks in every dtype of a collective."""

# The names inside the functions below belong to the language: they are parsed, not run.


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


def mesh_allreduce(size: int, chunk: int, element_bytes: int, op: ReduceOp) -> Any:
    """Every rank reads the others' chunk, meets them, and overwrites its own (spec distributed 2.13.4)."""
    combine, whole, rest = COMBINE[op], size // chunk, size % chunk
    chunks, tail, width = whole + (rest > 0), whole * chunk, padded(rest, element_bytes)

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
        acc = pl.load(flat, [0, tail], [1, width], valid_shape=[1, rest])
        for peer in pl.range(nranks):
            if peer != me:
                acc = combine(
                    acc,
                    pld.tile.remote_load(flat, peer=peer, offsets=[0, tail], shape=[1, width], valid_shape=[1, rest]),
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

    return whole_only if not rest else tail_only if not whole else both


def mesh_allreduce_by_cores(size: int, chunk: int, op: ReduceOp, cores: int) -> Any:
    """Like :func:`mesh_allreduce`, chunks dealt in turn to ``cores`` blocks, each with its lane of the signal."""
    combine, chunks = COMBINE[op], -(-size // chunk)

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

    return by_cores


def ring_allreduce(size: int, nranks: int, chunk: int, granule: int, op: ReduceOp) -> Any:
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
