"""Where values lose their meaning: the codes of results whose sources are undefined, infinite or NaN."""

from __future__ import annotations

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.tile import valid_cols, valid_rows
from pypto.sim.checks.shadow import finiteness, is_finite_run, is_float, is_undefined, new_origin, set_codes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer


@kernel_code
def name_origin(state, kind, operand, row, col, tile):
    """Code that names an element of an operand (``tile`` 0: the result) of the current instruction."""
    rows = cols = 0
    if tile != 0:
        rows, cols = valid_rows(tile), valid_cols(tile)
    return new_origin(
        as_pointer(state[w.LAUNCH]), kind, state[w.PROGRAM], state[w.INSTRUCTION], operand, row, col, rows, cols,
        state[w.NODE], state[w.SEAT],
    )  # fmt: skip


@kernel_code
def used_code(state, operand, code, row, col, tile):
    """Code of a value computed from an element with ``code``: raw ones get a name here."""
    if code == w.UNWRITTEN or code == w.PADDING:
        return name_origin(state, code, operand, row, col, tile)
    return code


@kernel_code
def settle(state, fact, code, value, dtype, row, col):
    """Code of a result at address ``value`` whose sources have ``code``."""
    launch = as_pointer(state[w.LAUNCH])
    if code != 0 and is_undefined(launch, code):
        return code
    if not is_float(dtype):
        return 0
    kind = finiteness(value, dtype)
    if kind == 0:
        return 0
    if kind == 1 and code >= w.FIRST_ORIGIN and fact[w.FACT_FLAGS] & w.EXPONENTIAL != 0:
        return w.INFINITE  # no wider format holds e to the power of what has overflowed
    if code >= w.FIRST_ORIGIN or code == w.NOT_A_NUMBER:
        return code
    if fact[w.FACT_FLAGS] & w.MAKES_CONSTANTS != 0:
        return w.INFINITE if kind == 1 else w.NOT_A_NUMBER
    if kind == 1:
        if code == w.INFINITE:
            return code
        return name_origin(state, w.OVERFLOWED, 0, row, col, 0)
    return name_origin(state, w.BECAME_NAN, 0 if code == 0 else 1, row, col, 0)


@kernel_code
def settle_run(state, fact, map_, code, data, size, dtype, row, col, count):
    """Give ``count`` results from address ``data`` on, (row, col) and to its right, the codes they have.

    The sources of all of them have ``code``. Results that are alike are settled together.
    """
    alike = code != 0 and is_undefined(as_pointer(state[w.LAUNCH]), code) or not is_float(dtype)
    if alike or is_finite_run(data, count, dtype):
        set_codes(map_, data, count * size, settle(state, fact, code, data, dtype, row, col))
        return
    k = 0
    while k < count:
        value, length = data + k * size, 1
        kind = finiteness(value, dtype)
        while k + length < count and finiteness(value + length * size, dtype) == kind:
            length += 1
        set_codes(map_, value, length * size, settle(state, fact, code, value, dtype, row, col + k))
        k += length
