"""Scopes: ``pl.at``, ``pl.cluster``, ``pl.spmd``, ``pl.split_aiv`` and runtime scopes (spec language 5)."""

from __future__ import annotations

import ast
import keyword
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX, TASK_ID
from pypto.ir.enums import FunctionType, Level, Role, ScopeMode, SplitMode
from pypto.ir.errors import InvalidOperationError, ParserSyntaxError, ParserTypeError
from pypto.ir.walk import direct_expressions, statements, targets, walk
from pypto.language.parser.calls import attribute_chain
from pypto.language.parser.control import Control

MANAGERS = ("at", "cluster", "spmd", "scope", "manual_scope")
PRINTED_MANAGERS = ("stage",)
"""``pl.stage`` is printer output: one copy of a pipelined body."""
DEVICE_SCOPES = ("at", "spmd", "split_aiv", "cluster")
HOST_NUMBER = 3
DEVICE_FUNCTIONS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
CONTROL_PLANE = {
    "create",
    "read",
    "write",
    "slice",
    "reshape",
    "reinterpret_view",
    "transpose",
    "view",
    "dim",
    "assemble",
    "dump_tag",
    "alloc",
    "set_validshape",
    "create_tensor",
    "fillpad",
    "expand_clone",
}
"""Tensor operations that orchestration code may use directly (spec language 5.7)."""
AT_KEYWORDS = (
    "level",
    "role",
    "optimizations",
    "deps",
    "no_dep_args",
    "dumps",
    "allow_early_resolve",
    "name_hint",
    "windowize",
)
SPMD_KEYWORDS = ("core_num", "sync_start", "name_hint", "optimizations", "deps", "allow_early_resolve", "predicate")


