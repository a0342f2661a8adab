"""One checked execution: watch it, turn what went wrong into findings, raise or keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from pypto.sim.checks.contracts import contract_findings
from pypto.sim.checks.deferred import crowded_findings
from pypto.sim.checks.directions import direction_findings
from pypto.sim.checks.failures import failure_findings
from pypto.sim.checks.findings import Finding, error_of
from pypto.sim.checks.forced import keep
from pypto.sim.checks.freed_uses import may_use_freed
from pypto.sim.checks.index_watch import IndexWatch
from pypto.sim.checks.lifetimes import lifetime_findings
from pypto.sim.checks.queue_findings import left_behind_findings
from pypto.sim.checks.races import race_findings
from pypto.sim.checks.rank_log import RankLog, Window, rank_log
from pypto.sim.checks.rings import ring_findings
from pypto.sim.checks.selection import Checks
from pypto.sim.checks.shadow import BLOCK
from pypto.sim.checks.values import undefined_index, used_at_once, value_findings
from pypto.sim.checks.watch import LaunchWatch, Memory, SharedCodes
from pypto.sim.distributed import CTX_BASE, CTX_CODES, CTX_DOMAIN, CTX_FLAGS, CTX_RANK, CTX_RANKS, CTX_STRIDE, CTX_WORDS
from pypto.sim.faults import ExecutionError
from pypto.sim.memory import memory_view
from pypto.sim.tile_program import TileProgram

if TYPE_CHECKING:
    from pypto.sim.crew import LeftBehind
    from pypto.sim.launch import Launch
    from pypto.sim.program import Execution, LoadedProgram, TensorArgument
    from pypto.sim.tasks import TaskPlan


class Report:
    """What the checks of one execution know."""

    def __init__(self, program: LoadedProgram, platform: str, checks: Checks):
        if "fifo" in checks.kinds and not checks.deep and may_use_freed(program):
            checks = replace(checks, follows_values=True)
        self.program, self.platform, self.checks = program, platform, checks
        self.watch: LaunchWatch | None = None
        watched = checks.deep or "bounds" not in checks.kinds or not program.gathers
        self.indices = None if watched else IndexWatch()
        self.findings: tuple[Finding, ...] = ()
        self._static: list[Finding] = list(ring_findings(program)) if "fifo" in checks.kinds else []
        self._windows: list[Window] = []

    def begin(self, tensors: Sequence[TensorArgument], numbers: Sequence[int]) -> LaunchWatch | None:
        """The watch of a launch with these tensor arguments, whose allocations are ``numbers``.

        ``None`` when no block has to be observed.
        """
        if not self.checks.deep:
            return None
        watch = self.watch = LaunchWatch(self.checks, self.program.orchestration)
        watch.on_program = self._on_program
        parameters = [p for p in self.program.params if p.kind == "tensor"]
        groups: dict[int, list[Memory]] = {}
        shared: dict[int, SharedCodes | None] = {}
        for parameter, tensor, number in zip(parameters, tensors, numbers):
            direction = "window" if tensor.context else parameter.direction
            if tensor.resident and direction == "out":
                direction = "inout"  # what the launch does not write stays on the device
            memory = Memory(
                parameter.name, tensor.shape, tensor.dtype.get_bit(), tensor.address, tensor.nbytes, direction
            )
            if tensor.context:
                self._windows.append(_window(memory, tensor.context))
                shared[number] = shared_codes(tensor.context)
            groups.setdefault(number, []).append(memory)
        for number in range(len(groups)):
            tracked = any(memory.direction != "in" for memory in groups[number])
            watch.add_memory(number, groups[number], True, tracked, shared.get(number))
        return watch

    @property
    def told(self) -> bool:
        """Whether something was found that needs no watch."""
        return bool(self._static)

    def rank_log(self) -> RankLog | None:
        """What the launch did with windows and signals; ``None`` when it has none."""
        return rank_log(self.watch, self._windows) if self.watch is not None and self._windows else None

    def orchestrated(self, launch: Launch) -> None:
        """The orchestration has ended."""
        if self.checks.rings is not None and "scope-deadlock" in self.checks.kinds:
            from pypto.sim.checks.scopes import scope_findings

            self._static += scope_findings(launch.recorder, self.program.orchestration, self.checks.rings)
        if self.checks.rings is not None and "deferred-wait" in self.checks.kinds:
            self._static += crowded_findings(launch.pending, self.checks.rings)

    def close(self) -> None:
        """Everything has been reported."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None  # it refers to this report: nothing waits for the garbage collector

    def _on_program(self, program: TileProgram, number: int) -> None:
        if self.checks.kinds & {"precision", "shape-contract"}:
            self._static += _contracts(program, self.platform)

    def gather(self, failure: ExecutionError | None, left: Sequence[tuple[TaskPlan, LeftBehind]] = ()) -> None:
        """Findings of the execution, which ended with ``failure`` or left tiles ``left`` in queues."""
        found: Iterator[Finding] = iter(())
        if failure is not None:
            found = failure_findings(failure)
        found = chain(found, left_behind_findings(left), self._static)
        if self.indices is not None and failure is None:
            found = chain(found, self.indices.findings())
        if self.watch is not None:
            self.watch.finish()
            late = value_findings(self.watch) if failure is None else _before(self.watch, failure)
            found = chain(found, race_findings(self.watch), lifetime_findings(self.watch), late)
            found = chain(found, direction_findings(self.watch))
        asked = tuple(f for f in found if f.kind in self.checks.kinds)
        races = [f for f in asked if f.kind == "raw"]
        told = tuple(f for f in asked if f.kind != "uninit" or not any(_told_by(race, f) for race in races))
        self.findings = told if failure is None else _causes_first(told)


