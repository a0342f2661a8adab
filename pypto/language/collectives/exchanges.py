"""Broadcast, allgather, reduce-scatter and all-to-all, written in the language itself (spec distributed 2.13)."""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld

from .chunks import chunk_of
from .credits import meet, settle

# The names inside the functions below belong to the language: they are parsed, not run.


def broadcast_body(cols: int, element_bytes: int, root: int) -> Any:
    """One row of ``cols`` elements: every rank copies that of rank ``root`` to itself (spec distributed 2.13)."""
    chunk = chunk_of(cols, element_bytes)

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


def allgather_body(cols: int, element_bytes: int) -> Any:
    """``local[1, cols]`` of rank ``r`` becomes row ``r`` of ``target[ranks, cols]`` of all (spec distributed 2.13)."""
    chunk = chunk_of(cols, element_bytes)

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


def reduce_scatter_body(cols: int, element_bytes: int) -> Any:
    """Row ``me`` of ``target[ranks, cols]`` becomes the sum of that row of all ranks (spec distributed 2.13)."""
    chunk = chunk_of(cols, element_bytes)

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


def all_to_all_body(cols: int, element_bytes: int) -> Any:
    """Row ``r`` of ``source[ranks, cols]`` becomes row ``me`` of ``target`` of rank ``r`` (spec distributed 2.13)."""
    chunk = chunk_of(cols, element_bytes)

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


def all_to_all_v_body(rows: int, cols: int, element_bytes: int, flat_counts: bool) -> Any:
    """Like :func:`all_to_all_body` for ``rows`` rows per rank; how many count is sent along (spec distributed 2.13)."""
    chunk = chunk_of(cols, element_bytes)

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
