"""Which instructions an operation ends in, and whether they have kernels: the facts behind the coverage page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Assign, Call, Evaluate, Expr, For, If, Stmt, TensorType, TileType, TupleType, Var
from pypto.ir.operations import table
from pypto.ir.operations.emitter import Emitter, renamed
from pypto.ir.operations.lower import Lowered, instruction_of
from pypto.ir.operations.row import Generation

MACHINE = frozenset({"sload", "sstore", "dim", "setvalid", "sblockidx", "sblocknum", "ssubblock", "aget", "aset"})
"""Instructions over scalar registers, executed by the machine itself (docs/architecture.md 1.2)."""


@dataclass(frozen=True)
class Reach:
    """What one call becomes: its instructions in order; ``placed`` when the placement pass decides instead."""

    instructions: tuple[str, ...]
    placed: bool = False


def reach(call: Call, generation: Generation) -> Reach:
    """Expand ``call`` for a chip and check every instruction.

    Raises the ``ValueError`` of the type rules or of the kernel table when some step does not exist for the dtypes.
    """
    row = table.row(call.op)
    statements: list[Stmt] = []
    names = iter(range(10**6))
    emitter = Emitter(statements, lambda base: f"{base}_{next(names)}", generation)
    if row.namespace != "tensor":
        emitter.expand(call)
    elif row.tile_form is not None:
        emitter.in_kernel(on_chip(call, row.stays_in_memory))
    else:
        twin = table.find(call.op.replace("tensor.", "tile."))
        if twin is None or twin.name in _PLACED:
            return Reach((), placed=True)
        emitter.tile(twin.name, **renamed(row, twin, on_chip(call, ())))
    return Reach(tuple(_checked(statements)), placed=row.namespace == "tensor" and row.tile_form is None)


def _checked(statements: list[Stmt]) -> Iterator[str]:
    for call in calls_of(statements):
        lowered = instruction_of(call)
        if lowered is not None:
            check_kernel(call, lowered)
            yield lowered.instruction


_PLACED = frozenset({"tile.create", "tile.assemble"})


def on_chip(call: Call, stays: tuple[str, ...]) -> Call:
    """The call with its tensor operands held in tiles."""
    arguments = {
        name: Var(value.name, _as_tile(value.type))
        if isinstance(value, Var) and isinstance(value.type, TensorType) and name not in stays
        else value
        for name, value in call.arguments.items()
    }
    return replace(call, arguments=arguments)


def _as_tile(kind: TensorType) -> TileType:
    return TileType(tuple(d for d in kind.shape if isinstance(d, int)), kind.dtype, MemorySpace.Vec)


def calls_of(statements: list[Stmt]) -> Iterator[Call]:
    """The operation calls of a statement list, inner blocks included."""
    for stmt in statements:
        if isinstance(stmt, (Assign, Evaluate)) and isinstance(stmt.value, Call):
            yield stmt.value
        elif isinstance(stmt, For):
            yield from calls_of(stmt.body)
        elif isinstance(stmt, If):
            yield from calls_of(stmt.then_body)
            yield from calls_of(stmt.else_body)


def check_kernel(call: Call, lowered: Lowered) -> None:
    """``ValueError`` when no kernel executes the instruction for the dtypes of its operands."""
    from pypto.ir.instructions import lookup

    if lowered.instruction in MACHINE:
        return
    row = lookup(lowered.instruction)
    if row.kernel:
        from pypto.sim.kernels.catalogue import kernel

        kernel(row, tuple(_operand_dtype(value) for value in (*_destinations(call, lowered), *lowered.operands)))


def _destinations(call: Call, lowered: Lowered) -> tuple[Expr, ...]:
    if lowered.destination is not None:
        return (lowered.destination,)
    kinds = call.type.items if isinstance(call.type, TupleType) else (call.type,)
    return tuple(Var(f"result{position}", kind) for position, kind in enumerate(kinds))


def _operand_dtype(value: Expr | tuple[Expr, ...]) -> DataType | None:
    if isinstance(value, Expr) and isinstance(value.type, (TileType, TensorType)):
        return value.type.dtype
    return None
