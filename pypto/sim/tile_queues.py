"""Queues of tiles between the cube of a cluster and its vector lanes (spec ops 17), for the interpreter.

A queue holds tiles on their way from the cube to one vector lane or back. A push blocks while every slot is taken; a
slot is taken from its push until it is freed. Frees are counted: the slot that comes back is the oldest one, whichever
tile the free names. The header of a slot says what lies in it, where it was pushed, and to which tile it went, so that
what does not fit together is told with both places.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import clear_bytes, copy_bytes, load_word, store_word
from pypto.sim.scalars import element_bytes

CHANNELS: Final = 16  # queue ids per direction
CUBE_TO_VECTOR: Final = 0
VECTOR_TO_CUBE: Final = 1
SLOTS_ONE_WAY, SLOTS_BOTH_WAYS = 8, 4  # slots of a queue, spec ops 17

# first words of a cluster; those of events and barriers follow (crosscore.py)
LAUNCH: Final = 0  # address of the launch's words
LANES: Final = 1
HAS_CUBE: Final = 2
QUEUES: Final = 8
QUEUE_WORDS: Final = 8
QUEUES_END: Final = QUEUES + 4 * CHANNELS * QUEUE_WORDS
# words of a queue
DEPTH, SLOT_BYTES, PUSHED, POPPED, FREED, DATA = 0, 1, 2, 3, 4, 5
SHADOW: Final = 6  # from a byte of a slot to what checks know of it, 0: nothing is followed
# words of a slot's header: the sender writes those up to SLOT_NUMBER, the receiver the others
SLOT_HEADER: Final = 128  # bytes
(
    SLOT_ROWS,
    SLOT_COLS,
    SLOT_VALID_ROWS,
    SLOT_VALID_COLS,
    SLOT_DTYPE,
    SLOT_FOLLOWED,
    SLOT_SPLIT,
    SLOT_STRIDE,  # lane stride, 0: not stated
    SLOT_PUSH,  # instruction of the push
    SLOT_NUMBER,  # of the tile in its queue
    SLOT_POP,  # instruction of the pop
    SLOT_TILE,  # word of the receiver's frame with the tile it was popped into
    SLOT_FREE,  # instruction of the free that named this tile, NOT_FREED before
) = range(13)
NOT_FREED: Final = -1


@kernel_code
def queue_offset(direction, channel, lane):
    """First word of a queue in its cluster."""
    return QUEUES + ((direction * CHANNELS + channel) * 2 + lane) * QUEUE_WORDS


@kernel_code
def queue_address(cluster, direction, channel, lane):
    """Address of the words of a queue."""
    return cluster + 8 * queue_offset(direction, channel, lane)


@kernel_code
def slot_address(queue, sequence):
    """Address of the slot that tile number ``sequence`` of a queue goes through."""
    depth, size = load_word(queue + 8 * DEPTH), load_word(queue + 8 * SLOT_BYTES)
    return load_word(queue + 8 * DATA) + (sequence % depth) * (size + SLOT_HEADER)


@kernel_code
def _fault_at(frame, slot, lane, code):
    """Note which slot a fault concerns; returns its ``code``."""
    frame[op.DETAIL], frame[op.DETAIL + 1] = slot, lane
    frame[op.DETAIL + 2] = load_word(slot + 8 * SLOT_NUMBER)
    return code


@kernel_code
def _no_partner(frame):
    """A fault: the task has no core on the other side."""
    frame[op.DETAIL] = frame[op.DETAIL + 1] = frame[op.DETAIL + 2] = 0
    return op.NO_PARTNER


@kernel_code
def _count(address):
    """Add one to a counter; returns what it held."""
    value = load_word(address)
    store_word(address, value + 1)
    return value


@kernel_code
def _first_lane(frame, every):
    return 0 if every else frame[op.LANE]


@kernel_code
def _last_lane(frame, cluster, every):
    return load_word(cluster + 8 * LANES) if every else frame[op.LANE] + 1


# --- push


@kernel_code
def _full(queue):
    return load_word(queue + 8 * PUSHED) - load_word(queue + 8 * FREED) >= load_word(queue + 8 * DEPTH)


@kernel_code
def _write_slot(frame, tile, slot, first_row, first_col, rows, cols, valid_rows, valid_cols):
    """Copy the box of ``tile`` at (first_row, first_col) into a slot; what lies beyond the tile reads as zero."""
    size = element_bytes(frame[tile + layout.TILE_DTYPE])
    for index, word in enumerate((rows, cols, valid_rows, valid_cols, frame[tile + layout.TILE_DTYPE])):
        store_word(slot + 8 * index, word)
    data = slot + SLOT_HEADER
    width = min(cols, frame[tile + layout.TILE_COLS] - first_col)
    for row in range(rows):
        target = data + row * cols * size
        if first_row + row >= frame[tile + layout.TILE_ROWS]:
            clear_bytes(target, cols * size)
            continue
        offset = (first_row + row) * frame[tile + layout.TILE_STRIDE] + first_col
        copy_bytes(target, frame[tile] + offset * size, width * size)
        clear_bytes(target + width * size, (cols - width) * size)


@kernel_code
def lane_part(extent, valid, lane, lane_stride):
    """Start, box and valid extent of a lane's part of an axis (spec ops 17)."""
    box = (extent + 1) // 2
    stride = lane_stride if lane_stride > 0 else box
    part = min(valid, stride) if lane == 0 else min(max(valid - stride, 0), stride)
    return lane * stride, box, part


