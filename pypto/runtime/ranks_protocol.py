"""What the parent and a rank say to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
QUARTERS: Final = 4


def _no_rows() -> Words:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class TensorWords:
    """A tensor of a dispatch: host or device address, ``context`` of a window (0: none).

    ``device``: where the chip of the rank has it, 0 for a tensor that the launch brings along.
    """

    address: int
    shape: tuple[int, ...]
    dtype: int  # dtype code
    resident: bool
    context: int = 0
    device: int = 0


@dataclass(frozen=True)
class Dispatch:
    """One chip program to run: ``number`` within the run, ``index`` among the dispatches of its rank.

    ``behind``: chip address behind all buffers of the rank; ``fresh``: (address, bytes) of what was allocated on it
    since its last dispatch (:class:`pypto.runtime.address_space.AddressSpace`).
    """

    number: int
    index: int
    program: int
    arguments: tuple[TensorWords | int | float, ...]
    config: Any
    run: int
    place: str
    behind: int
    fresh: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Signals:
    """What a dispatch told other ranks and waited for, by trace row, in program order."""

    notify_row: Words = field(default_factory=_no_rows)
    notify_cell: Words = field(default_factory=_no_rows)
    notify_rank: Words = field(default_factory=_no_rows)
    notify_value: Words = field(default_factory=_no_rows)
    notify_sets: Words = field(default_factory=_no_rows)
    wait_row: Words = field(default_factory=_no_rows)
    wait_cell: Words = field(default_factory=_no_rows)
    wait_expected: Words = field(default_factory=_no_rows)
    wait_comparison: Words = field(default_factory=_no_rows)
    order: Words = field(default_factory=_no_rows)
    """Notifies (their position) and waits (-1 - their position) as they ran."""
    notify_chain: Words = field(default_factory=_no_rows)
    wait_chain: Words = field(default_factory=_no_rows)
    """Notifies and waits of one chain (a core's task) follow each other."""
    remote_row: Words = field(default_factory=_no_rows)
    remote_peer: Words = field(default_factory=_no_rows)
    remote_bytes: Words = field(default_factory=_no_rows)
    remote_writes: Words = field(default_factory=_no_rows)
    remote_chain: Words = field(default_factory=_no_rows)
    """Transfers of one chain (a pipe of a core's task) follow each other."""


@dataclass(frozen=True)
class Done:
    """A dispatch has run; with a device clock: what its timing needs."""

    number: int
    digest: bytes = b""
    before_ns: int = 0
    after_ns: int = 0
    signals: Signals | None = None
    finished_ns: int = 0
    findings: tuple[Any, ...] = ()
    rank_log: Any = None


@dataclass(frozen=True)
class Failed:
    """A dispatch raised."""

    number: int
    kind: str
    text: str
    trace: str
    findings: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Abandoned:
    """A dispatch was given up because the run failed elsewhere."""

    number: int


@dataclass(frozen=True)
class Blocked:
    """A dispatch waits: (address, expected, comparison) per block, what to say about each, and the name of its cell."""

    number: int
    asleep: int
    waits: tuple[tuple[int, int, int], ...]
    texts: tuple[str, ...]
    cells: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recall:
    """Say what your dispatches of this run have told other ranks."""

    run: int


@dataclass(frozen=True)
class Recalled:
    """What a rank has told others (:class:`pypto.sim.told_signals.Told`); (signal, place) where it would tell more."""

    told: tuple[Any, ...] = ()
    ahead: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TimeIt:
    """Time dispatches of the run: per dispatch, when its waits end and how long its remote transfers take (ps)."""

    dispatches: tuple[int, ...]
    until: tuple[Words, ...]
    work: tuple[Words, ...]


@dataclass(frozen=True)
class Timed:
    """Per dispatch: device wall (ns); starts and ends of what concerns other ranks, in ps from its start."""

    walls_ns: tuple[int, ...]
    notify_end: tuple[Words, ...]
    remote_start: tuple[Words, ...]
    remote_end: tuple[Words, ...]
    cubes: tuple[Words, ...]
    """[n, 2] (ps, share of the cubes at work from then on, in quarters)."""
    wait_start: tuple[Words, ...]
    wait_end: tuple[Words, ...]
    chain_start: tuple[Words, ...]
    """Per subtask, as the chains of ``Signals`` are numbered."""


@dataclass(frozen=True)
class Finish:
    """Write the markers of these dispatches, whose launches start at these times; ``answers``: say when it is done."""

    dispatches: tuple[int, ...]
    start_ns: tuple[int, ...]
    answers: bool = False


@dataclass(frozen=True)
class Explain:
    """Say what the time of these dispatches, as timed last, went on."""

    dispatches: tuple[int, ...]


@dataclass(frozen=True)
class Explained:
    """Per dispatch its explanation (:class:`pypto.sim.Explanation`)."""

    explanations: tuple[Any, ...]
