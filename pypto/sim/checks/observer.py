"""The compiled observer: called after every tile instruction, it follows undefined values and logs memory accesses.

One call gets the frame; the code offset of the instruction is in its PC word, the operands in its argument block and
the state of the core (words.py) behind its WATCH word. It returns 1 when its log has to be emptied.

What an instruction does to the shadow is the business of its rule (rules/); here is the choice of the rule.
"""

# ruff: noqa: SIM109, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64
from functools import cache
from pathlib import Path
from typing import Any

from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_address, log_is_full, log_window
from pypto.sim.checks.clocks import order_cores
from pypto.sim.checks.rules.queues import follow_free, follow_pop, follow_push, follow_uses
from pypto.sim.checks.rules.single import follow_signal, follow_tensor_element, follow_tile_element
from pypto.sim.checks.rules.stores import tile_checksum
from pypto.sim.checks.rules.wrap import keep_result
from pypto.sim.entry import source_digest
from pypto.sim.kernels.compilation import Kernel, kernel_code, load_or_compile
from pypto.sim.kernels.progress import Progress
from pypto.sim.kernels.window import valid_size
from pypto.sim.native import as_pointer, call_kernel, load_word


@kernel_code
def _log(state, frame, args, fact, instruction):
    """Log the window of a load or store that others may conflict with."""
    tensor = args[fact[w.FACT_TENSOR]]
    if load_word(allocation_address(state, tensor) + 8 * w.GM_TRACKED) == 0:
        return
    flags, lists, kind, checksum = fact[w.FACT_FLAGS], fact[w.FACT_LISTS], 0, 0
    if flags & w.STORES != 0:
        kind = w.WRITES | (w.ATOMIC if flags & w.ADDS != 0 else 0)
        if frame[op.CORE] > 0 and state[w.LANES] > 1:
            source = args[fact[w.FACT_SOURCE]]
            checksum = tile_checksum(source, valid_size(args, lists, 2), valid_size(args, lists, 1))
    log_window(state, args, tensor, lists, kind, instruction, fact[w.FACT_ROOT], checksum)


@kernel_code
def _call(state, frame, code, pc, base):
    instruction = code[pc + 2]
    fact = as_pointer(state[w.FACTS] + 8 * w.FACT_WORDS * instruction)
    if fact[w.FACT_FLAGS] & w.MAY_USE_FREED != 0 and state[w.ASKED] & w.UNDEFINED != 0:
        follow_uses(state, as_pointer(base + 8 * op.ARGUMENTS), fact, instruction)
    handler = load_word(state[w.HANDLERS] + 8 * fact[w.FACT_RULE])
    if handler != 0:
        state[w.INSTRUCTION], state[w.INSTRUCTION_PC] = instruction, pc
        call_kernel(handler, frame[op.WATCH])
    if state[w.ASKED] & w.WRAP != 0 and fact[w.FACT_TARGET] != 0:
        keep_result(state, as_pointer(base + 8 * op.ARGUMENTS)[fact[w.FACT_TARGET]])
    if fact[w.FACT_LISTS] != 0 and state[w.ASKED] & w.ORDER != 0:
        _log(state, frame, as_pointer(base + 8 * op.ARGUMENTS), fact, instruction)


@kernel_code
def _look(base):
    frame = as_pointer(base)
    state = as_pointer(frame[op.WATCH])
    code, pc = as_pointer(state[w.CODE]), frame[op.PC]
    operation = code[pc]
    if operation == op.CALL:
        _call(state, frame, code, pc, base)
    elif operation == op.LOAD_TENSOR or operation == op.STORE_TENSOR:
        follow_tensor_element(state, frame, code, pc, base)
    elif operation == op.LOAD_TILE or operation == op.STORE_TILE:
        follow_tile_element(state, frame, code, pc, base)
    elif operation >= op.PUSH and operation <= op.BARRIER:
        order_cores(state, frame, code, pc)
        if operation == op.PUSH:
            follow_push(state, frame, code, pc, base)
        elif operation == op.POP:
            follow_pop(state, frame, code, pc, base)
            if state[w.ASKED] & w.WRAP != 0:
                keep_result(state, base + 8 * code[pc + 3])
        elif operation == op.FREE:
            follow_free(state, frame, code, pc, base)
    elif operation == op.NOTE:
        state[w.FENCES] += 1
    elif operation == op.NOTIFY or operation == op.SIGNAL_WAIT:
        follow_signal(state, frame, code, pc)
    return 1 if log_is_full(state) else 0


def _observe(frame):
    """Look at the instruction at the PC of ``frame``; 1 when the log must be emptied before the next one.

    With RESUME set it was full before the end of the instruction: empty it and look again.
    """
    return _look(frame[op.SELF])


@cache
def observer() -> Any:
    """The compiled observer; its ``address`` goes to the OBSERVER word of a frame."""
    here = Path(__file__).parent
    sources = [here / f"{name}.py" for name in ("observer", "shadow", "accesses", "clocks", "boxes", "cells", "words")]
    sources += sorted((here / "rules").glob("*.py"))
    sources += [
        here.parent / f"{name}.py" for name in ("opcodes", "layout", "crosscore", "tile_queues", "scalars", "native")
    ]
    with Progress(1) as progress:
        kernel = Kernel(f"observer.{source_digest(sources)}", _observe)
        return load_or_compile(kernel, lambda: progress.compiling("the observer of the checks"))


def look_again(frame_address: int) -> None:
    """Let the observer look at the instruction at the PC of a frame once more."""
    _callable()(frame_address)


@cache
def _callable() -> Callable[[int], int]:
    return CFUNCTYPE(c_int64, c_int64)(observer().address)
