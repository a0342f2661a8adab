"""Tiles as the rules see them: descriptors by address, and the shadow codes of their elements."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.shadow import fill, is_clean, read_code, region_is_clean, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word
from pypto.sim.scalars import element_bytes


@kernel_code
def shadow_of(state, tile):
    """Shadow address of element (0, 0)."""
    return load_word(tile) + load_word(state[w.SPACES] + 8 * load_word(tile + 8 * layout.TILE_SPACE))


@kernel_code
def element_size(tile):
    return element_bytes(load_word(tile + 8 * layout.TILE_DTYPE))


@kernel_code
def row_pitch(tile):
    """Bytes from row to row."""
    return load_word(tile + 8 * layout.TILE_STRIDE) * element_size(tile)


@kernel_code
def valid_rows(tile):
    return load_word(tile + 8 * layout.TILE_VALID_ROWS)


@kernel_code
def valid_cols(tile):
    return load_word(tile + 8 * layout.TILE_VALID_COLS)


@kernel_code
def code_at(state, tile, row, col):
    """Shadow code of an element; what lies outside the tile is defined."""
    if row >= load_word(tile + 8 * layout.TILE_ROWS) or col >= load_word(tile + 8 * layout.TILE_COLS):
        return 0
    size = element_size(tile)
    return read_code(shadow_of(state, tile) + row * row_pitch(tile) + col * size, size)


@kernel_code
def set_code(state, target, i, j, code):
    """Give an element of the destination the code of its source."""
    size = element_size(target)
    fill(shadow_of(state, target) + i * row_pitch(target) + j * size, size, code)


@kernel_code
def set_rest(state, tile, rows, cols):
    """What lies outside the first rows and columns of a tile is padding from now on."""
    physical_rows, physical_cols = load_word(tile + 8 * layout.TILE_ROWS), load_word(tile + 8 * layout.TILE_COLS)
    if rows >= physical_rows and cols >= physical_cols:
        return
    size, pitch, shadow, data = element_size(tile), row_pitch(tile), shadow_of(state, tile), load_word(tile)
    for i in range(physical_rows):
        first = cols if i < rows else 0
        if first < physical_cols:
            at = i * pitch + first * size
            fill(shadow + at, (physical_cols - first) * size, w.PADDING)
            fill(data + at, (physical_cols - first) * size, state[w.POISON])


@kernel_code
def is_clean_part(state, tile, rows, cols):
    """Whether the first rows and columns of a tile are defined and finite."""
    return region_is_clean(shadow_of(state, tile), row_pitch(tile), rows, cols * element_size(tile))


@kernel_code
def row_code(state, tile, row, cols):
    """Strongest code of a row, and where it is."""
    launch, found, place = as_pointer(state[w.LAUNCH]), 0, 0
    size = element_size(tile)
    start = shadow_of(state, tile) + row * row_pitch(tile)
    if is_clean(start, cols * size):
        return found, place
    for j in range(cols):
        code = stronger(launch, found, read_code(start + j * size, size))
        if code != found:
            found, place = code, j
    return found, place


@kernel_code
def col_code(state, tile, col, rows):
    """Strongest code of a column, and where it is."""
    launch, found, place = as_pointer(state[w.LAUNCH]), 0, 0
    for i in range(rows):
        code = stronger(launch, found, code_at(state, tile, i, col))
        if code != found:
            found, place = code, i
    return found, place
