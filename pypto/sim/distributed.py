"""What the machine does for ranks: peers' windows and signal cells (spec distributed 2.4, 2.6, 2.8).

The windows of a domain lie one after the other in memory that all ranks share, so that a peer's copy of an address is
a multiple of the distance between two ranks away. The context record of a domain on a rank holds what that takes.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import extending, types

from pypto.sim import layout, opcodes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.memory import memory_view
from pypto.sim.native import load_word
from pypto.sim.views import element_address

# context record: int64 words
CTX_RANK: Final = 0  # index of this rank in the domain
CTX_RANKS: Final = 1  # ranks of the domain
CTX_STRIDE: Final = 2  # bytes from one rank's window to the next one's
CTX_BASE: Final = 3  # address of rank 0's window
CTX_DOMAIN: Final = 4  # number of the domain among those of the run
CTX_WORLD: Final = 5  # world ranks of the members, one word each
MAX_RANKS: Final = 64  # of a context record (spec distributed 2.4)
CTX_CODES: Final = CTX_WORLD + MAX_RANKS  # shared codes of the domain's bytes (sim/checks/shadow.py), 0: none
CTX_FLAGS: Final = CTX_CODES + 1  # and the flags of their blocks
CTX_WORDS: Final = CTX_CODES + 2
CONTEXT_SHIFT: Final = 8  # the flags word of a tensor descriptor holds the address of its context above the flags
DOMAIN_SHIFT: Final = 44  # a cell is named by domain << DOMAIN_SHIFT | byte offset in the window

EQUAL, REACHED, REACHED_UNSIGNED = 0, 1, 2
intrinsic: Any = extending.intrinsic


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.PointerType(ir.IntType(32)))


def _exchange(operation: str) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.trunc(arguments[1], ir.IntType(32))
        old = builder.atomic_rmw(operation, _pointer(builder, arguments[0]), value, "seq_cst")
        return builder.sext(old, ir.IntType(64))

    return codegen


def window_reach(context: int) -> tuple[int, int]:
    """Bytes of the domain before the own window, and from its start on."""
    record = memory_view(context, 8 * CTX_WORDS).view(np.int64)
    rank, ranks, stride = (int(record[word]) for word in (CTX_RANK, CTX_RANKS, CTX_STRIDE))
    return rank * stride, (ranks - rank) * stride


@intrinsic
def atomic_add_int32(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to the int32 at ``address`` in one step that all processes agree on; returns what was there."""
    return types.int64(types.int64, types.int64), _exchange("add")


@intrinsic
def atomic_set_int32(typingctx: Any, address: Any, value: Any) -> Any:
    """Replace the int32 at ``address``; returns what was there."""
    return types.int64(types.int64, types.int64), _exchange("xchg")


@kernel_code
def context_of(frame, tensor):
    """Number of the communication domain a window belongs to."""
    return frame[tensor + layout.TENSOR_FLAGS] >> CONTEXT_SHIFT


@kernel_code
def distance(frame, tensor, peer):
    """Bytes from the own window to the peer's, and a fault code."""
    context = context_of(frame, tensor)
    if context == 0:
        return 0, opcodes.NO_WINDOW
    ranks = load_word(context + 8 * CTX_RANKS)
    if peer < 0 or peer >= ranks:
        frame[opcodes.DETAIL], frame[opcodes.DETAIL + 1] = peer, ranks
        return 0, opcodes.BAD_PEER
    return (peer - load_word(context + 8 * CTX_RANK)) * load_word(context + 8 * CTX_STRIDE), 0


@kernel_code
def peer_view(frame, target, source, peer):
    """The peer's copy of a window; returns a fault code."""
    offset, fault = distance(frame, source, peer)
    if fault != 0:
        return fault
    for word in range(layout.TENSOR_NAME):
        frame[target + word] = frame[source + word]
    frame[target] += offset
    frame[target + layout.TENSOR_LOW] += offset
    frame[target + layout.TENSOR_HIGH] += offset
    return 0


@kernel_code
def _cell(frame, code, at, tensor):
    """Address of a signal cell in the own window, its name, and a fault code."""
    context = context_of(frame, tensor)
    if context == 0:
        return 0, 0, opcodes.NO_WINDOW
    address, _ = element_address(frame, code, at, tensor)
    if address == -1:
        return 0, 0, layout.OUTSIDE_TENSOR
    own = load_word(context + 8 * CTX_BASE) + load_word(context + 8 * CTX_RANK) * load_word(context + 8 * CTX_STRIDE)
    return address, load_word(context + 8 * CTX_DOMAIN) << DOMAIN_SHIFT | (address - own), 0


@kernel_code
def _notify(frame, code, pc):
    tensor, peer, value = code[pc + 3], frame[code[pc + 4]], frame[code[pc + 5]]
    address, name, fault = _cell(frame, code, pc + 7, tensor)
    if fault != 0:
        return fault
    offset, fault = distance(frame, tensor, peer)
    if fault != 0:
        return fault
    if code[pc + 6] == 0:
        atomic_add_int32(address + offset, value)
    else:
        atomic_set_int32(address + offset, value)
    world = load_word(context_of(frame, tensor) + 8 * (CTX_WORLD + peer))
    frame[opcodes.DETAIL], frame[opcodes.DETAIL + 1] = world, code[pc + 2]
    frame[opcodes.ARGUMENTS], frame[opcodes.ARGUMENTS + 1] = name, world
    frame[opcodes.ARGUMENTS + 2], frame[opcodes.ARGUMENTS + 3] = value, code[pc + 6]
    return 0


@kernel_code
def holds(value, expected, comparison):
    """Whether a wait for ``expected`` is over."""
    if comparison == EQUAL:
        return value == expected
    if comparison == REACHED_UNSIGNED:
        return value & 0xFFFFFFFF >= expected & 0xFFFFFFFF
    return value >= expected


@kernel_code
def _wait(frame, code, pc):
    tensor, expected, comparison = code[pc + 3], frame[code[pc + 4]], code[pc + 5]
    address, name, fault = _cell(frame, code, pc + 6, tensor)
    if fault != 0:
        return fault
    value = atomic_add_int32(address, 0)
    frame[opcodes.DETAIL], frame[opcodes.DETAIL + 1], frame[opcodes.DETAIL + 2] = address, expected, comparison
    frame[opcodes.ARGUMENTS], frame[opcodes.ARGUMENTS + 1] = name, value
    frame[opcodes.ARGUMENTS + 2], frame[opcodes.ARGUMENTS + 3] = expected, comparison
    return 0 if holds(value, expected, comparison) else -1


@kernel_code
def step(frame, code, pc):
    """One signal instruction: 0 done, -1 it must wait, otherwise a fault code. Fills the report words."""
    if code[pc] == opcodes.NOTIFY:
        return _notify(frame, code, pc)
    return _wait(frame, code, pc)
