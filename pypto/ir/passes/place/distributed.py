"""Placement of one-sided transfers and signals: operands move to where an instruction can take them."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.enums import AtomicType, MemorySpace
from pypto.ir.errors import CompileError
from pypto.ir.passes.place.movement import Movement
from pypto.ir.passes.place.state import is_window
from pypto.ir.passes.place.values import Product, Value, Window


class RankTransfers(Movement):
    """Handlers of ``pld.*`` operations; a window of a window addresses the same cells of its base."""

    def _pld_tile_remote_load(self, call: ir.Call, a: dict[str, Any]) -> Value:
        window = self._bound(a["target"], call)
        shape = tuple(int(ir.as_dim(s)) for s in a["shape"])  # type: ignore[arg-type]
        valid = None if a["valid_shape"] is None else tuple(ir.as_dim(v) for v in a["valid_shape"])
        full = window.full_extents(shape)
        reach = full if valid is None else window.full_extents(valid)
        arguments = {
            "target": window.base,
            "peer": a["peer"],
            "offsets": window.full_offsets(a["offsets"]),
            "shape": tuple(map(ir.as_expr, full)),
            "valid_shape": tuple(map(ir.as_expr, reach)),
        }
        from pypto.ir.operations import results

        static = tuple(int(e) for e in full)  # type: ignore[arg-type]
        kind = results.tile(static, call.type.dtype, MemorySpace.Vec, valid=None if valid is None else reach)  # type: ignore[attr-defined]
        target = self.tile_variable("remote", kind)
        self.emit(ir.Assign(target, ir.Call(call.op, arguments, kind, call.attrs, self.span), self.span))
        return self.reshaped(target, shape)

    def _pld_tile_remote_store(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self._store_remote(call, a["src_tile"], a)

    def _pld_tensor_remote_store(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self._store_remote(call, a["src"], a)

    def _store_remote(self, call: ir.Call, source: Value, a: dict[str, Any]) -> Value:
        target = self._bound(a["target"], call)
        tile: Any = self.on_chip(source) if is_window(source) or isinstance(source, Product) else source
        if tile.type.space not in (None, MemorySpace.Vec, MemorySpace.Acc):
            tile = self.to_space(tile, MemorySpace.Vec)
        shape = tile.type.shape
        rank = len(target.kept())
        if len(shape) < rank:
            shape = (*([1] * (rank - len(shape))), *shape)
        placed = self.emitter_reshape(tile, target.full_extents(shape))
        arguments = {
            "src_tile": placed,
            "target": target.base,
            "peer": a["peer"],
            "offsets": target.full_offsets(a["offsets"]),
            "atomic": a.get("atomic", AtomicType.None_),
        }
        made = ir.Call("pld.tile.remote_store", arguments, ir.NoneType(), call.attrs, self.span)
        self.emit(ir.Evaluate(made, self.span))
        return made

    def _pld_system_notify(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self._signal(call, a, "target")

    def _pld_system_wait(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self._signal(call, a, "signal")

    def _pld_system_defer_wait(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self._signal(call, a, "signal")

    def _signal(self, call: ir.Call, a: dict[str, Any], name: str) -> Value:
        window = self._bound(a[name], call)
        arguments = {**a, name: window.base, "offsets": window.full_offsets(a["offsets"])}
        made = ir.Call(call.op, arguments, ir.NoneType(), call.attrs, self.span)
        self.emit(ir.Evaluate(made, self.span))
        return made

    def _pld_system_get_comm_ctx(self, call: ir.Call, a: dict[str, Any]) -> Value:
        window = self._bound(a["dist_tensor"], call)
        return ir.Call(call.op, {"dist_tensor": window.base}, call.type, call.attrs, self.span)

    def _bound(self, value: Value, call: ir.Call) -> Window:
        if isinstance(value, Window):
            return value
        raise CompileError(f"{call.op} needs a window in GM; this value is on chip", self.span)
