"""Which ranks share which windows: communication domains from the dispatches that use them (spec distributed 2.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.errors import CompileError, DomainError
from pypto.ir.walk import blocks, direct_expressions, walk

MAX_DOMAIN_RANKS = 64
ALL = "all"
Members = tuple[int, ...] | None


@dataclass
class Domain:
    """Ranks (``None``: all) and their buffers: name -> factors of its bytes per rank, or the bytes."""

    name: str
    members: Members
    buffers: dict[str, Any] = field(default_factory=dict)


class Domains:
    """Collects the allocations and windows of one HOST orchestrator and the devices they go to."""

    def __init__(self, function: ir.Function):
        self.function = function
        self.sizes: dict[str, Any] = {}
        self.spans: dict[str, Any] = {}
        self.viewed: dict[str, str] = {}  # variable of a window -> buffer
        self.devices: dict[str, set[int] | str] = {}
        self._loops: list[ir.For] = []
        self._calls: list[tuple[ir.FunctionCall, tuple[ir.For, ...]]] = []
        self._scalars: dict[str, ir.Expr] = {}

    def infer(self) -> list[Domain]:
        """The domains in source order of their first buffer."""
        self._visit(self.function.body)
        for call, loops in self._calls:
            self._attach(call, loops)
        self._spread()
        domains: list[Domain] = []
        for name, size in self.sizes.items():
            if name not in self.viewed.values():
                raise DomainError(
                    f"window buffer {name!r} is a dead allocation: no pld.window views it", self.spans[name]
                )
            if name not in self.devices:
                raise DomainError(
                    f"window buffer {name!r} is not consumed by any chip_orch dispatch with device=",
                    self.spans[name],
                    "a collective over it alone has no inferred comm-domain coverage",
                )
            devices = self.devices[name]
            members: Members = None if isinstance(devices, str) else tuple(sorted(devices))
            found = next((d for d in domains if d.members == members), None)
            if found is None:
                found = Domain(f"comm_d{len(domains)}", members)
                domains.append(found)
            found.buffers[name] = size
        for domain in domains:
            if domain.members is not None and len(domain.members) > MAX_DOMAIN_RANKS:
                raise CompileError(
                    f"{domain.name} has {len(domain.members)} ranks; a domain has at most {MAX_DOMAIN_RANKS}",
                    self.function.span,
                )
        return domains

    @staticmethod
    def owner(domains: list[Domain], function: ir.Function, window: ir.Expr) -> str:
        """The name of the domain whose buffer ``window`` views."""
        found = Domains(function)
        found._visit(function.body)
        buffer = found.buffer_of(window)
        return next(d.name for d in domains if buffer in d.buffers)

    # --- walking ------------------------------------------------------------------------------------------------------

    def _visit(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, ir.While):
                raise CompileError(
                    "a HOST orchestrator has no while loop",
                    stmt.span,
                    "loop with pl.range, or inside a lower-level function",
                )
            if isinstance(stmt, ir.Assign):
                self._assign(stmt)
            elif isinstance(stmt, ir.TupleAssign) and isinstance(stmt.value, ir.FunctionCall):
                self._results(list(stmt.targets), stmt.value)
            for expr in direct_expressions(stmt):
                for inner in walk(expr):
                    if isinstance(inner, ir.FunctionCall):
                        self._calls.append((inner, tuple(self._loops)))
            if isinstance(stmt, ir.For):
                self._loops.append(stmt)
            for block in blocks(stmt):
                self._visit(block)
            if isinstance(stmt, ir.For):
                self._loops.pop()

    def _assign(self, stmt: ir.Assign) -> None:
        value, name = stmt.value, stmt.target.name
        if isinstance(value, ir.Call) and value.op == "pld.tensor.alloc_window_buffer":
            self.sizes[name], self.spans[name] = _bytes(value), stmt.span
        elif isinstance(value, ir.Call) and value.op == "pld.tensor.window":
            buffer = value.arguments["buf"]
            if isinstance(buffer, ir.Var):
                self.viewed[name] = buffer.name
                self._check_size(value, buffer.name, stmt)
        elif isinstance(value, ir.Var) and value.name in self.viewed:
            self.viewed[name] = self.viewed[value.name]
        elif isinstance(value, ir.FunctionCall):
            self._results([stmt.target], value)
        elif isinstance(value.type, ir.ScalarType):
            self._scalars[name] = value

    def _results(self, targets: list[Any], call: ir.FunctionCall) -> None:
        for target, source in zip(targets, call.attrs.get("returns", ())):
            if source is not None and source < len(call.args) and isinstance(target, ir.Var):
                buffer = self.buffer_of(call.args[source])
                if buffer is not None:
                    self.viewed[target.name] = buffer

    def _check_size(self, call: ir.Call, buffer: str, stmt: ir.Assign) -> None:
        """A view larger than its buffer, where both sizes are known."""
        have = _known_bytes(self.sizes.get(buffer))
        shape = tuple(map(ir.as_dim, call.arguments["shape"]))
        want = _known_bytes((*shape, call.arguments["dtype"].get_byte()))
        if have is not None and want is not None and want > have:
            raise CompileError(
                f"a window of shape {list(map(str, shape))} needs {want} bytes per rank; buffer {buffer!r} has {have}",
                stmt.span,
                "an integer without dtype= is a number of bytes, not of elements or ranks",
            )

    def buffer_of(self, value: ir.Expr) -> str | None:
        """The buffer behind a window expression."""
        if isinstance(value, ir.Var):
            return self.viewed.get(value.name)
        if isinstance(value, ir.Call) and value.op == "pld.tensor.window":
            buffer = value.arguments["buf"]
            return buffer.name if isinstance(buffer, ir.Var) else None
        if isinstance(value, ir.Call):
            operands = [
                v for v in value.arguments.values() if isinstance(v, ir.Expr) and isinstance(v.type, ir.TensorType)
            ]
            return self.buffer_of(operands[0]) if operands else None
        return None

    # --- devices ------------------------------------------------------------------------------------------------------

    def _attach(self, call: ir.FunctionCall, loops: tuple[ir.For, ...]) -> None:
        buffers = [b for a in call.args if (b := self.buffer_of(a)) is not None]
        if "everywhere" in call.attrs:
            return
        if "device" not in call.attrs:
            if buffers:
                raise DomainError(
                    f"window buffer {buffers[0]!r} is not consumed by any chip_orch dispatch: "
                    f"{call.callee!r} is called without device=",
                    call.span,
                )
            return
        if not buffers and not self.sizes:
            self._check_constant(call)
            return
        devices = self._devices(call, loops)
        if not devices:  # a loop without iterations dispatches nothing
            return
        for buffer in buffers:
            known = self.devices.get(buffer, set())
            self.devices[buffer] = ALL if isinstance(known, str) or isinstance(devices, str) else known | devices

    @staticmethod
    def _check_constant(call: ir.FunctionCall) -> None:
        device = ir.as_dim(call.attrs["device"])
        if isinstance(device, int) and device < 0:
            raise DomainError(f"device={device}: a non-negative rank index is needed", call.span)

    def _devices(self, call: ir.FunctionCall, loops: tuple[ir.For, ...]) -> set[int] | str:
        device = call.attrs["device"]
        number = ir.as_dim(device)
        if isinstance(number, int):
            self._check_constant(call)
            return {number}
        if not isinstance(device, ir.Var):
            raise CompileError("device= must be ConstInt or the induction var of pl.range", call.span)
        loop = next((item for item in loops if item.var.name == device.name), None)
        if loop is None:
            raise CompileError(
                f"device={device.name} is not the induction variable of an enclosing pl.range", call.span
            )
        start, step, stop = ir.as_dim(loop.start), ir.as_dim(loop.step), self._resolved(loop.stop)
        if step != 1 or not isinstance(start, int) or start < 0:
            raise DomainError("a dispatch loop starts at a non-negative constant and has step 1", loop.span)
        if isinstance(stop, int):
            return set(range(start, stop))
        if isinstance(stop, ir.Call) and stop.op == "pld.system.world_size" and start == 0:
            return ALL
        raise CompileError("loop bound must be ConstInt or pld.system.world_size()", loop.span)

    def _resolved(self, value: ir.Expr) -> Any:
        while True:
            if isinstance(value, ir.Cast):
                value = value.operand
            elif isinstance(value, ir.Var) and value.name in self._scalars:
                value = self._scalars[value.name]
            else:
                return ir.as_dim(value)

    def _spread(self) -> None:
        """The windows of a host collective share the devices of one of them that a dispatch uses."""
        for call, _ in self._calls:
            if "everywhere" not in call.attrs:
                continue
            buffers = [b for a in call.args if (b := self.buffer_of(a)) is not None]
            known = next((self.devices[b] for b in buffers if b in self.devices), None)
            if known is None:
                raise CompileError(
                    f"{call.callee}: barrier signal buffer has no inferred comm-domain coverage; "
                    f"pass one of its windows to a device= dispatch",
                    call.span,
                )
            if len(set(buffers)) != len(buffers):
                raise CompileError(f"{call.callee}: operands must be different window allocations", call.span)
            for buffer in buffers:
                self.devices.setdefault(buffer, known)
                if self.devices[buffer] != known:
                    raise CompileError(f"{call.callee}: its windows belong to different domains", call.span)


def _bytes(call: ir.Call) -> Any:
    size, dtype = call.arguments["size"], call.arguments["dtype"]
    if not isinstance(size, tuple):
        return size
    return (*map(ir.as_dim, size), dtype.get_byte())


def _known_bytes(size: Any) -> int | None:
    if size is None:
        return None
    if not isinstance(size, tuple):
        size = (ir.as_dim(size) if isinstance(size, ir.Expr) else size,)
    total = 1
    for part in size:
        if not isinstance(part, int):
            return None
        total *= part
    return total


__all__ = ["Domain", "Domains"]
