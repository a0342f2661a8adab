"""The shadow of on-chip and global memory: one code per byte that says whether the value means anything (words.py).

All functions are pieces of the observer. ``delta`` is what to add to an address to reach its shadow byte.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int8, load_int16, load_int32, load_word, store_int8, store_word

_FP32, _FP16, _BF16 = dtypes.FP32.code(), dtypes.FP16.code(), dtypes.BF16.code()


@kernel_code
def is_clean(address, size):
    """Whether ``size`` shadow bytes are all 0."""
    found = 0
    words = size >> 3
    for k in range(words):
        found |= load_word(address + 8 * k)
    for k in range(8 * words, size):
        found |= load_int8(address + k)
    return found == 0


@kernel_code
def fill(address, size, code):
    """Set ``size`` bytes."""
    word = code * 0x0101010101010101
    words = size >> 3
    for k in range(words):
        store_word(address + 8 * k, word)
    for k in range(8 * words, size):
        store_int8(address + k, code)


@kernel_code
def region_is_clean(address, pitch, rows, size):
    """:func:`is_clean` of ``rows`` runs, ``pitch`` bytes apart."""
    if pitch == size:
        return is_clean(address, rows * size)
    for i in range(rows):
        if not is_clean(address + i * pitch, size):
            return False
    return True


@kernel_code
def fill_region(address, pitch, rows, size, code):
    """:func:`fill` of ``rows`` runs, ``pitch`` bytes apart."""
    if pitch == size:
        fill(address, rows * size, code)
        return
    for i in range(rows):
        fill(address + i * pitch, size, code)


@kernel_code
def read_code(address, size):
    """Code of an element: that of its first byte that is not 0."""
    for k in range(size):
        code = load_int8(address + k) & 0xFF
        if code != 0:
            return code
    return 0


@kernel_code
def is_undefined(launch, code):
    """Whether a code says that the value means nothing (not only that it is infinite or NaN)."""
    if code < w.FIRST_ORIGIN:
        return code == w.UNWRITTEN or code == w.PADDING
    origin = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (code - w.FIRST_ORIGIN))
    return origin[w.OR_KIND] <= w.FROM_PADDING


@kernel_code
def stronger(launch, a, b):
    """The code of a value made from two: undefined before overflowed before NaN before infinite."""
    if a == 0 or a == b:
        return b
    if b == 0:
        return a
    if is_undefined(launch, a):
        return a
    if is_undefined(launch, b):
        return b
    return max(a, b)


@kernel_code
def is_float(dtype):
    """Whether infinities of this dtype are looked for."""
    return dtype == _FP32 or dtype == _FP16 or dtype == _BF16


@kernel_code
def finiteness(address, dtype):
    """0: finite, 1: infinite, 2: NaN."""
    if dtype == _FP32:
        bits = load_int32(address) & 0x7FFFFFFF
        return 0 if bits < 0x7F800000 else 1 if bits == 0x7F800000 else 2
    bits = load_int16(address) & 0x7FFF
    infinity = 0x7C00 if dtype == _FP16 else 0x7F80
    return 0 if bits < infinity else 1 if bits == infinity else 2


@kernel_code
def is_finite_run(address, count, dtype):
    """Whether ``count`` elements are finite."""
    found = 0
    if dtype == _FP32:
        for k in range(count):
            found |= 1 if load_int32(address + 4 * k) & 0x7F800000 == 0x7F800000 else 0
    else:
        infinity = 0x7C00 if dtype == _FP16 else 0x7F80
        for k in range(count):
            found |= 1 if load_int16(address + 2 * k) & infinity == infinity else 0
    return found == 0


@kernel_code
def new_origin(launch, kind, program, instruction, operand, row, col, rows, cols, node, seat):
    """Code that names this place as the one where a value lost its meaning; equal places share a code."""
    count = launch[w.ORIGIN_COUNT]
    for k in range(count):
        known = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * k)
        if (
            known[w.OR_PROGRAM] == program
            and known[w.OR_INSTRUCTION] == instruction
            and known[w.OR_KIND] == kind
            and known[w.OR_OPERAND] == operand
        ):
            return w.FIRST_ORIGIN + k
    if count >= w.ORIGIN_CAPACITY:
        return w.FIRST_ORIGIN + count - 1
    launch[w.ORIGIN_COUNT] = count + 1
    origin = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * count)
    origin[w.OR_KIND], origin[w.OR_PROGRAM], origin[w.OR_INSTRUCTION] = kind, program, instruction
    origin[w.OR_OPERAND], origin[w.OR_ROW], origin[w.OR_COL] = operand, row, col
    origin[w.OR_ROWS], origin[w.OR_COLS], origin[w.OR_NODE], origin[w.OR_SEAT] = rows, cols, node, seat
    return w.FIRST_ORIGIN + count


@kernel_code
def new_event(launch, kind, program, instruction, operand, node, seat):
    """Words of a finding to be made at once, or the words of the same one made before; 0 when there are too many."""
    count = launch[w.EVENT_COUNT]
    for k in range(count):
        known = as_pointer(launch[w.EVENTS] + 8 * w.ORIGIN_WORDS * k)
        if (
            known[w.OR_PROGRAM] == program
            and known[w.OR_INSTRUCTION] == instruction
            and known[w.OR_KIND] == kind
            and known[w.OR_OPERAND] == operand
        ):
            return 0
    if count >= w.EVENT_CAPACITY:
        return 0
    launch[w.EVENT_COUNT] = count + 1
    address = launch[w.EVENTS] + 8 * w.ORIGIN_WORDS * count
    event = as_pointer(address)
    for word in range(w.ORIGIN_WORDS):
        event[word] = 0
    event[w.OR_KIND], event[w.OR_PROGRAM], event[w.OR_INSTRUCTION] = kind, program, instruction
    event[w.OR_OPERAND], event[w.OR_NODE], event[w.OR_SEAT] = operand, node, seat
    return address
