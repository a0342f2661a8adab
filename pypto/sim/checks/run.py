"""One checked execution: watch it, turn what went wrong into findings, raise or keep them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from pypto.sim.checks.contracts import contract_findings
from pypto.sim.checks.directions import direction_findings
from pypto.sim.checks.failures import failure_findings, left_behind_findings
from pypto.sim.checks.findings import Finding, error_of
from pypto.sim.checks.forced import keep
from pypto.sim.checks.races import race_findings
from pypto.sim.checks.rank_log import RankLog, Window, rank_log
from pypto.sim.checks.selection import Checks
from pypto.sim.checks.values import value_findings
from pypto.sim.checks.watch import LaunchWatch, Memory, watches_gathers
from pypto.sim.distributed import CTX_RANK, CTX_RANKS, CTX_STRIDE, CTX_WORDS
from pypto.sim.faults import ExecutionError
from pypto.sim.memory import memory_view

if TYPE_CHECKING:
    from pypto.sim.launch import Launch
    from pypto.sim.program import LoadedProgram, TensorArgument
    from pypto.sim.tile_program import TileProgram


class Report:
    """What the checks of one execution know."""

    def __init__(self, program: LoadedProgram, platform: str, checks: Checks):
        self.program, self.platform, self.checks = program, platform, checks
        self.watch: LaunchWatch | None = None
        self.launch: Launch | None = None
        self.findings: tuple[Finding, ...] = ()
        self._static: list[Finding] = []
        self._windows: list[Window] = []

    def begin(self, tensors: Sequence[TensorArgument], numbers: Sequence[int]) -> LaunchWatch | None:
        """The watch of a launch with these tensor arguments, whose allocations are ``numbers``; ``None`` if needless."""
        if not self.checks.deep and not any(watches_gathers(p) for p in self.program.kernels.values()):
            return None
        watch = self.watch = LaunchWatch(self.checks, self.program.orchestration)
        watch.on_program = self._on_program
        parameters = [p for p in self.program.params if p.kind == "tensor"]
        groups: dict[int, list[Memory]] = {}
        for parameter, tensor, number in zip(parameters, tensors, numbers):
            memory = Memory(
                parameter.name, tensor.shape, tensor.dtype.get_bit(), tensor.address, tensor.nbytes, parameter.direction
            )
            if tensor.context:
                memory = replace(memory, direction="window")
                self._windows.append(_window(memory, tensor.context))
            groups.setdefault(number, []).append(memory)
        for number in range(len(groups)):
            tracked = any(memory.direction != "in" for memory in groups[number])
            watch.add_memory(number, groups[number], True, tracked)
        return watch

    def rank_log(self) -> RankLog | None:
        """What the launch did with windows and signals; ``None`` when it has none."""
        return rank_log(self.watch, self._windows) if self.watch is not None and self._windows else None

    def _on_program(self, program: TileProgram, number: int) -> None:
        if self.checks.kinds & {"precision", "shape-contract"}:
            self._static += contract_findings(program, self.platform)

    def gather(self, failure: ExecutionError | None) -> None:
        """Findings of the execution, which ended with ``failure``."""
        found: Iterator[Finding] = iter(())
        if failure is not None:
            found = failure_findings(failure)
        if self.launch is not None:
            found = chain(found, left_behind_findings(self.launch.left_behind))
        if self.watch is not None:
            late = () if failure is not None else value_findings(self.watch)
            found = chain(found, self._static, race_findings(self.watch), late, direction_findings(self.watch))
        self.findings = tuple(f for f in found if f.kind in self.checks.kinds)


def _window(memory: Memory, context: int) -> Window:
    record = memory_view(context, 8 * CTX_WORDS).view(np.int64)
    rank, ranks, stride = (int(record[word]) for word in (CTX_RANK, CTX_RANKS, CTX_STRIDE))
    return Window(memory.name, memory.address, memory.size, memory.shape, memory.bits, stride, rank, ranks)


@contextmanager
def checked(program: LoadedProgram, platform: str, checks: Checks) -> Iterator[Report]:
    """Run the body as one execution of ``program``; raises ``CheckError`` for findings unless they are collected."""
    report = Report(program, platform, checks)
    try:
        yield report
    except ExecutionError as failure:
        report.gather(failure)
        if not report.findings:
            raise
        raise error_of(report.findings) from failure
    report.gather(None)
    if report.findings and checks.mode == "raise":
        raise error_of(report.findings)
    keep(report.findings)
