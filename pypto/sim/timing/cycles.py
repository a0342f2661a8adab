"""From the extents of one tile instruction to core cycles: the mechanisms of the hardware notes, sections 4 to 7.

Every function takes ``p``, the row of the instruction in its program's cost table (columns in ``codes.py``), and the
valid extents of the tile that measures the work. Nothing here knows a chip.
"""

from __future__ import annotations

import math

from . import codes as c
from .compiled import kernel


@kernel
def _ceil(a, b):
    return (a + b - 1) // b


@kernel
def _flat(p, rows, cols):
    """Can the tile be walked as one run of elements? A packed column is a row to the vector unit."""
    if rows == 1 or (cols == 1 and p[c.STRIDE] == 1):
        return True
    return cols == p[c.STRIDE] and (p[c.WHOLE_ROWS] == 0 or cols % int(p[c.ELEMENTS_PER_REPEAT]) == 0)


@kernel
def _repeat_elementwise(p, rows, cols):
    """a2a3: one instruction per 255 repeats; ragged row tails take a second, masked pass (6.1, 6.3)."""
    per_repeat = int(p[c.ELEMENTS_PER_REPEAT])
    ragged = 0.0
    if _flat(p, rows, cols):
        repeats = _ceil(rows * cols, per_repeat)
    else:
        repeats = rows * _ceil(cols, per_repeat)
        if cols > per_repeat or cols % per_repeat != 0:
            ragged = p[c.EXTRA]
    return _ceil(repeats, int(p[c.MAX_REPEATS])) * p[c.OVERHEAD] + repeats * p[c.SLOPE] + ragged


@kernel
def _repeat_row_reduce(p, rows, cols):
    """a2a3: fold the row's repeats into one, then one whole-repeat reduction per row (6.4).

    A masked tail is copied beside the fold and folded in, two instructions; from four repeats on the fold itself takes
    one more, as the published cycles per row say.
    """
    per_repeat = int(p[c.ELEMENTS_PER_REPEAT])
    whole, tail = cols // per_repeat, cols % per_repeat
    time = p[c.OVERHEAD] + rows * p[c.SLOPE]
    if whole == 0:
        return time + (p[c.EXTRA] if tail else 0.0)
    folds = whole - 1 + (2 if tail else 0)
    per_row = folds + (1 if whole >= 4 else 0)
    return time + folds * p[c.ROW] + rows * per_row


@kernel
def _repeat_col_reduce(p, rows, cols):
    """a2a3: a chain of one instruction per row, each waiting for the one before (6.4); a lone row is copied.

    ``ISSUE``: cycles of one more instruction per row when its last repeat is masked and not its first.
    """
    per_repeat = int(p[c.ELEMENTS_PER_REPEAT])
    repeats = _ceil(cols, per_repeat)
    if rows == 1:
        return p[c.LONE] + p[c.ROW] * repeats
    tail = p[c.ISSUE] if cols > per_repeat and cols % per_repeat else 0.0
    return p[c.EXTRA] + rows * (p[c.OVERHEAD] + tail + p[c.SLOPE] * repeats)


@kernel
def _repeat_row_expand(p, rows, cols):
    """a2a3: one duplicate per row, issued one after the other (6.4)."""
    issue = p[c.EXTRA]
    return p[c.OVERHEAD] + issue + rows * (issue + p[c.SLOPE] * _ceil(cols, int(p[c.ELEMENTS_PER_REPEAT])))


@kernel
def _repeat_row_expand_op(p, rows, cols):
    """a2a3: broadcast the column into blocks, then one instruction per column of repeats (or per row, if fewer).

    A repeat of the broadcast fills eight blocks, one per row, in ``ISSUE`` cycles.
    """
    columns = _ceil(cols, int(p[c.ELEMENTS_PER_REPEAT]))
    broadcast = p[c.EXTRA] + p[c.ISSUE] * _ceil(rows, 8)
    most = int(p[c.MAX_REPEATS])
    instructions = min(columns * _ceil(rows, most), rows * _ceil(columns, most))
    return broadcast + instructions * p[c.OVERHEAD] + rows * columns * p[c.SLOPE]


