"""The engine's memory: where its tables lie, and what of a recording and a chip they hold before a run."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pypto.sim.chips import Chip
from pypto.sim.recording import AIC, Recording

from . import codes as c
from . import sharing
from . import words as x
from .cache import LINES_PER_TAG
from .figures import cold_setup, rates, write_figures
from .link import Links
from .queues import QUEUES

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Played:
    """The engine's memory after a run, as tables: one row per record, columns named in ``words.py``.

    The memory is used again by the next run of the same thread: read what is wanted before.
    """

    memory: Ints
    rows: Ints
    subtasks: Ints
    tasks: Ints
    cores: Ints
    threads: Ints
    log: Ints

    def index_of(self, table: int, references: Ints, record_words: int) -> Ints:
        """Row numbers of references into a table whose place is header word ``table``; -1 stays."""
        number = (references - self.memory[table]) // record_words
        return np.where(references < 0, references, number)


class _Block:
    """Places tables one after the other in the engine's memory, then hands out views of them."""

    def __init__(self) -> None:
        self.size = x.HEADER
        self.places: dict[int, int] = {}

    def reserve(self, table: int, words: int) -> int:
        self.places[table] = self.size
        self.size += max(words, 1)
        return self.places[table]

    def build(self) -> tuple[Ints, NDArray[np.float64]]:
        """Everything zero but the places; the rows, which the engine writes whole, hold anything."""
        memory = _scratch(self.size)
        rows, behind = self.places[x.ROWS], self.places[x.SUBTASKS]
        memory[:rows] = 0
        memory[behind:] = 0
        for table, place in self.places.items():
            memory[table] = place
        return memory, memory.view(np.float64)


_REUSED = threading.local()


def _scratch(words: int) -> Ints:
    """Memory of this thread. Fresh pages cost more than the work on them, and sweeps ask for the same size again."""
    have: Ints | None = getattr(_REUSED, "memory", None)
    if have is None or len(have) < words:
        have = _REUSED.memory = np.empty(words, np.int64)
    return have[:words]


def _references(numbers: NDArray[np.integer], place: int, record_words: int) -> Ints:
    """References to records by their number; -1 stays."""
    wide = numbers.astype(np.int64)
    return np.where(wide < 0, -1, place + wide * record_words)


def _lay_out_cross(m: Ints, links: Links) -> None:
    cross = int(m[x.CROSS_LIST])
    words = _references(links.cross, int(m[x.ROWS]), x.ROW_WORDS)
    lengths = links.links[np.flatnonzero(links.flags & x.HAS_CROSS)]
    words[lengths] = links.cross[lengths]
    m[cross : cross + len(words)] = words
    sizes = m[m[x.BARRIERS] : m[x.BARRIERS] + len(links.barrier_size) * x.BARRIER_WORDS]
    sizes[x.BARRIER_SIZE :: x.BARRIER_WORDS] = links.barrier_size


def _lay_out_subtasks(table: Ints, m: Ints, r: Recording) -> None:
    task = np.repeat(np.arange(len(r.task_name)), np.diff(r.subtask_start))
    table[:, x.SUB_TASK] = _references(task, int(m[x.TASKS]), x.TASK_WORDS)
    table[:, x.SUB_IS_CUBE] = np.array([p.core == AIC for p in r.programs], np.int64)[r.subtask_program]
    table[:, x.SUB_LANE] = r.subtask_lane
    table[:, x.SUB_FIRST] = m[x.ROWS] + r.subtask_trace_start * x.ROW_WORDS
    table[:, x.SUB_STOP] = m[x.ROWS] + r.subtask_trace_stop * x.ROW_WORDS
    table[:, x.SUB_CORE : x.SUB_FINISH + 1] = -1
    table[r.subtask_start[1:][np.diff(r.subtask_start) > 0] - 1, x.SUB_LAST] = 1


def _consumers(r: Recording) -> tuple[Ints, Ints]:
    """Producers per task to consumers per task, in CSR form."""
    n = len(r.task_name)
    consumer = np.repeat(np.arange(n), np.diff(r.deps_start))
    order = np.argsort(r.deps, kind="stable")
    begin = np.zeros(n + 1, np.int64)
    np.add.at(begin, r.deps.astype(np.int64) + 1, 1)
    return np.cumsum(begin), consumer[order]


