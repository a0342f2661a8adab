"""``compare_precision``: a program beside itself with float64 tiles; where does the error first leave a bound?

The program runs once. Beside every tile and every tensor a float64 copy is kept; after each tile instruction the same
operation is done on the copies (:mod:`pypto.sim.reference`), and the two results are compared. Operations without a
float64 form (comparisons, gathers, sorts, integers) take over what the program computed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.ir.dtype import BF16, FP16, FP32, DataType
from pypto.sim import layout, reference
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.facts import instruction_facts
from pypto.sim.checks.findings import Location
from pypto.sim.checks.places import location, operation, result_register
from pypto.sim.checks.selection import Checks
from pypto.sim.checks.stand_ins import tensors_of, written_runs
from pypto.sim.float64_copies import Array, Copies, Grid
from pypto.sim.memory import memory_view
from pypto.sim.reference import Operand

if TYPE_CHECKING:
    from pypto.sim.frames import Frame
    from pypto.sim.tile_program import TileProgram

_FLOATS: Final = (FP32, FP16, BF16)
_WIDE: Final = 8  # columns from which on a row has a typical magnitude of its own
_DEFAULT_BOUND: Final = {FP32: 1e-4, FP16: 1e-2, BF16: 5e-2}
_SPACING: Final = {FP32: 2.0**-24, FP16: 2.0**-11, BF16: 2.0**-8}
_ROUNDINGS: Final = 16  # on the way to a result, each as large as one of its inputs


@dataclass(frozen=True)
class Deviation:
    """The worst element of one result: ``error`` is relative to the larger of its magnitude and the mean of its row.

    Of a result with few columns (sums and maxima of rows) it is the mean of the tile. Where inputs a few roundings
    away have results that are further away (reference.py), it is relative to that distance by the bound, so that the
    noise of a row that is zero by rights is no error.

    ``tile`` is what the source calls the result (or the operation, for a value without a name), ``block`` the block
    that computed it, ``None`` for a task of one block.
    """

    operation: str
    task: str
    location: Location
    element: tuple[int, int]
    value: float
    reference: float
    error: float
    tile: str = ""
    block: int | None = None

    def __str__(self) -> str:
        row, col = self.element
        of = f" of '{self.tile}'" if self.tile else ""
        block = "" if self.block is None else f" in block {self.block}"
        return (
            f"'{self.operation}' in '{self.task}' at {self.location}: element [{row}, {col}]{of}{block} is "
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

    ``bound``: largest relative error that is accepted; by default that of the narrowest float the program has used so
    far: 1e-4 for FP32, 1e-2 for FP16 and 5e-2 for BF16.
    ``TypeError`` when an argument does not fit its parameter.
    """
    from pypto.sim.capture import _operand, bound_arguments
    from pypto.sim.chips import chip

    bound_args = bound_arguments(compiled, args, "compare_precision")
    program = compiled.chip_callable.program
    kept: list[Any] = []
    operands = [_operand(info, value, kept) for info, value in zip(compiled.param_infos, bound_args)]
    name = compiled.platform.removesuffix("sim")
    comparison = _Comparison(bound)
    watch = _Watched(comparison)
    clusters = int(chip(name).cores.clusters.value)
    program.execute_observed(operands, watch, clusters=clusters, platform=name, stand_ins=compiled._stand_ins)
    comparison.raise_error()
    return PrecisionReport(comparison.first, comparison.worst, comparison.compared, comparison.taken)


@dataclass
class _Tile:
    """A tile operand: its valid region in memory."""

    address: int
    dtype: DataType
    rows: int
    cols: int
    pitch: int  # bytes

    def grid(self, rows: int, cols: int, row: int = 0, col: int = 0) -> Grid:
        """Addresses of ``rows`` x ``cols`` elements from (``row``, ``col``) on."""
        size = self.dtype.get_byte()
        return Grid(self.address + row * self.pitch + col * size, rows, cols, self.pitch, size)


