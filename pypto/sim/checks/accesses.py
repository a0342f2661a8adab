"""The exact bytes of global memory an instruction touched, as rows of the access log."""

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS, box_extend, box_repeat, box_start
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, copy_bytes, load_word
from pypto.sim.scalars import element_bytes, is_nibble


@kernel_code
def allocation_address(state, tensor):
    """Address of the words of the allocation a tensor descriptor (by address) lies in."""
    number = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    return as_pointer(state[w.LAUNCH])[w.ALLOCATIONS] + 8 * w.ALLOCATION_WORDS * number


@kernel_code
def _snapshot(state):
    """Row of the crew's snapshots that holds the current clock."""
    if state[w.CREW_INDEX] < 0:
        return -1
    if state[w.TICK] != 0:
        crew, width = as_pointer(state[w.CREW]), 8 * state[w.CREW_SIZE]
        state[w.TICK] = 0
        state[w.SNAPSHOT] = crew[w.CREW_USED]
        crew[w.CREW_USED] += 1
        copy_bytes(crew[w.CREW_SNAPSHOTS] + state[w.SNAPSHOT] * width, state[w.CLOCK], width)
    return state[w.SNAPSHOT]


@kernel_code
def log_is_full(state):
    """Whether the next instruction may find no room for its accesses."""
    launch = as_pointer(state[w.LAUNCH])
    if launch[w.LOG_USED] > launch[w.LOG_CAPACITY] - w.LOG_RESERVE:
        return True
    if state[w.CREW_INDEX] < 0:
        return False
    crew = as_pointer(state[w.CREW])
    return crew[w.CREW_USED] > crew[w.CREW_CAPACITY] - w.SNAPSHOT_RESERVE


@kernel_code
def begin_access(state, kind, allocation, base, size, instruction, root):
    """Append a row whose box is one run; returns its address."""
    launch = as_pointer(state[w.LAUNCH])
    address = launch[w.LOG] + 8 * w.ACCESS_WORDS * launch[w.LOG_USED]
    row = as_pointer(address)
    row[w.ACCESS_KIND], row[w.ACCESS_ALLOCATION], row[w.ACCESS_INSTRUCTION] = kind, allocation, instruction
    row[w.ACCESS_SEAT], row[w.ACCESS_SNAPSHOT], row[w.ACCESS_EPOCH] = state[w.SEAT_ROW], _snapshot(state), 0
    if state[w.CREW_INDEX] >= 0:
        row[w.ACCESS_EPOCH] = load_word(state[w.CLOCK] + 8 * state[w.CREW_INDEX])
    row[w.ACCESS_ROOT], row[w.ACCESS_SUM], row[w.ACCESS_FENCES] = root, 0, state[w.FENCES]
    box_start(as_pointer(address + 8 * w.ACCESS_BOX), base, size)
    return address


@kernel_code
def end_access(state, address):
    """Keep the row, or let an earlier one take it in."""
    launch = as_pointer(state[w.LAUNCH])
    used = launch[w.LOG_USED]
    row = as_pointer(address)
    for back in range(1, min(used, 4) + 1):
        other_address = address - 8 * w.ACCESS_WORDS * back
        other = as_pointer(other_address)
        if row[w.ACCESS_SEAT] != other[w.ACCESS_SEAT]:
            break
        writes = (row[w.ACCESS_KIND] | other[w.ACCESS_KIND]) & w.WRITES != 0
        if (
            writes
            and row[w.ACCESS_ALLOCATION] == other[w.ACCESS_ALLOCATION]
            and row[w.ACCESS_ROOT] != other[w.ACCESS_ROOT]
        ):
            break  # one buffer under two names: the order of these accesses matters
        same = row[w.ACCESS_SUM] == 0 and other[w.ACCESS_SUM] == 0
        for word in range(w.ACCESS_SUM):
            same = same and row[word] == other[word]
        if same and row[w.ACCESS_FENCES] == other[w.ACCESS_FENCES]:
            a, b = as_pointer(other_address + 8 * w.ACCESS_BOX), as_pointer(address + 8 * w.ACCESS_BOX)
            equal = True
            for word in range(BOX_WORDS):
                equal = equal and a[word] == b[word]
            if equal or box_extend(a, b):
                return
    launch[w.LOG_USED] = used + 1


@kernel_code
def log_window(state, args, tensor, lists, kind, instruction, root, checksum):
    """The valid part of a window."""
    allocation = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    base = load_word(allocation_address(state, tensor) + 8 * w.GM_BASE)
    dtype = load_word(tensor + 8 * layout.TENSOR_DTYPE)
    n = args[lists]
    first = load_word(tensor + 8 * layout.TENSOR_RANK) - n
    if is_nibble(dtype):
        if args[1] > 0:
            address = begin_access(state, kind, allocation, args[0] - base, args[2], instruction, root)
            box_repeat(as_pointer(address + 8 * w.ACCESS_BOX), args[1], args[3])
            end_access(state, address)
        return
    size = element_bytes(dtype)
    origin = 0
    for k in range(n):
        if args[lists + 2 * n + 3 + k] <= 0:
            return
        origin += args[lists + 1 + k] * load_word(tensor + 8 * (layout.TENSOR_STRIDES + first + k))
    at = load_word(tensor) + origin * size - base
    address = begin_access(state, kind, allocation, at, size, instruction, root)
    box = as_pointer(address + 8 * w.ACCESS_BOX)
    done = 0
    for _ in range(n):
        best, lowest = -1, 0
        for k in range(n):
            pitch = load_word(tensor + 8 * (layout.TENSOR_STRIDES + first + k)) * size
            if done >> k & 1 == 0 and (best < 0 or pitch < lowest):
                best, lowest = k, pitch
        done |= 1 << best
        box_repeat(box, args[lists + 2 * n + 3 + best], lowest)
    as_pointer(address)[w.ACCESS_SUM] = checksum
    end_access(state, address)


@kernel_code
def log_element(state, tensor, at, size, kind, instruction, root):
    """One element at address ``at``."""
    base = load_word(allocation_address(state, tensor) + 8 * w.GM_BASE)
    allocation = load_word(tensor + 8 * layout.TENSOR_ALLOCATION)
    end_access(state, begin_access(state, kind, allocation, at - base, size, instruction, root))
