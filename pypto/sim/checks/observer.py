"""The compiled observer: called after every tile instruction, it follows undefined values and logs memory accesses.

One call gets the frame; the code offset of the instruction is in its PC word, the operands in its argument block and
the state of the core (words.py) behind its WATCH word. It returns 1 when its log has to be emptied.

What an instruction does to the shadow is the business of its rule (rules/); here is the choice of the rule.
"""

# ruff: noqa: SIM109, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from functools import cache
from typing import Any

from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_of, log_window
from pypto.sim.checks.clocks import order_cores
from pypto.sim.checks.rules.elements import follow_elements, follow_whole
from pypto.sim.checks.rules.indexed import follow_gather, follow_scatter
from pypto.sim.checks.rules.memory_indexed import follow_fetch, follow_spread
from pypto.sim.checks.rules.moves import follow_concat, follow_fill_pad, follow_move, follow_reshape
from pypto.sim.checks.rules.product import follow_product
from pypto.sim.checks.rules.single import follow_pop, follow_signal, follow_tensor_element, follow_tile_element
from pypto.sim.checks.rules.transfers import follow_load, follow_store, tile_checksum
from pypto.sim.kernels.compilation import Kernel, kernel_code, load_or_compile
from pypto.sim.kernels.progress import Progress
from pypto.sim.kernels.window import valid_size
from pypto.sim.native import as_pointer


@kernel_code
def _follow(state, args, fact, instruction):
    rule = fact[w.FACT_RULE]
    if rule == w.LOAD or rule == w.LOAD_ROWS:
        follow_load(state, args, fact, instruction)
    elif rule == w.STORE:
        follow_store(state, args, fact, instruction)
    elif rule == w.MATMUL:
        follow_product(state, args, fact, instruction)
    elif rule == w.MOVE or rule == w.EXTRACT or rule == w.INSERT:
        follow_move(state, args, fact)
    elif rule == w.TRANSPOSE:
        if args[fact[w.FACT_SOURCE] + 1] > 1:
            follow_reshape(state, args, fact)
        else:
            follow_move(state, args, fact)
    elif rule == w.RESHAPE:
        follow_reshape(state, args, fact)
    elif rule == w.FILL_PAD:
        follow_fill_pad(state, args, fact, instruction)
    elif rule == w.CONCAT:
        follow_concat(state, args, fact, instruction)
    elif rule == w.WHOLE or rule == w.COMPARE:
        follow_whole(state, args, fact, instruction)
    elif rule == w.SCATTER:
        follow_scatter(state, args, fact, instruction)
    elif rule != w.NOTHING and rule != w.GATHER and rule != w.FETCH and rule != w.SPREAD:
        follow_elements(state, args, fact, instruction)


@kernel_code
def _call(state, frame, code, pc, base):
    instruction = code[pc + 2]
    fact = as_pointer(state[w.FACTS] + 8 * w.FACT_WORDS * instruction)
    args = as_pointer(base + 8 * op.ARGUMENTS)
    rule, asked = fact[w.FACT_RULE], state[w.ASKED]
    if asked & w.UNDEFINED != 0:
        _follow(state, args, fact, instruction)
    if rule == w.GATHER and asked & (w.BOUNDS | w.UNDEFINED) != 0:
        follow_gather(state, args, fact, instruction)
    elif asked & (w.UNDEFINED | w.ORDER) != 0 and rule == w.FETCH:
        follow_fetch(state, args, fact, instruction)
    elif asked & (w.UNDEFINED | w.ORDER) != 0 and rule == w.SPREAD:
        follow_spread(state, args, fact, instruction)
    elif asked & w.ORDER != 0 and fact[w.FACT_LISTS] != 0:
        tensor = args[fact[w.FACT_TENSOR]]
        if allocation_of(state, tensor)[w.GM_TRACKED] != 0:
            flags, kind, checksum = fact[w.FACT_FLAGS], 0, 0
            if flags & w.STORES != 0:
                kind = w.WRITES | (w.ATOMIC if flags & w.ADDS != 0 else 0)
                if frame[op.CORE] > 0 and state[w.LANES] > 1:
                    source, lists = args[fact[w.FACT_SOURCE]], fact[w.FACT_LISTS]
                    checksum = tile_checksum(source, valid_size(args, lists, 2), valid_size(args, lists, 1))
            log_window(state, args, tensor, fact[w.FACT_LISTS], kind, instruction, fact[w.FACT_ROOT], checksum)


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
        if operation == op.POP:
            follow_pop(state, frame, code, pc, base)
    elif operation == op.NOTE:
        state[w.FENCES] += 1
    elif operation == op.NOTIFY or operation == op.SIGNAL_WAIT:
        follow_signal(state, frame, code, pc)
    full = state[w.LOG_USED] > state[w.LOG_CAPACITY] - w.LOG_RESERVE or state[w.SNAPSHOT] > w.SNAPSHOT_CAPACITY - 4
    return 1 if full else 0


def _observe(frame):
    """Look at the instruction at the PC of ``frame``; 1 when the log must be emptied before the next one."""
    return _look(frame[op.SELF])


@cache
def observer() -> Any:
    """The compiled observer; its ``address`` goes to the OBSERVER word of a frame."""
    import hashlib
    from pathlib import Path

    here = Path(__file__).parent
    sources = [here / f"{name}.py" for name in ("observer", "shadow", "accesses", "clocks", "boxes", "words")]
    sources += sorted((here / "rules").glob("*.py"))
    sources += [here.parent / f"{name}.py" for name in ("opcodes", "layout", "crosscore", "scalars")]
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    with Progress(1) as progress:
        return load_or_compile(Kernel(f"observer.{digest}", _observe), lambda: progress.compiling("observer"))
