"""Timelines remembered by what they depend on: the recording, the chip and the state the launch starts from.

A program launched again with equal work takes equal time, so the timing engine need not run again.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.runtime.task_runtime import Sizing

if TYPE_CHECKING:
    from pypto.sim.chips import Chip
    from pypto.sim.recording import Recording
    from pypto.sim.timing import DeviceState, Timeline

CAPACITY: Final = 256


def recording_digest(recording: Recording) -> bytes:
    """Content hash of what is particular to a launch; the programs are those of its callable."""
    digest = hashlib.blake2b(digest_size=16)
    for field in dataclasses.fields(recording):
        if field.name != "programs":
            for part in _parts(getattr(recording, field.name)):
                digest.update(part)
    return digest.digest()


def _parts(value: Any) -> Iterator[bytes]:
    """The content of arrays, lists, dicts and plain values, self-delimiting."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (list, tuple)):
        yield f"[{len(value)}]".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        yield from _parts(sorted(value.items()))
    else:
        yield f"{value!r};".encode()


class TimingMemo:
    """Timelines of the most recent distinct launches on one chip."""

    def __init__(self, chip: Chip, capacity: int = CAPACITY):
        self.chip = chip
        self._capacity = capacity
        self._known: OrderedDict[tuple[str, bytes, bytes], tuple[Timeline, DeviceState]] = OrderedDict()

    def time(self, program: str, recording: Recording, state: DeviceState | None) -> tuple[Timeline, DeviceState]:
        """The timeline of ``recording`` from ``state`` (``None``: cold), and the state it leaves.

        ``program`` is the content hash of the callable that was recorded. ``state`` is not changed.
        """
        key = (program, recording_digest(recording), b"" if state is None else state.digest())
        found = self._known.pop(key, None)
        if found is None:
            from pypto.sim.timing import DeviceState, time_recording

            after = DeviceState() if state is None else state.copy()
            found = (time_recording(recording, self.chip, after), after)
            if len(self._known) >= self._capacity:
                self._known.popitem(last=False)
        self._known[key] = found
        return found


@cache
def timing_memo(chip_name: str, sizing: Sizing) -> TimingMemo:
    """The memo of the chip called ``chip_name`` with its task runtime sized so, shared by all workers."""
    from pypto.sim.chips import chip

    description = chip(chip_name)
    known = {row.name.rsplit(".", 1)[-1]: row.value for row in description.constants()}
    changed = {name: value for name, value in sizing.chip_figures().items() if known[name] != value}
    return TimingMemo(description.replace(**changed) if changed else description)
