"""Advisory diagnostics: warnings on standard error (spec language 8.4); performance hints are in ``hints.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from pypto.ir import nodes as ir
from pypto.ir.accesses import DESTINATION, Accesses
from pypto.ir.enums import ParamDirection
from pypto.ir.pass_manager import DiagnosticCheck, DiagnosticPhase
from pypto.ir.span import Span
from pypto.ir.walk import blocks, direct_expressions, statements, targets, walk
from pypto.log import log_warn


@dataclass(frozen=True)
class Advice:
    """One remark on a program that is nevertheless valid."""

    check: DiagnosticCheck
    message: str
    span: Span
    name: str = ""
    """The variable it is about."""

    def __str__(self) -> str:
        where = f" at {self.span.filename}:{self.span.line}" if self.span.line else ""
        return f"{self.check.name}: {self.message}{where}"


class Advisor:
    """Writes warnings to standard error at the chosen moments: before the passes, after each, or after all.

    Passes add variables of their own and copy statements; a warning is about a line of the author and said once.
    """

    def __init__(self, phase: DiagnosticPhase, disabled: Set[DiagnosticCheck]):
        self._phase, self._disabled = phase, disabled
        self._written: set[tuple[str, int]] = set()
        self._said: set[str] = set()

    def before(self, program: ir.Program) -> None:
        """The program as the author wrote it."""
        if self._phase == DiagnosticPhase.PRE_PIPELINE:
            self._warn(program)
            return
        for function in program.functions.values():
            for stmt in statements(function.body):
                self._written |= {(v.name, stmt.span.line) for v in targets(stmt)}

    def after_pass(self, program: ir.Program) -> None:
        """The program after one pass."""
        if self._phase == DiagnosticPhase.POST_PASS:
            self._warn(program)

    def done(self, program: ir.Program) -> None:
        """The program after the last pass."""
        if self._phase == DiagnosticPhase.POST_PIPELINE:
            self._warn(program)

    def _warn(self, program: ir.Program) -> None:
        checks = [check for check in WARNINGS if check not in self._disabled]
        found = (
            advice for f in program.functions.values() for check in checks for advice in WARNINGS[check](f, program)
        )
        for advice in found:
            own = self._phase == DiagnosticPhase.PRE_PIPELINE or (advice.name, advice.span.line) in self._written
            if own and str(advice) not in self._said:
                self._said.add(str(advice))
                log_warn(str(advice))


# --- warnings ---


def _dropped_writes(function: ir.Function, program: ir.Program) -> Iterator[Advice]:
    """An output parameter whose name is bound to something unrelated: nothing is written to the caller's memory."""
    outputs = {p.name for p in function.params if p.direction != ParamDirection.In}
    accesses = Accesses().visit(function.body)
    for stmt in statements(function.body):
        if not isinstance(stmt, ir.Assign) or stmt.target.name not in outputs:
            continue
        name = stmt.target.name
        mentioned = any(isinstance(e, ir.Var) and accesses.root(e) == name for e in walk(stmt.value))
        if not mentioned and accesses.root(stmt.value) != name:
            yield Advice(
                DiagnosticCheck.OutParamWriteDropped,
                f"{name!r} is an output of {function.name!r} and is rebound to an unrelated value; nothing is "
                f"written to it: use {name}[:] = ...",
                stmt.span,
                name,
            )


def _written_inputs(function: ir.Function, program: ir.Program) -> Iterator[Advice]:
    """An input parameter that is written: the host never sees it, and later tasks do not wait for it."""
    inputs = {p.name for p in function.params if p.direction == ParamDirection.In and _is_local_tensor(p.type)}
    accesses = Accesses().visit(function.body, program.functions)
    lost = inputs & accesses.writes
    for stmt in statements(function.body) if lost else ():
        here = (
            set()
            if list(blocks(stmt))
            else Accesses(roots=accesses.roots).visit([stmt], program.functions).writes & lost
        )
        lost -= here
        for name in sorted(here):
            yield Advice(
                DiagnosticCheck.InParamWritten,
                f"{name!r} is an input of {function.name!r} and is written here, which its caller never sees: "
                f"declare it as pl.Out[...] or pl.InOut[...]",
                stmt.span,
                name,
            )


