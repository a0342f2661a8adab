"""When everything in a launch happened, and why it took that long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pypto.sim.chips import Chip
from pypto.sim.layout import PIPES
from pypto.sim.recording import Recording

from . import codes as c
from . import words as x
from .critical import CLASSES, busy, path_sums
from .launch import Played, cache_tags, play
from .state import DeviceState

if TYPE_CHECKING:
    import pandas

Ints = NDArray[np.int64]

PIPE_NAMES: Final = tuple(name for name, code in sorted(PIPES.items(), key=lambda item: item[1]) if code < c.PIPE_COUNT)
PATH_NAMES: Final = ("GM->UB", "GM->L1", "UB->GM", "L0C->GM")


class TaskRecord(NamedTuple):
    """One subtask: a block of a task on one core. Times in ns from the start of the device wall.

    ``dispatch_ns`` lies before ``ready_ns`` for a block that was staged behind its producers (early resolve). ``bytes``
    are those of its transfers, ``hbm_bytes`` those of the whole cache lines it missed: more where rows are short.
    """

    task: int
    name: str
    block: int
    lane: int
    core: int
    core_type: str
    submit_ns: int
    ready_ns: int
    dispatch_ns: int
    receive_ns: int
    start_ns: int
    end_ns: int
    finish_ns: int
    bytes: int
    hbm_bytes: int


@dataclass(frozen=True, repr=False)
class Timeline:
    """The times of one launch on one chip.

    ``phases``: name -> (start, duration) of the device spans (profiling notes 6.2), in ns from the start of the device
    wall. ``bottlenecks``: class -> ns along the critical path; they add up to the effective window.
    """

    name: str
    chip: str
    clusters: int
    clock_mhz: float
    device_wall_ns: int
    phases: Mapping[str, tuple[int, int]]
    task_slots: Mapping[int, tuple[int, int]]
    bottlenecks: Mapping[str, float]
    roofline: Mapping[str, float]
    """Least time per resource in ns, whatever the schedule; the largest is ``roofline_ns``."""
    _pipe_busy: Ints  # [cores, pipes] ps
    _core_busy: Ints  # [cores] ps
    _subtasks: Ints
    _tasks: Ints
    _bytes: Ints  # [subtasks, 2]
    _names: tuple[str, ...]
    _places: Ints  # [subtasks, 4] task, block, lane, core

    def __repr__(self) -> str:
        most = max(self.bottlenecks, key=lambda name: self.bottlenecks[name], default="")
        reason = f", most of it {most} {self.bottlenecks[most] / 1000:.2f} us" if most else ""
        return (
            f"Timeline({self.name!r} on {self.chip}: device wall {self.device_wall_us:.2f} us, "
            f"effective {self.effective_us:.2f} us{reason})"
        )

    @property
    def device_wall_us(self) -> float:
        return self.device_wall_ns / 1000

    @property
    def effective_ns(self) -> int:
        """Orchestrator and scheduler windows together: latest end minus earliest start."""
        windows = [self.phases[name] for name in ("orch", "sched") if name in self.phases]
        return max(start + duration for start, duration in windows) - min(start for start, _ in windows)

    @property
    def effective_us(self) -> float:
        return self.effective_ns / 1000

    @property
    def roofline_ns(self) -> float:
        """Lower bound of the effective window: the busiest resource working without a pause."""
        return max(self.roofline.values(), default=0.0)

    def cube_times_ps(self) -> Ints:
        """[n, 2] start and end of every subtask on a cube core, in ps from the start of the device wall."""
        cubes = self._subtasks[self._subtasks[:, x.SUB_IS_CUBE] != 0]
        return cubes[:, [x.SUB_START, x.SUB_END]]

    def subtask_starts_ps(self) -> Ints:
        """Start of every subtask, in ps from the start of the device wall."""
        return self._subtasks[:, x.SUB_START].copy()

    def pipe_busy_us(self) -> dict[str, float]:
        """Busy time per pipe, summed over all cores."""
        totals = self._pipe_busy.sum(axis=0) / 1e6
        return {name: float(totals[code]) for code, name in enumerate(PIPE_NAMES)}

    def core_busy_us(self) -> dict[str, float]:
        """Time each core ran kernels, by core name (``aic0``, ``aiv0`` ...)."""
        return {name: float(ps) / 1e6 for name, ps in zip(self.core_names, self._core_busy)}

    def core_pipe_busy_us(self) -> dict[str, dict[str, float]]:
        """Busy time per core and pipe."""
        return {
            name: {pipe: float(row[code]) / 1e6 for code, pipe in enumerate(PIPE_NAMES)}
            for name, row in zip(self.core_names, self._pipe_busy)
        }

    @cached_property
    def core_names(self) -> list[str]:
        members = len(self._core_busy) // self.clusters
        lanes = members - 1
        return [
            f"aic{core // members}" if core % members == 0 else f"aiv{core // members * lanes + core % members - 1}"
            for core in range(len(self._core_busy))
        ]

    def records(self) -> list[TaskRecord]:
        """One record per subtask, in submit order."""
        times = np.rint(self._subtasks[:, [x.SUB_DISPATCH, x.SUB_RECEIVE, x.SUB_START, x.SUB_END, x.SUB_FINISH]] / 1000)
        of_task = np.rint(self._tasks[:, [x.SUBMITTED_AT, x.READY_AT]] / 1000).astype(np.int64)
        return [
            TaskRecord(
                task,
                self._names[task],
                block,
                lane,
                core,
                self.core_names[core][:3],
                int(of_task[task, 0]),
                int(of_task[task, 1]),
                *(int(t) for t in row),
                *(int(b) for b in moved),
            )
            for (task, block, lane, core), row, moved in zip(self._places.tolist(), times, self._bytes)
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The records as a frame, one row per subtask."""
        import pandas as pd

        return pd.DataFrame(self.records(), columns=list(TaskRecord._fields))


