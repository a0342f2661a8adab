"""Tiles computed from scalars (ops 2)."""

from __future__ import annotations

import numpy as np

from pypto.ir.dtype import INT32, UINT32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import store
from pypto.sim.kernels.operands import FIRST, SECOND, THIRD, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import INTEGERS, NUMBERS, Dtypes, reject
from pypto.sim.layout import OK, OUTSIDE_TILE, UNSUPPORTED_DTYPE


def _destination(instruction: Instruction, dtypes: Dtypes, legal: tuple[DataType, ...]) -> DataType:
    dtype = dtypes[0]
    if dtype is None or dtype not in legal:
        raise reject(instruction, dtypes, ", ".join(d.to_string() for d in legal))
    return dtype


def arange(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tci``: ``start + j`` (or ``start - j``) along every row, wrapping."""
    dtype = _destination(instruction, dtypes, INTEGERS)

    def body(args):
        dst, first, descending = args[FIRST], args[SECOND], args[THIRD] != 0
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not covers(dst, rows, cols):
            return OUTSIDE_TILE
        to, pitch, direction = address(dst), stride(dst), -1 if descending else 1
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, dtype, first + direction * j)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def triangle(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``ttri``: ones on and below (``upper``: above) the diagonal, zeros elsewhere."""
    dtype = _destination(instruction, dtypes, NUMBERS)

    def body(args):
        dst, diagonal, upper = args[FIRST], args[SECOND], args[THIRD] != 0
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not covers(dst, rows, cols):
            return OUTSIDE_TILE
        to, pitch = address(dst), stride(dst)
        for i in range(rows):
            for j in range(cols):
                inside = j >= i + diagonal if upper else j <= i + diagonal
                store(to, i * pitch + j, dtype, 1 if inside else 0)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LANES = 64


@kernel_code
def block(c0, c1, c2, c3, k0, k1, rounds):
    """Philox-4x32 of one 128-bit counter; all words are 32 bits held in uint64."""
    for _ in range(rounds):
        p0, p1 = c0 * _MULTIPLIER_0, c2 * _MULTIPLIER_1
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _WORD, (p0 >> _HALF) ^ c3 ^ k1, p0 & _WORD
        k0, k1 = (k0 + _WEYL_0) & _WORD, (k1 + _WEYL_1) & _WORD
    return c0, c1, c2, c3


@kernel_code
def advance(c0, c1, c2, c3, amount):
    """The 128-bit counter plus ``amount``."""
    c0 += amount
    c1 += c0 >> _HALF
    c2 += c1 >> _HALF
    c3 += c2 >> _HALF
    return c0 & _WORD, c1 & _WORD, c2 & _WORD, c3 & _WORD


@kernel_code
def word32(value):
    """The lower 32 bits of an integer."""
    return np.uint64(value) & _WORD


def random(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``trandom``: counter-based words in chunks of 256 columns, the counter running on from row to row (ops 2.1)."""
    dtype = _destination(instruction, dtypes, (UINT32, INT32))

    def body(args):
        dst, rounds = args[FIRST], args[FIRST + 7]
        k0, k1 = word32(args[FIRST + 1]), word32(args[FIRST + 2])
        c0, c1, c2, c3 = (
            word32(args[FIRST + 3]),
            word32(args[FIRST + 4]),
            word32(args[FIRST + 5]),
            word32(args[FIRST + 6]),
        )
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not covers(dst, rows, cols):
            return OUTSIDE_TILE
        if rounds != 7 and rounds != 10:
            return UNSUPPORTED_DTYPE
        to, pitch = address(dst), stride(dst)
        for i in range(rows):
            for first in range(0, cols, 4 * _LANES):
                for lane in range(_LANES):
                    d0, d1, d2, d3 = advance(c0, c1, c2, c3, np.uint64(lane))
                    words = block(d0, d1, d2, d3, k0, k1, rounds)
                    for r in range(4):
                        j = first + _LANES * r + lane
                        if j < cols:
                            store(to, i * pitch + j, dtype, words[r])
                c0, c1, c2, c3 = advance(c0, c1, c2, c3, np.uint64(pitch // 4))
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)