def _lay_out_tasks(table: Ints, m: Ints, r: Recording) -> None:
    for column, values in (
        (x.TASK_KIND, r.task_kind),
        (x.BLOCKS, r.task_blocks),
        (x.TASK_FLAGS, r.task_flags),
        (x.TENSORS, r.task_tensors),
        (x.SCALAR_ARGUMENTS, r.task_scalars),
        (x.LOOKUPS, r.task_lookups),
        (x.SCOPE, r.task_scope),
        (x.LEFT, np.diff(r.subtask_start)),
    ):
        table[:, column] = values
    table[:, x.MEMBERS] = np.diff(r.subtask_start) // np.maximum(r.task_blocks, 1)
    subs = _references(r.subtask_start, int(m[x.SUBTASKS]), x.SUB_WORDS)
    table[:, x.FIRST_SUB], table[:, x.STOP_SUB] = subs[:-1], subs[1:]
    start, consumers = _consumers(r)
    deps_at, consumers_at = int(m[x.DEPS]), int(m[x.CONSUMERS])
    table[:, x.DEP_FIRST], table[:, x.DEP_STOP] = deps_at + r.deps_start[:-1], deps_at + r.deps_start[1:]
    table[:, x.CONSUMER_FIRST], table[:, x.CONSUMER_STOP] = consumers_at + start[:-1], consumers_at + start[1:]
    m[deps_at : deps_at + len(r.deps)] = _references(r.deps, int(m[x.TASKS]), x.TASK_WORDS)
    m[consumers_at : consumers_at + len(consumers)] = _references(consumers, int(m[x.TASKS]), x.TASK_WORDS)
    for column in (x.SUBMITTED_AT, x.READY_AT, x.COMPLETE_AT, x.READY_CAUSE):
        table[:, column] = -1


def _lay_out_cores(table: Ints, m: Ints, chip: Chip) -> None:
    members = 1 + int(m[x.LANES])
    index = np.arange(len(table))
    cluster = index // members
    for column in (x.RUNNING, x.HANDED):
        table[:, column] = -1
    table[:, x.COLD] = cold_setup(chip)
    table[:, x.OWNER] = cluster % m[x.THREADS]
    table[:, x.IS_CUBE] = index % members == 0
    table[:, x.CLUSTER_FIRST] = m[x.CORES] + cluster * members * table.shape[1]


def _lay_out_shares(m: Ints, f: NDArray[np.float64], chip: Chip) -> None:
    path, pool = rates(chip)
    for kind in range(sharing.CLASSES):
        record = int(m[x.SHARES]) + kind * x.SHARE_WORDS
        f[record + x.PATH_RATE] = f[record + x.FULL_PATH_RATE] = path[kind]
        f[record + x.POOL_RATE] = f[record + x.FULL_POOL_RATE] = pool[kind]
        f[record + x.WEIGHT] = path[kind] / pool[kind]
        m[record + x.CLASS_END] = sharing.NEVER
    for kind, loads in ((sharing.VECTOR_MISS, chip.gm_ub), (sharing.CUBE_MISS, chip.gm_l1_nd2nz)):
        f[int(m[x.SHARES]) + kind * x.SHARE_WORDS + x.SPLIT_WEIGHT] = loads.split_lines.value
    m[x.SHARE_END], m[x.SHARE_CLASS] = sharing.NEVER, -1


def cache_tags(recording: Recording, chip: Chip) -> int:
    """Tags needed to cover every address of the launch."""
    reach = 0
    if len(recording.allocations):
        reach = int((recording.allocations[:, 1] + recording.allocations[:, 2]).max())
    return reach // (int(chip.memory.l2_line_bytes.value) * LINES_PER_TAG) + 1


def _cores(chip: Chip) -> int:
    return chip.clusters * (1 + int(chip.cores.vectors_per_cluster.value))


def _core_words(chip: Chip) -> int:
    return x.RING + c.PIPE_COUNT * int(chip.cores.pipe_queue_depth.value)


