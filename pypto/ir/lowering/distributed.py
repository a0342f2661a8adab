"""Kernel instructions of transfers and signals between ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto.ir import nodes as ir
from pypto.ir.enums import AtomicType, NotifyOp, WaitCmp
from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import Register, TensorRef, Tile
from pypto.ir.lowering.scalars import ScalarLowering

if TYPE_CHECKING:
    from collections.abc import Callable

RANK_SCALARS = {"pld.system.rank": "commrank", "pld.system.nranks": "commsize"}


class RankLowering(ScalarLowering):
    """The ``pld`` part of the kernel lowering."""

    tensors: dict[str, tuple[int, Any]]
    _unique: Callable[[str], str]
    new_tile: Callable[..., Tile]
    set_valid: Callable[[Tile, ir.TileType], None]
    tile_of: Callable[[ir.Expr], Tile]
    operand: Callable[[Any], Any]

    def other_scalar_call(self, call: ir.Call, target: Register) -> None:
        if call.op == "pld.system.get_comm_ctx":
            self.emit("commctx", target, self.tensor(call.arguments["dist_tensor"]))
        elif call.op in RANK_SCALARS:
            self.emit(RANK_SCALARS[call.op], target, self.scalar(call.arguments["ctx"]))
        else:
            super().other_scalar_call(call, target)

    def rank_effect(self, call: ir.Call) -> bool:
        """Emit a transfer or signal; ``False`` when ``call`` is none."""
        handler = {
            "pld.tile.remote_store": self._remote_store,
            "pld.system.notify": self._notify,
            "pld.system.wait": self._wait,
            "pld.system.defer_wait": self._wait,
        }.get(call.op)
        if handler is None:
            if call.op.startswith("pld."):
                raise CompileError(f"{call.op} cannot run in a kernel", self.span)
            return False
        handler(call.arguments, call)
        return True

    def _peer_view(self, window: ir.Expr, peer: Any) -> TensorRef:
        """A tensor register on the peer's copy of ``window``."""
        base = self.tensor(window)
        name = self._unique(f"{base.name}_peer")
        kind = window.type
        assert isinstance(kind, ir.TensorType)
        self.tensors[name] = (len(kind.shape), kind.dtype)
        self.emit("peerview", TensorRef(name), base, self.scalar(peer))
        return TensorRef(name)

    def _pld_tile_remote_load(self, name: str, call: ir.Call) -> Tile:
        a, kind = call.arguments, call.type
        assert isinstance(kind, ir.TileType)
        source = self._peer_view(a["target"], a["peer"])
        result = self.new_tile(name, kind)
        self.set_valid(result, kind)
        lists = [self.operand(a[part]) for part in ("offsets", "shape", "valid_shape")]
        self.emit("tremote_load", result, source, *lists, writes=(result,))
        return result

    def _remote_store(self, a: Any, call: ir.Call) -> None:
        tile = self.tile_of(a["src_tile"])
        target = self._peer_view(a["target"], a["peer"])
        kind = a["src_tile"].type
        shape, valid = (self.operand(tuple(map(ir.as_expr, part))) for part in (kind.shape, kind.valid_shape))
        attributes = {"atomic": "add"} if a["atomic"] is AtomicType.Add else {}
        self.emit(
            "tremote_store",
            target,
            tile,
            self.operand(a["offsets"]),
            shape,
            valid,
            attributes=attributes,
            reads=(tile,),
        )

    def _notify(self, a: Any, call: ir.Call) -> None:
        op = "add" if a["op"] is NotifyOp.AtomicAdd else "set"
        self.emit(
            "notify",
            self.tensor(a["target"]),
            self.scalar(a["peer"]),
            self.operand(a["offsets"]),
            self.scalar(a["value"]),
            attributes={"op": op},
        )

    def _wait(self, a: Any, call: ir.Call) -> None:
        operands = (self.tensor(a["signal"]), self.operand(a["offsets"]), self.scalar(a["expected"]))
        if call.op == "pld.system.defer_wait":
            self.emit("signal_defer", *operands)
        else:
            self.emit("signal_wait", *operands, attributes={"cmp": "eq" if a["cmp"] is WaitCmp.Eq else "ge"})
