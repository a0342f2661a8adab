"""The compiled observer: called after every tile instruction, it follows undefined values and logs memory accesses.

One call gets the frame; the code offset of the instruction is in its PC word, the operands in its argument block and
the state of the core (words.py) behind its WATCH word. It returns 1 when its log has to be emptied.

For every rule there is a quick way, taken when all that an instruction reads is defined, and a slow one that works
element by element.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from functools import cache
from typing import Any

from pypto.ir import dtype as dtypes
from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_of, begin_access, end_access, log_element, log_window
from pypto.sim.checks.clocks import order_cores
from pypto.sim.checks.shadow import (
    fill,
    fill_region,
    finiteness,
    is_clean,
    is_finite_run,
    is_float,
    is_undefined,
    new_event,
    new_origin,
    read_code,
    region_is_clean,
    stronger,
)
from pypto.sim.kernels.compilation import Kernel, kernel_code, load_or_compile
from pypto.sim.kernels.gather_memory import bounded, count, gather_indices, offset
from pypto.sim.kernels.progress import Progress
from pypto.sim.kernels.window import (
    outer_count,
    outer_offset,
    valid_size,
    window_origin,
    window_size,
    window_step,
)
from pypto.sim.native import as_pointer, load_int8, load_int32, load_word
from pypto.sim.scalars import element_bytes, is_nibble

_BIT_OF_BYTE = 8
_INT16, _UINT16 = dtypes.INT16.code(), dtypes.UINT16.code()


# tiles


@kernel_code
def _shadow(state, tile):
    """Shadow address of element (0, 0)."""
    return load_word(tile) + load_word(state[w.SPACES] + 8 * load_word(tile + 8 * layout.TILE_SPACE))


@kernel_code
def _size(tile):
    return element_bytes(load_word(tile + 8 * layout.TILE_DTYPE))


@kernel_code
def _pitch(tile):
    """Bytes from row to row."""
    return load_word(tile + 8 * layout.TILE_STRIDE) * _size(tile)


@kernel_code
def _rows(tile):
    return load_word(tile + 8 * layout.TILE_VALID_ROWS)


@kernel_code
def _cols(tile):
    return load_word(tile + 8 * layout.TILE_VALID_COLS)


@kernel_code
def _code(state, tile, row, col):
    """Shadow code of an element; what lies outside the tile is defined."""
    if row >= load_word(tile + 8 * layout.TILE_ROWS) or col >= load_word(tile + 8 * layout.TILE_COLS):
        return 0
    size = _size(tile)
    return read_code(_shadow(state, tile) + row * _pitch(tile) + col * size, size)


@kernel_code
def _set_rest(state, tile, rows, cols):
    """What lies outside the first rows and columns of a tile is padding from now on."""
    physical_rows, physical_cols = load_word(tile + 8 * layout.TILE_ROWS), load_word(tile + 8 * layout.TILE_COLS)
    if rows >= physical_rows and cols >= physical_cols:
        return
    size, pitch, shadow, data = _size(tile), _pitch(tile), _shadow(state, tile), load_word(tile)
    for i in range(physical_rows):
        first = cols if i < rows else 0
        if first < physical_cols:
            at = i * pitch + first * size
            fill(shadow + at, (physical_cols - first) * size, w.PADDING)
            fill(data + at, (physical_cols - first) * size, state[w.POISON])


@kernel_code
def _clean(state, tile, rows, cols):
    """Whether the first rows and columns of a tile are defined and finite."""
    return region_is_clean(_shadow(state, tile), _pitch(tile), rows, cols * _size(tile))


# one element


@kernel_code
def _origin(state, kind, instruction, operand, row, col, tile):
    rows = cols = 0
    if tile != 0:
        rows, cols = _rows(tile), _cols(tile)
    return new_origin(
        as_pointer(state[w.LAUNCH]), kind, state[w.PROGRAM], instruction, operand, row, col, rows, cols,
        state[w.NODE], state[w.SEAT],
    )  # fmt: skip


@kernel_code
def _used(state, instruction, operand, code, row, col, tile):
    """Code of a value computed from an element with ``code``: raw ones get a name here."""
    if code == w.UNWRITTEN or code == w.PADDING:
        return _origin(state, code, instruction, operand, row, col, tile)
    return code


@kernel_code
def _settle(state, fact, instruction, code, value, dtype, row, col):
    """Code of a result at address ``value`` whose sources have ``code``."""
    launch = as_pointer(state[w.LAUNCH])
    if code != 0 and is_undefined(launch, code):
        return code
    if not is_float(dtype):
        return 0
    kind = finiteness(value, dtype)
    if kind == 0:
        return 0
    if code >= w.FIRST_ORIGIN or code == w.NOT_A_NUMBER:
        return code
    if fact[w.FACT_FLAGS] & w.MAKES_CONSTANTS != 0:
        return w.INFINITE if kind == 1 else w.NOT_A_NUMBER
    if kind == 1:
        if code == w.INFINITE:
            return code
        return _origin(state, w.OVERFLOWED, instruction, 0, row, col, 0)
    return _origin(state, w.BECAME_NAN, instruction, 0 if code == 0 else 1, row, col, 0)


@kernel_code
def _row_code(state, tile, row, cols):
    """Strongest code of a row, and where it is."""
    launch, found, place = as_pointer(state[w.LAUNCH]), 0, 0
    size = _size(tile)
    start = _shadow(state, tile) + row * _pitch(tile)
    if is_clean(start, cols * size):
        return found, place
    for j in range(cols):
        code = stronger(launch, found, read_code(start + j * size, size))
        if code != found:
            found, place = code, j
    return found, place


@kernel_code
def _col_code(state, tile, col, rows):
    """Strongest code of a column, and where it is."""
    launch, found, place = as_pointer(state[w.LAUNCH]), 0, 0
    for i in range(rows):
        code = stronger(launch, found, _code(state, tile, i, col))
        if code != found:
            found, place = code, i
    return found, place


@kernel_code
def _element(state, args, fact, instruction, i, j):
    """Code that an element of the result takes from the sources of the instruction."""
    launch, rule, result = as_pointer(state[w.LAUNCH]), fact[w.FACT_RULE], 0
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile = args[position]
        row, col, code = i, j, 0
        vector = k == fact[w.FACT_SOURCES] - 1
        if rule == w.ROW_EXPAND or rule == w.ROW_COMBINE and vector:
            col = 0
        elif rule == w.COL_EXPAND or rule == w.COL_COMBINE and vector:
            row = 0
        if rule == w.ROW_REDUCE:
            code, col = _row_code(state, tile, i, _cols(tile))
        elif rule == w.COL_REDUCE:
            code, row = _col_code(state, tile, j, _rows(tile))
        elif rule == w.PART and (i >= _rows(tile) or j >= _cols(tile)):
            code = 0
        elif rule == w.SELECT and not _selects(args[fact[w.FACT_EXTRA]], i, j, k == 0):
            code = 0
        else:
            code = _code(state, tile, row, col)
        if code != 0:
            code = _used(state, instruction, position, code, row, col, tile)
            result = stronger(launch, result, code)
    return result


@kernel_code
def _selects(mask, i, j, first):
    """Whether the packed predicate picks the first source at (i, j)."""
    byte = load_int8(load_word(mask) + i * _pitch(mask) + j // _BIT_OF_BYTE)
    return (byte >> (j % _BIT_OF_BYTE) & 1 != 0) == first


# rules


@kernel_code
def _sources_are_clean(state, args, fact, rows, cols):
    rule = fact[w.FACT_RULE]
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        vector = k == fact[w.FACT_SOURCES] - 1
        r, c = rows, cols
        if rule == w.ROW_EXPAND or rule == w.ROW_COMBINE and vector:
            c = 1
        elif rule == w.COL_EXPAND or rule == w.COL_COMBINE and vector:
            r = 1
        elif rule == w.ROW_REDUCE or rule == w.COL_REDUCE or rule == w.PART:
            r, c = _rows(tile), _cols(tile)
        r = min(r, load_word(tile + 8 * layout.TILE_ROWS))
        c = min(c, load_word(tile + 8 * layout.TILE_COLS))
        if not _clean(state, tile, r, c):
            return False
    return True


@kernel_code
def _elements(state, args, fact, instruction):
    """Rules that work on the valid region of the destination, element by element."""
    target = args[fact[w.FACT_TARGET]]
    rows, cols = _rows(target), _cols(target)
    if rows <= 0 or cols <= 0:
        return
    shadow, pitch, size = _shadow(state, target), _pitch(target), _size(target)
    dtype, data = load_word(target + 8 * layout.TILE_DTYPE), load_word(target)
    looks = is_float(dtype) and state[w.ASKED] & w.PRECISION != 0
    clean = _sources_are_clean(state, args, fact, rows, cols)
    if clean and pitch == cols * size and (not looks or is_finite_run(data, rows * cols, dtype)):
        fill(shadow, rows * pitch, 0)
        _set_rest(state, target, rows, cols)
        return
    for i in range(rows):
        finite = not looks or is_finite_run(data + i * pitch, cols, dtype)
        if clean and finite:
            fill(shadow + i * pitch, cols * size, 0)
            continue
        for j in range(cols):
            code = 0 if clean else _element(state, args, fact, instruction, i, j)
            at = i * pitch + j * size
            fill(shadow + at, size, _settle(state, fact, instruction, code, data + at, dtype, i, j))
    _set_rest(state, target, rows, cols)


@kernel_code
def _whole(state, args, fact, instruction):
    """Every element may depend on every valid element of every source."""
    launch, found = as_pointer(state[w.LAUNCH]), 0
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        if not _clean(state, tile, _rows(tile), _cols(tile)):
            for i in range(_rows(tile)):
                code, col = _row_code(state, tile, i, _cols(tile))
                if code != 0 and is_undefined(launch, code):
                    found = stronger(
                        launch, found, _used(state, instruction, fact[w.FACT_SOURCE + k], code, i, col, tile)
                    )
    for position in (fact[w.FACT_TARGET], fact[w.FACT_SECOND]):
        if position != 0:
            target = args[position]
            width = load_word(target + 8 * layout.TILE_COLS) * _size(target)
            fill_region(_shadow(state, target), _pitch(target), load_word(target + 8 * layout.TILE_ROWS), width, found)


@kernel_code
def _matmul(state, args, fact, instruction):
    """dst[i, j] depends on row i of a and column j of b, and on itself when it accumulates."""
    target, sources = args[fact[w.FACT_TARGET]], fact[w.FACT_SOURCES]
    rows, cols = _rows(target), _cols(target)
    clean = True
    for k in range(sources):
        tile = args[fact[w.FACT_SOURCE + k]]
        clean = clean and _clean(state, tile, _rows(tile), _cols(tile))
    shadow, pitch, size = _shadow(state, target), _pitch(target), _size(target)
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
            of_row, place = _col_code(state, a, i, _rows(a)) if a_turned else _row_code(state, a, i, _cols(a))
            if of_row != 0:
                of_row = _used(state, instruction, a_at, of_row, place if a_turned else i, i if a_turned else place, a)
        for j in range(cols):
            code = of_row
            if not clean:
                code = stronger(launch, code, _of_column(state, fact, args, instruction, b, b_at, b_turned, i, j))
                if accumulates:
                    own = _code(state, target, i, j)
                    if own != 0:
                        own = _used(state, instruction, fact[w.FACT_TARGET], own, i, j, target)
                    code = stronger(launch, code, own)
            at = i * pitch + j * size
            fill(shadow + at, size, _settle(state, fact, instruction, code, data + at, dtype, i, j))
    _set_rest(state, target, rows, cols)


@kernel_code
def _of_column(state, fact, args, instruction, b, b_at, turned, i, j):
    """Code that column j of the right operand (and of a bias) gives to the product."""
    launch = as_pointer(state[w.LAUNCH])
    code, place = 0, 0
    if not _clean(state, b, _rows(b), _cols(b)):
        code, place = _row_code(state, b, j, _cols(b)) if turned else _col_code(state, b, j, _rows(b))
    if code != 0:
        code = _used(state, instruction, b_at, code, j if turned else place, place if turned else j, b)
    last = fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]
    if last != b_at:
        bias = _code(state, args[last], 0, j)
        if bias != 0:
            bias = _used(state, instruction, last, bias, 0, j, args[last])
        code = stronger(launch, code, bias)
    return code


@kernel_code
def _copied(state, target, i, j, code):
    """Give an element of the destination the code of its source."""
    size = _size(target)
    fill(_shadow(state, target) + i * _pitch(target) + j * size, size, code)


@kernel_code
def _move_window(state, args, fact):
    """tmov, textract, tinsert, ttrans: a box of the source becomes a box of the destination."""
    rule = fact[w.FACT_RULE]
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]]
    rows, cols = _rows(target), _cols(target)
    row = col = to_row = to_col = 0
    turned = rule == w.TRANSPOSE
    extra = fact[w.FACT_EXTRA]
    if rule == w.MOVE:
        turned = args[extra] != 0
    elif rule == w.EXTRACT:
        row, col, turned = args[extra], args[extra + 1], args[extra + 2] != 0
    elif rule == w.INSERT:
        to_row, to_col = args[extra], args[extra + 1]
        rows, cols = _rows(source), _cols(source)
    elif rule == w.TRANSPOSE:
        rows, cols = (
            min(_cols(source), load_word(target + 8 * layout.TILE_ROWS)),
            min(_rows(source), load_word(target + 8 * layout.TILE_COLS)),
        )
    size, shadow = _size(target), _shadow(state, target) + to_row * _pitch(target)
    of, of_size = _shadow(state, source), _size(source)
    if turned:
        clean = region_is_clean(of + row * _pitch(source) + col * of_size, _pitch(source), cols, rows * of_size)
    else:
        clean = region_is_clean(of + row * _pitch(source) + col * of_size, _pitch(source), rows, cols * of_size)
    if clean:
        fill_region(shadow + to_col * size, _pitch(target), rows, cols * size, 0)
    else:
        for i in range(rows):
            for j in range(cols):
                code = _code(state, source, row + (j if turned else i), col + (i if turned else j))
                _copied(state, target, to_row + i, to_col + j, code)
    if rule != w.INSERT:
        _set_rest(state, target, rows, cols)


@kernel_code
def _batched(state, args, fact):
    """ttrans of a stack of matrices, treshape: the destination takes the codes of the physical source in order."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    width = load_word(target + 8 * layout.TILE_COLS) * _size(target)
    source_width = load_word(source + 8 * layout.TILE_COLS) * _size(source)
    rows, source_rows = load_word(target + 8 * layout.TILE_ROWS), load_word(source + 8 * layout.TILE_ROWS)
    to, of = _shadow(state, target), _shadow(state, source)
    if region_is_clean(of, _pitch(source), source_rows, source_width):
        fill_region(to, _pitch(target), rows, width, 0)
        return
    for at in range(rows * width):
        code = load_int8(of + at // source_width * _pitch(source) + at % source_width)
        fill(to + at // width * _pitch(target) + at % width, 1, code)


@kernel_code
def _fill_pad(state, args, fact, instruction):
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    rows, cols = _rows(source), _cols(source)
    clean = _clean(state, source, rows, cols)
    size, shadow, pitch, data = _size(target), _shadow(state, target), _pitch(target), load_word(target)
    dtype, width = load_word(target + 8 * layout.TILE_DTYPE), load_word(target + 8 * layout.TILE_COLS)
    looks = is_float(dtype) and state[w.ASKED] & w.PRECISION != 0
    for i in range(load_word(target + 8 * layout.TILE_ROWS)):
        if clean and (not looks or is_finite_run(data + i * pitch, width, dtype)):
            fill(shadow + i * pitch, width * size, 0)
            continue
        for j in range(width):
            code = 0
            if i < rows and j < cols:
                code = _code(state, source, i, j)
            at = i * pitch + j * size
            if code == 0 and looks:
                code = _settle(state, fact, instruction, 0, data + at, dtype, i, j)
            fill(shadow + at, size, code)


@kernel_code
def _concat(state, args, fact, instruction):
    """The valid columns of two tiles side by side; columns of the result beyond them were promised and never came."""
    target = args[fact[w.FACT_TARGET]]
    left, right = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    middle, last = _cols(left), _cols(left) + _cols(right)
    for i in range(_rows(target)):
        for j in range(_cols(target)):
            code = 0
            if j >= last:
                narrow = left if middle < load_word(left + 8 * layout.TILE_COLS) else right
                at = fact[w.FACT_SOURCE + (0 if narrow == left else 1)]
                code = _origin(state, w.FROM_PADDING, instruction, at, i, _cols(narrow), narrow)
            elif j < middle:
                code = _code(state, left, i, j)
            else:
                code = _code(state, right, i, j - middle)
            _copied(state, target, i, j, code)
    _set_rest(state, target, _rows(target), _cols(target))


@kernel_code
def _index(tile, i, j):
    """Element of an index tile."""
    dtype, at = load_word(tile + 8 * layout.TILE_DTYPE), load_word(tile) + i * _pitch(tile)
    if dtype == _INT16 or dtype == _UINT16:
        low = load_int8(at + 2 * j) & 0xFF
        return low | load_int8(at + 2 * j + 1) << 8
    return load_int32(at + 4 * j)


@kernel_code
def _outside(state, instruction, operand, value, limit, row, col):
    address = new_event(
        as_pointer(state[w.LAUNCH]), w.INDEX_OUTSIDE, state[w.PROGRAM], instruction, operand, state[w.NODE],
        state[w.SEAT],
    )  # fmt: skip
    if address != 0:
        event = as_pointer(address)
        event[w.OR_VALUE], event[w.OR_LIMIT], event[w.OR_ROW], event[w.OR_COL] = value, limit, row, col


@kernel_code
def _gather(state, args, fact, instruction):
    """tgather: dst[i, j] = src.flat[index[i, j]]; the bounds are checked here because the kernel reads zero."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    index, position = args[fact[w.FACT_SOURCE + 1]], fact[w.FACT_SOURCE + 1]
    cols = load_word(source + 8 * layout.TILE_COLS)
    limit = load_word(source + 8 * layout.TILE_ROWS) * cols
    rows, width = _rows(target), _cols(target)
    follows = state[w.ASKED] & w.UNDEFINED != 0
    clean = not follows or (
        _clean(state, source, load_word(source + 8 * layout.TILE_ROWS), cols) and _clean(state, index, rows, width)
    )
    for i in range(rows):
        for j in range(width):
            at, code = _index(index, i, j), 0
            if at < 0 or at >= limit:
                if clean:
                    _outside(state, instruction, position, at, limit, i, j)
            elif not clean:
                code = stronger(
                    as_pointer(state[w.LAUNCH]), _code(state, index, i, j), _code(state, source, at // cols, at % cols)
                )
                code = _used(state, instruction, position, code, i, j, index)
            if follows:
                _copied(state, target, i, j, code)


@kernel_code
def _scatter(state, args, fact, instruction):
    """Scatters keep what they do not hit: an undefined source or index is used; indices of the flat "
    "form are checked."""
    target, launch, found = args[fact[w.FACT_TARGET]], as_pointer(state[w.LAUNCH]), 0
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        if tile != target:
            for i in range(_rows(tile)):
                code, col = _row_code(state, tile, i, _cols(tile))
                if code != 0 and is_undefined(launch, code):
                    found = stronger(
                        launch, found, _used(state, instruction, fact[w.FACT_SOURCE + k], code, i, col, tile)
                    )
    if found != 0:
        width = load_word(target + 8 * layout.TILE_COLS) * _size(target)
        fill_region(_shadow(state, target), _pitch(target), load_word(target + 8 * layout.TILE_ROWS), width, found)


# global memory


@kernel_code
def _gm_code(state, allocation, address, size):
    """Shadow code of bytes in global memory."""
    if allocation[w.GM_SHADOW] == 0:
        return 0
    return read_code(allocation[w.GM_SHADOW] + address - allocation[w.GM_BASE], size)


@kernel_code
def _taken(state, instruction, fact, code, allocation, address, tensor):
    """Code that a loaded element keeps; what nobody has written is named here, where its tensor is known."""
    if code != w.UNWRITTEN:
        return code
    result = _origin(state, w.FROM_UNWRITTEN, instruction, fact[w.FACT_TENSOR], 0, 0, 0)
    origin = as_pointer(as_pointer(state[w.LAUNCH])[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (result - w.FIRST_ORIGIN))
    if origin[w.OR_HIGH] == 0:
        origin[w.OR_ALLOCATION] = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
        origin[w.OR_LOW] = address - allocation[w.GM_BASE]
    origin[w.OR_HIGH] = max(origin[w.OR_HIGH], address - allocation[w.GM_BASE] + 1)
    return result


@kernel_code
def _load_row(state, args, fact, instruction, target, row, col, source, step, length, allocation, tensor):
    """Codes of one row of a load: ``length`` elements, ``step`` bytes apart from address ``source``."""
    size, dtype = _size(target), load_word(target + 8 * layout.TILE_DTYPE)
    at = row * _pitch(target) + col * size
    shadow, data = _shadow(state, target) + at, load_word(target) + at
    finite = state[w.ASKED] & w.PRECISION == 0 or not is_float(dtype) or is_finite_run(data, length, dtype)
    defined = allocation[w.GM_SHADOW] == 0
    if not defined and step == size:
        defined = is_clean(allocation[w.GM_SHADOW] + source - allocation[w.GM_BASE], length * size)
    if defined and finite:
        fill(shadow, length * size, 0)
        return
    for j in range(length):
        code = 0 if defined else _gm_code(state, allocation, source + j * step, size)
        code = _taken(state, instruction, fact, code, allocation, source + j * step, tensor)
        if code == 0:
            code = _settle(state, fact, instruction, 0, data + j * size, dtype, row, j)
        fill(shadow + j * size, size, code)


@kernel_code
def _rest_of_load(state, target, args, lists, tensor, rows, cols, window, outers):
    """Everything of the tile that the window does not fill is padding."""
    physical_rows, physical_cols = load_word(target + 8 * layout.TILE_ROWS), load_word(target + 8 * layout.TILE_COLS)
    size, pitch, shadow, data = _size(target), _pitch(target), _shadow(state, target), load_word(target)
    for row in range(physical_rows):
        outer, i = row // max(window, 1), row % max(window, 1)
        first = 0
        if outer < outers and i < rows and outer_offset(args, lists, tensor, outer) >= 0:
            first = cols
        if first < physical_cols:
            at = row * pitch + first * size
            fill(shadow + at, (physical_cols - first) * size, w.PADDING)
            fill(data + at, (physical_cols - first) * size, state[w.POISON])


@kernel_code
def _load(state, args, fact, instruction):
    target, tensor, lists = args[fact[w.FACT_TARGET]], args[fact[w.FACT_TENSOR]], fact[w.FACT_LISTS]
    rows, cols = valid_size(args, lists, 2), max(valid_size(args, lists, 1), 0)
    window, outers = window_size(args, lists, 2), outer_count(args, lists)
    size, allocation = _size(target), allocation_of(state, tensor)
    packed = is_nibble(load_word(tensor + 8 * layout.TENSOR_DTYPE))
    turned = fact[w.FACT_RULE] == w.LOAD_ROWS and args[lists + 3 * args[lists] + 3] != 0
    row_step, col_step = window_step(args, lists, tensor, 2) * size, window_step(args, lists, tensor, 1) * size
    of = load_word(tensor) + window_origin(args, lists, tensor) * size
    first_row = first_col = 0
    if fact[w.FACT_RULE] == w.LOAD_ROWS:
        axes = args[fact[w.FACT_TENSOR] + 1]
        first_row = args[fact[w.FACT_TENSOR] + 2] if axes == 2 else 0
        first_col = args[fact[w.FACT_TENSOR] + 1 + axes]
        window, outers = rows, 1
    else:
        filled = window * outers >= load_word(target + 8 * layout.TILE_ROWS) and rows >= window
        if outers > 1 or not filled or cols < load_word(target + 8 * layout.TILE_COLS):
            _rest_of_load(state, target, args, lists, tensor, rows, cols, window, outers)
    if turned:
        rows, cols, row_step, col_step = cols, rows, col_step, row_step
    if allocation[w.GM_SHADOW] == 0 and outers == 1 and first_row == 0 and first_col == 0 and not packed:
        dtype, width = load_word(target + 8 * layout.TILE_DTYPE), cols * size
        looks = is_float(dtype) and state[w.ASKED] & w.PRECISION != 0
        if _pitch(target) == width and (not looks or is_finite_run(load_word(target), rows * cols, dtype)):
            fill(_shadow(state, target), rows * width, 0)
            return
    for outer in range(outers):
        offset_of = outer_offset(args, lists, tensor, outer)
        if offset_of >= 0:
            for i in range(rows):
                source = of + offset_of * size + i * row_step
                row = first_row + outer * window + i
                if packed:
                    fill(_shadow(state, target) + row * _pitch(target), cols * size, 0)
                else:
                    _load_row(
                        state,
                        args,
                        fact,
                        instruction,
                        target,
                        row,
                        first_col,
                        source,
                        col_step,
                        cols,
                        allocation,
                        tensor,
                    )


@kernel_code
def _store_row(state, args, fact, instruction, source, row, to, step, length, size, allocation, tensor):
    """Codes of one row of a store to address ``to``."""
    adds = fact[w.FACT_FLAGS] & w.ADDS != 0
    of_size = _size(source)
    of = _shadow(state, source) + row * _pitch(source)
    shadow = allocation[w.GM_SHADOW] + to - allocation[w.GM_BASE]
    if is_clean(of, length * of_size) and step == size and (not adds or is_clean(shadow, length * size)):
        if not adds:
            fill(shadow, length * size, 0)
        return
    launch = as_pointer(state[w.LAUNCH])
    for j in range(length):
        code = read_code(of + j * of_size, of_size)
        if code == w.UNWRITTEN or code == w.PADDING:
            code = _used(state, instruction, fact[w.FACT_SOURCE], code, row, j, source)
        at = shadow + j * step
        if adds:
            old = read_code(at, size)
            if old == w.UNWRITTEN:
                _added(state, fact, instruction, to + j * step - allocation[w.GM_BASE], size, tensor)
                old = 0
            code = stronger(launch, code, old)
        fill(at, size, code)


@kernel_code
def _added(state, fact, instruction, low, size, tensor):
    """An atomic addition has met memory that was never written."""
    address = new_event(
        as_pointer(state[w.LAUNCH]), w.ADDED, state[w.PROGRAM], instruction, fact[w.FACT_TENSOR], state[w.NODE],
        state[w.SEAT],
    )  # fmt: skip
    launch = as_pointer(state[w.LAUNCH])
    if address != 0:
        event = as_pointer(address)
        event[w.OR_ALLOCATION] = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
        event[w.OR_LOW], event[w.OR_HIGH] = low, low + size
        return
    for k in range(launch[w.EVENT_COUNT]):
        event = as_pointer(launch[w.EVENTS] + 8 * w.ORIGIN_WORDS * k)
        if (
            event[w.OR_KIND] == w.ADDED
            and event[w.OR_INSTRUCTION] == instruction
            and event[w.OR_PROGRAM] == state[w.PROGRAM]
        ):
            if event[w.OR_NODE] == state[w.NODE]:
                event[w.OR_LOW], event[w.OR_HIGH] = min(event[w.OR_LOW], low), max(event[w.OR_HIGH], low + size)


@kernel_code
def _store(state, args, fact, instruction):
    source, tensor, lists = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_TENSOR]], fact[w.FACT_LISTS]
    allocation = allocation_of(state, tensor)
    dtype = load_word(tensor + 8 * layout.TENSOR_DTYPE)
    if allocation[w.GM_SHADOW] == 0 or is_nibble(dtype):
        return
    size = element_bytes(dtype)
    rows, cols = valid_size(args, lists, 2), valid_size(args, lists, 1)
    window = window_size(args, lists, 2)
    row_step, col_step = window_step(args, lists, tensor, 2) * size, window_step(args, lists, tensor, 1) * size
    to = load_word(tensor) + window_origin(args, lists, tensor) * size
    for outer in range(outer_count(args, lists)):
        offset_of = outer_offset(args, lists, tensor, outer)
        if offset_of >= 0:
            for i in range(rows):
                at = to + offset_of * size + i * row_step
                _store_row(
                    state,
                    args,
                    fact,
                    instruction,
                    source,
                    outer * window + i,
                    at,
                    col_step,
                    cols,
                    size,
                    allocation,
                    tensor,
                )


@kernel_code
def _checksum(source, rows, cols):
    """A number that equal tiles share."""
    total, size = 1, _size(source)
    for i in range(rows):
        at = load_word(source) + i * _pitch(source)
        for k in range(cols * size):
            total = total * 31 + load_int8(at + k)
    return total | 1


@kernel_code
def _fetch(state, args, fact, instruction):
    """mgather: one row or element of a tensor per index."""
    target, tensor, index = args[fact[w.FACT_TARGET]], args[fact[w.FACT_TENSOR]], args[fact[w.FACT_TENSOR] + 1]
    in_tile = fact[w.FACT_SOURCES] > 0
    rows, cols = _rows(target), _cols(target)
    by_element, mode = args[fact[w.FACT_EXTRA]] == 1, args[fact[w.FACT_EXTRA] + 1]
    wide = _cols(index) if in_tile else cols
    rank = load_word(tensor + 8 * layout.TENSOR_RANK)
    axes = rank if by_element else rank - 1
    capacity, size, run = count(tensor, axes), _size(target), 1 if by_element else cols
    allocation = allocation_of(state, tensor)
    number = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    for k in range(rows * cols if by_element else rows):
        at = bounded(gather_indices(index, k, wide, in_tile), capacity, mode)
        row, col = (k // cols, k % cols) if by_element else (k, 0)
        if at < 0:
            fill(_shadow(state, target) + row * _pitch(target) + col * size, run * size, 0)
            continue
        source = load_word(tensor) + offset(tensor, at, axes) * size
        if state[w.ASKED] & w.UNDEFINED != 0:
            _load_row(state, args, fact, instruction, target, row, col, source, size, run, allocation, tensor)
        if allocation[w.GM_TRACKED] != 0 and k < w.LOG_RESERVE:
            access = begin_access(
                state, 0, number, source - allocation[w.GM_BASE], run * size, instruction, fact[w.FACT_ROOT]
            )
            end_access(state, access)


@kernel_code
def _spread(state, args, fact, instruction):
    """mscatter: one element of a tensor per index."""
    tensor, source, index = args[fact[w.FACT_TENSOR]], args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    rows, cols = _rows(source), _cols(source)
    rank, size = load_word(tensor + 8 * layout.TENSOR_RANK), _size(source)
    allocation = allocation_of(state, tensor)
    number = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    for k in range(rows * cols):
        at = load_word(tensor) + offset(tensor, gather_indices(index, k, cols, True), rank) * size
        if state[w.ASKED] & w.UNDEFINED != 0 and allocation[w.GM_SHADOW] != 0:
            code = _code(state, source, k // cols, k % cols)
            code = _used(state, instruction, fact[w.FACT_SOURCE], code, k // cols, k % cols, source)
            fill(allocation[w.GM_SHADOW] + at - allocation[w.GM_BASE], size, code)
        if allocation[w.GM_TRACKED] != 0 and k < w.LOG_RESERVE:
            access = begin_access(
                state, w.WRITES, number, at - allocation[w.GM_BASE], size, instruction, fact[w.FACT_ROOT]
            )
            end_access(state, access)


# scalar accesses


@kernel_code
def _branch(state, instruction, code, row, col, tile, tensor, address):
    """A scalar register has taken an element with ``code``."""
    launch = as_pointer(state[w.LAUNCH])
    if code == 0 or not is_undefined(launch, code):
        return
    found = new_event(launch, w.BRANCHED, state[w.PROGRAM], instruction, 0, state[w.NODE], state[w.SEAT])
    if found == 0:
        return
    event = as_pointer(found)
    event[w.OR_ROW], event[w.OR_COL], event[w.OR_VALUE] = row, col, code
    event[w.OR_ALLOCATION] = -1
    if tile != 0:
        event[w.OR_ROWS], event[w.OR_COLS] = _rows(tile), _cols(tile)
    if tensor != 0:
        event[w.OR_ALLOCATION] = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
        size = element_bytes(load_word(tensor + 8 * layout.TENSOR_DTYPE))
        event[w.OR_LOW] = address - allocation_of(state, tensor)[w.GM_BASE]
        event[w.OR_HIGH] = event[w.OR_LOW] + size


@kernel_code
def _tensor_element(state, frame, code, pc, base):
    tensor = base + 8 * code[pc + 2]
    instruction, address, size = code[pc + 3], frame[op.ARGUMENTS], frame[op.ARGUMENTS + 2]
    writes = code[pc] == op.STORE_TENSOR
    allocation = allocation_of(state, tensor)
    if state[w.ASKED] & w.UNDEFINED != 0 and allocation[w.GM_SHADOW] != 0:
        if writes:
            fill(allocation[w.GM_SHADOW] + address - allocation[w.GM_BASE], size, 0)
        else:
            _branch(state, instruction, _gm_code(state, allocation, address, size), 0, 0, 0, tensor, address)
    if allocation[w.GM_TRACKED] != 0:
        root = as_pointer(state[w.FACTS] + 8 * w.FACT_WORDS * instruction)[w.FACT_ROOT]
        kind = w.BY_SCALAR | (w.WRITES if writes else 0)
        log_element(state, tensor, address, size, kind, instruction, root)


@kernel_code
def _tile_element(state, frame, code, pc, base):
    tile = base + 8 * code[pc + 2]
    row, col = frame[code[pc + 4]], frame[code[pc + 5]]
    if state[w.ASKED] & w.UNDEFINED == 0:
        return
    if code[pc] == op.STORE_TILE:
        _copied(state, tile, row, col, 0)
    else:
        _branch(state, code[pc + 3], _code(state, tile, row, col), row, col, tile, 0, 0)


# cross-core


@kernel_code
def _pop(state, frame, code, pc, base):
    """A tile from another core: defined where it is valid (a push of undefined elements is found at the push)."""
    tile = base + 8 * code[pc + 3]
    if state[w.ASKED] & w.UNDEFINED != 0:
        rows, cols = _rows(tile), _cols(tile)
        fill_region(_shadow(state, tile), _pitch(tile), rows, cols * _size(tile), 0)
        _set_rest(state, tile, rows, cols)


@kernel_code
def _signal(state, frame, code, pc):
    """A notify or a wait that has ended; accesses on its two sides are kept apart."""
    if state[w.ASKED] & w.ORDER == 0:
        return
    state[w.FENCES] += 1
    kind = w.NOTIFIES if code[pc] == op.NOTIFY else w.WAITED
    row = begin_access(state, kind, 0, frame[op.ARGUMENTS], frame[op.ARGUMENTS + 1], code[pc + 2], -1)
    box = as_pointer(row + 8 * w.ACCESS_BOX)
    box[2], box[3] = frame[op.ARGUMENTS + 2], frame[op.ARGUMENTS + 3]
    state[w.LOG_USED] += 1
    state[w.FENCES] += 1


# one call


@kernel_code
def _follow(state, args, fact, instruction):
    rule = fact[w.FACT_RULE]
    if rule == w.LOAD or rule == w.LOAD_ROWS:
        _load(state, args, fact, instruction)
    elif rule == w.STORE:
        _store(state, args, fact, instruction)
    elif rule == w.MATMUL:
        _matmul(state, args, fact, instruction)
    elif rule == w.MOVE or rule == w.EXTRACT or rule == w.INSERT:
        _move_window(state, args, fact)
    elif rule == w.TRANSPOSE:
        if args[fact[w.FACT_SOURCE] + 1] > 1:
            _batched(state, args, fact)
        else:
            _move_window(state, args, fact)
    elif rule == w.RESHAPE:
        _batched(state, args, fact)
    elif rule == w.FILL_PAD:
        _fill_pad(state, args, fact, instruction)
    elif rule == w.CONCAT:
        _concat(state, args, fact, instruction)
    elif rule == w.WHOLE or rule == w.COMPARE:
        _whole(state, args, fact, instruction)
    elif rule == w.SCATTER:
        _scatter(state, args, fact, instruction)
    elif rule != w.NOTHING and rule != w.GATHER and rule != w.FETCH and rule != w.SPREAD:
        _elements(state, args, fact, instruction)


@kernel_code
def _call(state, frame, code, pc, base):
    instruction = code[pc + 2]
    fact = as_pointer(state[w.FACTS] + 8 * w.FACT_WORDS * instruction)
    args = as_pointer(base + 8 * op.ARGUMENTS)
    rule, asked = fact[w.FACT_RULE], state[w.ASKED]
    if asked & w.UNDEFINED != 0:
        _follow(state, args, fact, instruction)
    if rule == w.GATHER and asked & (w.BOUNDS | w.UNDEFINED) != 0:
        _gather(state, args, fact, instruction)
    elif asked & (w.UNDEFINED | w.ORDER) != 0 and rule == w.FETCH:
        _fetch(state, args, fact, instruction)
    elif asked & (w.UNDEFINED | w.ORDER) != 0 and rule == w.SPREAD:
        _spread(state, args, fact, instruction)
    elif asked & w.ORDER != 0 and fact[w.FACT_LISTS] != 0:
        tensor = args[fact[w.FACT_TENSOR]]
        if allocation_of(state, tensor)[w.GM_TRACKED] != 0:
            flags, kind, checksum = fact[w.FACT_FLAGS], 0, 0
            if flags & w.STORES != 0:
                kind = w.WRITES | (w.ATOMIC if flags & w.ADDS != 0 else 0)
                if frame[op.CORE] > 0 and state[w.LANES] > 1:
                    source, lists = args[fact[w.FACT_SOURCE]], fact[w.FACT_LISTS]
                    checksum = _checksum(source, valid_size(args, lists, 2), valid_size(args, lists, 1))
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
        _tensor_element(state, frame, code, pc, base)
    elif operation == op.LOAD_TILE or operation == op.STORE_TILE:
        _tile_element(state, frame, code, pc, base)
    elif operation >= op.PUSH and operation <= op.BARRIER:
        order_cores(state, frame, code, pc)
        if operation == op.POP:
            _pop(state, frame, code, pc, base)
    elif operation == op.NOTE:
        state[w.FENCES] += 1
    elif operation == op.NOTIFY or operation == op.SIGNAL_WAIT:
        _signal(state, frame, code, pc)
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
    sources += [here.parent / f"{name}.py" for name in ("opcodes", "layout", "crosscore", "scalars")]
    sources += [here.parent / "kernels" / f"{name}.py" for name in ("window", "gather_memory")]
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    with Progress(1) as progress:
        return load_or_compile(Kernel(f"observer.{digest}", _observe), lambda: progress.compiling("observer"))
