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


def given(*args: Any, dtype: DataType = FP32, **kwargs: Any) -> Sample:
    """The arguments of one sample call."""
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
_NOTHING = (
    "get_block_idx get_block_num get_subblock_idx available_cluster_count available_aiv_count bar_v bar_m bar_all "
    "fence cacheinvalid syncall task_invalid make_context"
)
_EXPANDED = ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")
_SCALAR = "adds subs muls divs fmods maximums minimums cmps expands"

_SAMPLES: dict[str, Sample] = {
    **{name: given(V) for name in _UNARY.split()},
    **{name: given(V, W) for name in _BINARY.split()},
    **{name: given(V, S) for name in _SCALAR.split()},
    **{name: given(V, W, dtype=INT32) for name in ("and_", "or_", "xor", "shl", "shr")},
    **{name: given(V, S, dtype=INT32) for name in ("ands", "ors", "xors", "shls", "shrs")},
    **{f"row_expand{name}": given(V, COLUMN) for name in _EXPANDED},
    **{f"col_expand{name}": given(V, ROW) for name in _EXPANDED},
    **{name: given() for name in _NOTHING.split()},
    "dim": given(V, 0),
    "not_": given(V, dtype=INT16),
    "rem": given(V, W, T),
    "rems": given(V, S, T),
    "addc": given(V, W, V),
    "subc": given(V, W, V),
    "addsc": given(V, S, W),
    "subsc": given(V, S, W),
    "lrelu": given(V, 0.5),
    "prelu": given(V, W, T),
    "max": given(Operand("n"), 1),
    "min": given(Operand("n"), 1),
    "sel": given(Operand("mask"), V, W, Operand("line")),
    "sels": given(Operand("mask"), V, Operand("line"), S),
    "cast": given(V, target_type=FP16, mode="rint"),
    "create": given(_SHAPE, Operand("dtype")),
    "create_tile": given(_SHAPE, Operand("dtype")),
    "create_tensor": given(_SHAPE, Operand("dtype")),
    "create_l1": given(_SHAPE, Operand("dtype")),
    "full": given(_SHAPE, Operand("dtype"), value=1),
    "ci": given(0, (1, COLS), dtype_=Operand("dtype"), dtype=INT32),
    "arange": given(0, (1, COLS), dtype_=Operand("dtype"), dtype=INT32),
    "tri": given(0, _SHAPE, dtype_=Operand("dtype"), dtype=INT32),
    "random": given(*_KEYS, _SHAPE, dtype_=Operand("dtype"), dtype=UINT32),
    "alloc": given(MemorySpace.Vec, 8192),
    "load": given(Operand("x"), _ORIGIN, _SHAPE),
    "store": given(V, _ORIGIN, Operand("x")),
    "move": given(V, target_memory=MemorySpace.Mat),
    "extract": given(V, 0, 0, (16, 16), target_memory=MemorySpace.Left),
    "assemble": given(V, Operand("corner"), _ORIGIN),
    "read": given(V, _ORIGIN),
    "write": given(V, _ORIGIN, S),
    "gather_row": given(V, Operand("x"), _ORIGIN, (3, 0), (1, COLS)),
    "slice": given(V, (16, 16), (8, 0)),
    "reshape": given(V, (COLS, ROWS)),
    "reinterpret_view": given(V, dtype_=Operand("twin")),
    "transpose": given(V, 0, 1),
    "view": given(V, (COLS, ROWS)),
    "set_validshape": given(V, ROWS, Operand("n")),
    "fillpad_expand": given(V, _SQUARE),
    "expand_clone": given(Operand("plane"), Operand("cube")),
    "matmul": given(_A, _B),
    "matmul_acc": given(_ACC, _A, _B),
    "matmul_bias": given(_A, _B, _BIAS),
    "batch_matmul": given(_A, _B),
    "batch_matmul_acc": given(_ACC, _A, _B),
    "gemv": given(Operand("vector"), _B),
    "gemv_acc": given(Operand("vector_acc"), Operand("vector"), _B),
    "gemv_bias": given(Operand("vector"), _B, _BIAS),
    "matmul_mx": given(*_MX, dtype=FP8E4M3FN),
    "matmul_mx_acc": given(Operand("mx_acc"), *_MX, dtype=FP8E4M3FN),
    "matmul_mx_bias": given(*_MX, Operand("mx_bias"), dtype=FP8E4M3FN),
    "gather": given(V, -1, Operand("index")),
    "gather_mask": given(V, 1),
    "gather_compare": given(V, S, T, cmp_mode="gt", out_cols=16),
    "gatherb": given(V, Operand("blocks")),
    "mgather": given(Operand("x"), Operand("rows")),
    "mscatter": given(V, Operand("positions"), Operand("x")),
    "paged_gather": given(Operand("x"), Operand("list"), Operand("pages"), block_size=16, size=COLS, max_indices=16),
    "scatter": given(V, dim=-1, index=Operand("narrow"), src=W),
    "scatter_mask": given(Operand("double"), V, 1),
    "scatter_update": given(V, -2, Operand("rows"), W),
    "sort32": given(V, Operand("unsigned")),
    "mrgsort": given(V, block_len=64),
    "sync_src": given(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=0),
    "sync_dst": given(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=0),
    "sync_set": given(0, pipe=PipeType.MTE3),
    "sync_wait": given(0, pipe=PipeType.MTE2),
    "set_ffts": given(Operand("words")),
    "task_dummy": given(deps=(Operand("task"),)),
    "tpush_to_aiv": given(V, split=0),
    "tpush_to_aic": given(V, split=0),
    "tpop_from_aic": given(shape=_SHAPE, dtype_=Operand("dtype")),
    "tpop_from_aiv": given(shape=_SHAPE, dtype_=Operand("dtype")),
    "tfree_to_aic": given(V),
    "tfree_to_aiv": given(V),
    "aic_initialize_pipe": given(dir_mask=1, slot_size=8192),
    "aiv_initialize_pipe": given(dir_mask=1, slot_size=8192),
    "reserve_buffer": given(name="ring", size=8192),
    "import_peer_buffer": given(name="ring", peer_func="cube_side"),
    "aiv_shard": given(V, split=1),
    "aic_gather": given(V, split=1),
    "array.create": given(4, INT32),
    "get_element": given(Operand("array"), 0),
    "update_element": given(Operand("array"), 0, 7),
    "async_prefetch": given(Operand("line_x"), Operand("context")),
    "session": given(Operand("context")),
    "wait": given(Operand("event"), Operand("session")),
}
_TILE_SAMPLES: dict[str, Sample] = {
    **{name: given(V, T) for name in ("row_sum", "row_max", "row_min", "row_prod")},
    **{name: given(V, T) for name in ("row_argmax", "row_argmin", "col_argmax", "col_argmin")},
    "xor": given(V, W, T, dtype=INT32),
    "xors": given(V, S, T, dtype=INT32),
    "gather": given(V, Operand("index"), T),
    "scatter": given(V, W, Operand("narrow")),
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
