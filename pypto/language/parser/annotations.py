"""Annotations to IR types (spec language 2.2 to 2.8)."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, ParamDirection, TensorLayout
from pypto.language import typing as lt

BARE = (lt.Tensor, lt.DistributedTensor)


def split_direction(annotation: Any) -> tuple[ParamDirection, Any]:
    """The direction of a parameter and the type inside the wrapper."""
    if isinstance(annotation, lt.Directed):
        return annotation.direction, annotation.inner
    return ParamDirection.In, annotation


def is_bare(annotation: Any) -> bool:
    """True for ``pl.Tensor`` without shape and dtype."""
    return annotation in BARE


def to_type(annotation: Any) -> ir.Type:
    """The IR type an annotation stands for; ``TypeError`` says what is missing or wrong."""
    if isinstance(annotation, ir.Type):
        return annotation
    if isinstance(annotation, lt.TensorSpec):
        return _tensor(annotation)
    if isinstance(annotation, lt.TileSpec):
        return _tile(annotation)
    if isinstance(annotation, lt.ScalarSpec):
        return ir.ScalarType(annotation.dtype)
    if isinstance(annotation, DataType):
        return ir.ScalarType(annotation)
    if isinstance(annotation, lt.ArraySpec):
        return ir.ArrayType(annotation.extent, annotation.dtype)
    if isinstance(annotation, lt.TupleSpec):
        return ir.TupleType(tuple(to_type(item) for item in annotation.items))
    if getattr(annotation, "__origin__", None) is tuple:
        return ir.TupleType(tuple(to_type(item) for item in annotation.__args__))
    if isinstance(annotation, type) and getattr(annotation, "opaque_name", None):
        return ir.OpaqueType(str(getattr(annotation, "opaque_name")))  # noqa: B009
    if is_bare(annotation):
        raise TypeError("pl.Tensor needs a shape and a dtype here: pl.Tensor[[64, 64], pl.FP32]")
    raise TypeError(f"{annotation!r} is not a type of the language")


def dims(shape: tuple[Any, ...]) -> tuple[ir.Dim, ...]:
    """Extents as ``int`` or expressions; negative ones are a ``TypeError``."""
    result = []
    for value in shape:
        dim = ir.as_dim(lt.dimension(value))
        if isinstance(dim, int) and dim < 0:
            raise TypeError(f"a shape element must not be negative, got {dim}")
        result.append(dim)
    return tuple(result)


def _tensor(spec: lt.TensorSpec) -> ir.TensorType:
    view: ir.TensorView | None = None
    memref = None
    for extra in spec.extras:
        if isinstance(extra, TensorLayout):
            view = _layout_view(extra)
        elif isinstance(extra, lt.View) and extra.kind == "TensorView":
            view = _tensor_view(extra)
        elif isinstance(extra, (lt.MemRef, lt.SlotRef)):
            memref = extra
        else:
            raise TypeError(f"pl.Tensor does not take {extra!r}; legal: a layout, a pl.TensorView, a pl.MemRef")
    return ir.TensorType(dims(spec.shape), spec.dtype, view, spec.distributed, memref)


def _layout_view(layout: TensorLayout) -> ir.TensorView | None:
    if layout == TensorLayout.DN:
        raise TypeError(
            "a bare pl.DN annotation is not accepted; take pl.transpose(x, -2, -1) of a row-major tensor "
            "or write pl.TensorView(stride=[...], layout=pl.TensorLayout.DN)"
        )
    return None if layout == TensorLayout.ND else ir.TensorView(layout=layout)


def _tensor_view(view: lt.View) -> ir.TensorView | None:
    fields = dict(view.fields)
    for name in ("valid_shape", "stride"):
        if name in fields:
            fields[name] = dims(tuple(fields[name]))
    result = ir.TensorView(**fields)
    return None if result == ir.TensorView() else result


def _tile(spec: lt.TileSpec) -> ir.TileType:
    space, view, memref = None, None, None
    for extra in spec.extras:
        if isinstance(extra, MemorySpace) and space is None:
            space = extra
        elif isinstance(extra, lt.View) and extra.kind == "TileView" and view is None:
            view = _tile_view(extra)
        elif isinstance(extra, (lt.MemRef, lt.SlotRef)) and memref is None:
            memref = extra
        else:
            raise TypeError(f"pl.Tile takes at most one memory space, one pl.TileView and one pl.MemRef, got {extra!r}")
    if memref is not None and space is None:
        raise TypeError("a pl.MemRef in a tile annotation needs a memory space beside it")
    shape = dims(spec.shape)
    for dim in shape:
        if not isinstance(dim, int):
            raise TypeError("tile extents are static; use a run-time valid shape for tails")
    return ir.TileType(tuple(int(d) for d in shape if isinstance(d, int)), spec.dtype, space, view, memref)


def _tile_view(view: lt.View) -> ir.TileView | None:
    fields = dict(view.fields)
    for name in ("valid_shape", "stride"):
        if name in fields:
            fields[name] = dims(tuple(fields[name]))
    if fields.get("start_offset") is not None:
        fields["start_offset"] = ir.as_dim(lt.dimension(fields["start_offset"]))
    for name in ("blayout", "slayout", "pad", "compact"):
        if fields.get(name) is not None:
            fields[name] = int(fields[name])
    result = ir.TileView(**fields)
    return None if result == ir.TileView() else result
