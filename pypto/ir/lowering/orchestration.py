"""Orchestration functions to the instructions of docs/architecture.md 1.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import TASK_ID
from pypto.ir.enums import ForKind, FunctionType, ParamDirection
from pypto.ir.errors import CompileError, PartialCodegenError
from pypto.ir.lowering.instructions import (
    ArrayRef,
    Branch,
    Instruction,
    Jump,
    KernelRef,
    Loop,
    Node,
    Register,
    TensorRef,
    WhileLoop,
    nested,
)
from pypto.ir.lowering.kernel import kernel_params
from pypto.ir.lowering.rebinding import rebound_params
from pypto.ir.lowering.scalars import ScalarLowering, copy_array, identifier
from pypto.ir.lowering.text import Text, name_lines, param_line
from pypto.ir.lowering.views import VIEW_OPS, emit_view

SCALAR, INPUT, OUTPUT, OUTPUT_EXISTING, INOUT, NO_DEP = range(6)
PREDICATES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ORDERED_LOOPS = (ForKind.Sequential, ForKind.Pipeline)


class OrchestrationLowering(ScalarLowering):
    """Lowers the control plane of one program."""

    def __init__(self, function: ir.Function, functions: dict[str, ir.Function], clusters: int):
        super().__init__(function)
        self.functions, self.clusters = functions, clusters
        self.tensors: dict[str, tuple[int, Any]] = {}
        self.arrays: dict[str, tuple[int, Any]] = {}
        self.names: dict[str, str] = {}  # register -> name in the source, where the two differ
        self._written: list[set[str]] = [set()]  # roots written in each open scope
        self._roots: dict[str, str] = {}
        self._sequential = 0
        self._rebound = rebound_params(function)
        self._dumped: set[str] = set()  # variables whose value is marked for the argument dump

    def run(self) -> str:
        """The text of the unit."""
        body: list[Node] = []
        self.block = body
        for parameter in self.function.params:
            if parameter.name in self._rebound and isinstance(parameter.type, ir.TensorType):
                self._prologue.append(
                    Instruction(
                        "permute",
                        [
                            self._register(ir.Var(parameter.name, parameter.type)),
                            TensorRef(identifier(parameter.name)),
                            0,
                            0,
                        ],
                        span=self.function.span,
                    )
                )
        self._statements(self.function.body)
        text = Text()
        text.body(self._prologue + body, "  ")
        head = ["// pypto text 1", f"orchestration @{identifier(self.function.name)} {{"]
        head += [f'  file {number} "{name}"' for name, number in text.files.items()]
        head += name_lines(self.names)
        head += [f"  {param_line(p)}" for p in kernel_params(self.function)]
        head += [f"  tensor %{n} : {rank} x {dtype.to_string()}" for n, (rank, dtype) in self.tensors.items()]
        head += [f"  array %{n} : {extent} x {dtype.to_string()}" for n, (extent, dtype) in self.arrays.items()]
        return "\n".join([*head, *text.lines, "}", ""])

    # --- statements ---

    def _on_assign(self, stmt: ir.Assign) -> None:
        kind, value = stmt.target.type, stmt.value
        self._assign_value(stmt, kind, value)
        self._carry_mark(stmt.target, value)

    def _carry_mark(self, target: ir.Var, value: ir.Expr | None) -> None:
        """A mark follows the value: another name of it has it too, a name that is bound anew loses it."""
        if isinstance(value, ir.Var) and value.name in self._dumped:
            self._dumped.add(target.name)
        else:
            self._dumped.discard(target.name)

    def _assign_value(self, stmt: ir.Assign, kind: ir.Type, value: ir.Expr) -> None:
        if isinstance(kind, ir.TensorType):
            self._assign_tensor(stmt.target, value)
        elif isinstance(kind, ir.ArrayType):
            self._assign_array(stmt.target, value)
        elif isinstance(kind, ir.ScalarType):
            self._assign_scalar(stmt.target, value)
        else:
            raise CompileError(f"{stmt.target.name!r} has no meaning in orchestration code", self.span)

    def _assign_scalar(self, target: ir.Var, value: ir.Expr) -> None:
        register = Register(identifier(target.name))
        if isinstance(value, ir.Call) and value.op == "system.task_dummy":
            self.emit("dummy", register, self._deps(value.arguments["deps"]))
        else:
            self.scalar(value, register)

    def _assign_array(self, target: ir.Var, value: ir.Expr) -> None:
        name = identifier(target.name)
        if isinstance(value, ir.Call) and value.op == "array.create":
            self.arrays[name] = (value.arguments["extent"], value.arguments["dtype"])
            fill = -1 if value.arguments["dtype"] == TASK_ID else 0
            index = self.temporary()
            self.block.append(
                Loop(
                    index,
                    0,
                    value.arguments["extent"],
                    1,
                    [Instruction("aset", [ArrayRef(name), index, fill], span=self.span)],
                    self.span,
                )
            )
            return
        kind = target.type
        assert isinstance(kind, ir.ArrayType)
        copy_array(self, name, kind, value.arguments["array"] if isinstance(value, ir.Call) else value)
        if isinstance(value, ir.Call) and value.op == "array.update_element":
            self.emit(
                "aset", ArrayRef(name), self.scalar(value.arguments["index"]), self.scalar(value.arguments["value"])
            )

    # --- tensors ---

    def root(self, expr: ir.Expr) -> str | None:
        """The parameter or allocation that ``expr`` is part of."""
        if isinstance(expr, ir.Var):
            return self._roots.get(expr.name, expr.name)
        return None

    def _register_name(self, name: str) -> str:
        """The register of a tensor variable; a parameter that is rebound to another tensor has one of its own."""
        return f"{identifier(name)}_now" if name in self._rebound else identifier(name)

    def _register(self, target: ir.Var) -> TensorRef:
        name = self._register_name(target.name)
        kind = target.type
        assert isinstance(kind, ir.TensorType)
        if (target.author or target.name) != name:
            self.names.setdefault(name, target.author or target.name)
        if target.name in self._rebound or not any(p.name == target.name for p in self.function.params):
            self.tensors.setdefault(name, (len(kind.shape), kind.dtype))
        return TensorRef(name)

    def _assign_tensor(self, target: ir.Var, value: ir.Expr) -> None:
        if isinstance(value, ir.FunctionCall):
            self._submit(value, None)
            self._alias_result(target, value, 0)
            return
        root = self._root_of_value(value)
        itself = (
            root == target.name
            and target.name not in self._rebound
            and any(p.name == root for p in self.function.params)
        )
        source = self.tensor_value(value, target)
        if source is not None and source.name != self._register_name(target.name) and not itself:
            self._rebind(target, source)
        if root is not None:
            self._roots[target.name] = root
        else:
            self._roots.pop(target.name, None)

    def _rebind(self, target: ir.Var, source: TensorRef) -> None:
        """``target`` becomes another name of ``source``; a parameter's own register is never overwritten by itself."""
        self.emit("permute", self._register(target), source, 0, 0)

    def _root_of_value(self, value: ir.Expr) -> str | None:
        if isinstance(value, ir.Var):
            return self.root(value)
        if isinstance(value, ir.Call):
            if value.op == "tensor.create":
                return None
            operand = next(
                (v for v in value.arguments.values() if isinstance(v, ir.Expr) and isinstance(v.type, ir.TensorType)),
                None,
            )
            return self._root_of_value(operand) if operand is not None else None
        return None

    def tensor_value(self, value: ir.Expr, target: ir.Var) -> TensorRef | None:
        """Evaluate a tensor expression into ``target``; returns the register it is in."""
        if isinstance(value, ir.Var):
            return TensorRef(self._register_name(value.name))
        if not isinstance(value, ir.Call):
            raise CompileError("this tensor value has no meaning in orchestration code", self.span)
        if value.op == "tensor.create":
            self._create(value, target)
        elif value.op == "tensor.write":
            self._write(value)
            return self._operand_tensor(value.arguments["tensor"])
        elif value.op == "tensor.assemble":
            return self._assemble(value)
        elif value.op == "tensor.set_validshape":
            return self._operand_tensor(next(iter(value.arguments.values())))
        elif value.op in VIEW_OPS:
            emit_view(self, self._register(target), self._with_named_source(value))
        else:
            raise self._needs_core(value)
        return TensorRef(self._register_name(target.name))

    def _needs_core(self, call: ir.Call) -> PartialCodegenError:
        """``call`` computes, and stands in orchestration code (spec language 5.7)."""
        name = self.function.name
        message = (
            f"pl.{call.op.partition('.')[2]} computes on a core but stands in orchestration code of {name!r}; "
            "put it inside 'with pl.at(level=pl.Level.CORE_GROUP):' or into an InCore function"
        )
        return PartialCodegenError({name: CompileError(message, self.span)}, {})

    def _with_named_source(self, value: ir.Call) -> ir.Call:
        arguments = dict(value.arguments)
        for name, operand in arguments.items():
            if isinstance(operand, ir.Expr) and isinstance(operand.type, ir.TensorType):
                arguments[name] = self._named(operand)
        return ir.Call(value.op, arguments, value.type, value.attrs, value.span)

    def _named(self, value: ir.Expr) -> ir.Var:
        """``value`` held in a tensor register."""
        if isinstance(value, ir.Var):
            return value
        if isinstance(value, ir.TupleItem):
            raise CompileError("unpack the results of a launch before using them", self.span)
        self._temporaries += 1
        holder = ir.Var(f"_view{self._temporaries}", value.type, self.span, self._root_of_value(value) or "")
        self._assign_tensor(holder, value)
        return holder

    def _operand_tensor(self, value: ir.Expr) -> TensorRef:
        return TensorRef(self._register_name(self._named(value).name))

    def tensor(self, expr: ir.Expr) -> TensorRef:
        return self._operand_tensor(expr)

    def _create(self, call: ir.Call, target: ir.Var) -> None:
        arguments = call.arguments
        attributes: dict[str, Any] = {"dtype": arguments["dtype"].to_string()}
        if arguments.get("init_value") is not None:
            attributes["init"] = float(arguments["init_value"])
        if arguments.get("manual_dep"):
            attributes["manual"] = 1
        self.emit("alloc", self._register(target), self.operand_list(arguments["shape"]), attributes=attributes)

    def _write(self, call: ir.Call) -> None:
        arguments = call.arguments
        self.emit(
            "sstore",
            self._operand_tensor(arguments["tensor"]),
            self.operand_list(arguments["indices"]),
            self.scalar(arguments["value"]),
        )

    def _assemble(self, call: ir.Call) -> TensorRef:
        """``target[...] = source`` where the source already is the window (a kernel wrote it in place)."""
        raise CompileError(
            "a tensor cannot be copied in orchestration code",
            self.span,
            "let the kernel write the window: pass target[...] as its output, or assign inside 'with pl.at(...)'",
        )

    # --- effects ---

    def _on_evaluate(self, stmt: ir.Evaluate) -> None:
        value = stmt.value
        if isinstance(value, ir.FunctionCall):
            self._submit(value, None)
        elif isinstance(value, ir.Call) and value.op == "tensor.write":
            self._write(value)
        elif isinstance(value, ir.Call) and value.op == "system.task_dummy":
            self.emit("dummy", self.temporary(), self._deps(value.arguments["deps"]))
        elif isinstance(value, ir.Call) and value.op == "tensor.dump_tag":
            self._dumped.add(value.arguments["tensor"].name)
        elif isinstance(value, ir.Call) and value.op in ("tensor.assemble",):
            self._assemble(value)
        elif isinstance(value, ir.Call) and isinstance(value.type, (ir.ScalarType, ir.TensorType)):
            return

    def _on_tupleassign(self, stmt: ir.TupleAssign) -> None:
        call = stmt.value
        if not isinstance(call, ir.FunctionCall):
            raise CompileError("only the results of a launch can be unpacked here", self.span)
        targets = list(stmt.targets)
        task = targets.pop() if call.kind != "call" else None
        self._submit(call, task)
        for position, target in enumerate(targets):
            self._alias_result(target, call, position)
            self._carry_mark(target, None)

    def _alias_result(self, target: ir.Var, call: ir.FunctionCall, position: int) -> None:
        """The result of a launch is the output argument it was written to."""
        returns = call.attrs.get("returns", ())
        source = returns[position] if position < len(returns) else None
        if source is None:
            raise CompileError(f"result {position} of {call.callee!r} is not one of its output parameters", self.span)
        argument = self._arguments[source]
        if argument.name != self._register_name(target.name):
            self.emit("permute", self._register(target), argument, 0, 0)
        root = self._argument_roots[source]
        if root is not None and root != target.name:
            self._roots[target.name] = root

    # --- launches ---

    def _submit(self, call: ir.FunctionCall, task: ir.Var | None) -> None:
        callee = self.functions.get(call.callee)
        if callee is None:
            raise CompileError(f"the program has no function {call.callee!r}", self.span)
        if callee.type in (FunctionType.Orchestration, FunctionType.Opaque, FunctionType.Inline):
            raise CompileError(
                f"{call.callee!r} is not a kernel and cannot be launched from {self.function.name!r}", self.span
            )
        arguments = [self._argument(a) for a in call.args]
        self._arguments: list[Any] = arguments
        self._argument_roots = [self.root(a) if isinstance(a, ir.Var) else self._root_of_value(a) for a in call.args]
        directions = self._directions(call, callee)
        register = Register(identifier(task.name)) if task is not None else self.temporary()
        operands: list[Any] = [
            register,
            KernelRef(identifier(call.callee)),
            tuple(arguments),
            self._deps(call.attrs.get("deps", ())),
            directions,
        ]
        attributes = self._launch_attributes(call)
        if "predicate" in call.attrs:
            op, element, limit = call.attrs["predicate"]
            operands.append(
                (self._operand_tensor(element.arguments["tensor"]), *self.operand_list(element.arguments["indices"]))
            )
            attributes.update(pred_op=PREDICATES[op], pred_value=limit)
        self.emit("submit", *operands, attributes=attributes)

    def _argument(self, value: ir.Expr) -> Any:
        if isinstance(value.type, ir.TensorType):
            return self._operand_tensor(value)
        return self.scalar(value)

    def _launch_attributes(self, call: ir.FunctionCall) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        if "core_num" in call.attrs:
            attributes["blocks"] = self.scalar(call.attrs["core_num"])
        if call.attrs.get("allow_early_resolve"):
            attributes["early"] = 1
        if call.attrs.get("sync_start"):
            attributes["sync_start"] = 1
        marked = self._dumped.union(call.attrs.get("dumps", ()))
        dump = tuple(i for i, a in enumerate(call.args) if isinstance(a, ir.Var) and a.name in marked)
        if dump:
            attributes["dump"] = dump
        return attributes

    def _directions(self, call: ir.FunctionCall, callee: ir.Function) -> tuple[int, ...]:
        """Direction of every argument as the runtime sees it (spec language 6.4)."""
        written = call.attrs.get("arg_directions")
        if written:
            return tuple(int(d) for d in written)
        unordered = call.attrs.get("no_dep", ())
        result = []
        for position, (argument, parameter) in enumerate(zip(call.args, callee.params)):
            if not isinstance(argument.type, ir.TensorType):
                result.append(SCALAR)
            elif position in unordered:
                result.append(NO_DEP)
            else:
                result.append(self._direction(parameter.direction, self._argument_roots[position]))
        return tuple(result)

    def _direction(self, direction: ParamDirection, root: str | None) -> int:
        if direction == ParamDirection.In:
            return INPUT
        name = root or ""
        earlier = any(name in scope for scope in self._written)
        self._written[-1].add(name)
        if direction == ParamDirection.InOut:
            return INOUT
        from_inout = any(p.name == name and p.direction == ParamDirection.InOut for p in self.function.params)
        if self._sequential > 0 and self._outlives(name) or earlier or from_inout:
            return INOUT
        return OUTPUT_EXISTING

    def _outlives(self, name: str) -> bool:
        """True when the tensor exists longer than one iteration of the innermost loop."""
        return name not in self._created_here

    # --- dependencies ---

    def _deps(self, entries: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for entry in entries:
            if isinstance(entry.type, ir.ArrayType):
                found.append(self.array(entry))
            elif not (isinstance(entry, ir.Const) and entry.value is None):
                found.append(self.scalar(entry))
        return tuple(found)

    def other_scalar_call(self, call: ir.Call, target: Register) -> None:
        if call.op == "system.available_cluster_count":
            self.emit("smov.index", target, self.clusters)
        elif call.op == "system.available_aiv_count":
            self.emit("smov.index", target, 2 * self.clusters)
        elif call.op == "system.task_invalid":
            self.emit("smov.task_id", target, -1)
        elif call.op == "system.task_dummy":
            self.emit("dummy", target, self._deps(call.arguments["deps"]))
        else:
            super().other_scalar_call(call, target)

    # --- control flow ---

    @property
    def _created_here(self) -> set[str]:
        return self._created[-1] if self._created else set()

    _created: list[set[str]] = []

    def _on_for(self, stmt: ir.For) -> None:
        start, stop, step = self.scalar(stmt.start), self.scalar(stmt.stop), self.scalar(stmt.step)
        ordered = stmt.kind in ORDERED_LOOPS
        created = {
            s.target.name
            for s in stmt.body
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Call) and s.value.op == "tensor.create"
        }
        self._created = [*self._created, created]
        self._sequential += ordered
        self._written.append(set())
        body = self._nested(stmt.body)
        written = self._written.pop()
        self._written[-1] |= written - created
        self._sequential -= ordered
        self._created = self._created[:-1]
        self.block.append(
            Loop(Register(identifier(stmt.var.name)), start, stop, step, self._scoped(body, stmt.body), self.span)
        )

    def _scoped(self, body: list[Node], source: list[ir.Stmt]) -> list[Node]:
        """The runtime scope the compiler places around a block that records tasks (spec language 5.7)."""
        if self.function.attrs.get("auto_scope") is False or self._manual or not _records(body):
            return body
        opened = Instruction("scope", [], {"mode": "auto"}, self.span)
        return [opened, *body, Instruction("endscope", [], span=self.span)]

    _manual = False

    def _on_while(self, stmt: ir.While) -> None:
        head: list[Node] = []
        saved = self.block
        self.block = head
        condition = self.scalar(stmt.condition)
        self.block = saved
        self._sequential += 1
        body = self._nested(stmt.body)
        self._sequential -= 1
        self.block.append(WhileLoop(head, condition, self._scoped(body, stmt.body), self.span))

    def _on_if(self, stmt: ir.If) -> None:
        condition = self.scalar(stmt.condition)
        then_body, else_body = self._nested(stmt.then_body), self._nested(stmt.else_body)
        self.block.append(
            Branch(
                condition, self._scoped(then_body, stmt.then_body), self._scoped(else_body, stmt.else_body), self.span
            )
        )

    def _on_scope(self, stmt: ir.Scope) -> None:
        if stmt.kind not in ("auto", "manual"):
            self._statements(stmt.body)
            return
        saved, self._manual = self._manual, self._manual or stmt.kind == "manual"
        self.emit("scope", attributes={"mode": stmt.kind})
        self._statements(stmt.body)
        self.emit("endscope")
        self._manual = saved

    def _on_break(self, stmt: ir.Break) -> None:
        self._jump("break")

    def _on_continue(self, stmt: ir.Continue) -> None:
        self._jump("continue")

    def _jump(self, kind: str) -> None:
        self.block.append(Jump(kind, self.span))

    def _on_return(self, stmt: ir.Return) -> None:
        for value in stmt.values:
            if isinstance(value, ir.FunctionCall):
                self._submit(value, None)
        self.block.append(Jump("ret", self.span))


def _records(body: list[Node]) -> bool:
    """True when a block launches tasks or allocates tensors itself and is always run to its end."""
    if any(isinstance(n, Jump) for n in _flat(body)):
        return False
    return any(isinstance(n, Instruction) and n.mnemonic in ("submit", "alloc", "dummy") for n in body)


def _flat(body: list[Node]) -> Iterator[Node]:
    for node in body:
        yield node
        for block in nested(node):
            yield from _flat(block)
