"""Advisory diagnostics: warnings on standard error and performance hints in the build directory (spec language 8.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from pypto.ir import nodes as ir
from pypto.ir.accesses import DESTINATION, Accesses
from pypto.ir.enums import FunctionType, MemorySpace, ParamDirection
from pypto.ir.pass_manager import DiagnosticCheck
from pypto.ir.span import Span
from pypto.ir.walk import direct_expressions, statements, walk
from pypto.log import log_info, log_warn

INNERMOST_BYTES = {"a2a3": 512, "a5": 128}
"""Innermost extent of a load or store below which PH001 speaks (spec language 7.7)."""
DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


@dataclass(frozen=True)
class Advice:
    """One remark on a program that is nevertheless valid."""

    check: DiagnosticCheck
    message: str
    span: Span

    def __str__(self) -> str:
        where = f" at {self.span.filename}:{self.span.line}" if self.span.line else ""
        return f"{self.check.name}: {self.message}{where}"


def warn(program: ir.Program, disabled: Set[DiagnosticCheck]) -> None:
    """Write the warnings on ``program`` to standard error."""
    for function in program.functions.values():
        for check, rule in WARNINGS.items():
            if check not in disabled:
                for advice in rule(function):
                    log_warn(str(advice))


def hint(program: ir.Program, generation: str, report: Path, disabled: Set[DiagnosticCheck]) -> None:
    """Append the performance hints on a placed ``program`` to ``report/perf_hints.log``."""
    if DiagnosticCheck.TileInnermostDimGranularity in disabled:
        return
    found = [a for f in program.functions.values() if f.type in DEVICE for a in _short_rows(f, generation)]
    if not found:
        return
    report.mkdir(parents=True, exist_ok=True)
    with (report / "perf_hints.log").open("a", encoding="utf-8") as log:
        for advice in dict.fromkeys(found):
            log.write(f"[perf_hint PH001] {advice.check.name}: {advice.message} at {advice.span}\n")
    log_info(f"{len(dict.fromkeys(found))} performance hints in {report / 'perf_hints.log'}")


# --- warnings ---


def _dropped_writes(function: ir.Function) -> Iterator[Advice]:
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
            )


def _unused(function: ir.Function) -> Iterator[Advice]:
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
            yield Advice(DiagnosticCheck.UnusedVariable, f"{name!r} is never read", stmt.span)


WARNINGS: dict[DiagnosticCheck, Callable[[ir.Function], Iterator[Advice]]] = {
    DiagnosticCheck.OutParamWriteDropped: _dropped_writes,
    DiagnosticCheck.UnusedVariable: _unused,
}


# --- hints ---


def _short_rows(function: ir.Function, generation: str) -> Iterator[Advice]:
    least = INNERMOST_BYTES[generation]
    for stmt in statements(function.body):
        for expr in direct_expressions(stmt):
            for call in walk(expr):
                kind = _transferred(call)
                if kind is None:
                    continue
                row = kind.shape[-1] * kind.dtype.get_bit() // 8
                if row < least:
                    yield Advice(
                        DiagnosticCheck.TileInnermostDimGranularity,
                        f"{getattr(call, 'op', '')} moves rows of {row} bytes, the memory likes {least} or more",
                        call.span,
                    )


def _transferred(call: ir.Expr) -> ir.TileType | None:
    """The tile that a load or store moves between GM and the chip."""
    if not isinstance(call, ir.Call) or call.op not in ("tile.load", "tile.store"):
        return None
    kind = call.type if call.op == "tile.load" else call.arguments["tile"].type
    on_chip = isinstance(kind, ir.TileType) and kind.space in (None, MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc)
    return kind if on_chip and isinstance(kind, ir.TileType) else None
