"""Which earlier tasks a task waits for (spec language 6.4, distributed 6.3).

An input or inout argument waits for every earlier task that modified an overlapping region; an inout or
output_existing argument becomes a modification itself. A tensor made by a task (direction output) carries that task
as its owner, and every later use waits for it. Readers are not recorded, and output_existing makes no look-up: neither
write-after-read nor, for it, write-after-write is ordered.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim import layout
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer
from pypto.sim.recording import Words
from pypto.sim.scalars import element_bytes, is_nibble

# directions of an argument (docs/architecture.md 1.3)
SCALAR, INPUT, OUTPUT, OUTPUT_EXISTING, INOUT, NO_DEP = range(6)
MANUAL_TENSOR: Final = 1  # bit of TENSOR_FLAGS: created with manual_dep=True
# kinds of dependency
INFERRED, EXPLICIT, CREATOR = 0, 1, 2

# words of an entry of the tensor map, before its descriptor
_NEXT, _TASK, _LOW, _HIGH = 0, 1, 2, 3
_DESCRIPTOR: Final = 4
ENTRY_WORDS: Final = _DESCRIPTOR + layout.TENSOR_WORDS
# words of a request
(
    _FRAME,
    _ARGUMENTS,
    _COUNT,
    _TASK_ID,
    _IN_MANUAL,
    _ENTRIES,
    _HEADS,
    _OWNERS,
    _SEEN,
    _OUT,
    _FREE,
    _BASES,
    _EXPLICIT_COUNT,
) = range(13)
_REQUEST_WORDS: Final = 13


@kernel_code
def region_bytes(tensor):
    """Byte range [low, high) a descriptor can touch; empty when an extent is 0."""
    last = 0
    for axis in range(tensor[layout.TENSOR_RANK]):
        extent = tensor[layout.TENSOR_EXTENTS + axis]
        if extent == 0:
            return tensor[0], tensor[0]
        last += (extent - 1) * tensor[layout.TENSOR_STRIDES + axis]
    dtype = tensor[layout.TENSOR_DTYPE]
    size = (last >> 1) + 1 if is_nibble(dtype) else (last + 1) * element_bytes(dtype)
    return tensor[0], tensor[0] + size


@kernel_code
def _same_grid(a, b):
    """Same dtype, rank and falling strides: regions can be compared axis by axis."""
    if a[layout.TENSOR_DTYPE] != b[layout.TENSOR_DTYPE] or a[layout.TENSOR_RANK] != b[layout.TENSOR_RANK]:
        return False
    previous = np.int64(1) << 62
    for axis in range(a[layout.TENSOR_RANK]):
        stride = a[layout.TENSOR_STRIDES + axis]
        if (
            stride != b[layout.TENSOR_STRIDES + axis]
            or stride < 1
            or stride > previous
            or previous % stride != 0
            and axis > 0
        ):
            return False
        previous = stride
    return True


@kernel_code
def compare_regions(a, b, base):
    """0: disjoint, 1: overlap (or in doubt), 2: ``a`` covers ``b``. ``base``: first address of the allocation."""
    if not _same_grid(a, b):
        return 1
    dtype = a[layout.TENSOR_DTYPE]
    first, second = a[0] - base, b[0] - base
    if is_nibble(dtype):
        first, second = 2 * first, 2 * second
    else:
        first, second = first // element_bytes(dtype), second // element_bytes(dtype)
    covers = True
    pitch = np.int64(1) << 62
    result = 1
    for axis in range(a[layout.TENSOR_RANK]):
        stride = a[layout.TENSOR_STRIDES + axis]
        at, other = first // stride, second // stride
        first, second = first - at * stride, second - other * stride
        size, other_size = a[layout.TENSOR_EXTENTS + axis], b[layout.TENSOR_EXTENTS + axis]
        if (at + size) * stride > pitch or (other + other_size) * stride > pitch:
            return 1  # the window runs over the end of its row
        if at + size <= other or other + other_size <= at:
            result = 0
        covers = covers and at <= other and other + other_size <= at + size
        pitch = stride
    if first != second:
        return 1
    if result == 0:
        return 0
    return 2 if covers else 1


@kernel_code
def _dense(tensor):
    expected = 1
    for back in range(tensor[layout.TENSOR_RANK]):
        axis = tensor[layout.TENSOR_RANK] - 1 - back
        if tensor[layout.TENSOR_EXTENTS + axis] != 1 and tensor[layout.TENSOR_STRIDES + axis] != expected:
            return False
        expected *= tensor[layout.TENSOR_EXTENTS + axis]
    return True


@kernel_code
def _overlap(a, low, high, entry, base):
    """:func:`compare_regions` of descriptor ``a`` with the entry at address ``entry``."""
    words = as_pointer(entry)
    if high <= words[_LOW] or words[_HIGH] <= low:
        return 0
    result = compare_regions(a, as_pointer(entry + 8 * _DESCRIPTOR), base)
    if result == 1 and low <= words[_LOW] and words[_HIGH] <= high and _dense(a):
        return 2
    return result


@kernel_code
def _note(out, seen, count, producer, task, kind):
    """Append a producer once; returns the new count."""
    if producer < 0 or producer >= task or seen[producer] == task + 1:
        return count
    seen[producer] = task + 1
    out[2 * count], out[2 * count + 1] = producer, kind
    return count + 1


@kernel_code
def _look_up(request, tensor, removes, count):
    """Append the modifiers of an overlapping region; entries that are covered are removed if ``removes``."""
    heads, entries = as_pointer(request[_HEADS]), request[_ENTRIES]
    seen, out, task = as_pointer(request[_SEEN]), as_pointer(request[_OUT]), request[_TASK_ID]
    allocation = tensor[layout.TENSOR_ALLOCATION]
    base = as_pointer(request[_BASES])[allocation]
    low, high = region_bytes(tensor)
    if low == high:
        return count
    previous, current = np.int64(-1), heads[allocation]
    while current >= 0:
        address = entries + 8 * ENTRY_WORDS * current
        entry = as_pointer(address)
        following = entry[_NEXT]
        relation = _overlap(tensor, low, high, address, base)
        if relation != 0:
            count = _note(out, seen, count, entry[_TASK], task, INFERRED)
        if relation == 2 and removes:
            if previous < 0:
                heads[allocation] = following
            else:
                as_pointer(entries + 8 * ENTRY_WORDS * previous)[_NEXT] = following
            entry[_TASK] = -1
        else:
            previous = current
        current = following
    return count


@kernel_code
def _insert(request, tensor):
    """Record ``tensor`` as modified by the task; an empty region modifies nothing."""
    low, high = region_bytes(tensor)
    if low == high:
        return
    heads = as_pointer(request[_HEADS])
    number = request[_FREE]
    request[_FREE] = number + 1
    entry = as_pointer(request[_ENTRIES] + 8 * ENTRY_WORDS * number)
    allocation = tensor[layout.TENSOR_ALLOCATION]
    entry[_NEXT], entry[_TASK] = heads[allocation], request[_TASK_ID]
    entry[_LOW], entry[_HIGH] = low, high
    for word in range(layout.TENSOR_WORDS):
        entry[_DESCRIPTOR + word] = tensor[word]
    heads[allocation] = number


def _derive(request):
    """Producers of one task; returns their count, and the look-ups made in the upper 32 bits.

    ``request[_OUT]`` already holds ``request[_OUT_COUNT]`` explicit ones.
    """
    arguments, owners = as_pointer(request[_ARGUMENTS]), as_pointer(request[_OWNERS])
    seen, out, task = as_pointer(request[_SEEN]), as_pointer(request[_OUT]), request[_TASK_ID]
    count, lookups = 0, 0
    for index in range(request[_EXPLICIT_COUNT]):
        count = _note(out, seen, count, out[2 * index], task, EXPLICIT)
    for index in range(request[_COUNT]):
        direction, offset = arguments[2 * index], arguments[2 * index + 1]
        tensor = as_pointer(request[_FRAME] + 8 * offset)
        if direction == SCALAR or direction == OUTPUT:
            continue
        count = _note(out, seen, count, owners[tensor[layout.TENSOR_ALLOCATION]], task, CREATOR)
        tracked = request[_IN_MANUAL] == 0 and tensor[layout.TENSOR_FLAGS] & MANUAL_TENSOR == 0
        if tracked and (direction == INPUT or direction == INOUT):
            count = _look_up(request, tensor, direction == INOUT, count)
            lookups += 1
    for index in range(request[_COUNT]):
        direction, offset = arguments[2 * index], arguments[2 * index + 1]
        tensor = as_pointer(request[_FRAME] + 8 * offset)
        tracked = request[_IN_MANUAL] == 0 and tensor[layout.TENSOR_FLAGS] & MANUAL_TENSOR == 0
        if direction == OUTPUT:
            owners[tensor[layout.TENSOR_ALLOCATION]] = task
        elif tracked and (direction == INOUT or direction == OUTPUT_EXISTING):
            _insert(request, tensor)
    return count | lookups << 32


@cache
def _compiled() -> Any:
    return compiled_entry("dependencies", _derive, ("dependencies", "layout", "native", "scalars"))


class TensorMap:
    """Modifications recorded so far in one launch."""

    def __init__(self) -> None:
        self._derive = _compiled()
        self._entries = np.empty((256, ENTRY_WORDS), np.int64)
        self._heads = np.full(64, -1, np.int64)
        self._owners = np.full(64, -1, np.int64)
        self._bases = np.zeros(64, np.int64)
        self._seen = np.zeros(256, np.int64)
        self._out = np.zeros(2 * 256, np.int64)
        self._request = np.zeros(_REQUEST_WORDS, np.int64)
        self._address = self._request.ctypes.data
        self._arguments: dict[int, tuple[Words, int]] = {}
        self._point()

    @property
    def bases(self) -> Words:
        """First address of every allocation."""
        return self._bases

    def _point(self) -> None:
        request = self._request
        request[_ENTRIES], request[_HEADS] = self._entries.ctypes.data, self._heads.ctypes.data
        request[_OWNERS], request[_SEEN] = self._owners.ctypes.data, self._seen.ctypes.data
        request[_OUT], request[_BASES] = self._out.ctypes.data, self._bases.ctypes.data

    def reset(self) -> None:
        """Forget everything; the map is as new."""
        self._heads.fill(-1)
        self._owners.fill(-1)
        self._seen.fill(0)
        self._request[_FREE] = 0

    def add_allocation(self, number: int, address: int) -> None:
        """Tell the map where allocation ``number`` starts; numbers come in order."""
        if number >= len(self._heads):
            self._heads = np.concatenate((self._heads, np.full_like(self._heads, -1)))
            self._owners = np.concatenate((self._owners, np.full_like(self._owners, -1)))
            self._bases = np.concatenate((self._bases, np.zeros_like(self._bases)))
            self._point()
        self._bases[number] = address

    def derive(
        self,
        task: int,
        frame: int,
        arguments: Words,
        explicit: list[int],
        *,
        manual: bool,
    ) -> tuple[list[int], list[int], int]:
        """(producers, their kinds, look-ups made) of task number ``task``.

        ``frame`` is the address of the frame with the tensor descriptors, ``arguments`` int64[n, 2] rows (direction,
        frame offset of the descriptor), ``explicit`` task numbers stated with ``deps=`` (negative ones are ignored).
        """
        self._reserve(task, len(arguments), len(explicit))
        request, out = self._request, self._out
        if explicit:
            out[: 2 * len(explicit) : 2] = explicit
        request[_FRAME], request[_ARGUMENTS], request[_COUNT] = frame, arguments.ctypes.data, len(arguments)
        request[_TASK_ID], request[_IN_MANUAL], request[_EXPLICIT_COUNT] = task, manual, len(explicit)
        packed = self._derive(self._address)
        count = packed & 0xFFFFFFFF
        found = out[: 2 * count].tolist()
        return found[::2], found[1::2], packed >> 32

    def producers(self, task: int, frame: int, offset: int) -> list[int]:
        """Tasks before ``task`` that modified the tensor whose descriptor is at ``offset``; nothing is recorded."""
        arguments = np.array([[INPUT, offset]], np.int64)
        found = self.derive(task, frame, arguments, [], manual=False)[0]
        for producer in found:
            self._seen[producer] = 0
        return found

    def modifiers(self) -> list[int]:
        """The task of every entry: modifications that later tasks may have to wait for."""
        found = []
        for entry in self._heads[self._heads >= 0].tolist():
            while entry >= 0:
                found.append(int(self._entries[entry, _TASK]))
                entry = int(self._entries[entry, _NEXT])
        return found

    def awaitable(self, allocations: NDArray[np.bool_]) -> Words:
        """Tasks that a task with a tensor of ``allocations`` (which of the first ones) may wait for; some are -1."""
        entries = self._entries[: int(self._request[_FREE])]
        of = entries[:, _DESCRIPTOR + layout.TENSOR_ALLOCATION]
        owners: Words = self._owners[: len(allocations)][allocations]
        return np.concatenate((entries[allocations[of], _TASK], owners))

    def _reserve(self, task: int, arguments: int, explicit: int) -> None:
        changed = False
        while int(self._request[_FREE]) + arguments > len(self._entries):
            self._entries = np.concatenate((self._entries, np.empty_like(self._entries)))
            changed = True
        if task >= len(self._seen):
            self._seen = np.concatenate((self._seen, np.zeros_like(self._seen)))
            changed = True
        if 2 * (task + explicit + 1) > len(self._out):
            self._out = np.zeros(2 * max(len(self._out), task + explicit + 1), np.int64)
            changed = True
        if changed:
            self._point()
