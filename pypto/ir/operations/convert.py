"""Which dtype conversions the vector unit has, and the chain of hops for those it has not (spec ops 11, appendix B)."""

from __future__ import annotations

from collections import deque
from functools import cache

from pypto.ir.dtype import (
    BF16,
    FP4,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    HF8,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    DataType,
)  # fmt: skip
from pypto.ir.nodes import Call, Expr, TileType
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.results import dtype_of
from pypto.ir.operations.row import Builder, Generation

NATIVE: dict[Generation, dict[DataType, tuple[DataType, ...]]] = {
    "a2a3": {
        FP32: (FP16, BF16, INT16, INT32, INT64),
        FP16: (FP32, INT32, INT16, INT8, UINT8, INT4),
        BF16: (FP32, INT32),
        INT16: (FP16, FP32),
        INT32: (FP32, INT16, INT64, FP16),
        INT64: (FP32, INT32),
        UINT8: (FP16,),
        INT8: (FP16,),
        INT4: (FP16,),
    },
    "a5": {
        FP32: (FP16, BF16, INT16, INT32, INT64, FP8E4M3FN, FP8E5M2, HF8),
        FP16: (FP32, INT32, INT16, INT8, UINT8, HF8),
        BF16: (FP32, INT32, FP16, FP4),
        INT16: (FP16, FP32, UINT8, UINT32, INT32),
        INT32: (FP32, INT16, INT64, UINT16, UINT8),
        INT64: (FP32, INT32),
        UINT8: (FP16, UINT16),
        INT8: (FP16, INT16, INT32),
        UINT32: (UINT8, UINT16, INT16),
        FP8E4M3FN: (FP32,),
        FP8E5M2: (FP32,),
        HF8: (FP32,),
        FP4: (BF16,),
    },
}
_SIGNIFICAND = {FP32: 24, FP16: 11, BF16: 8, FP8E4M3FN: 4, FP8E5M2: 3, HF8: 4, FP4: 2}
_EXPONENT = {FP32: 8, FP16: 5, BF16: 8, FP8E4M3FN: 4, FP8E5M2: 5, HF8: 5, FP4: 2}


def cast_chain(source: DataType, target: DataType, generation: Generation) -> list[DataType]:
    """The dtypes a value passes through from ``source`` (not listed) to ``target`` (last), fewest hops first.

    A pair that only the other generation converts takes that generation's chain; ``ValueError`` when neither has one.
    """
    other: Generation = "a5" if generation == "a2a3" else "a2a3"
    chain = _chain(source, target, generation) or _chain(source, target, other)
    if chain is None:
        raise OperandValueError(
            f"{generation} has no conversion from {source.constant} to {target.constant}; {_advice(source, target)}"
        )
    return list(chain)


@cache
def _chain(source: DataType, target: DataType, generation: Generation) -> tuple[DataType, ...] | None:
    native = NATIVE[generation]
    if target in native.get(source, ()):
        return (target,)
    if not any(target in reached for reached in native.values()):
        return None
    queue: deque[tuple[DataType, ...]] = deque([()])
    seen = {source}
    while queue:
        path = queue.popleft()
        for step in native.get(path[-1], ()) if path else _first_hops(source, native):
            if step == target:
                return (*path, step)
            if step not in seen and _keeps(step, target):
                seen.add(step)
                queue.append((*path, step))
    return None


def _first_hops(source: DataType, native: dict[DataType, tuple[DataType, ...]]) -> list[DataType]:
    """Hops from ``source``; among chains of one length that through the float of its own width wins."""
    return sorted(native.get(source, ()), key=lambda d: not (d.is_float() and d.get_bit() == source.get_bit()))


def _keeps(step: DataType, target: DataType) -> bool:
    """Whether an intermediate loses nothing that ``target`` could hold (spec ops 11)."""
    if target.is_float():
        if not step.is_float():
            return False
        return _SIGNIFICAND[step] >= _SIGNIFICAND[target] and _EXPONENT[step] >= _EXPONENT[target]
    bits = target.get_bit() - target.is_signed_int()
    if step.is_float():
        return _SIGNIFICAND[step] >= bits
    if target.is_signed_int() and not step.is_signed_int():
        return False
    return step.get_bit() - step.is_signed_int() >= bits


@cache
def widening_chain(source: DataType, target: DataType) -> tuple[DataType, ...] | None:
    """Hops that are exact for every value of ``source``; used when operands are promoted (spec ops 1.5)."""
    native = {d: NATIVE["a2a3"].get(d, ()) + NATIVE["a5"].get(d, ()) for d in {*NATIVE["a2a3"], *NATIVE["a5"]}}
    queue: deque[tuple[DataType, ...]] = deque([()])
    seen = {source}
    while queue:
        path = queue.popleft()
        for step in native.get(path[-1] if path else source, ()):
            if step == target:
                return (*path, step)
            if step not in seen and _holds(step, source):
                seen.add(step)
                queue.append((*path, step))
    return None


def _holds(step: DataType, source: DataType) -> bool:
    if source.is_float():
        wide = step.is_float() and _SIGNIFICAND[step] >= _SIGNIFICAND[source]
        return wide and _EXPONENT[step] >= _EXPONENT[source]
    bits = source.get_bit() - source.is_signed_int()
    if step.is_float():
        return _SIGNIFICAND[step] >= bits
    return step.get_bit() - step.is_signed_int() >= bits and (step.is_signed_int() or not source.is_signed_int())


def working_dtype(call: Call) -> DataType:
    """The dtype a tensor form computes in: the declared one, or that of a tile which holds more.

    A product held on chip has accumulator precision whatever its tensor was declared as; it is narrowed once, at the
    final store (spec ops 12).
    """
    dtype = dtype_of(call)
    for value in call.arguments.values():
        if isinstance(value, Expr) and isinstance(value.type, TileType):
            wider = value.type.dtype.get_bit() > dtype.get_bit()
            if wider and value.type.dtype.is_float() == dtype.is_float():
                dtype = value.type.dtype
    return dtype


def to_dtype(value: Expr, dtype: DataType, b: Builder, mode: str = "rint") -> Expr:
    """The tile ``value`` converted to ``dtype`` where it differs; one ``tile.cast`` per hop."""
    source = dtype_of(value)
    if source == dtype:
        return value
    for step in widening_chain(source, dtype) or cast_chain(source, dtype, b.generation):
        value = b.tile("cast", tile=value, target_type=step, mode=mode)
    return value


def _advice(source: DataType, target: DataType) -> str:
    path = widening_chain(source, target)
    if path is not None:
        hops = " then ".join(f"pl.{d.constant}" for d in path)
        return f"cast in steps: {hops}"
    sources = sorted({d.constant for table in NATIVE.values() for d, to in table.items() if target in to})
    return f"{target.constant} is reached from {', '.join(sources) or 'no dtype'}"
