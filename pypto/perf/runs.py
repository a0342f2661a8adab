"""Finds out what a log holds when nobody says: one chip or several, how many launches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pypto.perf.grouping import LaunchGroups, busiest_hid, launches_of
from pypto.perf.profile import RunProfile, is_profile
from pypto.perf.progress import read_with_progress
from pypto.perf.source import Source
from pypto.perf.stats import BenchmarkStats
from pypto.perf.table import SpanTable


@dataclass(frozen=True)
class RunOptions:
    """What the caller knows about a run; None is worked out from the log."""

    rounds: int | None = None
    warmup: int = 0
    distributed: bool | None = None


class RunError(ValueError):
    """A run that holds nothing to look at."""


def load_stats(source: Source, options: RunOptions = RunOptions()) -> BenchmarkStats:  # noqa: B008 (frozen)
    """Statistics of a log.

    Raises:
        RunError: the log holds no launch, or no more than the warm-up; or it is no log but a profile or a directory.
    """
    if isinstance(source, Path) and source.is_dir():
        raise RunError(f"{source} is a directory: give a log in it; html, swimlane and deps take directories")
    if isinstance(source, Path) and is_profile(source):
        raise RunError(f"{source} is a profile that export wrote, without spans: compare reads it, this needs the log")
    return stats_of(read_with_progress(source), options, str(source) if isinstance(source, Path) else "the log")


def stats_of(table: SpanTable, options: RunOptions, source: str) -> BenchmarkStats:
    """Statistics of a table, with what the options leave open worked out."""
    groups = launches_of(table)
    if not len(groups):
        raise RunError(f"{source}: no launch found ({table.heads} markers: {table.torn} torn, {table.skipped} skipped)")
    distributed = is_distributed(groups) if options.distributed is None else options.distributed
    launches = launch_count(groups, distributed=distributed)
    rounds = launches - options.warmup if options.rounds is None else options.rounds
    if rounds <= 0:
        raise RunError(f"{source}: {launches} launches and a warm-up of {options.warmup} leave no round")
    return BenchmarkStats.from_strace(table, rounds=rounds, warmup=options.warmup, distributed=distributed)


def is_distributed(groups: LaunchGroups) -> bool:
    """Whether more than one process ran launches on a chip, or a node process drove them."""
    ranks = np.unique(groups.pid[groups.first_named(groups.words.wall) >= 0])
    return len(ranks) > 1 or any(name.startswith("node.") for name in groups.table.names)


def launch_count(groups: LaunchGroups, *, distributed: bool) -> int:
    """Launches including warm-up: graph builds of the node process, else what the counts per rank allow.

    Where the ranks' counts do not fit together, records are missing: the rank that launched most tells then.
    """
    if not distributed:
        busiest = busiest_hid(groups.hid)
        return int((groups.hid == busiest).sum())
    table = groups.table
    builds = int(((table.name == table.name_code("node.graph_build")) & (table.depth == 0)).sum())
    rooted = groups.first_named(groups.words.run, depth=0) >= 0
    ranks = np.unique(groups.pid[rooted & (groups.first_named(groups.words.wall) >= 0)])
    streams = [groups.hid[rooted & (groups.pid == pid)].tolist() for pid in ranks.tolist()]
    counts = [len(stream) for stream in streams]
    common = math.gcd(*counts)
    if streams and common != min(counts) and (not builds or common % builds):
        streams = [max(streams, key=len)]
        common = max(counts)
    if builds and common % builds == 0:
        return builds
    stable = (n for n in range(common, 0, -1) if common % n == 0 and all(_repeats(s, n) for s in streams))
    return next(stable, common)


def _repeats(stream: list[int], rounds: int) -> bool:
    """Whether every round of a stream cut into that many shows the same callables."""
    size = len(stream) // rounds
    return all(stream[at] == stream[at % size] for at in range(len(stream)))


def load_profile(source: Source, options: RunOptions = RunOptions()) -> RunProfile:  # noqa: B008 (frozen)
    """A run profile, read as such or reduced from a log.

    Raises:
        RunError: the log holds nothing to look at.
        ProfileError: the profile cannot be used.
    """
    if isinstance(source, Path) and is_profile(source):
        return RunProfile.read(source)
    return RunProfile.of(load_stats(source, options))
