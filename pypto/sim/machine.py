"""The interpreter: one compiled loop over machine code (opcodes.py) and a frame.

It runs until the program returns, faults, or needs its driver, and leaves everything needed to go on in the frame.
Its pieces are inlined into the loop; they are apart to be read.
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
from pypto.sim.machine_arithmetic import compare, compute_float, compute_integer
from pypto.sim.machine_control import array_element, ranks, set_valid, tensor_view
from pypto.sim.machine_stops import RUNNING, fault, stop
from pypto.sim.native import as_pointer, call_kernel
from pypto.sim.scalars import element_bytes, load_element, store_element, wrap
from pypto.sim.views import element_address, tile_address


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


@kernel_code
def _observe(frame, pc, observer):
    """Let the observer look at the instruction at ``pc``; not 0 when it asks for a pause."""
    frame[op.PC] = pc
    return call_kernel(observer, frame[op.SELF])


@kernel_code
def _record(words, frame, row, instruction, work, tensor, scalars):
    """Trace row number ``row``; ``tensor`` is what the instruction touches in GM, or 0."""
    delta = as_pointer(words[4])[frame[tensor + layout.TENSOR_ALLOCATION]] if tensor else 0
    _write_row(frame, as_pointer(words[2] + row * 64), instruction, work, delta, scalars)


@kernel_code
def _call(words, frame, code, pc):
    """Gather the operands of a tile instruction and call its kernel; returns the kernel's status."""
    frame[op.ARGUMENTS] = frame[op.ARGUMENTS + 1] = frame[op.ARGUMENTS + 2] = frame[op.ARGUMENTS + 3] = 0
    for index in range(code[pc + 6]):
        word = code[pc + 7 + index]
        if word < 0:
            frame[op.ARGUMENTS + 4 + index] = words[1] - 8 * word
        else:
            frame[op.ARGUMENTS + 4 + index] = frame[word]
    return call_kernel(code[pc + 3], words[1] + 8 * op.ARGUMENTS)


@kernel_code
def _took_zero(frame, pc):
    """Keep what the report words say of an index outside its tile; whether somebody is to be told of it."""
    for word in range(3):
        frame[op.DETAIL + word] = frame[op.ARGUMENTS + word]
        frame[op.ARGUMENTS + word] = 0
    frame[op.CODE] = pc
    return frame[op.TELLS]


@kernel_code
def _touch_tensor(words, frame, code, pc, operation, row):
    """Read, write or list an element of a tensor; its address, -1 when it lies outside."""
    tensor = code[pc + 2]
    address, nibble = element_address(frame, code, pc + 4, tensor)
    if address == -1:
        return address
    dtype = frame[tensor + layout.TENSOR_DTYPE]
    if frame[op.RECORD] == op.LIST:
        list_element(frame, tensor, address, words[2] + row * 8 * ENTRY_WORDS)
    elif operation == op.LOAD_TENSOR:
        frame[code[pc + 1]] = load_element(address, dtype, nibble)
    else:
        store_element(address, dtype, nibble, frame[code[pc + 1]])
    return address


@kernel_code
def _touch_tile(frame, code, pc, operation):
    """Read or write an element of a tile; its address, -1 when it lies outside."""
    tile = code[pc + 2]
    address = tile_address(frame, tile, frame[code[pc + 4]], frame[code[pc + 5]])
    if address == -1 or frame[op.RECORD] == op.LIST:
        return address
    if operation == op.LOAD_TILE:
        frame[code[pc + 1]] = load_element(address, frame[tile + layout.TILE_DTYPE], -1)
    else:
        store_element(address, frame[tile + layout.TILE_DTYPE], -1, frame[code[pc + 1]])
    return address


@kernel_code
def _transfer(frame, code, pc, operation, observer):
    """One cross-core instruction; below 0: it cannot be done yet."""
    frame[op.PC] = pc
    if observer != 0 and operation == op.BARRIER:
        frame[op.ENTERS] = 1
        call_kernel(observer, frame[op.SELF])
        frame[op.ENTERS] = 0
    return crosscore.step(frame, code, pc)


