"""One recording on many chips."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pypto.sim.chips import Chip

if TYPE_CHECKING:
    import pandas

    from pypto.sim.recording import Recording


class Submits(Protocol):
    """What is asked of an executor: ``concurrent.futures.Executor`` and Dask's ``Client`` both have it."""

    def submit(self, function: Any, /, *arguments: Any) -> Any: ...


def sweep(recording: Recording, chips: Iterable[Chip], executor: Executor | Submits | None = None) -> pandas.DataFrame:
    """Time ``recording`` with cold caches on every chip; one row per chip, in the order given.

    Columns: ``chip``, the figures that differ between the chips (dotted names of ``Chip.constants()``),
    ``device_wall_us``, ``effective_us``, ``roofline_us``, ``bound`` (largest class along the critical path) and
    ``critical.<class>`` in us. ``executor`` runs the points elsewhere: a process pool, or the client of a Dask cluster;
    neither changes a number. A terminal shows how far it is. After an error, or the interrupt key, points that have not
    begun are cancelled.
    """
    import pandas as pd

    if isinstance(chips, Chip) or not hasattr(recording, "time"):
        raise TypeError(
            "sweep takes a Recording and several chips, e.g. sweep(recording, [chip('a2a3'), chip('a5')]), "
            f"got {type(recording).__name__} and {type(chips).__name__}"
        )
    points = list(chips)
    for point in points:
        if not isinstance(point, Chip):
            raise TypeError(f"sweep takes descriptions such as chip('a2a3'), got {point!r}")
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor has no submit(): a pool or a Dask client is expected, got {type(executor).__name__}")
    if not points:
        raise ValueError("sweep needs at least one chip, e.g. [chip('a2a3').replace(clusters=n) for n in (6, 12, 24)]")
    answers = _here(recording, points) if executor is None else _elsewhere(recording, points, executor)
    rows = list(_shown(answers, len(points)))
    changed = _differences(points)
    figures = [{name: values[i] for name, values in changed.items()} for i in range(len(points))]
    return pd.DataFrame([{**row, **figure} for row, figure in zip(rows, figures)])


def _here(recording: Recording, points: list[Chip]) -> Iterator[dict[str, Any]]:
    return (_point(recording, one) for one in points)


def _elsewhere(recording: Recording, points: list[Chip], executor: Executor | Submits) -> Iterator[dict[str, Any]]:
    """The answers in the order of ``points``, whenever they come."""
    # one closure for all points lets an executor ship the recording with each task and nothing else
    function, futures = partial(_point, recording), []
    try:
        for one in points:
            futures.append(executor.submit(function, one))
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()  # no effect on those that are done


def _shown(answers: Iterator[dict[str, Any]], total: int) -> Iterator[dict[str, Any]]:
    """``answers`` as they are; a terminal shows how many of ``total`` are there."""
    first = next(answers)  # compiles the engine on first use, which shows a progress of its own
    yield first
    if not sys.stderr.isatty():
        yield from answers
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("chips", total=total, completed=1)
        for answer in answers:
            progress.advance(bar)
            yield answer


def _point(recording: Recording, chip: Chip) -> dict[str, Any]:
    from pypto.sim.timing import time_recording

    timeline = time_recording(recording, chip)
    critical = {f"critical.{name}": ns / 1000 for name, ns in timeline.bottlenecks.items()}
    return {
        "chip": chip.name,
        "device_wall_us": timeline.device_wall_us,
        "effective_us": timeline.effective_us,
        "roofline_us": timeline.roofline_ns / 1000,
        "bound": max(timeline.bottlenecks, key=lambda name: timeline.bottlenecks[name]),
        **critical,
    }


def _differences(chips: list[Chip]) -> dict[str, list[float | None]]:
    """Figures that are not the same on all chips, by dotted name."""
    tables = [{row.name: row.value for row in chip.constants()} for chip in chips]
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: values for name in names if len(set(values := [table.get(name) for table in tables])) > 1}
