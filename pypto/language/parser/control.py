"""Loops, branches and yields (spec language 4.3 to 4.6)."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import BOOL, INDEX
from pypto.ir.enums import ForKind, ParamDirection
from pypto.ir.errors import Error, InvalidOperationError
from pypto.language.parser.assignments import same_kind
from pypto.language.parser.calls import attribute_chain
from pypto.language.parser.expressions import _ABSENT
from pypto.language.parser.statements import Statements

LOOPS = {
    "range": ForKind.Sequential,
    "parallel": ForKind.Parallel,
    "unroll": ForKind.Unroll,
    "pipeline": ForKind.Pipeline,
}
ITERATORS = (*LOOPS, "while_", "spmd", "split_aiv")


@dataclass
class Carry:
    """The explicit state of one open block: variables that a yield updates, and names it makes visible afterwards."""

    kind: str  # loop or branch
    variables: list[ir.Var] = field(default_factory=list)
    results: list[str] | None = None
    yielded: bool = False


class Control(Statements):
    """Parses ``for``, ``while``, ``if``, ``break`` and ``continue``."""

    carries: list[Carry]

    # --- for ---

    def _stmt_For(self, node: ast.For) -> None:
        if node.orelse:
            self.unsupported("for ... else is not part of the language", node.orelse[0])
        call = node.iter
        chain = attribute_chain(call.func) if isinstance(call, ast.Call) else None
        if chain is None or len(chain) < 2 or chain[-1] not in ITERATORS:
            self.syntax(f"a for loop iterates over one of {', '.join('pl.' + i for i in ITERATORS)}", node.iter)
        if chain[-1] == "spmd":
            self.spmd_loop(node, call)  # type: ignore[arg-type]
        elif chain[-1] == "split_aiv":
            self.split_loop(node, call)  # type: ignore[arg-type]
        elif chain[-1] == "while_":
            self._while_loop(node, call)  # type: ignore[arg-type]
        else:
            self._counted(node, call, chain[-1])  # type: ignore[arg-type]

    @abstractmethod
    def spmd_loop(self, node: ast.For, call: ast.Call) -> None:
        """``for b in pl.spmd(n)``; defined by the part for scopes."""

    @abstractmethod
    def split_loop(self, node: ast.For, call: ast.Call) -> None:
        """``for lane in pl.split_aiv(2, ...)``; defined by the part for scopes."""

    def _counted(self, node: ast.For, call: ast.Call, name: str) -> None:
        kind = LOOPS[name]
        options = self._loop_keywords(call, name, node)
        start, stop, step = self._bounds(call, name, node)
        target, inner = self._loop_target(node, options["init_values"])
        if kind == ForKind.Unroll:
            self._check_unroll(start, stop, step, node)
        saved = self.block
        carry = self._open_carry(inner, options["init_values"], node)
        body: list[ir.Stmt] = []
        self.block = body
        self.names.open("for", hidden=True)
        self.loops.append(name)
        variable = ir.Var(self.names.fresh(target), ir.ScalarType(self._loop_dtype(start, stop, step)), self.span(node))
        self.names.shadow(target, variable)
        self._bind_carried(inner, carry)
        self.carries.append(carry)
        self.statements(node.body)
        self._close_carry(inner, carry, node)
        self.carries.pop()
        self.loops.pop()
        self._close_hidden()
        self.block = saved
        self.emit(
            ir.For(
                kind, variable, start, stop, step, body, options["stage"], span=self.span(node), attrs=options["attrs"]
            )
        )
        self._publish(carry, inner, node)

    def _loop_keywords(self, call: ast.Call, name: str, node: ast.For) -> dict[str, Any]:
        legal = {
            "range": ("init_values", "attrs"),
            "parallel": ("init_values", "attrs"),
            "unroll": ("attrs",),
            "pipeline": ("stage", "init_values", "attrs"),
        }[name]
        found: dict[str, Any] = {"init_values": None, "stage": 1, "attrs": {}}
        given = {k.arg for k in call.keywords}
        for keyword in call.keywords:
            if keyword.arg not in legal:
                self.syntax(f"pl.{name} has no keyword {keyword.arg!r}; supported: {', '.join(legal)}", keyword.value)
            if keyword.arg == "init_values":
                found["init_values"] = self._initial_values(keyword.value)
            elif keyword.arg == "stage":
                found["stage"] = self._stage(keyword.value)
            else:
                found["attrs"] = self.evaluate(keyword.value)
        if name == "pipeline" and "stage" not in given:
            self.syntax("pl.pipeline needs stage=, the number of body copies in flight", node)
        return found

    def _initial_values(self, node: ast.expr) -> list[ir.Expr]:
        if not isinstance(node, (ast.List, ast.Tuple)) or not node.elts:
            self.syntax("init_values= takes a non-empty list or tuple display", node)
        return [self.expression(e) for e in node.elts]

    def _stage(self, node: ast.expr) -> int:
        value = self.constant(node)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.syntax("stage= of pl.pipeline is an integer constant of at least 1", node)
        return value

    def _bounds(self, call: ast.Call, name: str, node: ast.For) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
        if not call.args:
            self.syntax(f"pl.{name} takes (stop), (start, stop) or (start, stop, step)", node)
        values = [self.expression(a) for a in call.args[:3]]
        for value, arg in zip(values, call.args):
            if not (isinstance(value.type, ir.ScalarType) and value.type.dtype.is_int()):
                self.type_error(f"a loop bound is an integer scalar, not {self.describe(value.type)}", arg)
        start = values[0] if len(values) > 1 else ir.index(0)
        stop = values[1] if len(values) > 1 else values[0]
        step = values[2] if len(values) > 2 else ir.index(1)
        if isinstance(step, ir.Const) and step.value == 0:
            self.syntax("the step of a loop must not be 0", node)
        return start, stop, step

    def _check_unroll(self, start: ir.Expr, stop: ir.Expr, step: ir.Expr, node: ast.For) -> None:
        for bound in (start, stop, step):
            if not isinstance(bound, ir.Const):
                self.syntax("the bounds of pl.unroll are integer constants", node, "use pl.range for run-time bounds")

    def _loop_dtype(self, *bounds: ir.Expr) -> Any:
        kinds = {b.type.dtype for b in bounds if isinstance(b, ir.Const) and b.type.dtype != INDEX}  # type: ignore[attr-defined]
        return kinds.pop() if len(kinds) == 1 else INDEX

    def _loop_target(self, node: ast.For, initial: list[ir.Expr] | None) -> tuple[str, list[str]]:
        target = node.target
        if isinstance(target, ast.Name):
            if initial is not None:
                self.syntax("a loop with init_values is written 'for i, (a, b) in ...'", node)
            return target.id, []
        form = isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[0], ast.Name)
        if not form or not isinstance(target.elts[1], ast.Tuple) or initial is None:  # type: ignore[attr-defined]
            self.syntax("a loop target is 'i', or 'i, (a, b)' together with init_values", node)
        return target.elts[0].id, self._carried_names(target.elts[1], initial, node)  # type: ignore[attr-defined]

    def _carried_names(self, target: ast.Tuple, initial: list[ir.Expr], node: ast.For) -> list[str]:
        names = [e.id for e in target.elts if isinstance(e, ast.Name)]
        if len(names) != len(target.elts) or len(names) != len(initial):
            self.syntax(f"{len(target.elts)} carried names for {len(initial)} init_values", node)
        return names

    # --- explicit state ---

    def _open_carry(self, inner: list[str], initial: list[ir.Expr] | None, node: ast.stmt) -> Carry:
        carry = Carry("loop")
        for name, value in zip(inner, initial or []):
            variable = ir.Var(self.names.fresh(name), value.type, self.span(node), name)
            self.emit(ir.Assign(variable, value, self.span(node)))
            root = self.root_of(value)
            if root:
                self.roots[variable.name] = root
            carry.variables.append(variable)
        return carry

    def _bind_carried(self, inner: list[str], carry: Carry) -> None:
        for name, variable in zip(inner, carry.variables):
            self.names.shadow(name, variable)

    def _close_carry(self, inner: list[str], carry: Carry, node: ast.stmt) -> None:
        if carry.variables and not carry.yielded:
            carry.results = None

    def _publish(self, carry: Carry, inner: list[str], node: ast.stmt) -> None:
        """Make the results of an explicit loop readable under their names."""
        for name, variable in zip(carry.results or [], carry.variables):
            self.assign_name(name, variable, node)

    def yields(self, target: ast.expr | None, call: ast.Call, node: ast.stmt) -> None:
        carry = self.carries[-1] if self.carries else None
        if carry is None:
            self.syntax("pl.yield_ belongs to the end of a loop or branch body", node)
        values = [self.expression(a) for a in call.args]
        names = [] if target is None else [e.id for e in getattr(target, "elts", [target]) if isinstance(e, ast.Name)]
        if carry.kind == "branch":
            self._branch_yield(carry, names, values, node)
            return
        if len(values) != len(carry.variables):
            self.syntax(f"pl.yield_ hands over {len(values)} values, the loop carries {len(carry.variables)}", node)
        if target is None and carry.variables:
            self.syntax("the results of this loop need names: a, b = pl.yield_(...)", node)
        self._update_carried(carry, values, node)
        carry.results, carry.yielded = names, True

    def _update_carried(self, carry: Carry, values: list[ir.Expr], node: ast.stmt) -> None:
        for variable, value in zip(carry.variables, values):
            if not same_kind(variable.type, value.type):
                self.type_error(
                    f"the carried value is {self.describe(variable.type)}, pl.yield_ gives {self.describe(value.type)}",
                    node,
                )
        held = (
            values
            if len(values) == 1
            else [self._held(v, c.author or c.name, node) for v, c in zip(values, carry.variables)]
        )
        for variable, value in zip(carry.variables, held):
            target = ir.Var(variable.name, value.type, self.span(node), variable.author)
            self.emit(ir.Assign(target, value, self.span(node)))
            root = self.root_of(value)
            if root and root != variable.name:
                self.roots[variable.name] = root

    def _branch_yield(self, carry: Carry, names: list[str], values: list[ir.Expr], node: ast.stmt) -> None:
        if len(names) != len(values):
            self.syntax(f"pl.yield_ gives {len(values)} values to {len(names)} names", node)
        for name, value in zip(names, values):
            self.assign_name(name, value, node)
        carry.yielded = True

    def _close_hidden(self) -> None:
        """Leave a loop body; names that are versions of an output parameter stay readable."""
        block = self.names.close()
        outputs = {p.name: p for p in self.params if p.direction != ParamDirection.In}
        for name, variable in block.bound.items():
            root = self.roots.get(variable.name)
            if root in outputs and self.names.lookup(name) is None:
                self.names.bind(name, ir.Var(root, outputs[root].type, variable.span))

    # --- while ---

    def _stmt_While(self, node: ast.While) -> None:
        if node.orelse:
            self.unsupported("while ... else is not part of the language", node.orelse[0])
        saved = self.block
        condition = self._condition(node.test)
        if self.block is not saved:
            self.block = saved
        body: list[ir.Stmt] = []
        self.block = body
        self.names.open("while", hidden=True)
        self.loops.append("while")
        self.carries.append(Carry("loop"))
        self.statements(node.body)
        self.carries.pop()
        self.loops.pop()
        self._close_hidden()
        self.block = saved
        self.emit(ir.While(condition, body, span=self.span(node)))

    def _while_loop(self, node: ast.For, call: ast.Call) -> None:
        initial = [self._initial_values(k.value) for k in call.keywords if k.arg == "init_values"]
        if call.args or len(call.keywords) != 1 or not initial:
            self.syntax("pl.while_ takes init_values= and nothing else", node)
        if not isinstance(node.target, ast.Tuple):
            self.syntax("pl.while_ is written 'for (a, b) in pl.while_(init_values=(x, y))'", node)
        inner = self._carried_names(node.target, initial[0], node)
        carry = self._open_carry(inner, initial[0], node)
        first = node.body[0]
        condition_call = first.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) else None
        if (
            condition_call is None
            or (attribute_chain(condition_call.func) or [""])[-1] != "cond"
            or len(condition_call.args) != 1
        ):
            self.syntax("the first statement of a pl.while_ body is pl.cond(<BOOL>)", first)
        body: list[ir.Stmt] = []
        saved = self.block
        self.names.open("while", hidden=True)
        self._bind_carried(inner, carry)
        condition = self._condition(condition_call.args[0])
        self.block = body
        self.loops.append("while_")
        self.carries.append(carry)
        self.statements(node.body[1:])
        self._close_carry(inner, carry, node)
        self.carries.pop()
        self.loops.pop()
        self._close_hidden()
        self.block = saved
        self.emit(ir.While(condition, body, span=self.span(node)))
        self._publish(carry, inner, node)

    def _condition(self, node: ast.expr) -> ir.Expr:
        value = self.expression(node)
        if not (isinstance(value.type, ir.ScalarType) and value.type.dtype == BOOL):
            self.type_error(
                f"a condition is a BOOL scalar, not {self.describe(value.type)}", node, "write a comparison"
            )
        return value

    # --- if ---

    def _stmt_If(self, node: ast.If) -> None:
        condition = self._condition(node.test)
        before = dict(self.roots)
        then_body, then_names = self._branch(node.body, {})
        siblings = {name: variable.name for name, variable in then_names.items()}
        self.roots, then_roots = dict(before), self.roots
        else_body, else_names = self._branch(node.orelse, siblings) if node.orelse else ([], {})
        self.roots.update({k: v for k, v in then_roots.items() if k not in self.roots})
        self._check_yields(node)
        self.emit(ir.If(condition, then_body, else_body, span=self.span(node)))
        for name, variable in then_names.items():
            other = else_names.get(name)
            if other is not None and not same_kind(variable.type, other.type):
                self.type_error(
                    f"{name!r} is {self.describe(variable.type)} in one branch and "
                    f"{self.describe(other.type)} in the other",
                    node,
                )
            if other is not None:
                self.names.shadow(name, variable)
            else:
                self.names._gone[name] = "if"
        for name in else_names:
            if name not in then_names:
                self.names._gone[name] = "if"

    def _check_yields(self, node: ast.If) -> None:
        """Branches that end in ``pl.yield_`` hand over the same names."""
        names = [self._yielded_names(body) for body in (node.body, node.orelse)]
        if names == [None, None] or names[0] == names[1]:
            return
        shown = [", ".join(n) if n is not None else "nothing" for n in names]
        raise Error(
            f"SSAForm: one branch yields {shown[0]}, the other {shown[1]}",
            self.span(node),
            "end both branches in pl.yield_ with the same names",
        )

    def _yielded_names(self, body: list[ast.stmt]) -> list[str] | None:
        if not self._yields_here(body):
            if len(body) == 1 and isinstance(body[0], ast.If) and body[0].orelse:
                return self._yielded_names(body[0].body)  # elif
            return None
        last = body[-1]
        target = last.targets[0] if isinstance(last, ast.Assign) else getattr(last, "target", None)
        parts = getattr(target, "elts", [target])
        return [p.id for p in parts if isinstance(p, ast.Name)]

    def _branch(self, body: list[ast.stmt], siblings: dict[str, str]) -> tuple[list[ir.Stmt], dict[str, ir.Var]]:
        output: list[ir.Stmt] = []
        saved = self.block
        self.block = output
        self.names.open("if", hidden=True)
        self.siblings.append(siblings)
        self.carries.append(
            Carry("branch") if self._yields_here(body) else self.carries[-1] if self.carries else Carry("branch")
        )
        self.statements(body)
        self.carries.pop()
        self.siblings.pop()
        bound = self.names.close().bound
        self.block = saved
        return output, bound

    def _yields_here(self, body: list[ast.stmt]) -> bool:
        value = getattr(body[-1], "value", None) if body else None
        return isinstance(value, ast.Call) and (attribute_chain(value.func) or [""])[-1] == "yield_"

    # --- break, continue ---

    def _stmt_Break(self, node: ast.Break) -> None:
        self._check_jump("break", node)
        self.emit(ir.Break(self.span(node)))

    def _stmt_Continue(self, node: ast.Continue) -> None:
        self._check_jump("continue", node)
        self.emit(ir.Continue(self.span(node)))

    def _check_jump(self, name: str, node: ast.stmt) -> None:
        innermost = self.loops[-1] if self.loops else None
        if innermost not in ("range", "pipeline", "while_", "while"):
            self.fail(InvalidOperationError, f"{name} is not legal inside pl.{innermost}", node)


__all__ = ["Control", "Carry", "_ABSENT"]
