"""``compare_precision``: a program beside itself with float64 tiles; where does the error first leave a bound?

The program runs once. Beside every tile and every tensor a float64 copy is kept; after each tile instruction the same
operation is done on the copies (:mod:`pypto.sim.reference`), and the two results are compared. Operations without a
float64 form (comparisons, gathers, sorts, integers) take over what the program computed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.ir.dtype import BF16, FP16, FP32, DataType
from pypto.sim import layout, reference
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.facts import instruction_facts
from pypto.sim.checks.findings import Location
from pypto.sim.checks.places import location, operation
from pypto.sim.checks.selection import Checks
from pypto.sim.memory import memory_view

if TYPE_CHECKING:
    from pypto.sim.frames import Frame
    from pypto.sim.tile_program import TileProgram

Array = reference.Array
_FLOATS: Final = (FP32, FP16, BF16)
_DEFAULT_BOUND: Final = {FP32: 1e-4, FP16: 1e-2, BF16: 5e-2}


@dataclass(frozen=True)
class Deviation:
    """The worst element of one result: ``error`` is relative to the larger of its magnitude and the tile's mean."""

    operation: str
    task: str
    location: Location
    element: tuple[int, int]
    value: float
    reference: float
    error: float

    def __str__(self) -> str:
        row, col = self.element
        return (
            f"'{self.operation}' in '{self.task}' at {self.location}: element [{row}, {col}] is "
            f"{self.value:.9g}, in float64 "
            f"{self.reference:.9g} (error {self.error:.3g})"
        )


@dataclass(frozen=True)
class PrecisionReport:
    """``first``: where the error first left the bound (``None``: nowhere); ``worst``: the largest error of all results.

    ``compared`` counts the results that were compared, ``taken`` those that had no float64 form.
    """

    first: Deviation | None
    worst: Deviation | None
    compared: int
    taken: int

    def __str__(self) -> str:
        if self.first is None:
            worst = "" if self.worst is None else f"; the largest error: {self.worst}"
            return f"{self.compared} results stay within the bound{worst}"
        return f"the error leaves the bound first where {self.first}"


def compare_precision(compiled: Any, args: Sequence[Any], *, bound: float | None = None) -> PrecisionReport:
    """Run ``compiled`` once on copies of ``args`` and compare every tile result with float64.

    ``bound``: largest relative error that is accepted; by default 1e-4 for FP32, 1e-2 for FP16 and 5e-2 for BF16.
    ``TypeError`` when an argument does not fit its parameter.
    """
    from pypto.sim.capture import _operand
    from pypto.sim.chips import chip

    program, infos = compiled.chip_callable.program, compiled.param_infos
    if len(args) != len(infos):
        raise TypeError(f"compare_precision expects {len(infos)} arguments, got {len(args)}")
    kept: list[Any] = []
    operands = [_operand(info, value, kept) for info, value in zip(infos, args)]
    name = compiled.platform.removesuffix("sim")
    comparison = _Comparison(bound)
    program.execute_observed(operands, comparison, clusters=int(chip(name).cores.clusters.value), platform=name)
    comparison.raise_error()
    return PrecisionReport(comparison.first, comparison.worst, comparison.compared, comparison.taken)


@dataclass
class _Tile:
    """A tile operand: what the program holds, and its float64 copy."""

    descriptor: Any
    address: int
    dtype: DataType
    rows: int
    cols: int
    pitch: int  # bytes


