"""Matrix multiplication (ops 12).

Operands of 16 bits and less are widened to an fp32 scratch and multiplied by BLAS. Products of fp16 and bf16 are exact
in fp32; 8-bit integers are multiplied in slices of K short enough for every partial sum to be exact, and accumulated in
int32. Wider integers are multiplied in int32, which wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pypto.ir.dtype import (
    BF16,
    FP8E4M3FN,
    FP8E5M2,
    FP8E8M0,
    FP16,
    FP32,
    HF8,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    DataType,
)
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.blas import sgemm
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.copying import same_value
from pypto.sim.kernels.element import fetch, load, store
from pypto.sim.kernels.formats import decoder
from pypto.sim.kernels.operands import FIRST, SECOND, THIRD, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import Dtypes, reject
from pypto.sim.layout import OK, OUTSIDE_TILE

_FLOATS: Final = (FP32, FP16, BF16, FP8E4M3FN, FP8E5M2, HF8)
_INTEGERS: Final = (INT8, UINT8, INT16, UINT16, INT32, UINT32)
# Longest K whose partial sums stay within 2**24: 2**24 / 128**2 and 2**24 / 255**2, rounded down to a multiple of 32
_EXACT_K: Final = {INT8: 1024, UINT8: 256}
SCALE_GROUP: Final = 32


@kernel_code
def start(dst, pitch, bias, rows, cols, dtype):
    """Every row of the accumulator = ``bias``."""
    for i in range(rows):
        for j in range(cols):
            store(dst, i * pitch + j, dtype, fetch(bias, j, dtype))


@kernel_code
def zero(dst, pitch, rows, cols, dtype):
    """Clear ``rows`` by ``cols`` accumulators."""
    for i in range(rows):
        for j in range(cols):
            store(dst, i * pitch + j, dtype, 0)


def _widen(dtype: DataType) -> Callable[..., None]:
    decode = same_value if dtype in (FP32, FP16, BF16) or dtype.is_int() else decoder(dtype)

    @kernel_code
    def widen(scratch, source, pitch, rows, cols):
        for i in range(rows):
            for j in range(cols):
                store(scratch, i * cols + j, FP32, decode(fetch(source, i * pitch + j, dtype)))

    return widen


def _float_product(dtype: DataType) -> Callable[..., None]:
    widen = _widen(dtype)
    narrow = dtype != FP32

    @kernel_code
    def product(c, ldc, a, lda, ta, b, ldb, tb, m, k, n, beta):
        if narrow:
            rows, cols = (k, m) if ta else (m, k)
            lower, right = (n, k) if tb else (k, n)
            scratch = np.empty(m * k + k * n, np.float32)
            left = scratch.ctypes.data
            widen(left, a, lda, rows, cols)
            widen(left + 4 * m * k, b, ldb, lower, right)
            sgemm(tb, ta, n, m, k, left + 4 * m * k, max(right, 1), left, max(cols, 1), np.float32(beta), c, ldc)
            scratch[0] = scratch.size  # keeps the scratch alive across the call
        else:
            sgemm(tb, ta, n, m, k, b, ldb, a, lda, np.float32(beta), c, ldc)

    return product


def _exact_product(dtype: DataType) -> Callable[..., None]:
    widen, longest, size = _widen(dtype), _EXACT_K[dtype], dtype.get_byte()

    @kernel_code
    def product(c, ldc, a, lda, ta, b, ldb, tb, m, k, n, beta):
        if beta == 0:
            zero(c, ldc, m, n, INT32)
        slice_k = min(k, longest)
        scratch = np.empty(m * slice_k + slice_k * n + m * n + 1, np.float32)
        left = scratch.ctypes.data
        right, sums = left + 4 * m * slice_k, left + 4 * (m * slice_k + slice_k * n)
        for first in range(0, k, longest):
            depth = min(longest, k - first)
            rows, cols = (depth, m) if ta else (m, depth)
            lower, across = (n, depth) if tb else (depth, n)
            widen(left, a + (first * lda if ta else first) * size, lda, rows, cols)
            widen(right, b + (first if tb else first * ldb) * size, ldb, lower, across)
            sgemm(tb, ta, n, m, depth, right, across, left, cols, np.float32(0), sums, n)
            for i in range(m):
                for j in range(n):
                    store(c, i * ldc + j, INT32, load(c, i * ldc + j, INT32) + np.int32(load(sums, i * n + j, FP32)))
        scratch[0] = scratch.size  # keeps the scratch alive across the calls

    return product


def _integer_product(dtype: DataType) -> Callable[..., None]:
    @kernel_code
    def product(c, ldc, a, lda, ta, b, ldb, tb, m, k, n, beta):
        if beta == 0:
            zero(c, ldc, m, n, INT32)
        for i in range(m):
            for p in range(k):
                x = np.int64(fetch(a, p * lda + i if ta else i * lda + p, dtype))
                for j in range(n):
                    y = np.int64(fetch(b, j * ldb + p if tb else p * ldb + j, dtype))
                    store(c, i * ldc + j, INT32, load(c, i * ldc + j, INT32) + x * y)

    return product


def _product(dtype: DataType) -> Callable[..., None]:
    if dtype.is_float():
        return _float_product(dtype)
    return _exact_product(dtype) if dtype in _EXACT_K else _integer_product(dtype)


def product(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tmatmul``, ``tgemv`` and their ``_acc`` and ``_bias`` forms; report words 0, M, K, N.

    M and K are the valid extents of ``a``, N the valid columns of ``b`` (after transposition).
    """
    to, a, b = dtypes[:3]
    result = FP32 if a is not None and a.is_float() else INT32
    biased = instruction.variant == "bias"
    if a is None or a != b or a not in (*_FLOATS, *_INTEGERS) or to != result or biased and dtypes[3] != result:
        raise reject(instruction, dtypes, "a and b equal; floats into fp32, integers into int32; bias as dst")
    body = _body(_product(a), result, instruction.variant)
    return Kernel(f"{instruction.mnemonic.replace('tgemv', 'tmatmul')}.{a.to_string()}", body)


