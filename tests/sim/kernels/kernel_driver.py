"""Runs one instruction on NumPy arrays through the kernel ABI of docs/architecture.md 2."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto.ir.dtype import DataType
from pypto.ir.instructions import lookup
from pypto.sim.kernels.catalogue import address
from pypto.sim.layout import MAX_RANK, TENSOR_EXTENTS, TENSOR_STRIDES, TENSOR_WORDS

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
POISON = 0x5A


@dataclass
class Tile:
    """A tile over its own bytes: ``stride`` columns per row are allocated, the rest of each row is poison."""

    dtype: DataType
    rows: int
    cols: int
    valid: tuple[int, int] | None = None
    stride: int = 0
    words: Any = None
    descriptor: Any = field(init=False)

    def __post_init__(self) -> None:
        self.stride = self.stride or self.cols
        storage = np.dtype(self.dtype.storage)
        if self.words is None:
            self.words = np.frombuffer(bytes([POISON]) * (self.rows * self.stride * storage.itemsize), storage).copy()
            self.words = self.words.reshape(self.rows, self.stride)
        rows, cols = self.valid or (self.rows, self.cols)
        self.descriptor = np.array(
            [self.words.ctypes.data, self.rows, self.cols, self.stride, rows, cols, self.dtype.code(), 1], np.int64
        )

    @classmethod
    def of(cls, array: Any, dtype: DataType, stride: int = 0, valid: tuple[int, int] | None = None) -> Tile:
        """A tile that holds ``array`` (storage words of ``dtype``)."""
        rows, cols = array.shape
        tile = cls(dtype, rows, cols, valid, stride)
        tile.words[:, :cols] = array.view(tile.words.dtype)
        return tile

    @property
    def array(self) -> Any:
        """The physical region without the gap up to the stride."""
        return self.words[:, : self.cols]

    @property
    def inside(self) -> Any:
        """The valid region."""
        return self.words[: self.descriptor[4], : self.descriptor[5]]

    def gap_is_poison(self) -> bool:
        gap = np.ascontiguousarray(self.words[:, self.cols :])
        return bool((gap.view(np.uint8) == POISON).all())


@dataclass
class Tensor:
    """A global tensor over a NumPy array (or a strided view of one)."""

    array: Any
    dtype: DataType
    descriptor: Any = field(init=False)

    def __post_init__(self) -> None:
        array, size = self.array, self.array.itemsize
        words = np.zeros(TENSOR_WORDS, np.int64)
        low, high = np.lib.array_utils.byte_bounds(array)
        words[:6] = array.ctypes.data, array.ndim, self.dtype.code(), 7, low, high
        words[TENSOR_EXTENTS : TENSOR_EXTENTS + MAX_RANK] = 1
        words[TENSOR_EXTENTS : TENSOR_EXTENTS + array.ndim] = array.shape
        words[TENSOR_STRIDES : TENSOR_STRIDES + array.ndim] = [s // size for s in array.strides]
        self.descriptor = words


def _words(operand: Any, floating: bool) -> list[int]:
    if isinstance(operand, (Tile, Tensor)):
        return [operand.descriptor.ctypes.data]
    if isinstance(operand, (list, tuple)):
        return [len(operand), *operand]
    if floating:
        return list(struct.unpack("<q", struct.pack("<d", operand)))
    return [int(operand)]


def run(mnemonic: str, *operands: Any, **attributes: int | str) -> tuple[int, list[int]]:
    """Execute ``mnemonic``; returns its status and its four report words. Attributes take names of the encoding."""
    row = lookup(mnemonic)
    dtypes = [o.dtype if isinstance(o, (Tile, Tensor)) else None for o in operands]
    block = [0, 0, 0, 0]
    for spec, operand in zip(row.operands, operands, strict=True):
        like = dtypes[row.index[spec.like]] if spec.like in row.index else None
        block += _words(operand, spec.like == "float" or (like is not None and like.is_float()))
    for attribute in row.attributes:
        value = attributes.pop(attribute.name, attribute.default)
        block.append(attribute.encoding[value] if isinstance(value, str) else value)
    if attributes:
        raise TypeError(f"{mnemonic} has no attribute {', '.join(attributes)}")
    words = np.array(block, np.int64)
    status = _FUNCTION(address(row, dtypes))(words.ctypes.data)
    return status, words[:4].tolist()


def ok(mnemonic: str, *operands: Any, **attributes: int | str) -> list[int]:
    """Execute ``mnemonic``, which must succeed; returns the report words."""
    status, report = run(mnemonic, *operands, **attributes)
    if status:
        raise AssertionError(f"{mnemonic}: status {status}")
    return report