def _is_local_tensor(kind: ir.Type) -> bool:
    return isinstance(kind, ir.TensorType) and not kind.distributed


def _unused(function: ir.Function, program: ir.Program) -> Iterator[Advice]:
    """Operations whose named result nothing reads."""
    reads: Counter[str] = Counter()
    for stmt in statements(function.body):
        for expr in direct_expressions(stmt):
            reads.update(e.name for e in walk(expr) if isinstance(e, ir.Var))
    parameters = {p.name for p in function.params}
    for stmt in statements(function.body):
        if not isinstance(stmt, ir.Assign) or not isinstance(stmt.value, ir.Call) or stmt.value.op in DESTINATION:
            continue
        name = stmt.target.name
        if not reads[name] and name not in parameters and not name.startswith("_") and "_inline" not in name:
            yield Advice(DiagnosticCheck.UnusedVariable, f"{name!r} is never read", stmt.span, name)


def _unused_results(function: ir.Function, program: ir.Program) -> Iterator[Advice]:
    """Values that a loop carries or branches merge and that nothing reads behind it."""
    yield from _results_of(function.body, {p.name for p in function.params}, set())


def _results_of(body: list[ir.Stmt], defined: set[str], later: set[str]) -> Iterator[Advice]:
    """``later``: names read behind ``body`` or by another iteration of a loop around it."""
    defined = set(defined)
    for position, stmt in enumerate(body):
        behind = later | _read_in(body[position + 1 :])
        if isinstance(stmt, (ir.For, ir.While, ir.If)):
            for name, span in _carried(stmt, defined):
                if name not in behind:
                    kind = "branch" if isinstance(stmt, ir.If) else "loop"
                    message = f"{name!r} leaves the {kind} and is never read behind it"
                    yield Advice(DiagnosticCheck.UnusedControlFlowResult, message, span, name)
        again = behind | _read_in([stmt]) if isinstance(stmt, (ir.For, ir.While)) else behind
        for block in blocks(stmt):
            yield from _results_of(block, defined, again)
        defined |= {v.name for s in statements([stmt]) for v in targets(s)}


def _read_in(body: list[ir.Stmt]) -> set[str]:
    found = (e for s in statements(body) for expr in direct_expressions(s) for e in walk(expr))
    return {e.name for e in found if isinstance(e, ir.Var)}


def _carried(stmt: ir.Stmt, defined: set[str]) -> Iterator[tuple[str, Span]]:
    """Variables that leave ``stmt`` with another value than they came with, or from both branches; writes are none."""
    seen: set[str] = set()
    if isinstance(stmt, ir.If):
        both = [{v.name for s in statements(block) for v in targets(s)} for block in blocks(stmt)]
        defined = defined | (both[0] & both[1])
    for inner in statements([stmt]):
        value = getattr(inner, "value", None)
        in_place = isinstance(value, ir.FunctionCall) or isinstance(value, ir.Call) and value.op in DESTINATION
        if not isinstance(inner, ir.Assign) or in_place or inner.target.name in seen:
            continue
        if inner.target.name in defined:
            seen.add(inner.target.name)
            yield inner.target.name, inner.span


WARNINGS: dict[DiagnosticCheck, Callable[[ir.Function, ir.Program], Iterator[Advice]]] = {
    DiagnosticCheck.OutParamWriteDropped: _dropped_writes,
    DiagnosticCheck.InParamWritten: _written_inputs,
    DiagnosticCheck.UnusedVariable: _unused,
    DiagnosticCheck.UnusedControlFlowResult: _unused_results,
}
