"""Rules that a whole program must keep, checked before the passes run (spec language 8.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.errors import Error
from pypto.ir.span import Span
from pypto.ir.walk import blocks, direct_expressions, statements, targets, walk

DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
VECTOR_KINDS = ("elementwise", "broadcast", "reduce", "cast", "sort")


@dataclass(frozen=True)
class Finding:
    """One broken rule."""

    rule: str
    message: str
    span: Span


def verify(program: ir.Program, after: str = "pipeline_input") -> None:
    """Raise ``pypto.Error`` with every broken rule of ``program``, the program as it is after ``after``."""
    findings = [f for function in program.functions.values() for rule in RULES for f in rule(function, program)]
    if not findings:
        return
    lines = [f"Verification failed after {after!r}: {len(findings)} finding{'s' if len(findings) > 1 else ''}"]
    for finding in findings:
        lines.append(f"{finding.rule}: {finding.message}")
        if finding.span.line:
            lines.append(finding.span.excerpt())
    raise Error("\n".join(lines))


# --- values after a launch ---


def _inout_use(function: ir.Function, program: ir.Program) -> Iterator[Finding]:
    """A tensor handed over as ``Out`` or ``InOut`` goes on under the name of the result (spec language 6.4)."""
    if function.type in DEVICE:
        return
    yield from _stale_reads(function.body, {}, program)


def _stale_reads(body: list[ir.Stmt], stale: dict[str, str], program: ir.Program) -> Iterator[Finding]:
    """``stale``: variable -> the result that replaced it; changed in place."""
    for stmt in body:
        for expr in direct_expressions(stmt):
            yield from _reads(expr, stale)
        for name, result in _replaced(stmt, program):
            stale[name] = result
        for variable in targets(stmt):
            stale.pop(variable.name, None)
        after = dict(stale)
        for block in blocks(stmt):
            inner = dict(stale)
            yield from _stale_reads(block, inner, program)
            after.update(inner)
        stale.update(after)


def _reads(expr: ir.Expr, stale: dict[str, str]) -> Iterator[Finding]:
    for inner in walk(expr):
        if isinstance(inner, ir.Var) and inner.name in stale:
            yield Finding(
                "InOutUseDiscipline (InOutUseValid)",
                f"{inner.name!r} was passed as an output and is read again; its new value is {stale[inner.name]!r}",
                inner.span,
            )


def _replaced(stmt: ir.Stmt, program: ir.Program) -> Iterator[tuple[str, str]]:
    """Arguments of ``InOut`` parameters whose new value ``stmt`` binds to another name."""
    call = getattr(stmt, "value", None)
    callee = program.functions.get(call.callee) if isinstance(call, ir.FunctionCall) else None
    if not isinstance(call, ir.FunctionCall) or callee is None:
        return
    names = [v.name for v in targets(stmt)]
    for name, position in zip(names, call.attrs.get("returns", ())):
        if position is None or position >= len(call.args):
            continue
        argument = call.args[position]
        written = callee.params[position].direction == ParamDirection.InOut
        if written and isinstance(argument, ir.Var) and argument.name not in names:
            yield argument.name, name


# --- regions of two lanes ---


def _split_regions(function: ir.Function, program: ir.Program) -> Iterator[Finding]:
    """Vector work inside ``pl.split_aiv``, cube work outside, never in a function declared InCore (5.5)."""
    declared = function.type in DEVICE
    for scope in statements(function.body):
        region = isinstance(scope, ir.Scope) and scope.kind == "split_aiv"
        if region and declared:
            yield Finding(
                "AivSplitValid",
                f"pl.split_aiv stands in {function.name!r}, which is declared {function.type.name}; "
                "use it inside 'with pl.at(level=pl.Level.CORE_GROUP):'",
                scope.span,
            )
        if isinstance(scope, ir.Scope) and scope.kind in ("at", "spmd") and _has_region(scope.body):
            yield from _misplaced(scope.body, False)


def _has_region(body: list[ir.Stmt]) -> bool:
    return any(isinstance(s, ir.Scope) and s.kind == "split_aiv" for s in statements(body))


def _misplaced(body: list[ir.Stmt], inside: bool) -> Iterator[Finding]:
    for stmt in body:
        for expr in direct_expressions(stmt):
            for inner in walk(expr):
                if isinstance(inner, ir.Call):
                    yield from _wrong_side(inner, inside)
        region = inside or isinstance(stmt, ir.Scope) and stmt.kind == "split_aiv"
        for block in blocks(stmt):
            yield from _misplaced(block, region)


def _wrong_side(call: ir.Call, inside: bool) -> Iterator[Finding]:
    row = operations.find(call.op)
    data = isinstance(call.type, (ir.TileType, ir.TensorType))
    if row is None or not data:
        return
    name = call.op.partition(".")[2]
    if row.kind in VECTOR_KINDS and not inside:
        yield Finding(
            "AivSplitValid", f"pl.{name} computes on a vector core outside the pl.split_aiv region", call.span
        )
    elif row.kind == "matmul" and inside:
        yield Finding("AivSplitValid", f"pl.{name} computes on the cube inside a pl.split_aiv region", call.span)


RULES: tuple[Callable[[ir.Function, ir.Program], Iterator[Finding]], ...] = (_inout_use, _split_regions)