@dataclass(frozen=True)
class _Watched:
    """Gives a launch its watch."""

    comparison: _Comparison
    indices: None = None

    def begin(self, tensors: Sequence[Any], numbers: Sequence[int]) -> _Comparison:
        """A launch begins with these tensor arguments."""
        for tensor in tensors:
            self.comparison.add(tensor.address, tensor.nbytes)
        return self.comparison

    def orchestrated(self, launch: Any) -> None:
        """The orchestration has ended."""


class _Comparison:
    """The watch of a launch (:class:`pypto.sim.frames.Watch` of every core, too)."""

    checks = Checks.of("none")

    def __init__(self, bound: float | None):
        self.bound = bound
        self.copies, self._doubts = Copies(), Copies()
        self.first: Deviation | None = None
        self.worst: Deviation | None = None
        self.compared = self.taken = 0
        self._spacing, self._noise = 0.0, 0.0
        self._loosest = 0.0  # an FP32 result of values that were BF16 once is no better than those
        self._facts: dict[int, tuple[TileProgram, Any]] = {}
        self._error: BaseException | None = None
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._observe)
        self._address = ctypes.cast(self._callback, ctypes.c_void_p).value

    def raise_error(self) -> None:
        """Raise what went wrong inside the callback."""
        if self._error is not None:
            raise self._error

    # what a launch tells its watch

    def new_core(self) -> _Comparison:
        return self

    def allocated(self, number: int, name: str, shape: Any, dtype: Any, address: int, size: int, **_: Any) -> None:
        """The orchestration has made a tensor."""
        self.add(address, size)

    def add(self, address: int, size: int) -> None:
        """Memory that is going to be followed."""
        self.copies.add(address, size)
        self._doubts.add(address, size)

    def _forget(self, address: int, size: int) -> None:
        """Something that is not followed has written there."""
        self.copies.forget(address, size)
        self._doubts.forget(address, size)

    def _ignore(self, *_: Any, **__: Any) -> None:
        """Nothing of this matters for values."""

    def stand_in(self, frame: Any, plan: Any) -> Callable[[], None]:
        """A Python function is about to write the outputs of a task: then their values start again from what the
        program holds."""
        tensors = tensors_of(frame, plan)

        def ended() -> None:
            for _, address, size in written_runs(tensors):
                self._forget(address, size)

        return ended

    begin = task = access = passes = predicate = empty = end = together = scope_opened = scope_ended = _ignore

    def start(self, frame: Frame) -> None:
        """A block begins: its on-chip memory holds nothing."""
        self._facts[frame.address] = frame.program, instruction_facts(frame.program).words
        frame.words[op.OBSERVER], frame.words[op.SELF] = self._address or 0, frame.address
        for space, size in frame.program.space_bytes:
            self.add(int(frame.memory.bases[space]), size)

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
                else:
                    self._forget_element(address, frame, code, pc)
            except Exception as error:  # nothing may leave a callback of compiled code
                self._error = error
        return 0

    def _forget_element(self, address: int, frame: Any, code: Any, pc: int) -> None:
        """Scalar stores and tiles from other cores: they start again from what the program holds."""
        if code[pc] == op.STORE_TENSOR:
            self._forget(int(frame[op.ARGUMENTS]), int(frame[op.ARGUMENTS + 2]))
        elif code[pc] == op.STORE_TILE:
            tile = _tile(address + 8 * int(code[pc + 2]))
            row, col = int(frame[code[pc + 4]]), int(frame[code[pc + 5]])
            size = tile.dtype.get_byte()
            self._forget(tile.address + row * tile.pitch + col * size, size)
        elif code[pc] == op.POP:
            tile = _tile(address + 8 * int(code[pc + 3]))
            held = _values(tile)
            if held is not None:
                self._keep(tile, _as_held(held))

    def _forget_tile(self, tile: _Tile) -> None:
        if tile.rows > 0:
            self._forget(tile.address, tile.rows * tile.pitch)

    def _follow(self, program: TileProgram, frame: Any, fact: Any, index: int) -> None:
        name = program.statements[index].mnemonic  # type: ignore[union-attr]
        args = frame[op.ARGUMENTS :]
        if fact[w.FACT_RULE] in (w.STORE, w.SPREAD):
            self._store(args, fact)
            return
        if not fact[w.FACT_TARGET]:
            return
        target = _tile(args[fact[w.FACT_TARGET]])
        sources = [_tile(args[position]) for position in fact[w.FACT_SOURCE :][: fact[w.FACT_SOURCES]]]
        self._meet(target, *sources)
        actual = _values(target)
        if actual is None:
            self._forget_tile(target)
            return
        if fact[w.FACT_RULE] == w.LOAD:
            window = _window(args, fact)
            fits = window is not None and (window.rows, window.cols) == actual.shape
            self._keep(target, self._read(window, actual) if fits and window is not None else _as_held(actual))
            return
        moved = self._moved(args, fact, target, sources)
        if moved is not None:
            self._keep(target, moved)
            return
        found = self._expected(name, args, fact, target, sources)
        if found is None or found[0].shape != actual.shape:
            self.taken += 1
            self._keep(target, _as_held(actual))
            return
        expected, doubt = found
        self._keep(target, Operand(expected, expected, np.where(np.isfinite(doubt), doubt, 0.0)))
        block = int(frame[op.BLOCK]) if frame[op.BLOCKS] > 1 else None
        self._compare(program, index, actual, expected, self._noise * doubt, block)

    def _meet(self, *tiles: _Tile) -> None:
        """The bound and the spacing of the narrowest float that has been used so far."""
        for tile in tiles:
            self._loosest = max(self._loosest, _DEFAULT_BOUND.get(tile.dtype, 0.0))
            self._spacing = max(self._spacing, _SPACING.get(tile.dtype, 0.0))
        self._noise = _ROUNDINGS * self._spacing / self._loosest if self._loosest else 0.0

    def _moved(self, args: Any, fact: Any, target: _Tile, sources: list[_Tile]) -> Operand | None:
        """What an instruction that moves elements without a change puts into the whole valid region of its target."""
        rule, extra = fact[w.FACT_RULE], fact[w.FACT_EXTRA]
        if rule not in (w.MOVE, w.EXTRACT, w.INSERT, w.TRANSPOSE) or sources[-1].dtype != target.dtype:
            return None
        source, row, col, turned = sources[-1], 0, 0, rule == w.TRANSPOSE
        if rule == w.INSERT:
            return self._inserted(args, extra, target, source)
        if rule == w.TRANSPOSE and args[fact[w.FACT_SOURCE] + 1] > 1:
            return None
        if rule == w.MOVE:
            turned = args[extra] != 0
        elif rule == w.EXTRACT:
            row, col, turned = int(args[extra]), int(args[extra + 1]), args[extra + 2] != 0
        rows, cols = (target.cols, target.rows) if turned else (target.rows, target.cols)
        part = self._part(source, rows, cols, row, col)
        return None if part is None else part.T if turned else part

    def _inserted(self, args: Any, extra: int, target: _Tile, source: _Tile) -> Operand | None:
        held, part = self._copy(target, target.rows, target.cols), self._copy(source, source.rows, source.cols)
        row, col = int(args[extra]), int(args[extra + 1])
        if held is None or part is None:
            return None
        result = Operand(*(values.copy() for values in held))
        for values, inner in zip(result, part):
            inside = values[row : row + source.rows, col : col + source.cols]
            inside[...] = inner[: inside.shape[0], : inside.shape[1]]
        return result

    def _expected(self, name: str, args: Any, fact: Any, target: _Tile, sources: list[_Tile]) -> _Result | None:
        """The result in float64 and its doubt; ``None`` when the operation has no such form."""
        shape = target.rows, target.cols
        operands = [operand for source in sources if (operand := self._copy(source, *shape)) is not None]
        if len(operands) < len(sources):
            return self._reduced(name, args, fact, target, sources)
        for table in (reference.BINARY, reference.TERNARY, reference.UNARY, {"tcvt": np.array}):
            if name in table:
                return _result(name, table[name], operands)
        if name in reference.SCALAR:
            number = args[5 + 1 : 5 + 2].view(np.float64)[0]
            return _result(name, reference.SCALAR[name], [operands[0], reference.constant(float(number))])
        return self._reduced(name, args, fact, target, sources)

    def _reduced(self, name: str, args: Any, fact: Any, target: _Tile, sources: list[_Tile]) -> _Result | None:
        """Operations whose operands have other shapes than the result."""
        found = [self._copy(source, source.rows, source.cols) for source in sources]
        full = [value for value in found if value is not None]
        if len(full) != len(found):
            return None
        for axis, table in ((1, reference.ROW_REDUCE), (0, reference.COL_REDUCE)):
            if name in table:
                value = np.asarray(table[name](full[0].value, axis=axis, keepdims=True))
                return value, reference.DOUBT[name](np.abs(value), full[0], axis)
        if name in reference.ROW_COMBINE:
            parts = [full[0].part(target.rows, target.cols), full[1].part(target.rows, 1)]
            return _result(name, reference.ROW_COMBINE[name], parts)
        if name in reference.COL_COMBINE:
            parts = [full[0].part(target.rows, target.cols), full[1].part(1, target.cols)]
            return _result(name, reference.COL_COMBINE[name], parts)
        if name in reference.PRODUCTS:
            return self._product(name, args, fact, target, full)
        return None

    def _product(self, name: str, args: Any, fact: Any, target: _Tile, full: list[Operand]) -> _Result:
        value, doubt = np.zeros((target.rows, target.cols)), np.zeros((target.rows, target.cols))
        if name.endswith("_acc"):
            start, full = full[0].part(target.rows, target.cols), full[1:]
            value, doubt = start.value, start.doubt
        a = full[0].T if args[fact[w.FACT_EXTRA]] else full[0]
        b = full[1].T if args[fact[w.FACT_EXTRA] + 1] else full[1]
        if name.endswith("_bias"):
            bias = full[2].part(1, target.cols)
            value, doubt = value + bias.value, doubt + bias.doubt
        inner = min(a.value.shape[1], b.value.shape[0])
        a, b = a.part(target.rows, inner), b.part(inner, target.cols)
        return value + a.value @ b.value, doubt + reference.product_doubt(a, b)

    # memory

    def _copy(self, tile: _Tile, rows: int, cols: int) -> Operand | None:
        """Float64 values of a tile's first rows and columns; ``None`` for a tile that is smaller, or of integers."""
        return self._part(tile, rows, cols, 0, 0)

    def _part(self, tile: _Tile, rows: int, cols: int, row: int, col: int) -> Operand | None:
        held = _values(tile)
        if held is None or row + rows > held.shape[0] or col + cols > held.shape[1]:
            return None
        return self._read(tile.grid(rows, cols, row, col), held[row : row + rows, col : col + cols])

    def _read(self, grid: Grid, held: Array) -> Operand:
        """What is followed at a grid, which holds ``held``."""
        value, size = self.copies.read(grid, held), np.abs(held)
        return Operand(value, np.maximum(np.abs(value), size), self._doubts.read(grid, size))

    def _keep(self, tile: _Tile, values: Operand) -> None:
        self._write(tile.grid(*values.value.shape), values)

    def _write(self, grid: Grid, values: Operand) -> None:
        self.copies.write(grid, values.value)
        self._doubts.write(grid, values.doubt)

    def _store(self, args: Any, fact: Any) -> None:
        source = _tile(args[fact[w.FACT_SOURCE]])
        window = _window(args, fact) if fact[w.FACT_RULE] == w.STORE else None
        held = None if window is None else self._copy(source, window.rows, window.cols)
        if window is None or held is None:
            self._forget(*_extent(int(args[fact[w.FACT_TENSOR]])))
        elif fact[w.FACT_FLAGS] & w.ADDS:
            before = self._read(window, np.zeros(held.value.shape))
            self._write(window, Operand(before.value + held.value, held.size, before.doubt + held.doubt))
        else:
            self._write(window, held)

    def _compare(
        self, program: TileProgram, index: int, actual: Array, expected: Array, noise: Array, block: int | None
    ) -> None:
        """``noise``: magnitudes below which a difference by the bound is no error."""
        self.compared += 1
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        scale = np.maximum(np.abs(expected), _typical(np.abs(np.where(np.isfinite(expected), expected, 0.0))))
        scale = np.maximum(scale, np.where(np.isfinite(noise), noise, 0.0))
        error = np.where(same, 0.0, np.abs(actual - expected) / np.maximum(scale, np.finfo(np.float32).tiny))
        error = np.where(np.isnan(error), np.inf, error)
        row, col = np.unravel_index(int(np.argmax(error)), error.shape)
        found = Deviation(
            operation(program, index), program.name, location(program, index), (int(row), int(col)),
            float(actual[row, col]), float(expected[row, col]), float(error[row, col]),
            program.author(result_register(program, index)), block,
        )  # fmt: skip
        if self.worst is None or found.error > self.worst.error:
            self.worst = found
        bound = self.bound if self.bound is not None else self._loosest
        if self.first is None and found.error > bound:
            self.first = found


