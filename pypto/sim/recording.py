"""What one launch did, without the values: the only input of the timing engine.

All arrays are ``int64`` unless stated. CSR pairs are named ``x_start`` (length n+1) and ``x`` (flat).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]

# kinds of task
AIV, AIC, MIX, DUMMY = 0, 1, 2, 3
# kinds of orchestrator event; row = (kind, a, b, c)
SUBMIT = 0        # a = task, b = tensor arguments, c = scalar arguments
ALLOC = 1         # a = bytes, b = ring, c = allocation id
SCOPE_BEGIN = 2   # a = depth, b = 0 auto / 1 manual
SCOPE_END = 3     # a = depth
READ_WAIT = 4     # a = task whose completion the orchestrator waits for (-1: none), b = 0 read / 1 write
SCALAR = 5        # a = scalar instructions executed
# task flags
EARLY_RESOLVE, SYNC_START, PREDICATE_FALSE = 1, 2, 4


@dataclass
class ProgramRecord:
    """Static facts of one kernel program, one row per instruction (pc).

    ``tiles`` rows: space code, byte offset, bytes, rows, cols, row stride (elements), dtype code, layout code.
    ``mnemonic`` indexes ``mnemonics``; scalar instructions have pipe S and are not traced.
    """

    name: str
    core: int                       # AIV or AIC
    mnemonics: list[str]
    mnemonic: Words                 # per pc
    pipe: Words                     # per pc, codes of sim.layout.PIPES
    dtype: Words                    # per pc, dtype code of the work operand
    dtype_out: Words                # per pc, dtype code of the destination
    line: Words                     # per pc, source line (0: none)
    reads_start: Words
    reads: Words                    # tile ids read per pc
    writes_start: Words
    writes: Words                   # tile ids written per pc
    tiles: NDArray[np.int64]
    attributes: list[dict[str, int]]  # per pc, decoded attribute words


@dataclass
class Recording:
    """One launch: programs, traces of the subtasks, task graph, orchestrator events."""

    name: str
    platform: str
    programs: list[ProgramRecord]
    trace: NDArray[np.int64]        # [rows, 8], sim.layout.TRACE_*
    # tasks, in submit order
    task_name: list[str]
    task_kind: Words
    task_blocks: Words
    task_flags: Words
    task_tensors: Words             # tensor arguments
    task_scalars: Words             # scalar arguments
    task_lookups: Words             # tensor-map look-ups made for it
    task_scope: Words               # nesting depth of its runtime scope
    deps_start: Words
    deps: Words                     # producers (task indices) per task
    deps_kind: Words                # 0 inferred, 1 explicit
    # subtasks: one per block and member core
    subtask_start: Words            # CSR per task
    subtask_program: Words
    subtask_block: Words
    subtask_lane: Words             # 0 for AIC and AIV0, 1 for AIV1
    subtask_trace_start: Words
    subtask_trace_stop: Words
    events: NDArray[np.int64]       # [rows, 4] orchestrator events in program order
    # host side: (bytes, is_input, is_output, is_resident) per tensor argument
    arguments: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    allocations: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """GM allocations: id, first address (stable, renumbered from 0 in order of appearance), bytes."""
