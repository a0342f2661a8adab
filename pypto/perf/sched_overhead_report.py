"""The scheduler-overhead analysis as text, in six parts (``profiling.md`` 5.5)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from pypto.perf.sched_overhead import LOOP_KINDS, SchedOverhead
from pypto.perf.task_id import display_id

PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


def overhead_report(result: SchedOverhead) -> str:
    """All six parts."""
    parts = (
        _verdict(result),
        _switch(result),
        _distribution("3. Head overhead (dispatch or core free, until start)", result.heads_ns),
        _distribution("4. Tail overhead (end until the scheduler noticed)", result.tails_ns),
        _scheduler(result),
        _path(result),
    )
    return "\n\n".join("\n".join(lines) for lines in parts)


def _us(ns: float) -> str:
    return f"{ns / 1000:.2f} us"


def _share(ns: float, of: float) -> str:
    return f"{100 * ns / of:.1f}%" if of else "-"


def _verdict(result: SchedOverhead) -> list[str]:
    window = result.window_ns
    lines = ["1. Verdict", f"  window: {_us(window)} (first AICore start to last AICore end)"]
    for engine, ns in result.overhead_ns.items():
        lines.append(f"  overhead {engine.upper()}: {_us(ns)} ({_share(ns, window)})")
    lines.append(f"  all engines at once: {_us(result.all_ns)} ({_share(result.all_ns, window)})")
    lines.append(f"  every engine with ready work: {_us(result.has_ns)} ({_share(result.has_ns, window)})")
    return [*lines, f"  verdict: {result.verdict}"]


def _switch(result: SchedOverhead) -> list[str]:
    lines = ["2. Core switches (next task already dispatched when the previous one ended)"]
    for core in result.switches:
        if core.gaps_ns:
            gaps = core.gaps_ns
            spread = f"min {_us(min(gaps))}, mean {_us(statistics.fmean(gaps))}, max {_us(max(gaps))}"
            split = f"overhead {_us(core.overhead_ns)}, independent {_us(core.total_ns - core.overhead_ns)}"
            lines.append(f"  {core.core_type.upper()}_{core.core_id}: {len(core.gaps_ns)} switches, {spread}, {split}")
    if len(lines) == 1:
        return [*lines, "  none"]
    lower, upper = result.switch_bounds_ns
    return [*lines, f"  share of the makespan: between {_us(lower)} and {_us(upper)}"]


def percentile(ordered: Sequence[int], p: int) -> int:
    """``sorted[min(int(n * p / 100), n - 1)]``."""
    return ordered[min(len(ordered) * p // 100, len(ordered) - 1)]


def _distribution(title: str, values: Sequence[int]) -> list[str]:
    if not values:
        return [title, "  no value at this collection level"]
    ordered = sorted(values)
    cells = "  ".join(f"P{p}={_us(percentile(ordered, p))}" for p in PERCENTILES)
    total = f"max={_us(ordered[-1])}  mean={_us(statistics.fmean(ordered))}  total={_us(sum(ordered))}"
    return [title, f"  {cells}", f"  {total}  n={len(ordered)}"]


def _scheduler(result: SchedOverhead) -> list[str]:
    lines = [
        "5. Scheduler loops",
        "  thread  loops  tasks   ns/loop" + "".join(f"  {k:>12}" for k in (*LOOP_KINDS, "idle")),
    ]
    totals: Counter[str] = Counter()
    for loop in result.loops:
        totals.update(loop.by_kind_ns)
        values = [*(loop.by_kind_ns.get(kind, 0) for kind in LOOP_KINDS), loop.idle_ns]
        cells = "".join(f"  {_us(ns):>12}" for ns in values)
        lines.append(f"  {loop.thread:>6}  {loop.loops:>5}  {loop.tasks:>5}  {loop.ns_per_loop:8.1f}{cells}")
    spent = sum(totals.values())
    lines += [f"  {kind:<16}{_us(ns):>14}  {_share(ns, spent):>6}" for kind, ns in totals.most_common()]
    lines.append(f"  fan-out: {_degrees(result.fan_out)}; fan-in: {_degrees(result.fan_in)}")
    hits, misses = sum(l.pop_hit for l in result.loops), sum(l.pop_miss for l in result.loops)
    lines.append(f"  pop hit rate: {_share(hits, hits + misses)} ({hits} of {hits + misses})")
    pace = [loop.ns_per_loop for loop in result.loops if loop.tasks and loop.ns_per_loop]
    if result.tails_ns and pace:
        estimate = statistics.fmean(result.tails_ns) / statistics.fmean(pace)
        lines.append(f"  mean tail: about {estimate:.1f} scheduler loops")
    if totals:
        kind, ns = totals.most_common(1)[0]
        lines.append(f"  dominant phase: {kind} ({_share(ns, spent)} of recorded phase time)")
    return lines


def _degrees(values: Sequence[int]) -> str:
    return f"mean {statistics.fmean(values):.2f}, max {max(values)}" if values else "-"


def _path(result: SchedOverhead) -> list[str]:
    path = result.path
    total = path.compute_ns + path.scheduler_ns
    shown = " → ".join(display_id(task) for task in path.tasks[:12]) + (" → …" if len(path.tasks) > 12 else "")
    return [
        "6. Critical path",
        f"  {len(path.tasks)} tasks: {shown}",
        f"  compute {_us(path.compute_ns)} ({_share(path.compute_ns, total)}), "
        f"scheduler {_us(path.scheduler_ns)} ({_share(path.scheduler_ns, total)})",
    ]
