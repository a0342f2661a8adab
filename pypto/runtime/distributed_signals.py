"""What a recorded launch told other ranks, waited for and moved between chips, for the clock across ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.runtime.ranks_protocol import Signals, Words
from pypto.sim.distributed import CTX_BASE, CTX_RANKS, CTX_STRIDE, CTX_WORDS, CTX_WORLD
from pypto.sim.layout import TRACE_PC, TRACE_REPORT
from pypto.sim.memory import memory_view

if TYPE_CHECKING:
    from pypto.sim.recording import ProgramRecord, Recording


_KIND: Final = {"notify": 1, "signal_wait": 2, "signal_defer": 2, "tremote_load": 3, "tremote_store": 4}


def signals_of(recording: Recording, arguments: Sequence[Any]) -> Signals:
    """The signals and remote transfers of ``recording``, in the order its subtasks are listed."""
    kinds = [_kinds(program) for program in recording.programs]
    if not any(kind.any() for kind in kinds):
        return Signals()
    rows = []
    for subtask, program in enumerate(recording.subtask_program):
        first, last = int(recording.subtask_trace_start[subtask]), int(recording.subtask_trace_stop[subtask])
        pc = recording.trace[first:last, TRACE_PC]
        kind = np.where(pc >= 0, kinds[program][np.maximum(pc, 0)], 0)
        found = np.flatnonzero(kind)
        rows.append(np.stack([found + first, kind[found], np.full(len(found), subtask)], axis=1))
    table = np.concatenate(rows) if rows else np.zeros((0, 3), np.int64)
    return _collect(recording, table, arguments)


def _kinds(program: ProgramRecord) -> Words:
    """Per instruction: 1 notify, 2 wait, 3 remote load, 4 remote store, 0 anything else."""
    of_name = np.array([_KIND.get(name, 0) for name in program.mnemonics], np.int64)
    return of_name[program.mnemonic] if len(of_name) else np.zeros(0, np.int64)


def _collect(recording: Recording, table: Words, arguments: Sequence[Any]) -> Signals:
    row, kind, subtask = table[:, 0], table[:, 1], table[:, 2]
    report = recording.trace[:, TRACE_REPORT : TRACE_REPORT + 4]
    notify, wait = row[kind == 1], row[kind == 2]
    far = kind >= 3
    remote = row[far]
    spoken = kind <= 2
    order = np.where(kind[spoken] == 1, np.cumsum(kind[spoken] == 1) - 1, -np.cumsum(kind[spoken] == 2))
    return Signals(
        notify_row=notify,
        notify_cell=report[notify, 0],
        notify_rank=report[notify, 1],
        notify_value=report[notify, 2],
        notify_sets=report[notify, 3],
        wait_row=wait,
        wait_cell=report[wait, 0],
        wait_expected=report[wait, 2],
        wait_comparison=report[wait, 3],
        order=order,
        notify_chain=subtask[kind == 1],
        wait_chain=subtask[kind == 2],
        remote_row=remote,
        remote_peer=_peers(recording, remote, arguments),
        remote_bytes=report[remote, 1] * report[remote, 2],
        remote_writes=(kind[far] == 4).astype(np.int64),
        remote_chain=2 * subtask[far] + (kind[far] == 4),
    )


def _peers(recording: Recording, rows: Words, arguments: Sequence[Any]) -> Words:
    """World rank on the other side of every remote transfer, from the address it names."""
    peers = np.full(len(rows), -1, np.int64)
    address = recording.trace[rows, TRACE_REPORT]
    windows = [a for a in arguments if getattr(a, "context", 0)]
    first = _plain_allocations(arguments)
    for window, stable in zip(windows, recording.allocations[first : first + len(windows), 1].tolist()):
        record = memory_view(window.context, 8 * CTX_WORDS).view(np.int64)
        ranks, stride, base = int(record[CTX_RANKS]), int(record[CTX_STRIDE]), int(record[CTX_BASE])
        inside = window.address - base  # of the own window among those of all ranks
        position = address - stable + inside
        mine = (position >= 0) & (position < ranks * stride) & (peers < 0)
        world = record[CTX_WORLD : CTX_WORLD + ranks]
        peers[mine] = world[position[mine] // stride]
    return peers


def _plain_allocations(arguments: Sequence[Any]) -> int:
    """How many allocations stand before the windows: one per tensor, tensors that share bytes share one."""
    count, end = 0, -1
    for address, size in sorted((a.address, a.nbytes) for a in arguments if hasattr(a, "context") and not a.context):
        if not (address < end or size == 0 and address == end):
            count += 1
        end = max(end, address + size)
    return count
