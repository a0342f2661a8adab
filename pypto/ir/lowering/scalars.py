"""Scalar expressions as scalar instructions (docs/architecture.md 1.2)."""

from __future__ import annotations

import re
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import BOOL, INDEX, DataType
from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import ArrayRef, Instruction, Loop, Node, Register, TensorRef
from pypto.ir.lowering.statements import StatementLowering

BINARY = {
    "+": "sadd",
    "-": "ssub",
    "*": "smul",
    "/": "sdiv",
    "//": "sfloordiv",
    "%": "smod",
    "<<": "sshl",
    ">>": "sshr",
    "min": "smin",
    "max": "smax",
    "==": "seq",
    "!=": "sne",
    "<": "slt",
    "<=": "sle",
    ">": "sgt",
    ">=": "sge",
}
LOGICAL = {"and": "land.bool", "or": "lor.bool"}
UNARY = {"-": "sneg", "~": "snot", "abs": "sabs"}
POSITION = {
    "tile.get_block_idx": "sblockidx",
    "tile.get_block_num": "sblocknum",
    "tile.get_subblock_idx": "ssubblock",
    "tensor.get_block_idx": "sblockidx",
    "tensor.get_block_num": "sblocknum",
    "tensor.get_subblock_idx": "ssubblock",
}


def identifier(name: str) -> str:
    """A register name the text accepts."""
    return re.sub(r"\W", "_", name)


def constant_int(value: Any) -> int:
    """A compile-time integer given as a number or a literal."""
    return int(value.value or 0) if isinstance(value, ir.Const) else int(value)


def copy_array(lowering: ScalarLowering, name: str, kind: ir.ArrayType, source: ir.Expr) -> None:
    """Bind ``name`` to the elements of ``source``; nothing to do when it is that array already."""
    other = lowering.array(source)
    if other.name == name:
        return
    lowering.arrays.setdefault(name, (kind.extent, kind.dtype))
    index, element = lowering.temporary(), lowering.temporary()
    copied: list[Node] = [
        Instruction("aget", [element, other, index], span=lowering.span),
        Instruction("aset", [ArrayRef(name), index, element], span=lowering.span),
    ]
    lowering.block.append(Loop(index, 0, kind.extent, 1, copied, lowering.span))


