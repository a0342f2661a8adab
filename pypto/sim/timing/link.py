"""From the traces of a launch to rows that know whom they wait for. Depends on the recording alone, not on a chip.

A row waits, per pipe, for the latest earlier row of its subtask that it must not overtake: the last writer of every
byte it reads, and the last writer and readers of every byte it writes. One row per pipe is enough because pipes are in
order. Rows of other cores (tiles handed over, events) are listed apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pypto.sim.layout import TRACE_PC, TRACE_REPORT, TRACE_SCALARS, TRACE_SLOT_SHIFT
from pypto.sim.recording import AIC, ProgramRecord, Recording

from . import codes as c
from .compiled import entry, kernel
from .words import AT_BARRIER, AWAITED, HAS_CROSS, MAX_DEPS

Ints = NDArray[np.int64]


class Programs(NamedTuple):
    """All programs of a recording, end to end. Tiles with slots appear once per slot."""

    first_pc: Ints  # per program
    pipe: NDArray[np.int8]  # per instruction
    waits_all: NDArray[np.int8]  # per instruction: 1 when it waits for every pipe
    reads_start: Ints
    reads: Ints
    writes_start: Ints
    writes: Ints
    slots: Ints  # per tile: number of slots, 0 for the copies beyond the first
    overlap_start: Ints
    overlap: Ints  # tiles that share bytes with a tile, itself included


class Links(NamedTuple):
    """Per trace row, but for the last two."""

    pc: NDArray[np.int32]  # instruction among all programs
    pipe: NDArray[np.int8]
    next: NDArray[np.int32]  # next row of the same pipe and subtask, -1 at the end
    deps: NDArray[np.int32]  # [rows, MAX_DEPS] rows to wait for, -1 after the last
    links: NDArray[np.int32]  # place in ``cross``, or number of a barrier, as ``flags`` say
    flags: NDArray[np.int64]  # AWAITED, HAS_CROSS, AT_BARRIER of words.py
    cross: NDArray[np.int32]  # lists of rows of other cores to wait for, each after its length
    barrier_size: NDArray[np.int32]  # members per barrier


def collect_programs(programs: list[ProgramRecord]) -> Programs:
    """Concatenate the programs, give every slot of a tile a number and find the tiles that share bytes."""
    first_pc = np.zeros(len(programs) + 1, np.int64)
    first_tile = np.zeros(len(programs) + 1, np.int64)
    boxes = []
    slots = []
    renumbered = []
    for index, program in enumerate(programs):
        first_pc[index + 1] = first_pc[index] + len(program.mnemonic)
        box, count, number = _tile_boxes(program, int(first_tile[index]))
        boxes.append(box)
        slots.append(count)
        renumbered.append(number)
        first_tile[index + 1] = first_tile[index] + len(box)
    overlap_start, overlap = _overlaps(boxes, first_tile)
    reads_start, reads = _operands([(p.reads_start, p.reads) for p in programs], renumbered)
    writes_start, writes = _operands([(p.writes_start, p.writes) for p in programs], renumbered)
    pipe = _concatenate([_pipes(program) for program in programs])
    everything = [np.array([_waits_for_all(p, pc) for pc in range(len(p.mnemonic))], np.int64) for p in programs]
    pipe = np.where(pipe >= c.PIPE_COUNT, c.S, pipe)
    return Programs(
        first_pc,
        pipe.astype(np.int8),
        _concatenate(everything).astype(np.int8),
        reads_start,
        reads,
        writes_start,
        writes,
        _concatenate(slots),
        overlap_start,
        overlap,
    )


def _pipes(program: ProgramRecord) -> Ints:
    """Pipe per instruction. A slot is given back by a flag of the pipe that read it last; the scalar unit goes on."""
    frees = np.array([program.mnemonics[m].startswith("tfree") for m in program.mnemonic], bool)
    return np.where(frees, c.MTE1 if program.core == AIC else c.V, program.pipe)


def _waits_for_all(program: ProgramRecord, pc: int) -> bool:
    """Fences and barriers of all pipes wait for everything issued before."""
    return int(program.pipe[pc]) == c.PIPE_COUNT


def _tile_boxes(program: ProgramRecord, first: int) -> tuple[Ints, Ints, Ints]:
    """(space, begin, end) per tile and slot; slots per tile; number of the first slot of each tile."""
    boxes: list[tuple[int, int, int]] = []
    slots: list[int] = []
    number = np.zeros(len(program.tiles), np.int64)
    for tile, row in enumerate(program.tiles):
        count, pitch = (int(row[8]), int(row[9])) if len(row) > 9 and row[8] > 1 else (1, 0)
        number[tile] = first + len(boxes)
        for slot in range(count):
            begin = int(row[1]) + slot * pitch
            boxes.append((int(row[0]), begin, begin + int(row[2])))
            slots.append(count if slot == 0 else 0)
    return np.array(boxes, np.int64).reshape(-1, 3), np.array(slots, np.int64), number


def _overlaps(boxes: list[Ints], first_tile: Ints) -> tuple[Ints, Ints]:
    start = [0]
    flat: list[Ints] = []
    for box, first in zip(boxes, first_tile):
        for space, begin, end in box:
            hits = np.flatnonzero((box[:, 0] == space) & (box[:, 1] < end) & (box[:, 2] > begin)) + first
            flat.append(hits)
            start.append(start[-1] + len(hits))
    return np.array(start, np.int64), _concatenate(flat)


def _operands(parts: list[tuple[Ints, Ints]], renumbered: list[Ints]) -> tuple[Ints, Ints]:
    start = [np.zeros(1, np.int64)]
    flat = []
    base = 0
    for (begin, items), number in zip(parts, renumbered):
        start.append(begin[1:] + base)
        flat.append(number[items])
        base += len(items)
    return _concatenate(start), _concatenate(flat)


def _concatenate(parts: list[Ints]) -> Ints:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)


def link(recording: Recording) -> Links:
    """The rows of a recording; remembered on the recording, which every chip is timed from."""
    known: Links | None = recording.__dict__.get("_links")
    if known is None:
        known = recording.__dict__["_links"] = _link_rows(recording, collect_programs(recording.programs))
    return known


def _link_rows(recording: Recording, programs: Programs) -> Links:
    rows = len(recording.trace)
    pc = np.full(rows, -1, np.int32)
    pipe = np.full(rows, c.S, np.int8)
    following = np.full(rows, -1, np.int32)
    deps = np.empty((rows, MAX_DEPS), np.int32)
    tiles = len(programs.slots)
    work = (np.full(tiles, -1, np.int32), np.full((tiles, c.PIPE_COUNT), -1, np.int32), np.zeros(tiles, np.int64),
            np.zeros((2, c.PIPE_COUNT), np.int32))  # fmt: skip
    _trace_hazards(
        *work, recording.trace, recording.subtask_trace_start, recording.subtask_trace_stop,
        recording.subtask_program, *programs, pc, pipe, following, deps,
    )  # fmt: skip
    return Links(pc, pipe, following, deps, *_cross_links(recording))


@kernel
def _note(latest, touched, pipe, before):
    """Remember the latest row per pipe; returns the pipes that have one, as bits."""
    if not touched >> pipe & 1 or before > latest[pipe]:
        latest[pipe] = before
    return touched | 1 << pipe


@entry
def _trace_hazards(
    writer, reader, slot_of, latest_two, trace, trace_start, trace_stop, subtask_program, first_pc, pipe_of, waits_all,
    reads_start, reads, writes_start, writes, slots, overlap_start, overlap, pc, pipe, following, deps,
):  # fmt: skip
    """Fill ``pc``, ``pipe``, ``following`` and ``deps`` (fields of Links).

    The first four arguments are memory to work in: the last writer of each tile, its last reader per pipe, its present
    slot, and two rows per pipe.
    """
    last, latest = latest_two[0], latest_two[1]
    for subtask in range(trace_start.shape[0]):
        base = first_pc[subtask_program[subtask]]
        begin = np.int32(trace_start[subtask])
        # entries of earlier subtasks are older than ``begin`` and count as none
        last[:] = -1
        slot_of[:] = 0
        for row in range(trace_start[subtask], trace_stop[subtask]):
            own = trace[row, TRACE_PC]
            own_pipe: int = np.int8(c.S)  # type: ignore[assignment]
            touched = 0
            if own >= 0:
                own += base
                own_pipe = pipe_of[own]
                pc[row] = own
                for k in range(reads_start[own], reads_start[own + 1]):
                    tile = reads[k] + slot_of[reads[k]]
                    for o in range(overlap_start[tile], overlap_start[tile + 1]):
                        before = writer[overlap[o]]
                        if before >= begin:
                            touched = _note(latest, touched, pipe[before], before)
                for k in range(writes_start[own], writes_start[own + 1]):
                    tile = writes[k]
                    if slots[tile] > 1:
                        slot_of[tile] = (trace[row, TRACE_SCALARS] >> TRACE_SLOT_SHIFT) % slots[tile]
                    tile += slot_of[tile]
                    for o in range(overlap_start[tile], overlap_start[tile + 1]):
                        other = overlap[o]
                        before = writer[other]
                        if before >= begin:
                            touched = _note(latest, touched, pipe[before], before)
                        for p in range(c.PIPE_COUNT):
                            if reader[other, p] >= begin:
                                touched = _note(latest, touched, p, reader[other, p])
                if waits_all[own]:
                    touched = 0
                    for p in range(c.PIPE_COUNT):
                        if last[p] >= begin:
                            touched = _note(latest, touched, p, last[p])
                for k in range(reads_start[own], reads_start[own + 1]):
                    reader[reads[k] + slot_of[reads[k]], own_pipe] = row
                for k in range(writes_start[own], writes_start[own + 1]):
                    writer[writes[k] + slot_of[writes[k]]] = row
            pipe[row] = own_pipe
            count = 0
            touched &= ~(1 << own_pipe)
            for p in range(c.PIPE_COUNT):
                if touched >> p & 1 and count < MAX_DEPS:
                    deps[row, count] = latest[p]
                    count += 1
            if count < MAX_DEPS:
                deps[row, count] = -1
            if last[own_pipe] >= 0:
                following[last[own_pipe]] = row
            last[own_pipe] = row


_Cross = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


def _cross_links(recording: Recording) -> _Cross:
    """Waits between cores: pops for pushes, pushes for freed slots, events, and barriers of a whole task."""
    rows = len(recording.trace)
    links, flags = np.zeros(rows, np.int32), np.zeros(rows, np.int64)
    waits: dict[int, list[int]] = {}
    barriers: list[list[int]] = []
    if _speaks_across(recording):
        for task in range(len(recording.task_name)):
            _task_links(recording, task, waits, barriers)
    flat: list[int] = []
    for row, sources in waits.items():
        links[row] = len(flat)
        flags[row] |= HAS_CROSS
        flags[sources] |= AWAITED
        flat += [len(sources), *sources]
    for number, members in enumerate(barriers):
        links[members] = number
        flags[members] |= AT_BARRIER
    return links, flags, np.array(flat, np.int32), np.array([len(b) for b in barriers], np.int32)


_SPEAKING = ("tpush", "tpop", "tfree", "sync_set", "sync_wait", "syncall")


def _speaks_across(recording: Recording) -> bool:
    return any(name.startswith(_SPEAKING) for program in recording.programs for name in program.mnemonics)


def _task_links(recording: Recording, task: int, waits: dict[int, list[int]], barriers: list[list[int]]) -> None:
    blocks: dict[int, list[int]] = {}
    for subtask in range(recording.subtask_start[task], recording.subtask_start[task + 1]):
        blocks.setdefault(int(recording.subtask_block[subtask]), []).append(subtask)
    meetings: dict[tuple[int, int], list[int]] = {}
    for members in blocks.values():
        _block_links(recording, members, waits, meetings)
    barriers += meetings.values()


def _speaking_rows(recording: Recording, subtask: int) -> Iterator[tuple[int, str, int, int]]:
    """Row, mnemonic, queue or event, sequence number of what a subtask says to other cores."""
    program = recording.programs[recording.subtask_program[subtask]]
    first, stop = int(recording.subtask_trace_start[subtask]), int(recording.subtask_trace_stop[subtask])
    speaks = np.array([program.mnemonics[m].startswith(_SPEAKING) for m in program.mnemonic] + [False])
    trace = recording.trace
    for offset in np.flatnonzero(speaks[trace[first:stop, TRACE_PC]]):
        row = first + int(offset)
        name = program.mnemonics[program.mnemonic[trace[row, TRACE_PC]]]
        yield row, name, int(trace[row, TRACE_REPORT]), int(trace[row, TRACE_REPORT + 1])


def _block_links(
    recording: Recording, members: list[int], waits: dict[int, list[int]], meetings: dict[tuple[int, int], list[int]]
) -> None:
    """Match what the cores of one block say to one another. Keys: queue or event, sequence number, side or lane."""
    said: dict[tuple[str, int, int], list[int]] = {}
    heard: list[tuple[str, str, int, int, int]] = []
    default = _slots_per_queue(recording, members)
    for subtask in members:
        program = recording.programs[recording.subtask_program[subtask]]
        cube = program.core == AIC
        side = "" if cube else str(int(recording.subtask_lane[subtask]))
        for row, name, queue, sequence in _speaking_rows(recording, subtask):
            if name.startswith("tpush"):
                said.setdefault(("push" + side, queue, sequence), []).append(row)
                depth = program.attributes[recording.trace[row, TRACE_PC]].get("slots") or default
                heard.append(("free", side, queue, sequence - depth, row))
            elif name.startswith("tpop"):
                said.setdefault(("popped" + side, queue, sequence), []).append(row)
                heard.append(("push", side, queue, sequence, row))
            elif name.startswith("tfree"):
                said.setdefault(("free" + side, queue, sequence), []).append(row)
            elif name == "sync_set":
                said.setdefault(("set" + side, queue, sequence), []).append(row)
            elif name == "sync_wait":
                heard.append(("set", side, queue, sequence, row))
            else:
                meetings.setdefault((queue, sequence), []).append(row)
    for word, side, queue, sequence, row in heard:
        sources = _answers(word, side, queue, sequence, said)
        if sources:
            waits[row] = sources


def _slots_per_queue(recording: Recording, members: list[int]) -> int:
    """Eight slots one way, four per direction when tiles travel both ways (spec ops 17)."""
    names = {name for s in members for name in recording.programs[recording.subtask_program[s]].mnemonics}
    return 4 if {"tpush_to_aiv", "tpush_to_aic"} <= names else 8


def _answers(word: str, side: str, queue: int, sequence: int, said: dict[tuple[str, int, int], list[int]]) -> list[int]:
    """Rows of the other side that say ``word``: the cube's side carries no suffix, the lanes' sides ``0`` and ``1``.

    A slot that is never freed in so many words is free once its tile has been received.
    """
    others = [""] if side else ["0", "1"]
    words = [word, "popped"] if word == "free" else [word]
    for one in words:
        rows = [row for other in others for row in said.get((one + other, queue, sequence), [])]
        if rows:
            return rows
    return []
