"""What the counters of a core see of one subtask, from the rows the timing engine has played.

On chip a request is a block of 32 bytes, the unit of every memory there (hardware 2.3); outside it is a line of the L2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim.layout import PIPES, SPACES, TRACE_PC, TRACE_REPORT, TRACE_VALID_COLS, TRACE_VALID_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pypto.sim.chips import Chip
    from pypto.sim.recording import ProgramRecord

    Ints = NDArray[np.int64]

_BLOCK: Final = 32
_SPACE_NAMES: Final = {code: name for name, code in SPACES.items()}
_PIPE_NAMES: Final = {code: name for name, code in PIPES.items()}


class Access(NamedTuple):
    """Who touched which memory in which direction: pipe, space (text names), ``read`` or ``write``."""

    pipe: str
    space: str
    direction: str


@dataclass
class Work:
    """What one subtask did. ``lines``: of the L2; ``evicted`` were written back to make room for its own.

    ``blocks`` and ``instructions`` count accesses to on-chip memory, ``executed`` cycles per class of instruction.
    """

    cycles: int
    pipes: dict[str, int]
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    evicted_reading: int
    evicted_writing: int
    issued: int
    fetched_first: int = 0
    blocks: Counter[Access] = field(default_factory=Counter)
    instructions: Counter[Access] = field(default_factory=Counter)
    executed: Counter[str] = field(default_factory=Counter)
    group_stall: int = 0
    bank_stall: int = 0

    @property
    def reads(self) -> int:
        return self.read_hits + self.read_misses

    @property
    def writes(self) -> int:
        return self.write_hits + self.write_misses

    def blocks_of(self, space: str, direction: str, *pipes: str) -> int:
        """Blocks of ``space`` moved in ``direction`` by ``pipes`` (all of them when none is named)."""
        return _total(self.blocks, space, direction, pipes)

    def instructions_of(self, space: str, direction: str, *pipes: str) -> int:
        """The same in instructions."""
        return _total(self.instructions, space, direction, pipes)


def _total(counts: Counter[Access], space: str, direction: str, pipes: tuple[str, ...]) -> int:
    return sum(
        count for at, count in counts.items()
        if at.space == space and at.direction == direction and (not pipes or at.pipe in pipes)
    )  # fmt: skip


def work_of(program: ProgramRecord, trace: Ints, rows: Ints, time_ps: int, chip: Chip) -> Work:
    """What the subtask with these trace and played rows did."""
    work = _times(rows, time_ps, chip)
    cycle_ps = 1e6 / chip.clock_mhz
    executed: Counter[str] = Counter()
    for pc in np.unique(trace[trace[:, TRACE_PC] >= 0, TRACE_PC]).tolist():
        mine = np.flatnonzero(trace[:, TRACE_PC] == pc)
        pipe = _PIPE_NAMES.get(int(program.pipe[pc]), "all")
        executed[_class_of(program, pc, pipe)] += rows[mine, _work_word()].sum()
        for access, nbytes in _accesses(program, pc, pipe, trace[mine]):
            work.blocks[access] += int(-(-nbytes // _BLOCK).sum())
            work.instructions[access] += len(mine)
    work.executed = Counter({name: round(float(ps) / cycle_ps) for name, ps in executed.items()})
    return work


def _work_word() -> int:
    from pypto.sim.timing import words

    return words.WORK


def _times(rows: Ints, time_ps: int, chip: Chip) -> Work:
    """Cycles per pipe and lines of the L2."""
    from pypto.sim.timing import codes as c
    from pypto.sim.timing import words as x
    from pypto.sim.timing.timeline import PIPE_NAMES

    kind, pipe = rows[:, x.WHAT] & x.BYTE, rows[:, x.WHAT] >> x.PIPE_SHIFT & x.BYTE
    by_scalar = kind == c.SCALAR_CODE
    pipes = np.bincount(np.where(by_scalar, c.S, pipe), rows[:, x.WORK], c.PIPE_COUNT)
    pipes += np.bincount(pipe[by_scalar], rows[by_scalar, x.FLAGS], c.PIPE_COUNT)
    pipes[c.S] += rows[:, x.SCALARS].sum()
    moves = rows[kind == c.TRANSFER]
    path = moves[:, x.WHAT] >> x.PATH_SHIFT & x.BYTE
    reads = (path == c.PATH_GM_UB) | (path == c.PATH_GM_L1)
    line_bytes = int(chip.memory.l2_line_bytes.value)

    def lines(chosen: NDArray[np.bool_], missing: int) -> tuple[int, int]:
        own = chosen & (moves[:, x.WHAT] & x.BETWEEN_CORES == 0)
        moved, missed = int(moves[chosen, x.BYTES].sum()), int(moves[own, missing].sum())
        return -(-max(moved - missed, 0) // line_bytes), -(-missed // line_bytes)

    def evicted(chosen: NDArray[np.bool_]) -> int:
        own = chosen & (moves[:, x.WHAT] & x.BETWEEN_CORES == 0)
        return int(moves[own, x.EVICTED].sum()) // line_bytes

    def cycles(ps: float) -> int:
        return round(ps * chip.clock_mhz / 1e6)

    busy = {name: cycles(pipes[code]) for code, name in enumerate(PIPE_NAMES)}
    hits_and_misses = (*lines(reads, x.MISSED), *lines(~reads, x.ALLOCATED))
    return Work(cycles(time_ps), busy, *hits_and_misses, evicted(reads), evicted(~reads), len(rows))


def _accesses(program: ProgramRecord, pc: int, pipe: str, trace: Ints) -> Iterator[tuple[Access, Any]]:
    """Bytes of each operand of an instruction that lies on chip, per row that executed it."""
    multiplies = program.mnemonics[program.mnemonic[pc]].startswith(("tmatmul", "tgemv"))
    for direction, start, flat in (
        ("read", program.reads_start, program.reads), ("write", program.writes_start, program.writes),
    ):  # fmt: skip
        for number in flat[start[pc] : start[pc + 1]]:
            tile = program.tiles[number]
            space = _SPACE_NAMES.get(int(tile[0]), "")
            if multiplies:
                elements = _multiplied(space, trace)
            else:
                elements = np.minimum(trace[:, TRACE_VALID_ROWS], int(tile[3])) * np.minimum(
                    trace[:, TRACE_VALID_COLS], int(tile[4])
                )
            bits = DataType.from_code(int(tile[6])).get_bit()
            yield Access(pipe, space, direction), (np.maximum(elements, 0) * bits + 7) // 8


def _multiplied(space: str, trace: Ints) -> Ints:
    """Elements a matrix multiply touches of its operand in ``space``; the report words hold m, k and n."""
    m, k, n = (trace[:, TRACE_REPORT + i] for i in (1, 2, 3))
    return m * k if space == "left" else (k * n if space == "right" else (n if space == "bias" else m * n))


def _class_of(program: ProgramRecord, pc: int, pipe: str) -> str:
    """Class of an arithmetic instruction by the type it works on."""
    if pipe not in ("M", "V"):
        return ""
    kind = DataType.from_code(int(program.dtype[pc]))
    if pipe == "M":
        left = [program.tiles[t] for t in program.reads[program.reads_start[pc] : program.reads_start[pc + 1]]]
        kinds = [DataType.from_code(int(t[6])) for t in left if _SPACE_NAMES.get(int(t[0])) == "left"]
        kind = kinds[0] if kinds else kind
        return "cube_float" if kind.is_float() else "cube_int"
    if kind.is_float() and kind.get_bit() == 16:
        wide = DataType.from_code(int(program.dtype_out[pc])).get_bit() == 32
        return "vec_half_64" if wide else "vec_half_128"
    if kind.get_bit() == 32:
        return "vec_fp32" if kind.is_float() else "vec_int32"
    return "vec_misc"
