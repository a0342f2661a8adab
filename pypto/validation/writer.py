"""Recordings written without running anything: what a launch would do, said in a few lines.

A published GEMM of 8192 cubed is a million tile instructions and needs no values to be timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto.ir.dtype import DataType
from pypto.ir.instructions import INSTRUCTIONS, pipe_of
from pypto.sim.layout import PIPES, SPACES
from pypto.sim.recording import AIC, AIV, DUMMY, MIX, SUBMIT, ProgramRecord, Recording


class Kernel:
    """A program and its trace: tiles, then instructions in program order."""

    def __init__(self, name: str = "k", core: int = AIV) -> None:
        self.name, self.core = name, core
        self.tiles: list[list[int]] = []
        self.spaces: list[str] = []
        self.dtypes: list[DataType] = []
        self.instructions: list[tuple[Any, ...]] = []
        self.trace: list[list[int]] = []
        self.known: dict[tuple[Any, ...], int] = {}

    def tile(
        self,
        rows: int,
        cols: int,
        dtype: str = "fp32",
        space: str = "vec",
        at: int | None = None,
        stride: int | None = None,
        slots: int = 1,
        pitch: int = 0,
    ) -> int:
        """Declare a tile; without ``at`` it follows the tiles of its space (512-byte aligned)."""
        kind = DataType.from_string(dtype)
        size = rows * (stride or cols) * kind.get_byte()
        if at is None:
            at = max([0] + [t[1] + t[2] * max(t[8], 1) for t, s in zip(self.tiles, self.spaces) if s == space])
            at = (at + 511) // 512 * 512
        self.tiles.append([SPACES[space], at, size, rows, cols, stride or cols, kind.code(), 0, slots, pitch])
        self.spaces.append(space)
        self.dtypes.append(kind)
        return len(self.tiles) - 1

    def do(
        self,
        mnemonic: str,
        writes: Sequence[int] = (),
        reads: Sequence[int] = (),
        valid: tuple[int, int] | None = None,
        report: tuple[int, int, int, int] = (0, 0, 0, 0),
        scalars: int = 0,
        slot: int = 0,
        dtype: DataType | None = None,
        dtype_out: DataType | None = None,
        pipe: str | None = None,
        **attributes: int,
    ) -> Kernel:
        """Append one executed instruction. ``valid`` defaults to the shape of the first tile."""
        row = INSTRUCTIONS.get(mnemonic)
        first = (list(writes) + list(reads) + [None])[0]
        if pipe is None:
            source = self.spaces[reads[-1]] if reads else "ddr"
            target = self.spaces[writes[0]] if writes else "ddr"
            pipe = pipe_of(row, source, target) if row else "S"
        kind = dtype or (self.dtypes[first] if first is not None else DataType.from_string("fp32"))
        out = dtype_out or (self.dtypes[writes[0]] if writes else kind)
        key = (mnemonic, tuple(writes), tuple(reads), pipe, kind, out, tuple(attributes.items()))
        if key not in self.known:
            self.known[key] = len(self.instructions)
            self.instructions.append(key)
        if valid is None:
            valid = (self.tiles[first][3], self.tiles[first][4]) if first is not None else (0, 0)
        self.trace.append([self.known[key], *valid, *report, scalars | slot << 32])
        return self

    def load(self, tile: int, address: int, **shape: int) -> Kernel:
        """``tload`` of the whole tile from ``address``, rows ``pitch`` bytes apart (contiguous by default)."""
        return self._copy("tload", tile, address, **shape)

    def store(self, tile: int, address: int, **shape: int) -> Kernel:
        """``tstore`` of the whole tile."""
        return self._copy("tstore", tile, address, **shape)

    def _copy(
        self,
        mnemonic: str,
        tile: int,
        address: int,
        slot: int = 0,
        rows: int | None = None,
        cols: int | None = None,
        pitch: int | None = None,
        scalars: int = 0,
    ) -> Kernel:
        rows, cols = rows or self.tiles[tile][3], cols or self.tiles[tile][4]
        width = cols * self.dtypes[tile].get_byte()
        report = (address, 1, rows * width, 0) if pitch is None else (address, rows, width, pitch)
        written, read = ([tile], []) if mnemonic == "tload" else ([], [tile])
        return self.do(mnemonic, written, read, valid=(rows, cols), report=report, slot=slot, scalars=scalars)

    def matmul(self, acc: int, left: int, right: int, first: bool = True, scalars: int = 0) -> Kernel:
        """``tmatmul``, or ``tmatmul_acc`` when it is not the ``first`` of its accumulator."""
        m, k = self.tiles[left][3:5]
        n = self.tiles[right][4]
        return self.do(
            "tmatmul" if first else "tmatmul_acc",
            [acc],
            ([] if first else [acc]) + [left, right],
            report=(0, m, k, n),
            scalars=scalars,
        )

    def program(self) -> ProgramRecord:
        """The static facts of the kernel."""
        mnemonics = sorted({i[0] for i in self.instructions})
        words: dict[str, list[int]] = {name: [] for name in ("mnemonic", "pipe", "dtype", "dtype_out", "line")}
        reads: list[int] = []
        writes: list[int] = []
        reads_start, writes_start = [0], [0]
        for mnemonic, written, read, pipe, kind, out, _ in self.instructions:
            words["mnemonic"].append(mnemonics.index(mnemonic))
            words["pipe"].append(PIPES[pipe])
            words["dtype"].append(kind.code())
            words["dtype_out"].append(out.code())
            words["line"].append(0)
            reads += read
            writes += written
            reads_start.append(len(reads))
            writes_start.append(len(writes))
        arrays = {k: np.array(v, np.int64) for k, v in words.items()}
        return ProgramRecord(
            self.name,
            self.core,
            mnemonics,
            **arrays,
            reads_start=np.array(reads_start),
            reads=np.array(reads, np.int64),
            writes_start=np.array(writes_start),
            writes=np.array(writes, np.int64),
            tiles=np.array(self.tiles, np.int64).reshape(-1, 10),
            attributes=[dict(i[6]) for i in self.instructions],
        )


class Launch:
    """Tasks in submit order."""

    def __init__(self, name: str = "launch") -> None:
        self.name = name
        self.tasks: list[dict[str, Any]] = []
        self.events: list[tuple[int, ...]] = []

    def submit(
        self,
        kernels: Any,
        deps: Sequence[int] = (),
        flags: int = 0,
        name: str | None = None,
        tensors: int = 2,
        lookups: int = 1,
        scalars: int = 0,
        kind: int | None = None,
        depth: int = 1,
    ) -> int:
        """One task. ``kernels``: one kernel, a list of blocks, or a list of lists (members of each block)."""
        blocks = kernels if isinstance(kernels, list) else [kernels]
        members = [b if isinstance(b, list) else [b] for b in blocks]
        if kind is None:
            first = members[0] if members else []
            kind = DUMMY if not first else (MIX if len(first) > 1 else first[0].core)
        index = len(self.tasks)
        self.tasks.append(
            {
                "members": members,
                "deps": list(deps),
                "flags": flags,
                "kind": kind,
                "tensors": tensors,
                "lookups": lookups,
                "scalars": scalars,
                "depth": depth,
                "name": name or f"task{index}",
            }
        )
        self.events.append((SUBMIT, index, tensors, scalars))
        return index

    def recording(self, memory: int = 1 << 30, platform: str = "a2a3") -> Recording:
        """The launch over one allocation of ``memory`` bytes at address 0."""
        kernels: list[Kernel] = []
        trace: list[list[int]] = []
        program: list[int] = []
        block: list[int] = []
        lane: list[int] = []
        start: list[int] = []
        stop: list[int] = []
        sub_start = [0]
        for task in self.tasks:
            for b, members in enumerate(task["members"]):
                vectors = 0
                for kernel in members:
                    if kernel not in kernels:
                        kernels.append(kernel)
                    start.append(len(trace))
                    trace += kernel.trace
                    trace.append([-1, 0, 0, 0, 0, 0, 0, 0])
                    stop.append(len(trace))
                    program.append(kernels.index(kernel))
                    block.append(b)
                    lane.append(vectors if kernel.core == AIV else 0)
                    vectors += kernel.core == AIV
            sub_start.append(len(program))
        deps_start = np.cumsum([0] + [len(t["deps"]) for t in self.tasks])

        def words(values: Any) -> Any:
            return np.array(list(values), np.int64)

        return Recording(
            self.name,
            platform,
            [k.program() for k in kernels],
            np.array(trace, np.int64).reshape(-1, 8),
            [t["name"] for t in self.tasks],
            words(t["kind"] for t in self.tasks),
            words(max(len(t["members"]), 1) for t in self.tasks),
            words(t["flags"] for t in self.tasks),
            words(t["tensors"] for t in self.tasks),
            words(t["scalars"] for t in self.tasks),
            words(t["lookups"] for t in self.tasks),
            words(t["depth"] for t in self.tasks),
            words(deps_start),
            words(d for t in self.tasks for d in t["deps"]),
            words(0 for t in self.tasks for _ in t["deps"]),
            words(sub_start),
            words(program),
            words(block),
            words(lane),
            words(start),
            words(stop),
            np.array(self.events, np.int64).reshape(-1, 4),
            allocations=np.array([[0, 0, memory]], np.int64),
        )


def one(kernel: Kernel, **options: Any) -> Recording:
    """A launch of one kernel as one task."""
    launch = Launch()
    launch.submit(kernel, **options)
    return launch.recording()


__all__ = ["AIC", "AIV", "Kernel", "Launch", "one"]
