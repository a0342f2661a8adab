"""Lay a recording, a chip and what an earlier launch left out in the engine's memory, and play them."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pypto.sim.chips import Chip
from pypto.sim.recording import AIC, EARLY_RESOLVE, SYNC_START, Recording

from . import codes as c
from . import engine, sharing
from . import words as x
from .cache import LINES_PER_TAG, Cache, empty_cache, forget_readers
from .costs import program_costs
from .link import Links, link
from .runtime import QUEUES

Ints = NDArray[np.int64]
PS_PER_US = 1_000_000


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


def _ps(ns: float) -> int:
    return round(ns * 1000)


def _figures(m: Ints, f: NDArray[np.float64], chip: Chip) -> None:
    """The chip's constants in the units of the engine."""
    r, sync, memory = chip.runtime, chip.sync, chip.memory
    cycle = PS_PER_US / chip.clock_mhz
    m[x.FLAG], m[x.CROSS] = round(sync.pipe_to_pipe.value * cycle), round(sync.cross_core.value * cycle)
    m[x.CUBE_START] = round(chip.cube.start.value * cycle)
    m[x.CUBE_FOLLOW] = round(chip.cube.back_to_back.value * cycle)
    m[x.QUEUE_DEPTH] = int(chip.cores.pipe_queue_depth.value)
    m[x.LINE_SHIFT] = int(memory.l2_line_bytes.value).bit_length() - 1
    m[x.L2_LINES] = int(memory.l2_bytes.value // memory.l2_line_bytes.value)
    m[x.CLUSTERS], m[x.LANES] = chip.clusters, int(chip.cores.vectors_per_cluster.value)
    m[x.THREADS] = int(chip.cores.scheduler_threads.value)
    for word, constant in (
        (x.SUBMIT_COST, r.submit),
        (x.LOOKUP, r.submit_lookup),
        (x.INSERT, r.submit_insert),
        (x.EDGE, r.submit_edge),
        (x.SCALAR_ARGUMENT, r.submit_scalar),
        (x.ALLOC, r.alloc),
        (x.SCOPE_END, r.scope_end),
        (x.SCOPE_END_TASK, r.scope_end_task),
        (x.INSTRUCTION, r.orchestrator_instruction),
        (x.POLL, r.poll),
        (x.IDLE_LOOP, r.idle_loop),
        (x.COMPLETE_COST, r.complete),
        (x.COMPLETE_FIRST, r.complete_first),
        (x.COMPLETE_CONSUMER, r.complete_consumer),
        (x.DISPATCH_COST, r.dispatch),
        (x.STORE, r.dispatch_store),
        (x.DOORBELL, r.doorbell),
        (x.SETUP, r.core_setup),
        (x.STAGED_SETUP, r.core_setup_staged),
        (x.PICKUP, r.core_pickup),
        (x.VISIBLE, r.finish_visible),
        (x.DUMMY_COST, r.dummy),
        (x.SYNC_START_COST, r.sync_start),
    ):
        m[word] = _ps(constant.value)
    m[x.WINDOW], m[x.HEAP_BYTES], m[x.RINGS] = int(r.ring_window.value), int(r.ring_heap.value), int(r.rings.value)
    f[x.TOGETHER_VECTOR] = memory.same_line_vector.value - 1
    f[x.TOGETHER_CUBE] = memory.same_line_cube.value - 1
    # cores that arrive one after the other meet half of the others: all of them are a full crowd
    f[x.TOGETHER_READER] = 2 / max(chip.cores.clusters.value - 1, 1)
    f[x.EVICTION_WEIGHT] = memory.hbm_gbps.value / memory.hbm_write_back_gbps.value
    m[x.REMOTE_FREE], m[x.CUBE_SLOWED] = int(chip.link.free_cores.value), x.WHOLE_SPEED
    m[x.REMOTE_SLOWS] = round((chip.link.cube_slowdown.value - 1) * x.WHOLE_SPEED)


def _cold_setup(chip: Chip) -> Ints:
    """Set-up of the first task per core, with the published least, median and most over the cores of a chip.

    Which cores are far is not published: the clusters are taken to lie in two rows, each numbered from its near end.
    """
    r = chip.runtime
    figures = r.core_cold_min.value, r.core_cold_median.value, r.core_cold_max.value
    along_row = np.arange(chip.clusters) % max(chip.clusters // 2, 1)
    rank = np.argsort(np.argsort(along_row, kind="stable"), kind="stable")
    setup_ns = np.interp((rank + 0.5) / chip.clusters, (0, 0.5, 1), figures)
    return np.repeat(np.rint(setup_ns * 1000).astype(np.int64), 1 + int(chip.cores.vectors_per_cluster.value))


def _rates(chip: Chip) -> tuple[list[float], list[float]]:
    """Bytes per ps per class: of one transfer alone, and of the pool. One GB/s is a byte per ns."""
    memory, per_cycle = chip.memory, chip.clock_mhz / PS_PER_US
    evictions = memory.hbm_gbps.value / 1000
    path = [
        chip.gm_ub.miss_rate.value * per_cycle,
        chip.gm_l1_nd2nz.miss_rate.value * per_cycle,
        evictions,
        chip.gm_ub.hit_rate.value * per_cycle,
        chip.gm_l1_nd2nz.hit_rate.value * per_cycle,
        chip.ub_gm.hit_rate.value * per_cycle,
        chip.l0c_gm.hit_rate.value * per_cycle,
    ]
    vector, cube = memory.l2_vector_gbps.value / 1000, memory.l2_cube_gbps.value / 1000
    pool = [memory.hbm_gbps.value / 1000, memory.hbm_nd2nz_gbps.value / 1000, evictions, vector, cube, vector, cube]
    return path, pool


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
    table[:, x.COLD] = _cold_setup(chip)
    table[:, x.OWNER] = cluster % m[x.THREADS]
    table[:, x.IS_CUBE] = index % members == 0
    table[:, x.CLUSTER_FIRST] = m[x.CORES] + cluster * members * table.shape[1]


def _lay_out_shares(m: Ints, f: NDArray[np.float64], chip: Chip) -> None:
    path, pool = _rates(chip)
    for kind in range(sharing.CLASSES):
        record = int(m[x.SHARES]) + kind * x.SHARE_WORDS
        f[record + x.PATH_RATE] = f[record + x.FULL_PATH_RATE] = path[kind]
        f[record + x.POOL_RATE] = f[record + x.FULL_POOL_RATE] = pool[kind]
        f[record + x.WEIGHT] = path[kind] / pool[kind]
        m[record + x.CLASS_END] = sharing.NEVER
    m[x.SHARE_END], m[x.SHARE_CLASS] = sharing.NEVER, -1


def cache_tags(recording: Recording, chip: Chip) -> int:
    """Tags needed to cover every address of the launch."""
    reach = 0
    if len(recording.allocations):
        reach = int((recording.allocations[:, 1] + recording.allocations[:, 2]).max())
    return reach // (int(chip.memory.l2_line_bytes.value) * LINES_PER_TAG) + 1


def _check(recording: Recording, chip: Chip) -> None:
    """Refuse what the runtime refuses: a synchronised start of more blocks than can be on the chip (code 7)."""
    for task in np.flatnonzero(recording.task_flags & SYNC_START):
        blocks = int(recording.task_blocks[task])
        limit = chip.vector_cores if recording.task_kind[task] == 0 else chip.clusters
        if blocks > limit:
            raise ValueError(
                f"task {recording.task_name[task]!r}: sync_start needs all {blocks} blocks on the chip at once, "
                f"{chip.name} has room for {limit}"
            )


def _build(recording: Recording, chip: Chip, links: Links, log_lines: int) -> tuple[Played, NDArray[np.float64]]:
    """The engine's memory with every table in place and what does not depend on prices filled in."""
    r = recording
    n_rows, n_subs, n_tasks = len(r.trace), len(r.subtask_program), len(r.task_name)
    threads, rings = int(chip.cores.scheduler_threads.value), int(chip.runtime.rings.value)
    n_cores = chip.clusters * (1 + int(chip.cores.vectors_per_cluster.value))
    core_words = x.RING + c.PIPE_COUNT * int(chip.cores.pipe_queue_depth.value)
    block = _Block()
    for place, words in (
        (x.ROWS, n_rows * x.ROW_WORDS),
        (x.SUBTASKS, n_subs * x.SUB_WORDS),
        (x.TASKS, n_tasks * x.TASK_WORDS),
        (x.CORES, n_cores * core_words),
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
    ):
        block.reserve(place, words)
    m, f = block.build()
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
    _figures(m, f, chip)

    def table(place: int, count: int, words: int) -> Ints:
        return m[m[place] : m[place] + count * words].reshape(count, words)

    played = Played(
        m,
        table(x.ROWS, n_rows, x.ROW_WORDS),
        table(x.SUBTASKS, n_subs, x.SUB_WORDS),
        table(x.TASKS, n_tasks, x.TASK_WORDS),
        table(x.CORES, n_cores, core_words),
        table(x.THREAD_TABLE, threads, x.THREAD_WORDS),
        table(x.LOG, log_lines, x.LOG_WORDS),
    )
    _lay_out_cross(m, links)
    if n_subs:
        _lay_out_subtasks(played.subtasks, m, r)
    _lay_out_tasks(played.tasks, m, r)
    _lay_out_cores(played.cores, m, chip)
    _lay_out_shares(m, f, chip)
    m[m[x.EVENTS] : m[x.EVENTS] + r.events.size] = r.events.ravel()
    return played, f


def play(
    recording: Recording, chip: Chip, cache: Cache | None, begin_ps: int, log_lines: int = 0, told: Ints | None = None
) -> Played:
    """Time a launch whose orchestrator and schedulers start at ``begin_ps``.

    ``told``, per trace row, is what other chips decide: ps at which a wait for a signal is over, ps that a transfer to
    or from another chip takes; 0 for all other rows.

    ``cache``, if given, covers the addresses of the launch and is changed in place. ``ValueError`` names a launch that
    cannot end: which tasks are left and what the orchestrator waits for.
    """
    _check(recording, chip)
    links = link(recording)
    played, f = _build(recording, chip, links, log_lines)
    costs = [program_costs(p, chip) for p in recording.programs]
    cycle = PS_PER_US / chip.clock_mhz
    trace = np.ascontiguousarray(recording.trace)
    prices = np.concatenate(costs) if costs else np.zeros((0, c.COST_COLUMNS))
    memo = np.full((len(prices), engine.MEMO_WORDS), -1, np.int64)
    engine.lay_out_rows(
        played.memory,
        memo,
        *links[:-2],
        trace,
        prices,
        cycle,
        chip.scalar.instruction.value * cycle,
        chip.scalar.tile_issue.value * cycle,
    )
    if told is not None:
        _tell(played.rows, told)
    if cache is None:
        cache = empty_cache(cache_tags(recording, chip))
    forget_readers(cache)
    if engine.run(played.memory, f, cache, begin_ps) == engine.STUCK:
        raise ValueError(_stuck(recording, played))
    return played


def _tell(rows: Ints, told: Ints) -> None:
    """Times that other chips decide, in the rows they belong to."""
    known = np.flatnonzero(told)
    waits = (rows[known, x.WHAT] & x.BYTE) == c.STALL
    rows[known[waits], x.UNTIL] = told[known[waits]]
    rows[known[~waits], x.WORK] = told[known[~waits]]


def _stuck(recording: Recording, played: Played) -> str:
    m = played.memory
    left = [recording.task_name[t] for t in np.flatnonzero(played.tasks[:, x.COMPLETE_AT] < 0)]
    waiting, draining = int(m[x.WAITING]), int(m[x.DRAINING])

    def name(task: int) -> str:
        return repr(recording.task_name[(task - int(m[x.TASKS])) // x.TASK_WORDS])

    reason = "the cores wait for one another"
    if waiting == x.FOR_RING:
        reason = (
            f"the orchestrator waits for a slot or heap of a task ring (window {m[x.WINDOW]} tasks, heap "
            f"{m[x.HEAP_BYTES]} bytes) that no task gives back while its scope is open"
        )
    elif draining >= 0:
        reason = f"task {name(draining)} waits for a synchronised start"
    elif waiting >= 0:
        reason = f"the orchestrator waits for task {name(waiting)}"
    return f"launch {recording.name!r} cannot end: {reason}; {len(left)} tasks left, first {', '.join(left[:3])}"


__all__ = ["EARLY_RESOLVE", "Played", "cache_tags", "play"]
