"""Loads, stores and element accesses between GM windows and tiles."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.enums import AtomicType, MemorySpace
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims
from pypto.ir.passes.place.state import Load, PlacementState
from pypto.ir.passes.place.values import Product, Value, Window, whole


class Movement(PlacementState):
    """Moves data between GM and the memories of a core."""

    # --- windows ---

    def sub_window(
        self,
        window: Window,
        offsets: tuple[ir.Expr, ...],
        extents: tuple[ir.Dim, ...],
        dropped: tuple[int, ...],
        kind: ir.TensorType,
    ) -> Window:
        """The part of ``window`` at ``offsets``; ``dropped`` counts the axes of the new value."""
        kept = window.kept()
        lead = len(kept) - len(extents)
        inner = kept[lead:]
        gone = [*window.dropped, *kept[:lead], *(inner[a] for a in dropped)]
        steady = tuple(self.steady(o) for o in offsets)
        return Window(window.base, window.full_offsets(steady), window.full_extents(extents), tuple(sorted(gone)), kind)

    def static_shape(self, window: Window) -> tuple[int, ...]:
        """Extents of the value, which on-chip buffers need at compile time."""
        shape = tuple(window.extents[a] for a in window.kept())
        for axis, extent in enumerate(shape):
            if not isinstance(extent, int):
                raise CompileError(
                    f"axis {axis} of {window.base.name!r} has a run-time extent and cannot be held on chip",
                    self.span,
                    "load a window of static shape and give the run-time extent as valid_shape",
                )
        return tuple(int(e) for e in shape if isinstance(e, int))

    def load(
        self,
        window: Window,
        space: MemorySpace = MemorySpace.Vec,
        offsets: tuple[ir.Expr, ...] | None = None,
        shape: tuple[int, ...] | None = None,
        valid: tuple[ir.Dim, ...] | None = None,
        clamp: bool = False,
    ) -> ir.Expr:
        """A tile with the window's contents (or the part at ``offsets``)."""
        shape = shape if shape is not None else self.static_shape(window)
        offsets = offsets if offsets is not None else tuple(ir.index(0) for _ in shape)
        if (
            valid is None
            and not dims.all_equal(window.type.valid_shape, window.type.shape)
            and len(shape) == len(window.type.shape)
        ):
            valid = tuple(window.type.valid_shape)
        if len(offsets) > len(window.kept()):
            raise CompileError(
                f"{len(offsets)} offsets for {window.base.name!r}, which has {len(window.kept())} axes here", self.span
            )
        loaded = self.emitter.tile(
            "load",
            tensor=window.base,
            offsets=window.full_offsets(offsets),
            shapes=window.full_extents(shape),
            valid_shape=None if valid is None else window.full_extents(valid),
            target_memory=space,
            clamp=clamp,
        )
        self.derive_name(loaded, window.base)
        return self.reshaped(loaded, shape)

    def reshaped(self, tile: ir.Expr, shape: tuple[int, ...]) -> ir.Expr:
        """``tile`` under another shape when it differs."""
        if tile.type.shape == tuple(shape):  # type: ignore[attr-defined]
            return tile
        return self._derived_tile("reshape", tile, shape=tuple(shape))

    # --- stores ---

    def store(
        self,
        value: Value,
        window: Window,
        offsets: tuple[ir.Expr, ...],
        atomic: AtomicType = AtomicType.None_,
    ) -> Window:
        """Write ``value`` into ``window`` at ``offsets``."""
        if isinstance(value, Window):
            self._copy(value, window, offsets, atomic)
            return window
        if isinstance(value, Product):
            self.refuse_overwritten(window, value)
            self.store_product(value, window, offsets, atomic)
            return window
        self.refuse_overwritten(window)
        tile = value
        if tile.type.space in (MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right):
            tile = self.to_space(tile, MemorySpace.Vec)
        shape = window.full_extents(tile.type.shape)
        placed = self.emitter_reshape(tile, shape)
        self.emitter.tile(
            "store", tile=placed, offsets=window.full_offsets(offsets), output_tensor=window.base, atomic=atomic
        )
        return window

    def refuse_overwritten(self, window: Window, *stored: Product) -> None:
        """``CompileError`` when a product that waits for its store has yet to read what is written now."""
        waiting = [(name, v) for name, v in self.values.items() if isinstance(v, Product) and name in self.read_later]
        for name, product in [*waiting, *(("", v) for v in stored)]:
            if product.reads(window.base):
                what = f"the product {name!r}" if name else "the product"
                raise CompileError(
                    f"{what} of shape {list(product.type.shape)} is computed while it is stored and reads "
                    f"{window.base.name!r}, which is written here",
                    self.span,
                    "write the product to a tensor of its own first",
                )

    def emitter_reshape(self, tile: ir.Expr, shape: tuple[ir.Dim, ...]) -> ir.Expr:
        static = tuple(int(e) for e in shape if isinstance(e, int))
        return self.reshaped(tile, static) if len(static) == len(shape) else tile

    @abstractmethod
    def store_product(self, value: Product, window: Window, offsets: tuple[ir.Expr, ...], atomic: AtomicType) -> None:
        """Drain a product that exceeds the accumulator; defined by the part for matrices."""

    def _copy(self, source: Window, target: Window, offsets: tuple[ir.Expr, ...], atomic: AtomicType) -> None:
        """GM to GM through the vector memory, in bands of rows that fit."""
        shape = self.static_shape(source)
        row_bytes = dims.product(shape[1:]) * source.type.dtype.get_byte()  # type: ignore[operator]
        rows = max(1, min(shape[0], (self.capacity["vec"] // 2) // max(1, row_bytes))) if shape else 1
        for start in range(0, shape[0], rows):
            band = (min(rows, shape[0] - start), *shape[1:])
            first = (ir.index(start), *(ir.index(0) for _ in shape[1:]))
            tile = self.load(source, MemorySpace.Vec, first, band)
            at = (
                ir.as_expr(dims.add(ir.as_dim(offsets[-len(shape)]), start)),
                *offsets[len(offsets) - len(shape) + 1 :],
            )
            lead = offsets[: len(offsets) - len(shape)]
            self.store(tile, target, (*lead, *at), atomic)

    # --- spaces ---

    def to_space(self, tile: ir.Expr, space: MemorySpace) -> ir.Expr:
        """``tile`` in ``space``, moved when it is elsewhere."""
        here = tile.type.space  # type: ignore[attr-defined]
        if here == space or (here is None and space == MemorySpace.Vec):
            return tile
        if space in (MemorySpace.Left, MemorySpace.Right, MemorySpace.Bias) and here not in (MemorySpace.Mat,):
            tile = self.to_space(tile, MemorySpace.Mat)
        if here != MemorySpace.Acc or space != MemorySpace.Vec or not isinstance(tile, ir.Var):
            return self._derived_tile("move", tile, target_memory=space)
        if tile not in self.drained:
            self.drained[tile] = self._derived_tile("move", tile, target_memory=space)
        return self.drained[tile]

    def _derived_tile(self, op: str, tile: ir.Expr, **arguments: Any) -> ir.Expr:
        """The value of ``tile`` elsewhere or in another shape."""
        made = self.emitter.tile(op, tile=tile, **arguments)
        self.derive_name(made, tile)
        return made

    def on_chip(self, value: Value, space: MemorySpace = MemorySpace.Vec) -> ir.Expr:
        """``value`` as a tile in ``space``."""
        if isinstance(value, Window):
            wanted = space if space in (MemorySpace.Vec, MemorySpace.Mat) else MemorySpace.Mat
            return self.to_space(self.load(value, wanted), space)
        return self.to_space(value, space)

    def read_only(self, value: Value, space: MemorySpace = MemorySpace.Vec) -> ir.Expr:
        """``on_chip`` for a use that changes nothing: the tile of an earlier load serves again."""
        if not self.share or not isinstance(value, Window) or value.type.distributed:
            return self.on_chip(value, space)
        wanted = Load(
            value.base.name, value.offsets, value.extents, value.dropped, tuple(value.type.valid_shape), space
        )
        if wanted in self.loaded:
            self.shared = True
        else:
            self.loaded[wanted] = self.on_chip(value, space)
        return self.loaded[wanted]

    # --- elements ---

    def element(self, value: Value, indices: tuple[ir.Expr, ...], dtype: Any) -> ir.Expr:
        """One element as a scalar expression."""
        if isinstance(value, Window):
            return ir.Call(
                "tensor.read",
                {"tensor": value.base, "indices": value.full_offsets(indices)},
                ir.ScalarType(dtype),
                {},
                self.span,
            )
        return ir.Call(
            "tile.read", {"tile": self.on_chip(value), "indices": indices}, ir.ScalarType(dtype), {}, self.span
        )

    def set_element(self, value: Value, indices: tuple[ir.Expr, ...], scalar: ir.Expr) -> Value:
        """Store one element in place."""
        if isinstance(value, Window):
            arguments = {"tensor": value.base, "indices": value.full_offsets(indices), "value": scalar}
            self.emit(ir.Evaluate(ir.Call("tensor.write", arguments, value.base.type, {}, self.span), self.span))
            return value
        tile = self.on_chip(value)
        self.emit(
            ir.Evaluate(
                ir.Call("tile.write", {"tile": tile, "indices": indices, "value": scalar}, tile.type, {}, self.span),
                self.span,
            )
        )
        return tile

    def view_register(self, call: ir.Call, base: Window, operand: str) -> Window:
        """A view that is not a window (reshape, transpose, …): a tensor register of the kernel."""
        whole_base = base.base if base.is_whole else self._window_register(base)
        arguments = {**call.arguments, operand: whole_base}
        target = ir.Var(self.fresh("view"), call.type, self.span)
        self.emit(ir.Assign(target, ir.Call(call.op, arguments, call.type, call.attrs, self.span), self.span))
        self.derive_name(target, whole_base)
        self.viewed[target.name] = whole_base.name
        if call.op == "tensor.transpose" or whole_base.name in self.permuted:
            self.permuted.add(target.name)
        return whole(target)

    def _window_register(self, window: Window) -> ir.Var:
        target = ir.Var(self.fresh("window"), window.type, self.span)
        arguments = {
            "tensor": window.base,
            "shape": tuple(map(ir.as_expr, window.extents)),
            "offset": window.offsets,
            "valid_shape": None,
            "drop_dims": window.dropped or None,
            "pad_value": None,
            "clamp": False,
        }
        self.emit(ir.Assign(target, ir.Call("tensor.slice", arguments, window.type, {}, self.span), self.span))
        self.derive_name(target, window.base)
        self.viewed[target.name] = window.base.name
        if not window.is_run or window.base.name in self.permuted:
            self.permuted.add(target.name)
        return target
