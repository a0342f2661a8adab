"""Placed kernels to instructions over tile registers."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.dtype import INT64
from pypto.ir.enums import MemorySpace, ParamDirection
from pypto.ir.errors import CompileError
from pypto.ir.instructions import INSTRUCTIONS
from pypto.ir.lowering.distributed import RankLowering
from pypto.ir.lowering.instructions import (
    ArrayRef,
    Branch,
    Jump,
    Kernel,
    KernelParam,
    Loop,
    Node,
    Register,
    TensorRef,
    Tile,
    WhileLoop,
)
from pypto.ir.lowering.matrices import flat_offset, flat_shape, flat_valid, matrix_offset
from pypto.ir.lowering.scalars import copy_array, identifier
from pypto.ir.lowering.views import VIEW_OPS, emit_view
from pypto.ir.operations.distributed import COMM_CTX

DIRECTIONS = {ParamDirection.In: "in", ParamDirection.Out: "out", ParamDirection.InOut: "inout"}
CORE_COUNTS = {"system.available_cluster_count": 1, "system.available_aiv_count": 2}
"""Operation -> cores of that kind in a cluster."""
RING_DECLARATIONS = tuple(f"{n}.{s}_initialize_pipe" for n in ("system", "tile") for s in ("aic", "aiv"))
RING_BASES = tuple(f"{n}.{s}" for n in ("system", "tile") for s in ("reserve_buffer", "import_peer_buffer"))
"""The machine owns the rings of a cluster; declarations carry no work and bases no addresses."""


def kernel_params(function: ir.Function) -> list[KernelParam]:
    """The parameters of ``function`` as the text declares them."""
    params = []
    for p in function.params:
        if isinstance(p.type, ir.TensorType):
            shape = tuple(d if isinstance(d, int) else -1 for d in p.type.shape)
            params.append(
                KernelParam(identifier(p.name), p.type.dtype, shape, DIRECTIONS[p.direction], p.type.distributed)
            )
        elif isinstance(p.type, ir.ScalarType):
            params.append(KernelParam(identifier(p.name), p.type.dtype, None, "in"))
        elif p.type == COMM_CTX:
            params.append(KernelParam(identifier(p.name), INT64, None, "in"))
        else:
            raise CompileError(
                f"parameter {p.name!r} of {function.name!r} cannot cross a kernel boundary", function.span
            )
    return params


class KernelLowering(RankLowering):
    """Lowers one placed function; the result still mixes cube and vector instructions."""

    def __init__(self, function: ir.Function, clusters: int):
        super().__init__(function)
        self.clusters = clusters
        self.tiles: dict[str, Tile] = {}
        self.tuples: dict[str, list[Tile]] = {}
        self.tensors: dict[str, tuple[int, Any]] = {}
        self.arrays: dict[str, tuple[int, Any]] = {}
        self.names: dict[str, str] = {}
        self._author = ""  # of the value that is being assigned
        self._names: set[str] = set()
        self._rings: dict[int, int] = {}  # queue id -> declared slots
        self._all: list[Tile] = []
        self._stage: tuple[tuple[Any, int], ...] = ()

    def run(self) -> Kernel:
        """The kernel with virtual tile registers, core not yet decided."""
        body: list[Node] = []
        self.block = body
        for parameter in self.function.params:
            self._named(identifier(parameter.name), parameter.author)
        self._statements(self.function.body)
        return Kernel(
            identifier(self.function.name),
            "",
            kernel_params(self.function),
            self._prologue + body,
            self._all,
            self.tensors,
            self.arrays,
            names=self.names,
        )

    # --- registers ---

    def _unique(self, base: str) -> str:
        base, number = identifier(base), 0
        name = base
        while name in self._names:
            number += 1
            name = f"{base}_{number}"
        self._names.add(name)
        return name

    def _named(self, register: str, author: str) -> None:
        """``register`` holds the value that the source calls ``author``."""
        if author and author != register:
            self.names[register] = author

    def new_tile(self, name: str, kind: ir.TileType, **fields: Any) -> Tile:
        """A register for a value of type ``kind``; a static partial valid shape goes into the declaration."""
        rows, cols = flat_shape(kind.shape)
        space = (kind.space or MemorySpace.Vec).name.lower()
        origin = self._author, self.span
        tile = Tile(self._unique(name), rows, cols, kind.dtype, space, stage=self._stage, origin=origin, **fields)
        valid = flat_valid(kind.shape, kind.valid_shape, self.span)
        if valid != (rows, cols) and all(isinstance(v, int) for v in valid):
            tile.valid = (int(valid[0]), int(valid[1]))  # type: ignore[arg-type]
        self._declare(tile, kind)
        self._all.append(tile)
        self._named(tile.name, self._author)
        return tile

    def _declare(self, tile: Tile, kind: ir.TileType) -> None:
        memref = kind.memref
        if memref is None or tile.root is not None:
            return
        declaration = getattr(memref, "declaration", memref)
        tile.allocation = declaration.name or f"declared_{id(declaration):x}"
        tile.slots = declaration.slots or 1
        if hasattr(memref, "slot"):
            shared = isinstance(memref.slot, ir.Var)  # views follow the tile whose register they have, others do not
            tile.slot = self.scalar(memref.slot, self.temporary() if shared else None)
            if isinstance(tile.slot, int) and not 0 <= tile.slot < tile.slots:
                raise CompileError(
                    f"{tile.allocation!r} has {tile.slots} slots, the tile {self._author or tile.name!r} names slot "
                    f"{tile.slot}",
                    self.span,
                    f"slots go from 0 to {tile.slots - 1}; ring[i % {tile.slots}] goes round them",
                )

    def set_valid(self, tile: Tile, kind: ir.TileType) -> None:
        """Emit the valid shape of a value when it is known only at run time."""
        valid = flat_valid(kind.shape, kind.valid_shape, self.span)
        if not all(isinstance(v, int) for v in valid):
            self.emit("setvalid", tile, self.scalar(valid[0]), self.scalar(valid[1]))

    def tile_of(self, expr: ir.Expr) -> Tile:
        """The register that holds ``expr``."""
        if isinstance(expr, ir.Var):
            if expr.name not in self.tiles:
                raise CompileError(
                    f"{expr.name!r} is read before it has a value", expr.span if expr.span.line else self.span
                )
            return self.tiles[expr.name]
        if isinstance(expr, ir.TupleItem) and isinstance(expr.value, ir.Var):
            return self.tuples[expr.value.name][expr.index]
        if isinstance(expr, ir.Call):
            return self._call_tile("value", expr)
        raise CompileError(f"{type(expr).__name__} is not a tile", self.span)

    def operand(self, value: Any) -> Any:
        """An instruction operand."""
        if isinstance(value, tuple):
            return tuple(self.operand(v) for v in value)
        if isinstance(value, ir.Expr):
            if isinstance(value.type, ir.TileType):
                return self.tile_of(value)
            if isinstance(value.type, ir.TensorType):
                return self.tensor(value)
            if isinstance(value.type, ir.ArrayType):
                return self.array(value)
        return self.scalar(value)

    def element_source(self, expr: ir.Expr) -> Any:
        return self.tile_of(expr) if isinstance(expr.type, ir.TileType) else self.tensor(expr)

    # --- statements ---

    def _on_assign(self, stmt: ir.Assign) -> None:
        self._author = stmt.target.author
        self._assign(stmt.target, stmt.value)
        self._author = ""

    def _assign(self, target: ir.Var, value: ir.Expr) -> None:
        kind = target.type
        if isinstance(kind, ir.TileType):
            self._assign_tile(target, value)
        elif isinstance(kind, ir.TupleType) and isinstance(value, ir.Call):
            self._multiple(target, value)
        elif isinstance(kind, ir.TensorType):
            self._tensor_view(target, value)
        elif isinstance(kind, ir.ArrayType):
            self._assign_array(target, value)
        elif isinstance(value, ir.Call) and value.op.startswith("prefetch.") and isinstance(kind, ir.OpaqueType):
            if value.op == "prefetch.async_prefetch":
                self.effect(value)
        else:
            self.scalar(value, Register(identifier(target.name)))

    def _assign_tile(self, target: ir.Var, value: ir.Expr) -> None:
        kind = target.type
        assert isinstance(kind, ir.TileType)
        if isinstance(value, ir.Call):
            self.tiles[target.name] = self._call_tile(target.name, value, kind)
            return
        source = self.tile_of(value)
        holder = self.tiles.get(target.name)
        if holder is None:
            holder = self.tiles[target.name] = self.new_tile(target.name, kind)
        if holder is source:
            return
        self._copy_valid(holder, kind)
        self.emit("tmov", holder, source, writes=(holder,), reads=(source,), copy=True, may_share=True)

    def _copy_valid(self, holder: Tile, kind: ir.TileType) -> None:
        valid = flat_valid(kind.shape, kind.valid_shape, self.span)
        declared = holder.valid or (holder.rows, holder.cols)
        if valid != declared:
            self.emit("setvalid", holder, self.scalar(valid[0]), self.scalar(valid[1]))

    def _assign_array(self, target: ir.Var, value: ir.Expr) -> None:
        name = identifier(target.name)
        if isinstance(value, ir.Call) and value.op == "array.create":
            self.arrays[name] = (value.arguments["extent"], value.arguments["dtype"])
            return
        kind = target.type
        assert isinstance(kind, ir.ArrayType)
        source = value.arguments["array"] if isinstance(value, ir.Call) else value
        copy_array(self, name, kind, source)
        if isinstance(value, ir.Call) and value.op == "array.update_element":
            arguments = value.arguments
            self.emit("aset", ArrayRef(name), self.scalar(arguments["index"]), self.scalar(arguments["value"]))

    def _tensor_view(self, target: ir.Var, value: ir.Expr) -> None:
        if isinstance(value, ir.Call) and value.op not in VIEW_OPS:
            self.effect(value)
            return
        name = identifier(target.name)
        kind = target.type
        assert isinstance(kind, ir.TensorType)
        self.tensors[name] = (len(kind.shape), kind.dtype)
        self._named(name, target.author)
        emit_view(self, TensorRef(name), value)

    def _on_evaluate(self, stmt: ir.Evaluate) -> None:
        call = stmt.value
        if not isinstance(call, ir.Call) or call.op == "system.nothing":
            return
        if call.op in ("tensor.write", "tile.write"):
            first = call.arguments["tensor" if call.op == "tensor.write" else "tile"]
            source = self.element_source(first)
            touched = (source,) if isinstance(source, Tile) else ()
            self.emit(
                "sstore",
                source,
                self.operand_list(call.arguments["indices"]),
                self.scalar(call.arguments["value"]),
                writes=touched,
                reads=touched,
            )
            return
        if call.op in RING_DECLARATIONS:
            self._ring(call)
            return
        if isinstance(call.type, ir.TileType):
            self._call_tile("value", call)
            return
        self.effect(call)

    def _ring(self, call: ir.Call) -> None:
        """The pushes of a ring know its depth; its declaration stays for what compares both sides."""
        number, slots = call.arguments.get("id") or 0, call.arguments.get("slot_num") or 0
        self._rings[number] = slots
        ring = {name: call.arguments[name] for name in ("dir_mask", "slot_size")}
        side = "aic" if "aic_" in call.op else "aiv"
        self._instruction(f"ring_{side}", [], {**ring, "slots": slots, "id": number}, ())

    def other_scalar_call(self, call: ir.Call, target: Register) -> None:
        if call.op in RING_BASES:
            self.emit("smov.int32", target, 0)
            return
        if call.op == "prefetch.wait":
            self.emit("smov.bool", target, 1)
            return
        if call.op in CORE_COUNTS:
            self.emit("smov.index", target, CORE_COUNTS[call.op] * self.clusters)
            return
        super().other_scalar_call(call, target)

    def effect(self, call: ir.Call) -> None:
        """An operation without a tile result: stores, barriers, transfers."""
        if self.rank_effect(call):
            return
        if call.op == "system.syncall" and call.arguments["mode"] == "soft":
            a = call.arguments
            operands = [self.tensor(a["gm_workspace"]), self.scalar(ir.as_expr(a["used_cores"]))]
            self._instruction("syncall_soft", operands, {"core_type": a["core_type"]}, ())
            return
        lowered = operations.instruction_of(call)
        if lowered is None and isinstance(call.type, ir.NoneType):
            return
        if lowered is None:
            raise CompileError(f"{call.op} cannot run in a kernel", self.span)
        head = [] if lowered.destination is None else [self.operand(lowered.destination)]
        operands = head + [self.operand(o) for o in lowered.operands]
        attributes = {**lowered.attributes, **matrix_attributes(call)}
        if lowered.instruction.startswith("tpush_") and (slots := self._rings.get(attributes.get("id") or 0)):
            attributes["slots"] = slots
        self._instruction(lowered.instruction, operands, attributes, ())

    def _instruction(
        self, mnemonic: str, operands: list[Any], attributes: dict[str, Any], writes: tuple[Tile, ...], **fields: Any
    ) -> None:
        reads = tuple(o for o in operands if isinstance(o, Tile) and o not in writes)
        self.emit(mnemonic, *operands, attributes=attributes, writes=writes, reads=reads, **fields)

    def _on_for(self, stmt: ir.For) -> None:
        start, stop, step = self.scalar(stmt.start), self.scalar(stmt.stop), self.scalar(stmt.step)
        self.block.append(
            Loop(Register(identifier(stmt.var.name)), start, stop, step, self._nested(stmt.body), self.span)
        )

    def _on_while(self, stmt: ir.While) -> None:
        head: list[Node] = []
        saved = self.block
        self.block = head
        condition = self.scalar(stmt.condition)
        self.block = saved
        self.block.append(WhileLoop(head, condition, self._nested(stmt.body), self.span))

    def _on_if(self, stmt: ir.If) -> None:
        condition = self.scalar(stmt.condition)
        self.block.append(Branch(condition, self._nested(stmt.then_body), self._nested(stmt.else_body), self.span))

    def _on_break(self, stmt: ir.Break) -> None:
        self.block.append(Jump("break", self.span))

    def _on_continue(self, stmt: ir.Continue) -> None:
        self.block.append(Jump("continue", self.span))

    def _on_return(self, stmt: ir.Return) -> None:
        self.block.append(Jump("ret", self.span))

    def _on_scope(self, stmt: ir.Scope) -> None:
        saved = self._stage
        if stmt.kind == "stage":
            self._stage = (*saved, (stmt.attrs["loop"], stmt.attrs["stage"]))
        self._statements(stmt.body)
        self._stage = saved

    # --- tile operations ---

    def _call_tile(self, name: str, call: ir.Call, declared: ir.TileType | None = None) -> Tile:
        handler = getattr(self, f"_{call.op.replace('.', '_')}", None)
        if handler is not None:
            return handler(name, call)
        lowered = operations.instruction_of(call)
        if lowered is None:
            raise CompileError(f"{call.op} has no instruction", self.span)
        kind = call.type
        assert isinstance(kind, ir.TileType)
        operands = [self.operand(o) for o in lowered.operands]
        if lowered.destination is not None:
            owner = self.tile_of(lowered.destination)
            result = self._alias(name, owner, kind)
            self.set_valid(result, kind)
            reads = tuple(o for o in operands if isinstance(o, Tile))
            if not _replaces(lowered.instruction, owner, result):
                reads = (owner, *reads)
            self.emit(
                lowered.instruction,
                owner if result.valid == owner.valid else result,
                *operands,
                attributes={**lowered.attributes, **matrix_attributes(call)},
                writes=(owner,),
                reads=reads,
            )
            return result
        result = self.new_tile(name, declared if declared is not None and declared.memref is not None else kind)
        self.set_valid(result, kind)
        attributes = {**lowered.attributes, **matrix_attributes(call)}
        self._instruction(lowered.instruction, [result, *operands], attributes, (result,), may_share=lowered.may_share)
        return result

    def _multiple(self, target: ir.Var, call: ir.Call) -> None:
        lowered = operations.instruction_of(call)
        if lowered is None:
            raise CompileError(f"{call.op} has no instruction", self.span)
        kinds = call.type.items  # type: ignore[attr-defined]
        results, authors = [], target.author.split(",")
        for i, kind in enumerate(kinds):
            self._author = authors[i] if i < len(authors) else ""
            results.append(self.new_tile(f"{target.name}_{i}", kind))
        operands = [self.operand(o) for o in lowered.operands]
        self._instruction(lowered.instruction, [*results, *operands], dict(lowered.attributes), tuple(results))
        self.tuples[target.name] = results

    def _alias(
        self, name: str, owner: Tile, kind: ir.TileType, offset_bytes: int = 0, stride: int | None = None
    ) -> Tile:
        return self.new_tile(
            name,
            kind_in(kind, owner.space),
            root=owner,
            offset_bytes=offset_bytes,
            stride=owner.stride if stride is None else stride,
        )

    def _crossing(self, name: str, call: ir.Call) -> Tile:
        """A transfer between the cube and the lanes, separated into its two ends later."""
        kind = call.type
        assert isinstance(kind, ir.TileType)
        result = self.new_tile(name, kind)
        self.set_valid(result, kind)
        source = self.tile_of(call.arguments["x"])
        self._instruction("cross", [result, source], {"split": int(call.arguments["split"])}, (result,))
        return result

    _tile_aiv_shard = _tile_aic_gather = _crossing

    def _tile_create(self, name: str, call: ir.Call) -> Tile:
        kind = call.type
        assert isinstance(kind, ir.TileType)
        result = self.new_tile(name, kind)
        self.set_valid(result, kind)
        return result

    def _tile_set_validshape(self, name: str, call: ir.Call) -> Tile:
        kind = call.type
        assert isinstance(kind, ir.TileType)
        owner = self.tile_of(next(iter(call.arguments.values())))
        result = self._alias(name, owner, kind)
        self.set_valid(result, kind)
        return result

    def _tile_slice(self, name: str, call: ir.Call) -> Tile:
        source, kind = call.arguments["tile"], call.type
        assert isinstance(kind, ir.TileType)
        owner = self.tile_of(source)
        offset = flat_offset(source.type.shape, call.arguments["offset"])
        if offset is None:
            return self._extracted(name, call, owner, kind)
        element = offset[0] * owner.row_stride + offset[1]
        result = self._alias(name, owner, kind, element * owner.element_bytes, owner.row_stride)
        self.set_valid(result, kind)
        return result

    def _extracted(self, name: str, call: ir.Call, owner: Tile, kind: ir.TileType) -> Tile:
        """A window at a run-time offset is copied out."""
        result = self.new_tile(name, kind_in(kind, owner.space))
        self.set_valid(result, kind)
        row, col = (self.scalar(o) for o in matrix_offset(call.arguments["tile"].type.shape, call.arguments["offset"]))
        self._instruction("textract", [result, owner, row, col], {}, (result,))
        return result

    def _tile_reshape(self, name: str, call: ir.Call) -> Tile:
        kind = call.type
        assert isinstance(kind, ir.TileType)
        owner = self.tile_of(call.arguments["tile"])
        rows, cols = flat_shape(kind.shape)
        packed = owner.row_stride == owner.cols or owner.rows == 1
        if packed or (rows, cols) == (owner.rows, owner.cols):
            result = self._alias(name, owner, kind, 0, 0 if packed else owner.stride)
            self.set_valid(result, kind)
            return result
        result = self.new_tile(name, kind_in(kind, owner.space))
        self.set_valid(result, kind)
        self._instruction("treshape", [result, owner], {}, (result,))
        return result

    def _tile_reinterpret_view(self, name: str, call: ir.Call) -> Tile:
        kind = call.type
        assert isinstance(kind, ir.TileType)
        owner = self.tile_of(next(iter(call.arguments.values())))
        result = self._alias(name, owner, kind, 0, 0)
        self.set_valid(result, kind)
        return result

    def _tile_transpose_view(self, name: str, call: ir.Call) -> Tile:
        kind = call.type
        assert isinstance(kind, ir.TileType)
        owner = self.tile_of(next(iter(call.arguments.values())))
        result = self.new_tile(name, kind_in(kind, owner.space))
        self.set_valid(result, kind)
        self._instruction("tmov", [result, owner], {"transpose": 1}, (result,))
        return result


def matrix_attributes(call: ir.Call) -> dict[str, Any]:
    """Attributes that placement put on a product."""
    return {k: v for k, v in call.attrs.items() if k in ("a_trans", "b_trans")}


def kind_in(kind: ir.TileType, space: str) -> ir.TileType:
    """``kind`` in the memory space with text name ``space``."""
    member = next(s for s in MemorySpace if s.name.lower() == space)
    return ir.TileType(kind.shape, kind.dtype, member, kind.view, None)


def _replaces(mnemonic: str, owner: Tile, result: Tile) -> bool:
    """Whether the instruction overwrites all of ``owner``, so that what was there before is dead."""
    row = INSTRUCTIONS.get(mnemonic)
    overwrites = row is not None and row.operands[0].access == "out"
    return overwrites and owner.root is None and result.valid == owner.valid


__all__ = ["KernelLowering", "kernel_params"]
