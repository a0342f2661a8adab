"""Transfers, events and barriers between the cores of a task (spec ops 16 and 17), for the interpreter.

A cluster (one block: a cube core and its vector lanes) owns an array of words, reached through the frame's CHANNELS
word. A queue holds tiles on their way between the cube and one vector lane; a push blocks while every slot is taken,
and a slot is taken from its push until it is freed. An event is a counter per receiving core. What concerns all blocks
of a launch (barriers, events of mode 0) is counted in the launch's own words.

Nothing here waits: a step that cannot be taken returns -1 and is tried again when the block is resumed.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

import numpy as np

from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import clear_bytes, copy_bytes, load_int32, load_word, store_int32, store_word
from pypto.sim.scalars import element_bytes, is_nibble

EVENTS: Final = 16  # events per cluster
CHANNELS: Final = 16  # queue ids per direction
CUBE_TO_VECTOR: Final = 0
VECTOR_TO_CUBE: Final = 1
SLOTS_ONE_WAY, SLOTS_BOTH_WAYS = 8, 4  # slots of a queue, spec ops 17

# words of a cluster
LAUNCH: Final = 0  # address of the launch's words
LANES: Final = 1
HAS_CUBE: Final = 2
_COUNTER: Final = 8  # [event, core] pending events
_ARRIVED: Final = _COUNTER + 3 * EVENTS  # [mode 1 or 2, event, lane]
_CONSUMED: Final = _ARRIVED + 4 * EVENTS  # [event, core] events of mode 0 taken
_SET_COUNT: Final = _CONSUMED + 3 * EVENTS  # [event, core]
_WAIT_COUNT: Final = _SET_COUNT + 3 * EVENTS  # [event, core]
_BARRIERS: Final = _WAIT_COUNT + 3 * EVENTS  # [core, kind] barriers passed
QUEUES: Final = _BARRIERS + 16
QUEUE_WORDS: Final = 8
CLUSTER_WORDS: Final = QUEUES + 4 * CHANNELS * QUEUE_WORDS
# words of a queue
DEPTH, SLOT_BYTES, PUSHED, POPPED, FREED, DATA = 0, 1, 2, 3, 4, 5
SHADOW: Final = 6  # from a byte of a slot to what checks know of it, 0: nothing is followed
# words of a launch
PARTICIPANTS: Final = 0  # [kind: aiv_only, aic_only, mix]
_BARRIER_ARRIVALS: Final = 3  # [kind]
_EVENT_ARRIVALS: Final = 8  # [event, aiv / aic]
WORKSPACES: Final = _EVENT_ARRIVALS + 2 * EVENTS  # [slot] addresses of the workspaces of soft barriers, 0: free
WORKSPACE_SLOTS: Final = 16
LAUNCH_WORDS: Final = WORKSPACES + WORKSPACE_SLOTS
SOFT: Final = 3  # added to the kind of a soft barrier
# int32 words of a workspace
_CAME, _PHASE = 0, 1
SLOT_HEADER: Final = 64  # bytes: words below
SLOT_ROWS, SLOT_COLS, SLOT_VALID_ROWS, SLOT_VALID_COLS, SLOT_DTYPE, SLOT_FOLLOWED = range(6)


@kernel_code
def queue_offset(direction, channel, lane):
    """First word of a queue in its cluster."""
    return QUEUES + ((direction * CHANNELS + channel) * 2 + lane) * QUEUE_WORDS


@kernel_code
def _add(address, amount):
    value = load_word(address) + amount
    store_word(address, value)
    return value


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
def _push(frame, code, pc, cluster):
    tile, direction, channel, split = code[pc + 3], code[pc + 4], code[pc + 5], code[pc + 6]
    lanes = load_word(cluster + 8 * LANES)
    first = 0 if direction == CUBE_TO_VECTOR else frame[op.LANE]
    last = lanes if direction == CUBE_TO_VECTOR else first + 1
    for lane in range(first, last):
        if _full(queue_address(cluster, direction, channel, lane)):
            return -1
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        sequence = load_word(queue + 8 * PUSHED)
        slot = slot_address(queue, sequence)
        if direction == CUBE_TO_VECTOR:
            _push_to_lane(frame, tile, slot, split, lane, code[pc + 7])
        else:
            _push_to_lane(frame, tile, slot, 0, lane, 0)
        store_word(queue + 8 * PUSHED, sequence + 1)
        frame[op.ARGUMENTS + 1] = sequence
    return 0


@kernel_code
def _read_slot(frame, tile, slot, first_row, first_col):
    """Copy a slot into ``tile`` at (first_row, first_col); a fault code when it does not fit or has another dtype."""
    rows, cols, dtype = load_word(slot), load_word(slot + 8), load_word(slot + 32)
    room_rows = frame[tile + layout.TILE_ROWS] - first_row
    room_cols = frame[tile + layout.TILE_COLS] - first_col
    size = element_bytes(dtype)
    if rows > room_rows or cols > room_cols or size != element_bytes(frame[tile + layout.TILE_DTYPE]):
        frame[op.DETAIL], frame[op.DETAIL + 1], frame[op.DETAIL + 2] = rows, cols, dtype
        return op.FIFO_SHAPE
    for row in range(rows):
        offset = (first_row + row) * frame[tile + layout.TILE_STRIDE] + first_col
        copy_bytes(frame[tile] + offset * size, slot + SLOT_HEADER + row * cols * size, cols * size)
    return 0


@kernel_code
def _pop_parts(frame, code, pc, cluster, tile, lanes):
    """The cube's side of a vector-to-cube pop: the whole tile of lane 0, or both parts put together."""
    split = code[pc + 6]
    valid_rows = valid_cols = 0
    result = 0
    for lane in range(lanes if split != 0 else 1):
        queue = queue_address(cluster, VECTOR_TO_CUBE, code[pc + 5], lane)
        slot = slot_address(queue, load_word(queue + 8 * POPPED))
        rows = load_word(slot) if split == 1 or split == 3 else 0
        cols = load_word(slot + 8) if split == 2 or split == 4 else 0
        result = max(result, _read_slot(frame, tile, slot, lane * rows, lane * cols))
        lane_rows, lane_cols = load_word(slot + 16), load_word(slot + 24)
        if lane_rows > 0 and lane_cols > 0:
            valid_rows = max(valid_rows, lane * rows + lane_rows)
            valid_cols = max(valid_cols, lane * cols + lane_cols)
    frame[tile + layout.TILE_VALID_ROWS], frame[tile + layout.TILE_VALID_COLS] = valid_rows, valid_cols
    return result


