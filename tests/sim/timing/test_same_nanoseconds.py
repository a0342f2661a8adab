"""Same recording, same chip: same nanoseconds, whatever the process, its hash seed and its threads."""

from __future__ import annotations

import ast
import hashlib
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import launches

import pypto.sim.timing
from pypto.sim.chips import chip
from pypto.sim.explanation import explain
from pypto.sim.timing import time_recording
from pypto.validation.writer import AIC, one

ROOT = Path(__file__).parents[3]
# what the times follow from, below the runtime and in it
ON_THE_PATH = [
    *Path(pypto.sim.timing.__file__).parent.glob("*.py"),
    *(ROOT / "pypto" / "sim" / name for name in ("recording.py", "program_record.py", "recorder.py", "layout.py")),
    *(ROOT / "pypto" / "sim" / "chips").glob("*.py"),
    *(ROOT / "pypto" / "sim" / "explanation").glob("*.py"),
    *(ROOT / "pypto" / "runtime" / f"distributed_{name}.py" for name in (
        "cells", "chains", "clock", "links", "signal_play", "signals", "timing")),
]  # fmt: skip
CHANGES_EVERY_TIME = {"random", "secrets", "uuid", "time", "datetime"}


def digest() -> str:
    """Of every time in launches that between them use every mechanism of the clock."""
    found = hashlib.sha256()
    for recording in (
        one(launches.cube_kernel()), one(launches.copies_kernel()), launches.lanes(0), launches.lanes(1),
        launches.task_graph(), launches.ring_pressure(), launches.barrier(), launches.drains(),
        launches.readers(48, 8, 1 << 15), launches.readers(24, 8, 0, core=AIC),
    ):  # fmt: skip
        for target in (chip("a5"), chip("a2a3").replace(clusters=7, scheduler_threads=2)):
            timeline = time_recording(recording, target)
            told = (timeline.phases, timeline.bottlenecks, timeline.records(), timeline.core_pipe_busy_us())
            found.update(repr(told).encode())
    found.update(repr(explain(launches.task_graph()).steps).encode())
    return found.hexdigest()


def test_in_another_process_with_other_seeds_and_threads():
    script = "from test_same_nanoseconds import digest; print(digest())"
    environment = {"PYTHONHASHSEED": "12345", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    fresh = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent)))},
    )  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        beside = list(pool.map(lambda _: digest(), range(2)))
    told, _ = fresh.communicate(timeout=300)
    assert beside == [told.strip()] * 2, "a process of its own, and two threads at the same time"


def test_after_a_fork():
    mine = digest()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(digest).get(timeout=300) == mine


def test_nothing_on_the_path_reads_a_clock_or_a_random_number():
    assert len(ON_THE_PATH) > 30 and all(path.is_file() for path in ON_THE_PATH)
    for path in ON_THE_PATH:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = {(node.module or "").split(".")[0]}
            elif isinstance(node, ast.Attribute):
                names = {node.attr} & {"random", "urandom", "default_rng"}
            else:
                continue
            assert not names & (CHANGES_EVERY_TIME | {"urandom", "default_rng"}), f"{path}:{node.lineno}: {names}"