def _body(multiply: Callable[..., None], result: DataType, variant: str) -> Callable[[Any], int]:
    biased, accumulates = variant == "bias", variant != "overwrite"
    attributes = THIRD + 2 if biased else THIRD + 1
    beta = 1 if accumulates else 0

    def body(args):
        dst, a, b = args[FIRST], args[SECOND], args[THIRD]
        ta, tb = args[attributes], args[attributes + 1]
        m, k = (valid_cols(a), valid_rows(a)) if ta else (valid_rows(a), valid_cols(a))
        n = valid_rows(b) if tb else valid_cols(b)
        if not (covers(dst, m, n) and covers(b, n if tb else k, k if tb else n)):
            return OUTSIDE_TILE
        args[1], args[2], args[3] = m, k, n
        if m <= 0 or n <= 0:
            return OK
        c, ldc = address(dst), stride(dst)
        if biased:
            bias = args[THIRD + 1]
            if not covers(bias, 1, n):
                return OUTSIDE_TILE
            start(c, ldc, address(bias), m, n, result)
        if k > 0:
            multiply(c, ldc, address(a), stride(a), ta, address(b), stride(b), tb, m, k, n, beta)
        elif not accumulates:
            zero(c, ldc, m, n, result)
        return OK

    return body


def _scaled(dtype: DataType) -> Callable[..., None]:
    decode, power = decoder(dtype), decoder(FP8E8M0)

    @kernel_code
    def widen(scratch, source, pitch, scales, scale_pitch, rows, cols, along_cols):
        for i in range(rows):
            for j in range(cols):
                at = i * scale_pitch + j // SCALE_GROUP if along_cols else i // SCALE_GROUP * scale_pitch + j
                x = decode(fetch(source, i * pitch + j, dtype)) * power(fetch(scales, at, FP8E8M0))
                store(scratch, i * cols + j, FP32, x)

    return widen


def scaled_product(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tmatmul_mx`` and its forms: fp8 operands with one power of two per 32 elements along K; report 0, M, K, N."""
    to, a, a_scale, b, b_scale = dtypes[:5]
    biased, accumulates = instruction.variant == "bias", instruction.variant != "overwrite"
    legal = a in (FP8E4M3FN, FP8E5M2) and b in (FP8E4M3FN, FP8E5M2) and to == FP32 and (not biased or dtypes[5] == FP32)
    if a is None or b is None or not legal or not {a_scale, b_scale} <= {FP8E8M0, UINT8}:
        raise reject(instruction, dtypes, "a and b fp8e4m3fn or fp8e5m2, scales fp8e8m0, dst and bias fp32")
    widen_a, widen_b = _scaled(a), _scaled(b)
    beta = np.float32(1 if accumulates else 0)

    def body(args):
        dst, left, left_scale, right, right_scale = args[4], args[5], args[6], args[7], args[8]
        m, k, n = valid_rows(left), valid_cols(left), valid_cols(right)
        groups = (k + SCALE_GROUP - 1) // SCALE_GROUP
        if not (covers(dst, m, n) and covers(right, k, n)):
            return OUTSIDE_TILE
        if not (covers(left_scale, m, groups) and covers(right_scale, groups, n)):
            return OUTSIDE_TILE
        args[1], args[2], args[3] = m, k, n
        if m <= 0 or n <= 0:
            return OK
        c, ldc = address(dst), stride(dst)
        if biased:
            start(c, ldc, address(args[9]), m, n, FP32)
        scratch = np.empty(m * k + k * n + 1, np.float32)
        wide = scratch.ctypes.data
        widen_a(wide, address(left), stride(left), address(left_scale), stride(left_scale), m, k, True)
        widen_b(wide + 4 * m * k, address(right), stride(right), address(right_scale), stride(right_scale), k, n, False)
        sgemm(0, 0, n, m, k, wide + 4 * m * k, n, wide, max(k, 1), beta, c, ldc)
        scratch[0] = scratch.size  # keeps the scratch alive across the call
        return OK

    return Kernel(f"{instruction.mnemonic}.{a.to_string()}.{b.to_string()}", body)
