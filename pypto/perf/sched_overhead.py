"""How much of a run the scheduler is to blame for (``profiling.md`` 5.5); every quantity in ns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pypto.perf.chip_records import ChipRecords, ChipTask, SchedulerPhase
from pypto.perf.task_graph import TaskGraph
from pypto.perf.trace_events import Event

ENGINES = ("aic", "aiv")
BOUND_SHARE, PARTIAL_SHARE = 0.25, 0.08
LOOP_KINDS = ("complete", "async_poll", "dispatch")
COUNTER_PID, ALL_TID, HAS_TID = 2, 9121, 9122
ENGINE_TIDS = {"aic": 9101, "aiv": 9111}


@dataclass(frozen=True)
class EngineState:
    """One engine during a stretch of time: idle cores and ready tasks that nobody has dispatched."""

    idle: int
    ready: int

    @property
    def overhead(self) -> bool:
        return self.idle > 0 and self.ready > 0


@dataclass(frozen=True)
class Stretch:
    """A stretch of time in which nothing changes."""

    start_ns: int
    end_ns: int
    engines: dict[str, EngineState]

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def all_overhead(self) -> bool:
        """Every present engine is overhead."""
        return bool(self.engines) and all(state.overhead for state in self.engines.values())

    @property
    def has_overhead(self) -> bool:
        """Every engine that has ready work is overhead, and there is such an engine."""
        waiting = [state for state in self.engines.values() if state.ready > 0]
        return bool(waiting) and all(state.overhead for state in waiting)


@dataclass(frozen=True)
class Switches:
    """Switch gaps of one core: the next task was dispatched before the previous one ended."""

    core_id: int
    core_type: str
    gaps_ns: list[int]
    overhead_ns: int

    @property
    def total_ns(self) -> int:
        return sum(self.gaps_ns)


@dataclass(frozen=True)
class LoopBudget:
    """One scheduler thread: loops, tasks it finished, and where its time went by kind."""

    thread: int
    loops: int
    tasks: int
    by_kind_ns: dict[str, int]
    idle_ns: int
    pop_hit: int
    pop_miss: int

    @property
    def ns_per_loop(self) -> float:
        spent = sum(self.by_kind_ns.get(kind, 0) for kind in LOOP_KINDS) + self.idle_ns
        return spent / self.loops if self.loops else 0.0


@dataclass(frozen=True)
class PathShare:
    """Time along the chain of latest-ending producers: computing, and waiting for the scheduler."""

    compute_ns: int
    scheduler_ns: int
    tasks: list[int]


@dataclass(frozen=True)
class SchedOverhead:
    """Everything the report prints."""

    window_ns: int
    overhead_ns: dict[str, int]
    all_ns: int
    has_ns: int
    switches: list[Switches]
    heads_ns: list[int]
    tails_ns: list[int]
    loops: list[LoopBudget]
    path: PathShare
    fan_out: list[int] = field(default_factory=list)
    fan_in: list[int] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        share = self.has_ns / self.window_ns if self.window_ns else 0.0
        if share >= BOUND_SHARE:
            return "scheduler-bound"
        return "partially limited by the scheduler" if share >= PARTIAL_SHARE else "compute/dependency-bound"

    @property
    def switch_bounds_ns(self) -> tuple[int, int]:
        """How much of the makespan switching can cost, at least and at most."""
        if not self.switches:
            return 0, 0
        smallest: dict[str, int] = {}
        for core in self.switches:
            smallest[core.core_type] = min(smallest.get(core.core_type, core.total_ns), core.total_ns)
        return min(core.total_ns for core in self.switches), sum(smallest.values())


class SchedOverheadError(ValueError):
    """The records do not hold what the analysis needs."""


def sched_overhead(records: ChipRecords, graph: TaskGraph) -> SchedOverhead:
    """Analyse one run.

    Raises:
        SchedOverheadError: the collection level is below 3, or there is no task.
    """
    if records.level < 3:
        raise SchedOverheadError(f"scheduler phases need collection level 3 or more, the records have {records.level}")
    if not records.tasks:
        raise SchedOverheadError("the records hold no task that ran on a core")
    start, end = min(t.start_ns for t in records.tasks), max(t.end_ns for t in records.tasks)
    inside = [s for s in stretches(records, graph) if start <= s.start_ns and s.end_ns <= end]
    engines = present_engines(records)
    return SchedOverhead(
        window_ns=end - start,
        overhead_ns={e: sum(s.length_ns for s in inside if s.engines[e].overhead) for e in engines},
        all_ns=sum(s.length_ns for s in inside if s.all_overhead),
        has_ns=sum(s.length_ns for s in inside if s.has_overhead),
        switches=_switches(records, inside),
        heads_ns=_heads(records),
        tails_ns=[max(0, t.finish_ns - t.end_ns) for t in records.tasks if t.finish_ns is not None],
        loops=[_loop_budget(records, thread, phases) for thread, phases in enumerate(records.phases) if phases],
        path=_path_share(records, graph),
        fan_out=[len(graph.succs.get(task, ())) for task in graph.all_ids],
        fan_in=[len(graph.preds.get(task, ())) for task in graph.all_ids],
    )


def present_engines(records: ChipRecords) -> list[str]:
    """Engines that ran any task."""
    used = {task.core_type for task in records.tasks}
    return [engine for engine in ENGINES if engine in used]


def _core_count(records: ChipRecords, engine: str) -> int:
    used = {task.core_id for task in records.tasks if task.core_type == engine}
    return max(sum(kind == engine for kind in records.core_types), len(used))


def stretches(records: ChipRecords, graph: TaskGraph) -> list[Stretch]:
    """The run cut wherever a core starts or ends, or a task becomes ready or is dispatched."""
    engines = present_engines(records)
    cores = {engine: _core_count(records, engine) for engine in engines}
    changes: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for task in records.tasks:
        changes[task.start_ns].append((task.core_type, -1, 0))
        changes[task.end_ns].append((task.core_type, 1, 0))
    for engine, ready, dispatch in _ready_spans(records, graph):
        changes[ready].append((engine, 0, 1))
        changes[dispatch].append((engine, 0, -1))
    first, last = min(t.start_ns for t in records.tasks), max(t.end_ns for t in records.tasks)
    for edge in (first, last):
        changes[edge] += []
    idle, waiting = dict(cores), dict.fromkeys(engines, 0)
    result: list[Stretch] = []
    moments = sorted(changes)
    for at, following in zip(moments, moments[1:]):
        for engine, freed, became_ready in changes[at]:
            idle[engine] += freed
            waiting[engine] += became_ready
        result.append(Stretch(at, following, {e: EngineState(idle[e], waiting[e]) for e in engines}))
    return result


def _ready_spans(records: ChipRecords, graph: TaskGraph) -> Iterator[tuple[str, int, int]]:
    """(engine, ready, dispatched) of every task that waited; a MIX task waits on both engines."""
    ends: dict[int, int] = {}
    dispatches: dict[tuple[int, str], int] = {}
    for task in records.tasks:
        ends[task.task_id] = max(ends.get(task.task_id, 0), task.end_ns)
        if task.dispatch_ns is not None:
            key = (task.task_id, task.core_type)
            dispatches[key] = min(dispatches.get(key, task.dispatch_ns), task.dispatch_ns)
    for (task_id, engine), dispatch in dispatches.items():
        producers = [ends[pred] for pred in graph.preds.get(task_id, ()) if pred in ends]
        ready = max(producers) if producers else dispatch
        if ready < dispatch:
            yield engine, ready, dispatch


def _by_core(records: ChipRecords) -> dict[int, list[ChipTask]]:
    cores: dict[int, list[ChipTask]] = defaultdict(list)
    for task in sorted(records.tasks, key=lambda t: t.start_ns):
        cores[task.core_id].append(task)
    return dict(sorted(cores.items()))


def _switches(records: ChipRecords, inside: Sequence[Stretch]) -> list[Switches]:
    result = []
    for core_id, rows in _by_core(records).items():
        gaps = [
            (before.end_ns, after.start_ns)
            for before, after in zip(rows, rows[1:])
            if after.dispatch_ns is not None and after.dispatch_ns < before.end_ns <= after.start_ns
        ]
        engine = rows[0].core_type
        overhead = _covered(gaps, [s for s in inside if s.engines[engine].overhead])
        result.append(Switches(core_id, engine, [end - start for start, end in gaps], overhead))
    return result


def _covered(gaps: Sequence[tuple[int, int]], overhead: Sequence[Stretch]) -> int:
    """Length of the gaps that lies inside overhead; both are sorted and disjoint."""
    total, at = 0, 0
    for start, end in gaps:
        while at < len(overhead) and overhead[at].end_ns <= start:
            at += 1
        look = at
        while look < len(overhead) and overhead[look].start_ns < end:
            total += min(end, overhead[look].end_ns) - max(start, overhead[look].start_ns)
            look += 1
    return total


def _heads(records: ChipRecords) -> list[int]:
    heads = []
    for rows in _by_core(records).values():
        for at, row in enumerate(rows):
            if row.dispatch_ns is None:
                continue
            free = row.start_ns - (rows[at - 1].end_ns if at else row.dispatch_ns)
            heads.append(max(0, min(row.start_ns - row.dispatch_ns, free)))
    return heads


def _loop_budget(records: ChipRecords, thread: int, phases: Sequence[SchedulerPhase]) -> LoopBudget:
    by_kind: dict[str, int] = defaultdict(int)
    for phase in phases:
        by_kind[phase.kind] += phase.duration_ns
    window = max(p.end_ns for p in phases) - min(p.start_ns for p in phases)
    counted = sum(by_kind.get(kind, 0) for kind in LOOP_KINDS)
    final: dict[int, ChipTask] = {}
    for task in records.tasks:
        if task.finish_ns is not None and task.finish_ns >= (final.get(task.task_id, task).finish_ns or 0):
            final[task.task_id] = task
    owners = records.core_to_thread
    tasks = sum(1 for t in final.values() if t.core_id < len(owners) and owners[t.core_id] == thread)
    return LoopBudget(
        thread,
        max(p.loop_iter for p in phases),
        tasks,
        dict(by_kind),
        max(0, window - counted),
        sum(p.pop_hit or 0 for p in phases),
        sum(p.pop_miss or 0 for p in phases),
    )


def _path_share(records: ChipRecords, graph: TaskGraph) -> PathShare:
    """Back from the task that finished last, always through the producer that ended last."""
    spans: dict[int, tuple[int, int, int]] = {}
    for row in records.tasks:
        dispatch = row.start_ns if row.dispatch_ns is None else row.dispatch_ns
        known = spans.get(row.task_id, (row.start_ns, row.end_ns, dispatch))
        spans[row.task_id] = (min(known[0], row.start_ns), max(known[1], row.end_ns), min(known[2], dispatch))
    at = max(records.tasks, key=lambda row: (row.finish_ns or row.end_ns, row.task_id)).task_id
    compute = scheduler = 0
    path: list[int] = []
    visited: set[int] = set()
    while True:
        path.append(at)
        visited.add(at)
        start, end, dispatch = spans[at]
        compute += end - start
        producers = [p for p in graph.preds.get(at, ()) if p in spans and p not in visited]
        if not producers:
            return PathShare(compute, scheduler + max(0, start - dispatch), path[::-1])
        gate = max(producers, key=lambda p: spans[p][1])
        scheduler += max(0, start - spans[gate][1])
        at = gate


def overhead_counters(records: ChipRecords, graph: TaskGraph) -> list[Event]:
    """Counter events of the merged trace, one per change; engines without any task are left out."""
    if not records.tasks:
        return []
    events: list[Event] = []
    last: dict[str, int] = {}
    for stretch in stretches(records, graph):
        values: dict[str, tuple[int, int]] = {}
        for engine, state in stretch.engines.items():
            tid = ENGINE_TIDS[engine]
            values[f"oh_{engine}_idle"] = (state.idle, tid)
            values[f"oh_{engine}_ready"] = (state.ready, tid + 1)
            values[f"oh_{engine}_overhead"] = (int(state.overhead), tid + 2)
        values["oh_all_overhead"] = (int(stretch.all_overhead), ALL_TID)
        values["oh_has_overhead"] = (int(stretch.has_overhead), HAS_TID)
        for name, (value, tid) in values.items():
            if last.get(name) != value:
                last[name] = value
                events.append(
                    {"name": name, "cat": "overhead", "ph": "C", "pid": COUNTER_PID, "tid": tid,
                     "ts": stretch.start_ns / 1000, "args": {name: value}}
                )  # fmt: skip
    return events
