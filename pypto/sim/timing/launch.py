"""Play a recording on a chip: lay out the memory of the engine, price the rows, run, say why it cannot end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pypto.sim.chips import Chip
from pypto.sim.recording import EARLY_RESOLVE, SYNC_START, Recording

from . import codes as c
from . import engine
from . import words as x
from .cache import Cache, empty_cache, forget_readers
from .costs import program_costs
from .figures import PS_PER_US
from .link import link
from .tables import Played, cache_tags, lay_out

Ints = NDArray[np.int64]


def _check(recording: Recording, chip: Chip) -> None:
    """Refuse what the runtime refuses: a synchronised start of more blocks than can be on the chip (code 7)."""
    for task in np.flatnonzero(recording.task_flags & SYNC_START):
        blocks = int(recording.task_blocks[task])
        limit = chip.vector_cores if recording.task_kind[task] == 0 else chip.clusters
        if blocks > limit:
            raise ValueError(
                f"task {recording.task_name[task]!r}: sync_start needs all {blocks} blocks on the chip at once, "
                f"{chip.name} has room for {limit}"
            )


def play(
    recording: Recording, chip: Chip, cache: Cache | None, begin_ps: int, log_lines: int = 0, told: Ints | None = None
) -> Played:
    """Time a launch whose orchestrator and schedulers start at ``begin_ps``.

    ``told``, per trace row, is what other chips decide: ps at which a wait for a signal is over, ps that a transfer to
    or from another chip takes; 0 for all other rows.

    ``cache``, if given, covers the addresses of the launch and is changed in place. ``ValueError`` names a launch that
    cannot end: which tasks are left and what the orchestrator waits for.
    """
    _check(recording, chip)
    links = link(recording)
    played, f = lay_out(recording, chip, links, log_lines)
    known: dict[tuple[object, ...], NDArray[np.float64]] = {}
    costs = [program_costs(p, chip, known) for p in recording.programs]
    cycle = PS_PER_US / chip.clock_mhz
    trace = np.ascontiguousarray(recording.trace)
    prices = np.concatenate(costs) if costs else np.zeros((0, c.COST_COLUMNS))
    memo = np.full((len(prices), engine.MEMO_WORDS), -1, np.int64)
    engine.lay_out_rows(
        played.memory,
        memo,
        *links[:-2],
        trace,
        prices,
        cycle,
        chip.scalar.instruction.value * cycle,
        chip.scalar.tile_issue.value * cycle,
    )
    if told is not None:
        _tell(played.rows, told)
    if cache is None:
        cache = empty_cache(cache_tags(recording, chip))
    forget_readers(cache)
    if engine.run(played.memory, f, cache, begin_ps) == engine.STUCK:
        raise ValueError(_stuck(recording, played))
    return played


def _tell(rows: Ints, told: Ints) -> None:
    """Times that other chips decide, in the rows they belong to."""
    known = np.flatnonzero(told)
    waits = (rows[known, x.WHAT] & x.BYTE) == c.STALL
    rows[known[waits], x.UNTIL] = told[known[waits]]
    rows[known[~waits], x.WORK] = told[known[~waits]]


def _stuck(recording: Recording, played: Played) -> str:
    m = played.memory
    left = [recording.task_name[t] for t in np.flatnonzero(played.tasks[:, x.COMPLETE_AT] < 0)]
    waiting, draining = int(m[x.WAITING]), int(m[x.DRAINING])

    def name(task: int) -> str:
        return repr(recording.task_name[(task - int(m[x.TASKS])) // x.TASK_WORDS])

    reason = "the cores wait for one another"
    if waiting == x.FOR_RING:
        reason = (
            f"the orchestrator waits for a slot or heap of a task ring (window {m[x.WINDOW]} tasks, heap "
            f"{m[x.HEAP_BYTES]} bytes) that no task gives back while its scope is open"
        )
    elif draining >= 0:
        reason = f"task {name(draining)} waits for a synchronised start"
    elif waiting >= 0:
        reason = f"the orchestrator waits for task {name(waiting)}"
    return f"launch {recording.name!r} cannot end: {reason}; {len(left)} tasks left, first {', '.join(left[:3])}"


__all__ = ["EARLY_RESOLVE", "Played", "cache_tags", "play"]
