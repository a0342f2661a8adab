"""Instructions of the interpreter that compute a register from registers."""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

import numpy as np

from pypto.sim import opcodes as op
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import (
    as_float,
    as_word,
    divide_signed,
    divide_unsigned,
    less_unsigned,
    shift_right_unsigned,
)
from pypto.sim.scalars import float_to_integer, integer_to_float, round_float, wrap


@kernel_code
def _divide(operation, a, b, kind):
    """DIV, FLOORDIV or MOD of integers; ``b`` is not zero. The remainder has the sign of the divisor."""
    if kind == 1 and (a < 0 or b < 0):
        quotient = divide_unsigned(a, b)
        return a - quotient * b if operation == op.MOD else quotient
    if b == -1:
        return 0 if operation == op.MOD else -a
    quotient = divide_signed(a, b)
    remainder = a - quotient * b
    if operation == op.DIV:
        return quotient
    crosses = remainder != 0 and ((remainder < 0) != (b < 0))
    if operation == op.MOD:
        return remainder + b if crosses else remainder
    return quotient - 1 if crosses else quotient


@kernel_code
def _shift(operation, a, count, shift, kind):
    """SHL or SHR; a count outside the width shifts every bit out."""
    out = count < 0 or count >= 64 - shift
    if operation == op.SHL:
        return 0 if out else a << count
    if kind == 1:
        return 0 if out else shift_right_unsigned(a, count)
    return a >> (63 if out else count)


@kernel_code
def _integer(operation, a, b, shift, kind):
    """Integer operation before the wrap; everything but ADD, SUB and MUL, which the loop does itself."""
    if operation == op.MIN or operation == op.MAX:
        less = less_unsigned(a, b) != 0 if kind == 1 else a < b
        return a if less == (operation == op.MIN) else b
    if operation == op.AND:
        return a & b
    if operation == op.OR:
        return a | b
    if operation == op.XOR:
        return a ^ b
    if operation == op.NEG:
        return -a
    if operation == op.NOT:
        return ~a
    if operation == op.ABS:
        return -a if a < 0 and kind == 0 else a
    if operation == op.SHL or operation == op.SHR:
        return _shift(operation, a, b, shift, kind)
    return a


@kernel_code
def compare(operation, a, b, unsigned):
    """LT to LNOT of integers."""
    if operation == op.LT:
        return less_unsigned(a, b) if unsigned else np.int64(a < b)
    if operation == op.LE:
        return 1 - less_unsigned(b, a) if unsigned else np.int64(a <= b)
    if operation == op.EQ:
        return np.int64(a == b)
    if operation == op.NE:
        return np.int64(a != b)
    if operation == op.LAND:
        return np.int64(a != 0 and b != 0)
    if operation == op.LOR:
        return np.int64(a != 0 or b != 0)
    return np.int64(a == 0)


@kernel_code
def _float(operation, a, b):
    """Float operation before the rounding to the dtype."""
    if operation == op.FADD:
        return a + b
    if operation == op.FSUB:
        return a - b
    if operation == op.FMUL:
        return a * b
    if operation == op.FDIV:
        return a / b
    if operation == op.FMIN:
        return a if a < b or a != a else b
    if operation == op.FMAX:
        return a if a > b or a != a else b
    if operation == op.FNEG:
        return -a
    if operation == op.FABS:
        return abs(a)
    if operation == op.FFLOORDIV:
        return np.floor(a / b)
    if operation == op.FMOD:
        return a - b * np.floor(a / b)
    return a


@kernel_code
def _compare_floats(operation, a, b):
    if operation == op.FLT:
        return np.int64(a < b)
    if operation == op.FLE:
        return np.int64(a <= b)
    if operation == op.FEQ:
        return np.int64(a == b)
    if operation == op.FNE:
        return np.int64(a != b)
    if operation == op.FLAND:
        return np.int64(a != 0.0 and b != 0.0)
    if operation == op.FLOR:
        return np.int64(a != 0.0 or b != 0.0)
    return np.int64(a == 0.0)


@kernel_code
def compute_integer(frame, code, pc, operation):
    """Carry out DIV to WRAP; returns the next pc, or -1 for a division by zero."""
    a, b, shift, kind = frame[code[pc + 2]], frame[code[pc + 3]], code[pc + 4], code[pc + 5]
    if operation <= op.MOD:
        if b == 0:
            return -1
        result = _divide(operation, a, b, kind)
    else:
        result = _integer(operation, a, b, shift, kind)
    frame[code[pc + 1]] = wrap(result, shift, kind)
    return pc + 7


@kernel_code
def compute_float(frame, code, pc, operation):
    """Carry out FADD to FLNOT; returns the next pc."""
    if operation == op.INT_TO_FLOAT:
        frame[code[pc + 1]] = as_word(integer_to_float(frame[code[pc + 2]], code[pc + 3] != 0, code[pc + 4]))
    elif operation == op.FLOAT_TO_INT:
        frame[code[pc + 1]] = float_to_integer(as_float(frame[code[pc + 2]]), code[pc + 3], code[pc + 4])
    else:
        a, b = as_float(frame[code[pc + 2]]), as_float(frame[code[pc + 3]])
        if operation <= op.FROUND:
            frame[code[pc + 1]] = as_word(round_float(_float(operation, a, b), code[pc + 4]))
        else:
            frame[code[pc + 1]] = _compare_floats(operation, a, b)
    return pc + 5
