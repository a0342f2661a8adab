"""``read_strace``: from any log to a span table, in bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from pypto.perf.grammar import ANCHOR, SENTINEL, decode_field
from pypto.perf.incarnation import incarnations
from pypto.perf.names import GENERATIONS
from pypto.perf.source import PIECE_BYTES, Progress, Source, pieces
from pypto.perf.table import AttrTexts, ClockAnchor, Sentinel, SpanTable, merge_codes

NAMED_LOSSES = 8
"""A warning names this many invocations that lost records and counts the others."""


def read_strace(source: Source, *, progress: Progress | None = None, piece_bytes: int = PIECE_BYTES) -> SpanTable:
    """Read every ``[STRACE]`` record of a log (``profiling.md`` 1.3, 1.5).

    Args:
        source: text, bytes, a path or an open file. A text without line breaks that is not an existing file and does
            not look like a path is one line of log.
        progress: called with the number of bytes of each block that was read.
        piece_bytes: how much is held in memory at a time; the result does not depend on it.

    Returns:
        The spans in line order with ``heads == parsed + torn + skipped``; what was lost is said in ``warnings``.

    Raises:
        FileNotFoundError: ``source`` is a path and there is no such file.
        TypeError: ``source`` is none of the supported kinds.
    """
    from pypto.perf.scan import Scanner

    reading = _Reading(Scanner())
    for piece in pieces(source, piece_bytes=piece_bytes, progress=progress):
        reading.add(piece)
    return reading.table()


@dataclass
class _Reading:
    """What has been read so far; columns stay in pieces until the end."""

    scanner: Scanner  # type: ignore[name-defined]  # noqa: F821
    columns: list[list[np.ndarray]] = field(default_factory=lambda: [[] for _ in range(10)])
    rows: int = 0
    anchors: list[ClockAnchor] = field(default_factory=list)
    sentinels: list[Sentinel] = field(default_factory=list)
    losses: Counter[tuple[int, int | None]] = field(default_factory=Counter)

    def add(self, piece: bytearray) -> None:
        from pypto.perf import scan as layout

        narrow = dict.fromkeys((layout.HID, layout.DEPTH, layout.NAME, layout.ATTRS), np.int32)
        rows, torn = self.scanner.scan(piece)
        for pid, inv_bits, known in torn.tolist():
            self.losses[pid, inv_bits % 2**64 if known else None] += 1
        self._add_marks(piece, rows[:, layout.HEAD])
        order = (layout.PID, layout.TID, layout.INV, layout.HID, layout.DEPTH)
        for chunks, at in zip(self.columns, (*order, layout.NAME, layout.TS, layout.DUR, layout.ATTRS, layout.DEVICE)):
            chunks.append(rows[:, at].astype(np.bool_ if at == layout.DEVICE else narrow.get(at, np.int64)))
        self.rows += len(rows)

    def _add_marks(self, piece: bytearray, heads: np.ndarray) -> None:
        """Anchors and sentinels of a piece, each with the number of spans in front of it."""
        if b"[CLOCK_ANCHOR]" in piece:
            for match in ANCHOR.finditer(piece):
                pid, mono_ns, wall_ns = map(int, match.groups())
                row = self.rows + int(np.searchsorted(heads, match.start()))
                self.anchors.append(ClockAnchor(pid, mono_ns, wall_ns, row))
        if b"[pypto] l3_swimlane_pass=" in piece:
            for match in SENTINEL.finditer(piece):
                kind, event = (group.decode() if group else None for group in match.groups())
                row = self.rows + int(np.searchsorted(heads, match.start()))
                self.sentinels.append(Sentinel(kind, event, row))

    def table(self) -> SpanTable:
        pid, tid, inv, hid, depth, name, ts, dur, attrs, device = (_joined(chunks) for chunks in self.columns)
        scanner = self.scanner
        name, names = merge_codes(name, [decode_field(raw) for raw in scanner.names])
        hid, hids = merge_codes(hid, [raw.decode().lower() for raw in scanner.hids])
        unsigned = inv.view(np.uint64)
        roots = [code for code, text in enumerate(names) if text in {words.run for words in GENERATIONS}]
        is_root = np.isin(name, roots) & (depth == 0)
        table = SpanTable(
            pid=pid,
            tid=tid,
            inv=unsigned,
            hid=hid,
            depth=depth.astype(np.int32, copy=False),
            name=name,
            ts=ts,
            dur=dur,
            attrs=attrs.astype(np.int32, copy=False),
            is_device=device.astype(bool, copy=False),
            incarnation=incarnations(pid, unsigned, ts, dur, is_root, self.anchors),
            names=names,
            hids=hids,
            attr_texts=AttrTexts(scanner.attrs),
            heads=scanner.heads,
            torn=scanner.torn,
            skipped=scanner.skipped_version + scanner.skipped_quoted,
            anchors=self.anchors,
            sentinels=self.sentinels,
        )
        table.warnings = [*self._loss_warnings(), *_reuse_warnings(table)]
        return table

    def _loss_warnings(self) -> list[str]:
        scanner = self.scanner
        warnings = []
        if scanner.torn:
            warnings.append(
                f"{_count(scanner.torn, 'record')} of {scanner.heads} torn and left out: {_named(self.losses)}"
            )
        if scanner.skipped_version:
            warnings.append(f"{_count(scanner.skipped_version, 'record')} of another version than v=1 skipped")
        if scanner.skipped_quoted:
            warnings.append(f"{_count(scanner.skipped_quoted, 'marker')} quoted inside messages skipped")
        return warnings


def _joined(chunks: list[np.ndarray]) -> np.ndarray:
    """One array of all chunks, which are given up so that only one column exists twice at a time."""
    if not chunks:
        return np.empty(0, np.int64)
    joined = np.concatenate(chunks)
    chunks.clear()
    return joined


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _named(losses: Counter[tuple[int, int | None]]) -> str:
    def one(key: tuple[int, int | None], times: int) -> str:
        pid, inv = key
        who = "pid unknown" if pid < 0 else f"pid {pid}" + ("" if inv is None else f" inv {inv}")
        return who + (f" ({times})" if times > 1 else "")

    named = [one(key, times) for key, times in list(losses.items())[:NAMED_LOSSES]]
    rest = len(losses) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest > 0 else "")


def _reuse_warnings(table: SpanTable) -> list[str]:
    if not table.incarnation.any():
        return []
    reused = np.unique(table.pid[table.incarnation > 0]).tolist()
    counts = {pid: int(table.incarnation[table.pid == pid].max()) + 1 for pid in reused}
    return [f"pid {pid} stands for {count} processes; they are kept apart" for pid, count in counts.items()]