@kernel_code
def _pop(frame, code, pc, cluster):
    tile, direction, channel = code[pc + 3], code[pc + 4], code[pc + 5]
    lanes = load_word(cluster + 8 * LANES)
    first = 0 if direction == VECTOR_TO_CUBE else frame[op.LANE]
    last = lanes if direction == VECTOR_TO_CUBE else first + 1
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        if load_word(queue + 8 * PUSHED) == load_word(queue + 8 * POPPED):
            return -1
    if direction == VECTOR_TO_CUBE:
        result = _pop_parts(frame, code, pc, cluster, tile, lanes)
    else:
        queue = queue_address(cluster, direction, channel, first)
        slot = slot_address(queue, load_word(queue + 8 * POPPED))
        result = _read_slot(frame, tile, slot, 0, 0)
        frame[tile + layout.TILE_VALID_ROWS] = load_word(slot + 16)
        frame[tile + layout.TILE_VALID_COLS] = load_word(slot + 24)
    for lane in range(first, last):
        frame[op.ARGUMENTS + 1] = _add(queue_address(cluster, direction, channel, lane) + 8 * POPPED, 1) - 1
    return result


@kernel_code
def _free(frame, code, pc, cluster):
    direction, channel = code[pc + 4], code[pc + 5]
    lanes = load_word(cluster + 8 * LANES)
    first = 0 if direction == VECTOR_TO_CUBE else frame[op.LANE]
    last = lanes if direction == VECTOR_TO_CUBE else first + 1
    for lane in range(first, last):
        queue = queue_address(cluster, direction, channel, lane)
        if load_word(queue + 8 * FREED) >= load_word(queue + 8 * POPPED):
            return op.FREE_WITHOUT_POP
    for lane in range(first, last):
        frame[op.ARGUMENTS + 1] = _add(queue_address(cluster, direction, channel, lane) + 8 * FREED, 1) - 1
    return 0


