"""The smallest legal call of every operation: documentation, coverage and tests are made from it.

Arguments are written with operand names. ``v`` and ``w`` are the value being worked on, a tile or a tensor by
namespace; ``{s}`` is a scalar of its dtype; the others are listed in :func:`operands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.dtype import (
    BF16,
    FP8E4M3FN,
    FP8E8M0,
    FP16,
    FP32,
    INDEX,
    INT16,
    INT32,
    INT64,
    TASK_ID,
    UINT8,
    UINT32,
    DataType,
)  # fmt: skip
from pypto.ir.enums import MemorySpace, PipeType
from pypto.ir.nodes import ArrayType, Expr, ScalarType, TensorType, TileType, Type, Var, literal
from pypto.ir.operations import table
from pypto.ir.operations.calls import build
from pypto.ir.operations.prefetch import CONTEXT, EVENT, SESSION
from pypto.ir.operations.unified import UNIFIED

ROWS, COLS = 32, 64


@dataclass(frozen=True)
class Operand:
    """The name of an operand, as an argument."""

    name: str


@dataclass(frozen=True)
class Sample:
    """Arguments of one call; ``dtype`` is the dtype shown in examples."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dtype: DataType = FP32


def _(*args: Any, dtype: DataType = FP32, **kwargs: Any) -> Sample:
    return Sample(args, kwargs, dtype)


V, W, S, T = Operand("v"), Operand("w"), Operand("s"), Operand("tmp")
COLUMN, ROW = Operand("column"), Operand("row")
_ORIGIN, _SHAPE, _SQUARE = (0, 0), (ROWS, COLS), (COLS, COLS)
_A, _B, _ACC, _BIAS = Operand("a"), Operand("b"), Operand("acc"), Operand("bias")
_MX = tuple(map(Operand, ("mx_a", "mx_a_scale", "mx_b", "mx_b_scale")))
_KEYS = (1, 2, 3, 4, 5, 6)
_UNARY = (
    "exp log sqrt rsqrt recip neg abs sin cos relu row_sum row_max row_min row_prod col_sum col_max col_min col_prod "
    "row_argmax row_argmin col_argmax col_argmin fillpad fillpad_inplace transpose_view dump_tag"
)
_BINARY = "add sub mul div fmod maximum minimum part_add part_mul part_max part_min cmp concat"
_SCALAR = "adds subs muls divs fmods maximums minimums cmps expands"

