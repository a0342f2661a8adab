"""``python -m pypto.validation.derivation``: the free figures of vector functions on a5, from even rows of X3 alone.

Everything else in the rule is a figure of the hardware notes. The search starts from what those say (no overlap of the
stages they list, their gap of nested loops, three operations on one port) and asks the even rows, one figure at a time,
until none moves; the odd rows are not looked at.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pypto.sim.chips import chip

from .operations import precision, single_operations
from .rows import Use

START: Final[Mapping[str, int]] = MappingProxyType({
    "vector.overlap": 0,
    "vector.restart": 7,
    "vector.widening_loop": 3,
})  # fmt: skip
"""Cycles that are free, and what the hardware notes alone would have them be (7.1)."""

_MOST = 12


def fitted_precision(figures: Mapping[str, float], use: Use = "fitted") -> float:
    """Mean of 1 - |simulated - published| / published over one half of X3, on a5 with ``figures`` changed."""
    target = chip("a5").replace(**figures)
    return precision(row for row in single_operations(a5=target, families=("X3",)) if row.use == use)


def derive(start: Mapping[str, int] = START) -> dict[str, int]:
    """The whole cycles that the even rows like best, searched from ``start`` one figure at a time."""
    best = dict(start)
    while True:
        before = dict(best)
        for name in best:
            best[name] = max(range(_MOST + 1), key=lambda cycles: fitted_precision({**best, name: cycles}))
        if best == before:
            return best


def main(report: Callable[[str], None] = print, argv: Sequence[str] = ()) -> None:
    """Print the derived figures, their neighbours, and the precision of either half."""
    argparse.ArgumentParser("python -m pypto.validation.derivation", description=main.__doc__).parse_args(argv)
    best = derive()
    for name, cycles in best.items():
        beside = (f"{at}: {fitted_precision({**best, name: at}):.4f}" for at in range(max(cycles - 1, 0), cycles + 2))
        report(f"{name} {cycles} cycles (even rows at {', '.join(beside)})")
    report(f"even rows {fitted_precision(best):.4f}, odd rows {fitted_precision(best, 'untouched'):.4f}")


__all__ = ["START", "derive", "fitted_precision", "main"]

if __name__ == "__main__":
    main(argv=sys.argv[1:])
