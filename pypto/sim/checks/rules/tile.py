"""Tiles as the rules see them: descriptors by address, and the shadow codes of their elements."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.shadow import (
    code_of,
    is_defined,
    is_float,
    region_is_defined,
    same_run,
    set_codes,
    set_region,
    stronger,
)
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, fill_bytes, load_word
from pypto.sim.scalars import element_bytes


@kernel_code
def map_of(state, tile):
    """The map (shadow.py) of the tile's memory space."""
    return state[w.SPACES] + 16 * load_word(tile + 8 * layout.TILE_SPACE)


@kernel_code
def data_of(tile):
    """Address of element (0, 0)."""
    return load_word(tile)


@kernel_code
def dtype_of(tile):
    """Code of a tile's dtype."""
    return load_word(tile + 8 * layout.TILE_DTYPE)


@kernel_code
def element_size(tile):
    """Bytes of one element."""
    return element_bytes(dtype_of(tile))


@kernel_code
def row_pitch(tile):
    """Bytes from row to row."""
    return load_word(tile + 8 * layout.TILE_STRIDE) * element_size(tile)


@kernel_code
def all_rows(tile):
    """Rows a tile occupies."""
    return load_word(tile + 8 * layout.TILE_ROWS)


@kernel_code
def all_cols(tile):
    """Columns a tile occupies."""
    return load_word(tile + 8 * layout.TILE_COLS)


@kernel_code
def valid_rows(tile):
    """Rows of a tile's valid region."""
    return load_word(tile + 8 * layout.TILE_VALID_ROWS)


@kernel_code
def valid_cols(tile):
    """Columns of a tile's valid region."""
    return load_word(tile + 8 * layout.TILE_VALID_COLS)


@kernel_code
def address_of(tile, row, col):
    """Host address of element (row, col)."""
    return load_word(tile) + row * row_pitch(tile) + col * element_size(tile)


@kernel_code
def code_at(state, tile, row, col):
    """Code of an element; what lies outside the tile is defined."""
    if row >= all_rows(tile) or col >= all_cols(tile):
        return 0
    return code_of(map_of(state, tile), address_of(tile, row, col), element_size(tile))


@kernel_code
def same_elements(state, tile, row, col, most):
    """Elements from (row, col) on to the right, at most ``most`` and at least 1, that have one code."""
    if row >= all_rows(tile) or col >= all_cols(tile):
        return 1
    size, count = element_size(tile), min(most, all_cols(tile) - col)
    return max(same_run(map_of(state, tile), address_of(tile, row, col), count * size) // size, 1)


@kernel_code
def set_code(state, tile, row, col, code):
    """Give an element a code."""
    set_codes(map_of(state, tile), address_of(tile, row, col), element_size(tile), code)


@kernel_code
def set_part(state, tile, rows, cols, code):
    """Give the first rows and columns of a tile a code."""
    set_region(map_of(state, tile), load_word(tile), row_pitch(tile), rows, cols * element_size(tile), code)


@kernel_code
def part_is_defined(state, tile, rows, cols):
    """Whether the first rows and columns of a tile are defined and finite."""
    return region_is_defined(map_of(state, tile), load_word(tile), row_pitch(tile), rows, cols * element_size(tile))


@kernel_code
def set_rest(state, tile, rows, cols):
    """What lies outside the first rows and columns of a tile is padding from now on."""
    if rows >= all_rows(tile) and cols >= all_cols(tile):
        return
    size, map_ = element_size(tile), map_of(state, tile)
    for i in range(all_rows(tile)):
        first = cols if i < rows else 0
        if first < all_cols(tile):
            at, length = address_of(tile, i, first), (all_cols(tile) - first) * size
            set_codes(map_, at, length, w.PADDING)
            fill_bytes(at, length, state[w.POISON])


@kernel_code
def span_code(state, tile, row, first, last):
    """Strongest code of columns [first, last) of a row, and where it is."""
    launch, found, place = as_pointer(state[w.LAUNCH]), 0, first
    size, map_, start = element_size(tile), map_of(state, tile), address_of(tile, row, 0)
    if is_defined(map_, start + first * size, (last - first) * size):
        return found, place
    for j in range(first, last):
        code = stronger(launch, found, code_of(map_, start + j * size, size))
        if code != found:
            found, place = code, j
    return found, place


@kernel_code
def row_code(state, tile, row, cols):
    """Strongest code of the first columns of a row, and where it is."""
    return span_code(state, tile, row, 0, cols)


@kernel_code
def col_code(state, tile, col, rows):
    """Strongest code of a column, and where it is."""
    launch, found, place = as_pointer(state[w.LAUNCH]), 0, 0
    for i in range(rows):
        code = stronger(launch, found, code_at(state, tile, i, col))
        if code != found:
            found, place = code, i
    return found, place


@kernel_code
def ranges_matter(state, fact, dtype):
    """Whether a result of this dtype is looked at for infinities and NaN."""
    return state[w.ASKED] & w.PRECISION != 0 and fact[w.FACT_FLAGS] & w.STAYS_IN_RANGE == 0 and is_float(dtype)


@kernel_code
def set_untouched(state, tile, rows, cols, code):
    """An instruction made the first rows and columns of a tile: the rest of its valid region gets a code."""
    high, wide, size, map_ = valid_rows(tile), valid_cols(tile), element_size(tile), map_of(state, tile)
    for i in range(high):
        first = cols if i < rows else 0
        if first < wide:
            set_codes(map_, address_of(tile, i, first), (wide - first) * size, code)
    set_rest(state, tile, high, wide)