@kernel_code
def _push_to_lane(frame, tile, slot, split, lane, lane_stride):
    rows, cols = frame[tile + layout.TILE_ROWS], frame[tile + layout.TILE_COLS]
    valid_rows, valid_cols = frame[tile + layout.TILE_VALID_ROWS], frame[tile + layout.TILE_VALID_COLS]
    first_row = first_col = 0
    if split == 1 or split == 3:
        first_row, rows, valid_rows = lane_part(rows, valid_rows, lane, lane_stride)
    elif split == 2 or split == 4:
        first_col, cols, valid_cols = lane_part(cols, valid_cols, lane, lane_stride)
    _write_slot(frame, tile, slot, first_row, first_col, rows, cols, valid_rows, valid_cols)


@kernel_code
def push(frame, code, pc, cluster):
    """Put a tile, or a part of it for every lane, into the queues of a direction."""
    tile, direction, channel, split = code[pc + 3], code[pc + 4], code[pc + 5], code[pc + 6]
    to_lanes = direction == CUBE_TO_VECTOR
    first, last = _first_lane(frame, to_lanes), _last_lane(frame, cluster, to_lanes)
    if load_word(cluster + 8 * (LANES if to_lanes else HAS_CUBE)) == 0:
        return _no_partner(frame)
    for lane in range(first, last):
        if _full(queue_address(cluster, direction, channel, lane)):
            return -1
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        sequence = _count(queue + 8 * PUSHED)
        slot = slot_address(queue, sequence)
        if to_lanes:
            _push_to_lane(frame, tile, slot, split, lane, code[pc + 7])
        else:
            _push_to_lane(frame, tile, slot, 0, lane, 0)
        store_word(slot + 8 * SLOT_SPLIT, split)
        store_word(slot + 8 * SLOT_STRIDE, code[pc + 7])
        store_word(slot + 8 * SLOT_PUSH, code[pc + 2])
        store_word(slot + 8 * SLOT_NUMBER, sequence)
        frame[op.ARGUMENTS + 1] = sequence
    return 0


# --- pop


