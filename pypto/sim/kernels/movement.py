"""Movement between global memory and tiles, and between tiles (ops 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel
from pypto.sim.kernels.copying import block_add, block_copy, clear, is_packed, pack, unpack
from pypto.sim.kernels.operands import (
    FIRST,
    FOURTH,
    SECOND,
    THIRD,
    address,
    covers,
    physical_cols,
    physical_rows,
    stride,
    valid_cols,
    valid_rows,
    word,
)
from pypto.sim.kernels.support import NUMBERS, Dtypes, raw, reject
from pypto.sim.kernels.window import (
    check_shape,
    check_window,
    outer_count,
    outer_offset,
    report,
    valid_size,
    window_origin,
    window_size,
    window_step,
)
from pypto.sim.layout import OK, OUTSIDE_TENSOR, OUTSIDE_TILE, TENSOR_ADDRESS, UNSUPPORTED_DTYPE

ATOMIC = (FP32, FP16, BF16, INT32, INT16, INT8)


def _known(dtype: DataType | None, instruction: Instruction, dtypes: Dtypes) -> DataType:
    if dtype is None:
        raise reject(instruction, dtypes, "a dtype for every tile and tensor")
    return dtype


def _pair(instruction: Instruction, dtypes: Dtypes) -> tuple[DataType, DataType]:
    return _known(dtypes[0], instruction, dtypes), _known(dtypes[1], instruction, dtypes)


def _equal_width(instruction: Instruction, dtypes: Dtypes) -> DataType:
    to, of = _pair(instruction, dtypes)
    if to.get_bit() != of.get_bit() and (to.get_byte() != of.get_byte() or is_packed(to) or is_packed(of)):
        raise reject(instruction, dtypes, "dtypes of one width")
    return to


def _width_name(dtype: DataType) -> str:
    return dtype.to_string() if is_packed(dtype) else f"b{8 * dtype.get_byte()}"


def load(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tload``: the valid window of a tensor, zeros in the rest of the tile."""
    dtype = _equal_width(instruction, dtypes)
    body = _load_packed(dtype) if is_packed(dtype) else _load(raw(dtype))
    return Kernel(f"{instruction.mnemonic}.{_width_name(dtype)}", body)


def _load(dtype: DataType) -> Callable[[Any], int]:
    copy = block_copy(dtype, dtype)
    size = dtype.get_byte()

    def body(args):
        dst, tensor, lists = args[FIRST], args[SECOND], THIRD
        status = check_window(args, lists, tensor) or check_shape(args, lists, physical_rows(dst), physical_cols(dst))
        if status:
            return status
        to, pitch, total = address(dst), stride(dst), physical_cols(dst)
        of = word(tensor, TENSOR_ADDRESS) + window_origin(args, lists, tensor) * size
        row_step, col_step = window_step(args, lists, tensor, 2), window_step(args, lists, tensor, 1)
        window, rows, cols = window_size(args, lists, 2), valid_size(args, lists, 2), max(valid_size(args, lists, 1), 0)
        count, moved = outer_count(args, lists), 0
        for outer in range(count):
            offset = outer_offset(args, lists, tensor, outer)
            present = max(rows, 0) if offset >= 0 else 0
            block = to + outer * window * pitch * size
            copy(block, pitch, 1, of + offset * size, row_step, col_step, present, cols)
            clear(block + cols * size, pitch, present, total - cols, dtype)
            clear(block + present * pitch * size, pitch, window - present, total, dtype)
            moved += present
        filled = count * window
        clear(to + filled * pitch * size, pitch, physical_rows(dst) - filled, total, dtype)
        report(args, of, moved, cols, row_step, col_step, 8 * size)
        return OK

    return body


