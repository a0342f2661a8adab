"""The rule of matrix products."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import settle, used_code
from pypto.sim.checks.rules.tile import (
    code_at,
    col_code,
    element_size,
    is_clean_part,
    row_code,
    row_pitch,
    set_rest,
    shadow_of,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import fill, is_finite_run, is_float, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word


@kernel_code
def follow_product(state, args, fact, instruction):
    """dst[i, j] depends on row i of a and column j of b, and on itself when it accumulates."""
    target, sources = args[fact[w.FACT_TARGET]], fact[w.FACT_SOURCES]
    rows, cols = valid_rows(target), valid_cols(target)
    clean = True
    for k in range(sources):
        tile = args[fact[w.FACT_SOURCE + k]]
        clean = clean and is_clean_part(state, tile, valid_rows(tile), valid_cols(tile))
    shadow, pitch, size = shadow_of(state, target), row_pitch(target), element_size(target)
    dtype, data = load_word(target + 8 * layout.TILE_DTYPE), load_word(target)
    looks = is_float(dtype) and state[w.ASKED] & w.PRECISION != 0
    launch = as_pointer(state[w.LAUNCH])
    accumulates = fact[w.FACT_SOURCE] == fact[w.FACT_TARGET]
    a_at = fact[w.FACT_SOURCE + (1 if accumulates else 0)]
    b_at = fact[w.FACT_SOURCE + (2 if accumulates else 1)]
    a, b = args[a_at], args[b_at]
    a_turned, b_turned = args[fact[w.FACT_EXTRA]] != 0, args[fact[w.FACT_EXTRA] + 1] != 0
    for i in range(rows):
        finite = not looks or is_finite_run(data + i * pitch, cols, dtype)
        if clean and finite:
            fill(shadow + i * pitch, cols * size, 0)
            continue
        of_row, place = 0, 0
        if not clean:
            of_row, place = col_code(state, a, i, valid_rows(a)) if a_turned else row_code(state, a, i, valid_cols(a))
            if of_row != 0:
                of_row = used_code(
                    state, instruction, a_at, of_row, place if a_turned else i, i if a_turned else place, a
                )
        for j in range(cols):
            code = of_row
            if not clean:
                code = stronger(launch, code, _of_column(state, fact, args, instruction, b, b_at, b_turned, i, j))
                if accumulates:
                    own = code_at(state, target, i, j)
                    if own != 0:
                        own = used_code(state, instruction, fact[w.FACT_TARGET], own, i, j, target)
                    code = stronger(launch, code, own)
            at = i * pitch + j * size
            fill(shadow + at, size, settle(state, fact, instruction, code, data + at, dtype, i, j))
    set_rest(state, target, rows, cols)


@kernel_code
def _of_column(state, fact, args, instruction, b, b_at, turned, i, j):
    """Code that column j of the right operand (and of a bias) gives to the product."""
    launch = as_pointer(state[w.LAUNCH])
    code, place = 0, 0
    if not is_clean_part(state, b, valid_rows(b), valid_cols(b)):
        code, place = row_code(state, b, j, valid_cols(b)) if turned else col_code(state, b, j, valid_rows(b))
    if code != 0:
        code = used_code(state, instruction, b_at, code, j if turned else place, place if turned else j, b)
    last = fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]
    if last != b_at:
        bias = code_at(state, args[last], 0, j)
        if bias != 0:
            bias = used_code(state, instruction, last, bias, 0, j, args[last])
        code = stronger(launch, code, bias)
    return code
