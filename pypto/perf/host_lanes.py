"""Which lane a host thread's spans belong on, and what it is called (``profiling.md`` 4.1.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pypto.perf.grammar import parse_attrs
from pypto.perf.names import external_producer, family_of
from pypto.perf.span import TraceSpan


@dataclass(frozen=True)
class Lane:
    """A named row of host spans; ``slot`` is set for a lane of one pipeline slot."""

    name: str
    spans: list[TraceSpan]
    slot: int | None = None


def lanes_of_thread(tid: int, spans: Sequence[TraceSpan], slot_of: dict[tuple[int, int], int]) -> list[Lane]:
    """The lanes of one OS thread: one, or one per pipeline slot where launches overlap on it."""
    own = [span for span in spans if family_of(span.name) != "external"]
    slots = _pipeline_slots(own, slot_of)
    if not slots:
        return [Lane(thread_title(tid, spans), list(spans))]
    lanes = [Lane(f"pipeline slot {slot} (tid {tid})", slots[slot], slot) for slot in sorted(slots)]
    foreign = [span for span in spans if family_of(span.name) == "external"]
    return lanes + ([Lane(thread_title(tid, foreign), foreign)] if foreign else [])


def _pipeline_slots(own: Sequence[TraceSpan], slot_of: dict[tuple[int, int], int]) -> dict[int, list[TraceSpan]]:
    """Spans by pipeline slot, empty when the thread must stay one lane."""
    roots = [span for span in own if span.depth == 0]
    if not _overlap(roots) or any((span.pid, span.inv) not in slot_of for span in own):
        return {}
    slots: dict[int, list[TraceSpan]] = defaultdict(list)
    for span in own:
        slots[slot_of[span.pid, span.inv]].append(span)
    clean = all(not _overlap([s for s in members if s.depth == 0]) for members in slots.values())
    return dict(slots) if len(slots) > 1 and clean else {}


def _overlap(spans: Sequence[TraceSpan]) -> bool:
    ordered = sorted(spans, key=lambda span: span.ts)
    return any(before.end > after.ts for before, after in zip(ordered, ordered[1:]))


def thread_title(tid: int, spans: Sequence[TraceSpan]) -> str:
    """Name of a thread by what it did; only its own spans count unless all are external."""
    own = [span for span in spans if family_of(span.name) != "external"]
    if not own:
        producers = sorted({external_producer(span.name) or "unattributed" for span in spans})
        return f"ext {'/'.join(producers)}"
    attrs = [parse_attrs(span.attrs) for span in own]
    phases = {item.get("host_phase_thread") for item in attrs}
    for value, title in (("graph_record_worker", "graph record worker"), ("graph_submit_main", "graph submit main")):
        if value in phases:
            return title
    roles = {item.get("role") for item in attrs}
    leaves = {span.name.rpartition(".")[2] for span in own if family_of(span.name) == "node"}
    if "facade" in roles or leaves & {"graph_build", "submit"}:
        return "orchestrator / facade"
    if "scheduler" in roles:
        return "scheduler"
    if "worker" in roles:
        workers = {item["worker_id"] for item in attrs if "worker_id" in item}
        return f"worker {workers.pop()}" if len(workers) == 1 else "worker"
    return "chip child" if any(family_of(span.name) == "chip" for span in own) else f"tid {tid}"


def process_title(pid: int, spans: Sequence[TraceSpan]) -> str:
    """Name of a process by the families of its spans, device spans included."""
    families = {family_of(span.name) for span in spans}
    if "node" in families:
        return f"simpler node (pid={pid})"
    if families == {"external"}:
        producers = sorted({p for span in spans if (p := external_producer(span.name))})
        return f"external producer {'/'.join(producers) or 'unattributed'} (pid={pid})"
    return f"simpler chip child (pid={pid})"
