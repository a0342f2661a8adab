"""Which element types the kernel families take, and the error for the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pypto.ir.dtype import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
)
from pypto.ir.instructions import Instruction

Dtypes = Sequence[DataType | None]

FLOATS: Final = (FP32, FP16, BF16)
SIGNED: Final = (INT8, INT16, INT32, INT64)
UNSIGNED: Final = (UINT8, UINT16, UINT32, UINT64)
INTEGERS: Final = (*SIGNED, *UNSIGNED)
NUMBERS: Final = (*FLOATS, *INTEGERS)
_WORDS: Final = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}


class UnsupportedDtype(ValueError):
    """An instruction has no kernel for the element types of its operands."""


def raw(dtype: DataType) -> DataType:
    """The unsigned integer as wide as an element of ``dtype`` on chip: what copies move."""
    return _WORDS[dtype.get_byte()]


def canonical(dtype: DataType | None) -> DataType | None:
    """The dtype whose arithmetic ``dtype`` shares: ``INDEX`` is ``INT64``, ``BOOL`` is ``UINT8``."""
    if dtype is None:
        return None
    return {INDEX: INT64, BOOL: UINT8}.get(dtype, dtype)


def reject(instruction: Instruction, dtypes: Dtypes, legal: str) -> UnsupportedDtype:
    """The error for ``dtypes`` (one per operand, ``None`` for scalars and lists)."""
    given = ", ".join(
        f"{operand.name}: {dtype.to_string()}"
        for operand, dtype in zip(instruction.operands, dtypes)
        if dtype is not None
    )
    return UnsupportedDtype(f"{instruction.mnemonic}: no kernel for {given}; legal: {legal}")


def same(instruction: Instruction, dtypes: Dtypes, positions: Iterable[int], legal: Sequence[DataType]) -> DataType:
    """The one dtype that all operands at ``positions`` have, out of ``legal``; :class:`UnsupportedDtype` otherwise."""
    found = {dtypes[position] for position in positions}
    dtype = found.pop()
    if found or dtype is None or dtype not in legal:
        raise reject(instruction, dtypes, "equal dtypes out of " + ", ".join(d.to_string() for d in legal))

    return dtype