@kernel_code
def _mismatch(frame, code, pc, tile, slot, lane, parts):
    """A fault code when a slot does not hold what the pop expects: ``parts`` of it make up the tile, else 0."""
    split = code[pc + 6]
    if load_word(slot + 8 * SLOT_SPLIT) != split or (
        code[pc + 7] != 0 and load_word(slot + 8 * SLOT_STRIDE) != code[pc + 7]
    ):
        return _fault_at(frame, slot, lane, op.FIFO_SPLIT)
    rows = load_word(slot + 8 * SLOT_ROWS) * (parts if split == 1 or split == 3 else 1)
    cols = load_word(slot + 8 * SLOT_COLS) * (parts if split == 2 or split == 4 else 1)
    if (
        rows != frame[tile + layout.TILE_ROWS]
        or cols != frame[tile + layout.TILE_COLS]
        or load_word(slot + 8 * SLOT_DTYPE) != frame[tile + layout.TILE_DTYPE]
    ):
        return _fault_at(frame, slot, lane, op.FIFO_SHAPE)
    return 0


@kernel_code
def _read_slot(frame, tile, slot, first_row, first_col):
    """Copy a slot into ``tile`` at (first_row, first_col)."""
    rows, cols = load_word(slot + 8 * SLOT_ROWS), load_word(slot + 8 * SLOT_COLS)
    size = element_bytes(frame[tile + layout.TILE_DTYPE])
    for row in range(rows):
        offset = (first_row + row) * frame[tile + layout.TILE_STRIDE] + first_col
        copy_bytes(frame[tile] + offset * size, slot + SLOT_HEADER + row * cols * size, cols * size)


@kernel_code
def _pop_parts(frame, tile, cluster, channel, split, parts):
    """The cube's side of a vector-to-cube pop: the whole tile of lane 0, or both parts put together."""
    valid_rows = valid_cols = 0
    for lane in range(parts):
        queue = queue_address(cluster, VECTOR_TO_CUBE, channel, lane)
        slot = slot_address(queue, load_word(queue + 8 * POPPED))
        rows = load_word(slot + 8 * SLOT_ROWS) if split == 1 or split == 3 else 0
        cols = load_word(slot + 8 * SLOT_COLS) if split == 2 or split == 4 else 0
        _read_slot(frame, tile, slot, lane * rows, lane * cols)
        lane_rows, lane_cols = load_word(slot + 8 * SLOT_VALID_ROWS), load_word(slot + 8 * SLOT_VALID_COLS)
        if lane_rows > 0 and lane_cols > 0:
            valid_rows = max(valid_rows, lane * rows + lane_rows)
            valid_cols = max(valid_cols, lane * cols + lane_cols)
    frame[tile + layout.TILE_VALID_ROWS], frame[tile + layout.TILE_VALID_COLS] = valid_rows, valid_cols


@kernel_code
def _pop_whole(frame, tile, slot):
    """A vector lane's side of a pop: what the cube has put aside for it."""
    _read_slot(frame, tile, slot, 0, 0)
    frame[tile + layout.TILE_VALID_ROWS] = load_word(slot + 8 * SLOT_VALID_ROWS)
    frame[tile + layout.TILE_VALID_COLS] = load_word(slot + 8 * SLOT_VALID_COLS)


@kernel_code
def pop(frame, code, pc, cluster):
    """Take the next tile of a queue, or the parts of both lanes."""
    tile, direction, channel, split = code[pc + 3], code[pc + 4], code[pc + 5], code[pc + 6]
    to_cube = direction == VECTOR_TO_CUBE
    first, last = _first_lane(frame, to_cube), _last_lane(frame, cluster, to_cube)
    if load_word(cluster + 8 * (LANES if to_cube else HAS_CUBE)) == 0:
        return _no_partner(frame)
    parts = last - first if to_cube and split != 0 else 1
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        if load_word(queue + 8 * PUSHED) == load_word(queue + 8 * POPPED):
            return -1
    for lane in range(first, first + parts):
        queue = queue_address(cluster, direction, channel, lane)
        slot = slot_address(queue, load_word(queue + 8 * POPPED))
        wrong = _mismatch(frame, code, pc, tile, slot, lane, parts)
        if wrong != 0:
            return wrong
    if to_cube:
        _pop_parts(frame, tile, cluster, channel, split, parts)
    else:
        queue = queue_address(cluster, direction, channel, first)
        _pop_whole(frame, tile, slot_address(queue, load_word(queue + 8 * POPPED)))
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        sequence = _count(queue + 8 * POPPED)
        slot = slot_address(queue, sequence)
        store_word(slot + 8 * SLOT_POP, code[pc + 2])
        store_word(slot + 8 * SLOT_TILE, tile)
        store_word(slot + 8 * SLOT_FREE, NOT_FREED)
        frame[op.ARGUMENTS + 1] = sequence
    return 0


