"""The span table: every record of a log as columns, with what was lost on the way (data, no rendering)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto.perf.names import GENERATIONS, RunNames, names_in
from pypto.perf.span import TraceSpan

if TYPE_CHECKING:
    import pandas as pd


class AttrTexts(Sequence[str]):
    """Raw attribute texts by code, decoded when asked for: a log may hold one per span."""

    def __init__(self, raw: Sequence[bytes]) -> None:
        self._raw = raw

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, code: Any) -> Any:
        return self._raw[code].replace(b"\x1b", b"").decode("utf-8", "replace")


@dataclass(frozen=True)
class ClockAnchor:
    """A point where a process's monotonic clock is known in Unix time (``profiling.md`` 1.2); all in ns."""

    pid: int
    mono_ns: int
    wall_ns: int
    row: int = 0
    """Number of spans that stand before the anchor in the log."""

    def wall_at(self, ts_ns: int) -> int | None:
        """Unix time of a host timestamp of this process; None before the anchor."""
        return self.wall_ns + ts_ns - self.mono_ns if ts_ns >= self.mono_ns else None


@dataclass(frozen=True)
class Sentinel:
    """A two-pass sentinel of the front end (1.11); ``kind`` is None when the text after the prefix is unknown."""

    kind: str | None
    event: str | None
    row: int


