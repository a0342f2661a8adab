"""Rules of windows between global memory and tiles."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_of
from pypto.sim.checks.rules.origins import name_origin, settle, used_code
from pypto.sim.checks.rules.tile import element_size, row_pitch, shadow_of
from pypto.sim.checks.shadow import fill, is_clean, is_finite_run, is_float, new_event, read_code, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.window import outer_count, outer_offset, valid_size, window_origin, window_size, window_step
from pypto.sim.native import as_pointer, load_int8, load_word
from pypto.sim.scalars import element_bytes, is_nibble


@kernel_code
def memory_code(state, allocation, address, size):
    """Shadow code of bytes in global memory."""
    if allocation[w.GM_SHADOW] == 0:
        return 0
    return read_code(allocation[w.GM_SHADOW] + address - allocation[w.GM_BASE], size)


@kernel_code
def _taken(state, instruction, fact, code, allocation, address, tensor):
    """Code that a loaded element keeps; what nobody has written is named here, where its tensor is known."""
    if code != w.UNWRITTEN:
        return code
    result = name_origin(state, w.FROM_UNWRITTEN, instruction, fact[w.FACT_TENSOR], 0, 0, 0)
    origin = as_pointer(as_pointer(state[w.LAUNCH])[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (result - w.FIRST_ORIGIN))
    if origin[w.OR_HIGH] == 0:
        origin[w.OR_ALLOCATION] = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
        origin[w.OR_LOW] = address - allocation[w.GM_BASE]
    origin[w.OR_HIGH] = max(origin[w.OR_HIGH], address - allocation[w.GM_BASE] + 1)
    return result


@kernel_code
def follow_load_row(state, args, fact, instruction, target, row, col, source, step, length, allocation, tensor):
    """Codes of one row of a load: ``length`` elements, ``step`` bytes apart from address ``source``."""
    size, dtype = element_size(target), load_word(target + 8 * layout.TILE_DTYPE)
    at = row * row_pitch(target) + col * size
    shadow, data = shadow_of(state, target) + at, load_word(target) + at
    finite = state[w.ASKED] & w.PRECISION == 0 or not is_float(dtype) or is_finite_run(data, length, dtype)
    defined = allocation[w.GM_SHADOW] == 0
    if not defined and step == size:
        defined = is_clean(allocation[w.GM_SHADOW] + source - allocation[w.GM_BASE], length * size)
    if defined and finite:
        fill(shadow, length * size, 0)
        return
    for j in range(length):
        code = 0 if defined else memory_code(state, allocation, source + j * step, size)
        code = _taken(state, instruction, fact, code, allocation, source + j * step, tensor)
        if code == 0:
            code = settle(state, fact, instruction, 0, data + j * size, dtype, row, j)
        fill(shadow + j * size, size, code)


@kernel_code
def _rest_of_load(state, target, args, lists, tensor, rows, cols, window, outers):
    """Everything of the tile that the window does not fill is padding."""
    physical_rows, physical_cols = load_word(target + 8 * layout.TILE_ROWS), load_word(target + 8 * layout.TILE_COLS)
    size, pitch, shadow, data = element_size(target), row_pitch(target), shadow_of(state, target), load_word(target)
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
def follow_load(state, args, fact, instruction):
    target, tensor, lists = args[fact[w.FACT_TARGET]], args[fact[w.FACT_TENSOR]], fact[w.FACT_LISTS]
    rows, cols = valid_size(args, lists, 2), max(valid_size(args, lists, 1), 0)
    window, outers = window_size(args, lists, 2), outer_count(args, lists)
    size, allocation = element_size(target), allocation_of(state, tensor)
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
        if row_pitch(target) == width and (not looks or is_finite_run(load_word(target), rows * cols, dtype)):
            fill(shadow_of(state, target), rows * width, 0)
            return
    for outer in range(outers):
        offset_of = outer_offset(args, lists, tensor, outer)
        if offset_of >= 0:
            for i in range(rows):
                source = of + offset_of * size + i * row_step
                row = first_row + outer * window + i
                if packed:
                    fill(shadow_of(state, target) + row * row_pitch(target), cols * size, 0)
                else:
                    follow_load_row(
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
    of_size = element_size(source)
    of = shadow_of(state, source) + row * row_pitch(source)
    shadow = allocation[w.GM_SHADOW] + to - allocation[w.GM_BASE]
    if is_clean(of, length * of_size) and step == size and (not adds or is_clean(shadow, length * size)):
        if not adds:
            fill(shadow, length * size, 0)
        return
    launch = as_pointer(state[w.LAUNCH])
    for j in range(length):
        code = read_code(of + j * of_size, of_size)
        if code == w.UNWRITTEN or code == w.PADDING:
            code = used_code(state, instruction, fact[w.FACT_SOURCE], code, row, j, source)
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
def follow_store(state, args, fact, instruction):
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
def tile_checksum(source, rows, cols):
    """A number that equal tiles share."""
    total, size = 1, element_size(source)
    for i in range(rows):
        at = load_word(source) + i * row_pitch(source)
        for k in range(cols * size):
            total = total * 31 + load_int8(at + k)
    return total | 1