_Result = tuple[Array, Array]
"""Values of a result and their doubt."""


def _as_held(values: Array) -> Operand:
    """What the program holds, as the values that everything else is compared with."""
    return Operand(values, np.abs(values), np.abs(values))


def _result(name: str, function: Callable[..., Array], operands: Sequence[Operand]) -> _Result:
    value = function(*(operand.value for operand in operands))
    return value, np.asarray(reference.DOUBT[name](np.abs(value), *operands))


def _typical(magnitudes: Array) -> Array:
    """Magnitude that an element is compared with: rows may differ in scale, as those of tokens or channels do."""
    if magnitudes.shape[1] < _WIDE:
        return np.full((1, 1), magnitudes.mean())
    return magnitudes.mean(axis=1, keepdims=True)


def _tile(address: int) -> _Tile:
    words = memory_view(int(address), 8 * layout.TILE_WORDS).view(np.int64)
    dtype = DataType.from_code(int(words[layout.TILE_DTYPE]))
    pitch = int(words[layout.TILE_STRIDE]) * dtype.get_byte()
    rows, cols = int(words[layout.TILE_VALID_ROWS]), int(words[layout.TILE_VALID_COLS])
    return _Tile(int(words[layout.TILE_ADDRESS]), dtype, rows, cols, pitch)


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


