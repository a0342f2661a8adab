"""Rules of queues between cores: the codes of a tile travel with it through its slot."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import crosscore
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    element_size,
    map_of,
    row_pitch,
    set_code,
    set_part,
    set_rest,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import region_is_defined
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import fill_bytes, load_uint8, load_word, store_word


@kernel_code
def _slot(queue, counter):
    """Address of the slot that went through a queue last, by the counter of pushes or pops."""
    return crosscore.slot_address(queue, load_word(queue + 8 * counter) - 1)


@kernel_code
def _write_codes(state, tile, slot, codes, first_row, first_col):
    """Codes of the part of a tile that is in a slot: ``codes`` bytes from the part."""
    rows, cols = load_word(slot + 8 * crosscore.SLOT_VALID_ROWS), load_word(slot + 8 * crosscore.SLOT_VALID_COLS)
    size, pitch = element_size(tile), load_word(slot + 8 * crosscore.SLOT_COLS)
    high, wide = min(rows, all_rows(tile) - first_row), min(cols, all_cols(tile) - first_col)
    of = address_of(tile, first_row, first_col)
    if region_is_defined(map_of(state, tile), of, row_pitch(tile), high, wide * size):
        store_word(slot + 8 * crosscore.SLOT_FOLLOWED, 0)
        return
    store_word(slot + 8 * crosscore.SLOT_FOLLOWED, 1)
    for i in range(rows):
        for j in range(cols):
            code = code_at(state, tile, first_row + i, first_col + j)
            fill_bytes(slot + codes + crosscore.SLOT_HEADER + (i * pitch + j) * size, size, code)


@kernel_code
def follow_push(state, frame, code, pc, base):
    """A tile, or a part of it for each lane, has been put into a queue."""
    tile, direction, split = base + 8 * code[pc + 3], code[pc + 4], code[pc + 6]
    to_lanes = direction == crosscore.CUBE_TO_VECTOR
    first = 0 if to_lanes else frame[op.LANE]
    last = load_word(frame[op.CHANNELS] + 8 * crosscore.LANES) if to_lanes else first + 1
    for lane in range(first, last):
        queue = crosscore.queue_address(frame[op.CHANNELS], direction, code[pc + 5], lane)
        codes = load_word(queue + 8 * crosscore.SHADOW)
        if codes == 0:
            return
        row = col = 0
        if to_lanes and (split == 1 or split == 3):
            row, _, _ = crosscore.lane_part(all_rows(tile), valid_rows(tile), lane, code[pc + 7])
        elif to_lanes and (split == 2 or split == 4):
            col, _, _ = crosscore.lane_part(all_cols(tile), valid_cols(tile), lane, code[pc + 7])
        _write_codes(state, tile, _slot(queue, crosscore.PUSHED), codes, row, col)


@kernel_code
def _read_codes(state, tile, slot, codes, first_row, first_col):
    """The codes of a slot become those of the part of a tile from (first_row, first_col) on."""
    if load_word(slot + 8 * crosscore.SLOT_FOLLOWED) == 0:
        return
    size, pitch = element_size(tile), load_word(slot + 8 * crosscore.SLOT_COLS)
    for i in range(load_word(slot + 8 * crosscore.SLOT_VALID_ROWS)):
        for j in range(load_word(slot + 8 * crosscore.SLOT_VALID_COLS)):
            code = load_uint8(slot + codes + crosscore.SLOT_HEADER + (i * pitch + j) * size)
            if code != 0:
                set_code(state, tile, first_row + i, first_col + j, code)


@kernel_code
def follow_pop(state, frame, code, pc, base):
    """A tile, or the parts of both lanes, has come out of a queue."""
    tile, direction, split = base + 8 * code[pc + 3], code[pc + 4], code[pc + 6]
    if state[w.ASKED] & w.UNDEFINED == 0:
        return
    rows, cols = valid_rows(tile), valid_cols(tile)
    set_part(state, tile, rows, cols, 0)
    set_rest(state, tile, rows, cols)
    to_cube = direction == crosscore.VECTOR_TO_CUBE
    first = 0 if to_cube else frame[op.LANE]
    lanes = load_word(frame[op.CHANNELS] + 8 * crosscore.LANES) if to_cube and split != 0 else 1
    for lane in range(first, first + lanes):
        queue = crosscore.queue_address(frame[op.CHANNELS], direction, code[pc + 5], lane)
        codes, slot = load_word(queue + 8 * crosscore.SHADOW), _slot(queue, crosscore.POPPED)
        if codes == 0:
            return
        row = col = 0
        if to_cube and (split == 1 or split == 3):
            row = lane * load_word(slot + 8 * crosscore.SLOT_ROWS)
        elif to_cube and (split == 2 or split == 4):
            col = lane * load_word(slot + 8 * crosscore.SLOT_COLS)
        _read_codes(state, tile, slot, codes, row, col)
