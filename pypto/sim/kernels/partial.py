"""Operations on two operands of different valid shapes (ops 8)."""

from __future__ import annotations

from pypto.ir.instructions import Instruction
from pypto.sim.kernels.arithmetic import operation
from pypto.sim.kernels.compilation import Kernel
from pypto.sim.kernels.element import fetch, store
from pypto.sim.kernels.operands import FIRST, SECOND, THIRD, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import NUMBERS, Dtypes, same
from pypto.sim.layout import OK, OUTSIDE_TILE


def partial(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``a op b`` where both are valid, the valid one where one is, 0 elsewhere in the valid region of ``dst``."""
    dtype = same(instruction, dtypes, (0, 1, 2), NUMBERS)
    apply = operation(instruction.variant, dtype)
    size = dtype.get_byte()

    def body(args):
        dst, a, b = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (
            covers(dst, rows, cols)
            and covers(a, valid_rows(a), valid_cols(a))
            and covers(b, valid_rows(b), valid_cols(b))
        ):
            return OUTSIDE_TILE
        for i in range(rows):
            to, left = address(dst) + i * stride(dst) * size, address(a) + i * stride(a) * size
            right = address(b) + i * stride(b) * size
            left_cols = min(valid_cols(a), cols) if i < valid_rows(a) else 0
            right_cols = min(valid_cols(b), cols) if i < valid_rows(b) else 0
            both, either = min(left_cols, right_cols), max(left_cols, right_cols)
            longer = left if left_cols > right_cols else right
            for j in range(both):
                store(to, j, dtype, apply(fetch(left, j, dtype), fetch(right, j, dtype)))
            for j in range(both, either):
                store(to, j, dtype, fetch(longer, j, dtype))
            for j in range(either, cols):
                store(to, j, dtype, 0)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)
