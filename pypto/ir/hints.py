"""Performance hints on a placed program, in ``report/perf_hints.log`` of its build directory (spec language 7.7, 8.4).

PH001 is the hint of the specification. PH002 and PH003 name what costs most and shows least in the source: tasks of a
``pl.parallel`` loop that wait for each other, and rows that the way into L1 does not like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Final

from pypto.ir import nodes as ir
from pypto.ir.advice import Advice
from pypto.ir.enums import ForKind, FunctionType, MemorySpace, ParamDirection
from pypto.ir.pass_manager import DiagnosticCheck
from pypto.ir.walk import direct_expressions, expressions_of, statements, targets, walk
from pypto.log import log_info

INNERMOST_BYTES: Final = {"a2a3": 512, "a5": 128}
"""Innermost extent of a load or store below which PH001 speaks (spec language 7.7)."""
EVEN_BYTES: Final = 32
"""Rows of a multiple of this go to L1 without a cost of their own (hardware notes 3.2: 510 bytes take 1.97 of 512)."""
DEVICE: Final = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def hint(program: ir.Program, generation: str, report: Path, disabled: Set[DiagnosticCheck]) -> None:
    """Append the performance hints on a placed ``program`` to ``report/perf_hints.log``."""
    asked = {check: found for check, found in HINTS.items() if check not in disabled}
    lines = [
        f"[perf_hint {code}] {advice.check.name}: {advice.message} at {advice.span}\n"
        for code, look in asked.values()
        for function in program.functions.values()
        for advice in look(function, program, generation)
    ]
    if not lines:
        return
    report.mkdir(parents=True, exist_ok=True)
    found = dict.fromkeys(lines)
    with (report / "perf_hints.log").open("a", encoding="utf-8") as log:
        log.writelines(found)
    log_info(f"{len(found)} performance hint{'s' if len(found) > 1 else ''} in {report / 'perf_hints.log'}")


def _short_rows(function: ir.Function, program: ir.Program, generation: str) -> Iterator[Advice]:
    least = INNERMOST_BYTES[generation]
    for call, kind in _transfers(function):
        row = kind.shape[-1] * kind.dtype.get_bit() // 8
        if row < least:
            yield Advice(
                DiagnosticCheck.TileInnermostDimGranularity,
                f"{call.op} moves rows of {row} bytes, the memory likes {least} or more",
                call.span,
            )


def _uneven_rows(function: ir.Function, program: ir.Program, generation: str) -> Iterator[Advice]:
    for call, kind in _transfers(function):
        row = kind.shape[-1] * kind.dtype.get_bit() // 8
        into_l1 = call.op == "tile.load" and kind.space == MemorySpace.Mat and kind.shape[-2] > 1
        if generation == "a2a3" and into_l1 and row % EVEN_BYTES:
            yield Advice(
                DiagnosticCheck.UnevenMatrixRows,
                f"an operand of a product is loaded in rows of {row} bytes, no multiple of {EVEN_BYTES}: every row "
                f"takes several times as long; pad it to {-(-row // EVEN_BYTES) * EVEN_BYTES} bytes",
                call.span,
            )


def _transfers(function: ir.Function) -> Iterator[tuple[ir.Call, ir.TileType]]:
    """Loads and stores between GM and the chip, with the tile they move."""
    for stmt in statements(function.body) if function.type in DEVICE else ():
        for expr in direct_expressions(stmt):
            for call in walk(expr):
                kind = _transferred(call)
                if kind is not None and isinstance(call, ir.Call):
                    yield call, kind


def _transferred(call: ir.Expr) -> ir.TileType | None:
    if not isinstance(call, ir.Call) or call.op not in ("tile.load", "tile.store"):
        return None
    kind = call.type if call.op == "tile.load" else call.arguments["tile"].type
    on_chip = isinstance(kind, ir.TileType) and kind.space in (None, MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc)
    return kind if on_chip and isinstance(kind, ir.TileType) else None


def _serialised(function: ir.Function, program: ir.Program, generation: str) -> Iterator[Advice]:
    """Tasks of a parallel loop that read and write one tensor as a whole wait for each other (spec language 6.4)."""
    for loop in _inferred_loops(function) if function.type not in DEVICE else ():
        parts = _parts(loop.body)
        calls = (e for s in loop.body for e in expressions_of(s) if isinstance(e, ir.FunctionCall))
        for call in calls:
            for argument in _rewritten(call, program):
                if argument.name not in parts:
                    yield Advice(
                        DiagnosticCheck.SerialisedParallelTasks,
                        f"tasks {call.callee!r} of a pl.parallel loop wait for each other: each reads and writes "
                        f"{argument.author or argument.name!r} as a whole; pl.at(..., windowize=True) or blocks of "
                        "pl.spmd run side by side",
                        call.span,
                    )


def _inferred_loops(function: ir.Function) -> Iterator[ir.For]:
    """Parallel loops whose tasks wait for what their arguments say."""
    manual = {id(s) for m in statements(function.body) if _is_manual(m) for s in statements([m])}
    for stmt in statements(function.body):
        if isinstance(stmt, ir.For) and stmt.kind == ForKind.Parallel and id(stmt) not in manual:
            yield stmt


def _is_manual(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Scope) and stmt.kind == "manual"


def _rewritten(call: ir.FunctionCall, program: ir.Program) -> Iterator[ir.Var]:
    """Variables of tensors that a call reads and writes and that decide when it starts."""
    callee = program.functions.get(call.callee)
    if callee is None or call.attrs.get("arg_directions"):
        return
    for position, (param, argument) in enumerate(zip(callee.params, call.args)):
        both = param.direction == ParamDirection.InOut and position not in call.attrs.get("no_dep", ())
        if both and isinstance(argument, ir.Var) and _is_tensor(param.type):
            yield argument


def _parts(body: list[ir.Stmt]) -> set[str]:
    """Names of windows and new tensors; a call gives back what it was handed."""
    made = (s for s in statements(body) if not isinstance(getattr(s, "value", None), ir.FunctionCall))
    return {v.name for s in made for v in targets(s)}


def _is_tensor(kind: ir.Type) -> bool:
    return isinstance(kind, ir.TensorType) and not kind.distributed


Look = Callable[[ir.Function, ir.Program, str], Iterator[Advice]]
HINTS: Final[dict[DiagnosticCheck, tuple[str, Look]]] = {
    DiagnosticCheck.TileInnermostDimGranularity: ("PH001", _short_rows),
    DiagnosticCheck.SerialisedParallelTasks: ("PH002", _serialised),
    DiagnosticCheck.UnevenMatrixRows: ("PH003", _uneven_rows),
}
"""What is looked for, under the code it is written with."""
