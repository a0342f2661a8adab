"""The timing engine: tile instructions timed per second, a large task graph, one point of a sweep."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim.chips import chip
from pypto.sim.layout import PIPES, SPACES
from pypto.sim.recording import AIV, SUBMIT, ProgramRecord, Recording
from pypto.sim.timing import time_recording

_TILE_BYTES = 64 * 64 * 4
_LOOP = ("tload", "texp", "tadds", "tmuls", "texp", "tadds", "tmuls", "texp", "tstore")


def _program() -> ProgramRecord:
    """Load, seven vector instructions, store, over two pairs of 64 x 64 fp32 tiles."""
    fp32 = DataType.from_string("fp32").code()
    pipe = {"tload": PIPES["MTE2"], "tstore": PIPES["MTE3"]}
    body = [(name, pair) for pair in range(2) for name in _LOOP]
    mnemonics = sorted(set(_LOOP))
    reads = [[] if name == "tload" else [2 * pair + (name != "texp")] for name, pair in body]
    writes = [[] if name == "tstore" else [2 * pair + (name != "tload")] for name, pair in body]

    def csr(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        return np.cumsum([0] + [len(x) for x in lists]), np.array([x for one in lists for x in one], np.int64)

    reads_start, flat_reads = csr(reads)
    writes_start, flat_writes = csr(writes)
    n = len(body)
    tiles = [[SPACES["vec"], i * _TILE_BYTES, _TILE_BYTES, 64, 64, 64, fp32, 0, 1, 0] for i in range(4)]
    return ProgramRecord(
        "stream",
        AIV,
        mnemonics,
        np.array([mnemonics.index(name) for name, _ in body], np.int64),
        np.array([pipe.get(name, PIPES["V"]) for name, _ in body], np.int64),
        np.full(n, fp32),
        np.full(n, fp32),
        np.zeros(n, np.int64),
        reads_start,
        flat_reads,
        writes_start,
        flat_writes,
        np.array(tiles, np.int64),
        [{} for _ in body],
    )


def _trace(iterations: int) -> np.ndarray:
    rows = np.zeros((iterations * 2 * len(_LOOP) + 1, 8), np.int64)
    rows[:-1, 0] = np.tile(np.arange(2 * len(_LOOP)), iterations)
    rows[:-1, 1:3] = 64
    moves = np.isin(rows[:-1, 0] % len(_LOOP), (0, len(_LOOP) - 1))
    places = np.flatnonzero(moves)
    rows[places, 3] = np.arange(len(places)) % 1024 * _TILE_BYTES
    rows[places, 4], rows[places, 5] = 1, _TILE_BYTES
    rows[:, 7] = 3
    rows[-1] = [-1, 0, 0, 0, 0, 0, 0, 0]
    return rows


def recording(tasks: int, iterations: int, fan_in: int = 0) -> Recording:
    """``tasks`` vector tasks of ``iterations`` loops each, every one after the ``fan_in`` tasks 48 before it."""
    trace = _trace(iterations)
    deps = [[t - 48 - k for k in range(fan_in) if t >= 48 + k] for t in range(tasks)]
    one = np.ones(tasks, np.int64)
    start = np.arange(tasks, dtype=np.int64) * len(trace)
    return Recording(
        "benchmark",
        "a2a3",
        [_program()],
        np.tile(trace, (tasks, 1)),
        [f"t{t}" for t in range(tasks)],
        0 * one,
        one,
        0 * one,
        2 * one,
        0 * one,
        one,
        one,
        np.cumsum([0] + [len(d) for d in deps]),
        np.array([d for one_task in deps for d in one_task], np.int64),
        np.zeros(sum(map(len, deps)), np.int64),
        np.arange(tasks + 1),
        0 * one,
        0 * one,
        0 * one,
        start,
        start + len(trace),
        np.array([[SUBMIT, t, 2, 0] for t in range(tasks)], np.int64),
        allocations=np.array([[0, 0, 1 << 26]]),
    )


def _best(function: Any, repeats: int = 5) -> float:
    """Least processor seconds of some runs."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def measure() -> list[dict[str, Any]]:
    """One row per question; seconds are processor time of one thread."""
    target = chip("a2a3")
    rows: list[dict[str, Any]] = []
    long = recording(48, 1000)
    time_recording(long, target)
    again = _best(lambda: time_recording(long, target))

    def first() -> None:
        long.__dict__.pop("_links", None)
        time_recording(long, target)

    for what, seconds in (("timed again", again), ("timed for the first time", _best(first))):
        rows.append(
            {
                "case": f"{len(long.trace)} tile instructions, {what}",
                "s": seconds,
                "instructions/s": len(long.trace) / seconds,
            }
        )
    graph = recording(10_000, 1, fan_in=2)
    time_recording(graph, target)
    rows.append(
        {"case": "10,000 tasks on 24 clusters, 4 AICPU threads", "s": _best(lambda: time_recording(graph, target))}
    )
    medium = recording(550, 8, fan_in=2)
    time_recording(medium, target)
    points = [target.replace(clusters=n) for n in (6, 12, 18, 24)]
    seconds = _best(lambda: [time_recording(medium, point) for point in points]) / len(points)
    rows.append({"case": f"sweep point, 550 tasks, {len(medium.trace)} tile instructions", "s": seconds})
    return rows