class _Comparison:
    """The watch of a launch (:class:`pypto.sim.frames.Watch` of every core, too)."""

    checks = Checks.of("none")

    def __init__(self, bound: float | None):
        self.bound = bound
        self.copies: dict[int, float] = {}
        """Float64 value by the address of the element's first byte."""
        self.first: Deviation | None = None
        self.worst: Deviation | None = None
        self.compared = self.taken = 0
        self._facts: dict[int, tuple[TileProgram, Any]] = {}
        self._error: BaseException | None = None
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._observe)
        self._address = ctypes.cast(self._callback, ctypes.c_void_p).value

    def raise_error(self) -> None:
        """Raise what went wrong inside the callback."""
        if self._error is not None:
            raise self._error

    # what a launch tells its watch

    def begin(self, *_: Any) -> Any:
        return self

    def new_core(self) -> _Comparison:
        return self

    def _ignore(self, *_: Any, **__: Any) -> None:
        """Nothing of this matters for values."""

    allocated = task = access = passes = predicate = empty = end = together = _ignore

    def start(self, frame: Frame) -> None:
        """A block begins."""
        self._facts[frame.address] = frame.program, instruction_facts(frame.program)
        frame.words[op.OBSERVER], frame.words[op.SELF] = self._address or 0, frame.address

    # one instruction

    def _observe(self, address: int) -> int:
        if self._error is None:
            try:
                program, facts = self._facts[address]
                frame = memory_view(address, 8 * len(program.template)).view(np.int64)
                code, pc = program.code, int(frame[op.PC])
                if code[pc] == op.CALL:
                    index = int(code[pc + 2])
                    with np.errstate(all="ignore"):
                        self._follow(program, frame, facts[index], index)
            except Exception as error:  # nothing may leave a callback of compiled code
                self._error = error
        return 0

    def _follow(self, program: TileProgram, frame: Any, fact: Any, index: int) -> None:
        name = program.statements[index].mnemonic  # type: ignore[union-attr]
        args = frame[op.ARGUMENTS :]
        if fact[w.FACT_RULE] == w.STORE:
            self._store(args, fact)
            return
        if not fact[w.FACT_TARGET]:
            return
        target = _tile(args[fact[w.FACT_TARGET]])
        sources = [_tile(args[position]) for position in fact[w.FACT_SOURCE :][: fact[w.FACT_SOURCES]]]
        actual = _values(target)
        if actual is None:
            return
        if fact[w.FACT_RULE] == w.LOAD:
            self._load(args, fact, target, actual)
            return
        expected = self._expected(name, args, fact, target, sources)
        if expected is None or expected.shape != actual.shape:
            self.taken += 1
            self._keep(target, actual)
            return
        self._keep(target, expected)
        self._compare(program, index, target.dtype, actual, expected)

    def _expected(self, name: str, args: Any, fact: Any, target: _Tile, sources: list[_Tile]) -> Array | None:
        """The result in float64; ``None`` when the operation has no such form."""
        shape = target.rows, target.cols
        values = [self._copy(source, *shape) for source in sources]
        if any(value is None for value in values):
            return self._reduced(name, args, fact, target, sources)
        if name in reference.BINARY:
            return reference.BINARY[name](*values)
        if name in reference.TERNARY:
            return reference.TERNARY[name](*values)
        if name in reference.UNARY:
            return reference.UNARY[name](*values)
        if name in reference.SCALAR:
            return reference.SCALAR[name](values[0], args[5 + 1 : 5 + 2].view(np.float64)[0])
        if name == "tcvt" or name == "tmov" and not args[fact[w.FACT_EXTRA]]:
            return values[0]
        return self._reduced(name, args, fact, target, sources)

    def _reduced(self, name: str, args: Any, fact: Any, target: _Tile, sources: list[_Tile]) -> Array | None:
        """Operations whose operands have other shapes than the result."""
        found = [self._copy(source, source.rows, source.cols) for source in sources]
        full = [value for value in found if value is not None]
        if len(full) != len(found):
            return None
        if name in reference.ROW_REDUCE:
            return np.asarray(reference.ROW_REDUCE[name](full[0], axis=1, keepdims=True))
        if name in reference.COL_REDUCE:
            return np.asarray(reference.COL_REDUCE[name](full[0], axis=0, keepdims=True))
        if name in reference.ROW_COMBINE:
            return reference.ROW_COMBINE[name](full[0][: target.rows, : target.cols], full[1][: target.rows, :1])
        if name in reference.COL_COMBINE:
            return reference.COL_COMBINE[name](full[0][: target.rows, : target.cols], full[1][:1, : target.cols])
        if name in reference.PRODUCTS:
            return self._product(name, args, fact, target, sources, full)
        return None

    def _product(
        self, name: str, args: Any, fact: Any, target: _Tile, sources: list[_Tile], full: list[Any]
    ) -> Array | None:
        start = np.zeros((target.rows, target.cols))
        if name.endswith("_acc"):
            start, full = full[0][: target.rows, : target.cols], full[1:]
        a = full[0].T if args[fact[w.FACT_EXTRA]] else full[0]
        b = full[1].T if args[fact[w.FACT_EXTRA] + 1] else full[1]
        if name.endswith("_bias"):
            start = start + full[2][:1, : target.cols]
        inner = min(a.shape[1], b.shape[0])
        return np.asarray(start + a[: target.rows, :inner] @ b[:inner, : target.cols])

    # memory

    def _copy(self, tile: _Tile, rows: int, cols: int) -> Array | None:
        """Float64 values of a tile's first rows and columns; ``None`` for a tile that is smaller, or of integers."""
        held = _values(tile)
        if held is None or rows > held.shape[0] or cols > held.shape[1]:
            return None
        addresses = _addresses(tile, rows, cols)
        flat = [self.copies.get(at, value) for at, value in zip(addresses, held[:rows, :cols].ravel().tolist())]
        return np.array(flat, np.float64).reshape(rows, cols)

    def _keep(self, tile: _Tile, values: Array) -> None:
        rows, cols = values.shape
        self.copies.update(zip(_addresses(tile, rows, cols), values.ravel().tolist()))

    def _load(self, args: Any, fact: Any, target: _Tile, actual: Array) -> None:
        window = _window(args, fact, target)
        if window is None:
            self._keep(target, actual)
            return
        rows, cols, first, row_step, col_step = window
        for i in range(rows):
            to = target.address + i * target.pitch
            for j in range(cols):
                value = self.copies.get(first + i * row_step + j * col_step, float(actual[i, j]))
                self.copies[to + j * target.dtype.get_byte()] = value

    def _store(self, args: Any, fact: Any) -> None:
        source = _tile(args[fact[w.FACT_SOURCE]])
        window, held = _window(args, fact, source), _values(source)
        if window is None or held is None:
            return
        rows, cols, first, row_step, col_step = window
        adds = fact[w.FACT_FLAGS] & w.ADDS
        for i in range(rows):
            for j in range(cols):
                value = self.copies.get(
                    source.address + i * source.pitch + j * source.dtype.get_byte(), float(held[i, j])
                )
                at = first + i * row_step + j * col_step
                self.copies[at] = self.copies.get(at, 0.0) + value if adds else value

    def _compare(self, program: TileProgram, index: int, dtype: DataType, actual: Array, expected: Array) -> None:
        self.compared += 1
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        scale = np.maximum(np.abs(expected), np.nanmean(np.abs(np.where(np.isfinite(expected), expected, 0.0))))
        error = np.where(same, 0.0, np.abs(actual - expected) / np.maximum(scale, np.finfo(np.float32).tiny))
        error = np.where(np.isnan(error), np.inf, error)
        row, col = np.unravel_index(int(np.argmax(error)), error.shape)
        found = Deviation(
            operation(program, index), program.name, location(program, index), (int(row), int(col)),
            float(actual[row, col]), float(expected[row, col]), float(error[row, col]),
        )  # fmt: skip
        if self.worst is None or found.error > self.worst.error:
            self.worst = found
        bound = self.bound if self.bound is not None else _DEFAULT_BOUND[dtype]
        if self.first is None and found.error > bound:
            self.first = found


