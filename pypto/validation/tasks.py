"""Runtime families: R1 (task graphs), R2 (host path), R3 (signals between AICPU and cores)."""

from __future__ import annotations

from functools import cache
from statistics import median

from pypto.sim.chips import chip
from pypto.sim.timing import TaskRecord, Timeline, time_recording

from .paged import Link, Paged, many_small_tasks, paged_attention, producer_and_consumer
from .rows import Pair, Row, Use
from .tables import Line, table

_CHIP = "a2a3"
# the orchestrator's cost says one group of pages per request; 64 pages fill the kernels of the unrolled version
_CASE1 = Paged(256, 1, 64)
_MANY = Paged(64, 65, 1)  # 64 requests of one task and 65 groups of four: 16704 tasks
_PARTS = "the model has one cost per submit, look-up, edge and allocation, fitted to the total"
_OLDER = "a log of an older runtime, before several fixes of the scheduler (hardware notes 14)"
_UNKNOWN = "the program is not described"
_CODE = "a change inside the runtime's own code, which the model does not have twice"


@cache
def _timeline(what: Paged | tuple[int, int, Link] | int) -> Timeline:
    if isinstance(what, Paged):
        recording = paged_attention(what)
    elif isinstance(what, int):
        recording = many_small_tasks(what)
    else:
        recording = producer_and_consumer(*what)
    return time_recording(recording, chip(_CHIP))


def _phase_us(graph: Paged, phase: str) -> float:
    return _timeline(graph).phases[phase][1] / 1000


def _gap_us(blocks: int, readers: int, link: Link) -> float:
    """First start of the consumer after the last end of the producer."""
    records = _timeline((blocks, readers, link)).records()
    produced = max(r.end_ns for r in records if r.name.startswith("produce"))
    return (min(r.start_ns for r in records if r.name.startswith("consume")) - produced) / 1000


def _sides(text: str) -> tuple[float, float]:
    """``947.06 -> ~915`` as two numbers."""
    before, after = text.split(" -> ")
    return float(before), float(after.strip("~ ").split(" ")[0])


def _graph_rows() -> list[Row]:
    lines = {line["id"]: line for line in table("R1")}
    before, after = _sides(lines["R1s"]["value"])
    orchestrator, scheduler = _phase_us(_CASE1, "orch"), _phase_us(_CASE1, "sched")
    old, new = _sides(lines["R1u"]["value"])
    rows = [
        _r1("R1g", "16704 tasks: orchestrator", float(lines["R1g"]["value"]), _phase_us(_MANY, "orch"), "fitted"),
        _r1("R1s", "paged attention case 1: orchestrator, before", before, orchestrator),
        _r1("R1s", "paged attention case 1: orchestrator, after", after, orchestrator),
        _r1("R1u", "paged attention case 1: scheduler, before", old, scheduler),
        _r1("R1u", "paged attention case 1: scheduler, after", new, scheduler),
    ]
    rows += [
        _r1("R1A", f"{blocks} blocks -> 48 blocks, {link}: start after end", published, _gap_us(blocks, 48, link))
        for (blocks, link), published in _GAPS.items()
    ]
    drain = _sides(lines["R1C"]["value"])
    rows.append(_r1("R1C", "synchronised start, per drain, after", drain[1], _gap_us(48, 48, "together"), "fitted"))
    rows.append(Row("R1", "R1C synchronised start, per drain, before", "us", drain[0], reason=_CODE))
    return [*rows, *(_r1_without(lines[name], reason) for name, reason in _NOT_RUN.items())]


# R1A: producer's blocks, how the consumer follows: start of the consumer after the end of the producer, us
_GAPS: dict[tuple[int, Link], float] = {
    (72, "plain"): 11.8, (72, "early"): 8.2, (48, "plain"): 6.0, (48, "early"): 2.4,
}  # fmt: skip
_NOT_RUN = {
    "R1a": _UNKNOWN, "R1c": _UNKNOWN, "R1e": _UNKNOWN, "R1i": _PARTS, "R1k": _PARTS, "R1m": _PARTS, "R1o": _PARTS,
    "R1q": _OLDER, "R1w": "how its blocks share the work is not described", "R1y": _UNKNOWN, "R1E": _CODE,
    "R1G": _CODE, "R1I": _UNKNOWN,
}  # fmt: skip


def _r1(name: str, case: str, published: float, simulated: float, use: Use = "untouched") -> Row:
    return Row("R1", f"{name} {case}", "us", published, simulated, use)


def _first_number(text: str) -> float:
    return float(text.split(" ")[0].split("-")[0].strip("~"))


def _r1_without(line: Line, reason: str) -> Row:
    return Row("R1", f"{line['id']} {line['workload']}: {line['metric']}", line["unit"], _first_number(line["value"]),
               reason=reason)  # fmt: skip


