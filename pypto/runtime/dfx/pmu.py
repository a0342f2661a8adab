"""``pmu.csv``: what the counters of a core would show for every task (spec runtime 13.7, profiling 5.9).

The model counts cycles per pipe, bytes to and from global memory, and hits and misses of the L2 in lines. Counters of
what it does not model (instruction cache, bank conflicts, requests inside a core) are 0.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.runtime.callable import ChipCallable
from pypto.runtime.dfx.kernel_names import function_ids, task_tokens
from pypto.runtime.dfx.replay import play_again

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pypto.runtime.launch import Launched

    Ints = NDArray[np.int64]

FILE: Final = "pmu.csv"
OVERRIDE: Final = "SIMPLER_PMU_EVENT_TYPE"
PIPE_UTILIZATION: Final = 2
EVENTS: Final = {
    1: "ARITHMETIC",
    2: "PIPE_UTILIZATION",
    4: "MEMORY",
    5: "MEMORY_L0",
    6: "RESOURCE_CONFLICT",
    7: "MEMORY_UB",
    8: "L2_CACHE",
}
COUNTERS: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    "a2a3": {
        1: (
            "cube_fp16_exec", "cube_int8_exec", "vec_fp32_exec", "vec_fp16_128lane_exec", "vec_fp16_64lane_exec",
            "vec_int32_exec", "vec_misc_exec",
        ),
        2: (
            "vec_busy_cycles", "cube_busy_cycles", "scalar_busy_cycles", "mte1_busy_cycles", "mte2_busy_cycles",
            "mte3_busy_cycles", "icache_miss", "icache_req",
        ),
        4: (
            "ub_read_req", "ub_write_req", "l1_read_req", "l1_write_req", "l2_read_req", "l2_write_req",
            "main_read_req", "main_write_req",
        ),
        5: (
            "l0a_read_req", "l0a_write_req", "l0b_read_req", "l0b_write_req", "l0c_read_req", "l0c_write_req",
        ),
        6: ("bankgroup_stall_cycles", "bank_stall_cycles", "vec_resc_conflict_cycles"),
        7: (
            "ub_read_bw_mte", "l2_write_bw", "main_mem_write_bw", "ub_write_bw_mte", "ub_read_bw_vector",
            "ub_write_bw_vector", "ub_read_bw_scalar", "ub_write_bw_scalar",
        ),
        8: (
            "write_cache_hit", "write_cache_miss_allocate", "r0_read_cache_hit", "r0_read_cache_miss_allocate",
            "r1_read_cache_hit", "r1_read_cache_miss_allocate",
        ),
    },
    "a5": {
        1: ("cube_fp_instr_busy", "cube_int_instr_busy"),
        2: (
            "pmu_idc_aic_vec_busy_o", "cube_instr_busy", "scalar_instr_busy", "mte1_instr_busy", "mte2_instr_busy",
            "mte3_instr_busy", "icache_req", "icache_miss", "pmu_fix_instr_busy",
        ),
        4: (
            "bif_sc_pmu_read_main_instr_core", "bif_sc_pmu_write_main_instr_core", "pmu_aiv_ext_rd_ub_instr",
            "ub_pmu_vec_rd_ub_acc", "pmu_aiv_ext_wr_ub_instr", "ub_pmu_vec_wr_ub_acc", "pmu_rd_l1_instr",
            "pmu_wr_l1_instr",
        ),
        5: (
            "cube_sc_pmu_read_l0a_instr", "pmu_wr_l0a_instr", "cube_sc_pmu_read_l0b_instr", "pmu_wr_l0b_instr",
            "fixp_rd_l0c_instr", "cube_sc_pmu_read_l0c_instr", "cube_sc_pmu_write_l0c_instr",
        ),
        6: (
            "stu_pmu_wctl_ub_cflt", "ldu_pmu_ib_ub_cflt", "pmu_idc_aic_vec_instr_vf_busy_o", "idu_pmu_ins_iss_cnt",
        ),
        7: (
            "pmu_rd_acc_ub_instr_p", "pmu_wr_acc_ub_instr_p", "pmu_fix_wr_ub_instr",
            "mte_sc_pmu_write_acc_ub_instr_0", "mte_sc_pmu_read_acc_ub_instr_0", "ub_pmu_vec_rd_ub_acc",
            "ub_pmu_vec_wr_ub_acc",
        ),
        8: (
            "bif_sc_pmu_ar_close_l2_hit_core", "bif_sc_pmu_ar_close_l2_miss_core",
            "bif_sc_pmu_ar_close_l2_victim_core", "bif_sc_pmu_aw_close_l2_hit_core",
            "bif_sc_pmu_aw_close_l2_miss_core", "bif_sc_pmu_aw_close_l2_victim_core",
        ),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """What one subtask did: busy cycles per pipe, lines of the L2 read and written, hits and misses apart."""

    cycles: int
    pipes: dict[str, int]
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int

    @property
    def reads(self) -> int:
        return self.read_hits + self.read_misses

    @property
    def writes(self) -> int:
        return self.write_hits + self.write_misses


Reading = Callable[[Work], int]


def _busy(pipe: str) -> Reading:
    return lambda work: work.pipes[pipe]


_READINGS: Final[dict[str, Reading]] = {
    "vec_busy_cycles": _busy("V"),
    "cube_busy_cycles": _busy("M"),
    "scalar_busy_cycles": _busy("S"),
    "mte1_busy_cycles": _busy("MTE1"),
    "mte2_busy_cycles": _busy("MTE2"),
    "mte3_busy_cycles": _busy("MTE3"),
    "pmu_idc_aic_vec_busy_o": _busy("V"),
    "cube_instr_busy": _busy("M"),
    "scalar_instr_busy": _busy("S"),
    "mte1_instr_busy": _busy("MTE1"),
    "mte2_instr_busy": _busy("MTE2"),
    "mte3_instr_busy": _busy("MTE3"),
    "pmu_fix_instr_busy": _busy("FIX"),
    "l2_read_req": lambda work: work.reads,
    "l2_write_req": lambda work: work.writes,
    "main_read_req": lambda work: work.read_misses,
    "write_cache_hit": lambda work: work.write_hits,
    "write_cache_miss_allocate": lambda work: work.write_misses,
    "r0_read_cache_hit": lambda work: work.read_hits,
    "r0_read_cache_miss_allocate": lambda work: work.read_misses,
    "bif_sc_pmu_ar_close_l2_hit_core": lambda work: work.read_hits,
    "bif_sc_pmu_ar_close_l2_miss_core": lambda work: work.read_misses,
    "bif_sc_pmu_aw_close_l2_hit_core": lambda work: work.write_hits,
    "bif_sc_pmu_aw_close_l2_miss_core": lambda work: work.write_misses,
}


def event_type(asked: int) -> int:
    """The group of counters: the environment's, else ``asked``; a number that names no group becomes 2."""
    text = os.environ.get(OVERRIDE, "").strip()
    number = int(text) if text.lstrip("-").isdigit() else asked
    return number if number in EVENTS else PIPE_UTILIZATION