@kernel_code
def _arrive(cluster, event, mode, lane, lanes):
    """Count a lane's event; True when all lanes have set it once more."""
    base = cluster + 8 * (_ARRIVED + ((mode - 1) * EVENTS + event) * 2)
    _add(base + 8 * lane, 1)
    for other in range(lanes):
        if load_word(base + 8 * other) == 0:
            return False
    for other in range(lanes):
        _add(base + 8 * other, -1)
    return True


@kernel_code
def _signal(frame, event, mode, cluster):
    """Modes of a set: 0 all cores of this type, 1 the lanes of the cluster, 2 the other side of the cluster."""
    core, lanes = frame[op.CORE], load_word(cluster + 8 * LANES)
    counters = cluster + 8 * (_COUNTER + 3 * event)
    if mode == 0:
        _add(load_word(cluster) + 8 * (_EVENT_ARRIVALS + 2 * event + (1 if core == 0 else 0)), 1)
    elif core == 0:
        for lane in range(lanes):
            _add(counters + 8 * (1 + lane), 1)
    elif _arrive(cluster, event, mode, core - 1, lanes):
        if mode == 2:
            _add(counters, 1)
        else:
            for lane in range(lanes):
                _add(counters + 8 * (1 + lane), 1)
    frame[op.ARGUMENTS + 1] = _add(cluster + 8 * (_SET_COUNT + 3 * event + core), 1) - 1
    return 0


@kernel_code
def _wait(frame, event, cluster):
    core = frame[op.CORE]
    counter = cluster + 8 * (_COUNTER + 3 * event + core)
    if load_word(counter) > 0:
        _add(counter, -1)
    else:
        kind = 1 if core == 0 else 0
        launch = load_word(cluster)
        arrivals = load_word(launch + 8 * (_EVENT_ARRIVALS + 2 * event + kind))
        consumed = cluster + 8 * (_CONSUMED + 3 * event + core)
        if arrivals // load_word(launch + 8 * (PARTICIPANTS + kind)) <= load_word(consumed):
            return -1
        _add(consumed, 1)
    frame[op.ARGUMENTS + 1] = _add(cluster + 8 * (_WAIT_COUNT + 3 * event + core), 1) - 1
    return 0


@kernel_code
def _barrier(frame, kind, cluster):
    launch = load_word(cluster)
    arrivals = launch + 8 * (_BARRIER_ARRIVALS + kind)
    passed = cluster + 8 * (_BARRIERS + 3 * frame[op.CORE] + kind)
    if frame[op.ARRIVED] == 0:
        frame[op.ARRIVED] = 1
        _add(arrivals, 1)
    sequence = load_word(passed)
    if load_word(arrivals) < (sequence + 1) * load_word(launch + 8 * (PARTICIPANTS + kind)):
        return -1
    frame[op.ARRIVED] = 0
    store_word(passed, sequence + 1)
    frame[op.ARGUMENTS + 1] = sequence
    return 0


