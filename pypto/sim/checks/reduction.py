"""Leaves nodes out of an order graph without a change to what is ordered among those that are kept.

A node that nobody asks about any more matters only as a relay: it hands on the order of what is before it. A relay with
one node before it, or with the same ones as another relay, is that node or that relay. One that a single node follows
hands its own predecessors over to it. So at most about as many relays stay as there are nodes that are asked about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

NOTHING: Final = -1
_SPARE: Final = 64  # relays that are kept whatever the number of other nodes
_FEW: Final = 16  # direct predecessors among which those are left out that are before another one


@dataclass(frozen=True)
class Reduction:
    """``before``: kept nodes, rising, each with kept nodes directly before it; ``stands_for``: a kept node, or NOTHING,
    for each node that a later one may be put behind."""

    before: dict[int, set[int]]
    stands_for: dict[int, int]


def reduced(before: Sequence[Sequence[int]], asked: Collection[int], named: Iterable[int]) -> Reduction:
    """The order of the nodes ``asked``, now and when later nodes are put behind ``named`` ones.

    ``before[n]`` are nodes directly before node ``n``, all with lower numbers.
    """
    asked = frozenset(asked)
    stand_in, above = _stand_ins(before, asked)
    stands_for = {node: stand_in[node] for node in named}
    fixed = asked.union(stands_for.values())
    _drop_unneeded(above, fixed)
    _drop_relays(above, fixed, len(asked) + _SPARE)
    return Reduction(above, stands_for)


def _stand_ins(before: Sequence[Sequence[int]], asked: frozenset[int]) -> tuple[list[int], dict[int, set[int]]]:
    """(what stands for each node, the nodes that stand for some with those directly before them)."""
    stand_in: list[int] = []
    above: dict[int, set[int]] = {}
    relays: dict[frozenset[int], int] = {}
    for node, direct in enumerate(before):
        found = {stand_in[other] for other in direct}
        found.discard(NOTHING)
        if 1 < len(found) <= _FEW:
            found -= {one for one in found for other in found if one in above[other]}
        stands = node
        if node not in asked:
            if len(found) < 2:
                stands = found.pop() if found else NOTHING
            else:
                stands = relays.setdefault(frozenset(found), node)
        if stands == node:
            above[node] = found
        stand_in.append(stands)
    return stand_in, above


def _drop_unneeded(above: dict[int, set[int]], fixed: frozenset[int]) -> None:
    """Forget relays that no kept node comes after."""
    needed = set(fixed)
    for node in reversed(list(above)):
        if node in needed:
            needed |= above[node]
        else:
            del above[node]


def _drop_relays(above: dict[int, set[int]], fixed: frozenset[int], most: int) -> None:
    """Let relays hand what is before them over to what follows: where that costs nothing, and down to ``most``."""
    relays = [node for node in above if node not in fixed]
    followers: defaultdict[int, set[int]] = defaultdict(set)
    for node, direct in above.items():
        for other in direct:
            followers[other].add(node)
    for relay in reversed(relays):
        if len(followers[relay]) * len(above[relay]) <= len(followers[relay]) + len(above[relay]):
            _hand_over(relay, above, followers)
    left = sorted((n for n in relays if n in above), key=lambda n: (len(followers[n]) * len(above[n]), n))
    for relay in left[: max(0, len(left) - most)]:
        _hand_over(relay, above, followers)


def _hand_over(relay: int, above: dict[int, set[int]], followers: defaultdict[int, set[int]]) -> None:
    direct, after = above.pop(relay), followers.pop(relay)
    for node in after:
        above[node].discard(relay)
        above[node] |= direct
    for node in direct:
        followers[node].discard(relay)
        followers[node] |= after
