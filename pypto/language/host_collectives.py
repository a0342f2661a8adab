"""Collectives in a HOST orchestrator: a chip program per call, dispatched to every rank (spec distributed 2.13)."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import nodes as ir
from pypto.ir.dtype import FP32, INT32, INT64
from pypto.ir.enums import ReduceOp
from pypto.ir.errors import CompileError, Error, InvalidOperationError
from pypto.ir.operations import dims
from pypto.ir.operations.distributed import POINTER
from pypto.ir.walk import rewrite_body

if TYPE_CHECKING:
    from pypto.language.parser.distributed import RankCalls

OPERANDS = {
    "pld.tensor.allreduce": ("target", "signal"),
    "pld.tensor.barrier": ("signal",),
    "pld.tensor.broadcast": ("target", "signal"),
    "pld.tensor.allgather": ("local_data", "target", "signal"),
    "pld.tensor.reduce_scatter": ("target", "signal"),
    "pld.tensor.all_to_all": ("input", "target", "signal"),
    "pld.tensor.all_to_all_v": ("input", "target", "signal", "send_counts", "recv_counts"),
}


def host_collective(parser: RankCalls, call: ir.Call, node: ast.Call) -> ir.FunctionCall:
    """The dispatches that ``call`` stands for."""
    arguments = dict(call.arguments)
    if call.op == "pld.tensor.allreduce" and arguments["signal"] is None:
        arguments["signal"] = _private_signal(parser, int(arguments["core_num"]), node)
    operands = [arguments[name] for name in OPERANDS[call.op]]
    for name, value in zip(OPERANDS[call.op], operands):
        if not value.type.distributed:
            parser.fail(InvalidOperationError, f"{call.op}: {name} must be window-bound in a HOST orchestrator", node)
    if call.op == "pld.tensor.all_to_all_v" and parser.loops:
        raise CompileError(f"{call.op} in a HOST orchestrator cannot stand in a loop", call.span)
    if call.op == "pld.tensor.allreduce" and arguments["mode"] == "ring":
        _check_ring(call, operands[0].type, operands[1].type)
    function = _function(parser, call, operands)
    position = OPERANDS[call.op].index("target" if "target" in OPERANDS[call.op] else "signal")
    attrs = {"everywhere": True, "returns": (position,), "lanes": int(arguments.get("core_num") or 1)}
    return ir.FunctionCall(function.name, tuple(operands), operands[position].type, "call", attrs, parser.span(node))


def _check_ring(call: ir.Call, target: ir.TensorType, signal: ir.TensorType) -> None:
    """What the HOST form of a ring can do: FP32, Sum, equal segments, a row of the signal per step and one more."""
    if call.arguments["op"] is not ReduceOp.Sum:
        raise CompileError(f"{call.op}: mode='ring' of a HOST orchestrator reduces with ReduceOp.Sum only", call.span)
    if target.dtype != FP32:
        raise CompileError(f"{call.op}: mode='ring' of a HOST orchestrator reduces FP32, not {target.dtype}", call.span)
    ranks = dims.constant(signal.shape[1]) if len(signal.shape) == 2 else None
    if ranks is None:
        return  # refused where the ring is written out
    if dims.less(signal.shape[0], 2 * (ranks - 1) + 1):
        raise CompileError(
            f"{call.op}: the signal of a ring of {ranks} ranks needs [{2 * (ranks - 1) + 1}, {ranks}] cells, "
            f"got {dims.listing(signal.shape)}",
            call.span,
        )
    size = dims.constant(dims.product(target.shape))
    if size is not None and size % ranks:
        raise CompileError(
            f"{call.op}: {size} elements do not divide into {ranks} equal segments; use mode='mesh'", call.span
        )


def _private_signal(parser: RankCalls, lanes: int, node: ast.Call) -> ir.Expr:
    """A signal for one allreduce, of ``[world size, lanes]`` cells."""
    if parser.loops:
        raise CompileError("pld.tensor.allreduce in a loop needs an explicit signal", parser.span(node))
    span = parser.span(node)
    size = ir.Call("pld.system.world_size", {}, ir.ScalarType(INT64), {}, span)
    buffer = ir.Var(parser.names.fresh("__allreduce_signal_buf"), POINTER, span)
    shape = (size, ir.index(lanes))
    allocation = {"size": shape, "dtype": INT32, "name": buffer.name}
    parser.emit(ir.Assign(buffer, ir.Call("pld.tensor.alloc_window_buffer", allocation, POINTER, {}, span), span))
    kind = ir.TensorType((ir.Symbol(f"{buffer.name}_ranks"), lanes), INT32, None, True)
    window = ir.Var(parser.names.fresh("__allreduce_signal"), kind, span)
    view = {"buf": buffer, "shape": shape, "dtype": INT32}
    parser.emit(ir.Assign(window, ir.Call("pld.tensor.window", view, kind, {}, span), span))
    return window


def _variant(call: ir.Call, target: ir.Expr) -> str:
    """Name of the chip program: operation, what it computes, element type."""
    a, dtype = call.arguments, target.type.dtype.to_string()  # type: ignore[attr-defined]
    base = call.op.removeprefix("pld.")
    if call.op == "pld.tensor.allreduce":
        ring = "_ring" if a["mode"] == "ring" else ""
        cores = f"__x{a['core_num']}" if a["core_num"] > 1 else ""
        return f"builtin.{base}{ring}__{a['op'].name.lower()}__{dtype}{cores}"
    if call.op == "pld.tensor.broadcast":
        return f"builtin.{base}__root{a['root']}__{dtype}"
    return f"builtin.{base}__{dtype}"


def _function(parser: RankCalls, call: ir.Call, operands: list[ir.Expr]) -> ir.Function:
    """The chip program, added to the program around; calls with equal operand types share one."""
    from pypto.jit.specialise import Specialisation

    known: dict[Any, ir.Function] = parser.context.__dict__.setdefault("builtin_functions", {})
    base = _variant(
        call, operands[-1] if call.op == "pld.tensor.barrier" else call.arguments.get("target", operands[0])
    )
    key = (base, tuple(o.type for o in operands))
    if key not in known:
        taken = {f.name for f in known.values()}
        name = next(n for n in (base, *(f"{base}__{i}" for i in range(1, 1000))) if n not in taken)
        chip = _programs(call)
        made = Specialisation(_host(chip))
        try:
            made.dependency("chip", chip, operands, parser.call_site or call.span)
        except Error as error:  # found inside the chip program; the statement is what the author wrote
            raise type(error)(error.message, call.span, error.hint) from None
        for inner in _renamed(made._functions, {"chip": name, "kernel": f"{name.rpartition('.')[2]}_kernel"}):
            parser.context.dependency(inner.name, inner, [], call.span)
            if inner.name == name:
                known[key] = inner
    return known[key]


def _renamed(functions: dict[str, ir.Function], names: dict[str, str]) -> list[ir.Function]:
    """``functions`` under other names, in their calls too."""

    def change(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.FunctionCall) and expr.callee in names:
            return replace(expr, callee=names[expr.callee])
        return expr

    return [replace(f, name=names[n], body=rewrite_body(f.body, change)) for n, f in functions.items()]


def _host(chip: Any) -> Any:
    """A stand-in for the HOST entry that the chip program is specialised for."""

    class Entry:
        kind = "host"
        dependencies = {chip.__name__: chip}

    return Entry()


# The bodies below are parsed, not run.


def _programs(call: ir.Call) -> Any:
    """The chip orchestration of a collective; it calls its kernel."""
    a = call.arguments
    if call.op == "pld.tensor.allreduce":
        return _allreduce(a["op"], a["mode"], a["core_num"])
    if call.op == "pld.tensor.broadcast":
        return _broadcast(a["root"])
    return {
        "pld.tensor.barrier": _barrier,
        "pld.tensor.allgather": _allgather,
        "pld.tensor.reduce_scatter": _reduce_scatter,
        "pld.tensor.all_to_all": _all_to_all,
        "pld.tensor.all_to_all_v": _all_to_all_v,
    }[call.op]()


Window = pl.InOut[pld.DistributedTensor]  # type: ignore[type-arg]


def _allreduce(op: ReduceOp, mode: str, core_num: int) -> Any:
    if core_num > 1:
        return _allreduce_cores(op, mode, core_num)

    @pl.jit.incore
    def kernel(target: Window, signal: Window):
        return pld.tensor.allreduce(target, signal, op=op, mode=mode)

    @pl.jit
    def chip(target: Window, signal: Window):
        return kernel(target, signal)

    return chip


def _allreduce_cores(op: ReduceOp, mode: str, cores: int) -> Any:
    @pl.jit.incore
    def kernel(target: Window, signal: Window):
        return pld.tensor.allreduce(target, signal, op=op, mode=mode, core_num=cores)

    @pl.jit
    def chip(target: Window, signal: Window):
        with pl.spmd(cores, sync_start=True):
            target = kernel(target, signal)
        return target  # noqa: RET504 - a launch in a scope is assigned

    return chip


def _barrier() -> Any:
    @pl.jit.incore
    def kernel(signal: Window):
        return pld.tensor.barrier(signal)

    @pl.jit
    def chip(signal: Window):
        return kernel(signal)

    return chip


def _broadcast(root: int) -> Any:
    @pl.jit.incore
    def kernel(target: Window, signal: Window):
        return pld.tensor.broadcast(target, signal, root=root)

    @pl.jit
    def chip(target: Window, signal: Window):
        return kernel(target, signal)

    return chip


def _allgather() -> Any:
    @pl.jit.incore
    def kernel(local_data: pld.DistributedTensor, target: Window, signal: Window):
        return pld.tensor.allgather(local_data, target, signal)

    @pl.jit
    def chip(local_data: pld.DistributedTensor, target: Window, signal: Window):
        return kernel(local_data, target, signal)

    return chip


def _reduce_scatter() -> Any:
    @pl.jit.incore
    def kernel(target: Window, signal: Window):
        return pld.tensor.reduce_scatter(target, signal)

    @pl.jit
    def chip(target: Window, signal: Window):
        return kernel(target, signal)

    return chip


def _all_to_all() -> Any:
    @pl.jit.incore
    def kernel(source: pld.DistributedTensor, target: Window, signal: Window):
        return pld.tensor.all_to_all(source, target, signal)

    @pl.jit
    def chip(source: pld.DistributedTensor, target: Window, signal: Window):
        return kernel(source, target, signal)

    return chip


def _all_to_all_v() -> Any:
    @pl.jit.incore
    def kernel(
        source: pld.DistributedTensor, target: Window, signal: Window, send: pld.DistributedTensor, recv: Window
    ):
        return pld.tensor.all_to_all_v(source, target, signal, send, recv)

    @pl.jit
    def chip(source: pld.DistributedTensor, target: Window, signal: Window, send: pld.DistributedTensor, recv: Window):
        return kernel(source, target, signal, send, recv)

    return chip
