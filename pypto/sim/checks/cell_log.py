"""The elements that one gather or scatter touches, gathered into few rows of the access log: boxes of cells."""

from __future__ import annotations

from typing import Final

from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import begin_access, end_access
from pypto.sim.checks.boxes import box_start
from pypto.sim.checks.cells import BASE, CELLS, cells_add, cells_base, cells_end, cells_low, cells_start, is_one_run
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, copy_bytes, load_word, store_word

_SLOTS: Final = 1024  # rows of an instruction that can be found again, by the place of their block


@kernel_code
def log_cell(state, begun, kind, allocation, at, size, instruction, root):
    """An element of ``size`` bytes at byte ``at``; the rows of its instruction begin with number ``begun``.

    What a slot holds is believed only if the row it names is one of the instruction and of the same block of memory.
    """
    launch = as_pointer(state[w.LAUNCH])
    base, used = cells_base(at, size), launch[w.LOG_USED]
    slot = state[w.SCRATCH] + 8 * (at // size // CELLS & _SLOTS - 1)
    number = load_word(slot)
    if number >= begun and number < used:
        box = as_pointer(launch[w.LOG] + 8 * (w.ACCESS_WORDS * number + w.ACCESS_BOX))
        if box[BASE] == base:
            cells_add(box, at)
            return
    store_word(slot, used)
    row = begin_access(state, kind, allocation, base, size, instruction, root)
    box = as_pointer(row + 8 * w.ACCESS_BOX)
    cells_start(box, base, size)
    cells_add(box, at)
    launch[w.LOG_USED] = used + 1


@kernel_code
def end_cells(state, begun):
    """Nothing more comes of the instruction whose rows begin with number ``begun``: cells side by side become runs."""
    launch = as_pointer(state[w.LAUNCH])
    used = launch[w.LOG_USED]
    launch[w.LOG_USED] = begun
    for number in range(begun, used):
        row = launch[w.LOG] + 8 * w.ACCESS_WORDS * launch[w.LOG_USED]
        if number != launch[w.LOG_USED]:
            copy_bytes(row, launch[w.LOG] + 8 * w.ACCESS_WORDS * number, 8 * w.ACCESS_WORDS)
        box = as_pointer(row + 8 * w.ACCESS_BOX)
        if is_one_run(box):
            low = cells_low(box)
            box_start(box, low, cells_end(box) - low)
        end_access(state, row)
