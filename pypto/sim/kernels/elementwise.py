"""Elementwise operations on two or three sources of one shape and dtype (ops 4 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import FP32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.arithmetic import DIVIDES, bit_operation, leaky, operation
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import as_element, fetch, scalar, store
from pypto.sim.kernels.operands import FIRST, FOURTH, SECOND, THIRD, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import FLOATS, INTEGERS, NUMBERS, Dtypes, same
from pypto.sim.layout import DIVISION_BY_ZERO, OK, OUTSIDE_TILE


@kernel_code
def contains_zero(values, pitch, rows, cols, dtype):
    """Whether the block holds a zero."""
    zeros = 0
    for i in range(rows):
        for j in range(cols):
            zeros += fetch(values, i * pitch + j, dtype) == 0
    return zeros > 0


def _binary(dtype: DataType, apply: Callable[..., Any], checked: bool) -> Callable[[Any], int]:
    def body(args):
        dst, a, b = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols) and covers(b, rows, cols)):
            return OUTSIDE_TILE
        to, left, right = address(dst), address(a), address(b)
        pitch, left_pitch, right_pitch = stride(dst), stride(a), stride(b)
        if pitch == cols and left_pitch == cols and right_pitch == cols:
            rows, cols = 1, rows * cols
        if checked and contains_zero(right, right_pitch, rows, cols, dtype):
            return DIVISION_BY_ZERO
        for i in range(rows):
            for j in range(cols):
                x = fetch(left, i * left_pitch + j, dtype)
                y = fetch(right, i * right_pitch + j, dtype)
                store(to, i * pitch + j, dtype, apply(x, y))
        return OK

    return body


def _with_scalar(
    dtype: DataType, scalar_dtype: DataType, apply: Callable[..., Any], checked: bool
) -> Callable[[Any], int]:
    def body(args):
        dst, a = args[FIRST], args[SECOND]
        y = scalar(args[THIRD], scalar_dtype)
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        if checked and y == 0:
            return DIVISION_BY_ZERO
        to, left, pitch, left_pitch = address(dst), address(a), stride(dst), stride(a)
        if pitch == cols and left_pitch == cols:
            rows, cols = 1, rows * cols
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, dtype, apply(fetch(left, i * left_pitch + j, dtype), y))
        return OK

    return body


def _ternary(dtype: DataType, apply: Callable[..., Any]) -> Callable[[Any], int]:
    def body(args):
        dst, a, b, c = args[FIRST], args[SECOND], args[THIRD], args[FOURTH]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols) and covers(b, rows, cols) and covers(c, rows, cols)):
            return OUTSIDE_TILE
        for i in range(rows):
            to = address(dst) + i * stride(dst) * dtype_bytes
            first = address(a) + i * stride(a) * dtype_bytes
            second = address(b) + i * stride(b) * dtype_bytes
            third = address(c) + i * stride(c) * dtype_bytes
            for j in range(cols):
                partial = as_element(apply(fetch(first, j, dtype), fetch(second, j, dtype)), dtype)
                store(to, j, dtype, apply(partial, fetch(third, j, dtype)))
        return OK

    dtype_bytes = dtype.get_byte()
    return body


def _ternary_scalar(dtype: DataType, apply: Callable[..., Any]) -> Callable[[Any], int]:
    def body(args):
        dst, a, c = args[FIRST], args[SECOND], args[FOURTH]
        y = scalar(args[THIRD], dtype)
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols) and covers(c, rows, cols)):
            return OUTSIDE_TILE
        for i in range(rows):
            to = address(dst) + i * stride(dst) * dtype_bytes
            first = address(a) + i * stride(a) * dtype_bytes
            third = address(c) + i * stride(c) * dtype_bytes
            for j in range(cols):
                partial = as_element(apply(fetch(first, j, dtype), y), dtype)
                store(to, j, dtype, apply(partial, fetch(third, j, dtype)))
        return OK

    dtype_bytes = dtype.get_byte()
    return body


def _divides(instruction: Instruction, dtype: DataType) -> bool:
    return instruction.variant in DIVIDES and not dtype.is_float()


def _name(instruction: Instruction, dtype: DataType) -> str:
    return f"{instruction.mnemonic}.{dtype.to_string()}"


def binary(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = a op b``; division statuses: 3 for an integer zero divisor anywhere."""
    dtype = same(instruction, dtypes, (0, 1, 2), NUMBERS)
    apply = operation(instruction.variant, dtype)
    return Kernel(_name(instruction, dtype), _binary(dtype, apply, _divides(instruction, dtype)))


def binary_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = a op s`` with ``s`` converted to the dtype of ``a`` first."""
    dtype = same(instruction, dtypes, (0, 1), NUMBERS)
    apply = operation(instruction.variant, dtype)
    return Kernel(_name(instruction, dtype), _with_scalar(dtype, dtype, apply, _divides(instruction, dtype)))


def leaky_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = a if a > 0 else a * slope``; the slope stays fp32 whatever the dtype of ``a``."""
    dtype = same(instruction, dtypes, (0, 1), FLOATS)
    return Kernel(_name(instruction, dtype), _with_scalar(dtype, FP32, leaky, False))


def ternary(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = (a op b) op c``, rounded after each step."""
    dtype = same(instruction, dtypes, (0, 1, 2, 3), NUMBERS)
    return Kernel(_name(instruction, dtype), _ternary(dtype, operation(instruction.variant, dtype)))


def ternary_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = (a op s) op c``, rounded after each step."""
    dtype = same(instruction, dtypes, (0, 1, 3), NUMBERS)
    return Kernel(_name(instruction, dtype), _ternary_scalar(dtype, operation(instruction.variant, dtype)))


def bitwise(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = a op b`` on the bits of integers."""
    dtype = same(instruction, dtypes, (0, 1, 2), INTEGERS)
    return Kernel(_name(instruction, dtype), _binary(dtype, bit_operation(instruction.variant, dtype), False))


def bitwise_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst = a op s`` on the bits of integers."""
    dtype = same(instruction, dtypes, (0, 1), INTEGERS)
    return Kernel(
        _name(instruction, dtype), _with_scalar(dtype, dtype, bit_operation(instruction.variant, dtype), False)
    )
