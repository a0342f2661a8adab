"""A run reduced to its series: what a comparison needs, as JSON that people can read and commit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto.perf.aggregate import node_series
from pypto.perf.metrics import Metric, RoundMetric
from pypto.perf.stats import BenchmarkStats

FORMAT, VERSION = "pypto-perf-run", 1
ALL_LAUNCHES = "all launches"
ROUND_METRICS: tuple[RoundMetric, ...] = ("device", "host", "effective", "union", "device_span")
PART_METRICS: tuple[Metric, ...] = ("device", "host", "effective")
_NUMBER_LIST = re.compile(r"\[\s+((?:-?[0-9.e+]+,\s+)*-?[0-9.e+]+)\s+\]")

Series = dict[str, list[float]]


class ProfileError(ValueError):
    """A file that is no run profile of a known version; the message names the file and what was expected."""


@dataclass(frozen=True)
class RunProfile:
    """Series of one run.

    ``rounds_us`` maps a metric to its value per round; ``ranks_us`` and ``dispatches_us`` map a metric to one series
    per rank or dispatch; ``nodes_ns`` maps a dispatch to the durations of every span node, ``device_nodes`` names
    those on the device clock. Ranks are numbered by ascending pid, because pids mean nothing in another run.
    """

    rounds: int
    warmup: int
    rounds_us: Series = field(default_factory=dict)
    ranks_us: dict[str, Series] = field(default_factory=dict)
    dispatches_us: dict[str, Series] = field(default_factory=dict)
    nodes_ns: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    device_nodes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, stats: BenchmarkStats) -> RunProfile:
        """Reduce statistics to their series."""
        ranks = {pid: f"rank {at}" for at, pid in enumerate(sorted({p for g in stats.rounds_dispatches for p in g}))}
        tasks = stats.dispatch_tasks()
        labels = {key: f"{ranks[key[0]]} slot {key[1]} {task}" for key, task in tasks.items()}
        groups = [] if stats.unstable_dispatch_slots else stats.mean_groups()
        nodes = {labels.get(key, ALL_LAUNCHES) if key else ALL_LAUNCHES: group for key, group in groups}
        return cls(
            stats.rounds,
            stats.warmup,
            {metric: series for metric in ROUND_METRICS if (series := _recorded(stats, metric))},
            _parts({m: {ranks[pid]: s for pid, s in stats.per_rank(m).items()} for m in PART_METRICS}),
            _parts({m: {labels[key]: s for key, s in stats.per_dispatch(m).items()} for m in PART_METRICS}),
            {label: node_series(group) for label, group in nodes.items()},
            sorted(
                {span.name for group in nodes.values() for inv in group[:1] for span in inv.spans if span.is_device}
            ),
            list(stats.warnings),
        )

    def to_json(self) -> str:
        """Indented text with every series on one line."""
        document = {"format": FORMAT, "version": VERSION, **vars(self)}
        text = json.dumps(document, indent=1, ensure_ascii=False)
        return _NUMBER_LIST.sub(lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text) + "\n"

    def write(self, path: str | Path) -> None:
        Path(path).write_text(self.to_json())

    @classmethod
    def read(cls, path: str | Path) -> RunProfile:
        """Read a profile.

        Raises:
            OSError: the file cannot be read.
            ProfileError: it is no profile of this version.
        """
        try:
            document = json.loads(Path(path).read_text())
        except ValueError as error:
            raise ProfileError(f"{path}: not JSON: {error}") from None
        return cls.of_document(document, str(path))

    @classmethod
    def of_document(cls, document: Any, source: str) -> RunProfile:
        """A profile from parsed JSON."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise ProfileError(f'{source}: not a run profile: expected an object with "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise ProfileError(f"{source}: profile version {document.get('version')!r}, this reader knows {VERSION}")
        known = {key: value for key, value in document.items() if key in cls.__dataclass_fields__}
        try:
            profile = cls(**known)
        except TypeError as error:
            raise ProfileError(f"{source}: incomplete profile: {error}") from None
        wrong = _misshapen(profile)
        if wrong:
            raise ProfileError(f"{source}: damaged profile: {wrong} must hold lists of numbers by name")
        return profile


def _recorded(stats: BenchmarkStats, metric: RoundMetric) -> list[float]:
    """A series per round; none for a device span that the log does not place."""
    series = stats.per_round(metric)
    return series if metric != "device_span" or any(series) else []


def _misshapen(profile: RunProfile) -> str:
    """The first block of series that is none, empty when all are."""
    blocks: list[tuple[str, Any]] = [("rounds_us", profile.rounds_us)]
    for name in ("ranks_us", "dispatches_us", "nodes_ns"):
        groups = getattr(profile, name)
        if not isinstance(groups, Mapping):
            return name
        blocks += [(f"{name}.{key}", block) for key, block in groups.items()]
    return next((name for name, block in blocks if not _is_series(block)), "")


def _is_series(block: Any) -> bool:
    return isinstance(block, Mapping) and all(
        isinstance(values, list) and values and all(type(v) in (int, float) for v in values)
        for values in block.values()
    )


def _parts(series: dict[str, Series]) -> dict[str, Series]:
    return {metric: values for metric, values in series.items() if values}


def is_profile(path: Path) -> bool:
    """Whether a file starts like a run profile; a pipe, of which a look would take the first bytes, does not."""
    if path.exists() and not path.is_file():
        return False
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(200)
