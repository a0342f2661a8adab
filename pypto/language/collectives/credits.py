"""The credit barrier at which ranks meet (spec distributed 2.13): a signal is zero again when the call is over.

Each rank adds one to its own cell on every peer, waits until every peer has done so here, and takes the credits back
at the end.
"""

from __future__ import annotations

import pypto.language as pl
import pypto.language.distributed as pld

# The names inside the functions below belong to the language: they are parsed, not run.


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
def barrier(signal):
    """Every rank of the signal's domain comes to this point before any goes on."""
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    meet(signal, 0, 0, me, nranks, 1)
    settle(signal, 0, 0, me, nranks, -1)