def _run(words):
    """Run the block described by ``words`` and return a status (opcodes.py).

    ``words``: addresses of the code, of the frame and of the trace rows, room in rows, address of what to add to the
    addresses of every allocation in the trace.
    """
    code, frame, capacity = as_pointer(words[0]), as_pointer(words[1]), words[3]
    pc, scalars, row = frame[op.PC], frame[op.SCALARS], frame[op.ROWS]
    recording, listing = frame[op.RECORD] == op.TRACE, frame[op.RECORD] == op.LIST
    observer, paused, status = frame[op.OBSERVER], np.int64(0), np.int64(RUNNING)
    frame[op.SELF] = words[1]
    while True:
        operation = code[pc]
        if operation == op.CALL:
            if row >= capacity:
                status = stop(frame, op.TRACE_FULL, pc, 0)
                break
            if listing:
                if code[pc + 5] != 0:
                    if list_window(frame, code, pc, words[2] + row * 8 * ENTRY_WORDS) != 0:
                        status = stop(frame, op.UNKNOWN, pc, code[pc + 2])
                        break
                    row += 1
                pc += code[pc + 1]
                continue
            result = _call(words, frame, code, pc)
            if result != 0:
                if result != layout.TOOK_ZERO:
                    status = fault(frame, result, pc, code[pc + 2])
                    break
                paused = _took_zero(frame, pc)
            if observer != 0:
                paused = _observe(frame, pc, observer)
            if recording:
                _record(words, frame, row, code[pc + 2], code[pc + 4], code[pc + 5], scalars)
                row += 1
            frame[op.TOTAL_SCALARS] += scalars
            frame[op.SLOT_NUMBER] = 0
            scalars = 0
            pc += code[pc + 1]
            if paused != 0:
                status = stop(frame, op.PAUSED, pc, 0)
                break
            continue
        scalars += 1
        if operation == op.LOOP_TEST:
            index, bound, step = frame[code[pc + 1]], frame[code[pc + 2]], frame[code[pc + 3]]
            if step == 0:
                status = fault(frame, op.ZERO_STEP, pc, code[pc + 5])
                break
            enters = index < bound if step > 0 else index > bound
            pc = pc + 6 if enters else code[pc + 4]
        elif operation == op.LOOP_NEXT:
            frame[code[pc + 1]] += frame[code[pc + 2]]
            frame[op.FUEL] -= 1
            pc = code[pc + 3]
            if frame[op.FUEL] < 0:
                status = stop(frame, op.OUT_OF_FUEL, pc, 0)
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
        elif op.LT <= operation <= op.LNOT:
            frame[code[pc + 1]] = compare(operation, frame[code[pc + 2]], frame[code[pc + 3]], code[pc + 4] != 0)
            pc += 5
        elif op.FADD <= operation <= op.FLNOT:
            pc = compute_float(frame, code, pc, operation)
        elif op.DIV <= operation <= op.WRAP:
            following = compute_integer(frame, code, pc, operation)
            if following < 0:
                status = fault(frame, layout.DIVISION_BY_ZERO, pc, code[pc + 6])
                break
            pc = following
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
                    status = stop(frame, op.OUT_OF_FUEL, target, 0)
                    break
            pc = target
        elif operation == op.SLOT:
            slot = frame[code[pc + 5]] % code[pc + 4]
            frame[code[pc + 1]] = frame[code[pc + 2]] + slot * code[pc + 3]
            frame[op.SLOT_NUMBER] = slot
            scalars -= 1
            pc += 6
        elif operation == op.SELECT:
            frame[code[pc + 1]] = frame[code[pc + 3]] if frame[code[pc + 2]] != 0 else frame[code[pc + 4]]
            pc += 5
        elif operation == op.SET_VALID:
            pc, status = set_valid(frame, code, pc)
            if status != RUNNING:
                break
        elif op.LOAD_TENSOR <= operation <= op.STORE_TILE:
            on_tile = operation >= op.LOAD_TILE
            if row >= capacity:
                scalars -= 1
                status = stop(frame, op.TRACE_FULL, pc, 0)
                break
            if on_tile:
                address = _touch_tile(frame, code, pc, operation)
            else:
                address = _touch_tensor(words, frame, code, pc, operation, row)
            if address == -1:
                outside = layout.OUTSIDE_TILE if on_tile else layout.OUTSIDE_TENSOR
                status = fault(frame, outside, pc, code[pc + 3])
                break
            tensor = 0 if on_tile else code[pc + 2]
            size = 0 if on_tile else element_bytes(frame[tensor + layout.TENSOR_DTYPE])
            if observer != 0 and not listing:
                _report(frame, address, 0 if on_tile else 1, size)
                paused = _observe(frame, pc, observer)
            if recording:
                _report(frame, 0 if on_tile else address, 0 if on_tile else 1, size)
                _record(words, frame, row, code[pc + 3], 0, tensor, scalars - 1)
                scalars = 0
            if recording or listing and not on_tile:
                row += 1
            pc += 6 if on_tile else 5 + code[pc + 4]
            if paused != 0:
                status = stop(frame, op.PAUSED, pc, 0)
                break
        elif operation == op.ARRAY_GET or operation == op.ARRAY_SET:
            pc, status = array_element(frame, code, pc, operation)
            if status != RUNNING:
                break
        elif op.VIEW <= operation <= op.PERMUTE:
            pc, status = tensor_view(frame, code, pc, operation)
            if status != RUNNING:
                break
        elif operation == op.YIELD:
            scalars -= 1
            status = stop(frame, op.REQUEST, pc + 2, code[pc + 1])
            break
        elif operation == op.RETURN:
            scalars -= 1
            if recording and row >= capacity:
                status = stop(frame, op.TRACE_FULL, pc, 0)
                break
            if recording:
                _report(frame, 0, 0, 0)
                _record(words, frame, row, -1, 0, 0, scalars)
                row += 1
            status = stop(frame, op.DONE, pc, 0)
            break
        elif op.PUSH <= operation <= op.NOTE or operation == op.NOTIFY or operation == op.SIGNAL_WAIT:
            between_ranks = operation > op.NOTE
            scalars -= 1
            if listing and not between_ranks:
                pc += code[pc + 1]
                continue
            if row >= capacity:
                status = stop(frame, op.TRACE_FULL, pc, 0)
                break
            if between_ranks:
                result = distributed.step(frame, code, pc)
            else:
                result = _transfer(frame, code, pc, operation, observer)
            if result < 0:
                status = stop(frame, op.BLOCKED, pc, code[pc + 2])
                break
            if result > 0:
                status = fault(frame, result, pc, code[pc + 2])
                break
            if observer != 0:
                paused = _observe(frame, pc, observer)
            if recording:
                work = 0 if between_ranks else code[pc + 3]
                _record(words, frame, row, code[pc + 2], work, code[pc + 4] if operation == op.NOTE else 0, scalars)
                row += 1
            frame[op.TOTAL_SCALARS] += scalars
            if not between_ranks:
                frame[op.SLOT_NUMBER] = 0
            scalars = 0
            pc += code[pc + 1]
            if operation == op.NOTIFY:
                status = stop(frame, op.NOTIFIED, pc, 0)
                break
            if paused != 0:
                status = stop(frame, op.PAUSED, pc, 0)
                break
        elif op.COMM_CONTEXT <= operation <= op.PEER_VIEW:
            pc, status = ranks(frame, code, pc, operation)
            if status != RUNNING:
                break
        else:
            status = fault(frame, op.BAD_CODE, pc, -1)
            break
    frame[op.SCALARS] = scalars
    frame[op.ROWS] = row
    return status


@cache
def interpreter() -> Any:
    """The compiled interpreter as a function of one address (releases the GIL), compiled on first use."""
    sources = (
        "machine", "machine_arithmetic", "machine_control", "machine_stops", "opcodes", "layout", "native", "scalars",
        "views", "crosscore", "tile_queues", "footprint", "dependencies", "distributed",
    )  # fmt: skip
    return compiled_entry("machine", _run, sources)