def counters_without_model(generation: str, event: int) -> list[str]:
    """Counters of a group that are 0 because nothing in the model corresponds to them."""
    return [name for name in COUNTERS[generation][event] if name not in _READINGS]


def write_pmu(launched: Launched, chip_callable: ChipCallable, event: int, folder: Path) -> Path:
    """Write the counters of group ``event``, one row per task and core, by thread and core."""
    path = folder / FILE
    names = COUNTERS[launched.known_chip.generation][event]
    fixed = ["thread_id", "core_id", "task_id", "func_id", "core_type", "pmu_total_cycles"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*fixed, *names, "event_type"])
        for place, work in _rows(launched, chip_callable):
            readings = [_READINGS[name](work) if name in _READINGS else 0 for name in names]
            writer.writerow([*place, work.cycles, *readings, event])
    return path


def _rows(launched: Launched, chip_callable: ChipCallable) -> Iterator[tuple[list[Any], Work]]:
    """(thread, core, task, function, core type) of every subtask with what it did."""
    from pypto.sim.recording import AIC
    from pypto.sim.timing import words as x

    recording, ids = launched.known_recording, function_ids(chip_callable)
    tokens, played = task_tokens(recording), play_again(launched)
    core_of = played.index_of(x.CORES, played.subtasks[:, x.SUB_CORE], played.cores.shape[1])
    task_of = np.repeat(np.arange(len(tokens)), np.diff(recording.subtask_start))
    threads = played.cores[core_of, x.OWNER]
    for sub in np.lexsort((played.subtasks[:, x.SUB_START], core_of, threads)).tolist():
        program = recording.programs[int(recording.subtask_program[sub])]
        token, core_type = f"0x{tokens[task_of[sub]]:016x}", 0 if program.core == AIC else 1
        place = [int(threads[sub]), int(core_of[sub]), token, ids.get(program.name, -1), core_type]
        rows = played.rows[int(recording.subtask_trace_start[sub]) : int(recording.subtask_trace_stop[sub])]
        yield place, _work(launched, rows, int(played.subtasks[sub, x.SUB_END] - played.subtasks[sub, x.SUB_START]))


def _work(launched: Launched, rows: Ints, time_ps: int) -> Work:
    from pypto.sim.timing import codes as c
    from pypto.sim.timing import words as x
    from pypto.sim.timing.timeline import PIPE_NAMES

    chip = launched.known_chip
    pipes = np.bincount(rows[:, x.WHAT] >> x.PIPE_SHIFT & x.BYTE, rows[:, x.WORK], c.PIPE_COUNT)
    pipes[c.S] += rows[:, x.SCALARS].sum()
    moves = rows[(rows[:, x.WHAT] & x.BYTE) == c.TRANSFER]
    path = moves[:, x.WHAT] >> x.PATH_SHIFT & x.BYTE
    reads = (path == c.PATH_GM_UB) | (path == c.PATH_GM_L1)

    def cycles(ps: float) -> int:
        return round(ps * chip.clock_mhz / 1e6)

    def lines(chosen: NDArray[np.bool_]) -> tuple[int, int]:
        line_bytes = int(chip.memory.l2_line_bytes.value)
        moved, missed = int(moves[chosen, x.BYTES].sum()), int(moves[chosen, x.MISSED].sum())
        return -(-max(moved - missed, 0) // line_bytes), -(-missed // line_bytes)

    busy = {name: cycles(pipes[code]) for code, name in enumerate(PIPE_NAMES)}
    return Work(cycles(time_ps), busy, *lines(reads), *lines(~reads))
