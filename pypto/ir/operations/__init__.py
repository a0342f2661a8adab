"""The operation table: one row per operation, read by parser, printer, lowering and documentation."""

from __future__ import annotations

from pypto.ir.operations import (
    arrays,
    bitwise,
    cast,
    compare,
    creation,
    crosscore,
    distributed,
    distributed_collectives,
    elementwise,
    expand,
    gather,
    identity,
    mathematics,
    matmul,
    movement,
    prefetch,
    reduction,
    reshape,
    scatter,
    slicing,
    sort,
    synchronise,
    transform,
)
from pypto.ir.operations.calls import NAMESPACES, build, call, exists
from pypto.ir.operations.convert import cast_chain
from pypto.ir.operations.emitter import Emitter
from pypto.ir.operations.errors import OperandTypeError, OperandValueError, UnknownOperationError
from pypto.ir.operations.lower import Lowered, instruction_of
from pypto.ir.operations.parameters import Parameter
from pypto.ir.operations.row import Builder, Expansion, Lowering, Operation
from pypto.ir.operations.scalars import binary, scalar_cast, unary
from pypto.ir.operations.table import define, find, register, row, rows

FAMILIES = (
    arrays,
    bitwise,
    cast,
    compare,
    creation,
    crosscore,
    elementwise,
    expand,
    gather,
    identity,
    mathematics,
    matmul,
    movement,
    prefetch,
    reduction,
    reshape,
    scatter,
    slicing,
    sort,
    synchronise,
    transform,
    distributed,
    distributed_collectives,
)

__all__ = [
    "FAMILIES",
    "NAMESPACES",
    "Builder",
    "Emitter",
    "Expansion",
    "Lowered",
    "Lowering",
    "OperandTypeError",
    "OperandValueError",
    "Operation",
    "Parameter",
    "UnknownOperationError",
    "binary",
    "build",
    "call",
    "cast_chain",
    "define",
    "exists",
    "find",
    "instruction_of",
    "register",
    "row",
    "rows",
    "scalar_cast",
    "unary",
]