@kernel_code
def workspace_slot(launch, address):
    """Which of the workspaces of this launch lies at ``address``, or the place for it; the last when all are taken."""
    for slot in range(WORKSPACE_SLOTS):
        known = load_word(launch + 8 * (WORKSPACES + slot))
        if known == address or known == 0:
            return slot
    return WORKSPACE_SLOTS - 1


@kernel_code
def soft_phase(address):
    """How often the cores have met at a workspace."""
    return np.int64(load_int32(address + 4 * _PHASE))


@kernel_code
def _soft_barrier(frame, code, pc, cluster):
    """Cores meet at the workspace: they count themselves there, and the last one opens the next phase.

    Then the count is zero again, so one workspace serves any number of barriers and launches.
    """
    launch, address, used = load_word(cluster), frame[code[pc + 5]], frame[code[pc + 6]]
    if used <= 0:
        used = load_word(launch + 8 * (PARTICIPANTS + code[pc + 4] - SOFT))
    place = launch + 8 * (WORKSPACES + workspace_slot(launch, address))
    came, phase = np.int64(load_int32(address + 4 * _CAME)), soft_phase(address)
    if frame[op.ARRIVED] == 0:
        if came < 0 or came >= used or came != 0 and load_word(place) != address:
            frame[op.DETAIL], frame[op.DETAIL + 1] = came, used
            return op.BAD_WORKSPACE
        store_word(place, address)
        frame[op.ARRIVED] = phase + 1
        came = came + np.int64(1)
        if came == used:
            came = np.int64(0)
            store_int32(address + 4 * _PHASE, phase + 1)
        store_int32(address + 4 * _CAME, came)
    entered = frame[op.ARRIVED] - 1
    frame[op.ARGUMENTS], frame[op.ARGUMENTS + 1] = address, entered
    frame[op.ARGUMENTS + 2], frame[op.ARGUMENTS + 3] = used, came
    if soft_phase(address) == entered:
        return -1
    frame[op.ARRIVED] = 0
    frame[op.ARGUMENTS + 2] = frame[op.ARGUMENTS + 3] = 0
    return 0


@kernel_code
def _report_tensor(frame, tensor):
    """Report a whole tensor as one burst."""
    count = 1
    for axis in range(frame[tensor + layout.TENSOR_RANK]):
        count *= frame[tensor + layout.TENSOR_EXTENTS + axis]
    dtype = frame[tensor + layout.TENSOR_DTYPE]
    frame[op.ARGUMENTS], frame[op.ARGUMENTS + 1] = frame[tensor], 1
    frame[op.ARGUMENTS + 2] = (count + 1) // 2 if is_nibble(dtype) else count * element_bytes(dtype)


@kernel_code
def step(frame, code, pc):
    """One cross-core instruction: 0 done, -1 it must wait, otherwise a fault code. Fills the report words."""
    operation = code[pc]
    cluster = frame[op.CHANNELS]
    for word in range(4):
        frame[op.ARGUMENTS + word] = 0
    if operation == op.NOTE:
        if code[pc + 4] != 0:
            _report_tensor(frame, code[pc + 4])
        return 0
    if operation == op.BARRIER:
        if code[pc + 4] >= SOFT:
            return _soft_barrier(frame, code, pc, cluster)
        frame[op.ARGUMENTS] = code[pc + 4]
        return _barrier(frame, code[pc + 4], cluster)
    if operation == op.SIGNAL or operation == op.WAIT:
        event = frame[code[pc + 4]]
        frame[op.ARGUMENTS] = event
        if event < 0 or event >= EVENTS:
            return op.BAD_EVENT
        if operation == op.SIGNAL:
            return _signal(frame, event, code[pc + 5], cluster)
        return _wait(frame, event, cluster)
    frame[op.ARGUMENTS] = code[pc + 4] * CHANNELS + code[pc + 5]
    if operation == op.PUSH:
        return _push(frame, code, pc, cluster)
    if operation == op.POP:
        return _pop(frame, code, pc, cluster)
    return _free(frame, code, pc, cluster)