@kernel
def _repeat_blocks(p, rows, cols):
    return p[c.OVERHEAD] + p[c.SLOPE] * _ceil(rows * cols, int(p[c.ELEMENTS_PER_REPEAT]))


@kernel
def _repeat_gather(p, rows, cols):
    """a2a3: one gather per row, with the scalar multiply and the barrier of the row loop (6.1)."""
    return rows * (p[c.OVERHEAD] + p[c.EXTRA] + p[c.SLOPE] * _ceil(cols, int(p[c.ELEMENTS_PER_REPEAT])))


@kernel
def _issue_of_last(p, steps, interval):
    """a5: when the last of ``steps`` is issued that are all there from the start; every port takes one, in order."""
    ports = max(int(p[c.PORTS]), 1)
    return (steps - 1) // ports * interval + (steps - 1) % ports


@kernel
def _register_row(p, steps):
    """a5: from the dispatch of a row to that of the next. A row of one step is no loop of its own (7.1)."""
    return p[c.ISSUE] if steps == 1 else (steps - 1) * p[c.ISSUE] + max(p[c.ISSUE], p[c.ROW])


@kernel
def _register_elementwise(p, rows, cols):
    """a5: a vector function over registers (7.1): what the last step waits for, or its accesses to UB (2.2).

    ``OVERHEAD``: start, load, latency, store and drain; ``ISSUE``: dispatch of a step; ``ROW``: from the last step of a
    row to the first of the next; ``SLOPE`` and ``LOOP``: interval of a port; ``EXTRA``: cycles of a step in UB.
    """
    if _flat(p, rows, cols):
        rows, cols = 1, rows * cols
    steps = _ceil(cols, int(p[c.ELEMENTS_PER_REPEAT]))
    interval = p[c.SLOPE] if steps == 1 else p[c.LOOP]
    within = max((steps - 1) * p[c.ISSUE], _issue_of_last(p, steps, interval))
    last = max((rows - 1) * _register_row(p, steps) + within, _issue_of_last(p, rows * steps, interval))
    return max(p[c.OVERHEAD] + last, p[c.MEMORY] + rows * steps * p[c.EXTRA])


