"""Placement of each operation of a kernel: what stays, what becomes a tile operation, what moves data first."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.accesses import DESTINATION
from pypto.ir.dtype import BF16, FP16, FP32
from pypto.ir.enums import AtomicType, MemorySpace, ParamDirection
from pypto.ir.errors import CompileError
from pypto.ir.passes.place.distributed import RankTransfers
from pypto.ir.passes.place.products import BlockedProducts
from pypto.ir.passes.place.state import is_window
from pypto.ir.passes.place.values import Product, Value, Window

ANY_SPACE = {
    "tile.move",
    "tile.extract",
    "tile.assemble",
    "tile.create",
    "tile.reshape",
    "tile.slice",
    "tile.transpose_view",
    "tile.set_validshape",
    "tile.store",
    "tile.read",
    "tile.write",
    "tile.aiv_shard",
    "tile.aic_gather",
    "tile.reinterpret_view",
    "tile.matmul_mx",
    "tile.matmul_mx_acc",
    "tile.matmul_mx_bias",
    "tile.gather_row",
    "tile.mgather",
    "tile.fillpad",
    "tile.fillpad_inplace",
    "tile.gemv",
    "tile.gemv_acc",
    "tile.gemv_bias",
    "tile.tpush_to_aic",
    "tile.tpush_to_aiv",
    "tile.mscatter",
}
"""Tile operations that take their operands where they are."""
VALID_EXTENTS = ("valid_shape", "valid_rows", "valid_cols")
GM_VIEWS = {
    "tensor.reshape": "tensor",
    "tensor.transpose": "tensor",
    "tensor.view": "tensor",
    "tensor.reinterpret_view": "data",
}
READING_KINDS = ("elementwise", "cast", "broadcast", "reduce", "sort")
READING_MOVES = ("tensor.gather", "tensor.concat")
COUNTING_VIEWS = ("tensor.reshape", "tensor.reinterpret_view")
"""Views that count the elements of their operand one after the other."""


def reads_only(op: str) -> bool:
    """Whether an operation leaves its operands as they are and its result shares no bytes with them."""
    return op in READING_MOVES or operations.row(op).kind in READING_KINDS


class Operations(BlockedProducts, RankTransfers):
    """Turns one expression of the kernel into a placed value."""

    def value(self, expr: ir.Expr) -> Value:
        """``expr`` placed: a window, a tile variable or a scalar expression."""
        if isinstance(expr, ir.Var):
            return self.values.get(expr.name, expr)
        if isinstance(expr, ir.TupleItem):
            return self._item(expr)
        if isinstance(expr, ir.TupleExpr):
            return ir.TupleExpr(tuple(self.value(i) for i in expr.items), expr.span)
        if isinstance(expr, ir.Call):
            return self.call(expr)
        if isinstance(expr, ir.FunctionCall):
            raise CompileError(
                f"a kernel cannot launch {expr.callee!r}; only orchestration code launches tasks", expr.span
            )
        return self.scalar(expr)

    def _item(self, expr: ir.TupleItem) -> Value:
        base = self.value(expr.value)
        if isinstance(base, ir.TupleExpr):
            return base.items[expr.index]
        kinds = base.type.items
        return ir.TupleItem(base, expr.index, kinds[expr.index], expr.span)

    def scalar(self, expr: ir.Expr) -> ir.Expr:
        """A scalar expression with the element reads inside it placed."""

        def change(node: ir.Expr) -> ir.Expr:
            if isinstance(node, ir.Call):
                placed = self.call(node)
                return placed if isinstance(placed, ir.Expr) else node
            if isinstance(node, ir.Var) and node.name in self.values and isinstance(node.type, ir.ScalarType):
                return self.values[node.name]
            return node

        if isinstance(expr, (ir.Const, ir.Symbol)):
            return expr
        if isinstance(expr, ir.Binary):
            return ir.Binary(expr.op, self.scalar(expr.left), self.scalar(expr.right), expr.dtype, expr.span)
        if isinstance(expr, ir.Unary):
            return ir.Unary(expr.op, self.scalar(expr.operand), expr.dtype, expr.span)
        if isinstance(expr, ir.Cast):
            return ir.Cast(self.scalar(expr.operand), expr.dtype, expr.span)
        return change(expr)

    def argument(self, value: Any) -> Any:
        """An operation argument with its expressions placed."""
        if isinstance(value, ir.Expr):
            return self.value(value)
        if isinstance(value, tuple):
            return tuple(self.argument(v) for v in value)
        return value

    # --- dispatch ---

    def call(self, call: ir.Call) -> Value:
        with self.at(call.span):
            arguments = {k: self.argument(v) for k, v in call.arguments.items()}
            for key in VALID_EXTENTS:
                if key in arguments:
                    arguments[key] = self._steady_extent(arguments[key])
            placed = self._handler(call.op)(call, arguments)
            if call.op in DESTINATION or call.op.startswith(("system.", "pld.")):
                self._forget_written(call, arguments)
            return placed

    def _handler(self, op: str) -> Callable[[ir.Call, dict[str, Any]], Value]:
        own: Callable[[ir.Call, dict[str, Any]], Value] | None = getattr(self, f"_{op.replace('.', '_')}", None)
        if own is not None:
            return own
        if op.startswith("tile."):
            return self._tile_operation
        if op in GM_VIEWS:
            return self._view
        return self._tensor_operation if op.startswith("tensor.") else self._other

    def _forget_written(self, call: ir.Call, arguments: dict[str, Any]) -> None:
        """What a call writes, or lets other cores write, is loaded anew when it is read again."""
        target = arguments.get(DESTINATION.get(call.op, ""))
        if isinstance(target, Window) and not call.op.startswith(("system.", "pld.")):
            self.forget({self.root_of(target.base.name)})
        else:
            self.forget()

    def _steady_extent(self, value: Any) -> Any:
        """A valid extent outlives the scalars it was computed from."""
        if isinstance(value, tuple):
            return tuple(self._steady_extent(v) for v in value)
        return self.steady(value) if isinstance(value, ir.Expr) else value

    def _other(self, call: ir.Call, arguments: dict[str, Any]) -> Value:
        """System, array and distributed operations: emitted as they are."""
        made = ir.Call(call.op, self._plain(arguments), call.type, call.attrs, self.span)
        if isinstance(call.type, ir.NoneType):
            self.emit(ir.Evaluate(made, self.span))
            return made
        if isinstance(call.type, ir.TileType):
            target = self.tile_variable("value", call.type)
            self.emit(ir.Assign(target, made, self.span))
            return target
        return made

    def _plain(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {k: self._base_of(v) if is_window(v) else v for k, v in arguments.items()}

    def _base_of(self, window: Window) -> ir.Expr:
        return window.base if window.is_whole else self._window_register(window)

    # --- tile operations ---

    def _tile_operation(self, call: ir.Call, arguments: dict[str, Any]) -> Value:
        row = operations.row(call.op)
        placed: dict[str, Any] = {}
        for name, value in arguments.items():
            if is_window(value):
                placed[name] = self._base_of(value)
            elif isinstance(value, ir.Expr) and isinstance(value.type, ir.TileType) and call.op not in ANY_SPACE:
                placed[name] = self.to_space(value, MemorySpace.Vec)
            elif isinstance(value, Product):
                placed[name] = self.on_chip(value)
            else:
                placed[name] = value
        made = operations.call(row, placed, self.span)
        if not isinstance(made, ir.Call):
            return made
        if isinstance(made.type, ir.ScalarType):
            return made
        made = self._with_declared(made, call.type)
        return self.emitter.expand(made)

    def _with_declared(self, made: ir.Call, declared: ir.Type) -> ir.Call:
        """Keep what an annotation said about the result: its space and its allocation."""
        if isinstance(declared, ir.TileType) and isinstance(made.type, ir.TileType) and declared.memref is not None:
            kind = ir.TileType(made.type.shape, made.type.dtype, made.type.space, made.type.view, declared.memref)
            return ir.Call(made.op, made.arguments, kind, made.attrs, made.span)
        return made

    def _tile_load(self, call: ir.Call, a: dict[str, Any]) -> Value:
        window = a["tensor"]
        if not is_window(window):
            raise CompileError(
                "pl.load reads a tensor in GM; this value is already on chip", self.span, "use it directly"
            )
        shape = tuple(int(ir.as_dim(s)) for s in a["shapes"])  # type: ignore[arg-type]
        valid = None if a["valid_shape"] is None else tuple(ir.as_dim(v) for v in a["valid_shape"])
        if len(a["offsets"]) > len(window.kept()) or len(shape) != len(a["offsets"]):
            raise CompileError(
                f"{len(a['offsets'])} offsets and {len(shape)} extents for {self.describe(window)}", self.span
            )
        tile = self.load(window, a["target_memory"], a["offsets"], shape, valid, a["clamp"])
        return self._declared_alias(tile, call.type)

    def _declared_alias(self, tile: ir.Expr, declared: ir.Type) -> ir.Expr:
        memref = getattr(declared, "memref", None)
        if memref is None or not isinstance(tile, ir.Var):
            return tile
        kind = ir.TileType(tile.type.shape, tile.type.dtype, tile.type.space, tile.type.view, memref)  # type: ignore[attr-defined]
        for made in reversed(self.out):
            if isinstance(made, ir.Assign) and made.target.name == tile.name:
                made.target = ir.Var(tile.name, kind, tile.span)
                made.value = replace(made.value, type=kind) if isinstance(made.value, ir.Call) else made.value
                break
        return ir.Var(tile.name, kind, tile.span)

    def _tile_store(self, call: ir.Call, a: dict[str, Any]) -> Value:
        target = a["output_tensor"]
        if not is_window(target):
            raise CompileError(
                "pl.store writes to a tensor in GM; this one is on chip", self.span, "use pl.tile.assemble"
            )
        self._remark_on_dtypes(call.arguments["tile"].type, a["tile"], target)
        return self.store(a["tile"], target, a["offsets"], a["atomic"])

    def _remark_on_dtypes(self, declared: Any, value: Value, target: Window) -> None:
        """``UserWarning`` where a store converts here and a card stores bits: only Acc narrows (ops 1.8 and 3)."""
        have, wanted = declared.dtype, target.type.dtype
        accumulated = isinstance(value, Product) or getattr(value.type, "space", None) == MemorySpace.Acc
        if have == wanted or accumulated and value.type.dtype in (FP32, wanted) and wanted in (FP32, FP16, BF16):
            return
        unit = "the accumulator narrows FP32 only" if accumulated else "the vector side of a card stores its bits"
        warnings.warn_explicit(
            f"a value of {have.constant} is converted for {target.base.name!r}, which is "
            f"{wanted.constant}; {unit}: write pl.cast(value, pl.{wanted.constant})",
            UserWarning,
            self.span.filename,
            self.span.line,
        )

    def _tile_read(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.element(a["tile"], a["indices"], call.type.dtype)  # type: ignore[attr-defined]

    def _tile_write(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.set_element(a["tile"], a["indices"], a["value"])

    def _crossing(self, call: ir.Call, a: dict[str, Any]) -> Value:
        """A value handed to the other side of a split region (spec ops 17)."""
        name = call.op.partition(".")[2]
        source = MemorySpace.Acc if name == "aiv_shard" else MemorySpace.Vec
        value = a["x"]
        staged = isinstance(value, ir.Expr) and getattr(value.type, "space", None) == MemorySpace.Mat
        tile = value if staged else self.on_chip(value, source)
        made = operations.call(operations.row(f"tile.{name}"), {**a, "x": tile}, self.span)
        target = self.tile_variable(name, made.type)
        self.emit(ir.Assign(target, made, self.span))
        return target

    _tile_aiv_shard = _tile_aic_gather = _tensor_aiv_shard = _tensor_aic_gather = _crossing

    def _tile_matmul(self, call: ir.Call, a: dict[str, Any]) -> Value:
        product = self.matmul(a["lhs"], a["rhs"])
        return self._declared_alias(product, call.type) if isinstance(product, ir.Expr) else product

    def _tile_matmul_acc(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.matmul_acc(a["acc"], a["lhs"], a["rhs"], False, False, a["init_cond"])

    def _tile_batch_matmul(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.matmul(a["lhs"], a["rhs"])

    def _tile_batch_matmul_acc(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.matmul_acc(a["acc"], a["lhs"], a["rhs"], False, False, None)

    def _tile_matmul_bias(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.matmul_bias(a["lhs"], a["rhs"], a["bias"])

    # --- tensor operations on windows and tiles ---

    def _tensor_operation(self, call: ir.Call, arguments: dict[str, Any]) -> Value:
        row = operations.row(call.op)
        bases: dict[str, Window] = {}
        placed: dict[str, Any] = {}
        for name, value in arguments.items():
            if is_window(value) and name in row.stays_in_memory:
                base = self._base_of(value)
                placed[name] = base
                if isinstance(base, ir.Var):
                    bases[base.name] = value
            else:
                placed[name] = self._operand_of(call, value)
        made = ir.Call(call.op, placed, call.type, call.attrs, self.span)
        if row.tile_form is not None:
            result = self.emitter.in_kernel(made)
            return bases.get(result.name, result) if isinstance(result, ir.Var) else result
        name = call.op.partition(".")[2]
        target = operations.find(f"tile.{name}")
        if target is None:
            raise CompileError(f"pl.{name} has no form for values on chip", self.span)
        from pypto.ir.operations.emitter import renamed

        return self.emitter.tile(name, **renamed(row, target, made))

    def _operand_of(self, call: ir.Call, value: Any) -> Any:
        """An operand where the operation reads it: in the vector memory, but for rows gathered into any space."""
        if is_window(value) or isinstance(value, Product):
            return self.read_only(value) if reads_only(call.op) else self.on_chip(value)
        if isinstance(value, ir.Expr) and isinstance(value.type, ir.TileType) and call.op != "tensor.gather_row":
            return self.to_space(value, MemorySpace.Vec)
        return value

    def _view(self, call: ir.Call, arguments: dict[str, Any]) -> Value:
        operand = GM_VIEWS[call.op]
        window = arguments[operand]
        if is_window(window) and self._has_gaps(call.op, window):
            arguments[operand] = self.on_chip(window)
        elif is_window(window):
            return self.view_register(ir.Call(call.op, arguments, call.type, call.attrs, self.span), window, operand)
        elif call.op == "tensor.reshape" and self.is_restack(window, call.type):
            return self.restacked(window, tuple(map(int, call.type.shape)))  # type: ignore[attr-defined]
        return self._tensor_operation(call, arguments)

    def _has_gaps(self, op: str, window: Window) -> bool:
        """A view that counts elements in one row needs them adjacent; what is only read can be copied to be so.

        Through a view of an output the kernel may write, so it stays a view, whatever it is of.
        """
        adjacent = window.is_run and window.base.name not in self.permuted
        if op not in COUNTING_VIEWS or adjacent or not all(isinstance(e, int) for e in window.extents):
            return False
        root = self.root_of(window.base.name)
        return any(p.name == root and p.direction == ParamDirection.In for p in self.function.params)

    def _tensor_create(self, call: ir.Call, a: dict[str, Any]) -> Value:
        shape = tuple(ir.as_dim(d) for d in a["shape"])
        if any(not isinstance(d, int) for d in shape):
            raise CompileError("a tensor created in a kernel lives on chip and needs static extents", self.span)
        space = MemorySpace.Acc if call.attrs.get("accumulator") else MemorySpace.Vec
        if a.get("init_value") is not None:
            return self.emitter.tile("full", shape=shape, dtype=a["dtype"], value=a["init_value"])
        return self.emitter.tile("create", shape=shape, dtype=a["dtype"], target_memory=space)

    def _tensor_create_l1(self, call: ir.Call, a: dict[str, Any]) -> Value:
        shape = tuple(int(ir.as_dim(d)) for d in a["shape"])  # type: ignore[arg-type]
        return self.emitter.tile("create", shape=shape, dtype=a["dtype"], target_memory=MemorySpace.Mat)

    def _tensor_slice(self, call: ir.Call, a: dict[str, Any]) -> Value:
        source = a["tensor"]
        shape = tuple(ir.as_dim(d) for d in a["shape"])
        dropped = tuple(int(d) for d in a["drop_dims"] or ())
        if is_window(source):
            assert isinstance(call.type, ir.TensorType)
            window = self.sub_window(source, a["offset"], shape, dropped, call.type)
            if a["clamp"] or a["pad_value"] is not None:
                return self._padded_window(window, source, a)
            return window
        static = tuple(d for d in shape if isinstance(d, int))
        if len(static) != len(shape):
            raise CompileError(
                "a window of a value on chip needs a static shape", self.span, "give the extent as valid_shape"
            )
        source = self.on_chip(source)
        return self.emitter.tile(
            "slice",
            tile=source,
            shape=static,
            offset=a["offset"],
            valid_shape=a["valid_shape"],
            drop_dims=a["drop_dims"],
            pad_value=a["pad_value"],
        )

    def _padded_window(self, window: Window, source: Window, a: dict[str, Any]) -> Value:
        valid = None if a["valid_shape"] is None else tuple(ir.as_dim(v) for v in a["valid_shape"])
        shape = tuple(int(ir.as_dim(d)) for d in a["shape"])  # type: ignore[arg-type]
        tile = self.load(source, MemorySpace.Vec, a["offset"], shape, valid, a["clamp"])
        if a["pad_value"] is not None and int(a["pad_value"]) != 0:
            tile = self.emitter.tile("fillpad", tile=tile, pad_value=a["pad_value"])
        return tile

    def _tensor_assemble(self, call: ir.Call, a: dict[str, Any]) -> Value:
        target, source, atomic = a["target"], a["source"], a.get("atomic", AtomicType.None_)
        if is_window(target):
            self._remark_on_dtypes(call.arguments["source"].type, source, target)
            return self.store(source, target, a["offset"], atomic)
        return self.emitter.tile("assemble", target=target, source=self._insertable(source, target), offset=a["offset"])

    def _insertable(self, source: Value, target: ir.Expr) -> ir.Expr:
        tile = self.on_chip(source) if is_window(source) else source
        rank = len(target.type.shape)  # type: ignore[attr-defined]
        shape = tile.type.shape  # type: ignore[union-attr]
        return self.reshaped(tile, (1,) * (rank - len(shape)) + tuple(shape)) if len(shape) < rank else tile

    def _tensor_read(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.element(a["tensor"], a["indices"], call.type.dtype)  # type: ignore[attr-defined]

    def _tensor_write(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.set_element(a["tensor"], a["indices"], a["value"])

    def _tensor_dim(self, call: ir.Call, a: dict[str, Any]) -> Value:
        source = a["tensor"]
        axis = int(ir.as_dim(a["axis"])) if isinstance(a["axis"], ir.Expr) else int(a["axis"])  # type: ignore[arg-type]
        if not is_window(source):
            return ir.as_expr(source.type.shape[axis])
        extents = [source.extents[k] for k in source.kept()]
        extent = extents[axis]
        if isinstance(extent, ir.Call) and extent.op == "tensor.dim":
            return extent
        base_axis = source.kept()[axis]
        if source.is_whole and not isinstance(extent, int):
            return ir.Call("tensor.dim", {"tensor": source.base, "axis": base_axis}, call.type, {}, self.span)
        return ir.as_expr(extent)

    def _tensor_matmul(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.matmul(a["lhs"], a["rhs"], bool(a["a_trans"]), bool(a["b_trans"]))

    def _tensor_matmul_acc(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return self.matmul_acc(a["acc"], a["lhs"], a["rhs"], bool(a["a_trans"]), bool(a["b_trans"]), a["init_cond"])

    def _tensor_cast(self, call: ir.Call, a: dict[str, Any]) -> Value:
        value = self.read_only(a["input"])
        if value.type.dtype == a["target_type"]:  # type: ignore[attr-defined]
            return value
        return self.emitter.tile("cast", tile=value, target_type=a["target_type"], mode=a["mode"])

    def _tensor_set_validshape(self, call: ir.Call, a: dict[str, Any]) -> Value:
        tile = self.on_chip(next(iter(a.values())))
        return self.emitter.tile("set_validshape", tile=tile, valid_rows=a["valid_rows"], valid_cols=a["valid_cols"])

    def _tensor_fillpad(self, call: ir.Call, a: dict[str, Any]) -> Value:
        tile = self.on_chip(next(iter(a.values())))
        return self.emitter.tile("fillpad", tile=tile, pad_value=a["pad_value"])

    def _tensor_get_block_idx(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return ir.Call("tile.get_block_idx", {}, call.type, {}, self.span)

    def _tensor_get_block_num(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return ir.Call("tile.get_block_num", {}, call.type, {}, self.span)

    def _tensor_get_subblock_idx(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return ir.Call("tile.get_subblock_idx", {}, call.type, {}, self.span)

    def _tensor_dump_tag(self, call: ir.Call, a: dict[str, Any]) -> Value:
        return ir.Call("system.nothing", {}, ir.NoneType(), {}, self.span)