# --- free


@kernel_code
def slot_of_tile(queue, tile):
    """Address of the slot that went to ``tile`` last and was not freed by that name, else of one that was; or 0."""
    popped, found = load_word(queue + 8 * POPPED), 0
    for sequence in range(popped - 1, max(popped - load_word(queue + 8 * DEPTH), 0) - 1, -1):
        slot = slot_address(queue, sequence)
        if load_word(slot + 8 * SLOT_TILE) == tile:
            if load_word(slot + 8 * SLOT_FREE) == NOT_FREED:
                return slot
            if found == 0:
                found = slot
    return found


@kernel_code
def _elsewhere(cluster, direction, channel, lane, tile):
    """Address of a slot of another queue that ``tile`` was popped from and that it was not freed for; or 0."""
    for other in range(CHANNELS):
        queue = queue_address(cluster, direction, other, lane)
        if other != channel and load_word(queue + 8 * POPPED) > 0:
            slot = slot_of_tile(queue, tile)
            if slot != 0 and load_word(slot + 8 * SLOT_FREE) == NOT_FREED:
                return slot
    return 0


@kernel_code
def _wrong_free(frame, code, pc, cluster, queue, lane):
    """A fault code when a free does not fit the pop of the tile it names, else 0."""
    direction, channel, split, tile = code[pc + 4], code[pc + 5], code[pc + 6], code[pc + 8]
    if code[pc + 7] & op.FREES_BY_NAME == 0:
        return 0
    slot = slot_of_tile(queue, tile)
    if slot == 0:
        slot = _elsewhere(cluster, direction, channel, lane, tile)
        return 0 if slot == 0 else _fault_at(frame, slot, lane, op.FREE_ELSEWHERE)
    if load_word(slot + 8 * SLOT_FREE) != NOT_FREED:
        return _fault_at(frame, slot, lane, op.FREE_TWICE)
    if split >= 0 and load_word(slot + 8 * SLOT_SPLIT) != split:
        return _fault_at(frame, slot, lane, op.FREE_SPLIT)
    store_word(slot + 8 * SLOT_FREE, code[pc + 2])
    return 0


@kernel_code
def free(frame, code, pc, cluster):
    """Give the oldest slot of a queue, or of the queues of all lanes, back to the sender."""
    direction, channel = code[pc + 4], code[pc + 5]
    to_cube = direction == VECTOR_TO_CUBE
    first, last = _first_lane(frame, to_cube), _last_lane(frame, cluster, to_cube)
    if load_word(cluster + 8 * (LANES if to_cube else HAS_CUBE)) == 0:
        return _no_partner(frame)
    wrong = _wrong_free(frame, code, pc, cluster, queue_address(cluster, direction, channel, first), first)
    if wrong != 0:
        return wrong
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        if load_word(queue + 8 * FREED) >= load_word(queue + 8 * POPPED):
            frame[op.DETAIL], frame[op.DETAIL + 1] = 0, lane
            frame[op.DETAIL + 2] = load_word(queue + 8 * FREED)
            return op.FREE_WITHOUT_POP
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        frame[op.ARGUMENTS + 1] = _count(queue + 8 * FREED)
    return 0
