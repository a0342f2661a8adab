"""Rules of instructions that touch one element, or a signal."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_address, begin_access, log_element
from pypto.sim.checks.rules.memory import is_followed, is_window, memory_map
from pypto.sim.checks.rules.queues import follow_element_use
from pypto.sim.checks.rules.tile import code_at, set_code, valid_cols, valid_rows
from pypto.sim.checks.shadow import code_of, is_undefined, new_event, set_codes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word
from pypto.sim.scalars import element_bytes


@kernel_code
def _branch(state, instruction, code, row, col, tile, tensor, address):
    """A scalar register has taken an element with ``code``."""
    launch = as_pointer(state[w.LAUNCH])
    if code == 0 or not is_undefined(launch, code):
        return
    found = new_event(launch, w.BRANCHED, state[w.PROGRAM], instruction, 0, state[w.NODE], state[w.SEAT])
    if found == 0:
        return
    event = as_pointer(found)
    event[w.OR_ROW], event[w.OR_COL], event[w.OR_VALUE] = row, col, code
    event[w.OR_ALLOCATION] = -1
    if tile != 0:
        event[w.OR_ROWS], event[w.OR_COLS] = valid_rows(tile), valid_cols(tile)
    if tensor != 0:
        event[w.OR_ALLOCATION] = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
        size = element_bytes(load_word(tensor + 8 * layout.TENSOR_DTYPE))
        event[w.OR_LOW] = address - load_word(allocation_address(state, tensor) + 8 * w.GM_BASE)
        event[w.OR_HIGH] = event[w.OR_LOW] + size


@kernel_code
def follow_tensor_element(state, frame, code, pc, base):
    """One element of a tensor is read or written by scalar code."""
    tensor = base + 8 * code[pc + 2]
    instruction, address, size = code[pc + 3], frame[op.ARGUMENTS], frame[op.ARGUMENTS + 2]
    writes = code[pc] == op.STORE_TENSOR
    allocation = allocation_address(state, tensor)
    if state[w.ASKED] & w.UNDEFINED != 0 and is_followed(allocation):
        if writes:
            set_codes(memory_map(allocation), address, size, 0)
        elif not is_window(allocation):  # cells of signals are changed by what no rule sees
            _branch(state, instruction, code_of(memory_map(allocation), address, size), 0, 0, 0, tensor, address)
    if state[w.ASKED] & w.ORDER != 0 and load_word(allocation + 8 * w.GM_TRACKED) != 0:
        root = as_pointer(state[w.FACTS] + 8 * w.FACT_WORDS * instruction)[w.FACT_ROOT]
        kind = w.BY_SCALAR | (w.WRITES if writes else 0)
        if writes:
            as_pointer(state[w.LAUNCH])[w.SCALAR_STORES] = 1
        log_element(state, tensor, address, size, kind, instruction, root)


@kernel_code
def follow_tile_element(state, frame, code, pc, base):
    """One element of a tile is read or written by scalar code."""
    tile = base + 8 * code[pc + 2]
    row, col = frame[code[pc + 4]], frame[code[pc + 5]]
    if state[w.ASKED] & w.UNDEFINED == 0:
        return
    if code[pc] == op.STORE_TILE:
        set_code(state, tile, row, col, 0)
    else:
        follow_element_use(state, tile, code[pc + 3])
        _branch(state, code[pc + 3], code_at(state, tile, row, col), row, col, tile, 0, 0)


@kernel_code
def follow_signal(state, frame, code, pc):
    """A notify or a wait that has ended; accesses on its two sides are kept apart."""
    if state[w.ASKED] & w.ORDER == 0:
        return
    state[w.FENCES] += 1
    kind = w.NOTIFIES if code[pc] == op.NOTIFY else w.WAITED
    row = begin_access(state, kind, 0, frame[op.ARGUMENTS], frame[op.ARGUMENTS + 1], code[pc + 2], -1)
    box = as_pointer(row + 8 * w.ACCESS_BOX)
    box[2], box[3] = frame[op.ARGUMENTS + 2], frame[op.ARGUMENTS + 3]
    as_pointer(state[w.LAUNCH])[w.LOG_USED] += 1
    state[w.FENCES] += 1