def _causes_first(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings of a launch that stopped: an index that means nothing comes before the access it led astray."""
    strays = {task for finding in findings if finding.kind == "bounds" for task in finding.tasks}
    causes = [f for f in findings if f.kind in ("uninit", "out-of-valid") and strays.intersection(f.tasks)]
    return (*causes, *(finding for finding in findings if finding not in causes))


def _told_by(race: Finding, unwritten: Finding) -> bool:
    """Whether a read was early only because nothing orders it after the write, which is the finding then."""
    where = {(place.file, place.line) for place in race.locations}
    if race.tensor != unwritten.tensor or not any((p.file, p.line) in where for p in unwritten.locations):
        return False
    boxes = zip(race.index_ranges, unwritten.index_ranges)
    return bool(unwritten.index_ranges) and all(a < d and c < b for (a, b), (c, d) in boxes)


def _before(watch: LaunchWatch, failure: ExecutionError) -> Iterator[Finding]:
    """What was found about values before ``failure``: often its cause."""
    yield from undefined_index(watch, failure)
    yield from used_at_once(watch)


_CONTRACTS: Final[WeakKeyDictionary[TileProgram, dict[str, tuple[Finding, ...]]]] = WeakKeyDictionary()


def _contracts(program: TileProgram, platform: str) -> tuple[Finding, ...]:
    """What the text of a program alone shows; the same in every launch."""
    known = _CONTRACTS.setdefault(program, {})
    if platform not in known:
        known[platform] = tuple(contract_findings(program, platform))
    return known[platform]


def shared_codes(context: int) -> SharedCodes | None:
    """The codes of a domain's bytes, when the run notes who writes them."""
    record = memory_view(context, 8 * CTX_WORDS).view(np.int64)
    codes, flags, base = (int(record[word]) for word in (CTX_CODES, CTX_FLAGS, CTX_BASE))
    return SharedCodes(codes - base, flags - base // BLOCK, int(record[CTX_STRIDE])) if codes else None


def _window(memory: Memory, context: int) -> Window:
    record = memory_view(context, 8 * CTX_WORDS).view(np.int64)
    rank, ranks, stride = (int(record[word]) for word in (CTX_RANK, CTX_RANKS, CTX_STRIDE))
    offset = memory.address - int(record[CTX_BASE]) - rank * stride
    return Window(
        memory.name, memory.address, memory.size, memory.shape, memory.bits, stride, rank, ranks,
        int(record[CTX_DOMAIN]), offset,
    )  # fmt: skip


def execute_checked(
    program: LoadedProgram, platform: str, checks: Checks, run: Callable[[Report], Execution]
) -> Execution:
    """One execution of ``program`` by ``run``; raises ``CheckError`` for findings unless they are collected."""
    report = Report(program, platform, checks)
    try:
        return _execute(report, run)
    finally:
        report.close()


def _execute(report: Report, run: Callable[[Report], Execution]) -> Execution:
    checks = report.checks
    try:
        done = run(report)
    except ExecutionError as failure:
        report.gather(failure)
        if not report.findings:
            raise
        raise error_of(report.findings) from failure
    if report.watch is None and report.indices is None and not done.left_behind and not report.told:
        return done
    report.gather(None, done.left_behind)
    if report.findings and checks.mode == "raise":
        raise error_of(report.findings)
    keep(report.findings)
    log = report.rank_log()
    return replace(done, findings=report.findings, rank_log=log) if report.findings or log is not None else done
