"""One recording on many chips."""

from __future__ import annotations

from collections.abc import Iterable
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
    neither changes a number.
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
    if executor is None:
        rows = [_point(recording, one) for one in points]
    else:
        # one closure for all points lets an executor ship the recording with each task and nothing else
        futures = [executor.submit(partial(_point, recording), one) for one in points]
        rows = [future.result() for future in futures]
    changed = _differences(points)
    figures = [{name: values[i] for name, values in changed.items()} for i in range(len(points))]
    return pd.DataFrame([{**row, **figure} for row, figure in zip(rows, figures)])


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
