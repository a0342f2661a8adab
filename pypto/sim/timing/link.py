"""From the traces of a launch to rows that know whom they wait for. Depends on the recording alone, not on a chip.

A row waits, per pipe, for the latest earlier row of its subtask that it must not overtake: the last writer of every
byte it reads, and the last writer and readers of every byte it writes. One row per pipe is enough because pipes are in
order. Rows of other cores (tiles handed over, events) are listed apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pypto.sim.layout import TRACE_PC, TRACE_REPORT, TRACE_SCALARS, TRACE_SLOT_SHIFT
from pypto.sim.recording import AIC, ProgramRecord, Recording

from . import codes as c
from .compiled import entry

Ints = NDArray[np.int64]


class Programs(NamedTuple):
    """All programs of a recording, end to end. Tiles with slots appear once per slot."""

    first_pc: Ints            # per program
    pipe: NDArray[np.int8]    # per instruction
    waits_all: NDArray[np.int8]   # per instruction: 1 when it waits for every pipe
    reads_start: Ints
    reads: Ints
    writes_start: Ints
    writes: Ints
    slots: Ints               # per tile: number of slots, 0 for the copies beyond the first
    overlap_start: Ints
    overlap: Ints             # tiles that share bytes with a tile, itself included


class Links(NamedTuple):
    """Per trace row."""

    pc: NDArray[np.int32]     # instruction among all programs
    pipe: NDArray[np.int8]
    next: NDArray[np.int32]   # next row of the same pipe and subtask, -1 at the end
    deps: NDArray[np.int32]   # [rows, pipes] row to wait for, -1 for none
    cross_start: NDArray[np.int32]
    cross: NDArray[np.int32]  # rows of other cores to wait for
    awaited: NDArray[np.int8]     # 1 when a row of another core waits for this one
    barrier: NDArray[np.int32]    # barrier the row arrives at, -1 for none
    barrier_size: NDArray[np.int32]   # members per barrier


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
    pipe = _concatenate([program.pipe for program in programs])
    everything = [np.array([_waits_for_all(p, pc) for pc in range(len(p.mnemonic))], np.int64) for p in programs]
    pipe = np.where(pipe >= c.PIPE_COUNT, c.S, pipe)
    return Programs(
        first_pc, pipe.astype(np.int8), _concatenate(everything).astype(np.int8), reads_start, reads, writes_start,
        writes,
        _concatenate(slots), overlap_start, overlap,
    )


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
    deps = np.full((rows, c.PIPE_COUNT), -1, np.int32)
    _trace_hazards(
        recording.trace, recording.subtask_trace_start, recording.subtask_trace_stop, recording.subtask_program,
        *programs, pc, pipe, following, deps,
    )
    cross = _cross_links(recording, pc)
    return Links(pc, pipe, following, deps, *cross)


@entry
def _trace_hazards(
    trace, trace_start, trace_stop, subtask_program, first_pc, pipe_of, waits_all, reads_start, reads, writes_start,
    writes,
    slots, overlap_start, overlap, pc, pipe, following, deps,
):
    """Fill ``pc``, ``pipe``, ``following`` and ``deps`` (fields of Links)."""
    tiles = slots.shape[0]
    writer = np.full(tiles, -1, np.int32)
    reader = np.full((tiles, c.PIPE_COUNT), -1, np.int32)
    slot_of = np.zeros(tiles, np.int64)
    last = np.full(c.PIPE_COUNT, -1, np.int32)
    touched = np.empty(tiles, np.int64)
    for subtask in range(trace_start.shape[0]):
        base = first_pc[subtask_program[subtask]]
        last[:] = -1
        count = 0
        for row in range(trace_start[subtask], trace_stop[subtask]):
            own = trace[row, TRACE_PC]
            if own < 0:
                trace_pipe = c.S
            else:
                own += base
                trace_pipe = pipe_of[own]
                slot = trace[row, TRACE_SCALARS] >> TRACE_SLOT_SHIFT
                for k in range(reads_start[own], reads_start[own + 1]):
                    tile = reads[k] + slot_of[reads[k]]
                    for o in range(overlap_start[tile], overlap_start[tile + 1]):
                        before = writer[overlap[o]]
                        if before >= 0 and before > deps[row, pipe[before]]:
                            deps[row, pipe[before]] = before
                for k in range(writes_start[own], writes_start[own + 1]):
                    first = writes[k]
                    if slots[first] > 1:
                        slot_of[first] = slot % slots[first]
                    tile = first + slot_of[first]
                    for o in range(overlap_start[tile], overlap_start[tile + 1]):
                        other = overlap[o]
                        before = writer[other]
                        if before >= 0 and before > deps[row, pipe[before]]:
                            deps[row, pipe[before]] = before
                        for p in range(c.PIPE_COUNT):
                            if reader[other, p] > deps[row, p]:
                                deps[row, p] = reader[other, p]
                if waits_all[own]:
                    for p in range(c.PIPE_COUNT):
                        deps[row, p] = last[p]
                for k in range(reads_start[own], reads_start[own + 1]):
                    tile = reads[k] + slot_of[reads[k]]
                    reader[tile, trace_pipe] = row
                    touched[count % tiles] = tile
                    count += 1
                for k in range(writes_start[own], writes_start[own + 1]):
                    tile = writes[k] + slot_of[writes[k]]
                    writer[tile] = row
                    touched[count % tiles] = tile
                    count += 1
                pc[row] = own
            pipe[row] = trace_pipe
            deps[row, trace_pipe] = -1
            if last[trace_pipe] >= 0:
                following[last[trace_pipe]] = row
            last[trace_pipe] = row
        if count <= tiles:
            for k in range(count):
                writer[touched[k]] = -1
                reader[touched[k], :] = -1
        else:
            writer[:] = -1
            reader[:] = -1
        slot_of[:] = 0


_Cross = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8], NDArray[np.int32], NDArray[np.int32]]


def _cross_links(recording: Recording, pc: NDArray[np.int32]) -> _Cross:
    """Waits between cores: pops for pushes, pushes for freed slots, events, and barriers of a whole task."""
    rows = len(recording.trace)
    waits: list[tuple[int, int]] = []
    barrier = np.full(rows, -1, np.int32)
    sizes: list[int] = []
    if _speaks_across(recording):
        for task in range(len(recording.task_name)):
            _task_links(recording, task, waits, barrier, sizes)
    waits.sort()
    start = np.zeros(rows + 1, np.int32)
    cross = np.array([source for _, source in waits], np.int32)
    awaited = np.zeros(rows, np.int8)
    awaited[cross] = 1
    for row, _ in waits:
        start[row + 1] += 1
    return np.cumsum(start, dtype=np.int32), cross, awaited, barrier, np.array(sizes, np.int32)


_SPEAKING = ("tpush", "tpop", "tfree", "sync_set", "sync_wait", "syncall")


def _speaks_across(recording: Recording) -> bool:
    return any(name.startswith(_SPEAKING) for program in recording.programs for name in program.mnemonics)


def _task_links(
    recording: Recording, task: int, waits: list[tuple[int, int]], barrier: NDArray[np.int32], sizes: list[int]
) -> None:
    blocks: dict[int, list[int]] = {}
    barriers: dict[tuple[int, int], list[int]] = {}
    for subtask in range(recording.subtask_start[task], recording.subtask_start[task + 1]):
        blocks.setdefault(int(recording.subtask_block[subtask]), []).append(subtask)
    sets: dict[tuple[bool, int, int], list[int]] = {}
    for members in blocks.values():
        _block_links(recording, members, waits, sets, barriers)
    for group in barriers.values():
        for row in group:
            barrier[row] = len(sizes)
        sizes.append(len(group))


def _block_links(recording, members, waits, sets, barriers) -> None:
    """Match what the cores of one block say to one another. Keys: queue or event, sequence number, side or lane."""
    said: dict[tuple[str, int, int], list[int]] = {}
    heard: list[tuple[str, int, int, int]] = []
    depth = _slots_per_queue(recording, members)
    for subtask in members:
        program = recording.programs[recording.subtask_program[subtask]]
        cube = program.core == AIC
        lane = int(recording.subtask_lane[subtask])
        for row in range(recording.subtask_trace_start[subtask], recording.subtask_trace_stop[subtask]):
            own = recording.trace[row, TRACE_PC]
            name = program.mnemonics[program.mnemonic[own]] if own >= 0 else ""
            if not name.startswith(_SPEAKING):
                continue
            queue, sequence = int(recording.trace[row, TRACE_REPORT]), int(recording.trace[row, TRACE_REPORT + 1])
            side = "" if cube else str(lane)
            if name.startswith("tpush"):
                said.setdefault(("push" + side, queue, sequence), []).append(row)
                heard.append(("free" + side, queue, sequence - depth, row))
            elif name.startswith("tpop"):
                heard.append(("pop" + side, queue, sequence, row))
                said.setdefault(("popped" + side, queue, sequence), []).append(row)
            elif name.startswith("tfree"):
                said.setdefault(("free" + side, queue, sequence), []).append(row)
            elif name == "sync_set":
                said.setdefault(("set" + side, queue, sequence), []).append(row)
            elif name == "sync_wait":
                heard.append(("wait" + side, queue, sequence, row))
            else:
                barriers.setdefault((queue, sequence), []).append(row)
    for word, queue, sequence, row in heard:
        for source in _answers(word, queue, sequence, said):
            waits.append((row, source))


def _slots_per_queue(recording: Recording, members: list[int]) -> int:
    """Eight slots one way, four per direction when tiles travel both ways (spec ops 17)."""
    names = {name for s in members for name in recording.programs[recording.subtask_program[s]].mnemonics}
    return 4 if {"tpush_to_aiv", "tpush_to_aic"} <= names else 8


def _answers(word: str, queue: int, sequence: int, said: dict[tuple[str, int, int], list[int]]) -> list[int]:
    """Rows that ``word`` waits for. The cube's side carries no suffix, the lanes' sides ``0`` and ``1``."""
    kind, side = (word[:-1], word[-1]) if word[-1].isdigit() else (word, "")
    others = [""] if side else ["0", "1"]
    source = {"pop": "push", "free": "free", "wait": "set"}[kind]
    rows = [row for other in others for row in said.get((source + other, queue, sequence), [])]
    if kind == "free" and not rows:
        rows = [row for other in others for row in said.get(("popped" + other, queue, sequence), [])]
    return rows
