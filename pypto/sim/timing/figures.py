"""A chip's constants in the units of the engine: ps, bytes and bytes per ps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pypto.sim.chips import Chip
from pypto.sim.chips.description import Constant

from . import words as x

Ints = NDArray[np.int64]
PS_PER_US = 1_000_000


def _ps(ns: float) -> int:
    return round(ns * 1000)


def write_figures(m: Ints, f: NDArray[np.float64], chip: Chip) -> None:
    """Fill the header words that hold constants; ``f`` are the words of ``m`` as floats."""
    _write_core(m, chip)
    _write_memory(m, f, chip)
    for word, constant in _runtime_costs(chip):
        m[word] = _ps(constant.value)
    r = chip.runtime
    m[x.WINDOW], m[x.HEAP_BYTES], m[x.RINGS] = int(r.ring_window.value), int(r.ring_heap.value), int(r.rings.value)
    m[x.THREADS] = int(chip.cores.scheduler_threads.value)


def _write_core(m: Ints, chip: Chip) -> None:
    cycle = PS_PER_US / chip.clock_mhz
    m[x.FLAG], m[x.CROSS] = round(chip.sync.pipe_to_pipe.value * cycle), round(chip.sync.cross_core.value * cycle)
    m[x.CUBE_START] = round(chip.cube.start.value * cycle)
    m[x.CUBE_FOLLOW] = round(chip.cube.back_to_back.value * cycle)
    m[x.QUEUE_DEPTH] = int(chip.cores.pipe_queue_depth.value)
    m[x.CLUSTERS], m[x.LANES] = chip.clusters, int(chip.cores.vectors_per_cluster.value)
    m[x.REMOTE_FREE], m[x.CUBE_SLOWED] = int(chip.link.free_cores.value), x.WHOLE_SPEED
    m[x.REMOTE_SLOWS] = round((chip.link.cube_slowdown.value - 1) * x.WHOLE_SPEED)


def _write_memory(m: Ints, f: NDArray[np.float64], chip: Chip) -> None:
    memory = chip.memory
    m[x.LINE_SHIFT] = int(memory.l2_line_bytes.value).bit_length() - 1
    m[x.L2_LINES] = int(memory.l2_bytes.value // memory.l2_line_bytes.value)
    m[x.LONG_ROW] = int(memory.same_line_row.value)
    f[x.LINES_HELD] = memory.same_line_lasts.value
    f[x.TOGETHER_VECTOR] = memory.same_line_vector.value - 1
    f[x.TOGETHER_CUBE] = memory.same_line_cube.value - 1
    # cores that arrive one after the other meet half of the others: all of them are a full crowd
    f[x.TOGETHER_READER] = 2 / max(chip.cores.clusters.value - 1, 1)
    f[x.L1_READ_SLOWS] = chip.mte1.slows_loads.value - 1
    f[x.EVICTION_WEIGHT] = memory.hbm_gbps.value / memory.hbm_write_back_gbps.value


def _runtime_costs(chip: Chip) -> tuple[tuple[int, Constant], ...]:
    """Header words of the task runtime that are times."""
    r = chip.runtime
    return (
        (x.SUBMIT_COST, r.submit),
        (x.LOOKUP, r.submit_lookup),
        (x.INSERT, r.submit_insert),
        (x.EDGE, r.submit_edge),
        (x.SCALAR_ARGUMENT, r.submit_scalar),
        (x.ALLOC, r.alloc),
        (x.SCOPE_END, r.scope_end),
        (x.SCOPE_END_TASK, r.scope_end_task),
        (x.INSTRUCTION, r.orchestrator_instruction),
        (x.POLL, r.poll),
        (x.IDLE_LOOP, r.idle_loop),
        (x.COMPLETE_COST, r.complete),
        (x.COMPLETE_FIRST, r.complete_first),
        (x.COMPLETE_CONSUMER, r.complete_consumer),
        (x.DISPATCH_COST, r.dispatch),
        (x.STORE, r.dispatch_store),
        (x.DOORBELL, r.doorbell),
        (x.SETUP, r.core_setup),
        (x.STAGED_SETUP, r.core_setup_staged),
        (x.PICKUP, r.core_pickup),
        (x.VISIBLE, r.finish_visible),
        (x.DUMMY_COST, r.dummy),
        (x.SYNC_START_COST, r.sync_start),
    )


def cold_setup(chip: Chip) -> Ints:
    """Set-up of the first task per core, with the published least, median and most over the cores of a chip.

    Which cores are far is not published: the clusters are taken to lie in two rows, each numbered from its near end.
    """
    r = chip.runtime
    figures = r.core_cold_min.value, r.core_cold_median.value, r.core_cold_max.value
    along_row = np.arange(chip.clusters) % max(chip.clusters // 2, 1)
    rank = np.argsort(np.argsort(along_row, kind="stable"), kind="stable")
    setup_ns = np.interp((rank + 0.5) / chip.clusters, (0, 0.5, 1), figures)
    return np.repeat(np.rint(setup_ns * 1000).astype(np.int64), 1 + int(chip.cores.vectors_per_cluster.value))


def rates(chip: Chip) -> tuple[list[float], list[float]]:
    """Bytes per ps per class: of one transfer alone, and of the pool. One GB/s is a byte per ns."""
    memory, per_cycle = chip.memory, chip.clock_mhz / PS_PER_US
    evictions = memory.hbm_gbps.value / 1000
    path = [
        chip.gm_ub.miss_rate.value * per_cycle,
        chip.gm_l1_nd2nz.miss_rate.value * per_cycle,
        evictions,
        chip.gm_ub.hit_rate.value * per_cycle,
        chip.gm_l1_nd2nz.hit_rate.value * per_cycle,
        chip.ub_gm.hit_rate.value * per_cycle,
        chip.l0c_gm.hit_rate.value * per_cycle,
    ]
    vector, cube = memory.l2_vector_gbps.value / 1000, memory.l2_cube_gbps.value / 1000
    pool = [memory.hbm_gbps.value / 1000, memory.hbm_nd2nz_gbps.value / 1000, evictions, vector, cube, vector, cube]
    return path, pool
