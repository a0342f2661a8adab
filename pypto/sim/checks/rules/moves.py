"""Rules of instructions that move elements within on-chip memory: codes move along."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import name_origin, settle, settle_run
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    data_of,
    dtype_of,
    element_size,
    map_of,
    part_is_defined,
    ranges_matter,
    row_pitch,
    same_elements,
    set_code,
    set_part,
    set_rest,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import code_of, is_finite_run, region_is_defined, set_codes, set_region
from pypto.sim.kernels.compilation import kernel_code


@kernel_code
def follow_move(state, args, fact):
    """tmov, textract, tinsert, ttrans: a box of the source becomes a box of the destination."""
    rule, extra = fact[w.FACT_RULE], fact[w.FACT_EXTRA]
    if rule == w.TRANSPOSE and args[fact[w.FACT_SOURCE] + 1] > 1:
        follow_reshape(state, args, fact)
        return
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]]
    rows, cols = valid_rows(target), valid_cols(target)
    row = col = to_row = to_col = 0
    turned = rule == w.TRANSPOSE
    if rule == w.MOVE:
        turned = args[extra] != 0
    elif rule == w.EXTRACT:
        row, col, turned = args[extra], args[extra + 1], args[extra + 2] != 0
    elif rule == w.INSERT:
        to_row, to_col = args[extra], args[extra + 1]
        rows, cols = valid_rows(source), valid_cols(source)
    elif rule == w.TRANSPOSE:
        rows, cols = min(valid_cols(source), all_rows(target)), min(valid_rows(source), all_cols(target))
    _move_box(state, fact, source, row, col, target, to_row, to_col, rows, cols, turned)
    if rule != w.INSERT:
        set_rest(state, target, rows, cols)


@kernel_code
def _rows_are_finite(tile, row, col, rows, cols):
    for i in range(rows):
        if not is_finite_run(address_of(tile, row + i, col), cols, dtype_of(tile)):
            return False
    return True


@kernel_code
def _move_box(state, fact, source, row, col, target, to_row, to_col, rows, cols, turned):
    """``rows`` x ``cols`` elements of the destination, from the source as it is or ``turned``."""
    of_rows, of_cols = (cols, rows) if turned else (rows, cols)
    of, dtype = address_of(source, row, col), dtype_of(target)
    converts = dtype_of(source) != dtype and ranges_matter(state, fact, dtype)
    if region_is_defined(map_of(state, source), of, row_pitch(source), of_rows, of_cols * element_size(source)):
        if not converts or _rows_are_finite(target, to_row, to_col, rows, cols):
            at = address_of(target, to_row, to_col)
            set_region(map_of(state, target), at, row_pitch(target), rows, cols * element_size(target), 0)
            return
    size, map_ = element_size(target), map_of(state, target)
    for i in range(rows):
        j = 0
        while j < cols:
            of_row, of_col = (row + j, col + i) if turned else (row + i, col + j)
            count, at = 1, address_of(target, to_row + i, to_col + j)
            if not turned:
                count = same_elements(state, source, of_row, of_col, cols - j)
            code = code_at(state, source, of_row, of_col)
            if converts:
                settle_run(state, fact, map_, code, at, size, dtype, to_row + i, to_col + j, count)
            else:
                set_codes(map_, at, count * size, code)
            j += count


@kernel_code
def follow_reshape(state, args, fact):
    """ttrans of a stack of matrices, treshape: the destination takes the codes of the physical source in order."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    rows, width = all_rows(target), all_cols(target) * element_size(target)
    source_width = all_cols(source) * element_size(source)
    if part_is_defined(state, source, all_rows(source), all_cols(source)):
        set_part(state, target, rows, all_cols(target), 0)
        return
    to, of = map_of(state, target), map_of(state, source)
    for at in range(rows * width):
        code = code_of(of, data_of(source) + at // source_width * row_pitch(source) + at % source_width, 1)
        set_codes(to, data_of(target) + at // width * row_pitch(target) + at % width, 1, code)


@kernel_code
def follow_fill_pad(state, args, fact):
    """The valid part of the source, and around it a value that is meant."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    rows, cols, width = valid_rows(source), valid_cols(source), all_cols(target)
    defined = part_is_defined(state, source, rows, cols)
    size, pitch, data, dtype = element_size(target), row_pitch(target), data_of(target), dtype_of(target)
    looks, map_ = ranges_matter(state, fact, dtype), map_of(state, target)
    for i in range(all_rows(target)):
        if defined and (not looks or is_finite_run(data + i * pitch, width, dtype)):
            set_codes(map_, data + i * pitch, width * size, 0)
            continue
        for j in range(width):
            code = 0
            if i < rows and j < cols:
                code = code_at(state, source, i, j)
            at = data + i * pitch + j * size
            if code == 0 and looks:
                code = settle(state, fact, 0, at, dtype, i, j)
            set_codes(map_, at, size, code)


@kernel_code
def follow_concat(state, args, fact):
    """The valid columns of two tiles side by side; columns of the result beyond them were promised and never came."""
    target = args[fact[w.FACT_TARGET]]
    left, right = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    rows, cols, middle, last = (
        valid_rows(target),
        valid_cols(target),
        valid_cols(left),
        valid_cols(left) + valid_cols(right),
    )
    if (
        cols <= last
        and part_is_defined(state, left, rows, middle)
        and part_is_defined(state, right, rows, cols - middle)
    ):
        set_part(state, target, rows, cols, 0)
        set_rest(state, target, rows, cols)
        return
    for i in range(rows):
        for j in range(cols):
            code = 0
            if j >= last:
                narrow = left if middle < all_cols(left) else right
                at = fact[w.FACT_SOURCE + (0 if narrow == left else 1)]
                code = name_origin(state, w.FROM_PADDING, at, i, valid_cols(narrow), narrow)
            elif j < middle:
                code = code_at(state, left, i, j)
            else:
                code = code_at(state, right, i, j - middle)
            set_code(state, target, i, j, code)
    set_rest(state, target, rows, cols)