@kernel
def _register_masked(p, rows, cols):
    """a5: registers in pairs that share a load of their mask, then the odd one; no loop overlaps the one before."""
    if _flat(p, rows, cols):
        rows, cols = 1, rows * cols
    registers = _ceil(cols, int(p[c.ELEMENTS_PER_REPEAT]))
    loops = rows * (min(registers // 2, 1) + registers % 2)
    return p[c.OVERHEAD] + loops * p[c.ROW] + (rows * registers - loops) * p[c.SLOPE] + (loops - 1) * p[c.EXTRA]


@kernel
def _register_narrow(p, rows, cols):
    """a5: cast to a quarter of the width; a loop over rows of several steps makes trips through UB."""
    if _flat(p, rows, cols):
        return p[c.OVERHEAD] + (_ceil(rows * cols, int(p[c.ELEMENTS_PER_REPEAT])) - 1) * p[c.SLOPE]
    steps = _ceil(cols, int(p[c.EXTRA]))
    if steps == 1:
        return p[c.OVERHEAD] + (rows - 1) * p[c.SLOPE]
    return p[c.ISSUE] + rows * (2 * steps + 1) * p[c.ROW]


@kernel
def _register_reduce(p, rows, cols):
    """a5: loads and folds of a row overlap the reduction of the row before; accumulators stay in registers.

    ``LOOP``: until the accumulator of the row before is there; rows that reduce to themselves wait for none.
    """
    registers = _ceil(cols, int(p[c.ELEMENTS_PER_REPEAT]))
    return p[c.OVERHEAD] + (rows - 1) * max(_register_row(p, registers), registers * p[c.SLOPE], p[c.LOOP])


@kernel
def _odd_part(x):
    while x > 1 and x % 2 == 0:
        x //= 2
    return x


@kernel
def drain_cycles(p, rows, cols):
    """Accumulator to global memory (4.2): a row costs its bytes, and more when its blocks have an odd factor."""
    row_bytes = cols * p[c.ELEMENT_BITS] / 8
    blocks = int(math.ceil(row_bytes / 32))
    return p[c.OVERHEAD] + rows * (max(p[c.ROW], row_bytes / p[c.RATE]) + p[c.EXTRA] * (_odd_part(blocks) - 1))


@kernel
def _cube(p, m, k, n):
    """Steps of 16 x 16 x kf multiply-accumulates (5.1); the engine adds the head."""
    return _ceil(m, 16) * _ceil(n, 16) * _ceil(k, int(p[c.ELEMENTS_PER_REPEAT])) * p[c.SLOPE]


@kernel
def _fractal_bytes(p, rows, cols):
    """Bytes of a tile in fractals of 16 rows by 32 bytes (2.3)."""
    return _ceil(rows, 16) * 16 * _ceil(int(cols * p[c.ELEMENT_BITS]), 256) * 32


@kernel
def _rows_charged(p, bursts, pitch):
    """Rows that cost a line of their own (3.2, 3.3): rows closer together than a line share it.

    ``RATE``: bytes of a line, 0 on the path that converts to fractals, which handles every row by itself.
    """
    line = int(p[c.RATE])
    if line > 0 and 0 < pitch < line:
        return _ceil(bursts * pitch, line)
    return bursts


@kernel
def cycles(p, rows, cols, second, third, fourth):
    """Core cycles the instruction takes on its pipe; transfers: the least time, whatever the memory does."""
    rule = int(p[c.RULE])
    if rule == c.CUBE:
        return _cube(p, second, third, fourth)
    if rule == c.DMA:
        return max(p[c.ISSUE], _rows_charged(p, second, fourth) * p[c.ROW])
    if rule == c.FIXED:
        return p[c.OVERHEAD]
    if rows <= 0 or cols <= 0:
        return 0.0
    if rule == c.REPEAT_ELEMENTWISE:
        return _repeat_elementwise(p, rows, cols)
    if rule == c.REGISTER_ELEMENTWISE:
        return _register_elementwise(p, rows, cols)
    if rule == c.BYTES:
        return p[c.OVERHEAD] + _fractal_bytes(p, rows, cols) / p[c.RATE]
    if rule == c.ELEMENTS:
        return p[c.OVERHEAD] + rows * cols / p[c.RATE]
    if rule == c.DRAIN:
        return drain_cycles(p, rows, cols)
    if rule == c.REPEAT_ROW_REDUCE:
        return _repeat_row_reduce(p, rows, cols)
    if rule == c.REPEAT_COL_REDUCE:
        return _repeat_col_reduce(p, rows, cols)
    if rule == c.REPEAT_ROW_EXPAND:
        return _repeat_row_expand(p, rows, cols)
    if rule == c.REPEAT_ROW_EXPAND_OP:
        return _repeat_row_expand_op(p, rows, cols)
    if rule == c.REPEAT_GATHER:
        return _repeat_gather(p, rows, cols)
    if rule == c.REPEAT_SORT or rule == c.REPEAT_BLOCKS or rule == c.REGISTER_SORT or rule == c.REGISTER_GATHER:
        return _repeat_blocks(p, rows, cols)
    if rule == c.SCALAR_ELEMENTS:
        return rows * cols * p[c.SLOPE]
    if rule == c.REGISTER_MASKED:
        return _register_masked(p, rows, cols)
    if rule == c.REGISTER_NARROW:
        return _register_narrow(p, rows, cols)
    if rule == c.REGISTER_ROW_REDUCE or rule == c.REGISTER_COL_REDUCE:
        return _register_reduce(p, rows, cols)
    return p[c.OVERHEAD]