def _tile(address: int) -> _Tile:
    words = memory_view(int(address), 8 * layout.TILE_WORDS).view(np.int64)
    dtype = DataType.from_code(int(words[layout.TILE_DTYPE]))
    pitch = int(words[layout.TILE_STRIDE]) * dtype.get_byte()
    rows, cols = int(words[layout.TILE_VALID_ROWS]), int(words[layout.TILE_VALID_COLS])
    return _Tile(words, int(words[layout.TILE_ADDRESS]), dtype, rows, cols, pitch)


def _values(tile: _Tile) -> Array | None:
    """What the program holds, as float64; ``None`` for integers and small floats."""
    if tile.dtype not in _FLOATS or tile.rows <= 0 or tile.cols <= 0:
        return None
    size = tile.dtype.get_byte()
    raw = memory_view(tile.address, (tile.rows - 1) * tile.pitch + tile.cols * size)
    shape, strides = (tile.rows, tile.cols, size), (tile.pitch, size, 1)
    words = np.ascontiguousarray(np.lib.stride_tricks.as_strided(raw, shape, strides))
    if tile.dtype == BF16:
        wide = words.view(np.uint16)[..., 0].astype(np.uint32) << 16
        return wide.view(np.float32).astype(np.float64)
    return words.view(np.float32 if tile.dtype == FP32 else np.float16)[..., 0].astype(np.float64)


def _addresses(tile: _Tile, rows: int, cols: int) -> list[int]:
    size = tile.dtype.get_byte()
    grid = tile.address + np.arange(rows)[:, None] * tile.pitch + np.arange(cols) * size
    return grid.ravel().tolist()


def _window(args: Any, fact: Any, tile: _Tile) -> tuple[int, int, int, int, int] | None:
    """(rows, columns, first address, bytes from row to row and from column to column) of a window of two axes."""
    lists, tensor = int(fact[w.FACT_LISTS]), int(args[fact[w.FACT_TENSOR]])
    words = memory_view(tensor, 8 * layout.TENSOR_WORDS).view(np.int64)
    n, rank = int(args[lists]), int(words[layout.TENSOR_RANK])
    dtype = DataType.from_code(int(words[layout.TENSOR_DTYPE]))
    outer = [int(args[lists + 2 * n + 3 + k]) for k in range(n - 2)]
    if n < 1 or dtype not in _FLOATS or any(extent != 1 for extent in outer):
        return None
    steps = [int(step) * dtype.get_byte() for step in words[layout.TENSOR_STRIDES :][:rank]][rank - n :]
    first = int(words[0]) + sum(int(args[lists + 1 + k]) * steps[k] for k in range(n))
    valid = [int(args[lists + 2 * n + 3 + k]) for k in range(n)]
    rows, row_step = (valid[-2], steps[-2]) if n > 1 else (1, 0)
    return rows, valid[-1], first, row_step, steps[-1]


__all__ = ["Deviation", "PrecisionReport", "compare_precision"]