def _sizes(r: Recording, chip: Chip, links: Links, log_lines: int) -> tuple[tuple[int, int], ...]:
    """Header word of each table and how many words it takes."""
    n_subs, n_tasks, n_cores = len(r.subtask_program), len(r.task_name), _cores(chip)
    threads, rings = int(chip.cores.scheduler_threads.value), int(chip.runtime.rings.value)
    return (
        (x.ROWS, len(r.trace) * x.ROW_WORDS),
        (x.SUBTASKS, n_subs * x.SUB_WORDS),
        (x.TASKS, n_tasks * x.TASK_WORDS),
        (x.CORES, n_cores * _core_words(chip)),
        (x.THREAD_TABLE, threads * x.THREAD_WORDS),
        (x.CROSS_LIST, len(links.cross)),
        (x.DEPS, len(r.deps)),
        (x.CONSUMERS, len(r.deps)),
        (x.EVENTS, r.events.size),
        (x.QUEUE, (6 * n_cores + 2 * n_subs + threads + 16) * x.EVENT_WORDS),
        (x.READY, QUEUES * (x.READY_ITEMS + 2 * (n_tasks + 1))),
        (x.FINISHED, threads * (2 * n_cores + 1)),
        (x.RING_TABLE, rings * x.RING_WORDS),
        (x.RING_TASKS, rings * (n_tasks + 1)),
        (x.SCOPES, 64),
        (x.BARRIERS, len(links.barrier_size) * x.BARRIER_WORDS),
        (x.BATCH, 8 * n_cores),
        (x.DIRTY, n_cores + 1),
        (x.LOG, log_lines * x.LOG_WORDS),
        (x.SHARES, sharing.CLASSES * (x.SHARE_WORDS + 2 * 3 * n_cores)),
    )


def _start_words(m: Ints, r: Recording, chip: Chip, log_lines: int) -> None:
    """Header words that are not constants of the chip, before a run."""
    n_tasks, n_cores = len(r.task_name), _cores(chip)
    for word, value in (
        (x.READY_SIZE, n_tasks + 1),
        (x.FINISHED_SIZE, 2 * n_cores + 1),
        (x.RING_SIZE, n_tasks + 1),
        (x.LOG_SIZE, log_lines),
        (x.SHARE_OWNERS, 3 * n_cores),
        (x.TASK_COUNT, n_tasks),
        (x.CORE_COUNT, n_cores),
        (x.EVENT_ROWS, len(r.events)),
        (x.WAITING, x.NOT_WAITING),
        (x.ENDED, -1),
        (x.DRAINING, -1),
        (x.CACHE_TAGS, cache_tags(r, chip)),
    ):
        m[word] = value


def _views(m: Ints, r: Recording, chip: Chip, log_lines: int) -> Played:
    """The tables of the engine's memory."""

    def table(place: int, count: int, words: int) -> Ints:
        return m[m[place] : m[place] + count * words].reshape(count, words)

    return Played(
        m,
        table(x.ROWS, len(r.trace), x.ROW_WORDS),
        table(x.SUBTASKS, len(r.subtask_program), x.SUB_WORDS),
        table(x.TASKS, len(r.task_name), x.TASK_WORDS),
        table(x.CORES, _cores(chip), _core_words(chip)),
        table(x.THREAD_TABLE, int(chip.cores.scheduler_threads.value), x.THREAD_WORDS),
        table(x.LOG, log_lines, x.LOG_WORDS),
    )


def lay_out(recording: Recording, chip: Chip, links: Links, log_lines: int) -> tuple[Played, NDArray[np.float64]]:
    """The engine's memory with every table in place and what does not depend on prices filled in."""
    r, block = recording, _Block()
    for place, words in _sizes(r, chip, links, log_lines):
        block.reserve(place, words)
    m, f = block.build()
    _start_words(m, r, chip, log_lines)
    write_figures(m, f, chip)
    played = _views(m, r, chip, log_lines)
    _lay_out_cross(m, links)
    if len(played.subtasks):
        _lay_out_subtasks(played.subtasks, m, r)
    _lay_out_tasks(played.tasks, m, r)
    _lay_out_cores(played.cores, m, chip)
    _lay_out_shares(m, f, chip)
    m[m[x.EVENTS] : m[x.EVENTS] + r.events.size] = r.events.ravel()
    return played, f
