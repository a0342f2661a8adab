"""HOST orchestrators to a Python driver, ``orchestration/host_orch.py`` (spec distributed 1.5, 1.11)."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType
from pypto.ir.errors import CompileError, DomainError
from pypto.ir.lowering.chip_results import RESULT
from pypto.ir.lowering.distributed_domains import Domain, Domains
from pypto.ir.lowering.scalars import identifier
from pypto.ir.lowering.statements import StatementLowering

ENTRY_ATTRIBUTE = "_pypto_distributed_entry"
_PYTHON = {"/": "host.divide", "//": "//", "min": "min", "max": "max"}


class HostLowering(StatementLowering):
    """Writes the driver of one HOST orchestrator."""

    def __init__(self, function: ir.Function, functions: dict[str, ir.Function], domains: list[Domain]):
        super().__init__()
        self.function, self.functions, self.domains = function, functions, domains
        self.lines: list[str] = []
        self.depth = 1
        self.span = function.span
        self._returned: dict[str, str] = {}

    def run(self) -> str:
        """The module text."""
        names = [identifier(p.name) for p in self.function.params]
        self.lines = [
            '"""Host orchestration; generated."""',
            "",
            "",
            f"def {identifier(self.function.name)}({', '.join(['host', *names])}):",
        ]
        self._extents()
        for domain in self.domains:
            members = "None" if domain.members is None else repr(list(domain.members))
            buffers = ", ".join(f"{name!r}: {self._bytes(size)}" for name, size in domain.buffers.items())
            self.line(f"host.domain({domain.name!r}, {members}, {{{buffers}}})")
        self._block(self.function.body)
        if len(self.lines) == 4:
            self.line("return")
        self.lines += ["", "", f"{identifier(self.function.name)}.{ENTRY_ATTRIBUTE} = True", ""]
        return "\n".join(self.lines)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # --- extents ------------------------------------------------------------------------------------------------------

    def _extents(self) -> None:
        """Dynamic extents, read from the parameters that have them."""
        known: set[str] = set()
        for parameter in self.function.params:
            if isinstance(parameter.type, ir.TensorType):
                for axis, extent in enumerate(parameter.type.shape):
                    if isinstance(extent, ir.Symbol) and extent.name not in known:
                        known.add(extent.name)
                        self.line(f"{identifier(extent.name)} = {identifier(parameter.name)}.shape[{axis}]")

    def _bytes(self, size: tuple[Any, ...] | ir.Expr) -> str:
        if isinstance(size, tuple):
            return " * ".join(self._dim(part) for part in size)
        return self.expr(size)

    def _dim(self, extent: ir.Dim) -> str:
        if isinstance(extent, int):
            return str(extent)
        text = self.expr(extent)
        return f"({text})" if isinstance(extent, ir.Binary) else text

    def _shape(self, extents: tuple[ir.Dim, ...]) -> str:
        inner = ", ".join(self._dim(e) for e in extents)
        return f"({inner},)" if len(extents) == 1 else f"({inner})"

    # --- statements ---------------------------------------------------------------------------------------------------

    def _block(self, body: list[ir.Stmt]) -> None:
        before = len(self.lines)
        self._statements(body)
        if len(self.lines) == before and self.depth > 1:
            self.line("pass")

    def _statement(self, stmt: ir.Stmt) -> None:
        handler = getattr(self, f"_on_{type(stmt).__name__.lower()}", None)
        if handler is None:
            raise CompileError(
                f"{type(stmt).__name__.lower()} has no meaning in a HOST orchestrator",
                self.span,
                "move it to a lower-level function",
            )
        handler(stmt)

    def _on_assign(self, stmt: ir.Assign) -> None:
        target, value = identifier(stmt.target.name), stmt.value
        if isinstance(value, ir.FunctionCall):
            self._launch(value, [target])
        elif not (isinstance(value, ir.Call) and value.op == "pld.tensor.alloc_window_buffer"):
            self.line(f"{target} = {self.expr(value)}")

    def _on_tupleassign(self, stmt: ir.TupleAssign) -> None:
        if not isinstance(stmt.value, ir.FunctionCall):
            raise CompileError("only the results of a dispatch can be unpacked here", self.span)
        self._launch(stmt.value, [identifier(t.name) for t in stmt.targets])

    def _on_evaluate(self, stmt: ir.Evaluate) -> None:
        if isinstance(stmt.value, ir.FunctionCall):
            self._launch(stmt.value, [])
        elif isinstance(stmt.value, ir.Call):
            self.expr(stmt.value)

    def _on_for(self, stmt: ir.For) -> None:
        bounds = ", ".join(self.expr(b) for b in (stmt.start, stmt.stop, stmt.step))
        self.line(f"for {identifier(stmt.var.name)} in range({bounds}):")
        self._nested(stmt.body)

    def _on_if(self, stmt: ir.If) -> None:
        self.line(f"if {self.expr(stmt.condition)}:")
        self._nested(stmt.then_body)
        if stmt.else_body:
            self.line("else:")
            self._nested(stmt.else_body)

    def _nested(self, body: list[ir.Stmt]) -> None:
        self.depth += 1
        self._block(body)
        self.depth -= 1

    def _on_scope(self, stmt: ir.Scope) -> None:
        for inner in stmt.body:
            self._statement(inner)

    def _on_break(self, stmt: ir.Break) -> None:
        self.line("break")

    def _on_continue(self, stmt: ir.Continue) -> None:
        self.line("continue")

    def _on_return(self, stmt: ir.Return) -> None:
        for value in stmt.values:
            if isinstance(value, ir.FunctionCall):
                self._launch(value, [])
        self.line("return")

    # --- launches -----------------------------------------------------------------------------------------------------

    def _launch(self, call: ir.FunctionCall, targets: list[str]) -> None:
        callee = self.functions.get(call.callee)
        if callee is None:
            raise CompileError(f"the program has no function {call.callee!r}", self.span)
        args = ", ".join(self.expr(a) for a in call.args)
        if callee.attrs.get("python") is not None:
            self._bind(targets, call, f"host.sub_worker({call.callee!r}, [{args}])", callee)
            return
        if callee.type != FunctionType.Orchestration:
            raise CompileError(
                f"{call.callee!r} is not a chip orchestration and cannot be dispatched",
                self.span,
                "call the @pl.jit (Orchestration) function that launches it",
            )
        self._check_windows(call, callee)
        where = f"{self.span.filename}:{self.span.line}"
        domain = call.attrs.get("everywhere")
        if domain is not None:
            self.line(f"for _member in host.members({self._domain_of(call)!r}):")
            self.depth += 1
        device = (
            "_member" if domain is not None else self.expr(call.attrs["device"]) if "device" in call.attrs else "None"
        )
        self._bind(targets, call, f"host.dispatch({call.callee!r}, [{args}], {device}, {where!r})", callee)
        self.depth -= domain is not None

    def _check_windows(self, call: ir.FunctionCall, callee: ir.Function) -> None:
        for parameter, value in zip(callee.params, call.args):
            kind = parameter.type
            if not (isinstance(kind, ir.TensorType) and kind.distributed and isinstance(value.type, ir.TensorType)):
                continue
            if not value.type.distributed:
                raise DomainError(
                    f"{callee.name}: {parameter.name!r} is a window (pld.DistributedTensor) and gets a plain tensor",
                    call.span,
                    "allocate it: buf = pld.alloc_window_buffer(...), then pld.window(buf, ...)",
                )

    def _domain_of(self, call: ir.FunctionCall) -> str:
        window = next(a for a in call.args if isinstance(a.type, ir.TensorType) and a.type.distributed)
        return Domains.owner(self.domains, self.function, window)

    def _bind(self, targets: list[str], call: ir.FunctionCall, text: str, callee: ir.Function) -> None:
        """Results are the output arguments they were written to."""
        if not targets:
            self.line(text)
            return
        returns = callee.attrs.get("returns") or call.attrs.get("returns", ())
        if len(returns) < len(targets) or any(r is None for r in returns[: len(targets)]):
            raise CompileError(
                f"{call.callee!r} does not return its output parameters; declare and return them", self.span
            )
        self.line(f"_results = {text}")
        for target, source in zip(targets, returns):
            self.line(f"{target} = _results[{source}]")

    # --- expressions --------------------------------------------------------------------------------------------------

    def expr(self, value: Any) -> str:
        """``value`` as Python text."""
        if isinstance(value, int):
            return str(value)
        if isinstance(value, ir.Const):
            return repr(value.value)
        if isinstance(value, (ir.Var, ir.Symbol)):
            return identifier(value.name)
        if isinstance(value, ir.Binary):
            return self._binary(value)
        if isinstance(value, ir.Unary):
            operand = self.expr(value.operand)
            return f"abs({operand})" if value.op == "abs" else f"({value.op} {operand})"
        if isinstance(value, ir.Cast):
            return f"{'float' if value.dtype.is_float() else 'int'}({self.expr(value.operand)})"
        if isinstance(value, ir.Call):
            return self._call(value)
        raise CompileError(f"{type(value).__name__} has no meaning in a HOST orchestrator", self.span)

    def _binary(self, value: ir.Binary) -> str:
        left, right = self.expr(value.left), self.expr(value.right)
        op = _PYTHON.get(value.op, value.op)
        return f"{op}({left}, {right})" if op.isidentifier() or "." in op else f"({left} {op} {right})"

    def _call(self, call: ir.Call) -> str:
        a = call.arguments
        if call.op == "pld.system.world_size":
            return "host.world_size"
        if call.op == "pld.tensor.window":
            shape = self._shape(tuple(map(ir.as_dim, a["shape"])))
            return f"host.window({self._buffer(a['buf'])!r}, {shape}, {a['dtype'].to_string()!r})"
        if call.op == "pld.system.get_comm_ctx":
            return f"host.context({self.expr(a['dist_tensor'])})"
        if call.op == "tensor.dim":
            axis = a["axis"].value if isinstance(a["axis"], ir.Const) else a["axis"]
            return f"{self.expr(a['tensor'])}.shape[{axis}]"
        if call.op == "tensor.slice":
            dropped = tuple(int(ir.as_dim(d)) for d in a.get("drop_dims") or ())  # type: ignore[arg-type]
            return f"{self.expr(a['tensor'])}.part({self._shape(a['offset'])}, {self._shape(a['shape'])}, {dropped!r})"
        if call.op == "tensor.reshape":
            return f"{self.expr(a['tensor'])}.reshape({self._shape(a['shape'])})"
        if call.op == "tensor.create":
            return self._create(call)
        raise CompileError(
            f"DistributedCodegen does not support op {call.op!r}", self.span, "move it to a lower-level function"
        )

    def _buffer(self, value: ir.Expr) -> str:
        if not isinstance(value, ir.Var):
            raise CompileError("the buffer of a window is a name assigned from pld.alloc_window_buffer", self.span)
        return value.name

    def _create(self, call: ir.Call) -> str:
        if self.depth > 1 and RESULT not in call.attrs:
            raise CompileError("pl.create_tensor must be a top-level statement of a HOST orchestrator", self.span)
        a = call.arguments
        return f"host.create({self._shape(tuple(map(ir.as_dim, a['shape'])))}, {a['dtype'].to_string()!r})"


__all__ = ["ENTRY_ATTRIBUTE", "HostLowering"]
