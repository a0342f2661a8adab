"""Matrix products: operands staged through Mat to Left and Right, split to fit the L0 buffers (spec ops 12.1)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

from pypto.ir import nodes as ir
from pypto.ir.dtype import FP32, DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims
from pypto.ir.operations.matmul import accumulator_dtype
from pypto.ir.passes.place.movement import Movement
from pypto.ir.passes.place.values import Operand, Value, Window

FRACTAL = 16


class Extents(NamedTuple):
    """M, K and N of a product, in elements."""

    rows: int
    inner: int
    cols: int


class Factors(NamedTuple):
    """The operands of one instruction, in Left and Right."""

    left: ir.Expr
    right: ir.Expr
    a_trans: bool
    b_trans: bool


class MatrixProducts(Movement):
    """Places ``matmul`` and its relatives."""

    # --- operands ---

    def operand(self, value: Value) -> ir.Expr:
        """A matrix operand in Mat (or already in Left/Right)."""
        if isinstance(value, ir.Expr) and value.type.space in (MemorySpace.Left, MemorySpace.Right):  # type: ignore[attr-defined]
            return value
        return self.read_only(value, MemorySpace.Mat)

    def operands(self, lhs: Operand, rhs: Operand) -> tuple[Operand, Operand]:
        """Both operands with one dtype; those on chip in Mat, tensors still in GM."""
        a, b = (v if isinstance(v.value, Window) else replace(v, value=self.operand(v.value)) for v in (lhs, rhs))
        if a.value.type.dtype == b.value.type.dtype:
            return a, b
        return self._narrowed(a, b.value.type.dtype), self._narrowed(b, a.value.type.dtype)

    def _narrowed(self, wide: Operand, dtype: Any) -> Operand:
        """An operand held at accumulator precision is narrowed on its way to Mat (spec ops 12, [Q])."""
        have = wide.value.type.dtype
        if have.get_bit() == 16 and dtype == FP32:
            return wide
        if have != FP32 or dtype.get_bit() != 16 or isinstance(wide.value, Window):
            raise CompileError(
                f"matmul operands are {self.describe(wide.value)} and of dtype {dtype.constant}; equal dtypes are "
                "needed",
                self.span,
                "convert one with pl.cast",
            )
        tile = wide.value
        kind = ir.TileType(tile.type.shape, dtype, MemorySpace.Mat, tile.type.view)
        moved = self.tile_variable("narrowed", kind)
        arguments = {"tile": tile, "target_memory": MemorySpace.Mat, "blayout": None, "slayout": None}
        self.emit(ir.Assign(moved, ir.Call("tile.move", arguments, kind, {}, self.span), self.span))
        return replace(wide, value=moved)

    @staticmethod
    def product_type(a: Operand, b: Operand) -> ir.TileType:
        """The product of two operands as it stands in Acc."""
        valid = (a.valid[0], b.valid[1])
        dtype = accumulator_dtype(a.value.type.dtype)
        view = None if dims.all_equal(valid, (a.shape[0], b.shape[1])) else ir.TileView(valid_shape=valid)
        return ir.TileType((a.shape[0], b.shape[1]), dtype, MemorySpace.Acc, view)

    # --- one accumulator ---

    def accumulate(
        self,
        acc: ir.Expr | None,
        a: Operand,
        b: Operand,
        size: Extents,
        depth: int,
        init: Any = None,
        bias: Operand | None = None,
    ) -> ir.Expr:
        """``acc += a @ b`` over ``size`` from where the operands in Mat begin, in steps of ``depth`` columns of K.

        Without ``acc`` the product gets a new accumulator; where ``init`` holds it is overwritten. A ``bias`` (one row
        in Mat) is what a new sum starts from.
        """
        if any(v.value.type.space in (MemorySpace.Left, MemorySpace.Right) for v in (a, b)):
            depth = size.inner
        elif not self._fits(size, depth, a) or bias is not None and size.cols > self._bias_columns():
            return self._in_bands(acc, a, b, size, depth, init, bias)
        row = None if bias is None else self._staged(bias, 1, size.cols, MemorySpace.Bias)
        if depth >= size.inner:
            left = self._staged(a, size.rows, size.inner, MemorySpace.Left)
            right = self._staged(b, size.inner, size.cols, MemorySpace.Right)
            return self._multiply(acc, Factors(left, right, a.transposed, b.transposed), init, row)
        for number, start in enumerate(range(0, size.inner, depth)):
            step = min(depth, size.inner - start)
            with self.stage(number % 2, f"split{self.span.line}"):
                left = self._staged(a.at(0, start), size.rows, step, MemorySpace.Left)
                right = self._staged(b.at(start, 0), step, size.cols, MemorySpace.Right)
                factors = Factors(left, right, a.transposed, b.transposed)
                acc = self._multiply(acc, factors, init, row) if number == 0 else self._multiply(acc, factors, None)
        return acc  # type: ignore[return-value]

    @abstractmethod
    def stage(self, number: int, loop: str) -> Any:
        """Statements of one of two alternating copies; defined by the part that holds the blocks."""

    def depth(self, whole: tuple[int, int], inner: int, dtype: DataType) -> int:
        """Columns of K per instruction for a product of ``whole`` rows and columns.

        Everything when it fits, else what half of Left and Right hold. Blocks follow the size of Acc, this does not:
        generations differ in it and have to add in the same order.
        """
        row_bytes, col_bytes = (min(extent, self.band_limit()) * dtype.get_byte() for extent in whole)
        left, right = self.capacity["left"], self.capacity["right"]
        if row_bytes * inner <= left and col_bytes * inner <= right:
            return inner
        return max(FRACTAL, min(left // 2 // row_bytes, right // 2 // col_bytes) // FRACTAL * FRACTAL)

    def _fits(self, size: Extents, depth: int, a: Operand) -> bool:
        """Whether Left and Right hold a step of ``depth``, and two of them where there are several."""
        copies = 1 if depth >= size.inner else 2
        width = a.value.type.dtype.get_byte() * min(depth, size.inner) * copies
        return size.rows * width <= self.capacity["left"] and size.cols * width <= self.capacity["right"]

    def _in_bands(
        self, acc: ir.Expr | None, a: Operand, b: Operand, size: Extents, depth: int, init: Any, bias: Operand | None
    ) -> ir.Expr:
        """A product of which Left or Right cannot hold a step of K: bands of rows and columns of one ``acc``."""
        if acc is None:
            acc, init = self.accumulator(self.product_type(a, b)), True
        rows = cols = self.band_limit()
        if bias is not None:
            cols = min(cols, self._bias_columns())
        for row in range(0, size.rows, rows):
            for col in range(0, size.cols, cols):
                part = Extents(min(rows, size.rows - row), size.inner, min(cols, size.cols - col))
                window = self.emitter.tile(
                    "slice", tile=acc, shape=(part.rows, part.cols), offset=(ir.index(row), ir.index(col))
                )
                start = None if bias is None else bias.at(0, col)
                self.accumulate(window, a.at(row, 0), b.at(0, col), part, depth, init, start)
        return acc

    def band_limit(self) -> int:
        """Rows (columns) of which half of Left (Right) holds 128 bytes of K each."""
        return min(self.capacity["left"], self.capacity["right"]) // 2 // 128

    def _bias_columns(self) -> int:
        return self.capacity["bias"] // 4

    def accumulator(self, kind: ir.TileType) -> ir.Expr:
        """A new accumulator of type ``kind``."""
        made = self.tile_variable("accumulator", kind)
        arguments = {"shape": kind.shape, "dtype": kind.dtype, "target_memory": MemorySpace.Acc}
        self.emit(ir.Assign(made, ir.Call("tile.create", arguments, kind, {}, self.span), self.span))
        return made

    def _staged(self, operand: Operand, rows: int, cols: int, space: MemorySpace) -> ir.Expr:
        """``rows`` x ``cols`` of the logical operand in ``space``; a transposed one is stored the other way round."""
        tile: ir.Expr = operand.value
        here = tile.type.space  # type: ignore[attr-defined]
        if here in (MemorySpace.Left, MemorySpace.Right):
            return tile
        row, col = operand.row, operand.col
        if operand.transposed:
            row, col, rows, cols = col, row, cols, rows
        if (row, col) == (0, 0) and tile.type.shape == (rows, cols):  # type: ignore[attr-defined]
            return self.emitter.tile("move", tile=tile, target_memory=space)
        return self.emitter.tile(
            "extract",
            src=tile,
            index_row=ir.as_expr(row),
            index_col=ir.as_expr(col),
            shape=(rows, cols),
            target_memory=space,
        )

    def _multiply(self, acc: ir.Expr | None, factors: Factors, init: Any, bias: ir.Expr | None = None) -> ir.Expr:
        if isinstance(init, ir.Const):
            init = bool(init.value)
        if bias is not None:
            return self._write_product(
                "tile.matmul_bias" if acc is None else "tile.matmul_bias_into", acc, factors, bias
            )
        if acc is None:
            return self._write_product("tile.matmul", None, factors)
        if not isinstance(init, ir.Expr):
            return self._write_product("tile.matmul_into" if init else "tile.matmul_acc", acc, factors)
        with self.block() as overwrite:
            self._write_product("tile.matmul_into", acc, factors)
        with self.block() as accumulate:
            self._write_product("tile.matmul_acc", acc, factors)
        self.emit(ir.If(init, overwrite, accumulate, span=self.span))
        return acc

    def _write_product(self, op: str, acc: ir.Expr | None, factors: Factors, bias: ir.Expr | None = None) -> ir.Expr:
        arguments: dict[str, Any] = {} if acc is None else {"acc": acc}
        arguments.update(lhs=factors.left, rhs=factors.right)
        if bias is not None:
            arguments["bias"] = bias
        if op == "tile.matmul_acc":
            arguments["init_cond"] = None
        a, b = Operand(factors.left, factors.a_trans), Operand(factors.right, factors.b_trans)
        kind = acc.type if acc is not None else self.product_type(a, b)
        if isinstance(acc, ir.Var):
            self.drained.pop(acc, None)
        target = self.tile_variable("product", kind)
        attrs = {k: 1 for k, v in (("a_trans", a.transposed), ("b_trans", b.transposed)) if v}
        self.emit(ir.Assign(target, ir.Call(op, arguments, kind, attrs, self.span), self.span))
        return target
