"""``pmu.csv``: what the counters of a core would show for every task (spec runtime 13.7, profiling 5.9).

Cycles of pipes, of classes of instructions and of bank conflicts, accesses to the memories of a core, lines of the L2
by hit and miss, instructions. An instruction cache is modelled as far as an instruction misses the first time a core
fetches it in a launch. Counters of what the model lacks are 0, and the launch says which: a second read port of the L2,
waits for resources of the vector unit other than banks, conflicts of stores on the later generation.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.runtime.callable import ChipCallable
from pypto.runtime.dfx.kernel_names import function_ids, task_tokens
from pypto.runtime.dfx.pmu_work import Work, work_of
from pypto.runtime.dfx.replay import play_again
from pypto.sim.layout import PIPES, TRACE_PC, TRACE_SCALARS, TRACE_SLOT_SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pypto.runtime.launch import Launched

    Ints = NDArray[np.int64]

FILE: Final = "pmu.csv"
OVERRIDE: Final = "SIMPLER_PMU_EVENT_TYPE"
PIPE_UTILIZATION: Final = 2
CONFLICTS: Final = 6
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


# figures of chips whose vector instructions never wait for bank groups, and never for banks
_NO_CLASHES: Final[dict[str, tuple[dict[str, float], dict[str, float]]]] = {
    "a2a3": ({"vector.clash": 0.0}, {"vector.write_clash": 0.0}),
    "a5": ({"vector.accesses": 64.0}, {}),
}

Reading = Callable[[Work], int]


def _busy(pipe: str) -> Reading:
    return lambda work: work.pipes[pipe]


def _executed(*classes: str) -> Reading:
    return lambda work: sum(work.executed[name] for name in classes)


def _blocks(space: str, direction: str, *pipes: str) -> Reading:
    return lambda work: work.blocks_of(space, direction, *pipes)


def _instructions(space: str, direction: str, *pipes: str) -> Reading:
    return lambda work: work.instructions_of(space, direction, *pipes)


_READINGS: Final[dict[str, Reading]] = {
    # arithmetic, in cycles
    "cube_fp16_exec": _executed("cube_float"),
    "cube_int8_exec": _executed("cube_int"),
    "vec_fp32_exec": _executed("vec_fp32"),
    "vec_fp16_128lane_exec": _executed("vec_half_128"),
    "vec_fp16_64lane_exec": _executed("vec_half_64"),
    "vec_int32_exec": _executed("vec_int32"),
    "vec_misc_exec": _executed("vec_misc"),
    "cube_fp_instr_busy": _executed("cube_float"),
    "cube_int_instr_busy": _executed("cube_int"),
    # pipes, in cycles; fetches, in instructions
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
    "pmu_idc_aic_vec_instr_vf_busy_o": _busy("V"),
    "icache_req": lambda work: work.issued,
    "icache_miss": lambda work: work.fetched_first,
    "idu_pmu_ins_iss_cnt": lambda work: work.issued,
    # memories on chip, in blocks or instructions
    "ub_read_req": _blocks("vec", "read"),
    "ub_write_req": _blocks("vec", "write"),
    "l1_read_req": _blocks("mat", "read"),
    "l1_write_req": _blocks("mat", "write"),
    "l0a_read_req": _blocks("left", "read"),
    "l0a_write_req": _blocks("left", "write"),
    "l0b_read_req": _blocks("right", "read"),
    "l0b_write_req": _blocks("right", "write"),
    "l0c_read_req": _blocks("acc", "read"),
    "l0c_write_req": _blocks("acc", "write"),
    "ub_read_bw_mte": _blocks("vec", "read", "MTE3"),
    "ub_write_bw_mte": _blocks("vec", "write", "MTE2", "FIX"),
    "ub_read_bw_vector": _blocks("vec", "read", "V"),
    "ub_write_bw_vector": _blocks("vec", "write", "V"),
    "ub_read_bw_scalar": _blocks("vec", "read", "S"),
    "ub_write_bw_scalar": _blocks("vec", "write", "S"),
    "ub_pmu_vec_rd_ub_acc": _blocks("vec", "read", "V"),
    "ub_pmu_vec_wr_ub_acc": _blocks("vec", "write", "V"),
    "pmu_aiv_ext_rd_ub_instr": _instructions("vec", "read", "MTE3"),
    "pmu_aiv_ext_wr_ub_instr": _instructions("vec", "write", "MTE2"),
    "pmu_rd_acc_ub_instr_p": _instructions("vec", "read"),
    "pmu_wr_acc_ub_instr_p": _instructions("vec", "write"),
    "pmu_fix_wr_ub_instr": _instructions("vec", "write", "FIX"),
    "mte_sc_pmu_write_acc_ub_instr_0": _instructions("vec", "write", "MTE2"),
    "mte_sc_pmu_read_acc_ub_instr_0": _instructions("vec", "read", "MTE3"),
    "pmu_rd_l1_instr": _instructions("mat", "read"),
    "pmu_wr_l1_instr": _instructions("mat", "write"),
    "cube_sc_pmu_read_l0a_instr": _instructions("left", "read", "M"),
    "pmu_wr_l0a_instr": _instructions("left", "write"),
    "cube_sc_pmu_read_l0b_instr": _instructions("right", "read", "M"),
    "pmu_wr_l0b_instr": _instructions("right", "write"),
    "fixp_rd_l0c_instr": _instructions("acc", "read", "FIX"),
    "cube_sc_pmu_read_l0c_instr": _instructions("acc", "read", "M"),
    "cube_sc_pmu_write_l0c_instr": _instructions("acc", "write", "M"),
    # conflicts, in cycles
    "bankgroup_stall_cycles": lambda work: work.group_stall,
    "bank_stall_cycles": lambda work: work.bank_stall,
    "ldu_pmu_ib_ub_cflt": lambda work: work.group_stall,
    # L2 and memory, in lines
    "l2_read_req": lambda work: work.reads,
    "l2_write_req": lambda work: work.writes,
    "l2_write_bw": lambda work: work.writes,
    "main_read_req": lambda work: work.read_misses,
    "main_write_req": lambda work: work.evicted_reading + work.evicted_writing,
    "main_mem_write_bw": lambda work: work.evicted_reading + work.evicted_writing,
    "bif_sc_pmu_read_main_instr_core": lambda work: work.read_misses,
    "bif_sc_pmu_write_main_instr_core": lambda work: work.evicted_reading + work.evicted_writing,
    "write_cache_hit": lambda work: work.write_hits,
    "write_cache_miss_allocate": lambda work: work.write_misses,
    "r0_read_cache_hit": lambda work: work.read_hits,
    "r0_read_cache_miss_allocate": lambda work: work.read_misses,
    "bif_sc_pmu_ar_close_l2_hit_core": lambda work: work.read_hits,
    "bif_sc_pmu_ar_close_l2_miss_core": lambda work: work.read_misses,
    "bif_sc_pmu_ar_close_l2_victim_core": lambda work: work.evicted_reading,
    "bif_sc_pmu_aw_close_l2_hit_core": lambda work: work.write_hits,
    "bif_sc_pmu_aw_close_l2_miss_core": lambda work: work.write_misses,
    "bif_sc_pmu_aw_close_l2_victim_core": lambda work: work.evicted_writing,
}


def asked_number(asked: int) -> int:
    """The number of the group that is asked for: the environment's, else ``asked``."""
    text = os.environ.get(OVERRIDE, "").strip()
    return int(text) if text.lstrip("-").isdigit() else asked


