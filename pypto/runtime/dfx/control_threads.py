"""What the schedulers and the orchestrator did: the timing engine plays the launch again with its log on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.dfx.replay import play_with_log

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched

# Phases by the engine's log codes (pypto.sim.timing.queues.LOG_*); submits are the orchestrator's.
_KINDS: Final = ("complete", "dispatch", "dummy", "early_dispatch", "drain")
_SUBMIT: Final = len(_KINDS)
_NO_DEPTHS: Final = [0, 0, 0]


@dataclass(frozen=True)
class ControlThreads:
    """``core_to_thread``: scheduler of every core. ``scheduler_phases``: one list per control thread, the
    orchestrator's last and empty. ``submits``: one entry per submitted task."""

    core_to_thread: list[int]
    scheduler_phases: list[list[dict[str, Any]]]
    submits: list[dict[str, int]]


def control_threads(launched: Launched, tokens: list[int], megahertz: int) -> ControlThreads:
    """The phases of a launch; times in cycles of a counter of ``megahertz``."""
    from pypto.sim.timing import words

    played = play_with_log(launched)
    memory = played.memory
    log = played.log[: int(memory[words.LOGGED])].tolist()
    threads = int(launched.known_chip.cores.scheduler_threads.value)
    phases: list[list[dict[str, Any]]] = [[] for _ in range(threads + 1)]
    submits: list[dict[str, int]] = []
    depths = _NO_DEPTHS
    for kind, thread, start_ps, end_ps, loop, count, task, vector, cube, mixed in log:
        span = {"start_cycles": start_ps * megahertz // 10**6, "end_cycles": end_ps * megahertz // 10**6}
        if kind == _SUBMIT:
            index = (task - int(memory[words.TASKS])) // words.TASK_WORDS
            submits.append({"submit_idx": len(submits), "task_id": tokens[index], **span})
            continue
        phase: dict[str, Any] = {"kind": _KINDS[kind], **span, "loop_iter": loop, "tasks_processed": count}
        if _KINDS[kind] == "dispatch":
            phase.update(pop_hit=count, pop_miss=0)
        phase["shared_at_start"], depths = depths, [cube, vector, mixed]
        phase["shared_at_end"] = depths
        phases[thread].append(phase)
    return ControlThreads(played.cores[:, words.OWNER].tolist(), phases, submits)
