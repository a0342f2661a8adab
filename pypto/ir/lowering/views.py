"""Views of tensors as instructions on tensor registers."""

from __future__ import annotations

from pypto.ir import nodes as ir
from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import (
    TensorRef,
)
from pypto.ir.lowering.scalars import ScalarLowering, constant_int

VIEW_OPS = ("tensor.slice", "tensor.reshape", "tensor.transpose", "tensor.view", "tensor.reinterpret_view")


def emit_view(lowering: ScalarLowering, target: TensorRef, value: ir.Expr) -> None:
    """A view of a tensor as one instruction on tensor registers."""
    if isinstance(value, ir.Var):
        lowering.emit("permute", target, lowering.tensor(value), 0, 0)
        return
    if not isinstance(value, ir.Call):
        raise CompileError("this value is not a view of a tensor", lowering.span)
    arguments = dict(value.arguments)
    source = next(v for v in arguments.values() if isinstance(v, ir.Expr) and isinstance(v.type, ir.TensorType))
    base = lowering.tensor(source)
    kind = value.type
    assert isinstance(kind, ir.TensorType)
    if value.op == "tensor.slice":
        shape, offset = arguments["shape"], arguments["offset"]
        lead = len(source.type.shape) - len(shape)  # type: ignore[attr-defined]
        full_shape = (*([1] * lead), *shape)
        full_offset = offset if len(offset) == len(full_shape) else (*([0] * lead), *offset)
        dropped = tuple(range(lead)) + tuple(int(d) + lead for d in arguments.get("drop_dims") or ())
        lowering.emit(
            "view", target, base, lowering.operand_list(full_offset), lowering.operand_list(full_shape), dropped
        )
    elif value.op == "tensor.transpose":
        rank = len(kind.shape)
        axes = [constant_int(arguments[n]) % rank for n in ("axis1", "axis2")]
        lowering.emit("permute", target, base, *axes)
    elif value.op == "tensor.reinterpret_view":
        lowering.emit(
            "reinterpret", target, base, lowering.operand_list(kind.shape), attributes={"dtype": kind.dtype.to_string()}
        )
    elif value.op == "tensor.view" and arguments.get("layout") is not None and arguments.get("shape") is None:
        rank = len(kind.shape)
        lowering.emit("permute", target, base, rank - 2, rank - 1)
    elif value.op in ("tensor.reshape", "tensor.view"):
        lowering.emit("reshape", target, base, lowering.operand_list(kind.shape))
    else:
        raise CompileError(f"{value.op} is not a view of a tensor", lowering.span)


__all__ = ["VIEW_OPS", "emit_view"]