class Scopes(Control):
    """Parses ``with`` statements and the scope loops, and checks placement."""

    # --- placement ---

    def in_device_code(self) -> bool:
        """True where tile and tensor computation is legal."""
        if self.options.type in DEVICE_FUNCTIONS:
            return True
        return any(
            s.kind in ("spmd", "split_aiv", "cluster") or (s.kind == "at" and s.attrs.get("level") == Level.CORE_GROUP)
            for s in self.scopes
        )

    def on_host(self) -> bool:
        """True where the host runs: in a HOST orchestrator outside the scopes of its chips."""
        for scope in reversed(self.scopes):
            if scope.kind in ("spmd", "split_aiv", "cluster"):
                return False
            if scope.kind == "at":
                return scope.attrs["level"].number >= HOST_NUMBER
        return super().on_host()

    def check_placement(self, value: ir.Expr, node: ast.AST) -> None:
        if (
            not isinstance(value, ir.Call)
            or self.in_device_code()
            or self.options.type in (FunctionType.Inline, FunctionType.Opaque)
            and not self.options.jit
        ):
            return
        namespace, _, name = value.op.partition(".")
        if namespace == "tile" or (namespace == "tensor" and name not in CONTROL_PLANE):
            if self.on_host():
                what = f"DistributedCodegen does not support op {value.op!r}: a HOST orchestrator computes nothing"
            else:
                what = f"pl.{name} computes on a core but stands in orchestration code"
            self.fail(
                InvalidOperationError,
                what,
                node,
                "put it inside 'with pl.at(level=pl.Level.CORE_GROUP):' or into an InCore function",
            )

    def region_split(self) -> dict[str, Any]:
        region = next((s for s in reversed(self.scopes) if s.kind == "split_aiv"), None)
        return {} if region is None else {"split": int(region.attrs["mode"])}

    # --- with ---

    def _stmt_With(self, node: ast.With) -> None:
        if len(node.items) != 1:
            self.syntax("a with statement has exactly one scope", node)
        item = node.items[0]
        call = item.context_expr
        chain = attribute_chain(call.func) if isinstance(call, ast.Call) else None
        if chain is None or len(chain) != 2 or chain[0] != "pl" or chain[1] not in (*MANAGERS, *PRINTED_MANAGERS):
            self.unsupported(
                f"a with statement takes one of {', '.join('pl.' + m for m in MANAGERS)}", item.context_expr
            )
        task = self._task_variable(item.optional_vars, chain[1], node)
        parse = getattr(self, f"_with_{chain[1]}")
        parse(call, task, node)

    def _task_variable(self, target: ast.expr | None, manager: str, node: ast.With) -> str | None:
        if target is None:
            return None
        if manager not in ("at", "spmd") or not isinstance(target, ast.Name):
            self.syntax("'as name' binds the task id of pl.at and pl.spmd only", node)
        return target.id

    def _scope(
        self,
        kind: str,
        attrs: dict[str, Any],
        body: list[ast.stmt],
        node: ast.stmt,
        task: str | None = None,
        variable: str | None = None,
    ) -> ir.Scope:
        scope = ir.Scope(kind, [], attrs, span=self.span(node))
        outside = set() if self.in_device_code() else self._arrays()
        saved, self.block = self.block, scope.body
        self.names.open("with")
        self.scopes.append(scope)
        self.loops.append(kind if kind == "split_aiv" else self.loops[-1] if self.loops else kind)
        if variable is not None:
            scope.var = ir.Var(self.names.fresh(variable), ir.ScalarType(INDEX), self.span(node))
            self.names.shadow(variable, scope.var)
        self.statements(body)
        if self.in_device_code():
            self._refuse_arrays(scope, outside)
        self.loops.pop()
        self.scopes.pop()
        self.names.close()
        self.block = saved
        if task is not None:
            scope.task = self._target(task, ir.ScalarType(TASK_ID), node)
        self.emit(scope)
        return scope

    def _arrays(self) -> set[str]:
        found = (self.names.lookup(name) for name in self.names.visible())
        return {v.name for v in found if v is not None and isinstance(v.type, ir.ArrayType)}

    @staticmethod
    def _refuse_arrays(scope: ir.Scope, outside: set[str]) -> None:
        """An array of the orchestration stays there (spec language 2.5); launches may read its elements."""
        inner = list(statements(scope.body))
        if any(isinstance(getattr(stmt, "value", None), ir.FunctionCall) for stmt in inner):
            return
        for stmt in inner:
            used = [e for expr in direct_expressions(stmt) for e in walk(expr) if isinstance(e, ir.Var)]
            for variable in [*used, *targets(stmt)]:
                if variable.name in outside:
                    raise ParserTypeError(
                        f"the array {variable.name!r} belongs to orchestration code and cannot be used in a core scope",
                        variable.span if variable.span.line else stmt.span,
                        f"read the element before the scope (v = {variable.name}[i]), or create the array inside it",
                    )

    # --- pl.at ---

    def _with_at(self, call: ast.Call, task: str | None, node: ast.With) -> None:
        given = self._at_arguments(call, node)
        level = self._level(given.pop("level", None), node)
        attrs: dict[str, Any] = {"level": level}
        for name, value in given.items():
            attrs.update(self._scope_keyword(name, value, level, node))
        if level == Level.CORE_GROUP and self.in_device_code() and not self._unwraps_here():
            self.syntax("a CORE_GROUP scope cannot stand inside another core scope or an InCore function", node)
        scope = self._scope("at", attrs, node.body, node, task)
        self._need_captured(scope, given.get("no_dep_args"))

    def _need_captured(self, scope: ir.Scope, listed: ast.expr | None) -> None:
        """``no_dep_args`` names tensors that the scope uses (spec language 5.2)."""
        names = scope.attrs.get("no_dep_args", ())
        used = {
            e.name
            for s in statements(scope.body)
            for x in direct_expressions(s)
            for e in walk(x)
            if isinstance(e, ir.Var)
        }
        for name, node in zip(names, getattr(listed, "elts", ())):
            if name not in used:
                self.type_error(f"no_dep_args= lists {ast.unparse(node)!r}, which the scope does not use", node)

    def _unwraps_here(self) -> bool:
        return (
            bool(self.scopes)
            and self.scopes[-1].kind in ("spmd", "cluster")
            and self.options.type not in DEVICE_FUNCTIONS
        )

    def _at_arguments(self, call: ast.Call, node: ast.With) -> dict[str, ast.expr]:
        if len(call.args) > 2:
            self.syntax("pl.at takes at most two positional arguments: level and role", node)
        given: dict[str, ast.expr] = dict(zip(("level", "role"), call.args))
        for k in call.keywords:
            if k.arg not in AT_KEYWORDS:
                self.syntax(f"pl.at has no keyword {k.arg!r}; legal: {', '.join(AT_KEYWORDS)}", node)
            if k.arg in given:
                self.syntax(f"pl.at is given {k.arg} twice", node)
            given[k.arg] = k.value
        if "level" not in given:
            self.syntax("pl.at needs a level, for example pl.at(level=pl.Level.CORE_GROUP)", node)
        return given

    def _level(self, node: ast.expr | None, statement: ast.stmt) -> Level:
        try:
            value = self.python_value(node) if node is not None else None
        except ParserTypeError as e:  # a member that pl.Level does not have
            raise ParserSyntaxError(e.message, e.span, e.hint) from None
        if not isinstance(value, Level):
            self.syntax("level is a pl.Level member written literally", statement)
        return value

    def _scope_keyword(self, name: str, value: ast.expr, level: Level, node: ast.stmt) -> dict[str, Any]:
        if name == "role":
            role = self.python_value(value)
            if not isinstance(role, Role) or level == Level.CORE_GROUP:
                self.syntax("role is a pl.Role member and not legal with CORE_GROUP", node)
            if role == Role.SubWorker and (level.number >= HOST_NUMBER or self.on_host()):
                self.syntax(
                    "a SubWorker may not be written inline",
                    node,
                    "define it: @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)",
                )
            return {"role": role}
        if name == "optimizations":
            if level != Level.CORE_GROUP:
                self.syntax("optimizations is legal only with CORE_GROUP", node)
            return self._optimizations(value, node)
        if name == "deps":
            return {"deps": tuple(self.deps(value))}
        if name in ("no_dep_args", "dumps"):
            return {name: self.plain_names(value, name)}
        if name == "name_hint":
            return {"name_hint": self._name_hint(value, node)}
        return {name: self.flag(value, name)}

    def _name_hint(self, value: ast.expr, node: ast.stmt) -> str:
        hint = value.value if isinstance(value, ast.Constant) else None
        if not isinstance(hint, str) or (hint and (not hint.isidentifier() or keyword.iskeyword(hint))):
            self.syntax("name_hint is a string literal that is a valid identifier", node)
        return hint

    def _optimizations(self, value: ast.expr, node: ast.stmt) -> dict[str, Any]:
        if not isinstance(value, (ast.List, ast.Tuple)):
            self.syntax("optimizations= takes a list display", node)
        found: dict[str, Any] = {}
        for item in value.elts:
            chain = attribute_chain(item.func) if isinstance(item, ast.Call) else None
            name = chain[-1] if chain else ""
            if name not in ("split", "cross_core_slot"):
                self.syntax("optimizations= takes pl.split(...) and pl.cross_core_slot(...)", item)
            fresh = self._split(item) if name == "split" else self._slots(item)  # type: ignore[arg-type]
            for key, setting in fresh.items():
                if key in found:
                    self.syntax(f"optimizations= states {key} twice", item)
                found[key] = setting
        return found

    def _split(self, call: ast.Call) -> dict[str, Any]:
        mode = self.python_value(call.args[0]) if call.args else None
        slots = {k.arg: k.value for k in call.keywords}
        if mode is None and "mode" in slots:
            mode = self.python_value(slots.pop("mode"))
        if not isinstance(mode, SplitMode):
            self.syntax("pl.split needs a mode: pl.SplitMode.UP_DOWN, LEFT_RIGHT or NONE", call)
        found: dict[str, Any] = {"split": mode}
        if slots.get("slot_num") is not None:
            found["slot_num"] = self._positive(slots["slot_num"], "slot_num")
        return found

    def _slots(self, call: ast.Call) -> dict[str, Any]:
        if len(call.keywords) != 1 or call.keywords[0].arg != "slot_num" or call.args:
            self.syntax("pl.cross_core_slot takes slot_num=", call)
        return {"slot_num": self._positive(call.keywords[0].value, "slot_num")}

    def _positive(self, node: ast.expr, name: str) -> int:
        value = self.constant(node)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.syntax(f"{name} is a positive integer literal", node)
        return value

    # --- cluster, runtime scopes ---

    def _with_cluster(self, call: ast.Call, task: str | None, node: ast.With) -> None:
        if call.args or any(k.arg != "name_hint" for k in call.keywords):
            self.syntax("pl.cluster takes name_hint= and nothing else", node)
        attrs = {}
        if call.keywords:
            attrs = self._scope_keyword("name_hint", call.keywords[0].value, Level.CORE_GROUP, node)
        self._scope("cluster", attrs, node.body, node)

    def _with_stage(self, call: ast.Call, task: str | None, node: ast.With) -> None:
        values = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
        if len(values) != 2 or not isinstance(values[1], int) or values[0] is None:
            self.syntax("pl.stage is printer output: the loop and the number of the copy", node)
        self._scope("stage", {"loop": values[0], "stage": values[1]}, node.body, node)

    def _with_scope(self, call: ast.Call, task: str | None, node: ast.With) -> None:
        values = [*call.args, *(k.value for k in call.keywords)]
        mode = self.python_value(values[0]) if values else ScopeMode.AUTO
        if not isinstance(mode, ScopeMode) or len(values) > 1:
            self.syntax("pl.scope takes mode=pl.ScopeMode.AUTO or MANUAL", node)
        self._runtime_scope(mode, node)

    def _with_manual_scope(self, call: ast.Call, task: str | None, node: ast.With) -> None:
        if call.args or call.keywords:
            self.syntax("pl.manual_scope takes no arguments", node)
        self._runtime_scope(ScopeMode.MANUAL, node)

    def _runtime_scope(self, mode: ScopeMode, node: ast.With) -> None:
        if self.in_device_code():
            self.syntax("a runtime scope belongs to orchestration code, not to a kernel", node)
        manual_around = any(s.kind == "manual" for s in self.scopes)
        if manual_around:
            self.syntax(f"a {mode.name} scope cannot stand inside a MANUAL one", node)
        if mode == ScopeMode.AUTO and self.options.auto_scope:
            self.syntax(
                "pl.scope() needs auto_scope=False on the function",
                node,
                "with auto_scope=True scopes are placed for you",
            )
        self._scope("manual" if mode == ScopeMode.MANUAL else "auto", {}, node.body, node)

    # --- spmd ---

    def _spmd_arguments(self, call: ast.Call, form: str, node: ast.stmt) -> dict[str, Any]:
        if len(call.args) > 1:
            self.syntax("pl.spmd takes one positional argument, the number of blocks", node)
        attrs: dict[str, Any] = {}
        if call.args:
            attrs["core_num"] = self.core_num(call.args[0])
        for k in call.keywords:
            if k.arg not in SPMD_KEYWORDS:
                self.syntax(f"pl.spmd has no keyword {k.arg!r}; legal: {', '.join(SPMD_KEYWORDS)}", node)
            if k.arg == "core_num":
                if "core_num" in attrs:
                    self.syntax("pl.spmd is given core_num twice", node)
                attrs["core_num"] = self.core_num(k.value)
            elif k.arg == "predicate":
                attrs["predicate"] = self.predicate(k.value)
            elif k.arg == "deps" and form != "as":
                self.syntax("deps= on pl.spmd needs 'as tid'", node)
            else:
                attrs.update(self._scope_keyword(k.arg or "", k.value, Level.CORE_GROUP, node))
        if "core_num" not in attrs:
            self.syntax("pl.spmd needs the number of blocks", node)
        if any(s.kind == "cluster" for s in self.scopes):
            for name in ("predicate", "allow_early_resolve"):
                if name in attrs:
                    self.syntax(f"{name}= is not legal on pl.spmd inside a cluster", node)
        return attrs

    def _with_spmd(self, call: ast.Call, task: str | None, node: ast.With) -> None:
        attrs = self._spmd_arguments(call, "as" if task else "with", node)
        scope = self._scope("spmd", attrs, node.body, node, task)
        if not self._is_dispatch(scope) and not uses_block_index(scope.body):
            self.syntax(
                "the body of 'with pl.spmd' is one kernel call, one pl.at scope, or code that reads pl.get_block_idx()",
                node,
            )

    def _is_dispatch(self, scope: ir.Scope) -> bool:
        calls = [s for s in scope.body if isinstance(getattr(s, "value", None), ir.FunctionCall)]
        inner = [s for s in scope.body if isinstance(s, ir.Scope)]
        return len(calls) + len(inner) == 1

    def spmd_loop(self, node: ast.For, call: ast.Call) -> None:
        if not isinstance(node.target, ast.Name):
            self.syntax("pl.spmd has one plain loop variable", node)
        self._scope("spmd", self._spmd_arguments(call, "for", node), node.body, node, None, node.target.id)

    def split_loop(self, node: ast.For, call: ast.Call) -> None:
        lanes = self.constant(call.args[0]) if len(call.args) == 1 else None
        keywords = {k.arg: k.value for k in call.keywords}
        if lanes != 2 or set(keywords) != {"mode"} or not isinstance(node.target, ast.Name):
            self.syntax("pl.split_aiv is written 'for lane in pl.split_aiv(2, mode=pl.SplitMode.<M>)'", node)
        mode = self.python_value(keywords["mode"])
        if not isinstance(mode, SplitMode):
            self.syntax("mode= of pl.split_aiv is a pl.SplitMode member", node)
        if any(s.kind == "split_aiv" or "split" in s.attrs for s in self.scopes):
            self.syntax("pl.split_aiv cannot stand inside another split", node)
        self._scope("split_aiv", {"mode": mode}, node.body, node, None, node.target.id)


def uses_block_index(body: list[ir.Stmt]) -> bool:
    """True when a statement reads ``pl.get_block_idx()``."""
    from pypto.ir.walk import expressions_of

    return any(isinstance(e, ir.Call) and e.op.endswith("get_block_idx") for s in body for e in expressions_of(s))
