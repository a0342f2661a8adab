"""Vector clocks of the cores of a task that wait for each other: queues, events and barriers (spec ops 16, 17).

A core's clock says which accesses of the others happened before. Releasing (push, free, set, arriving at a barrier)
leaves the clock at a place; acquiring (pop, push into a freed slot, wait, leaving a barrier) takes it up. An event is
a counter, so the first wait knows of the first set and not of those that happened to come before it as well.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim import crosscore, tile_queues
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word, store_word

_BARRIERS: Final = crosscore.BARRIERS_PASSED
_TURNS: Final = 8  # sets of an event that are told apart before they are awaited
EVENT_PLACES: Final = 3 * crosscore.EVENTS * _TURNS  # first in a cluster, its queues follow
_GLOBAL_EVENTS: Final = 4 * 3
_SOFT_BARRIERS: Final = _GLOBAL_EVENTS + 2 * crosscore.EVENTS
GLOBAL_PLACES: Final = _SOFT_BARRIERS + 4 * crosscore.WORKSPACE_SLOTS


@kernel_code
def _place(state, number):
    """Address of a clock of all clusters."""
    return state[w.SHARED_CLOCKS] + 8 * state[w.CREW_SIZE] * number


@kernel_code
def _cluster_place(state, number):
    """Address of a clock of the core's own cluster."""
    return _place(state, GLOBAL_PLACES + state[w.CLUSTER] * as_pointer(state[w.CREW])[w.CREW_PLACES] + number)


@kernel_code
def _join(state, target, source):
    for k in range(state[w.CREW_SIZE]):
        if load_word(source + 8 * k) > load_word(target + 8 * k):
            store_word(target + 8 * k, load_word(source + 8 * k))


@kernel_code
def _release(state, place):
    _join(state, place, state[w.CLOCK])


@kernel_code
def _acquire(state, place):
    _join(state, state[w.CLOCK], place)
    state[w.TICK] = 1


@kernel_code
def _tick(state):
    """What the core does from now on is later than what it has released."""
    own = state[w.CLOCK] + 8 * state[w.CREW_INDEX]
    store_word(own, load_word(own) + 1)
    state[w.TICK] = 1


@kernel_code
def _queue_step(state, frame, code, pc, operation):
    direction, channel, sequence = code[pc + 4], code[pc + 5], frame[op.ARGUMENTS + 1]
    lanes = load_word(frame[op.CHANNELS] + 8 * tile_queues.LANES)
    sender_is_cube = direction == tile_queues.CUBE_TO_VECTOR
    every = sender_is_cube == (operation == op.PUSH)
    first = 0 if every else frame[op.LANE]
    last = lanes if every else first + 1
    for lane in range(first, last):
        queue = (direction * tile_queues.CHANNELS + channel) * 2 + lane
        first_slot = as_pointer(state[w.CREW])[w.CREW_QUEUES + queue]
        depth = load_word(
            frame[op.CHANNELS] + 8 * (tile_queues.queue_offset(direction, channel, lane) + tile_queues.DEPTH)
        )
        slot = _cluster_place(state, first_slot + sequence % depth)
        free = _cluster_place(state, first_slot + depth)
        if operation == op.PUSH:
            _acquire(state, free)
            for k in range(state[w.CREW_SIZE]):
                store_word(slot + 8 * k, load_word(state[w.CLOCK] + 8 * k))
        elif operation == op.POP:
            _acquire(state, slot)
        else:
            _release(state, free)
    if operation != op.POP:
        _tick(state)


@kernel_code
def _event_place(state, event, core, turn):
    """Address of the clock of set number ``turn`` of an event that ``core`` of the cluster waits for."""
    return _cluster_place(state, (3 * event + core) * _TURNS + turn % _TURNS)


@kernel_code
def _set_event(state, frame, code, pc):
    event, mode, core, turn = frame[op.ARGUMENTS], code[pc + 5], frame[op.CORE], frame[op.ARGUMENTS + 1]
    if mode == 0:
        _release(state, _place(state, _GLOBAL_EVENTS + 2 * event + (1 if core == 0 else 0)))
    elif core != 0 and mode == 2:
        _release(state, _event_place(state, event, 0, turn))
    else:
        _release(state, _event_place(state, event, 1, turn))
        _release(state, _event_place(state, event, 2, turn))
    _tick(state)


@kernel_code
def _wait_event(state, frame):
    event, core = frame[op.ARGUMENTS], frame[op.CORE]
    place = _event_place(state, event, core, frame[op.ARGUMENTS + 1])
    _acquire(state, place)
    for k in range(state[w.CREW_SIZE]):
        store_word(place + 8 * k, 0)
    _acquire(state, _place(state, _GLOBAL_EVENTS + 2 * event + (1 if core == 0 else 0)))


@kernel_code
def _barrier(state, frame, code, pc):
    kind = code[pc + 4]
    first = 4 * kind
    if kind >= crosscore.SOFT:
        address = frame[code[pc + 5]]
        first = _SOFT_BARRIERS + 4 * crosscore.workspace_slot(load_word(frame[op.CHANNELS]), address)
    if frame[op.ENTERS] != 0:
        if kind >= crosscore.SOFT:
            passed = crosscore.soft_phase(frame[code[pc + 5]])
        else:
            passed = load_word(frame[op.CHANNELS] + 8 * (_BARRIERS + 3 * frame[op.CORE] + kind))
        if frame[op.ARRIVED] == 0:
            _release(state, _place(state, first + passed % 4))
            _tick(state)
        return
    sequence = frame[op.ARGUMENTS + 1]
    _acquire(state, _place(state, first + sequence % 4))
    stale = _place(state, first + (sequence + 2) % 4)
    for k in range(state[w.CREW_SIZE]):
        store_word(stale + 8 * k, 0)


@kernel_code
def order_cores(state, frame, code, pc):
    """Follow one cross-core instruction."""
    operation = code[pc]
    if state[w.CREW_INDEX] < 0:
        return
    if operation == op.PUSH or operation == op.POP or operation == op.FREE:
        _queue_step(state, frame, code, pc, operation)
    elif operation == op.SIGNAL:
        _set_event(state, frame, code, pc)
    elif operation == op.WAIT:
        _wait_event(state, frame)
    elif operation == op.BARRIER:
        _barrier(state, frame, code, pc)
