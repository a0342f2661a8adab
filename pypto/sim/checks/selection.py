"""Which checks a run makes: ``RunConfig(checks=…)`` in the checker's own terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple

from pypto.sim.checks import forced
from pypto.sim.checks import words as w

Kind = Literal[
    "war", "waw", "raw", "parallel-overlap", "alias-view", "false-sharing", "coherence",
    "uninit", "out-of-valid", "direction", "precision",
    "bounds", "deadlock", "fifo", "misuse", "shape-contract", "placement",
    "publish-order", "window-race", "signal-reuse", "signal-misuse", "residue", "collective",
    "starvation", "scope-deadlock", "duplicate-notify", "deferred-wait",
    "overflow", "wrap", "unpublished",
]  # fmt: skip
KINDS: Final[tuple[str, ...]] = Kind.__args__  # type: ignore[attr-defined]
CHEAP: Final = frozenset(("bounds", "deadlock", "starvation", "scope-deadlock", "fifo", "misuse", "placement"))
ON_REQUEST: Final = frozenset(("overflow", "wrap", "unpublished"))
_ORDER: Final = frozenset(
    ("war", "waw", "raw", "parallel-overlap", "alias-view", "false-sharing", "coherence", "direction")
)
_RANKS: Final = frozenset(
    (
        "publish-order", "window-race", "signal-reuse", "signal-misuse", "residue", "collective", "duplicate-notify",
        "deferred-wait",
    )
)  # fmt: skip
_VALUES: Final = frozenset(("uninit", "out-of-valid", "precision", "overflow", "wrap", "unpublished"))
_NAMED: Final = {"none": frozenset[str](), "cheap": CHEAP, "all": frozenset(KINDS) - ON_REQUEST}
POISON_BYTES: Final = {"nan": 0xFF, "pattern": 0xA5, "zero": 0}


class Rings(NamedTuple):
    """What the task runtime of a launch can hold: tasks and bytes of heap per ring (spec distributed 6.2)."""

    window: tuple[int, ...]
    heap: tuple[int, ...]
    schedulers: int


@dataclass(frozen=True)
class Checks:
    """Kinds that are looked for, whether a finding raises, and the byte that undefined memory holds.

    Without ``whole_outputs`` a launch may leave out part of an output (but not all of it). With ``follows_values``
    blocks are observed although none of the kinds needs it.
    """

    kinds: frozenset[str]
    mode: Literal["raise", "collect"] = "raise"
    poison: Literal["nan", "pattern", "zero"] = "nan"
    whole_outputs: bool = True
    rings: Rings | None = None
    follows_values: bool = False

    @classmethod
    def of(
        cls,
        asked: str | frozenset[str] | None,
        mode: Literal["raise", "collect"] = "raise",
        poison: Literal["nan", "pattern", "zero"] = "nan",
        *,
        clocked: bool = True,
    ) -> Checks:
        """``asked`` as in ``RunConfig``; ``None`` is ``"cheap"`` on a platform with a clock. ``ValueError`` for others.

        What is forced from outside (forced.py) takes the place of a choice that was not made.
        """
        outside, whole = forced.asked(), True
        if outside is not None and asked is None:
            asked, mode = outside[0], outside[1]  # type: ignore[assignment]
            whole = forced.whole_outputs()
        if asked is None:
            asked = "cheap" if clocked else "none"
        if isinstance(asked, str):
            if asked not in _NAMED:
                raise ValueError(f"checks must be 'none', 'cheap', 'all' or a set of kinds, got {asked!r}")
            return cls(_NAMED[asked], mode, poison, whole)
        unknown = sorted(set(asked) - set(KINDS))
        if unknown:
            raise ValueError(f"unknown kind of check {unknown[0]!r}; known: {', '.join(KINDS)}")
        return cls(frozenset(asked), mode, poison, whole)

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @property
    def asked(self) -> int:
        """Bits for the observer; 0 when no block needs to be observed."""
        return _bits(self.kinds) | (w.UNDEFINED if self.follows_values else 0)

    @property
    def deep(self) -> bool:
        """Whether blocks are observed."""
        return self.asked & (w.ORDER | w.UNDEFINED) != 0

    @property
    def poison_byte(self) -> int:
        return POISON_BYTES[self.poison]


@cache
def _bits(kinds: frozenset[str]) -> int:
    bits = w.ORDER if kinds & (_ORDER | _RANKS) else 0
    if kinds & _VALUES or "fifo" in kinds and kinds != CHEAP:
        bits |= w.UNDEFINED
    if kinds & {"precision", "overflow"}:
        bits |= w.PRECISION
    if "bounds" in kinds:
        bits |= w.BOUNDS
    if "wrap" in kinds:
        bits |= w.WRAP
    return bits


NONE: Final = Checks(frozenset())
