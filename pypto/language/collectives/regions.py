"""Operands of transfers and collectives as the matrices and rows that their bodies move."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.errors import CompileError
from pypto.ir.operations import dims


def matrix_of(tensor: ir.Expr, offsets: Any, index: tuple[int, ...], shape: tuple[ir.Dim, ...]) -> ir.Expr:
    """The matrix at ``index`` of the leading axes of a region of ``tensor``."""
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    rank = len(kind.shape)
    start = [ir.index(0)] * rank if offsets is None else list(offsets)
    for axis, step in enumerate(index):
        start[axis] = ir.as_expr(dims.add(ir.as_dim(start[axis]), step))
    if rank == 1:
        flat = ir.Call(
            "tensor.reshape",
            {"tensor": tensor, "shape": (ir.index(1), ir.as_expr(kind.shape[0]))},
            ir.TensorType((1, kind.shape[0]), kind.dtype, None, kind.distributed),
            {},
            tensor.span,
        )
        return _slice(flat, [ir.index(0), *start], (1, shape[-1]), ())
    if offsets is None and rank == 2:
        return tensor
    full = (*([1] * (rank - 2)), *shape[-2:])
    return _slice(tensor, start, full, tuple(range(rank - 2)))


def _slice(tensor: ir.Expr, offsets: list[ir.Expr], shape: tuple[ir.Dim, ...], dropped: tuple[int, ...]) -> ir.Call:
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    kept = tuple(e for axis, e in enumerate(shape) if axis not in dropped)
    arguments = {
        "tensor": tensor,
        "shape": tuple(map(ir.as_expr, shape)),
        "offset": tuple(offsets),
        "valid_shape": None,
        "drop_dims": dropped or None,
        "pad_value": None,
        "clamp": False,
    }
    return ir.Call("tensor.slice", arguments, ir.TensorType(kept, kind.dtype, None, kind.distributed), {}, tensor.span)


def reshaped(tensor: ir.Expr, shape: tuple[ir.Dim, ...]) -> ir.Expr:
    """``tensor`` under another shape; a window stays one."""
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    if kind.shape == shape:
        return tensor
    arguments = {"tensor": tensor, "shape": tuple(map(ir.as_expr, shape)), "valid_shape": None}
    return ir.Call(
        "tensor.reshape", arguments, ir.TensorType(shape, kind.dtype, None, kind.distributed), {}, tensor.span
    )


def flat_row(tensor: ir.Expr, call: ir.Call) -> tuple[ir.Expr, int]:
    """``tensor`` as one row, and its elements."""
    kind = tensor.type
    assert isinstance(kind, ir.TensorType)
    size = dims.constant(dims.product(kind.shape))
    if size is None:
        raise CompileError(f"{call.op}: the target needs a static shape, got {dims.listing(kind.shape)}", call.span)
    return reshaped(tensor, (1, size)), size


def mesh_signal(signal: ir.Expr, call: ir.Call, lanes: int = 1) -> ir.Expr:
    """A mesh signal as ``[ranks, lanes]``."""
    kind = signal.type
    assert isinstance(kind, ir.TensorType)
    if len(kind.shape) == 1 and call.attrs.get("host"):
        if lanes > 1:
            raise CompileError(
                f"{call.op}: core_num={lanes} needs a signal of shape [ranks, {lanes}], got {dims.listing(kind.shape)}",
                call.span,
            )
        return reshaped(signal, (kind.shape[0], 1))
    if (
        len(kind.shape) != 2
        or dims.less(kind.shape[1], lanes)
        or (lanes == 1 and not call.attrs.get("host") and kind.shape[1] != 1)
    ):
        raise CompileError(f"{call.op}: the signal must be [ranks, {lanes}], got {dims.listing(kind.shape)}", call.span)
    return signal


def element_bytes_of(tensor: ir.Expr) -> int:
    """Bytes of an element of ``tensor``."""
    return int(tensor.type.dtype.get_byte())  # type: ignore[attr-defined]


def row_length(tensor: ir.Expr, call: ir.Call) -> int:
    """Elements of a row of ``tensor``; ``CompileError`` when they are not static."""
    size = dims.constant(tensor.type.shape[-1])  # type: ignore[attr-defined]
    if size is None:
        raise CompileError(f"{call.op}: rows need a static length", call.span)
    return size
