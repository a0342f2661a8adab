"""``scope_stats.jsonl``: how full rings, heap and tensor map are where a scope begins and ends (spec runtime 13.8).

Positions grow for the whole launch: ``end`` is what was handed out so far, ``start`` what was given back. A task gives
its slot, heap and dependency entries back, in the order of its ring, when its scope is closed and it and all its
consumers are complete; when that is, follows from the times of the launch.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.dfx.kernel_names import RINGS
from pypto.runtime.dfx.replay import begin_ps, play_again

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched
    from pypto.runtime.task_runtime import RingSize
    from pypto.sim.recording import Recording
    from pypto.sim.task_log import TaskLog

FOLDER: Final = "scope_stats"
FILE: Final = "scope_stats.jsonl"
VERSION: Final = 6
OUTERMOST: Final = "(unknown):0"
DEP_POOL: Final = 16384  # entries per ring (spec distributed 6.2)
TENSOR_MAP: Final = 65536
_FIRST_DEPENDENCY: Final = 1


@dataclass(frozen=True)
class _Held:
    """What one task holds of its ring, and when it gives it back (``None``: not during the launch)."""

    heap: int
    dependencies: int
    given_back_ps: int | None

    def is_back(self, now_ps: int) -> bool:
        return self.given_back_ps is not None and self.given_back_ps <= now_ps


@dataclass(frozen=True)
class _Times:
    """When the orchestrator came to every event, for a submit when it was over, and when it ended."""

    events_ps: list[int]
    ended_ps: int
    held: list[_Held]


@dataclass
class _Ring:
    """The tasks that hold something of one ring, and what was handed out and given back so far."""

    holding: deque[_Held] = field(default_factory=deque)
    tasks: int = 0
    heap: int = 0
    dependencies: int = 0
    tasks_back: int = 0
    heap_back: int = 0
    dependencies_back: int = 0

    def submit(self, task: _Held) -> None:
        self.holding.append(task)
        self.tasks += 1
        self.dependencies += task.dependencies

    def positions(self, now_ps: int) -> dict[str, int]:
        """Positions at ``now_ps``, which never goes back from one call to the next."""
        while self.holding and self.holding[0].is_back(now_ps):
            task = self.holding.popleft()
            self.tasks_back += 1
            self.heap_back += task.heap
            self.dependencies_back += task.dependencies
        return {
            "task_window_start": self.tasks_back,
            "task_window_end": self.tasks,
            "heap_start": self.heap_back,
            "heap_end": self.heap,
            "dep_pool_start": _FIRST_DEPENDENCY + self.dependencies_back,
            "dep_pool_end": _FIRST_DEPENDENCY + self.dependencies,
        }


class _TensorMap:
    """Entries of the tensor map by task; those of a task that gave its slot back are gone."""

    def __init__(self, log: TaskLog | None, held: list[_Held]):
        self._edges = iter(log.scopes if log is not None else ())
        self._held = held
        self._live: Counter[int] = Counter()

    def next_edge(self, now_ps: int) -> tuple[str, int]:
        """(site, entries) of the next begin or end; without a log nothing is known of either."""
        edge = next(self._edges, None)
        if edge is None:
            return OUTERMOST, 0
        self._live = self._live + edge.inserted - edge.removed
        for task in [task for task in self._live if self._held[task].is_back(now_ps)]:
            del self._live[task]
        return f"{Path(edge.file).name}:{edge.line}" if edge.file else OUTERMOST, self._live.total()


def write_scope_stats(launched: Launched, folder: Path) -> Path:
    """Write ``scope_stats/scope_stats.jsonl``: what the rings offer, then one line per begin and end of a scope."""
    path = folder / FOLDER / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    edges = list(_edges(launched))
    lines = [_capacities(launched, len(edges)), *edges]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _capacities(launched: Launched, total: int) -> dict[str, Any]:
    from pypto.sim.chips import chip

    # The chip of the launch has one size for all rings; what a ring has unless said otherwise is the platform's.
    sizes, runtime = launched.sizing, chip(launched.known_recording.platform).runtime
    return {
        "version": VERSION,
        "fatal": False,
        "dropped": 0,
        "total": total,
        "task_window_max": _per_ring(sizes.ring_task_window if sizes else None, int(runtime.ring_window.value)),
        "heap_max": _per_ring(sizes.ring_heap if sizes else None, int(runtime.ring_heap.value)),
        "dep_pool_max": _per_ring(sizes.ring_dep_pool if sizes else None, DEP_POOL),
        "tensormap_max": TENSOR_MAP,
    }


def _per_ring(size: RingSize, default: int) -> list[int]:
    given = size if isinstance(size, tuple) else (size or 0,) * RINGS
    return [one or default for one in given]


def _edges(launched: Launched) -> Iterator[dict[str, Any]]:
    from pypto.sim.recording import ALLOC, SCOPE_BEGIN, SCOPE_END, SUBMIT

    recording, times = launched.known_recording, _times(launched)
    tensor_map = _TensorMap(launched.log, times.held)
    rings = [_Ring() for _ in range(RINGS)]
    open_sites: list[str] = []

    def edge(phase: str, depth: int, site: str, now_ps: int, entries: int) -> dict[str, Any]:
        ring = min(depth, RINGS - 1)
        place = {"site": site, "phase": phase, "depth": depth, "ring": ring}
        return {**place, **rings[ring].positions(now_ps), "tensormap": entries}

    yield edge("begin", 0, OUTERMOST, begin_ps(launched), 0)
    for (kind, first, second, _), now_ps in zip(recording.events.tolist(), times.events_ps):
        if kind == SUBMIT:
            rings[min(int(recording.task_scope[first]), RINGS - 1)].submit(times.held[first])
        elif kind == ALLOC:
            rings[second].heap += first
        elif kind == SCOPE_BEGIN:
            site, entries = tensor_map.next_edge(now_ps)
            open_sites.append(site)
            yield edge("begin", first, site, now_ps, entries)
        elif kind == SCOPE_END:
            entries = tensor_map.next_edge(now_ps)[1]
            yield edge("end", first, open_sites.pop(), now_ps, entries)
    yield edge("end", 0, OUTERMOST, times.ended_ps, tensor_map.next_edge(times.ended_ps)[1])


def _times(launched: Launched) -> _Times:
    """Times of the events: the engine keeps those of tasks, the orchestrator's costs give those between."""
    from pypto.sim.recording import ALLOC, READ_WAIT, SCALAR, SCOPE_END, SUBMIT
    from pypto.sim.timing import words as x

    recording, played = launched.known_recording, play_again(launched)
    m = played.memory
    submitted, complete = played.tasks[:, x.SUBMITTED_AT].tolist(), played.tasks[:, x.COMPLETE_AT].tolist()
    costs = {ALLOC: int(m[x.ALLOC]), SCALAR: int(m[x.INSTRUCTION])}
    now_ps = begin_ps(launched)
    times: list[int] = []
    closed: dict[int, int] = {}
    still_open: list[int] = []
    for kind, first, _, _ in recording.events.tolist():
        if kind == SUBMIT:
            now_ps = submitted[first]
            still_open.append(first)
        elif kind == READ_WAIT and first >= 0:
            now_ps = max(now_ps, complete[first])
        times.append(now_ps)
        if kind == SCOPE_END:
            inside = [task for task in still_open if recording.task_scope[task] >= first]
            now_ps += int(m[x.SCOPE_END]) + len(inside) * int(m[x.SCOPE_END_TASK])
            closed.update(dict.fromkeys(inside, now_ps))
            still_open = [task for task in still_open if recording.task_scope[task] < first]
        elif kind in costs:
            now_ps += costs[kind] * (first if kind == SCALAR else 1)
    return _Times(times, now_ps, _held(recording, closed, complete))


def _held(recording: Recording, closed: dict[int, int], complete: list[int]) -> list[_Held]:
    from pypto.sim.recording import ALLOC, SUBMIT

    released = dict(closed)
    starts, producers = recording.deps_start.tolist(), recording.deps.tolist()
    for task, (begin, end) in enumerate(zip(starts, starts[1:])):
        for producer in producers[begin:end]:
            if producer in released:
                released[producer] = max(released[producer], complete[task])
    heap, pending = [0] * len(complete), [0] * RINGS
    for kind, first, second, _ in recording.events.tolist():
        if kind == ALLOC:
            pending[second] += first
        elif kind == SUBMIT:
            ring = min(int(recording.task_scope[first]), RINGS - 1)
            heap[first], pending[ring] = pending[ring], 0
    return [
        _Held(
            heap[task],
            starts[task + 1] - starts[task],
            max(released[task], complete[task]) if task in released else None,
        )
        for task in range(len(complete))
    ]
