"""Operations on one source tile (ops 5 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import FP32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels import functions
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import bits, fetch, store
from pypto.sim.kernels.intrinsics import magnitude
from pypto.sim.kernels.operands import FIRST, SECOND, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import FLOATS, INTEGERS, NUMBERS, Dtypes, same
from pypto.sim.layout import OK, OUTSIDE_TILE

_MAGNITUDE = np.int32(0x7FFFFFFF)

_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[DataType, ...]]] = {
    "neg": (functions.neg, NUMBERS),
    "abs": (functions.absolute, NUMBERS),
    "relu": (functions.relu_integer, NUMBERS),
    "invert": (functions.invert, INTEGERS),
    "exp": (functions.exp, FLOATS),
    "log": (functions.log, FLOATS),
    "sqrt": (functions.sqrt, FLOATS),
    "rsqrt": (functions.rsqrt, FLOATS),
    "recip": (functions.recip, FLOATS),
    "sin": (functions.sine, (FP32,)),
    "cos": (functions.cosine, (FP32,)),
}


def _unary(dtype: DataType, apply: Callable[..., Any]) -> Callable[[Any], int]:
    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        to, source, pitch, source_pitch = address(dst), address(a), stride(dst), stride(a)
        if pitch == cols and source_pitch == cols:
            rows, cols = 1, rows * cols
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, dtype, apply(fetch(source, i * source_pitch + j, dtype)))
        return OK

    return body


# Elements whose exponents are inspected together before the quick or the general exponential is chosen
_BLOCK = 1024


def _exponential(dtype: DataType) -> Callable[[Any], int]:
    @kernel_code
    def block(to, of, count):
        worst = np.int32(0)
        for j in range(count):
            worst = max(worst, np.int32(bits(fetch(of, j, dtype), worst) & _MAGNITUDE))
        if worst <= functions.MODERATE_BITS:
            for j in range(count):
                store(to, j, dtype, functions.exp_moderate(fetch(of, j, dtype)))
        else:
            for j in range(count):
                store(to, j, dtype, functions.exp(fetch(of, j, dtype)))

    size = dtype.get_byte()

    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        pitch, source_pitch = stride(dst), stride(a)
        if pitch == cols and source_pitch == cols:
            rows, cols = 1, rows * cols
        for i in range(rows):
            to, of = address(dst) + i * pitch * size, address(a) + i * source_pitch * size
            for first in range(0, cols, _BLOCK):
                block(to + first * size, of + first * size, min(_BLOCK, cols - first))
        return OK

    return body


def unary(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = f(a)``, computed in fp32 for float dtypes and rounded once."""
    apply, legal = _FUNCTIONS[instruction.variant]
    dtype = same(instruction, dtypes, (0, 1), legal)
    if dtype.is_float():
        apply = {"abs": magnitude, "relu": functions.relu}.get(instruction.variant, apply)
    body = _exponential(dtype) if instruction.variant == "exp" else _unary(dtype, apply)
    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)
