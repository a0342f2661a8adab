"""Counters of a core against closed forms, on launches written by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from pypto.runtime.dfx.pmu import _READINGS, COUNTERS, _stalls, counters_without_model
from pypto.runtime.dfx.pmu_work import work_of
from pypto.sim.chips import chip
from pypto.sim.timing import time_recording
from pypto.sim.timing import words as x
from pypto.sim.timing.launch import play
from pypto.validation.writer import AIC, Kernel, one


def counted(kernel, target="a2a3"):
    """The work of a kernel alone on a core."""
    recording, where = one(kernel), chip(target)
    played = play(recording, where, None, 0)
    time_ps = int(played.subtasks[0, x.SUB_END] - played.subtasks[0, x.SUB_START])
    return work_of(recording.programs[0], recording.trace, played.rows, time_ps, where)


def readings(work, generation="a2a3"):
    return {name: _READINGS[name](work) for group in COUNTERS[generation].values() for name in group
            if name in _READINGS}  # fmt: skip


def test_a_matrix_multiply_reads_its_operands_and_writes_its_accumulator():
    k = Kernel(core=AIC)
    a, b = k.tile(128, 64, "fp16", "mat"), k.tile(64, 256, "fp16", "mat")
    left, right = k.tile(128, 64, "fp16", "left"), k.tile(64, 256, "fp16", "right")
    acc = k.tile(128, 256, "fp32", "acc")
    k.load(a, 0).load(b, 1 << 20)
    k.do("tmov", [left], [a]).do("tmov", [right], [b])
    k.matmul(acc, left, right).matmul(acc, left, right, first=False)
    k.do("tstore", reads=[acc], report=(1 << 21, 128, 1024, 1024), valid=(128, 256))
    found = readings(counted(k))
    a_blocks, b_blocks, acc_blocks = 128 * 64 * 2 // 32, 64 * 256 * 2 // 32, 128 * 256 * 4 // 32
    assert found["l1_write_req"] == found["l1_read_req"] == a_blocks + b_blocks
    assert (found["l0a_write_req"], found["l0b_write_req"]) == (a_blocks, b_blocks)
    assert (found["l0a_read_req"], found["l0b_read_req"]) == (2 * a_blocks, 2 * b_blocks)
    assert (found["l0c_write_req"], found["l0c_read_req"]) == (2 * acc_blocks, 2 * acc_blocks)
    assert found["cube_fp16_exec"] == found["cube_busy_cycles"] > 2 * 512 and found["cube_int8_exec"] == 0
    later = readings(counted(k, "a5"), "a5")
    assert (later["pmu_wr_l0a_instr"], later["cube_sc_pmu_read_l0a_instr"]) == (1, 2)
    assert (later["cube_sc_pmu_read_l0c_instr"], later["fixp_rd_l0c_instr"]) == (1, 1)


@pytest.mark.parametrize(
    "dtype,name", [("fp32", "vec_fp32_exec"), ("fp16", "vec_fp16_128lane_exec"), ("int32", "vec_int32_exec")]
)
def test_the_vector_pipe_is_busy_with_one_class_at_a_time(dtype, name):
    k = Kernel()
    tile, other = k.tile(32, 64, dtype), k.tile(32, 64, dtype)
    k.load(tile, 0).do("tadds", [other], [tile]).store(other, 1 << 20)
    found = readings(counted(k))
    blocks = k.tiles[tile][2] // 32
    assert found[name] == found["vec_busy_cycles"] > 0
    assert found["ub_read_bw_vector"] == found["ub_write_bw_vector"] == blocks
    assert found["ub_write_bw_mte"] == found["ub_read_bw_mte"] == blocks
    assert found["ub_read_req"] == found["ub_write_req"] == 2 * blocks


def test_lines_written_back_are_counted_by_who_evicts_them():
    small = chip("a2a3").replace(l2_bytes=1 << 20)
    k = Kernel()
    tile = k.tile(64, 256)
    for i in range(64):
        k.store(tile, i * 65536)
    recording = one(k)
    played = play(recording, small, None, 0)
    work = work_of(recording.programs[0], recording.trace, played.rows, 1, small)
    assert (work.write_misses, work.write_hits) == (64 * 128, 0) and work.evicted_reading == 0
    assert work.evicted_writing == 64 * 128 - (1 << 20) // 512


@pytest.mark.parametrize(
    "second,result,groups,banks", [(0x10100, 0x20000, 0, 0), (0x4000, 0x10000, 64, 0), (0x10100, 0x4020, 0, 51)]
)
def test_bank_stalls_are_what_the_same_launch_takes_longer(second, result, groups, banks):
    k = Kernel()
    a, b, d = (k.tile(64, 64, "fp32", at=at) for at in (0, second, result))
    k.do("tadd", [d], [a, b])
    recording, target = one(k), chip("a2a3")
    launched = SimpleNamespace(
        known_recording=recording, known_chip=target, state_before=None, told=None,
        known_timeline=time_recording(recording, target),
    )  # fmt: skip
    found = [int(stall.sum()) for stall in _stalls(launched)]
    assert found == [groups, banks]


def test_few_counters_are_without_a_model():
    missing = {g: [n for event in COUNTERS[g] for n in counters_without_model(g, event)] for g in COUNTERS}
    assert missing == {
        "a2a3": ["vec_resc_conflict_cycles", "r1_read_cache_hit", "r1_read_cache_miss_allocate"],
        "a5": ["stu_pmu_wctl_ub_cflt"],
    }
    assert set(_READINGS) <= {name for events in COUNTERS.values() for names in events.values() for name in names}
    assert np.all([callable(reading) for reading in _READINGS.values()])