def time_recording(recording: Recording, chip: Chip, state: DeviceState | None = None) -> Timeline:
    """Time a recorded launch on ``chip``.

    ``state`` is what earlier launches left in the caches (``None``: cold); it is brought up to date in place. The
    answer depends on the three inputs alone. ``ValueError``: a launch that cannot end, or a state of another kind of
    chip.
    """
    state = state or DeviceState()
    cache = state.cover(cache_tags(recording, chip), int(chip.memory.l2_line_bytes.value))
    begin = _begin_ps(chip)
    return _timeline(recording, chip, play(recording, chip, cache, begin), begin)


def time_ranks(recording: Recording, chip: Chip, state: DeviceState, told: Ints) -> tuple[Timeline, Ints, Ints]:
    """Like :func:`time_recording` for a launch that waits for other chips; ``told`` as in :func:`launch.play`.

    Returns the timeline and the start and end of every trace row, in ps from the start of the device wall.
    """
    cache = state.cover(cache_tags(recording, chip), int(chip.memory.l2_line_bytes.value))
    begin = _begin_ps(chip)
    played = play(recording, chip, cache, begin, told=told)
    return _timeline(recording, chip, played, begin), played.rows[:, x.START].copy(), played.rows[:, x.END].copy()


def _begin_ps(chip: Chip) -> int:
    r = chip.runtime
    return round(sum(part.value for part in (r.preamble, r.config_validate, r.arena_wire, r.sm_reset)) * 1000)