def _window(args: Any, fact: Any) -> Grid | None:
    """The elements of a window that is one matrix; ``None`` with more axes, and for dtypes that are not followed."""
    lists, tensor = int(fact[w.FACT_LISTS]), int(args[fact[w.FACT_TENSOR]])
    words = memory_view(tensor, 8 * layout.TENSOR_WORDS).view(np.int64)
    n, rank = int(args[lists]), int(words[layout.TENSOR_RANK])
    dtype = DataType.from_code(int(words[layout.TENSOR_DTYPE]))
    if n < 1 or dtype not in _FLOATS:
        return None
    steps = [int(step) * dtype.get_byte() for step in words[layout.TENSOR_STRIDES :][:rank]][rank - n :]
    first = int(words[0]) + sum(int(args[lists + 1 + k]) * steps[k] for k in range(n))
    valid = [int(args[lists + 2 * n + 3 + k]) for k in range(n)]
    rows, row_step = (valid[-2], steps[-2]) if n > 1 else (1, 0)
    if any(extent != 1 for extent in valid[: max(n - 2, 0)]) or rows <= 0 or valid[-1] <= 0:
        return None
    return Grid(first, rows, valid[-1], row_step, steps[-1])


def _extent(tensor: int) -> tuple[int, int]:
    """Address and bytes of a tensor."""
    words = memory_view(tensor, 8 * layout.TENSOR_WORDS).view(np.int64)
    rank, size = int(words[layout.TENSOR_RANK]), DataType.from_code(int(words[layout.TENSOR_DTYPE])).get_byte()
    extents, strides = words[layout.TENSOR_EXTENTS :][:rank], words[layout.TENSOR_STRIDES :][:rank]
    return int(words[0]), (int(((extents - 1) * strides).sum()) + 1) * size


__all__ = ["Deviation", "PrecisionReport", "compare_precision"]
