"""Transfers, events and barriers between the cores of a task (spec ops 16 and 17), for the interpreter.

A cluster (one block: a cube core and its vector lanes) owns an array of words, reached through the frame's CHANNELS
word. Its queues come first (tile_queues.py). An event is a counter per receiving core. What concerns all blocks of a
launch (barriers, events of mode 0) is counted in the launch's own words.

Nothing here waits: a step that cannot be taken returns -1 and is tried again when the block is resumed.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

import numpy as np

from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import load_int32, load_word, store_int32, store_word
from pypto.sim.scalars import element_bytes, is_nibble
from pypto.sim.tile_queues import CHANNELS, LANES, QUEUES_END, free, pop, push

EVENTS: Final = 16  # events per cluster

# words of a cluster, behind those of its queues (tile_queues.py)
PENDING: Final = QUEUES_END  # [event, core] pending events
LANES_ARRIVED: Final = PENDING + 3 * EVENTS  # [mode 1 or 2, event, lane]
CONSUMED: Final = LANES_ARRIVED + 4 * EVENTS  # [event, core] events of mode 0 taken
SET_COUNT: Final = CONSUMED + 3 * EVENTS  # [event, core]
WAIT_COUNT: Final = SET_COUNT + 3 * EVENTS  # [event, core]
SET_PLACES: Final = WAIT_COUNT + 3 * EVENTS  # [event, core] 1 + instruction of the last set, 0: never set
BARRIERS_PASSED: Final = SET_PLACES + 3 * EVENTS  # [core, kind] barriers passed
CLUSTER_WORDS: Final = BARRIERS_PASSED + 16
# words of a launch
PARTICIPANTS: Final = 0  # [kind: aiv_only, aic_only, mix]
BARRIER_ARRIVALS: Final = 3  # [kind]
EVENT_ARRIVALS: Final = 8  # [event, aiv / aic]
WORKSPACES: Final = EVENT_ARRIVALS + 2 * EVENTS  # [slot] addresses of the workspaces of soft barriers, 0: free
WORKSPACE_SLOTS: Final = 16
LAUNCH_WORDS: Final = WORKSPACES + WORKSPACE_SLOTS
SOFT: Final = 3  # added to the kind of a soft barrier
# int32 words of a workspace
_CAME, _PHASE = 0, 1


@kernel_code
def _add(address, amount):
    value = load_word(address) + amount
    store_word(address, value)
    return value


@kernel_code
def _arrive(cluster, event, mode, lane, lanes):
    """Count a lane's event; True when all lanes have set it once more."""
    base = cluster + 8 * (LANES_ARRIVED + ((mode - 1) * EVENTS + event) * 2)
    _add(base + 8 * lane, 1)
    for other in range(lanes):
        if load_word(base + 8 * other) == 0:
            return False
    for other in range(lanes):
        _add(base + 8 * other, -1)
    return True


@kernel_code
def _signal(frame, event, mode, cluster, place):
    """Modes of a set: 0 all cores of this type, 1 the lanes of the cluster, 2 the other side of the cluster."""
    core, lanes = frame[op.CORE], load_word(cluster + 8 * LANES)
    counters = cluster + 8 * (PENDING + 3 * event)
    if mode == 0:
        _add(load_word(cluster) + 8 * (EVENT_ARRIVALS + 2 * event + (1 if core == 0 else 0)), 1)
    elif core == 0:
        for lane in range(lanes):
            _add(counters + 8 * (1 + lane), 1)
    elif _arrive(cluster, event, mode, core - 1, lanes):
        if mode == 2:
            _add(counters, 1)
        else:
            for lane in range(lanes):
                _add(counters + 8 * (1 + lane), 1)
    frame[op.ARGUMENTS + 1] = _add(cluster + 8 * (SET_COUNT + 3 * event + core), 1) - 1
    store_word(cluster + 8 * (SET_PLACES + 3 * event + core), place + 1)
    return 0


@kernel_code
def _wait(frame, event, cluster):
    core = frame[op.CORE]
    counter = cluster + 8 * (PENDING + 3 * event + core)
    if load_word(counter) > 0:
        _add(counter, -1)
    else:
        kind = 1 if core == 0 else 0
        launch = load_word(cluster)
        arrivals = load_word(launch + 8 * (EVENT_ARRIVALS + 2 * event + kind))
        consumed = cluster + 8 * (CONSUMED + 3 * event + core)
        if arrivals // load_word(launch + 8 * (PARTICIPANTS + kind)) <= load_word(consumed):
            return -1
        _add(consumed, 1)
    frame[op.ARGUMENTS + 1] = _add(cluster + 8 * (WAIT_COUNT + 3 * event + core), 1) - 1
    return 0


@kernel_code
def _barrier(frame, kind, cluster):
    launch = load_word(cluster)
    arrivals = launch + 8 * (BARRIER_ARRIVALS + kind)
    passed = cluster + 8 * (BARRIERS_PASSED + 3 * frame[op.CORE] + kind)
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
            return _signal(frame, event, code[pc + 5], cluster, code[pc + 2])
        return _wait(frame, event, cluster)
    frame[op.ARGUMENTS] = code[pc + 4] * CHANNELS + code[pc + 5]
    if operation == op.PUSH:
        return push(frame, code, pc, cluster)
    if operation == op.POP:
        return pop(frame, code, pc, cluster)
    return free(frame, code, pc, cluster)
