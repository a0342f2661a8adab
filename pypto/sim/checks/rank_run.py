"""What the logs of a run on several chips say together: in order, or what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pypto.sim.checks.collectives import uneven_collectives
from pypto.sim.checks.findings import Finding
from pypto.sim.checks.rank_log import RankLog
from pypto.sim.checks.rank_order import RunOrder
from pypto.sim.checks.rank_screen import is_in_order
from pypto.sim.checks.ranks import rank_findings

_FEW: Final = 64
"""Events that are looked at as a whole at once: that is quick, and nothing has to be compiled."""


def findings_of_run(
    logs: Mapping[int, tuple[int, RankLog]],
    after: Mapping[int, Sequence[int]],
    before_run: Mapping[tuple[int, int], int],
) -> tuple[Finding, ...]:
    """Findings of one run; ``logs``: dispatch -> (rank, log) of those with events, arguments as for ``RunOrder``."""
    many = sum(len(log.events) for _, log in logs.values()) > _FEW
    if many and is_in_order(logs, after, before_run):
        return ()
    order = RunOrder(logs, after, before_run)
    return (*uneven_collectives(order), *rank_findings(order))


__all__ = ["findings_of_run"]
