"""The interpreter: one compiled loop over machine code (opcodes.py) and a frame.

It runs until the program returns, faults, or needs its driver, and leaves everything needed to go on in the frame.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pypto.sim import crosscore, distributed, layout
from pypto.sim import opcodes as op
from pypto.sim.entry import compiled_entry
from pypto.sim.footprint import ENTRY_WORDS, list_element, list_window
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import (
    as_float,
    as_pointer,
    as_word,
    call_kernel,
    divide_signed,
    divide_unsigned,
    less_unsigned,
    load_word,
    shift_right_unsigned,
)
from pypto.sim.scalars import (
    element_bytes,
    float_to_integer,
    integer_to_float,
    load_element,
    round_float,
    store_element,
    wrap,
)
from pypto.sim.views import element_address, permute, reshape, tile_address, view

_DIVISION_BY_ZERO = layout.DIVISION_BY_ZERO
_LOWEST_INT64 = np.int64(-(2**63))


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
def _compare(operation, a, b, unsigned):
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
def _stop(frame, status, pc, site):
    frame[op.PC], frame[op.SITE] = pc, site
    return status


@kernel_code
def _fault(frame, fault, pc, instruction):
    frame[op.FAULT], frame[op.CODE] = fault, pc
    return _stop(frame, op.FAULTED, pc, instruction)


@kernel_code
def _write_row(frame, row, instruction, work, delta, scalars):
    """Trace row of the tile instruction just done, from the report words in the argument block."""
    row[layout.TRACE_PC] = instruction
    if work:
        row[layout.TRACE_VALID_ROWS] = frame[work + layout.TILE_VALID_ROWS]
        row[layout.TRACE_VALID_COLS] = frame[work + layout.TILE_VALID_COLS]
    else:
        row[layout.TRACE_VALID_ROWS] = row[layout.TRACE_VALID_COLS] = 0
    row[layout.TRACE_REPORT] = frame[op.ARGUMENTS] + delta
    row[layout.TRACE_REPORT + 1] = frame[op.ARGUMENTS + 1]
    row[layout.TRACE_REPORT + 2] = frame[op.ARGUMENTS + 2]
    row[layout.TRACE_REPORT + 3] = frame[op.ARGUMENTS + 3]
    row[layout.TRACE_SCALARS] = scalars | frame[op.SLOT_NUMBER] << layout.TRACE_SLOT_SHIFT


@kernel_code
def _report(frame, address, bursts, size):
    frame[op.ARGUMENTS], frame[op.ARGUMENTS + 1], frame[op.ARGUMENTS + 2] = address, bursts, size
    frame[op.ARGUMENTS + 3] = 0


def _run(words):
    """Run the block described by ``words`` (see :class:`Machine`) and return a status (opcodes.py)."""
    code, frame = as_pointer(words[0]), as_pointer(words[1])
    base = words[1]
    trace, capacity, deltas = words[2], words[3], as_pointer(words[4])
    pc = frame[op.PC]
    scalars = frame[op.SCALARS]
    row = frame[op.ROWS]
    recording, listing = frame[op.RECORD] == op.TRACE, frame[op.RECORD] == op.LIST
    status = op.FAULTED
    observer, paused = frame[op.OBSERVER], np.int64(0)
    while True:
        operation = code[pc]
        if operation == op.CALL:
            if row >= capacity:
                status = _stop(frame, op.TRACE_FULL, pc, 0)
                break
            count = code[pc + 6]
            if listing:
                if code[pc + 5] != 0:
                    if list_window(frame, code, pc, trace + row * 8 * ENTRY_WORDS) != 0:
                        status = _stop(frame, op.UNKNOWN, pc, code[pc + 2])
                        break
                    row += 1
                pc += code[pc + 1]
                continue
            frame[op.ARGUMENTS] = frame[op.ARGUMENTS + 1] = frame[op.ARGUMENTS + 2] = frame[op.ARGUMENTS + 3] = 0
            for index in range(count):
                word = code[pc + 7 + index]
                if word < 0:
                    frame[op.ARGUMENTS + 4 + index] = base - 8 * word
                else:
                    frame[op.ARGUMENTS + 4 + index] = frame[word]
            result = call_kernel(code[pc + 3], base + 8 * op.ARGUMENTS)
            if result != 0:
                status = _fault(frame, result, pc, code[pc + 2])
                break
            if observer != 0:
                frame[op.PC] = pc
                paused = call_kernel(observer, base)
            if recording:
                tensor = code[pc + 5]
                delta = deltas[frame[tensor + layout.TENSOR_ALLOCATION]] if tensor else 0
                _write_row(frame, as_pointer(trace + row * 64), code[pc + 2], code[pc + 4], delta, scalars)
                row += 1
            frame[op.TOTAL_SCALARS] += scalars
            frame[op.SLOT_NUMBER] = 0
            scalars = 0
            pc += code[pc + 1]
            if paused != 0:
                status = _stop(frame, op.PAUSED, pc, 0)
                break
            continue
        scalars += 1
        if operation == op.LOOP_TEST:
            index, bound, step = frame[code[pc + 1]], frame[code[pc + 2]], frame[code[pc + 3]]
            if step == 0:
                status = _fault(frame, op.ZERO_STEP, pc, code[pc + 5])
                break
            enters = index < bound if step > 0 else index > bound
            pc = pc + 6 if enters else code[pc + 4]
        elif operation == op.LOOP_NEXT:
            frame[code[pc + 1]] += frame[code[pc + 2]]
            frame[op.FUEL] -= 1
            pc = code[pc + 3]
            if frame[op.FUEL] < 0:
                status = _stop(frame, op.OUT_OF_FUEL, pc, 0)
                break
        elif operation == op.ADD:
            frame[code[pc + 1]] = wrap(frame[code[pc + 2]] + frame[code[pc + 3]], code[pc + 4], code[pc + 5])
            pc += 7
        elif operation == op.SUB:
            frame[code[pc + 1]] = wrap(frame[code[pc + 2]] - frame[code[pc + 3]], code[pc + 4], code[pc + 5])
            pc += 7
        elif operation == op.MUL:
            frame[code[pc + 1]] = wrap(frame[code[pc + 2]] * frame[code[pc + 3]], code[pc + 4], code[pc + 5])
            pc += 7
        elif operation == op.MOVE:
            frame[code[pc + 1]] = frame[code[pc + 2]]
            pc += 3
        elif operation == op.BRANCH_ZERO:
            pc = pc + 3 if frame[code[pc + 1]] != 0 else code[pc + 2]
        elif operation == op.JUMP:
            target = code[pc + 1]
            if target <= pc:
                frame[op.FUEL] -= 1
                if frame[op.FUEL] < 0:
                    status = _stop(frame, op.OUT_OF_FUEL, target, 0)
                    break
            pc = target
        elif operation == op.SLOT:
            slot = frame[code[pc + 5]] % code[pc + 4]
            frame[code[pc + 1]] = frame[code[pc + 2]] + slot * code[pc + 3]
            frame[op.SLOT_NUMBER] = slot
            scalars -= 1
            pc += 6
        elif operation == op.SET_VALID:
            tile, rows, cols = code[pc + 1], frame[code[pc + 2]], frame[code[pc + 3]]
            for axis in range(2):
                wanted = rows if axis == 0 else cols
                extent = frame[tile + layout.TILE_ROWS + axis]
                if wanted < 0 or wanted > extent:
                    frame[op.DETAIL], frame[op.DETAIL + 1], frame[op.DETAIL + 2] = wanted, extent, axis
                    frame[op.FAULT] = op.TILE_VALID
            if frame[op.FAULT] != 0:
                status = _fault(frame, op.TILE_VALID, pc, code[pc + 4])
                break
            frame[tile + layout.TILE_VALID_ROWS] = rows
            frame[tile + layout.TILE_VALID_COLS] = cols
            pc += 5
        elif op.DIV <= operation <= op.WRAP:
            a, b, shift, kind = frame[code[pc + 2]], frame[code[pc + 3]], code[pc + 4], code[pc + 5]
            if operation <= op.MOD:
                if b == 0:
                    status = _fault(frame, _DIVISION_BY_ZERO, pc, code[pc + 6])
                    break
                frame[code[pc + 1]] = wrap(_divide(operation, a, b, kind), shift, kind)
            else:
                frame[code[pc + 1]] = wrap(_integer(operation, a, b, shift, kind), shift, kind)
            pc += 7
        elif op.LT <= operation <= op.LNOT:
            frame[code[pc + 1]] = _compare(operation, frame[code[pc + 2]], frame[code[pc + 3]], code[pc + 4] != 0)
            pc += 5
        elif op.FADD <= operation <= op.FROUND:
            value = _float(operation, as_float(frame[code[pc + 2]]), as_float(frame[code[pc + 3]]))
            frame[code[pc + 1]] = as_word(round_float(value, code[pc + 4]))
            pc += 5
        elif (op.FLT <= operation <= op.FNE) or (op.FLAND <= operation <= op.FLNOT):
            frame[code[pc + 1]] = _compare_floats(
                operation, as_float(frame[code[pc + 2]]), as_float(frame[code[pc + 3]])
            )
            pc += 5
        elif operation == op.INT_TO_FLOAT:
            value = integer_to_float(frame[code[pc + 2]], code[pc + 3] != 0, code[pc + 4])
            frame[code[pc + 1]] = as_word(value)
            pc += 5
        elif operation == op.FLOAT_TO_INT:
            frame[code[pc + 1]] = float_to_integer(as_float(frame[code[pc + 2]]), code[pc + 3], code[pc + 4])
            pc += 5
        elif operation == op.SELECT:
            frame[code[pc + 1]] = frame[code[pc + 3]] if frame[code[pc + 2]] != 0 else frame[code[pc + 4]]
            pc += 5
        elif operation == op.LOAD_TENSOR or operation == op.STORE_TENSOR:
            if row >= capacity:
                scalars -= 1
                status = _stop(frame, op.TRACE_FULL, pc, 0)
                break
            tensor = code[pc + 2]
            address, nibble = element_address(frame, code, pc + 4, tensor)
            if address == -1:
                status = _fault(frame, layout.OUTSIDE_TENSOR, pc, code[pc + 3])
                break
            dtype = frame[tensor + layout.TENSOR_DTYPE]
            if listing:
                list_element(frame, tensor, address, trace + row * 8 * ENTRY_WORDS)
                row += 1
            elif operation == op.LOAD_TENSOR:
                frame[code[pc + 1]] = load_element(address, dtype, nibble)
            else:
                store_element(address, dtype, nibble, frame[code[pc + 1]])
            if observer != 0 and not listing:
                _report(frame, address, 1, element_bytes(dtype))
                frame[op.PC] = pc
                paused = call_kernel(observer, base)
            if recording:
                _report(frame, address, 1, element_bytes(dtype))
                delta = deltas[frame[tensor + layout.TENSOR_ALLOCATION]]
                _write_row(frame, as_pointer(trace + row * 64), code[pc + 3], 0, delta, scalars - 1)
                row += 1
                scalars = 0
            pc += 5 + code[pc + 4]
            if paused != 0:
                status = _stop(frame, op.PAUSED, pc, 0)
                break
        elif operation == op.LOAD_TILE or operation == op.STORE_TILE:
            if row >= capacity:
                scalars -= 1
                status = _stop(frame, op.TRACE_FULL, pc, 0)
                break
            tile = code[pc + 2]
            address = tile_address(frame, tile, frame[code[pc + 4]], frame[code[pc + 5]])
            if address == -1:
                status = _fault(frame, layout.OUTSIDE_TILE, pc, code[pc + 3])
                break
            if listing:
                pass
            elif operation == op.LOAD_TILE:
                frame[code[pc + 1]] = load_element(address, frame[tile + layout.TILE_DTYPE], -1)
            else:
                store_element(address, frame[tile + layout.TILE_DTYPE], -1, frame[code[pc + 1]])
            if observer != 0 and not listing:
                _report(frame, address, 0, 0)
                frame[op.PC] = pc
                call_kernel(observer, base)
            if recording:
                _report(frame, 0, 0, 0)
                _write_row(frame, as_pointer(trace + row * 64), code[pc + 3], 0, 0, scalars - 1)
                row += 1
                scalars = 0
            pc += 6
        elif operation == op.ARRAY_GET or operation == op.ARRAY_SET:
            index = frame[code[pc + 4]]
            if index < 0 or index >= code[pc + 3]:
                frame[op.DETAIL], frame[op.DETAIL + 1], frame[op.DETAIL + 2] = index, code[pc + 3], 0
                status = _fault(frame, op.OUTSIDE_ARRAY, pc, code[pc + 5])
                break
            if operation == op.ARRAY_GET:
                frame[code[pc + 1]] = frame[code[pc + 2] + index]
            else:
                frame[code[pc + 2] + index] = frame[code[pc + 1]]
            pc += 6
        elif operation == op.VIEW or operation == op.RESHAPE:
            if operation == op.VIEW:
                result = view(frame, code, pc + 4, code[pc + 1], code[pc + 2])
            else:
                result = reshape(frame, code, pc + 4, code[pc + 1], code[pc + 2])
            if result != 0:
                status = _fault(frame, result, pc, code[pc + 3])
                break
            rank = code[pc + 4]
            pc += 6 + 2 * rank + code[pc + 5 + 2 * rank] if operation == op.VIEW else 6 + rank
        elif operation == op.PERMUTE:
            permute(frame, code[pc + 1], code[pc + 2], code[pc + 3], code[pc + 4])
            pc += 5
        elif operation == op.YIELD:
            scalars -= 1
            status = _stop(frame, op.REQUEST, pc + 2, code[pc + 1])
            break
        elif operation == op.RETURN:
            scalars -= 1
            if recording:
                if row >= capacity:
                    status = _stop(frame, op.TRACE_FULL, pc, 0)
                    break
                _report(frame, 0, 0, 0)
                _write_row(frame, as_pointer(trace + row * 64), -1, 0, 0, scalars)
                row += 1
            status = _stop(frame, op.DONE, pc, 0)
            break
        elif op.PUSH <= operation <= op.NOTE:
            scalars -= 1
            if listing:
                pc += code[pc + 1]
                continue
            if row >= capacity:
                status = _stop(frame, op.TRACE_FULL, pc, 0)
                break
            frame[op.PC] = pc
            if observer != 0 and operation == op.BARRIER:
                frame[op.ENTERS] = 1
                call_kernel(observer, base)
                frame[op.ENTERS] = 0
            result = crosscore.step(frame, code, pc)
            if result < 0:
                status = _stop(frame, op.BLOCKED, pc, code[pc + 2])
                break
            if result > 0:
                status = _fault(frame, result, pc, code[pc + 2])
                break
            if observer != 0:
                call_kernel(observer, base)
            if recording:
                tensor = code[pc + 4] if operation == op.NOTE else 0
                delta = deltas[frame[tensor + layout.TENSOR_ALLOCATION]] if tensor else 0
                _write_row(frame, as_pointer(trace + row * 64), code[pc + 2], code[pc + 3], delta, scalars)
                row += 1
            frame[op.TOTAL_SCALARS] += scalars
            frame[op.SLOT_NUMBER] = 0
            scalars = 0
            pc += code[pc + 1]
        elif operation == op.COMM_CONTEXT:
            frame[code[pc + 1]] = distributed.context_of(frame, code[pc + 2])
            pc += 3
        elif operation == op.COMM_WORD:
            context = frame[code[pc + 2]]
            if context == 0:
                status = _fault(frame, op.NO_WINDOW, pc, -1)
                break
            frame[code[pc + 1]] = load_word(context + 8 * code[pc + 3])
            pc += 4
        elif operation == op.PEER_VIEW:
            result = distributed.peer_view(frame, code[pc + 1], code[pc + 2], frame[code[pc + 3]])
            if result != 0:
                status = _fault(frame, result, pc, code[pc + 4])
                break
            pc += 5
        elif operation == op.NOTIFY or operation == op.SIGNAL_WAIT:
            scalars -= 1
            if row >= capacity:
                status = _stop(frame, op.TRACE_FULL, pc, 0)
                break
            result = distributed.step(frame, code, pc)
            if result < 0:
                status = _stop(frame, op.BLOCKED, pc, code[pc + 2])
                break
            if result > 0:
                status = _fault(frame, result, pc, code[pc + 2])
                break
            if observer != 0:
                frame[op.PC] = pc
                call_kernel(observer, base)
            if recording:
                _write_row(frame, as_pointer(trace + row * 64), code[pc + 2], 0, 0, scalars)
                row += 1
            frame[op.TOTAL_SCALARS] += scalars
            scalars = 0
            pc += code[pc + 1]
            if operation == op.NOTIFY:
                status = _stop(frame, op.NOTIFIED, pc, 0)
                break
        else:
            status = _fault(frame, op.BAD_CODE, pc, -1)
            break
    frame[op.SCALARS] = scalars
    frame[op.ROWS] = row
    return status


@cache
def interpreter() -> Any:
    """The compiled interpreter as a function of one address (releases the GIL), compiled on first use."""
    sources = (
        "machine", "opcodes", "layout", "native", "scalars", "views", "crosscore", "footprint", "dependencies",
        "distributed",
    )  # fmt: skip
    return compiled_entry("machine", _run, sources)