def event_type(asked: int) -> int:
    """The group of counters that is asked for; a number that names no group becomes 2 (spec runtime 13.7)."""
    number = asked_number(asked)
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
        for place, work in _rows(launched, chip_callable, event):
            readings = [_READINGS[name](work) if name in _READINGS else 0 for name in names]
            writer.writerow([*place, work.cycles, *readings, event])
    return path


def _rows(launched: Launched, chip_callable: ChipCallable, event: int) -> Iterator[tuple[list[Any], Work]]:
    """(thread, core, task, function, core type) of every subtask with what it did."""
    from pypto.sim.recording import AIC
    from pypto.sim.timing import words as x

    recording, ids = launched.known_recording, function_ids(chip_callable)
    stalls = _stalls(launched) if event == CONFLICTS else None
    tokens, played = task_tokens(recording), play_again(launched)
    core_of = played.index_of(x.CORES, played.subtasks[:, x.SUB_CORE], played.cores.shape[1])
    task_of = np.repeat(np.arange(len(tokens)), np.diff(recording.subtask_start))
    threads = played.cores[core_of, x.OWNER]
    instructions = _Instructions()
    for sub in np.lexsort((played.subtasks[:, x.SUB_START], core_of, threads)).tolist():
        number = int(recording.subtask_program[sub])
        program = recording.programs[number]
        token, core_type = f"0x{tokens[task_of[sub]]:016x}", 0 if program.core == AIC else 1
        place = [int(threads[sub]), int(core_of[sub]), token, ids.get(program.name, -1), core_type]
        mine = slice(int(recording.subtask_trace_start[sub]), int(recording.subtask_trace_stop[sub]))
        time_ps = int(played.subtasks[sub, x.SUB_END] - played.subtasks[sub, x.SUB_START])
        work = work_of(program, recording.trace[mine], played.rows[mine], time_ps, launched.known_chip)
        work.issued, work.fetched_first = instructions.fetched(int(core_of[sub]), number, recording.trace[mine])
        if stalls is not None:
            work.group_stall, work.bank_stall = (int(cycles[mine].sum()) for cycles in stalls)
        yield place, work


class _Instructions:
    """Which instructions each core has fetched before; the cache of a core is cold when the launch begins."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], set[int]] = {}

    def fetched(self, core: int, program: int, trace: Ints) -> tuple[int, int]:
        """Instructions issued, those of scalar code between the rows included, and rows' instructions seen first."""
        seen = self._known.setdefault((core, program), set())
        pcs = set(np.unique(trace[trace[:, TRACE_PC] >= 0, TRACE_PC]).tolist())
        first = len(pcs - seen)
        seen |= pcs
        between = int((trace[:, TRACE_SCALARS] & ((1 << TRACE_SLOT_SHIFT) - 1)).sum())
        return int((trace[:, TRACE_PC] >= 0).sum()) + between, first


def _stalls(launched: Launched) -> tuple[Ints, Ints]:
    """Cycles per trace row lost to bank groups and to banks: what it takes longer than on a chip without them."""
    from pypto.sim.timing import words as x

    def on_a_chip_with(figures: dict[str, float]) -> Ints:
        return play_again(launched, changed=figures).rows[:, x.WORK].copy()

    full = play_again(launched).rows
    computed = (full[:, x.WHAT] >> x.PIPE_SHIFT & x.BYTE) == PIPES["V"]
    work, cycle_ps = full[:, x.WORK].copy(), 1e6 / launched.known_chip.clock_mhz
    groups, banks = _NO_CLASHES[launched.known_chip.generation]

    def lost(figures: dict[str, float]) -> Ints:
        if not figures:
            return np.zeros(len(work), np.int64)
        return np.where(computed, np.rint((work - on_a_chip_with(figures)) / cycle_ps), 0).astype(np.int64)

    return lost(groups), lost(banks)
