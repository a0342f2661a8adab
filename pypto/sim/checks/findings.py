"""What a check found: the finding, its places, and the errors that carry findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pypto.sim.faults import (
    DeadlockError,
    DivisionByZeroError,
    ExecutionError,
    OutOfBoundsError,
)

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Location:
    """A source line; ``what`` says what happens there."""

    file: str
    line: int
    what: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" ({self.what})" if self.what else "")

    @property
    def code(self) -> str:
        """The line itself, or nothing when the file cannot be read."""
        import linecache

        return linecache.getline(self.file, self.line).strip()


@dataclass(frozen=True)
class Finding:
    """One mistake.

    ``bytes`` is the range [low, high) within the tensor or tile, ``index_ranges`` the same as one (low, high) per axis
    (of a queue or event: the tiles or sets concerned, counted from 0); ``tasks`` name the tasks in the order they were
    submitted, ``locations`` the lines in the same order.
    """

    kind: str
    message: str
    tensor: str = ""
    tasks: tuple[str, ...] = ()
    locations: tuple[Location, ...] = ()
    bytes: tuple[int, int] | None = None
    index_ranges: tuple[tuple[int, int], ...] = ()
    suggestion: str = ""
    count: int = 1

    def __str__(self) -> str:
        lines = [f"[{self.kind}] {self.message}"]
        if self.bytes is not None:
            axes = ", ".join(f"axis {axis}: {low}..{high}" for axis, (low, high) in enumerate(self.index_ranges))
            lines.append(
                f"  bytes {self.bytes[0]}..{self.bytes[1]} of '{self.tensor}'" + (f" ({axes})" if axes else "")
            )
        for location in self.locations:
            lines.append(f"  at {location}")
            if location.code:
                lines.append(f"      {location.code}")
        if self.count > 1:
            lines.append(f"  {self.count} times")
        if self.suggestion:
            lines.append(f"  to repair: {self.suggestion}")
        return "\n".join(lines)

    @property
    def byte_ranges(self) -> tuple[tuple[int, int], ...]:
        """:attr:`bytes` as a tuple of ranges, empty when the finding is about no memory."""
        return () if self.bytes is None else (self.bytes,)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


class CheckError(ExecutionError):
    """A program broke a rule that a check knows; ``findings`` says what, where and how to repair it."""

    kinds: tuple[str, ...] = ()

    def __init__(self, findings: Sequence[Finding]):
        self.findings = tuple(findings)
        shown = [str(finding) for finding in self.findings[:8]]
        if len(self.findings) > len(shown):
            shown.append(f"… and {len(self.findings) - len(shown)} more findings")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.findings,)


class OrderError(CheckError):
    """Two accesses that conflict and that nothing orders."""

    kinds = ("war", "waw", "raw", "parallel-overlap", "alias-view", "false-sharing", "coherence")


class UndefinedValueError(CheckError):
    """A value that means nothing reached the host, a branch or an address."""

    kinds = ("uninit", "out-of-valid", "unpublished")


class BoundsError(CheckError, OutOfBoundsError):
    """An index or window outside what it addresses."""

    kinds = ("bounds",)


class WaitError(CheckError, DeadlockError):
    """Cores or ranks that wait for ever."""

    kinds = ("deadlock", "starvation", "scope-deadlock")


class FifoError(CheckError):
    """A queue between cores used against its rules."""

    kinds = ("fifo",)


class DirectionError(CheckError):
    """A parameter used against its declared direction."""

    kinds = ("direction",)


class PrecisionError(CheckError):
    """Values that left the range of their dtype, or an operation the chip does differently."""

    kinds = ("precision", "overflow", "wrap")


class ShapeContractError(CheckError):
    """A tile shape the hardware cannot move or compute on."""

    kinds = ("shape-contract",)


class PlacementError(CheckError, ValueError):
    """A tensor used by a chip that does not hold it; a launch refuses it like any other wrong argument."""

    kinds = ("placement",)


class SignalError(CheckError):
    """Windows and signals between ranks used without the order they need."""

    kinds = (
        "publish-order",
        "window-race",
        "signal-reuse",
        "signal-misuse",
        "residue",
        "collective",
        "duplicate-notify",
        "deferred-wait",
    )


class ZeroDivisionFinding(CheckError, DivisionByZeroError):
    """An integer division by zero."""

    kinds = ("misuse",)


_CLASSES: Final = (
    BoundsError, WaitError, FifoError, OrderError, UndefinedValueError, DirectionError, PrecisionError,
    ShapeContractError, PlacementError, SignalError,
)  # fmt: skip


def error_of(findings: Sequence[Finding]) -> CheckError:
    """The error of the first finding's kind that carries all of them."""
    for kind in _CLASSES:
        if findings[0].kind in kind.kinds:
            return kind(findings)
    return CheckError(findings)


def to_json(findings: Iterable[Finding]) -> str:
    """A JSON list with one object per finding."""
    return json.dumps([finding.to_dict() for finding in findings], indent=1)


def table(findings: Iterable[Finding]) -> Table:
    """A rich table: kind, tensor, tasks, places, message with the repair."""
    from rich.table import Table
    from rich.text import Text

    result = Table("kind", "tensor", "tasks", "where", "what and how to repair it")
    for finding in findings:
        where = "\n".join(f"{location.file.rsplit('/', 1)[-1]}:{location.line}" for location in finding.locations)
        text = finding.message + (f"\n→ {finding.suggestion}" if finding.suggestion else "")
        cells = finding.kind, finding.tensor, "\n".join(finding.tasks), where, text
        result.add_row(*map(Text, cells))  # no markup: a list in brackets is meant
    return result