class ScalarLowering(StatementLowering):
    """Emits scalar instructions into the current block."""

    block: list[Node]
    arrays: dict[str, tuple[int, DataType]]

    def __init__(self, function: ir.Function):
        super().__init__()
        self.function = function
        self.block = []
        self._temporaries = 0
        self._symbols: dict[str, Register] = {}
        self._prologue: list[Node] = []

    def _nested(self, body: list[ir.Stmt]) -> list[Node]:
        inner: list[Node] = []
        saved = self.block
        self.block = inner
        self._statements(body)
        self.block = saved
        return inner

    def emit(self, mnemonic: str, *operands: Any, **fields: Any) -> Instruction:
        made = Instruction(mnemonic, list(operands), span=self.span, **fields)
        self.block.append(made)
        return made

    def temporary(self) -> Register:
        self._temporaries += 1
        return Register(f"_{self._temporaries}")

    # --- operands ---

    def scalar(self, expr: ir.Dim, into: Register | None = None) -> Any:
        """``expr`` as an operand: a literal or a register (``into`` when given)."""
        if isinstance(expr, int):
            return self._kept(expr, INDEX, into)
        if isinstance(expr, ir.Const):
            return self._kept(self.literal(expr), expr.dtype, into)
        if isinstance(expr, ir.Var):
            return self._kept(Register(identifier(expr.name)), self._dtype(expr), into)
        if isinstance(expr, ir.Symbol):
            return self._kept(self.symbol(expr.name), INDEX, into)
        target = into or self.temporary()
        if isinstance(expr, ir.Binary):
            self._binary(expr, target)
        elif isinstance(expr, ir.Unary):
            self._unary(expr, target)
        elif isinstance(expr, ir.Cast):
            self._cast(expr, target)
        elif isinstance(expr, ir.Call):
            self.scalar_call(expr, target)
        else:
            raise CompileError(f"{type(expr).__name__} has no scalar value", expr.span)
        return target

    def _kept(self, operand: Any, dtype: DataType, into: Register | None) -> Any:
        if into is None or operand == into:
            return operand
        self.emit(f"smov.{self._suffix(dtype)}", into, operand)
        return into

    @staticmethod
    def _suffix(dtype: DataType) -> str:
        return dtype.to_string()

    @staticmethod
    def _dtype(expr: ir.Expr) -> DataType:
        kind = expr.type
        return kind.dtype if isinstance(kind, ir.ScalarType) else INDEX

    @staticmethod
    def literal(expr: ir.Const) -> int | float:
        """The number a literal operand is written as; the invalid task id is -1."""
        if expr.value is None:
            return -1
        if expr.dtype.is_float():
            return float(expr.value)
        return int(expr.value)

    def symbol(self, name: str) -> Register:
        """The register that holds a dynamic extent, read once at the start of the kernel."""
        if name in self._symbols:
            return self._symbols[name]
        register = Register(identifier(name))
        if not any(p.name == name for p in self.function.params):
            source = self._source_of(name)
            self._prologue.append(
                Instruction("dim", [register, TensorRef(identifier(source[0])), source[1]], span=self.function.span)
            )
        self._symbols[name] = register
        return register

    def _source_of(self, name: str) -> tuple[str, int]:
        for parameter in self.function.params:
            if isinstance(parameter.type, ir.TensorType):
                for axis, extent in enumerate(parameter.type.shape):
                    if isinstance(extent, ir.Symbol) and extent.name == name:
                        return parameter.name, axis
        raise CompileError(
            f"no parameter of {self.function.name!r} has the dynamic extent {name!r}", self.function.span
        )

    # --- operators ---

    def _binary(self, expr: ir.Binary, target: Register) -> None:
        left, right = self.scalar(expr.left), self.scalar(expr.right)
        if expr.op in LOGICAL:
            self.emit(LOGICAL[expr.op], target, left, right)
            return
        dtype = self._dtype(expr.left) if expr.dtype == BOOL else expr.dtype
        self.emit(f"{BINARY[expr.op]}.{self._suffix(dtype)}", target, left, right)

    def _unary(self, expr: ir.Unary, target: Register) -> None:
        operand = self.scalar(expr.operand)
        if expr.op == "not":
            self.emit("lnot.bool", target, operand)
        else:
            self.emit(f"{UNARY[expr.op]}.{self._suffix(expr.dtype)}", target, operand)

    def _cast(self, expr: ir.Cast, target: Register) -> None:
        source = self._dtype(expr.operand)
        operand = self.scalar(expr.operand)
        self.emit(f"scvt.{self._suffix(expr.dtype)}.{self._suffix(source)}", target, operand)

    # --- calls ---

    def scalar_call(self, call: ir.Call, target: Register) -> None:
        """A scalar-valued operation."""
        if call.op in POSITION:
            self.emit(POSITION[call.op], target)
        elif call.op == "tensor.dim":
            axis = constant_int(call.arguments["axis"])
            rank = len(call.arguments["tensor"].type.shape)
            self.emit("dim", target, self.tensor(call.arguments["tensor"]), axis % rank)
        elif call.op in ("tensor.read", "tile.read"):
            source = call.arguments["tensor" if call.op == "tensor.read" else "tile"]
            self.emit("sload", target, self.element_source(source), self.operand_list(call.arguments["indices"]))
        elif call.op == "array.get_element":
            self.emit("aget", target, self.array(call.arguments["array"]), self.scalar(call.arguments["index"]))
        else:
            self.other_scalar_call(call, target)

    def other_scalar_call(self, call: ir.Call, target: Register) -> None:
        raise CompileError(f"{call.op} has no scalar value here", call.span)

    def operand_list(self, values: Any) -> tuple[Any, ...]:
        """A list operand."""
        return tuple(self.scalar(v) for v in values)

    def tensor(self, expr: ir.Expr) -> TensorRef:
        if not isinstance(expr, ir.Var):
            raise CompileError("a tensor operand is not a named tensor", expr.span)
        return TensorRef(identifier(expr.name))

    def element_source(self, expr: ir.Expr) -> Any:
        return self.tensor(expr)

    def array(self, expr: ir.Expr) -> ArrayRef:
        if not isinstance(expr, ir.Var):
            raise CompileError("an array operand is not a named array", expr.span)
        return ArrayRef(identifier(expr.name))