_SAMPLES: dict[str, Sample] = {
    **{name: _(V) for name in _UNARY.split()},
    **{name: _(V, W) for name in _BINARY.split()},
    **{name: _(V, S) for name in _SCALAR.split()},
    **{name: _(V, W, dtype=INT32) for name in ("and_", "or_", "xor", "shl", "shr")},
    **{name: _(V, S, dtype=INT32) for name in ("ands", "ors", "xors", "shls", "shrs")},
    **{f"row_expand{name}": _(V, COLUMN) for name in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")},
    **{f"col_expand{name}": _(V, ROW) for name in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")},
    **{name: _() for name in ("get_block_idx", "get_block_num", "get_subblock_idx", "available_cluster_count")},
    **{name: _() for name in ("available_aiv_count", "bar_v", "bar_m", "bar_all", "fence", "cacheinvalid", "syncall")},
    **{name: _() for name in ("task_invalid", "make_context")},
    "dim": _(V, 0),
    "not_": _(V, dtype=INT16),
    "rem": _(V, W, T),
    "rems": _(V, S, T),
    "addc": _(V, W, V),
    "subc": _(V, W, V),
    "addsc": _(V, S, W),
    "subsc": _(V, S, W),
    "lrelu": _(V, 0.5),
    "prelu": _(V, W, T),
    "max": _(Operand("n"), 1),
    "min": _(Operand("n"), 1),
    "sel": _(Operand("mask"), V, W, Operand("line")),
    "sels": _(Operand("mask"), V, Operand("line"), S),
    "cast": _(V, target_type=FP16, mode="rint"),
    "create": _(_SHAPE, Operand("dtype")),
    "create_tile": _(_SHAPE, Operand("dtype")),
    "create_tensor": _(_SHAPE, Operand("dtype")),
    "create_l1": _(_SHAPE, Operand("dtype")),
    "full": _(_SHAPE, Operand("dtype"), value=1),
    "ci": _(0, (1, COLS), dtype_=Operand("dtype"), dtype=INT32),
    "arange": _(0, (1, COLS), dtype_=Operand("dtype"), dtype=INT32),
    "tri": _(0, _SHAPE, dtype_=Operand("dtype"), dtype=INT32),
    "random": _(*_KEYS, _SHAPE, dtype_=Operand("dtype"), dtype=UINT32),
    "alloc": _(MemorySpace.Vec, 8192),
    "load": _(Operand("x"), _ORIGIN, _SHAPE),
    "store": _(V, _ORIGIN, Operand("x")),
    "move": _(V, target_memory=MemorySpace.Mat),
    "extract": _(V, 0, 0, (16, 16), target_memory=MemorySpace.Left),
    "assemble": _(V, Operand("corner"), _ORIGIN),
    "read": _(V, _ORIGIN),
    "write": _(V, _ORIGIN, S),
    "gather_row": _(V, Operand("x"), _ORIGIN, (3, 0), (1, COLS)),
    "slice": _(V, (16, 16), (8, 0)),
    "reshape": _(V, (COLS, ROWS)),
    "reinterpret_view": _(V, dtype_=Operand("twin")),
    "transpose": _(V, 0, 1),
    "view": _(V, (COLS, ROWS)),
    "set_validshape": _(V, ROWS, Operand("n")),
    "fillpad_expand": _(V, _SQUARE),
    "expand_clone": _(Operand("plane"), Operand("cube")),
    "matmul": _(_A, _B),
    "matmul_acc": _(_ACC, _A, _B),
    "matmul_bias": _(_A, _B, _BIAS),
    "batch_matmul": _(_A, _B),
    "batch_matmul_acc": _(_ACC, _A, _B),
    "gemv": _(Operand("vector"), _B),
    "gemv_acc": _(Operand("vector_acc"), Operand("vector"), _B),
    "gemv_bias": _(Operand("vector"), _B, _BIAS),
    "matmul_mx": _(*_MX, dtype=FP8E4M3FN),
    "matmul_mx_acc": _(Operand("mx_acc"), *_MX, dtype=FP8E4M3FN),
    "matmul_mx_bias": _(*_MX, Operand("mx_bias"), dtype=FP8E4M3FN),
    "gather": _(V, -1, Operand("index")),
    "gather_mask": _(V, 1),
    "gather_compare": _(V, S, T, cmp_mode="gt", out_cols=16),
    "gatherb": _(V, Operand("blocks")),
    "mgather": _(Operand("x"), Operand("rows")),
    "mscatter": _(V, Operand("positions"), Operand("x")),
    "paged_gather": _(Operand("x"), Operand("list"), Operand("pages"), block_size=16, size=COLS, max_indices=16),
    "scatter": _(V, dim=-1, index=Operand("narrow"), src=W),
    "scatter_mask": _(Operand("double"), V, 1),
    "scatter_update": _(V, -2, Operand("rows"), W),
    "sort32": _(V, Operand("unsigned")),
    "mrgsort": _(V, block_len=64),
    "sync_src": _(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=0),
    "sync_dst": _(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=0),
    "sync_set": _(0, pipe=PipeType.MTE3),
    "sync_wait": _(0, pipe=PipeType.MTE2),
    "set_ffts": _(Operand("words")),
    "task_dummy": _(deps=(Operand("task"),)),
    "tpush_to_aiv": _(V, split=0),
    "tpush_to_aic": _(V, split=0),
    "tpop_from_aic": _(shape=_SHAPE, dtype_=Operand("dtype")),
    "tpop_from_aiv": _(shape=_SHAPE, dtype_=Operand("dtype")),
    "tfree_to_aic": _(V),
    "tfree_to_aiv": _(V),
    "aic_initialize_pipe": _(dir_mask=1, slot_size=8192),
    "aiv_initialize_pipe": _(dir_mask=1, slot_size=8192),
    "reserve_buffer": _(name="ring", size=8192),
    "import_peer_buffer": _(name="ring", peer_func="cube_side"),
    "aiv_shard": _(V, split=1),
    "aic_gather": _(V, split=1),
    "array.create": _(4, INT32),
    "get_element": _(Operand("array"), 0),
    "update_element": _(Operand("array"), 0, 7),
    "async_prefetch": _(Operand("line_x"), Operand("context")),
    "session": _(Operand("context")),
    "wait": _(Operand("event"), Operand("session")),
}
_TILE_SAMPLES: dict[str, Sample] = {
    **{name: _(V, T) for name in ("row_sum", "row_max", "row_min", "row_prod")},
    **{name: _(V, T) for name in ("row_argmax", "row_argmin", "col_argmax", "col_argmin")},
    "xor": _(V, W, T, dtype=INT32),
    "xors": _(V, S, T, dtype=INT32),
    "gather": _(V, Operand("index"), T),
    "scatter": _(V, W, Operand("narrow")),
}


def operands(dtype: DataType, level: str) -> dict[str, Any]:
    """The operands of a sample whose value has ``dtype``, tiles or tensors by ``level``."""
    narrow = INT16 if dtype.get_bit() < 32 else INT32
    wide = FP32 if dtype.is_float() else INT32

    def value(name: str, shape: tuple[int, ...], kind: DataType = dtype) -> Var:
        made: Type = TileType(shape, kind, MemorySpace.Vec) if level == "tile" else TensorType(shape, kind)
        return Var(name, made)

    def tile(name: str, shape: tuple[int, ...], kind: DataType = dtype) -> Var:
        return Var(name, TileType(shape, kind, MemorySpace.Vec))

    def tensor(name: str, shape: tuple[int, ...], kind: DataType = dtype) -> Var:
        return Var(name, TensorType(shape, kind))

    return {
        "dtype": dtype,
        "twin": _twin(dtype),
        **{name: value(name, _SHAPE) for name in ("v", "w")},
        "tmp": tile("tmp", _SHAPE),
        "column": value("column", (ROWS, 1)),
        "row": value("row", (1, COLS)),
        "corner": value("corner", (16, 16)),
        "double": value("double", (ROWS, 2 * COLS)),
        "index": value("index", _SHAPE, INT32),
        "narrow": value("narrow", _SHAPE, narrow),
        "unsigned": value("unsigned", _SHAPE, UINT32),
        "rows": value("rows", (1, ROWS), INT32),
        "positions": tile("positions", _SHAPE, INT32),
        "blocks": tile("blocks", (ROWS, 8), UINT32),
        "mask": tile("mask", (ROWS, 32), UINT8),
        "line": tile("line", (1, 32), UINT8),
        "x": tensor("x", _SHAPE),
        "list": tensor("list", (16,), INT32),
        "pages": tensor("pages", (4,), INT32),
        "words": tensor("words", (256,), INT64),
        "line_x": tensor("line_x", (1, COLS)),
        "plane": tensor("plane", (1, ROWS, COLS)),
        "cube": tensor("cube", (4, ROWS, COLS)),
        "a": value("a", (ROWS, COLS)),
        "b": value("b", (COLS, ROWS)),
        "acc": value("acc", (ROWS, ROWS), wide),
        "bias": value("bias", (1, ROWS), wide),
        "vector": value("vector", (1, COLS)),
        "vector_acc": Var("vector_acc", _gemv_type(wide)),
        "mx_a": tile("mx_a", (ROWS, COLS)),
        "mx_a_scale": tile("mx_a_scale", (ROWS, 2), FP8E8M0),
        "mx_b": tile("mx_b", (COLS, ROWS)),
        "mx_b_scale": tile("mx_b_scale", (2, ROWS), FP8E8M0),
        "mx_acc": tile("mx_acc", (ROWS, ROWS), FP32),
        "mx_bias": tile("mx_bias", (1, ROWS), FP32),
        "s": Var("s", ScalarType(dtype)),
        "n": Var("n", ScalarType(INDEX)),
        "task": Var("task", ScalarType(TASK_ID)),
        "array": Var("array", ArrayType(4, INT32)),
        "context": Var("context", CONTEXT),
        "session": Var("session", SESSION),
        "event": Var("event", EVENT),
    }


def _gemv_type(dtype: DataType) -> TileType:
    from pypto.ir.operations.results import tile

    return tile((16, ROWS), dtype, MemorySpace.Acc, (1, ROWS))


def _twin(dtype: DataType) -> DataType:
    """Another dtype to reinterpret ``dtype`` as."""
    return INT16 if dtype != INT16 else BF16


def sample(namespace: str, name: str) -> Sample | None:
    """The sample of ``pl.<namespace>.<name>`` (``"pl"``: of the promoted name), or ``None``."""
    return _SAMPLES.get(f"{namespace}.{name}") or _SAMPLES.get(name)


def levels(namespace: str, name: str) -> tuple[str, ...]:
    """The operand classes that a name takes: both for a dispatching name."""
    if namespace != "pl":
        return (namespace,) if namespace in ("tensor", "tile") else ("tile",)
    if name in UNIFIED:
        return tuple(level for level in ("tensor", "tile") if table.find(f"{level}.{name}") is not None)
    canonical = table.promoted().get(name, "tile.")
    return ("tensor",) if canonical.startswith("tensor.") else ("tile",)


def example(namespace: str, name: str, level: str, dtype: DataType | None = None) -> Expr:
    """The typed sample call; raises what :func:`build` raises when the dtype is not legal."""
    found = sample(namespace, name)
    on_tiles = _TILE_SAMPLES.get(name)
    if level == "tile" and on_tiles is not None and (namespace != "pl" or name in UNIFIED):
        found = on_tiles
    if found is None:
        raise KeyError(f"no sample for {namespace}.{name}")
    values = operands(dtype or found.dtype, level)
    args = [_written(_filled(arg, values)) for arg in found.args]
    kwargs = {key.rstrip("_"): _keyword(_filled(arg, values)) for key, arg in found.kwargs.items()}
    return build(namespace, name, args, kwargs)


def _filled(argument: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(argument, Operand):
        return values[argument.name]
    return tuple(_filled(item, values) for item in argument) if isinstance(argument, tuple) else argument


def _written(argument: Any) -> Any:
    """A positional argument as the parser hands it over: numbers are literals."""
    if isinstance(argument, tuple):
        return tuple(map(_written, argument))
    return literal(argument) if type(argument) in (bool, int, float) else argument


def _keyword(argument: Any) -> Any:
    return tuple(map(_written, argument)) if isinstance(argument, tuple) else argument


