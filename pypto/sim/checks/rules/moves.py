"""Rules of instructions that move elements within on-chip memory: codes move along."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import name_origin, settle
from pypto.sim.checks.rules.tile import (
    code_at,
    element_size,
    is_clean_part,
    row_pitch,
    set_code,
    set_rest,
    shadow_of,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import fill, fill_region, is_finite_run, is_float, region_is_clean
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import load_int8, load_word


@kernel_code
def follow_move(state, args, fact):
    """tmov, textract, tinsert, ttrans: a box of the source becomes a box of the destination."""
    rule = fact[w.FACT_RULE]
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]]
    rows, cols = valid_rows(target), valid_cols(target)
    row = col = to_row = to_col = 0
    turned = rule == w.TRANSPOSE
    extra = fact[w.FACT_EXTRA]
    if rule == w.MOVE:
        turned = args[extra] != 0
    elif rule == w.EXTRACT:
        row, col, turned = args[extra], args[extra + 1], args[extra + 2] != 0
    elif rule == w.INSERT:
        to_row, to_col = args[extra], args[extra + 1]
        rows, cols = valid_rows(source), valid_cols(source)
    elif rule == w.TRANSPOSE:
        rows, cols = (
            min(valid_cols(source), load_word(target + 8 * layout.TILE_ROWS)),
            min(valid_rows(source), load_word(target + 8 * layout.TILE_COLS)),
        )
    size, shadow = element_size(target), shadow_of(state, target) + to_row * row_pitch(target)
    of, of_size = shadow_of(state, source), element_size(source)
    if turned:
        clean = region_is_clean(of + row * row_pitch(source) + col * of_size, row_pitch(source), cols, rows * of_size)
    else:
        clean = region_is_clean(of + row * row_pitch(source) + col * of_size, row_pitch(source), rows, cols * of_size)
    if clean:
        fill_region(shadow + to_col * size, row_pitch(target), rows, cols * size, 0)
    else:
        for i in range(rows):
            for j in range(cols):
                code = code_at(state, source, row + (j if turned else i), col + (i if turned else j))
                set_code(state, target, to_row + i, to_col + j, code)
    if rule != w.INSERT:
        set_rest(state, target, rows, cols)


@kernel_code
def follow_reshape(state, args, fact):
    """ttrans of a stack of matrices, treshape: the destination takes the codes of the physical source in order."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    width = load_word(target + 8 * layout.TILE_COLS) * element_size(target)
    source_width = load_word(source + 8 * layout.TILE_COLS) * element_size(source)
    rows, source_rows = load_word(target + 8 * layout.TILE_ROWS), load_word(source + 8 * layout.TILE_ROWS)
    to, of = shadow_of(state, target), shadow_of(state, source)
    if region_is_clean(of, row_pitch(source), source_rows, source_width):
        fill_region(to, row_pitch(target), rows, width, 0)
        return
    for at in range(rows * width):
        code = load_int8(of + at // source_width * row_pitch(source) + at % source_width)
        fill(to + at // width * row_pitch(target) + at % width, 1, code)


@kernel_code
def follow_fill_pad(state, args, fact, instruction):
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    rows, cols = valid_rows(source), valid_cols(source)
    clean = is_clean_part(state, source, rows, cols)
    size, shadow, pitch, data = element_size(target), shadow_of(state, target), row_pitch(target), load_word(target)
    dtype, width = load_word(target + 8 * layout.TILE_DTYPE), load_word(target + 8 * layout.TILE_COLS)
    looks = is_float(dtype) and state[w.ASKED] & w.PRECISION != 0
    for i in range(load_word(target + 8 * layout.TILE_ROWS)):
        if clean and (not looks or is_finite_run(data + i * pitch, width, dtype)):
            fill(shadow + i * pitch, width * size, 0)
            continue
        for j in range(width):
            code = 0
            if i < rows and j < cols:
                code = code_at(state, source, i, j)
            at = i * pitch + j * size
            if code == 0 and looks:
                code = settle(state, fact, instruction, 0, data + at, dtype, i, j)
            fill(shadow + at, size, code)


@kernel_code
def follow_concat(state, args, fact, instruction):
    """The valid columns of two tiles side by side; columns of the result beyond them were promised and never came."""
    target = args[fact[w.FACT_TARGET]]
    left, right = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    middle, last = valid_cols(left), valid_cols(left) + valid_cols(right)
    for i in range(valid_rows(target)):
        for j in range(valid_cols(target)):
            code = 0
            if j >= last:
                narrow = left if middle < load_word(left + 8 * layout.TILE_COLS) else right
                at = fact[w.FACT_SOURCE + (0 if narrow == left else 1)]
                code = name_origin(state, w.FROM_PADDING, instruction, at, i, valid_cols(narrow), narrow)
            elif j < middle:
                code = code_at(state, left, i, j)
            else:
                code = code_at(state, right, i, j - middle)
            set_code(state, target, i, j, code)
    set_rest(state, target, valid_rows(target), valid_cols(target))
