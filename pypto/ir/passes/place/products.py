"""Products larger than the memories of a cube core: computed in blocks, operands streamed from GM (spec ops 12.1).

A product that Acc holds is computed at once, in steps of K when its operands exceed Mat. A larger one waits for the
store that consumes it, which computes and drains one block of rows and columns after the other. Loops over blocks are
written out twice per iteration, so that two blocks (and, within one, two steps of K) have buffers of their own: the
loads of one copy overlap the products of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from math import prod
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX
from pypto.ir.enums import AtomicType, ForKind, MemorySpace
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims
from pypto.ir.operations.reshape import reshape_tile
from pypto.ir.operations.results import broadcast
from pypto.ir.operations.windows import positions
from pypto.ir.passes.place.matmul import FRACTAL, Extents, MatrixProducts
from pypto.ir.passes.place.values import Operand, Product, Value, Window

Term = tuple[Operand, Operand]
Body = Callable[[ir.Dim, int], None]
"""What one step of a loop does, from its start and length."""
LONG_K = 1024
"""From this K on draining a block takes little next to computing it: it gets all of Acc, not one of two halves."""


class BlockedProducts(MatrixProducts):
    """Places matrix products of any size."""

    def matmul(self, lhs: Value, rhs: Value, a_trans: bool = False, b_trans: bool = False) -> Value:
        """``lhs @ rhs`` in Acc, or a :class:`Product` when Acc cannot hold it."""
        term = self._term(lhs, rhs, a_trans, b_trans)
        kind = self._stack_type(term)
        if self._bytes(kind) > self.capacity["acc"]:
            return Product((term,), kind)
        return self._computed(None, term, kind)

    def matmul_acc(self, acc: Value, lhs: Value, rhs: Value, a_trans: bool, b_trans: bool, init: Any) -> Value:
        """``acc += lhs @ rhs`` (or ``acc =`` when ``init`` holds) in place."""
        if isinstance(acc, Window):
            raise CompileError(
                f"the accumulator {acc.base.name!r} is a tensor in GM; start it with pl.matmul(..., out_dtype=pl.FP32)",
                self.span,
            )
        term = self._term(lhs, rhs, a_trans, b_trans)
        if isinstance(acc, Product):
            return self._longer(acc, term, init)
        return self._computed(self.on_chip(acc, MemorySpace.Acc), term, self._stack_type(term), init)

    def _longer(self, acc: Product, term: Term, init: Any) -> Product:
        """A waiting sum with one more term; ``init`` must be known while it waits."""
        if isinstance(init, ir.Const):
            init = bool(init.value)
        if isinstance(init, ir.Expr):
            raise CompileError(
                f"init_cond must be known when compiling: the product has {self._bytes(acc.type):,} bytes, "
                f"Acc {self.capacity['acc']:,}",
                self.span,
                "use an if statement, or compute the product in smaller blocks",
            )
        return replace(acc, terms=(term,), bias=None) if init else replace(acc, terms=(*acc.terms, term))

    def matmul_bias(self, lhs: Value, rhs: Value, bias: Value) -> Value:
        """``lhs @ rhs + bias``: the first step of K starts from the bias, which is added once."""
        term = self._term(lhs, rhs, False, False)
        kind, row = self._stack_type(term), Operand(self.on_chip(bias, MemorySpace.Mat))
        if self._bytes(kind) > self.capacity["acc"]:
            return Product((term,), kind, row)
        size = Extents(kind.shape[0], term[0].shape[1], kind.shape[1])
        return self._sum(None, [term], size, (size.rows, size.cols), bias=row)

    # --- operands ---

    def _term(self, lhs: Value, rhs: Value, a_trans: bool, b_trans: bool) -> Term:
        """Both operands: in Mat where they fit together, else those in GM stay there."""
        term = self.operands(Operand(self._whole(lhs), a_trans), Operand(self._whole(rhs), b_trans))
        windows = [operand.value for operand in term if isinstance(operand.value, Window)]
        if windows and sum(map(self._bytes, (w.type for w in windows))) <= self.capacity["mat"]:
            return tuple(replace(o, value=self.operand(o.value)) for o in term)  # type: ignore[return-value]
        return term

    def _whole(self, value: Value) -> Value:
        """A product that waits is an operand like any other once Mat holds it."""
        return self.on_chip(value, MemorySpace.Mat) if isinstance(value, Product) else value

    def _bytes(self, kind: Any) -> int:
        extents = [self._static(e) for e in kind.shape]
        return prod(extents) * int(kind.dtype.get_byte())

    def _static(self, extent: ir.Dim) -> int:
        if isinstance(extent, int):
            return extent
        raise CompileError(
            f"an operand of the product has the run-time extent {dims.text(extent)}, tiles are static",
            self.span,
            "take a window of static shape and give the run-time extent as valid_shape",
        )

    def _stack_type(self, term: Term) -> ir.TileType:
        """Type of the product of two matrices, or of two stacks whose leading axes broadcast."""
        kind = self.product_type(*term)
        stacks = [o.value.type.shape[:-2] for o in term]
        if not any(stacks):
            return kind
        lead = tuple(map(self._static, broadcast(*stacks)))
        view = None if kind.view is None else ir.TileView(valid_shape=(*lead, *kind.valid_shape))
        return replace(kind, shape=(*lead, *kind.shape), view=view)

    # --- a product in one accumulator ---

    def _computed(self, acc: ir.Expr | None, term: Term, kind: ir.TileType, init: Any = None) -> ir.Expr:
        """The product (a stack of products) in Acc."""
        if len(kind.shape) == 2:
            size = Extents(kind.shape[0], term[0].shape[1], kind.shape[1])
            return self._sum(acc, [term], size, (size.rows, size.cols), init)
        if acc is None:
            acc, init = self.emitter.create_tile(kind.shape, kind.dtype, MemorySpace.Acc), True
        lead, (rows, cols) = kind.shape[:-2], kind.shape[-2:]
        flat = self.reshaped(acc, (prod(lead) * rows, cols))
        for number, at in enumerate(positions(lead)):
            part = self.emitter.tile(
                "slice", tile=flat, shape=(rows, cols), offset=(ir.index(number * rows), ir.index(0))
            )
            matrices = self._matrices(term, at)
            self._sum(part, [matrices], Extents(rows, matrices[0].shape[1], cols), (rows, cols), init)
        return acc

    def _sum(
        self,
        acc: ir.Expr | None,
        terms: list[Term],
        size: Extents,
        whole: tuple[int, int],
        init: Any = None,
        bias: Operand | None = None,
    ) -> ir.Expr:
        """The sum of ``terms`` over one block of ``whole`` in ``acc`` (a new accumulator without one)."""
        for number, term in enumerate(terms):
            extents = size._replace(inner=term[0].shape[1])
            depth = self.depth(whole, extents.inner, term[0].value.type.dtype)
            if not any(isinstance(o.value, Window) for o in term):
                start = (init, bias) if number == 0 else (None, None)
                acc = self.accumulate(acc, *term, extents, depth, *start)
                continue
            if acc is None:
                acc, init = self.accumulator(self._block_type(term, size)), True
            self._streamed(acc, term, extents, depth, init if number == 0 else None)
        return acc  # type: ignore[return-value]

    def _block_type(self, term: Term, size: Extents) -> ir.TileType:
        a, b = term
        valid = (_valid(a, 0, size.rows), _valid(b, 1, size.cols))
        view = None if valid == (size.rows, size.cols) else ir.TileView(valid_shape=valid)
        return ir.TileType((size.rows, size.cols), self.product_type(a, b).dtype, MemorySpace.Acc, view)

    # --- K in steps, operands loaded on the way ---

    def _streamed(self, acc: ir.Expr, term: Term, size: Extents, depth: int, init: Any) -> None:
        def step(start: ir.Dim, length: int) -> None:
            a, b = term[0].at(0, start), term[1].at(start, 0)
            part = Extents(size.rows, length, size.cols)
            left, right = self._loaded(a, size.rows, length), self._loaded(b, length, size.cols)
            self.accumulate(acc, left, right, part, depth, init if start == 0 else None)

        self._in_steps(size.inner, self._step_of_k(term, size, depth), step, apart=1)

    def _step_of_k(self, term: Term, size: Extents, depth: int) -> int:
        """Columns of K per load: two copies take three quarters of what Mat has left, in whole instructions."""
        width = term[0].value.type.dtype.get_byte()
        kept = sum(self._bytes(o.value.type) for o in term if not isinstance(o.value, Window))
        streamed = sum(n for o, n in zip(term, (size.rows, size.cols)) if isinstance(o.value, Window))
        room = (self.capacity["mat"] * 3 // 4 - kept) // 2 // (streamed * width)
        return max(FRACTAL, room // depth * depth if room >= depth else room // FRACTAL * FRACTAL)

    def _loaded(self, operand: Operand, rows: int, cols: int) -> Operand:
        """``rows`` x ``cols`` of an operand in Mat: loaded when it is in GM."""
        window = operand.value
        if not isinstance(window, Window):
            return operand
        at, shape = (operand.row, operand.col), (rows, cols)
        clipped = (_valid(operand, 0, rows), _valid(operand, 1, cols))
        if operand.transposed:
            at, shape, clipped = at[::-1], shape[::-1], clipped[::-1]
        tile = self.load(window, MemorySpace.Mat, tuple(map(ir.as_expr, at)), shape, clipped)
        return Operand(tile, operand.transposed)

    # --- blocks of rows and columns ---

    def on_chip(self, value: Value, space: MemorySpace = MemorySpace.Vec) -> ir.Expr:
        """``value`` as a tile in ``space``."""
        if not isinstance(value, Product):
            return super().on_chip(value, space)
        needed = self._bytes(value.type)
        raise CompileError(
            f"a product of shape {list(value.type.shape)} needs {needed:,} bytes of Acc, "
            f"there are {self.capacity['acc']:,}",
            self.span,
            "write it to a tensor with out[...] = pl.matmul(...), or compute it in smaller blocks",
        )

    def store_product(self, value: Product, window: Window, offsets: tuple[ir.Expr, ...], atomic: AtomicType) -> None:
        """Compute and drain the product in blocks of rows and columns."""
        lead, (rows, cols) = value.type.shape[:-2], value.type.shape[-2:]
        waiting = all(isinstance(o.value, Window) for term in value.terms for o in term)

        def store(at: tuple[ir.Dim, ...]) -> None:
            terms = tuple(self._matrices(term, at) for term in value.terms)
            target = list(offsets)
            for axis, position in enumerate(at, len(offsets) - len(at) - 2):
                target[axis] = ir.as_expr(dims.add(ir.as_dim(target[axis]), position))
            self._store_matrix(replace(value, terms=terms), (rows, cols), window, tuple(target), atomic)

        self._for_each(lead, waiting, store)

    def _for_each(
        self,
        lead: tuple[int, ...],
        looped: bool,
        body: Callable[[tuple[ir.Dim, ...]], None],
        at: tuple[ir.Dim, ...] = (),
    ) -> None:
        """``body`` at every index of a stack: as loops over what is in GM, written out for stacks on chip."""
        if not lead:
            body(at)
        elif looped:
            self._in_steps(lead[0], 1, lambda i, _: self._for_each(lead[1:], looped, body, (*at, i)), copies=1)
        else:
            for index in range(lead[0]):
                self._for_each(lead[1:], looped, body, (*at, index))

    def _store_matrix(
        self,
        value: Product,
        shape: tuple[int, int],
        window: Window,
        offsets: tuple[ir.Expr, ...],
        atomic: AtomicType,
    ) -> None:
        block = self._block_sizes(shape, value.terms)

        def store(row: ir.Dim, rows: int, col: ir.Dim, cols: int) -> None:
            parts = [(a.at(row, 0), b.at(0, col)) for a, b in value.terms]
            bias = None if value.bias is None else value.bias.at(0, col)
            acc = self._sum(None, parts, Extents(rows, 0, cols), shape, bias=bias)
            at = list(offsets)
            at[-2] = ir.as_expr(dims.add(ir.as_dim(at[-2]), row))
            at[-1] = ir.as_expr(dims.add(ir.as_dim(at[-1]), col))
            self.store(acc, window, tuple(at), atomic)

        def band(row: ir.Dim, rows: int) -> None:
            self._in_steps(shape[1], block[1], lambda col, cols: store(row, rows, col, cols))

        self._in_steps(shape[0], block[0], band, copies=1)

    def _block_sizes(self, shape: tuple[int, int], terms: tuple[Term, ...]) -> tuple[int, int]:
        """Rows and columns per block: those with which the operands are read least often."""
        limit = self.band_limit()
        inner = sum(a.shape[1] for a, _ in terms)
        area = self.capacity["acc"] // 4 // (1 if inner >= LONG_K else 2)
        rows, cols = (-(-extent // FRACTAL) * FRACTAL for extent in shape)

        def sizes(height: int) -> tuple[int, int]:
            return height, min(limit, cols, area // height // FRACTAL * FRACTAL)

        def traffic(block: tuple[int, int]) -> tuple[int, int]:
            return rows * -(-cols // block[1]) + cols * -(-rows // block[0]), -block[1]

        heights = range(FRACTAL, min(limit, rows, area // FRACTAL) + 1, FRACTAL)
        height, width = min(map(sizes, heights), key=traffic)
        return min(height, shape[0]), min(width, shape[1])

    # --- stacks of matrices ---

    def is_restack(self, value: Value, kind: ir.Type) -> bool:
        """Whether a product becomes ``kind`` by axes of 1 before its matrix alone: it can stay where it is."""
        accumulated = isinstance(value, Product) or getattr(value.type, "space", None) == MemorySpace.Acc
        have, wanted = value.type.shape, kind.shape  # type: ignore[attr-defined]
        if not accumulated or min(len(have), len(wanted)) < 2:
            return False
        return tuple(have[-2:]) == tuple(wanted[-2:]) and {*have[:-2], *wanted[:-2]} <= {1}

    def restacked(self, value: Value, shape: tuple[int, ...]) -> Value:
        """A product with other axes of 1 before its matrix."""
        if not isinstance(value, Product):
            return self.reshaped(value, shape)
        kind = reshape_tile(value.type, shape)
        terms = tuple(self._matrices(term, (0,) * (len(value.type.shape) - 2)) for term in value.terms)
        return replace(value, terms=terms, type=kind)

    def _matrices(self, term: Term, at: tuple[ir.Dim, ...]) -> Term:
        """The two matrices of a term at an index of the stack."""
        return self._matrix_of(term[0], at), self._matrix_of(term[1], at)

    def _matrix_of(self, operand: Operand, at: tuple[ir.Dim, ...]) -> Operand:
        """One matrix of a stack; leading axes of extent 1 repeat."""
        value, shape = operand.value, operand.value.type.shape
        lead = len(shape) - 2
        own = tuple(index if extent > 1 else 0 for index, extent in zip(at[len(at) - lead :], shape))
        if not lead:
            return operand
        if isinstance(value, Window):
            return replace(operand, value=self.matrix_window(value, own))
        part = self.emitter.tile(
            "slice", tile=value, shape=(*(1,) * lead, *shape[-2:]), offset=tuple(map(ir.as_expr, (*own, 0, 0)))
        )
        return replace(operand, value=self.reshaped(part, tuple(shape[-2:])))

    def matrix_window(self, window: Window, at: tuple[ir.Dim, ...]) -> Window:
        """The matrix at ``at`` of a stack in GM."""
        kind = window.type
        valid = kind.valid_shape[-2:]
        view = None if dims.all_equal(valid, kind.shape[-2:]) else ir.TensorView(valid_shape=valid)
        matrix = ir.TensorType(kind.shape[-2:], kind.dtype, view, kind.distributed)
        extents = (*(1,) * len(at), *kind.shape[-2:])
        offsets = tuple(map(ir.as_expr, (*at, 0, 0)))
        return self.sub_window(window, offsets, extents, tuple(range(len(at))), matrix)

    # --- loops ---

    def _in_steps(self, extent: int, step: int, body: Body, copies: int = 2, apart: int = 0) -> None:
        """``body(start, length)`` for every ``step`` of ``extent``: a loop of ``copies`` per round.

        The first ``apart`` steps come before the loop, what fills no round after it.
        """
        starts = list(range(0, extent, step))
        rounds = (extent // step - apart) // copies
        looped = starts[apart : apart + rounds * copies] if rounds > 1 else []
        nest = self.fresh("blocks")
        for number, start in enumerate(starts):
            if start in looped:
                if start == looped[0]:
                    self._loop(start, rounds, step, copies, number, nest, body)
                continue
            with self._apart(number % copies, copies, nest):
                body(start, min(step, extent - start))

    def _loop(self, first: int, rounds: int, step: int, copies: int, number: int, nest: str, body: Body) -> None:
        var = ir.Var(self.fresh("start"), ir.ScalarType(INDEX), self.span)
        with self.block() as inner:
            for copy in range(copies):
                with self._apart((number + copy) % copies, copies, nest):
                    body(dims.add(var, copy * step), step)
        start, stop, stride = map(ir.index, (first, first + rounds * copies * step, copies * step))
        self.emit(ir.For(ForKind.Sequential, var, start, stop, stride, inner, span=self.span))

    def _apart(self, number: int, copies: int, nest: str) -> Any:
        return self.stage(number, nest) if copies > 1 else nullcontext()


def _valid(operand: Operand, axis: int, length: int) -> ir.Dim:
    """How many of ``length`` elements of the logical matrix from where the operand begins are valid."""
    valid, whole = operand.valid[axis], operand.shape[axis]
    if dims.equal(valid, whole):
        return length
    start = (operand.row, operand.col)[axis]
    return dims.simplify(dims.maximum(0, dims.minimum(dims.sub(valid, start), length)))