def _host_us(copies: int, nbytes: float) -> float:
    """Allocations with their copies, and the bytes over the host link."""
    host = chip(_CHIP).host
    return (copies * host.device_malloc.value + nbytes / host.upload_gbps.value) / 1000


def _host_rows() -> list[Row]:
    host = chip(_CHIP).host
    rows = []
    for line in table("R2"):
        name = line["id"]
        case = f"{name} {line['workload']}: {line['metric']}"
        if name in ("R2a", "R2c", "R2e", "R2g"):
            count = int(case.split("N=")[1].split(":")[0])
            us = (host.run.value + count * host.run_subtask.value) / 1000
            rows.append(Row("R2", case, "us", float(line["value"]), us, "fitted"))
        elif name == "R2o":
            before, after = _sides(line["value"])
            rows.append(Row("R2", f"{case}, before", "us", before, _host_us(46, 467e3)))
            rows.append(Row("R2", f"{case}, after", "us", after, _host_us(1, 180e3)))
        elif name == "R2y":
            after_us = _sides(line["value"])[1]
            reset_us = chip(_CHIP).runtime.sm_reset.value / 1000
            rows.append(Row("R2", f"{case}, after", "us", after_us, reset_us, "fitted"))
        else:
            reason = "part of the host path that the model has no event for" if name == "R2i" else _CODE
            rows.append(Row("R2", case, line["unit"], _first_number(line["value"].replace("->", " ")), reason=reason))
    return rows


def _heads() -> dict[str, float]:
    """Times between AICPU and cores over a few waves of tasks on all 72 cores, in ns."""
    seen: set[int] = set()
    first: list[TaskRecord] = []
    steady: list[TaskRecord] = []
    for record in sorted(_timeline(6).records(), key=lambda r: r.start_ns):
        (steady if record.core in seen else first).append(record)
        seen.add(record.core)
    settled = median(r.start_ns - r.dispatch_ns for r in steady)
    cold = sorted(r.start_ns - r.dispatch_ns - settled for r in first)
    runtime = chip(_CHIP).runtime
    return {
        "R3a": runtime.dispatch_store.value,
        "R3b": runtime.poll.value,
        "R3c": median(r.receive_ns - r.dispatch_ns for r in steady),
        "R3g": 24 * runtime.poll.value,
        "R3h p50": cold[len(cold) // 2] / 1000,
        "R3h max": cold[-1] / 1000,
        "R3i": settled / 1000,
        "R3j": 72 * runtime.dispatch_store.value,
        "R3k": median(r.start_ns - r.receive_ns for r in steady),
    }


_PUBLISHED_R3 = {"R3b": 100.0, "R3g": 2400.0, "R3h p50": 1.77, "R3h max": 5.31, "R3i": 0.35, "R3k": 349.0}
_NO_SIGNAL = "signals through memory and figures with profiling on are not modelled"


def _signal_rows() -> list[Row]:
    heads, rows = _heads(), []
    for line in table("R3"):
        found = [key for key in heads if key.startswith(line["id"])]
        for key in found:
            published = _PUBLISHED_R3.get(key) or float(line["value"])
            use: Use = "untouched" if key.startswith("R3i") else "fitted"
            rows.append(Row("R3", f"{key} {line['item']}", line["unit"], published, heads[key], use))
        if not found:
            published = _first_number(line["value"].split("/")[0].split(" vs ")[0])
            rows.append(Row("R3", f"{line['id']} {line['item']}", line["unit"], published, reason=_NO_SIGNAL))
    return rows


def rows() -> list[Row]:
    """R1, R2, R3."""
    return [*_graph_rows(), *_host_rows(), *_signal_rows()]


def pairs() -> list[Pair]:
    """Changes of a program; those of the runtime's code are listed."""
    gaps = _GAPS
    found = [
        Pair("R1", f"R1A {blocks} blocks: plain -> early", gaps[blocks, "plain"], gaps[blocks, "early"],
             _gap_us(blocks, 48, "plain"), _gap_us(blocks, 48, "early"))
        for blocks in (72, 48)
    ]  # fmt: skip
    for family, names in (("R1", "R1s R1u R1C R1G"), ("R2", "R2k R2q R2y")):
        lines = {line["id"]: line for line in table(family)}
        for name in names.split():
            line = lines[name]
            found.append(Pair(family, f"{name} {line['workload']}", *_sides(line["value"]), reason=_CODE))
    copies = {line["id"]: line for line in table("R2")}["R2o"]
    found.append(Pair("R2", f"R2o {copies['workload']}", *_sides(copies["value"]), _host_us(46, 467e3),
                      _host_us(1, 180e3)))  # fmt: skip
    return found