@dataclass(eq=False)
class SpanTable:
    """Spans of one log in line order, columnar (``profiling.md`` 1.3, 1.5).

    ``pid``, ``tid``, ``ts`` and ``dur`` are int64 (ns), ``inv`` uint64, ``depth`` int32; ``name``, ``hid`` and
    ``attrs`` are int32 codes into ``names``, ``hids`` and ``attr_texts``; ``is_device`` (bool) marks the device clock,
    whose origin is the invocation's own (1.9). ``incarnation`` (int32) counts the processes
    that one pid stood for, from 0. ``heads == parsed + torn + skipped`` holds for every input.
    """

    pid: np.ndarray
    tid: np.ndarray
    inv: np.ndarray
    hid: np.ndarray
    depth: np.ndarray
    name: np.ndarray
    ts: np.ndarray
    dur: np.ndarray
    attrs: np.ndarray
    is_device: np.ndarray
    incarnation: np.ndarray
    names: list[str]
    hids: list[str]
    attr_texts: Sequence[str]
    heads: int = 0
    torn: int = 0
    skipped: int = 0
    anchors: list[ClockAnchor] = field(default_factory=list)
    sentinels: list[Sentinel] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def parsed(self) -> int:
        """Number of records that became spans."""
        return len(self.pid)

    def __len__(self) -> int:
        return len(self.pid)

    @property
    def end(self) -> np.ndarray:
        """int64 ns: ``ts + dur`` on the span's own clock."""
        return self.ts + self.dur

    def end_at(self, row: int) -> int:
        """ns: end of one span on its own clock."""
        return int(self.ts[row]) + int(self.dur[row])

    @cached_property
    def run_names(self) -> RunNames:
        """The newest generation of span names that the log speaks."""
        return names_in(set(self.names))

    @cached_property
    def speaks_one_generation(self) -> bool:
        """Whether run roots of at most one generation occur."""
        return sum(words.run in self.names for words in GENERATIONS) <= 1

    def span(self, row: int) -> TraceSpan:
        """One span as an object."""
        return TraceSpan(
            int(self.pid[row]),
            int(self.tid[row]),
            int(self.inv[row]),
            self.hids[self.hid[row]],
            int(self.depth[row]),
            self.names[self.name[row]],
            int(self.ts[row]),
            int(self.dur[row]),
            self.attr_texts[self.attrs[row]],
        )

    def spans(self, rows: Iterable[int] | None = None) -> list[TraceSpan]:
        """The given rows (default: all, in line order) as objects."""
        return [self.span(row) for row in (range(len(self)) if rows is None else rows)]

    def name_code(self, name: str) -> int:
        """Code of a span name, -1 when it does not occur."""
        return self._name_codes.get(name, -1)

    @cached_property
    def _name_codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.names)}

    def anchor_of(self, pid: int, row: int | None = None) -> ClockAnchor | None:
        """The anchor of the process behind a span's row, or the last one of a pid; None without any."""
        if row is None:
            return next((anchor for anchor in reversed(self.anchors) if anchor.pid == pid), None)
        return self._anchor_by_process.get((pid, int(self.incarnation[row])))

    @cached_property
    def _anchor_by_process(self) -> dict[tuple[int, int], ClockAnchor]:
        """Anchors by (pid, incarnation); the last one of a process wins."""
        found: dict[tuple[int, int], ClockAnchor] = {}
        for anchor in self.anchors:
            rows = np.flatnonzero(self.pid == anchor.pid)
            later = rows[rows >= anchor.row]
            if len(rows):
                found[anchor.pid, int(self.incarnation[later[0] if len(later) else rows[-1]])] = anchor
        return found

    def select(self, rows: np.ndarray) -> SpanTable:
        """The given rows as a table of their own; tallies and warnings stay those of the whole log."""
        columns = ("pid", "tid", "inv", "hid", "depth", "name", "ts", "dur", "attrs", "is_device", "incarnation")
        return replace(self, **{column: getattr(self, column)[rows] for column in columns})

    def to_pandas(self) -> pd.DataFrame:
        """One row per span: ``pid tid inv hid depth name ts dur is_device attrs incarnation`` (times int64 ns)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "pid": self.pid,
                "tid": self.tid,
                "inv": self.inv,
                "hid": _categorical(self.hid, self.hids),
                "depth": self.depth,
                "name": _categorical(self.name, self.names),
                "ts": self.ts,
                "dur": self.dur,
                "is_device": self.is_device,
                "attrs": _categorical(*self._distinct_attrs()),
                "incarnation": self.incarnation,
            }
        )

    def _distinct_attrs(self) -> tuple[np.ndarray, list[str]]:
        """Attribute codes over texts made unique (colour escapes may tell equal texts apart)."""
        return merge_codes(self.attrs, [self.attr_texts[code] for code in range(len(self.attr_texts))])

    @classmethod
    def from_spans(cls, spans: Sequence[TraceSpan]) -> SpanTable:
        """A table over span objects, for invocations that were built by hand."""
        names, hids, attrs = _coded(s.name for s in spans), _coded(s.hid for s in spans), _coded(s.attrs for s in spans)
        return cls(
            pid=np.array([s.pid for s in spans], np.int64),
            tid=np.array([s.tid for s in spans], np.int64),
            inv=np.array([s.inv if s.inv >= 0 else 2**64 + s.inv for s in spans], np.uint64),
            hid=hids[0],
            depth=np.array([s.depth for s in spans], np.int32),
            name=names[0],
            ts=np.array([s.ts for s in spans], np.int64),
            dur=np.array([s.dur for s in spans], np.int64),
            attrs=attrs[0],
            is_device=np.array([s.is_device for s in spans], bool),
            incarnation=np.zeros(len(spans), np.int32),
            names=names[1],
            hids=hids[1],
            attr_texts=attrs[1],
            heads=len(spans),
        )


def merge_codes(codes: np.ndarray, texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Give equal texts one code, in order of first appearance."""
    mapping, distinct = _coded(texts)
    return (mapping[codes] if len(texts) else codes.astype(np.int32)), distinct


def _categorical(codes: np.ndarray, texts: list[str]) -> pd.Categorical:
    import pandas as pd

    return pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))


def _coded(texts: Iterable[str]) -> tuple[np.ndarray, list[str]]:
    codes: dict[str, int] = {}
    coded = [codes.setdefault(text, len(codes)) for text in texts]
    return np.array(coded, np.int32), list(codes)
