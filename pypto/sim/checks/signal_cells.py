"""The notifies of one signal cell, in the form in which the value the cell can have is looked up quickly."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

ADD: Final = 0
SET: Final = 1
NEVER_SET: Final = -(1 << 62)


@dataclass
class ChainOfNotifies:
    """Notifies that happen one after the other; sums and maxima are over the first n of them, from n = 0 on."""

    numbers: array[int] = field(default_factory=lambda: array("q"))  # of the events
    positions: array[int] = field(default_factory=lambda: array("q"))  # in the chain of all events
    gains: array[int] = field(default_factory=lambda: array("q", [0]))  # what is added
    losses: array[int] = field(default_factory=lambda: array("q", [0]))  # what is taken back, at most 0
    sets: array[int] = field(default_factory=lambda: array("q", [NEVER_SET]))  # largest value set

    def append(self, number: int, position: int, amount: int, operation: int) -> None:
        """The next notify: ``operation`` ADD or SET."""
        self.numbers.append(number)
        self.positions.append(position)
        adds = amount if operation != SET else 0
        self.gains.append(self.gains[-1] + max(adds, 0))
        self.losses.append(self.losses[-1] + min(adds, 0))
        self.sets.append(max(self.sets[-1], amount) if operation == SET else self.sets[-1])


@dataclass
class SignalCell:
    """A cell that held ``start`` when the run began; its notifies by chain."""

    start: int
    chains: dict[int, ChainOfNotifies] = field(default_factory=dict)

    def add(self, chain: int, number: int, position: int, amount: int, operation: int) -> None:
        """A notify, later in its chain than those before."""
        self.chains.setdefault(chain, ChainOfNotifies()).append(number, position, amount, operation)

    def most(self, limits: Sequence[int], before: Sequence[int]) -> int:
        """Largest value of the cell when, per chain, only the first ``limits`` notifies may have happened.

        What is taken back counts only for the first ``before`` ones, which are known to have happened.
        """
        value, largest = self.start, NEVER_SET
        for chain, limit, known in zip(self.chains.values(), limits, before):
            value += chain.gains[limit] + chain.losses[min(limit, known)]
            largest = max(largest, chain.sets[limit])
        return max(value, largest)