def _timeline(recording: Recording, chip: Chip, played: Played, begin: int) -> Timeline:
    m = played.memory
    n_cores, n_subs = len(played.cores), len(played.subtasks)
    pipe_busy, core_busy = np.zeros((n_cores, c.PIPE_COUNT), np.int64), np.zeros(n_cores, np.int64)
    path_bytes, moved = np.zeros(c.PATH_COUNT, np.int64), np.zeros((n_subs, 2), np.int64)
    busy(m, pipe_busy, core_busy, path_bytes, moved)
    orchestrated = int(m[x.ENDED])
    scheduled = max(int(m[x.LAST_COMPLETE]), orchestrated) + round(chip.runtime.idle_loop.value * 1000)
    spent = path_sums(played, begin, scheduled)
    phases = _phases(chip, begin, orchestrated, scheduled)
    task_of = played.index_of(x.TASKS, played.subtasks[:, x.SUB_TASK], x.TASK_WORDS)
    core_of = played.index_of(x.CORES, played.subtasks[:, x.SUB_CORE], played.cores.shape[1])
    wall = max(start + duration for start, duration in phases.values())
    return Timeline(
        recording.name,
        chip.name,
        chip.clusters,
        chip.clock_mhz,
        wall,
        phases,
        _task_slots(recording, played, task_of),
        {name: float(ps) / 1000 for name, ps in zip(CLASSES, spent) if ps},
        _roofline(chip, pipe_busy, path_bytes, int(moved[:, 1].sum())),
        pipe_busy,
        core_busy,
        played.subtasks.copy(),
        played.tasks.copy(),
        moved,
        tuple(recording.task_name),
        np.stack([task_of, recording.subtask_block, recording.subtask_lane, core_of], axis=1).astype(np.int64),
    )


def _phases(chip: Chip, begin: int, orchestrated: int, scheduled: int) -> dict[str, tuple[int, int]]:
    """Device spans in ns; a phase of no duration is left out."""
    r = chip.runtime
    marks = {}
    at = 0.0
    for name, length in (
        ("preamble", r.preamble),
        ("config_validate", r.config_validate),
        ("arena_wire", r.arena_wire),
        ("sm_reset", r.sm_reset),
    ):
        marks[name] = (at, at + length.value)
        at += length.value
    end = scheduled / 1000
    marks["graph_build"] = (r.preamble.value, end)
    marks["orch"] = (begin / 1000, orchestrated / 1000)
    marks["sched"] = (begin / 1000, end)
    marks["post_orch"] = (end, end + r.post_orch.value)
    rounded = {name: (round(start), round(stop)) for name, (start, stop) in marks.items()}
    return {name: (start, stop - start) for name, (start, stop) in rounded.items() if stop > start}


def _task_slots(recording: Recording, played: Played, task_of: Ints) -> dict[int, tuple[int, int]]:
    """Slot -> window from the first dispatch to the last completion seen, over its tasks (profiling notes 6.4)."""
    found: dict[int, tuple[int, int]] = {}
    if not len(recording.task_slot) or not len(task_of):
        return found
    slot_of = recording.task_slot[task_of]
    for slot in np.unique(slot_of[slot_of >= 0]):
        mine = played.subtasks[slot_of == slot]
        start, stop = round(mine[:, x.SUB_DISPATCH].min() / 1000), round(mine[:, x.SUB_FINISH].max() / 1000)
        found[int(slot)] = (start, stop - start)
    return found


def _roofline(chip: Chip, pipe_busy: Ints, path_bytes: Ints, hbm_bytes: int) -> dict[str, float]:
    """Least ns per resource: work of a pipe over the cores that have it, bytes over what a path or memory can carry."""
    memory, clusters, vectors = chip.memory, chip.clusters, chip.vector_cores
    totals = pipe_busy.sum(axis=0) / 1000
    bound = {"cube": totals[c.M] / clusters, "vector": totals[c.V] / vectors, "L1->L0": totals[c.MTE1] / clusters}
    paths = ((chip.gm_ub, vectors), (chip.gm_l1_nd2nz, clusters), (chip.ub_gm, vectors), (chip.l0c_gm, clusters))
    for name, nbytes, (path, cores) in zip(PATH_NAMES, path_bytes, paths):
        rate = max(path.hit_rate.value, path.miss_rate.value) * chip.clock_mhz / 1000
        bound[name] = nbytes / (rate * cores)
    bound["HBM"] = hbm_bytes / max(memory.hbm_gbps.value, memory.hbm_nd2nz_gbps.value)
    bound["L2"] = path_bytes.sum() / max(memory.l2_vector_gbps.value, memory.l2_cube_gbps.value)
    return {name: float(ns) for name, ns in bound.items() if ns > 0}
