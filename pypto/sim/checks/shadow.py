"""The shadow of memory: one code per byte (words.py) that says whether the value there means anything.

Most blocks of 32 bytes, the unit of the transfers, hold one code. A map therefore has a flag per block: the code of all
its bytes, or ``MIXED``, and only then do the bytes of the map count. Flags of what is defined throughout are zero, so
the common case looks at one byte in 32.

``map_`` below is the address of two words: what to add to an address to reach its code, and what to add to the number
of its block (address // 32) to reach its flag.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import (
    as_pointer,
    fill_bytes,
    load_int8,
    load_int16,
    load_int32,
    load_uint8,
    load_word,
    store_int8,
)

_FP32, _FP16, _BF16 = dtypes.FP32.code(), dtypes.FP16.code(), dtypes.BF16.code()
_EXPONENTS_32: Final = 0x7F8000007F800000
_EXPONENTS_FP16: Final = 0x7C007C007C007C00
_EXPONENTS_BF16: Final = 0x7F807F807F807F80
_SIGNS_32: Final = -0x7FFFFFFF80000000  # the signs of two elements, as a signed word
_SIGNS_16: Final = -0x7FFF7FFF7FFF8000  # of four
_SHIFT: Final = 5
BLOCK: Final = 1 << _SHIFT  # bytes per flag


@kernel_code
def _is_zero(address, size):
    """Whether ``size`` bytes are all 0."""
    found = 0
    words = size >> 3
    for k in range(words):
        found |= load_word(address + 8 * k)
    for k in range(8 * words, size):
        found |= load_int8(address + k)
    return found == 0


@kernel_code
def is_defined(map_, address, size):
    """Whether ``size`` bytes of memory are defined and finite."""
    if size <= 0:
        return True
    flags, first, last = load_word(map_ + 8), address >> _SHIFT, (address + size - 1) >> _SHIFT
    if _is_zero(flags + first, last + 1 - first):
        return True
    codes = load_word(map_)
    for block in range(first, last + 1):
        flag = load_uint8(flags + block)
        if flag == w.MIXED:
            low, high = max(address, block << _SHIFT), min(address + size, (block + 1) << _SHIFT)
            if not _is_zero(codes + low, high - low):
                return False
        elif flag != 0:
            return False
    return True


@kernel_code
def _set_inside(map_, block, low, high, code):
    """Set bytes [low, high) of one block."""
    at = load_word(map_ + 8) + block
    flag = load_uint8(at)
    if flag == code:
        return
    start = load_word(map_) + (block << _SHIFT)
    if flag != w.MIXED:
        fill_bytes(start, BLOCK, flag)
    fill_bytes(load_word(map_) + low, high - low, code)
    word = code * 0x0101010101010101
    differs = 0
    for k in range(BLOCK >> 3):
        differs |= load_word(start + 8 * k) ^ word
    store_int8(at, code if differs == 0 else w.MIXED)


@kernel_code
def set_codes(map_, address, size, code):
    """Give ``size`` bytes of memory a code."""
    if size <= 0:
        return
    end = address + size
    first, last = (address + BLOCK - 1) >> _SHIFT, end >> _SHIFT  # whole blocks
    if first < last:
        fill_bytes(load_word(map_ + 8) + first, last - first, code)
    block, low = address >> _SHIFT, address
    while low < end:  # the blocks of which only a part is set: one before the whole ones, one behind them
        high = min(end, (block + 1) << _SHIFT)
        if high - low < BLOCK:
            _set_inside(map_, block, low, high, code)
        block = max(block + 1, last)
        low = block << _SHIFT


@kernel_code
def region_is_defined(map_, address, pitch, rows, size):
    """:func:`is_defined` of ``rows`` runs, ``pitch`` bytes apart."""
    if pitch == size:
        return is_defined(map_, address, rows * size)
    for i in range(rows):
        if not is_defined(map_, address + i * pitch, size):
            return False
    return True


@kernel_code
def set_region(map_, address, pitch, rows, size, code):
    """:func:`set_codes` of ``rows`` runs, ``pitch`` bytes apart."""
    if pitch == size:
        size, rows = rows * size, 1
    for i in range(rows):
        set_codes(map_, address + i * pitch, size, code)


@kernel_code
def same_run(map_, address, size):
    """Bytes from ``address`` on, at most ``size``, that have the code of the first."""
    flags, codes = load_word(map_ + 8), load_word(map_)
    code, at, end = load_uint8(flags + (address >> _SHIFT)), address, address + size
    if code == w.MIXED:
        code = load_uint8(codes + address)
    while at < end:
        flag, stop = load_uint8(flags + (at >> _SHIFT)), min(end, ((at >> _SHIFT) + 1) << _SHIFT)
        if flag == w.MIXED:
            while at < stop:
                if load_uint8(codes + at) != code:
                    return at - address
                at += 1
        elif flag != code:
            return at - address
        at = stop
    return size


@kernel_code
def code_of(map_, address, size):
    """Code of an element: that of its first byte that is not 0."""
    for k in range(size):
        code = load_uint8(load_word(map_ + 8) + ((address + k) >> _SHIFT))
        if code == w.MIXED:
            code = load_uint8(load_word(map_) + address + k)
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
    """Whether ``count`` elements are finite.

    Adding the lowest bit of the exponent to an exponent of all ones carries into the sign; that is done to all elements
    of a word at once.
    """
    exponent, sign, size = _EXPONENTS_32, _SIGNS_32, 4
    if dtype == _FP16:
        exponent, sign, size = _EXPONENTS_FP16, _SIGNS_16, 2
    elif dtype == _BF16:
        exponent, sign, size = _EXPONENTS_BF16, _SIGNS_16, 2
    lowest = exponent & ~(exponent << 1)
    found, words = 0, count * size >> 3
    for k in range(words):
        found |= (load_word(address + 8 * k) & exponent) + lowest
    for k in range(8 * words // size, count):
        if finiteness(address + size * k, dtype) != 0:
            return False
    return found & sign == 0


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
            and known[w.OR_CODES] == 0
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
def byte_of_codes(launch, codes):
    """Code for a byte of a packed predicate whose elements have ``codes``, a byte each from the lowest on."""
    whole, alike = codes & 0xFF, True
    for bit in range(1, 8):
        code = codes >> 8 * bit & 0xFF
        alike = alike and code == codes & 0xFF
        whole = stronger(launch, whole, code)
    if alike:
        return whole
    count = launch[w.ORIGIN_COUNT]
    for k in range(count):
        if as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * k)[w.OR_CODES] == codes:
            return w.FIRST_ORIGIN + k
    if count >= w.ORIGIN_CAPACITY:
        return whole
    launch[w.ORIGIN_COUNT] = count + 1
    of = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (whole - w.FIRST_ORIGIN))
    origin = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * count)
    for word in range(w.ORIGIN_WORDS):
        origin[word] = of[word]
    origin[w.OR_CODES], origin[w.OR_WHOLE] = codes, whole
    return w.FIRST_ORIGIN + count


@kernel_code
def code_of_bit(launch, code, bit):
    """Code of one element of a byte of a packed predicate that has ``code``."""
    if code < w.FIRST_ORIGIN:
        return code
    codes = as_pointer(launch[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (code - w.FIRST_ORIGIN))[w.OR_CODES]
    return code if codes == 0 else codes >> 8 * bit & 0xFF


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
