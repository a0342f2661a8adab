"""What one launch did, without the values: the only input of the timing engine.

All arrays are ``int64`` unless stated. CSR pairs are named ``x_start`` (length n+1) and ``x`` (flat).
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pypto.sim.chips import Chip
    from pypto.sim.timing import DeviceState, Timeline

Words = NDArray[np.int64]
FORMAT: Final = 1  # of the files that Recording.save writes
# what reading a file raises that is cut, altered or something else
_UNREADABLE: Final = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error,
    RuntimeError,  # flags of an archive: encrypted, another version, another compression
)  # fmt: skip

# kinds of task
AIV, AIC, MIX, DUMMY = 0, 1, 2, 3
# kinds of orchestrator event; row = (kind, a, b, c)
SUBMIT = 0  # a = task, b = tensor arguments, c = scalar arguments
ALLOC = 1  # a = bytes, b = ring, c = allocation id
SCOPE_BEGIN = 2  # a = depth, b = 0 auto / 1 manual
SCOPE_END = 3  # a = depth
READ_WAIT = 4  # a = task whose completion the orchestrator waits for (-1: none), b = 0 read / 1 write
SCALAR = 5  # a = scalar instructions executed
# task flags
EARLY_RESOLVE, SYNC_START, PREDICATE_FALSE = 1, 2, 4


@dataclass
class ProgramRecord:
    """Static facts of one kernel program, one row per instruction (pc).

    ``tiles`` rows: space code, byte offset, bytes, rows, cols, row stride (elements), dtype code, layout code, slots,
    slot pitch (bytes). A tile with one slot may leave the last two out.
    ``mnemonic`` indexes ``mnemonics``. Scalar instructions have pipe S and are not traced, except ``sload`` and
    ``sstore``: they wait for a tile or for global memory.
    """

    name: str
    core: int  # AIV or AIC
    mnemonics: list[str]
    mnemonic: Words  # per pc
    pipe: Words  # per pc, codes of sim.layout.PIPES
    dtype: Words  # per pc, dtype code of the work operand
    dtype_out: Words  # per pc, dtype code of the destination
    line: Words  # per pc, source line (0: none)
    reads_start: Words
    reads: Words  # tile ids read per pc
    writes_start: Words
    writes: Words  # tile ids written per pc
    tiles: NDArray[np.int64]
    attributes: list[dict[str, int]]  # per pc, decoded attribute words


@dataclass(repr=False)
class Recording:
    """One launch: programs, traces of the subtasks, task graph, orchestrator events."""

    name: str
    platform: str
    programs: list[ProgramRecord]
    trace: NDArray[np.int64]  # [rows, 8], sim.layout.TRACE_*
    # tasks, in submit order
    task_name: list[str]
    task_kind: Words
    task_blocks: Words
    task_flags: Words
    task_tensors: Words  # tensor arguments
    task_scalars: Words  # scalar arguments
    task_lookups: Words  # tensor-map look-ups made for it
    task_scope: Words  # nesting depth of its runtime scope
    deps_start: Words
    deps: Words  # producers (task indices) per task
    deps_kind: Words  # 0 inferred, 1 explicit, 2 creator of the tensor
    # subtasks: one per block and member core
    subtask_start: Words  # CSR per task
    subtask_program: Words
    subtask_block: Words
    subtask_lane: Words  # 0 for AIC and AIV0, 1 for AIV1
    subtask_trace_start: Words
    subtask_trace_stop: Words
    events: NDArray[np.int64]  # [rows, 4] orchestrator events in program order
    # host side: (bytes, is_input, is_output, is_resident) per tensor argument
    arguments: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    allocations: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """GM allocations: id, first address (stable, renumbered from 0 in order of appearance), bytes."""
    task_slot: Words = field(default_factory=lambda: np.zeros(0, np.int64))
    """Task-timing slot per task, 0 to 15, -1 for none; empty when no task has one."""

    def __repr__(self) -> str:
        counts = (
            f"{len(self.task_name):,} tasks, {len(self.subtask_program):,} blocks, {len(self.trace):,} instructions"
        )
        return f"Recording({self.name!r} on {self.platform}: {counts})"

    def time(self, chip: Chip | None = None, state: DeviceState | None = None) -> Timeline:
        """When everything happened on ``chip`` (default: the one recorded on); caches are cold without a ``state``."""
        from pypto.sim.chips import Chip
        from pypto.sim.chips import chip as named
        from pypto.sim.timing import DeviceState, time_recording

        if state is not None and not isinstance(state, DeviceState):
            raise TypeError(f"state is a DeviceState, which launches fill, or None for cold caches, got {state!r}")
        if chip is not None and not isinstance(chip, Chip):
            raise TypeError(f"a recording is timed on a description such as chip('a2a3'), got {chip!r}")
        return time_recording(self, chip if chip is not None else named(self.platform), state)

    def save(self, path: Path | str) -> None:
        """Write an ``.npz`` file: every array under its name, the rest as JSON under ``facts``."""
        arrays, facts = self._split()
        data = np.frombuffer(json.dumps({"format": FORMAT, **facts}, sort_keys=True).encode(), np.uint8)
        with open(path, "wb") as file:
            np.savez_compressed(file, facts=data, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path | str) -> Recording:
        """Read what :meth:`save` wrote; ``ValueError`` names a file that is something else."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            facts = json.loads(arrays.pop("facts").tobytes())
            version = facts.pop("format", None)
        except FileNotFoundError:
            raise
        except _UNREADABLE as error:
            raise ValueError(f"{path}: no recording: it is not a file that Recording.save wrote") from error
        if version != FORMAT:
            raise ValueError(f"{path}: a recording of version {version}, read is {FORMAT}; run the program again")
        try:
            about = facts.pop("programs")
            programs = [_join(ProgramRecord, f"programs.{index}.", arrays, one) for index, one in enumerate(about)]
            recording: Recording = _join(cls, "", arrays, {**facts, "programs": programs})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: a damaged recording: {error} is missing; record again") from None
        for fault in _faults(recording):
            raise ValueError(f"{path}: a damaged recording: {fault}; record again")
        return recording

    def digest(self) -> str:
        """Hash of the content: equal recordings, equal digests, on every machine and in every run."""
        arrays, facts = self._split()
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name], "<i8")
            digest.update(f"{name}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def _split(self) -> tuple[dict[str, Words], dict[str, Any]]:
        arrays, facts = _take_apart(self, "")
        programs = []
        for index, program in enumerate(self.programs):
            more, about = _take_apart(program, f"programs.{index}.")
            arrays.update(more)
            programs.append(about)
        return arrays, {**facts, "programs": programs}


def _take_apart(record: ProgramRecord | Recording, prefix: str) -> tuple[dict[str, Words], dict[str, Any]]:
    """Arrays and plain values of a record; nested records are left out."""
    arrays, facts = {}, {}
    for item in fields(record):
        value = getattr(record, item.name)
        if isinstance(value, np.ndarray):
            arrays[prefix + item.name] = value
        elif item.name != "programs":
            facts[item.name] = value
    return arrays, facts


def _join(kind: Any, prefix: str, arrays: Mapping[str, Words], facts: Mapping[str, Any]) -> Any:
    names = [item.name for item in fields(kind)]
    return kind(**{name: facts[name] if name in facts else arrays[prefix + name] for name in names})


def _faults(r: Recording) -> Iterator[str]:
    """Arrays that do not fit one another: lengths, and references out of range."""
    tasks, subtasks = len(r.task_name), len(r.subtask_program)
    lengths = {
        **dict.fromkeys(("task_kind", "task_blocks", "task_flags", "task_tensors", "task_scalars", "task_lookups",
                         "task_scope"), tasks),
        **dict.fromkeys(("deps_start", "subtask_start"), tasks + 1), "deps_kind": len(r.deps),
        **dict.fromkeys(("subtask_block", "subtask_lane", "subtask_trace_start", "subtask_trace_stop"), subtasks),
    }  # fmt: skip
    for name, length in lengths.items():
        if len(getattr(r, name)) != length:
            yield f"{name} has {len(getattr(r, name))} entries, expected {length}"
    below = {
        "deps": tasks, "subtask_program": len(r.programs), "deps_start": len(r.deps) + 1, "subtask_start": subtasks + 1,
        "subtask_trace_start": len(r.trace) + 1, "subtask_trace_stop": len(r.trace) + 1,
    }  # fmt: skip
    for name, limit in below.items():
        values = getattr(r, name)
        if len(values) and not (values.min() >= 0 and values.max() < limit):
            yield f"{name} refers to {values.min()} to {values.max()}, there are {limit}"
    for program in r.programs:
        yield from (f"{program.name}: {fault}" for fault in _program_faults(program))


def _program_faults(p: ProgramRecord) -> Iterator[str]:
    size = len(p.mnemonic)
    expected = {"pipe": size, "dtype": size, "dtype_out": size, "line": size, "attributes": size,
                "reads_start": size + 1, "writes_start": size + 1}  # fmt: skip
    for name, length in expected.items():
        if len(getattr(p, name)) != length:
            yield f"{name} has {len(getattr(p, name))} entries, expected {length}"
    below = {"mnemonic": len(p.mnemonics), "reads": len(p.tiles), "writes": len(p.tiles),
             "reads_start": len(p.reads) + 1, "writes_start": len(p.writes) + 1}  # fmt: skip
    for name, limit in below.items():
        values = getattr(p, name)
        if len(values) and not (values.min() >= 0 and values.max() < limit):
            yield f"{name} refers to {values.min()} to {values.max()}, there are {limit}"
