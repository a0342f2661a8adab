"""Bulk transfers and collectives between ranks, written in the language itself (spec distributed 2.7, 2.12, 2.13).

A call of ``pld.tensor.allreduce`` and its like is expanded where it stands; in a HOST orchestrator it becomes a chip
program that is dispatched to every rank of the domain (:mod:`pypto.language.host_collectives`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.errors import CompileError, InvalidOperationError
from pypto.ir.operations import dims

from .allreduce import mesh_allreduce, mesh_allreduce_by_cores, ring_allreduce
from .chunks import CHUNK_BYTES, padded
from .credits import barrier
from .exchanges import all_to_all_body, all_to_all_v_body, allgather_body, broadcast_body, reduce_scatter_body
from .expansion import Expansion
from .regions import element_bytes_of, flat_row, mesh_signal, row_length
from .transfers import transfers


def expansions(call: ir.Call) -> tuple[list[Expansion], ir.Expr | None]:
    """The inline functions that a transfer or collective stands for, and its value."""
    if call.op in ("pld.tensor.put", "pld.tensor.get", "pld.tile.put", "pld.tile.get"):
        return list(transfers(call)), None
    return [_COLLECTIVES[call.op](call.arguments, call)], call.arguments.get("target", call.arguments["signal"])


def _on_allreduce(a: Any, call: ir.Call) -> Expansion:
    if a["signal"] is None:
        raise InvalidOperationError(
            f"{call.op} in a kernel needs an explicit signal: it expects a DistributedTensor signal", call.span
        )
    flat, size = flat_row(a["target"], call)
    element_bytes = element_bytes_of(flat)
    chunk = min(padded(size, element_bytes), CHUNK_BYTES // element_bytes)
    if a["mode"] == "ring":
        return _ring(a, call, flat, size, chunk)
    cores = int(a["core_num"])
    if cores > 1 and not call.attrs.get("host"):
        raise CompileError(f"{call.op}: core_num={cores} belongs to the HOST form; in a kernel it is 1", call.span)
    operands = [flat, mesh_signal(a["signal"], call, cores)]
    if cores > 1:
        return mesh_allreduce_by_cores(size, min(chunk, 256), a["op"], cores), operands
    return mesh_allreduce(size, chunk, element_bytes, a["op"]), operands


def _ring(a: Any, call: ir.Call, flat: ir.Expr, size: int, chunk: int) -> Expansion:
    shape = a["signal"].type.shape
    nranks = dims.constant(shape[1]) if len(shape) == 2 else None
    if nranks is None or nranks < 2 or dims.less(shape[0], 2 * (nranks - 1)):
        raise CompileError(
            f"{call.op}: mode='ring' needs a signal of shape [2 * (ranks - 1), ranks], "
            f"both constant, got {dims.listing(shape)}",
            call.span,
        )
    granule = 16 if element_bytes_of(flat) == 2 else 1
    width = max(granule, chunk // granule * granule)
    return ring_allreduce(size, nranks, padded(width, element_bytes_of(flat)), granule, a["op"]), [flat, a["signal"]]


def _on_barrier(a: Any, call: ir.Call) -> Expansion:
    return barrier, [mesh_signal(a["signal"], call)]


def _on_broadcast(a: Any, call: ir.Call) -> Expansion:
    flat, size = flat_row(a["target"], call)
    return broadcast_body(size, element_bytes_of(flat), a["root"]), [flat, mesh_signal(a["signal"], call)]


def _on_allgather(a: Any, call: ir.Call) -> Expansion:
    target = a["target"]
    _need_distinct(call, a["local_data"], target)
    return allgather_body(row_length(target, call), element_bytes_of(target)), [
        a["local_data"],
        target,
        mesh_signal(a["signal"], call),
    ]


def _on_reduce_scatter(a: Any, call: ir.Call) -> Expansion:
    target = a["target"]
    return reduce_scatter_body(row_length(target, call), element_bytes_of(target)), [
        target,
        mesh_signal(a["signal"], call),
    ]


def _on_all_to_all(a: Any, call: ir.Call) -> Expansion:
    target = a["target"]
    _need_distinct(call, a["input"], target)
    return all_to_all_body(row_length(target, call), element_bytes_of(target)), [
        a["input"],
        target,
        mesh_signal(a["signal"], call),
    ]


def _on_all_to_all_v(a: Any, call: ir.Call) -> Expansion:
    target, counts = a["target"], a["send_counts"]
    _need_distinct(call, a["input"], target)
    rows = int(target.type.shape[0]) // int(a["signal"].type.shape[0])
    body = all_to_all_v_body(rows, row_length(target, call), element_bytes_of(target), len(counts.type.shape) == 1)
    return body, [a["input"], target, mesh_signal(a["signal"], call), counts, mesh_signal(a["recv_counts"], call)]


def _need_distinct(call: ir.Call, source: ir.Expr, target: ir.Expr) -> None:
    if source == target:
        raise CompileError(f"{call.op}: input and target must be different buffers", call.span)


_COLLECTIVES: dict[str, Callable[[Any, ir.Call], Expansion]] = {
    "pld.tensor.allreduce": _on_allreduce,
    "pld.tensor.barrier": _on_barrier,
    "pld.tensor.broadcast": _on_broadcast,
    "pld.tensor.allgather": _on_allgather,
    "pld.tensor.reduce_scatter": _on_reduce_scatter,
    "pld.tensor.all_to_all": _on_all_to_all,
    "pld.tensor.all_to_all_v": _on_all_to_all_v,
}

__all__ = ["Expansion", "expansions"]
