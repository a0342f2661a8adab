"""Rules that a whole program must keep, checked before the passes run (spec language 8.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.errors import Error
from pypto.ir.span import Span
from pypto.ir.type_checks import misfits
from pypto.ir.walk import blocks, direct_expressions, flatten, has_lane_region, statements, targets, walk

DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
HOST_NUMBER = 3  # of the levels that one host orchestrates (spec distributed 1.1)
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


def _types(function: ir.Function, program: ir.Program) -> Iterator[Finding]:
    for message, span in misfits(function, program):
        yield Finding("TypeChecked", message, span)


# --- values after a launch ---


def _inout_use(function: ir.Function, program: ir.Program) -> Iterator[Finding]:
    """A tensor handed over as ``Out`` or ``InOut`` goes on under the name of the result (spec language 6.4).

    In a HOST orchestrator also when no name takes the result: then the old name has none to go on under (distributed
    1.5).
    """
    if function.type in DEVICE:
        return
    host = function.level is not None and function.level.number >= HOST_NUMBER
    yield from _stale_reads(function.body, {}, program, host)


def _stale_reads(body: list[ir.Stmt], stale: dict[str, str], program: ir.Program, host: bool) -> Iterator[Finding]:
    """``stale``: variable -> the result that replaced it, "" when nothing did; changed in place."""
    for stmt in body:
        for expr in direct_expressions(stmt):
            yield from _reads(expr, stale, program)
        if host:
            stale.update(dict.fromkeys(_handed_over(stmt, program), ""))
        for name, result in _replaced(stmt, program):
            stale[name] = result
        for variable in targets(stmt):
            stale.pop(variable.name, None)
        yield from _inside(stmt, stale, program, host)


def _inside(stmt: ir.Stmt, stale: dict[str, str], program: ir.Program, host: bool) -> Iterator[Finding]:
    """The blocks of ``stmt``; what goes stale in an iteration of a loop is stale in the next one."""
    after = dict(stale)
    if isinstance(stmt, ir.Scope) and stmt.kind == "at" and stmt.attrs["level"].number < HOST_NUMBER:
        host = False  # it runs on a chip
    for block in blocks(stmt):
        inner = dict(stale)
        first = list(_stale_reads(block, inner, program, host))
        yield from first
        if isinstance(stmt, (ir.For, ir.While)):
            yield from (f for f in _stale_reads(block, dict(inner), program, host) if f not in first)
        after.update(inner)
    stale.update(after)


def _reads(expr: ir.Expr, stale: dict[str, str], program: ir.Program) -> Iterator[Finding]:
    for inner in _values_in(expr, program):
        if isinstance(inner, ir.Var) and inner.name in stale:
            yield Finding(
                "InOutUseDiscipline (InOutUseValid)",
                f"{inner.name!r} was passed as an output and is read again; {_go_on(stale[inner.name])}",
                inner.span,
            )


def _go_on(result: str) -> str:
    return f"its new value is {result!r}" if result else "assign the result of that call back, or take a new view"


def _handed_over(stmt: ir.Stmt, program: ir.Program) -> Iterator[str]:
    """Arguments of ``Out`` and ``InOut`` parameters that ``stmt`` does not bind anew; of a collective, its data."""
    call = getattr(stmt, "value", None)
    callee = program.functions.get(call.callee) if isinstance(call, ir.FunctionCall) else None
    if not isinstance(call, ir.FunctionCall) or callee is None:
        return
    bound = {v.name for v in targets(stmt)}
    for position, (parameter, value) in enumerate(zip(callee.params, call.args)):
        signal = call.attrs.get("everywhere") and position not in call.attrs.get("returns", ())
        written = parameter.direction != ParamDirection.In and not signal
        if written and isinstance(value, ir.Var) and value.name not in bound:
            yield value.name


def _values_in(expr: ir.Expr, program: ir.Program) -> Iterator[ir.Expr]:
    """Expressions whose values ``expr`` needs: what an ``Out`` parameter gets is overwritten, not read."""
    callee = program.functions.get(expr.callee) if isinstance(expr, ir.FunctionCall) else None
    if not isinstance(expr, ir.FunctionCall) or callee is None:
        yield from walk(expr)
        return
    for parameter, value in zip(callee.params, expr.args):
        if parameter.direction != ParamDirection.Out:
            yield from walk(value)
    for attribute in expr.attrs.values():
        for value in flatten(attribute):
            yield from walk(value)


def _replaced(stmt: ir.Stmt, program: ir.Program) -> Iterator[tuple[str, str]]:
    """Arguments of ``Out`` and ``InOut`` parameters whose new value ``stmt`` binds to another name."""
    call = getattr(stmt, "value", None)
    callee = program.functions.get(call.callee) if isinstance(call, ir.FunctionCall) else None
    if not isinstance(call, ir.FunctionCall) or callee is None:
        return
    names = [v.name for v in targets(stmt)]
    for name, position in zip(names, call.attrs.get("returns", ())):
        if position is None or position >= len(call.args):
            continue
        argument = call.args[position]
        written = callee.params[position].direction != ParamDirection.In
        if written and isinstance(argument, ir.Var) and argument.name not in names and not name.startswith("_"):
            yield argument.name, name


# --- regions of two lanes ---


def _split_regions(function: ir.Function, program: ir.Program) -> Iterator[Finding]:
    """Vector work inside ``pl.split_aiv``, cube work outside, never in a function declared InCore (5.5)."""
    outlined = bool(function.attrs.get(ir.LANE_REGION_CHECKED))
    declared = function.type in DEVICE and not outlined
    if outlined:
        yield from _misplaced(function.body, False)
    for scope in statements(function.body):
        region = isinstance(scope, ir.Scope) and scope.kind == "split_aiv"
        if region and declared:
            yield Finding(
                "AivSplitValid",
                f"pl.split_aiv stands in {function.name!r}, which is declared {function.type.name}; "
                "use it inside 'with pl.at(level=pl.Level.CORE_GROUP):'",
                scope.span,
            )
        if isinstance(scope, ir.Scope) and scope.kind in ("at", "spmd") and has_lane_region(scope.body):
            yield from _misplaced(scope.body, False)


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


# --- deferred waits ---


def _deferred_waits(function: ir.Function, program: ir.Program) -> Iterator[Finding]:
    """A deferred wait is a task of its own, which holds no core (spec distributed 2.11)."""
    if function.type in DEVICE:
        for call in _deferred(function.body):
            yield Finding(
                "DeferredWait", f"pld.system.defer_wait stands in the kernel {function.name!r}; {_OWN_BLOCK}", call.span
            )
        return
    for stmt in statements(function.body):
        if isinstance(stmt, ir.Scope) and stmt.kind in ("at", "spmd", "cluster", "split_aiv"):
            own = [stmt for stmt in stmt.body if not isinstance(stmt, ir.Scope)]
            calls = list(_deferred(own))
            if calls:
                yield from _wrong_block(stmt, calls, function)


_OWN_BLOCK = "give it a block of its own: with pl.at(level=pl.Level.CORE_GROUP) as tid:"
MOST_CONDITIONS = 64


def _deferred(body: list[ir.Stmt]) -> Iterator[ir.Call]:
    for stmt in statements(body):
        for expr in direct_expressions(stmt):
            for inner in walk(expr):
                if isinstance(inner, ir.Call) and inner.op == "pld.system.defer_wait":
                    yield inner


def _wrong_block(scope: ir.Scope, calls: list[ir.Call], function: ir.Function) -> Iterator[Finding]:
    told = [name for name in ("predicate", "allow_early_resolve", "core_num", "split") if scope.attrs.get(name)]
    if scope.kind != "at" or told:
        what = f"{told[0]}=" if told else f"pl.{scope.kind}"
        yield Finding("DeferredWait", f"a block of deferred waits takes no {what}; {_OWN_BLOCK}", scope.span)
    for stmt in statements(scope.body):
        values = [v for e in direct_expressions(stmt) for v in walk(e) if isinstance(v, (ir.Call, ir.FunctionCall))]
        other = [v for v in values if v not in calls and not isinstance(v.type, (ir.ScalarType, ir.NoneType))]
        effect = [v for v in values if isinstance(v, ir.Call) and isinstance(v.type, ir.NoneType) and v not in calls]
        for value in (*other, *(v for v in effect if v.op != "system.nothing")):
            yield Finding("DeferredWait", f"a block of deferred waits does nothing else; {_OWN_BLOCK}", value.span)
    for call in calls:
        signal = call.arguments["signal"]
        parameter = isinstance(signal, ir.Var) and any(p.name == signal.name for p in function.params)
        if not parameter:
            yield Finding(
                "DeferredWait", "the signal of a deferred wait is a parameter itself, not a part of one", call.span
            )
    if len(calls) > MOST_CONDITIONS:
        yield Finding(
            "DeferredWait", f"a task has at most {MOST_CONDITIONS} conditions, this one {len(calls)}", scope.span
        )


RULES: tuple[Callable[[ir.Function, ir.Program], Iterator[Finding]], ...] = (
    _types,
    _inout_use,
    _split_regions,
    _deferred_waits,
)
