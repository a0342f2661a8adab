"""Rules of queues between cores: the codes of a tile travel with it through its slot, and end when it is freed."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import opcodes as op
from pypto.sim import tile_queues
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    data_of,
    element_size,
    map_of,
    row_pitch,
    set_code,
    set_part,
    set_rest,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import code_of, new_event, new_origin, region_is_defined
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, fill_bytes, load_uint8, load_word, store_word


@kernel_code
def _slot(queue, counter):
    """Address of the slot that went through a queue last, by the counter of pushes or pops."""
    return tile_queues.slot_address(queue, load_word(queue + 8 * counter) - 1)


@kernel_code
def _write_codes(state, tile, slot, codes, first_row, first_col):
    """Codes of the part of a tile that is in a slot: ``codes`` bytes from the part."""
    rows, cols = load_word(slot + 8 * tile_queues.SLOT_VALID_ROWS), load_word(slot + 8 * tile_queues.SLOT_VALID_COLS)
    size, pitch = element_size(tile), load_word(slot + 8 * tile_queues.SLOT_COLS)
    high, wide = min(rows, all_rows(tile) - first_row), min(cols, all_cols(tile) - first_col)
    of = address_of(tile, first_row, first_col)
    if region_is_defined(map_of(state, tile), of, row_pitch(tile), high, wide * size):
        store_word(slot + 8 * tile_queues.SLOT_FOLLOWED, 0)
        return
    store_word(slot + 8 * tile_queues.SLOT_FOLLOWED, 1)
    for i in range(rows):
        for j in range(cols):
            code = code_at(state, tile, first_row + i, first_col + j)
            fill_bytes(slot + codes + tile_queues.SLOT_HEADER + (i * pitch + j) * size, size, code)


@kernel_code
def _freed_code(state, tile):
    """Code of a tile whose slot was freed, else 0."""
    code = code_of(map_of(state, tile), data_of(tile), 1)
    if code < w.FIRST_ORIGIN or code == w.MIXED:
        return 0
    launch = as_pointer(state[w.LAUNCH])
    origin = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (code - w.FIRST_ORIGIN))
    return code if origin[w.OR_KIND] == w.FREED_SLOT else 0


@kernel_code
def _use(state, tile, instruction, operand):
    """An instruction takes ``tile``: tell when its slot was freed, once, and go on as if it had not been."""
    code = _freed_code(state, tile)
    if code == 0:
        return
    launch = as_pointer(state[w.LAUNCH])
    event = new_event(launch, w.USED_FREED, state[w.PROGRAM], instruction, operand, state[w.NODE], state[w.SEAT])
    if event != 0:
        as_pointer(event)[w.OR_VALUE] = code
    set_part(state, tile, valid_rows(tile), valid_cols(tile), 0)
    set_rest(state, tile, valid_rows(tile), valid_cols(tile))


@kernel_code
def follow_uses(state, args, fact, instruction):
    """An instruction of a program that frees slots is about to be followed: the tiles it takes must be its own."""
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        _use(state, args[position], instruction, position)


@kernel_code
def follow_element_use(state, tile, instruction):
    """Scalar code takes an element of ``tile``."""
    _use(state, tile, instruction, 0)


@kernel_code
def _mark(state, tile, instruction, by_another, number):
    """The slot of ``tile`` is gone: the sender may overwrite what the tile stands for."""
    launch = as_pointer(state[w.LAUNCH])
    code = new_origin(
        launch, w.FREED_SLOT, state[w.PROGRAM], instruction, by_another, number, 0, 0, 0, state[w.NODE], state[w.SEAT]
    )
    origin = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (code - w.FIRST_ORIGIN))
    if origin[w.OR_KIND] == w.FREED_SLOT:  # there is room for so many origins only
        set_part(state, tile, all_rows(tile), all_cols(tile), code)


@kernel_code
def follow_free(state, frame, code, pc, base):
    """A slot was given back: that of the tile named, and of the oldest one popped if that is another."""
    if state[w.ASKED] & w.UNDEFINED == 0 or code[pc + 7] & op.FREES_A_COPY != 0:
        return
    _mark(state, base + 8 * code[pc + 8], code[pc + 2], 0, frame[op.ARGUMENTS + 1])
    if code[pc + 7] & op.FREES_BY_NAME == 0:
        return
    direction = code[pc + 4]
    lane = 0 if direction == tile_queues.VECTOR_TO_CUBE else frame[op.LANE]
    queue = tile_queues.queue_address(frame[op.CHANNELS], direction, code[pc + 5], lane)
    slot = tile_queues.slot_address(queue, frame[op.ARGUMENTS + 1])
    tile = load_word(slot + 8 * tile_queues.SLOT_TILE)
    not_named = load_word(slot + 8 * tile_queues.SLOT_FREE) == tile_queues.NOT_FREED
    if not_named and tile_queues.slot_of_tile(queue, tile) == slot:
        _mark(state, base + 8 * tile, code[pc + 2], 1, frame[op.ARGUMENTS + 1])


@kernel_code
def follow_push(state, frame, code, pc, base):
    """A tile, or a part of it for each lane, has been put into a queue."""
    tile, direction, split = base + 8 * code[pc + 3], code[pc + 4], code[pc + 6]
    to_lanes = direction == tile_queues.CUBE_TO_VECTOR
    if state[w.ASKED] & w.UNDEFINED != 0:
        _use(state, tile, code[pc + 2], 0)
    first = 0 if to_lanes else frame[op.LANE]
    last = load_word(frame[op.CHANNELS] + 8 * tile_queues.LANES) if to_lanes else first + 1
    for lane in range(first, last):
        queue = tile_queues.queue_address(frame[op.CHANNELS], direction, code[pc + 5], lane)
        codes = load_word(queue + 8 * tile_queues.SHADOW)
        if codes == 0:
            return
        row = col = 0
        if to_lanes and (split == 1 or split == 3):
            row, _, _ = tile_queues.lane_part(all_rows(tile), valid_rows(tile), lane, code[pc + 7])
        elif to_lanes and (split == 2 or split == 4):
            col, _, _ = tile_queues.lane_part(all_cols(tile), valid_cols(tile), lane, code[pc + 7])
        _write_codes(state, tile, _slot(queue, tile_queues.PUSHED), codes, row, col)


@kernel_code
def _read_codes(state, tile, slot, codes, first_row, first_col):
    """The codes of a slot become those of the part of a tile from (first_row, first_col) on."""
    if load_word(slot + 8 * tile_queues.SLOT_FOLLOWED) == 0:
        return
    size, pitch = element_size(tile), load_word(slot + 8 * tile_queues.SLOT_COLS)
    for i in range(load_word(slot + 8 * tile_queues.SLOT_VALID_ROWS)):
        for j in range(load_word(slot + 8 * tile_queues.SLOT_VALID_COLS)):
            code = load_uint8(slot + codes + tile_queues.SLOT_HEADER + (i * pitch + j) * size)
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
    to_cube = direction == tile_queues.VECTOR_TO_CUBE
    first = 0 if to_cube else frame[op.LANE]
    lanes = load_word(frame[op.CHANNELS] + 8 * tile_queues.LANES) if to_cube and split != 0 else 1
    for lane in range(first, first + lanes):
        queue = tile_queues.queue_address(frame[op.CHANNELS], direction, code[pc + 5], lane)
        codes, slot = load_word(queue + 8 * tile_queues.SHADOW), _slot(queue, tile_queues.POPPED)
        if codes == 0:
            return
        row = col = 0
        if to_cube and (split == 1 or split == 3):
            row = lane * load_word(slot + 8 * tile_queues.SLOT_ROWS)
        elif to_cube and (split == 2 or split == 4):
            col = lane * load_word(slot + 8 * tile_queues.SLOT_COLS)
        _read_codes(state, tile, slot, codes, row, col)
