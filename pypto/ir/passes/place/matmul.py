"""Matrix products: operands staged through Mat to Left and Right, split to fit the L0 buffers (spec ops 12.1)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import FP32, INT32
from pypto.ir.enums import AtomicType, MemorySpace
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims
from pypto.ir.passes.place.movement import Movement
from pypto.ir.passes.place.values import Product, Value, Window

FRACTAL = 16


class MatrixProducts(Movement):
    """Places ``matmul`` and its relatives."""

    # --- operands ---

    def operand(self, value: Value) -> ir.Expr:
        """A matrix operand in Mat (or already in Left/Right)."""
        if isinstance(value, ir.Expr) and value.type.space in (MemorySpace.Left, MemorySpace.Right):  # type: ignore[attr-defined]
            return value
        return self.on_chip(value, MemorySpace.Mat)

    def matmul(self, lhs: Value, rhs: Value, a_trans: bool = False, b_trans: bool = False) -> Value:
        """``lhs @ rhs`` in Acc, or a :class:`Product` when Acc cannot hold it."""
        a, b = self._pair(lhs, rhs)
        rows, inner, cols = self._sizes(a, b, a_trans, b_trans)
        kind = self._product_type(a, b, a_trans, b_trans)
        if rows * cols * 4 > self.capacity["acc"]:
            return Product(a, b, a_trans, b_trans, kind)
        return self._accumulated(None, a, b, a_trans, b_trans)

    def matmul_acc(self, acc: Value, lhs: Value, rhs: Value, a_trans: bool, b_trans: bool, init: Any) -> ir.Expr:
        """``acc += lhs @ rhs`` (or ``acc =`` when ``init`` holds) in place."""
        a, b = self._pair(lhs, rhs)
        target = self.on_chip(acc, MemorySpace.Acc) if not isinstance(acc, Window) else self._zero_like(acc)
        return self._accumulated(target, a, b, a_trans, b_trans, init)

    def _zero_like(self, acc: Window) -> ir.Expr:
        raise CompileError(
            f"the accumulator {acc.base.name!r} is a tensor in GM; start it with pl.matmul(..., out_dtype=pl.FP32)",
            self.span,
        )

    def _pair(self, lhs: Value, rhs: Value) -> tuple[ir.Expr, ir.Expr]:
        a, b = self.operand(lhs), self.operand(rhs)
        if a.type.dtype != b.type.dtype:  # type: ignore[attr-defined]
            a, b = self._same_dtype(a, b)
        return a, b

    def _same_dtype(self, a: ir.Expr, b: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """An operand held at accumulator precision is narrowed on its way to Mat (spec ops 12, [Q])."""
        for wide, narrow, first in ((a, b, True), (b, a, False)):
            if wide.type.dtype == FP32 and narrow.type.dtype.get_bit() == 16:  # type: ignore[attr-defined]
                kind = ir.TileType(wide.type.shape, narrow.type.dtype, MemorySpace.Mat, wide.type.view)  # type: ignore[attr-defined]
                moved = self.tile_variable("narrowed", kind)
                self.emit(
                    ir.Assign(
                        moved,
                        ir.Call(
                            "tile.move",
                            {"tile": wide, "target_memory": MemorySpace.Mat, "blayout": None, "slayout": None},
                            kind,
                            {},
                            self.span,
                        ),
                        self.span,
                    )
                )
                return (moved, narrow) if first else (narrow, moved)
        raise CompileError(
            f"matmul operands are {self.describe(a)} and {self.describe(b)}; equal dtypes are needed", self.span
        )

    @staticmethod
    def _sizes(a: ir.Expr, b: ir.Expr, a_trans: bool, b_trans: bool) -> tuple[int, int, int]:
        ra, ca = a.type.shape[-2:]  # type: ignore[attr-defined]
        rb, cb = b.type.shape[-2:]  # type: ignore[attr-defined]
        return (ca if a_trans else ra), (ra if a_trans else ca), (rb if b_trans else cb)

    def _product_type(self, a: ir.Expr, b: ir.Expr, a_trans: bool, b_trans: bool) -> ir.TileType:
        rows, _, cols = self._sizes(a, b, a_trans, b_trans)
        va, vb = a.type.valid_shape, b.type.valid_shape  # type: ignore[attr-defined]
        valid = ((va[-1] if a_trans else va[-2]), (vb[-2] if b_trans else vb[-1]))
        dtype = FP32 if a.type.dtype.is_float() else INT32  # type: ignore[attr-defined]
        view = None if dims.all_equal(valid, (rows, cols)) else ir.TileView(valid_shape=valid)
        return ir.TileType((rows, cols), dtype, MemorySpace.Acc, view)

    # --- one accumulator ---

    def _accumulated(
        self, acc: ir.Expr | None, a: ir.Expr, b: ir.Expr, a_trans: bool, b_trans: bool, init: Any = None
    ) -> ir.Expr:
        rows, inner, cols = self._sizes(a, b, a_trans, b_trans)
        depth = self._depth(rows, inner, cols, a, b)
        if depth >= inner:
            left = self._staged(a, MemorySpace.Left)
            right = self._staged(b, MemorySpace.Right)
            return self._multiply(acc, left, right, a_trans, b_trans, init)
        result = acc
        for number, start in enumerate(range(0, inner, depth)):
            size = min(depth, inner - start)
            with self.stage(number % 2):
                left = self._slice(a, a_trans, 0, start, rows, size, MemorySpace.Left)
                right = self._slice(b, b_trans, start, 0, size, cols, MemorySpace.Right)
                result = self._multiply(result, left, right, a_trans, b_trans, init if number == 0 else None)
        assert result is not None
        return result

    @abstractmethod
    def stage(self, number: int) -> Any:
        """Statements of one of two alternating copies; defined by the part that holds the blocks."""

    def _depth(self, rows: int, inner: int, cols: int, a: ir.Expr, b: ir.Expr) -> int:
        """Columns of K per step: everything when it fits, else what half of Left and Right hold."""
        width = a.type.dtype.get_byte()  # type: ignore[attr-defined]
        placed = [v.type.space for v in (a, b)]  # type: ignore[attr-defined]
        if MemorySpace.Left in placed or MemorySpace.Right in placed:
            return inner
        if rows * inner * width <= self.capacity["left"] and inner * cols * width <= self.capacity["right"]:
            return inner
        half_left, half_right = self.capacity["left"] // 2, self.capacity["right"] // 2
        depth = min(half_left // (rows * width), half_right // (cols * width)) // FRACTAL * FRACTAL
        if depth < FRACTAL:
            raise CompileError(
                f"one fractal of K needs {rows * FRACTAL * width:,} bytes of Left and "
                f"{cols * FRACTAL * width:,} of Right; half of each is {half_left:,}",
                self.span,
                "compute the product in smaller blocks of M or N",
            )
        return depth

    def _staged(self, tile: ir.Expr, space: MemorySpace) -> ir.Expr:
        here = tile.type.space  # type: ignore[attr-defined]
        return (
            tile
            if here in (MemorySpace.Left, MemorySpace.Right)
            else self.emitter.tile("move", tile=tile, target_memory=space)
        )

    def _slice(
        self, tile: ir.Expr, transposed: bool, row: int, col: int, rows: int, cols: int, space: MemorySpace
    ) -> ir.Expr:
        """The block at (row, col) of the logical operand; transposed operands are stored the other way round."""
        if transposed:
            row, col, rows, cols = col, row, cols, rows
        return self.emitter.tile(
            "extract",
            src=tile,
            index_row=ir.index(row),
            index_col=ir.index(col),
            shape=(rows, cols),
            target_memory=space,
        )

    def _multiply(
        self, acc: ir.Expr | None, left: ir.Expr, right: ir.Expr, a_trans: bool, b_trans: bool, init: Any
    ) -> ir.Expr:
        if isinstance(init, ir.Const):
            init = bool(init.value)
        if init is True and acc is not None:
            return self._write_product("tile.matmul_into", acc, left, right, a_trans, b_trans)
        if acc is None:
            return self._write_product("tile.matmul", None, left, right, a_trans, b_trans)
        if init is None or init is False:
            return self._write_product("tile.matmul_acc", acc, left, right, a_trans, b_trans)
        with self.block() as overwrite:
            self._write_product("tile.matmul_into", acc, left, right, a_trans, b_trans)
        with self.block() as accumulate:
            self._write_product("tile.matmul_acc", acc, left, right, a_trans, b_trans)
        self.emit(ir.If(init, overwrite, accumulate, span=self.span))
        return acc

    def _write_product(
        self, op: str, acc: ir.Expr | None, left: ir.Expr, right: ir.Expr, a_trans: bool, b_trans: bool
    ) -> ir.Expr:
        arguments: dict[str, Any] = {} if acc is None else {"acc": acc}
        arguments.update(lhs=left, rhs=right)
        if op == "tile.matmul_acc":
            arguments["init_cond"] = None
        attrs = {k: 1 for k, v in (("a_trans", a_trans), ("b_trans", b_trans)) if v}
        kind = acc.type if acc is not None else self._product_type(left, right, a_trans, b_trans)
        if isinstance(acc, ir.Var):
            self.drained.pop(acc, None)
        target = self.tile_variable("product", kind)
        self.emit(ir.Assign(target, ir.Call(op, arguments, kind, attrs, self.span), self.span))
        return target

    # --- products larger than the accumulator ---

    def store_product(self, value: Product, window: Window, offsets: tuple[ir.Expr, ...], atomic: AtomicType) -> None:
        """Compute and drain the product in blocks of rows and columns."""
        rows, cols = value.type.shape
        block_rows, block_cols = self._block_sizes(rows, cols, value)
        number = 0
        for row in range(0, rows, block_rows):
            for col in range(0, cols, block_cols):
                with self.stage(number % 2):
                    self._store_block(
                        value,
                        window,
                        offsets,
                        atomic,
                        row,
                        col,
                        min(block_rows, rows - row),
                        min(block_cols, cols - col),
                    )
                number += 1

    def _block_sizes(self, rows: int, cols: int, value: Product) -> tuple[int, int]:
        width = value.lhs.type.dtype.get_byte()  # type: ignore[attr-defined]
        limit_rows = self.capacity["left"] // 2 // (FRACTAL * 4 * width)
        limit_cols = self.capacity["right"] // 2 // (FRACTAL * 4 * width)
        block_cols = min(cols, limit_cols // FRACTAL * FRACTAL, 256)
        block_rows = min(
            rows, limit_rows // FRACTAL * FRACTAL, self.capacity["acc"] // 2 // (4 * block_cols) // FRACTAL * FRACTAL
        )
        return block_rows, block_cols

    def _store_block(
        self,
        value: Product,
        window: Window,
        offsets: tuple[ir.Expr, ...],
        atomic: AtomicType,
        row: int,
        col: int,
        rows: int,
        cols: int,
    ) -> None:
        _, inner, _ = self._sizes(value.lhs, value.rhs, value.a_trans, value.b_trans)
        depth = self._depth_for(rows, cols, inner, value)
        acc: ir.Expr | None = None
        for start in range(0, inner, depth):
            size = min(depth, inner - start)
            left = self._slice(value.lhs, value.a_trans, row, start, rows, size, MemorySpace.Left)
            right = self._slice(value.rhs, value.b_trans, start, col, size, cols, MemorySpace.Right)
            acc = self._multiply(acc, left, right, value.a_trans, value.b_trans, None)
        assert acc is not None
        at = list(offsets)
        at[-2] = ir.as_expr(dims.add(ir.as_dim(at[-2]), row))
        at[-1] = ir.as_expr(dims.add(ir.as_dim(at[-1]), col))
        self.store(acc, window, tuple(at), atomic)

    def _depth_for(self, rows: int, cols: int, inner: int, value: Product) -> int:
        width = value.lhs.type.dtype.get_byte()  # type: ignore[attr-defined]
        depth = min(self.capacity["left"] // 2 // (rows * width), self.capacity["right"] // 2 // (cols * width))
        return inner if depth >= inner else max(FRACTAL, depth // FRACTAL * FRACTAL)
