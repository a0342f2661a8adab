"""Would the other half of the rows have given the same constants? Each half of X1 and X3 is fitted by itself.

A group of constants that belong together is scaled by one factor; the factor that a half of the rows likes best says
how far the constants in use are from what that half alone would have asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pypto.sim.chips import Chip, chip

from .operations import single_operations
from .rows import Use

_FACTORS = tuple(0.5 + 0.05 * step for step in range(21))


@dataclass(frozen=True)
class Group:
    """Constants of one mechanism, and the operations whose rows see it."""

    name: str
    family: str
    constants: tuple[str, ...]
    operations: tuple[str, ...]


def _ends(*operations: str) -> tuple[str, ...]:
    return tuple(f"vector.ops.{name}.{part}" for name in operations for part in ("head", "tail"))


GROUPS = (
    Group("integer forms", "X1", _ends("adds_int", "muls_int", "maxs_int", "max_int"), ("TADDS", "TMULS", "TMINS")),
    Group("float head and tail", "X1", _ends("add", "mul", "adds", "muls", "maxs", "exp", "div", "copy"),
          ("TADD", "TMUL", "TSUB", "TADDS", "TMULS", "TMINS", "TEXP", "TDIV", "TDIVS")),
    Group("whole-repeat reduction", "X1", ("vector.ops.cadd.slope", "vector.ops.cmax.slope"), ("TROWMAX", "TROWSUM")),
    Group("lone row", "X1", ("vector.lone_row",), ("TCOLMAX", "TCOLSUM")),
    Group("start and end", "X3", ("vector.startup", "vector.drain"), ()),
    Group("accesses to UB", "X3", ("vector.accesses",), ("TADD", "TSUB", "TMUL")),
    Group("restart of a row", "X3", ("vector.restart",), ()),
    Group("bytes to 32 bits", "X3", ("vector.widening_loop",), ("TCVT",)),
    Group("long operations", "X3", ("vector.ops.exp.interval", "vector.ops.sqrt.interval", "vector.ops.div.interval"),
          ("TEXP", "TSQRT", "TDIVS", "TRECIP")),
)  # fmt: skip


def best_factor(group: Group, use: Use) -> float:
    """The factor on the constants of ``group`` with the least mean error over the rows of one half.

    Of factors that are equally good the one closest to 1 is returned.
    """
    base = chip("a2a3" if group.family == "X1" else "a5")
    known = {row.name: row.value for row in base.constants()}

    def scaled(factor: float) -> Chip:
        return base.replace(**{name: known[name] * factor for name in group.constants})

    errors = [(_error(scaled(factor), group, use), abs(factor - 1), factor) for factor in _FACTORS]
    return min((round(error, 6), distance, factor) for error, distance, factor in errors)[2]


def _error(target: Chip, group: Group, use: Use) -> float:
    rows = single_operations(**{target.generation: target}, families=(group.family,), operations=group.operations)
    return _mean(row.error for row in rows if row.use == use and row.error is not None)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def factors(report: Callable[[str], None] = print) -> dict[str, tuple[float, float]]:
    """Per group: what the even rows and what the odd rows ask for."""
    found = {}
    for group in GROUPS:
        found[group.name] = best_factor(group, "fitted"), best_factor(group, "untouched")
        report(f"{group.family} {group.name}: {found[group.name][0]:.2f} and {found[group.name][1]:.2f}")
    return found


__all__ = ["GROUPS", "Group", "best_factor", "factors"]
