"""Signals that both vector lanes of a block send although one is meant (spec distributed 5.1, 5.2 D19).

A mixed task runs its vector side on both lanes, and an addition that does not depend on the lane counts twice. A wait
that needs both credits shows that two are meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pypto.sim.checks.findings import Finding

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import Event, RunOrder


def doubled_findings(order: RunOrder) -> Iterator[Finding]:
    """Additions of both lanes that no wait on their cell needs twice."""
    from pypto.sim.checks.signal_names import cell_of

    for dispatch, (_, log) in order.logs.items():
        extra: Counter[tuple[int, int]] = Counter()
        for _, cell, rank, value in log.doubled:
            extra[cell, rank] += value
        for number, cell, rank, value in log.doubled:
            place = log.places[number]
            sent = [e for e in order.notifies.get((cell, rank), ()) if e.dispatch == dispatch and e.place == place]
            if not sent or _both_are_meant(order, sent[0], extra[cell, rank]):
                continue
            message = (
                f"both vector lanes of '{place.task}' add {value} to the same cell of '{place.tensor}' on rank {rank}: "
                "the counter grows twice"
            )
            repair = (
                "let one lane tell: 'if lane == 0:' around the notify (pl.tile.get_subblock_idx() gives the lane), or "
                "let every lane have a cell of its own"
            )
            tasks, places = (place.task,), (place.location,)
            yield Finding(
                "duplicate-notify", message, place.tensor, tasks, places, *cell_of(order, sent[0]), repair,
                len(sent) // 2,
            )  # fmt: skip


def _both_are_meant(order: RunOrder, notify: Event, extra: int) -> bool:
    """Whether a wait for the cell needs more than what is left when the second lanes are silent."""
    credits = sum(int(event.words[2]) for event in order.notifies[notify.cell] if int(event.words[2]) > 0)
    needed = [int(wait.words[2]) for wait in order.waits if wait.cell == notify.cell]
    return max(needed, default=0) > credits - extra
