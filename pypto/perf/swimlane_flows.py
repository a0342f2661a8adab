"""Arrows of the merged trace (``profiling.md`` 5.3); an arrow is drawn only where both ends lie on a slice."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pypto.perf.chip_records import SchedulerPhase
from pypto.perf.swimlane import SCHEDULER, SCHEDULER_VIEW, WORKER_VIEW, Bar, Swimlane
from pypto.perf.trace_events import Coverage, Event, Flow, FlowEnd, Slice

NUDGE_NS = 10
"""How far before its end an arrow leaves a bar, so that viewers attach it to that bar."""


class Completions:
    """The ``complete`` phases of one scheduler thread, which exclude one another in time."""

    def __init__(self, phases: Sequence[tuple[SchedulerPhase, Slice]]) -> None:
        self._phases = sorted(phases, key=lambda found: found[0].start_ns)
        self._starts = [phase.start_ns for phase, _ in self._phases]

    def at(self, ns: int) -> tuple[SchedulerPhase, Slice] | None:
        """The phase that was running at that time."""
        index = bisect_right(self._starts, ns) - 1
        return self._phases[index] if index >= 0 and ns <= self._phases[index][0].end_ns else None


def _completions_by_thread(lane: Swimlane) -> list[Completions]:
    by_thread: dict[int, list[tuple[SchedulerPhase, Slice]]] = defaultdict(list)
    for phase, bar in lane.phases:
        if phase.kind == "complete":
            by_thread[phase.thread].append((phase, bar))
    return [Completions(phases) for phases in by_thread.values()]


def flows_of(lane: Swimlane) -> list[Flow]:
    """All arrows in the order of their ids."""
    completions = _completions_by_thread(lane)
    coverage = Coverage(lane.slices)
    flows = [
        *_dependencies(lane, WORKER_VIEW, lane.workers),
        *_dependencies(lane, SCHEDULER_VIEW, lane.dispatched),
        *_completions(lane, completions),
        *_readiness(lane, completions),
        *_dispatches(lane),
        *_submissions(lane),
    ]
    return [flow for flow in flows if coverage.touches(flow.start) and coverage.touches(flow.finish)]


def _start(bar: Slice, ts: int, extra: Event | None = None) -> FlowEnd:
    return FlowEnd(bar.pid, bar.tid, ts, extra or {})


def _finish(pid: int, tid: int, ts: int, extra: Event | None = None) -> FlowEnd:
    return FlowEnd(pid, tid, ts, {"bp": "e", **(extra or {})})


def _near_end(bar: Slice) -> int:
    return max(bar.ts, bar.end - NUDGE_NS)


def _dependencies(lane: Swimlane, view: int, bars: Sequence[Bar]) -> Iterator[Flow]:
    """Producer's bar to consumer's; ``hb_violation`` where the producer ended after the consumer began."""
    if lane.graph is None:
        return
    by_task: dict[int, list[Bar]] = defaultdict(list)
    for bar in bars:
        by_task[bar.task.task_id].append(bar)
    blocks = {task: len(group) for task, group in by_task.items()}
    ends = {task: _endpoints(lane, group) for task, group in by_task.items()}
    for pred, succ in lane.graph.pairs:
        for producer in ends.get(pred, ()):
            for consumer in ends.get(succ, ()):
                end = producer.task.end_ns if view == WORKER_VIEW else producer.slice.end
                name = "hb_violation" if end > consumer.slice.ts else "dependency"
                counts = {"input_task_count": blocks[pred], "output_task_count": blocks[succ]}
                start = _start(producer.slice, producer.slice.ts, {**counts, "bind_id": producer.number})
                extra = {**counts, "bind_id": consumer.number}
                finish = _finish(view, consumer.slice.tid, consumer.slice.ts, extra)
                yield Flow(name, "flow", start, finish)


def _endpoints(lane: Swimlane, bars: Sequence[Bar]) -> list[Bar]:
    """Bars an arrow attaches to: every one, but of the blocks of an SPMD kernel only the earliest."""
    chosen: dict[tuple[int, int], Bar] = {}
    for bar in bars:
        unique = (0, lane.kernel_of(bar.task)) if lane.is_spmd(bar.task) else (1, bar.number)
        best = chosen.get(unique)
        if best is None or (bar.slice.ts, bar.task.core_id) < (best.slice.ts, best.task.core_id):
            chosen[unique] = bar
    return list(chosen.values())


def _completions(lane: Swimlane, completions: Sequence[Completions]) -> Iterator[Flow]:
    dispatched = {(bar.task.core_id, bar.task.reg_task_id): bar for bar in lane.dispatched}
    for worker in lane.workers:
        found = _completing_phase(lane, completions, worker)
        other = dispatched.get((worker.task.core_id, worker.task.reg_task_id))
        if found is None or other is None:
            continue
        finish = _finish(SCHEDULER, found[1].tid, worker.task.finish_ns or 0)
        for bar in (worker, other):
            end = worker.task.end_ns if bar is worker else other.slice.end
            ts = max(bar.slice.ts, end - NUDGE_NS)
            yield Flow("complete", "flow", _start(bar.slice, ts, {"bind_id": bar.number}), finish)


def _completing_phase(
    lane: Swimlane, completions: Sequence[Completions], bar: Bar
) -> tuple[SchedulerPhase, Slice] | None:
    """The ``complete`` phase that saw this row finish, on the thread that owns its core if several match."""
    finish, owner = bar.task.finish_ns, lane.scheduler_tid(bar.task.core_id)
    if finish is None:
        return None
    matching = [found for thread in completions if (found := thread.at(finish)) is not None]
    return min(matching, key=lambda found: found[1].tid != owner, default=None)


def _readiness(lane: Swimlane, completions: Sequence[Completions]) -> Iterator[Flow]:
    """From the completion that satisfied a consumer's last producer to the consumer's first dispatch."""
    if lane.graph is None:
        return
    last_finish: dict[int, Bar] = {}
    first_dispatch: dict[int, Bar] = {}
    for bar in lane.dispatched:
        task = bar.task.task_id
        if task not in last_finish or bar.slice.end > last_finish[task].slice.end:
            last_finish[task] = bar
        if task not in first_dispatch or bar.slice.ts < first_dispatch[task].slice.ts:
            first_dispatch[task] = bar
    for task, consumer in first_dispatch.items():
        producers = [last_finish[pred] for pred in lane.graph.preds.get(task, ()) if pred in last_finish]
        owner = lane.scheduler_tid(consumer.task.core_id)
        if not producers or owner is None:
            continue
        found = _completing_phase(lane, completions, max(producers, key=lambda bar: bar.slice.end))
        if found is not None and found[1].end <= consumer.slice.ts:
            start = _start(found[1], _near_end(found[1]))
            yield Flow("complete→ready", "flow", start, _finish(SCHEDULER, owner, consumer.slice.ts))


def _dispatches(lane: Swimlane) -> Iterator[Flow]:
    dispatched = {(bar.task.core_id, bar.task.reg_task_id): bar for bar in lane.dispatched}
    for worker in lane.workers:
        owner = lane.scheduler_tid(worker.task.core_id)
        other = dispatched.get((worker.task.core_id, worker.task.reg_task_id))
        if owner is None or other is None:
            continue
        start = FlowEnd(SCHEDULER, owner, other.slice.ts)
        yield Flow("dispatch", "flow", start, _finish(WORKER_VIEW, worker.slice.tid, worker.task.start_ns))
        extra = {"bind_id": other.number}
        yield Flow("dispatch", "flow", start, _finish(SCHEDULER_VIEW, other.slice.tid, other.slice.ts, extra))


def _submissions(lane: Swimlane) -> Iterator[Flow]:
    """Left out where host and device clocks are not aligned and complete."""
    timeline = lane.records.timeline
    if timeline is not None and not timeline.get("cross_domain_latency_available"):
        return
    for bar in lane.dispatched:
        submit, owner = lane.submits.get(bar.task.task_id), lane.scheduler_tid(bar.task.core_id)
        if submit is not None and owner is not None:
            yield Flow("submit→dispatch", "flow", _start(submit, submit.end), _finish(SCHEDULER, owner, bar.slice.ts))