def _load_packed(dtype: DataType) -> Callable[[Any], int]:
    copy, byte = unpack(dtype), raw(dtype)

    def body(args):
        dst, tensor, lists = args[FIRST], args[SECOND], THIRD
        status = check_window(args, lists, tensor) or check_shape(args, lists, physical_rows(dst), physical_cols(dst))
        if status:
            return status
        to, pitch = address(dst), stride(dst)
        base, origin = word(tensor, TENSOR_ADDRESS), window_origin(args, lists, tensor)
        row_step, col_step = window_step(args, lists, tensor, 2), window_step(args, lists, tensor, 1)
        window, rows, cols = window_size(args, lists, 2), valid_size(args, lists, 2), valid_size(args, lists, 1)
        clear(to, pitch, physical_rows(dst), physical_cols(dst), byte)
        moved = 0
        for outer in range(outer_count(args, lists)):
            offset = outer_offset(args, lists, tensor, outer)
            if offset >= 0:
                copy(to + outer * window * pitch, pitch, base, origin + offset, row_step, col_step, rows, cols)
                moved += rows
        report(args, base + origin // 2, moved, cols, row_step, col_step, 4)
        return OK

    return body


def save(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tstore``: the valid window of a tile, converted to the tensor's dtype, or added to it."""
    to, of = _pair(instruction, dtypes)
    if is_packed(to) and to == of:
        return Kernel(f"{instruction.mnemonic}.{to.to_string()}", _save_packed())
    if to == of or to.get_byte() == of.get_byte() and to not in NUMBERS:
        if to in ATOMIC:
            return Kernel(f"{instruction.mnemonic}.{to.to_string()}", _save(to, to))
        return Kernel(f"{instruction.mnemonic}.{_width_name(to)}", _save(raw(to), raw(to)))
    if to not in NUMBERS or of not in NUMBERS:
        raise reject(instruction, dtypes, "equal dtypes, or two number dtypes of at least 8 bits")
    return Kernel(f"{instruction.mnemonic}.{to.to_string()}.{of.to_string()}", _save(to, of))


def _save(to_dtype: DataType, of_dtype: DataType) -> Callable[[Any], int]:
    copy = block_copy(to_dtype, of_dtype)
    add = block_add(to_dtype, of_dtype)
    atomic = to_dtype in ATOMIC
    to_size, of_size = to_dtype.get_byte(), of_dtype.get_byte()

    def body(args):
        tensor, src, lists = args[FIRST], args[SECOND], THIRD
        status = check_window(args, lists, tensor) or check_shape(args, lists, physical_rows(src), physical_cols(src))
        if status:
            return status
        adds = args[lists + 3 * args[lists] + 3] == 1
        if adds and not atomic:
            return UNSUPPORTED_DTYPE
        of, pitch = address(src), stride(src)
        to = word(tensor, TENSOR_ADDRESS) + window_origin(args, lists, tensor) * to_size
        row_step, col_step = window_step(args, lists, tensor, 2), window_step(args, lists, tensor, 1)
        window, rows, cols = window_size(args, lists, 2), valid_size(args, lists, 2), valid_size(args, lists, 1)
        moved = 0
        for outer in range(outer_count(args, lists)):
            offset = outer_offset(args, lists, tensor, outer)
            if offset >= 0:
                block = of + outer * window * pitch * of_size
                if adds:
                    add(to + offset * to_size, row_step, col_step, block, pitch, 1, rows, cols)
                else:
                    copy(to + offset * to_size, row_step, col_step, block, pitch, 1, rows, cols)
                moved += rows
        report(args, to, moved, cols, row_step, col_step, 8 * to_size)
        return OK

    return body


def _save_packed() -> Callable[[Any], int]:
    def body(args):
        tensor, src, lists = args[FIRST], args[SECOND], THIRD
        status = check_window(args, lists, tensor) or check_shape(args, lists, physical_rows(src), physical_cols(src))
        if status:
            return status
        if args[lists + 3 * args[lists] + 3] == 1:
            return UNSUPPORTED_DTYPE
        of, pitch = address(src), stride(src)
        base, origin = word(tensor, TENSOR_ADDRESS), window_origin(args, lists, tensor)
        row_step, col_step = window_step(args, lists, tensor, 2), window_step(args, lists, tensor, 1)
        window, rows, cols = window_size(args, lists, 2), valid_size(args, lists, 2), valid_size(args, lists, 1)
        moved = 0
        for outer in range(outer_count(args, lists)):
            offset = outer_offset(args, lists, tensor, outer)
            if offset >= 0:
                pack(base, origin + offset, row_step, col_step, of + outer * window * pitch, pitch, rows, cols)
                moved += rows
        report(args, base + origin // 2, moved, cols, row_step, col_step, 4)
        return OK

    return body


def _tile_pair(instruction: Instruction, dtypes: Dtypes) -> tuple[DataType, DataType, str]:
    to, of = _pair(instruction, dtypes)
    if to == of or to.get_byte() == of.get_byte() and (to not in NUMBERS or of not in NUMBERS):
        return raw(to), raw(to), f"{instruction.mnemonic}.b{8 * to.get_byte()}"
    if to not in NUMBERS or of not in NUMBERS:
        raise reject(instruction, dtypes, "equal dtypes, or two number dtypes of at least 8 bits")
    return to, of, f"{instruction.mnemonic}.{to.to_string()}.{of.to_string()}"


def move(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tmov``: a tile or its transpose, over the valid region of the destination."""
    to_dtype, of_dtype, name = _tile_pair(instruction, dtypes)
    copy = block_copy(to_dtype, of_dtype)

    def body(args):
        dst, src, transposed = args[FIRST], args[SECOND], args[THIRD] != 0
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not covers(dst, rows, cols) or not covers(src, cols if transposed else rows, rows if transposed else cols):
            return OUTSIDE_TILE
        row, col = (1, stride(src)) if transposed else (stride(src), 1)
        copy(address(dst), stride(dst), 1, address(src), row, col, rows, cols)
        return OK

    return Kernel(name, body)


def extract(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``textract``: a window of a tile, over the valid region of the destination."""
    to_dtype, of_dtype, name = _tile_pair(instruction, dtypes)
    copy = block_copy(to_dtype, of_dtype)
    size = of_dtype.get_byte()

    def body(args):
        dst, src, row, col, transposed = args[FIRST], args[SECOND], args[THIRD], args[FOURTH], args[FOURTH + 1] != 0
        rows, cols = valid_rows(dst), valid_cols(dst)
        last_row, last_col = row + (cols if transposed else rows), col + (rows if transposed else cols)
        if row < 0 or col < 0 or not covers(dst, rows, cols) or not covers(src, last_row, last_col):
            return OUTSIDE_TILE
        of = address(src) + (row * stride(src) + col) * size
        row_step, col_step = (1, stride(src)) if transposed else (stride(src), 1)
        copy(address(dst), stride(dst), 1, of, row_step, col_step, rows, cols)
        return OK

    return Kernel(name, body)


def insert(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tinsert``: the valid region of a tile into a larger one."""
    to_dtype, of_dtype, name = _tile_pair(instruction, dtypes)
    copy = block_copy(to_dtype, of_dtype)
    size = to_dtype.get_byte()

    def body(args):
        dst, src, row, col = args[FIRST], args[SECOND], args[THIRD], args[FOURTH]
        rows, cols = valid_rows(src), valid_cols(src)
        if row < 0 or col < 0 or not covers(dst, row + rows, col + cols) or not covers(src, rows, cols):
            return OUTSIDE_TILE
        to = address(dst) + (row * stride(dst) + col) * size
        copy(to, stride(dst), 1, address(src), stride(src), 1, rows, cols)
        return OK

    return Kernel(name, body)


def gather_row(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tgather_row``: a window of a tensor (of rank 1 or 2), or its transpose, into part of a tile."""
    dtype = raw(_equal_width(instruction, dtypes))
    copy = block_copy(dtype, dtype)
    size = dtype.get_byte()

    def body(args):
        dst, tensor, count = args[FIRST], args[SECOND], args[THIRD]
        lists = THIRD + count + 1
        status = check_window(args, lists, tensor)
        if status:
            return status
        n = args[lists]
        if count < 1 or count > 2 or n > 2:
            return OUTSIDE_TENSOR
        transposed = args[lists + 3 * n + 3] != 0
        row, col = (args[THIRD + 1] if count == 2 else 0), args[THIRD + count]
        rows, cols = valid_size(args, lists, 2), valid_size(args, lists, 1)
        of = word(tensor, TENSOR_ADDRESS) + window_origin(args, lists, tensor) * size
        row_step, col_step = window_step(args, lists, tensor, 2), window_step(args, lists, tensor, 1)
        report(args, of, rows, cols, row_step, col_step, 8 * size)
        if transposed:
            rows, cols, row_step, col_step = cols, rows, col_step, row_step
        if row < 0 or col < 0 or not covers(dst, row + rows, col + cols):
            return OUTSIDE_TILE
        copy(address(dst) + (row * stride(dst) + col) * size, stride(dst), 1, of, row_step, col_step, rows, cols)
        return OK

    return Kernel(f"{instruction.mnemonic}.b{8 * size}", body)
