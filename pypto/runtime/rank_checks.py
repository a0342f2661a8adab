"""Checks of a run on several chips: what is asked of the ranks, and what their logs say together."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.distributed_host import CHIP
from pypto.runtime.run_config import RunConfig
from pypto.sim.checks.collectives import REPAIR, unmet_collective, waiting_places
from pypto.sim.checks.failures import STARVATION_REPAIR, STARVED
from pypto.sim.checks.findings import CheckError, Finding, WaitError
from pypto.sim.checks.forced import keep
from pypto.sim.checks.selection import Checks

if TYPE_CHECKING:
    from pypto.runtime.distributed_host import Task
    from pypto.runtime.ranks_protocol import Done
    from pypto.sim.checks.rank_log import RankLog

_OVERSHOT: Final = re.compile(r"== (-?\d+), holds (-?\d+)")
_SHORT: Final = re.compile(r">= (-?\d+), holds (-?\d+)")


def effective(config: RunConfig | None, compiled: Any) -> RunConfig | None:
    """``config`` with the checks that ``compiled`` was compiled with, unless it chooses some itself."""
    if config is not None and not isinstance(config, RunConfig):
        raise TypeError(f"config must be a RunConfig, got {type(config).__name__} {config!r}")
    chosen = getattr(compiled, "checks", None)
    if chosen is None or config is not None and config.checks is not None:
        return config
    checks, mode, poison = chosen
    base = RunConfig(platform=compiled.platform) if config is None else config
    return dataclasses.replace(base, checks=checks, checks_mode=mode, poison=poison)


def checks_of(config: RunConfig | None, clocked: bool) -> Checks:
    """The checks that ``config`` asks for."""
    if config is None:
        return Checks.of(None, clocked=clocked)
    return Checks.of(config.checks, config.checks_mode, config.poison, clocked=clocked)


@dataclass
class RunChecks:
    """Logs and findings of one run; ``cells``: what the signal cells held when it began."""

    checks: Checks
    cells: dict[tuple[int, int], int] = field(default_factory=dict)

    def findings(self, tasks: Sequence[Task], done: Mapping[int, Done]) -> tuple[Finding, ...]:
        """What the ranks found each for itself, and what their logs say together; updates ``cells``."""
        from pypto.sim.checks.rank_run import findings_of_run
        from pypto.sim.checks.signal_use import cells_after

        found = [finding for answer in done.values() for finding in answer.findings]
        logs: dict[int, tuple[int, RankLog]] = {
            task.number: (task.target, log)
            for task in tasks
            if (log := getattr(done.get(task.number), "rank_log", None)) is not None and len(log.events)
        }
        if logs:
            together = findings_of_run(logs, _after(tasks, logs), self.cells)
            found += [finding for finding in together if finding.kind in self.checks.kinds]
            self.cells.update(cells_after([logs[dispatch] for dispatch in sorted(logs)], self.cells))
        result = tuple(dict.fromkeys(found))
        keep(result)
        return result


def _after(tasks: Sequence[Task], logs: Container[int]) -> dict[int, list[int]]:
    """Those of ``logs`` that each dispatch waits for, also through tasks that have no log."""
    through: dict[int, set[int]] = {}
    last_of: dict[tuple[str, int], int] = {}
    for task in sorted(tasks, key=lambda task: task.number):
        before = set(task.after)
        if task.kind == CHIP:  # the dispatches of a chip follow each other
            before |= {last_of[task.kind, task.target]} if (task.kind, task.target) in last_of else set()
            last_of[task.kind, task.target] = task.number
        found = through[task.number] = set()
        for other in before:
            found |= {other} if other in logs else through.get(other, set())
    return {number: sorted(found) for number, found in through.items() if number in logs}


def deadlock_finding(
    lines: Sequence[str], names: Sequence[str], sets: Sequence[str] = (), silent: str = "", ahead: bool = True
) -> Finding:
    """The finding of ranks that wait for signals nobody will send.

    ``names`` of the dispatches; ``sets``: kernels that set a cell that is waited for; ``silent``: whose signal is
    missing; ``ahead``: whether somebody who waits would have told later.
    """
    text = "\n".join(lines)
    advice = ["notify the peers first, before any wait: publish, notify, wait, read"] if ahead else []
    passed = [match for match in _OVERSHOT.finditer(text) if int(match[2]) > int(match[1])]
    short = next((m for m in _SHORT.finditer(text) if 0 < int(m[2]) < int(m[1])), None)
    if passed:
        advice.insert(
            0, f"wait with WaitCmp.Ge: the cell has passed the value {passed[0][1]} that WaitCmp.Eq waits for"
        )
    elif " == " in text:
        advice.append("wait with WaitCmp.Ge: a counter can pass the value that WaitCmp.Eq waits for")
    if silent and not passed:
        advice.append(silent)
    if short is not None and sets:
        advice.insert(0, f"use NotifyOp.AtomicAdd: {', '.join(sets)} signals with NotifyOp.Set, which does not add up")
    elif short is not None:
        advice.insert(0, f"wait for the credits that are sent, {short[2]} instead of {short[1]}, or send more of them")
    signals = re.findall(r"signal (\w+)\[", text)
    kernels = tuple(dict.fromkeys(re.findall(r"wait of (\w+),", text)))
    places = waiting_places(text)
    kind, message, repair = "deadlock", text, "; ".join(advice)
    starved = STARVED.findall(text)
    if starved:
        kind, repair = "starvation", STARVATION_REPAIR
        kernels = (*starved[0].split(", "), *kernels)
    unmet = unmet_collective(text, places)
    if unmet:
        kind, message, repair = "collective", f"{unmet}\n{text}", REPAIR
    cells = re.findall(r"signal \w+\[([\d, ]+)\]", text)
    ranges = tuple((int(index), int(index) + 1) for index in cells[0].split(", ")) if cells else ()
    return Finding(kind, message, signals[0] if signals else "", (*kernels, *names), places, None, ranges, repair)


__all__ = ["CheckError", "RunChecks", "WaitError", "checks_of", "deadlock_finding", "effective"]
