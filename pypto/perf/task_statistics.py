"""The console table "Task Statistics by Function" of the swimlane converter (``profiling.md`` 5.3)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pypto.perf.chip_records import ChipRecords, ChipTask
from pypto.perf.task_graph import TaskGraph, kernel_label

HEADER = ("Func_ID", "Func_Name", "Count", "Avg Exec", "Avg Latency", "Exec%", "Avg Head OH", "Avg Tail OH", "Avg Prop",
          "Avg Local")  # fmt: skip


@dataclass(frozen=True)
class FunctionStatistics:
    """Rows of one kernel; averages in us, None where the collection level cannot tell."""

    func_id: int
    name: str
    count: int
    exec_us: float
    latency_us: float | None
    head_us: float | None
    tail_us: float | None
    propagation_us: float | None
    local_us: float

    @property
    def exec_share(self) -> float | None:
        """Share of dispatch to finish that the kernel itself ran."""
        return self.exec_us / self.latency_us if self.latency_us else None


def function_statistics(
    records: ChipRecords, graph: TaskGraph | None, names: Mapping[int, str]
) -> list[FunctionStatistics]:
    """One entry per kernel, by id."""
    by_kernel: dict[int, list[ChipTask]] = {}
    for task in records.tasks:
        known = graph.tasks.get(task.task_id) if graph else None
        by_kernel.setdefault(known.kernel_on(task.core_type) if known else -1, []).append(task)
    return [_one(kernel, by_kernel[kernel], names) for kernel in sorted(by_kernel)]


def _one(kernel: int, tasks: Sequence[ChipTask], names: Mapping[int, str]) -> FunctionStatistics:
    name = kernel_label(kernel, names) if kernel >= 0 else "func_-1_"
    return FunctionStatistics(
        kernel,
        name,
        len(tasks),
        statistics.fmean(t.duration_ns for t in tasks) / 1000,
        _mean_us(tasks, lambda t, dispatch, finish: finish - dispatch),
        _mean_us(tasks, lambda t, dispatch, finish: t.start_ns - dispatch),
        _mean_us(tasks, lambda t, dispatch, finish: finish - t.end_ns),
        _mean_us(tasks, lambda t, dispatch, finish: t.receive_ns - dispatch),
        statistics.fmean(t.start_ns - t.receive_ns for t in tasks) / 1000,
    )


def _mean_us(tasks: Sequence[ChipTask], value: Callable[[ChipTask, int, int], int]) -> float | None:
    values = [
        value(t, t.dispatch_ns, t.finish_ns) for t in tasks if t.dispatch_ns is not None and t.finish_ns is not None
    ]
    return statistics.fmean(values) / 1000 if values else None


def statistics_report(records: ChipRecords, graph: TaskGraph | None, names: Mapping[int, str]) -> str:
    """The table, the two lines that scripts read, and the share of latency spent executing."""
    functions = function_statistics(records, graph, names)
    timed = records.level >= 2
    lines = [f"Task Statistics by Function (collection level {records.level})", _header(timed)]
    lines += [_row(function, timed) for function in functions]
    total_exec = sum(t.duration_ns for t in records.tasks) / 1000
    timed_tasks = [t for t in records.tasks if t.finish_ns is not None and t.dispatch_ns is not None]
    latencies = [(t.finish_ns or 0) - (t.dispatch_ns or 0) for t in timed_tasks]
    total = f"{'TOTAL':<22}{len(records.tasks):>5}   {total_exec:12.2f}"
    lines.append(total + (f"  {sum(latencies) / 1000:15.2f}" if timed else ""))
    lines.append(_span_line(records, timed))
    if timed and latencies:
        average, latency = total_exec / len(records.tasks), sum(latencies) / 1000 / len(latencies)
        share = f"Exec/Latency = {100 * average / latency:.2f}%" if latency else "Exec/Latency = -"
        lines += [f"Avg Exec: {average:.2f} us, Avg Latency: {latency:.2f} us, {share}"]
        lines += ["Why cores wait: python -m pypto.perf sched-overhead"]
    return "\n".join(lines)


def _span_line(records: ChipRecords, timed: bool) -> str:
    if timed:
        first = min((t.dispatch_ns for t in records.tasks if t.dispatch_ns is not None), default=0)
        last = max((t.finish_ns for t in records.tasks if t.finish_ns is not None), default=0)
        return f"Total Test Time: {(last - first) / 1000:.2f} us (from earliest dispatch to latest finish)"
    first = min((t.start_ns for t in records.tasks), default=0)
    last = max((t.end_ns for t in records.tasks), default=0)
    return f"AICore Observed Span: {(last - first) / 1000:.2f} us (from first AICore start to last AICore end)"


def _header(timed: bool) -> str:
    titles = HEADER if timed else (*HEADER[:4], HEADER[-1])
    return f"{titles[0]:<8}{titles[1]:<26}{titles[2]:>6}" + "".join(f"  {title:>11}" for title in titles[3:])


def _row(function: FunctionStatistics, timed: bool) -> str:
    values: list[float | None] = [function.exec_us]
    if timed:
        share = function.exec_share
        values += [function.latency_us, None if share is None else 100 * share]
        values += [function.head_us, function.tail_us, function.propagation_us]
    cells = "".join(f"  {'-' if v is None else f'{v:.2f}':>11}" for v in (*values, function.local_us))
    return f"{function.func_id:<8}{function.name:<26}{function.count:>6}{cells}"
