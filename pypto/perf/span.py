"""One span and one invocation as objects (``profiling.md`` 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pypto.perf.grammar import is_device_attrs
from pypto.perf.names import RunNames, names_in

if TYPE_CHECKING:
    import numpy as np
    from rich.console import RenderableType

    from pypto.perf.table import SpanTable

ValueFn = Callable[["TraceSpan"], list[str]]


@dataclass
class TraceSpan:
    """One ``[STRACE]`` record; ``ts`` and ``dur`` in ns, ``attrs`` raw and still encoded."""

    pid: int
    tid: int
    inv: int
    hid: str
    depth: int
    name: str
    ts: int
    dur: int
    attrs: str

    @property
    def is_device(self) -> bool:
        """Whether the span is on the device clock (token ``clk=dev``)."""
        return is_device_attrs(self.attrs)

    @property
    def dur_us(self) -> float:
        return self.dur / 1000.0

    @property
    def end(self) -> int:
        """ns on the span's own clock."""
        return self.ts + self.dur


@dataclass(eq=False)
class TraceInvocation:
    """One launch on one chip: its spans in line order (``profiling.md`` 3.4). All ``*_us`` are microseconds."""

    pid: int
    inv: int
    hid: str
    spans: list[TraceSpan] = field(default_factory=list)

    display_name: str | None = field(default=None, repr=False, kw_only=True)

    def root(self) -> TraceSpan | None:
        """The first depth-0 span, None when it was lost."""
        return next((span for span in self.spans if span.depth == 0), None)

    def by_name(self) -> dict[str, TraceSpan]:
        """First-seen span of every name."""
        first: dict[str, TraceSpan] = {}
        for span in self.spans:
            first.setdefault(span.name, span)
        return first

    @property
    def task(self) -> str:
        """Identity of the callable as logged: the hid."""
        return self.hid

    @property
    def task_name(self) -> str:
        """Display name of the callable where the caller could supply one, else the hid."""
        return self.display_name or self.hid

    @property
    def run_names(self) -> RunNames:
        """The generation of span names this invocation speaks."""
        return names_in({span.name for span in self.spans})

    @property
    def device_wall_us(self) -> float:
        """Duration of the device-wall span, 0.0 when it is absent."""
        span = self.by_name().get(self.run_names.wall)
        return span.dur_us if span else 0.0

    @property
    def host_wall_us(self) -> float:
        """Duration of the run root, 0.0 when it is absent."""
        span = self.by_name().get(self.run_names.run)
        return span.dur_us if span else 0.0

    @property
    def effective_us(self) -> float:
        """The device's execution window ``orch`` ∪ ``sched`` (6.2); 0.0 when both are absent."""
        spans, words = self.by_name(), self.run_names
        parts = [spans[name] for name in (words.orch, words.sched) if name in spans]
        if not parts:
            return 0.0
        return (max(span.end for span in parts) - min(span.ts for span in parts)) / 1000.0

    def format_tree(self, *, us: bool = True, value_fn: ValueFn | None = None) -> str:
        """The span tree in the plain layout of 3.6; ``value_fn`` replaces the duration by any number of columns."""
        from pypto.perf.tree import build_tree, duration_column, format_plain

        return format_plain(build_tree(self.spans), value_fn or duration_column(us))

    def __rich__(self) -> RenderableType:
        from pypto.perf.rich_tree import invocation_tree

        return invocation_tree(self)

    def _repr_html_(self) -> str:
        from pypto.perf.tree_html import invocation_html

        return invocation_html(self)


class TableInvocation(TraceInvocation):
    """Backed by rows of a span table; statistics read the columns, objects are made when somebody looks at them."""

    def __init__(self, table: SpanTable, rows: np.ndarray, *, display_name: str | None = None) -> None:
        first = int(rows[0])
        self.pid, self.inv = int(table.pid[first]), int(table.inv[first])
        self.hid = table.hids[table.hid[first]]
        self.display_name = display_name
        self.table, self.rows = table, rows
        self._spans: list[TraceSpan] | None = None

    @property
    def spans(self) -> list[TraceSpan]:  # type: ignore[override]
        """The spans in line order; edits are seen by this object's own views, statistics keep reading the table."""
        if self._spans is None:
            self._spans = self.table.spans(self.rows)
        return self._spans

    @property
    def device_wall_us(self) -> float:
        """Duration of the device-wall span, 0.0 when it is absent."""
        return self._duration_us(self.table.run_names.wall) if self._is_plain else super().device_wall_us

    @property
    def host_wall_us(self) -> float:
        """Duration of the run root, 0.0 when it is absent."""
        return self._duration_us(self.table.run_names.run) if self._is_plain else super().host_wall_us

    @property
    def effective_us(self) -> float:
        """The device's execution window ``orch`` ∪ ``sched`` (6.2); 0.0 when both are absent."""
        if not self._is_plain:
            return super().effective_us
        words = self.table.run_names
        rows = [row for row in (self._first_row(words.orch), self._first_row(words.sched)) if row is not None]
        if not rows:
            return 0.0
        return (max(self.table.end_at(row) for row in rows) - min(int(self.table.ts[row]) for row in rows)) / 1000.0

    @property
    def _is_plain(self) -> bool:
        """Whether the columns can answer: no span objects exist yet, and the log speaks one generation of names."""
        return self._spans is None and self.table.speaks_one_generation

    def _first_row(self, name: str) -> int | None:
        hits = (self.table.name[self.rows] == self.table.name_code(name)).nonzero()[0]
        return int(self.rows[hits[0]]) if len(hits) else None

    def _duration_us(self, name: str) -> float:
        row = self._first_row(name)
        return 0.0 if row is None else int(self.table.dur[row]) / 1000.0
