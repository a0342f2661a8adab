"""Rules of gathers from and scatters to global memory: codes of the elements, and one access each."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_of, begin_access, end_access
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import code_at, element_size, row_pitch, shadow_of, valid_cols, valid_rows
from pypto.sim.checks.rules.transfers import follow_load_row
from pypto.sim.checks.shadow import fill
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.gather_memory import bounded, count, gather_indices, offset
from pypto.sim.native import load_word


@kernel_code
def follow_fetch(state, args, fact, instruction):
    """mgather: one row or element of a tensor per index."""
    target, tensor, index = args[fact[w.FACT_TARGET]], args[fact[w.FACT_TENSOR]], args[fact[w.FACT_TENSOR] + 1]
    in_tile = fact[w.FACT_SOURCES] > 0
    rows, cols = valid_rows(target), valid_cols(target)
    by_element, mode = args[fact[w.FACT_EXTRA]] == 1, args[fact[w.FACT_EXTRA] + 1]
    wide = valid_cols(index) if in_tile else cols
    rank = load_word(tensor + 8 * layout.TENSOR_RANK)
    axes = rank if by_element else rank - 1
    capacity, size, run = count(tensor, axes), element_size(target), 1 if by_element else cols
    allocation = allocation_of(state, tensor)
    number = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    for k in range(rows * cols if by_element else rows):
        at = bounded(gather_indices(index, k, wide, in_tile), capacity, mode)
        row, col = (k // cols, k % cols) if by_element else (k, 0)
        if at < 0:
            fill(shadow_of(state, target) + row * row_pitch(target) + col * size, run * size, 0)
            continue
        source = load_word(tensor) + offset(tensor, at, axes) * size
        if state[w.ASKED] & w.UNDEFINED != 0:
            follow_load_row(state, args, fact, instruction, target, row, col, source, size, run, allocation, tensor)
        if allocation[w.GM_TRACKED] != 0 and k < w.LOG_RESERVE:
            access = begin_access(
                state, 0, number, source - allocation[w.GM_BASE], run * size, instruction, fact[w.FACT_ROOT]
            )
            end_access(state, access)


@kernel_code
def follow_spread(state, args, fact, instruction):
    """mscatter: one element of a tensor per index."""
    tensor, source, index = args[fact[w.FACT_TENSOR]], args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    rows, cols = valid_rows(source), valid_cols(source)
    rank, size = load_word(tensor + 8 * layout.TENSOR_RANK), element_size(source)
    allocation = allocation_of(state, tensor)
    number = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    for k in range(rows * cols):
        at = load_word(tensor) + offset(tensor, gather_indices(index, k, cols, True), rank) * size
        if state[w.ASKED] & w.UNDEFINED != 0 and allocation[w.GM_SHADOW] != 0:
            code = code_at(state, source, k // cols, k % cols)
            code = used_code(state, instruction, fact[w.FACT_SOURCE], code, k // cols, k % cols, source)
            fill(allocation[w.GM_SHADOW] + at - allocation[w.GM_BASE], size, code)
        if allocation[w.GM_TRACKED] != 0 and k < w.LOG_RESERVE:
            access = begin_access(
                state, w.WRITES, number, at - allocation[w.GM_BASE], size, instruction, fact[w.FACT_ROOT]
            )
            end_access(state, access)
