"""Instructions of the interpreter that change descriptors, or move words between registers, arrays and windows.

All return the next pc and the status of the run.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import distributed, layout
from pypto.sim import opcodes as op
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.machine_stops import RUNNING, fault
from pypto.sim.native import load_word
from pypto.sim.views import permute, reshape, view


@kernel_code
def set_valid(frame, code, pc):
    """Valid extents of a tile."""
    tile, rows, cols = code[pc + 1], frame[code[pc + 2]], frame[code[pc + 3]]
    for axis in range(2):
        wanted = rows if axis == 0 else cols
        extent = frame[tile + layout.TILE_ROWS + axis]
        if wanted < 0 or wanted > extent:
            frame[op.DETAIL], frame[op.DETAIL + 1], frame[op.DETAIL + 2] = wanted, extent, axis
            frame[op.FAULT] = op.TILE_VALID
    if frame[op.FAULT] != 0:
        return pc, fault(frame, op.TILE_VALID, pc, code[pc + 4])
    frame[tile + layout.TILE_VALID_ROWS] = rows
    frame[tile + layout.TILE_VALID_COLS] = cols
    return pc + 5, RUNNING


@kernel_code
def array_element(frame, code, pc, operation):
    """ARRAY_GET and ARRAY_SET."""
    index = frame[code[pc + 4]]
    if index < 0 or index >= code[pc + 3]:
        frame[op.DETAIL], frame[op.DETAIL + 1], frame[op.DETAIL + 2] = index, code[pc + 3], 0
        return pc, fault(frame, op.OUTSIDE_ARRAY, pc, code[pc + 5])
    if operation == op.ARRAY_GET:
        frame[code[pc + 1]] = frame[code[pc + 2] + index]
    else:
        frame[code[pc + 2] + index] = frame[code[pc + 1]]
    return pc + 6, RUNNING


@kernel_code
def tensor_view(frame, code, pc, operation):
    """VIEW, RESHAPE and PERMUTE."""
    if operation == op.PERMUTE:
        permute(frame, code[pc + 1], code[pc + 2], code[pc + 3], code[pc + 4])
        return pc + 5, RUNNING
    if operation == op.VIEW:
        result = view(frame, code, pc + 4, code[pc + 1], code[pc + 2])
    else:
        result = reshape(frame, code, pc + 4, code[pc + 1], code[pc + 2])
    if result != 0:
        return pc, fault(frame, result, pc, code[pc + 3])
    rank = code[pc + 4]
    return pc + 6 + 2 * rank + code[pc + 5 + 2 * rank] if operation == op.VIEW else pc + 6 + rank, RUNNING


@kernel_code
def ranks(frame, code, pc, operation):
    """COMM_CONTEXT, COMM_WORD and PEER_VIEW."""
    if operation == op.COMM_CONTEXT:
        frame[code[pc + 1]] = distributed.context_of(frame, code[pc + 2])
        return pc + 3, RUNNING
    if operation == op.COMM_WORD:
        context = frame[code[pc + 2]]
        if context == 0:
            return pc, fault(frame, op.NO_WINDOW, pc, -1)
        frame[code[pc + 1]] = load_word(context + 8 * code[pc + 3])
        return pc + 4, RUNNING
    result = distributed.peer_view(frame, code[pc + 1], code[pc + 2], frame[code[pc + 3]])
    if result != 0:
        return pc, fault(frame, result, pc, code[pc + 4])
    return pc + 5, RUNNING
