"""Kernels that compute nothing and report as much as the real ones: bursts of a copy, extents of a product.

They stand in for the kernels of a program whose time is wanted and whose values are not
(:func:`pypto.sim.outline.outlined`). A copy is checked against tensor and tile as ever; its report depends on the
descriptor alone, so one kernel serves every element type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.operands import (
    FIRST,
    SECOND,
    THIRD,
    physical_cols,
    physical_rows,
    valid_cols,
    valid_rows,
    word,
)
from pypto.sim.kernels.window import (
    check_shape,
    check_window,
    outer_count,
    outer_offset,
    report,
    valid_size,
    window_origin,
    window_step,
)
from pypto.sim.layout import OK, TENSOR_ADDRESS, TENSOR_DTYPE
from pypto.sim.scalars import element_bytes, is_nibble

_LOAD, _STORE = (SECOND, FIRST), (FIRST, SECOND)
_COPIES = {"tload": _LOAD, "tstore": _STORE, "tremote_load": _LOAD, "tremote_store": _STORE}
"""Operand positions of tensor and tile."""


def outline(instruction: Instruction) -> Kernel | None:
    """The stand-in for ``instruction``; ``None`` when its report depends on values (indices in a tile or tensor)."""
    if instruction.mnemonic in _COPIES:
        return Kernel(f"outline.{instruction.mnemonic}", _copy(*_COPIES[instruction.mnemonic]))
    if instruction.cost == "mmad":
        attributes = THIRD + 2 if instruction.variant == "bias" else THIRD + 1
        return Kernel(f"outline.product{attributes}", _product(attributes))
    if instruction.cost == "mmad_mx":
        return Kernel("outline.scaled_product", _scaled_product)
    touches_memory = any(operand.kind == "tensor" for operand in instruction.operands)
    return None if touches_memory else Kernel("outline.nothing", _nothing)


def _nothing(args):
    return OK


@kernel_code
def _bits(tensor):
    dtype = word(tensor, TENSOR_DTYPE)
    return 4 if is_nibble(dtype) else 8 * element_bytes(dtype)


def _copy(tensor_at: int, tile_at: int) -> Callable[[Any], int]:
    def body(args):
        tensor, tile, lists = args[tensor_at], args[tile_at], THIRD
        status = check_window(args, lists, tensor) or check_shape(args, lists, physical_rows(tile), physical_cols(tile))
        if status:
            return status
        moved, rows = 0, max(valid_size(args, lists, 2), 0)
        for outer in range(outer_count(args, lists)):
            if outer_offset(args, lists, tensor, outer) >= 0:
                moved += rows
        bits = _bits(tensor)
        start = word(tensor, TENSOR_ADDRESS) + window_origin(args, lists, tensor) * bits // 8
        row_step, col_step = window_step(args, lists, tensor, 2), window_step(args, lists, tensor, 1)
        report(args, start, moved, max(valid_size(args, lists, 1), 0), row_step, col_step, bits)
        return OK

    return body


def _product(attributes: int) -> Callable[[Any], int]:
    def body(args):
        a, b = args[SECOND], args[THIRD]
        turned = args[attributes] != 0
        args[1] = valid_cols(a) if turned else valid_rows(a)
        args[2] = valid_rows(a) if turned else valid_cols(a)
        args[3] = valid_rows(b) if args[attributes + 1] else valid_cols(b)
        return OK

    return body


def _scaled_product(args):
    left, right = args[SECOND], args[SECOND + 2]
    args[1], args[2], args[3] = valid_rows(left), valid_cols(left), valid_cols(right)
    return OK
