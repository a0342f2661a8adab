"""Errors of a running program, in the words of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pypto.ir.dtype import DataType
from pypto.sim.syntax import Array, Instruction, Tile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pypto.sim.recording import Words
    from pypto.sim.syntax import Operand, Statement
    from pypto.sim.tile_program import TileProgram
    from pypto.sim.wait_answers import Answer
    from pypto.sim.waiting import Overdue


class IndexElement(NamedTuple):
    """Element (``row``, ``col``) of the index tile in ``register``, at host address ``address``."""

    register: str
    row: int
    col: int
    address: int


class ExecutionError(RuntimeError):
    """A kernel or an orchestration did something that has no defined result.

    ``site`` is the program and the index of the instruction at fault, ``subject`` the tensor, tile or array concerned.
    ``index_ranges`` is what the instruction asked of it, one (low, high) per axis, ``byte_range`` the same in bytes
    from its first element on; both may lie outside it.
    ``index`` is the element of an index tile that was taken.
    """

    site: tuple[TileProgram, int] | None = None
    subject: str = ""
    index_ranges: tuple[tuple[int, int], ...] = ()
    byte_range: tuple[int, int] | None = None
    index: IndexElement | None = None


class OutOfBoundsError(ExecutionError, IndexError):
    """An index, offset or window outside its tensor, tile or array."""


class DivisionByZeroError(ExecutionError, ZeroDivisionError):
    """An integer division by zero."""


class DeadlockError(ExecutionError):
    """Blocks wait for each other and none can go on; ``waiting`` are the programs and instructions that wait.

    ``overdue`` are queues full of tiles that nobody frees any more, ``answers`` what would let the cores go on.
    """

    waiting: tuple[tuple[TileProgram, int], ...] = ()
    overdue: tuple[Overdue, ...] = ()
    answers: tuple[Answer, ...] = ()


class OversubscribedError(DeadlockError):
    """A synchronous start of more ``blocks`` of ``task`` than the ``chip`` runs at once: it would wait for ever."""

    task: str = ""
    blocks: int = 0
    chip: int = 0


def fault(program: TileProgram, frame: Words, addresses: int) -> ExecutionError:
    """The error for the fault in ``frame``, which lives at address ``addresses``."""
    from pypto.sim import queue_faults

    found = _Fault(program, frame, addresses)
    if found.code in queue_faults.CODES:
        return queue_faults.queue_error(program, frame, found.index, found.where())
    error = found.error()
    error.site, error.subject = (program, found.index), found.subject()
    error.index_ranges, error.byte_range = found.asked()
    error.index = found.index_element()
    return error


_INDEXED = ("mgather", "mgather_gm", "mscatter")
_CELL_OPERAND = {"sload": 2, "sstore": 1, "notify": 2, "signal_wait": 1, "signal_defer": 1}
"""Position of the list of indices."""
Ranges = tuple[tuple[int, int], ...]
Bytes = tuple[int, int] | None


def _bits(dtype: str) -> int:
    return DataType.from_string(dtype).get_bit()


def _signed(index: int) -> int:
    """An index of 32 bits as its author wrote it."""
    return index - (1 << 32) if index >> 31 else index


class _Fault:
    def __init__(self, program: TileProgram, frame: Words, base: int):
        from pypto.sim import layout
        from pypto.sim import opcodes as op

        self.op, self.layout = op, layout
        self.program, self.frame, self.base = program, frame, base
        self.code = int(frame[op.FAULT])
        self.index = int(frame[op.SITE])
        self.statement = program.statements[self.index] if 0 <= self.index < len(program.statements) else None
        self.detail = [int(word) for word in frame[op.DETAIL : op.DETAIL + 3]]

    def error(self) -> ExecutionError:
        op, layout = self.op, self.layout
        kinds: dict[int, tuple[type[ExecutionError], str]] = {
            layout.OUTSIDE_TENSOR: (OutOfBoundsError, ""),
            layout.OUTSIDE_TILE: (OutOfBoundsError, ""),
            layout.DIVISION_BY_ZERO: (DivisionByZeroError, "integer division by zero"),
            layout.UNSUPPORTED_DTYPE: (ExecutionError, "no kernel for these dtypes"),
            op.BAD_VIEW: (ExecutionError, self._view_message()),
            op.OUTSIDE_ARRAY: (OutOfBoundsError, self._array_message()),
            op.NEGATIVE_EXTENT: (ExecutionError, "a new shape has a negative extent"),
            op.TILE_VALID: (OutOfBoundsError, self._valid_message()),
            op.ZERO_STEP: (ExecutionError, "a loop has step 0"),
            op.NO_WINDOW: (ExecutionError, "this tensor is no window: it has no peers"),
            op.BAD_PEER: (
                OutOfBoundsError,
                f"peer {self.detail[0]} is outside the domain, whose ranks are 0..{self.detail[1] - 1}",
            ),
            op.BAD_WORKSPACE: (
                ExecutionError,
                f"the workspace of a soft barrier of {self.detail[1]} cores starts with {self.detail[0]}; "
                "it must be zero before the launch, and no other data may live in it",
            ),
            op.BAD_EVENT: (ExecutionError, "an event id is outside 0..15"),
            op.ODD_NIBBLE: (ExecutionError, "a view of 4-bit elements starts in the middle of a byte"),
        }
        kind, message = kinds.get(self.code, (ExecutionError, f"fault {self.code}"))
        if self.code in (layout.OUTSIDE_TENSOR, layout.OUTSIDE_TILE):
            message = self._outside_message()
        return kind(f"{message}\n{self.where()}")

    def subject(self) -> str:
        """The tensor, tile or array that the instruction is about."""
        mnemonic = getattr(self.statement, "mnemonic", "")
        if (refused := self._refused_in_tile()) is not None:
            return self._shown(refused[0])
        if self.code == self.layout.OUTSIDE_TILE and "row" in (operands := self._operand_index()):
            return self._shown(self._window_of_tile(operands)[0])
        name = self._name(1 if mnemonic in ("sload", "aget", "view") else self._operand_index().get("tensor", 0))
        return "" if name == "?" else self._shown(name)

    # what was asked for

    def asked(self) -> tuple[Ranges, Bytes]:
        """(index ranges, bytes) of the access to the tensor, tile or array that it is outside of."""
        mnemonic, operands = getattr(self.statement, "mnemonic", ""), self._operand_index()
        if self.code == self.op.OUTSIDE_ARRAY and mnemonic in ("aget", "aset"):
            return self._in_array(1 if mnemonic == "aget" else 0)
        if self.code == self.op.TILE_VALID:
            return ((0, self.detail[0]),), None
        if self.code not in (self.layout.OUTSIDE_TENSOR, self.layout.OUTSIDE_TILE):
            return (), None
        if mnemonic in ("sload", "sstore", "notify", "signal_wait", "signal_defer"):
            subject = 1 if mnemonic == "sload" else 0
            at = self._list_values(_CELL_OPERAND.get(mnemonic, 1))
            return self._in_descriptor(self._name(subject), at, [1] * len(at))
        if mnemonic == "view":
            return self._in_descriptor(self._name(1), self._list_values(2), self._list_values(3))
        if mnemonic in _INDEXED:
            return self._in_flat(operands)
        if self.code == self.layout.OUTSIDE_TENSOR and "offsets" in operands:
            offsets, extents = (self._list_values(operands[name]) for name in ("offsets", "valid"))
            return self._in_descriptor(self._name(operands["tensor"]), offsets, extents)
        if (refused := self._refused_in_tile()) is not None:
            name, row, col = refused[:3]
            return self._in_descriptor(name, [row, col], [1, 1])
        if "row" in operands:
            name, corner, extents, _ = self._window_of_tile(operands)
            return self._in_descriptor(name, corner, extents)
        return (), None

    def _in_array(self, operand: int) -> tuple[Ranges, Bytes]:
        index, symbol = self.detail[0], self.program.symbols.get(self._name(operand))
        size = _bits(symbol.dtype) // 8 if isinstance(symbol, Array) else 0
        return ((index, index + 1),), (index * size, (index + 1) * size) if size else None

    def _in_flat(self, operands: Mapping[str, int]) -> tuple[Ranges, Bytes]:
        """Of a gather or scatter: the first index that leaves the tensor, in rows or in elements."""
        index, tensor = _signed(self._refused()[1]), self.program.offsets[self._name(operands["tensor"])]
        rank = int(self.frame[tensor + self.layout.TENSOR_RANK])
        if rank == 2 and not self._by_element():
            cols = int(self.frame[tensor + self.layout.TENSOR_EXTENTS + 1])
            return self._in_descriptor(self._name(operands["tensor"]), [index, 0], [1, cols])
        size = DataType.from_code(int(self.frame[tensor + self.layout.TENSOR_DTYPE])).get_byte()
        return ((index, index + 1),), (index * size, (index + 1) * size)

    def _in_descriptor(self, name: str, offsets: Sequence[int], sizes: Sequence[int]) -> tuple[Ranges, Bytes]:
        """Of a window at ``offsets`` into the trailing axes of a tensor, or into a tile."""
        layout, at = self.layout, self.program.offsets.get(name)
        if at is None or not offsets:
            return (), None
        ranges = tuple((low, low + max(size, 0)) for low, size in zip(offsets, sizes))
        symbol = self.program.symbols.get(name)
        if isinstance(symbol, Tile):
            strides, bits = [int(self.frame[at + layout.TILE_STRIDE]), 1][-len(offsets) :], _bits(symbol.dtype)
        else:
            rank = int(self.frame[at + layout.TENSOR_RANK])
            strides = [int(word) for word in self.frame[at + layout.TENSOR_STRIDES :][:rank]][-len(offsets) :]
            bits = DataType.from_code(int(self.frame[at + layout.TENSOR_DTYPE])).get_bit()
            ranges = ((0, 1),) * (rank - len(offsets)) + ranges
        if any(size <= 0 for size in sizes):
            return ranges, None
        first = sum(low * stride for low, stride in zip(offsets, strides))
        last = first + sum((size - 1) * stride for size, stride in zip(sizes, strides))
        return ranges, (first * bits // 8, -(-(last + 1) * bits // 8))

    def where(self) -> str:
        """Program, block, lane and line."""
        from pypto.sim import opcodes as op

        block = f", block {self.frame[op.BLOCK]} of {self.frame[op.BLOCKS]}" if self.frame[op.BLOCKS] > 1 else ""
        lane = f", lane {self.frame[op.LANE]}" if self.frame[op.CORE] > 1 else ""
        return f"in {self.program.name}{block}{lane}{where(self.program, self.index)}"

    # messages

    def _outside_message(self) -> str:
        mnemonic = getattr(self.statement, "mnemonic", "")
        if mnemonic in ("sload", "sstore"):
            subject = 1 if mnemonic == "sload" else 0
            act = "read" if mnemonic == "sload" else "write"
            index, extent, axis = self.detail
            return f"{act} of '{self._called(subject)}' at index {index} is outside its extent {extent} (axis {axis})"
        if mnemonic == "view":
            return self._window("view", 1, self._list_values(2), self._list_values(3))
        if mnemonic in ("notify", "signal_wait", "signal_defer"):
            index, extent, axis = self.detail
            return f"signal cell of '{self._called(0)}' at index {index} is outside its extent {extent} (axis {axis})"
        acts = {
            "tload": "load",
            "tstore": "store",
            "tgather_row": "load",
            "tremote_load": "remote load",
            "tremote_store": "remote store",
        }
        operands = self._operand_index()
        if mnemonic in _INDEXED:
            return self._index_message(operands)
        if self.code == self.layout.OUTSIDE_TENSOR and "offsets" in operands:
            offsets, extents = self._list_values(operands["offsets"]), self._list_values(operands["valid"])
            return self._window(acts.get(mnemonic, mnemonic), operands["tensor"], offsets, extents)
        if (refused := self._refused_in_tile()) is not None:
            return self._tile_index_message(operands, *refused)
        if "row" in operands:
            return self._tile_window_message(mnemonic, operands)
        return f"'{mnemonic}' has no room in its operands: {self._tile_shapes()}"

    def _refused_in_tile(self) -> tuple[str, int, int, int, int] | None:
        """(register, row, column, value, first illegal value) of an index with which a gather or scatter of tiles
        stopped."""
        operands = self._operand_index()
        position, index, limit = self._refused()
        if self.code != self.layout.OUTSIDE_TILE or "index" not in operands or limit <= 0:
            return None
        mnemonic = getattr(self.statement, "mnemonic", "")
        walked = {"tgather_axis": "dst", "tscatter": "src", "tscatter_axis": "src"}.get(mnemonic, "index")
        cols = int(self.frame[self.program.offsets[self._name(operands[walked])] + self.layout.TILE_VALID_COLS])
        return self._name(operands["index"]), *divmod(position, max(cols, 1)), index, limit

    def _tile_index_message(
        self, operands: Mapping[str, int], name: str, row: int, col: int, index: int, limit: int
    ) -> str:
        mnemonic = getattr(self.statement, "mnemonic", "")
        tile = self._called(operands["src" if mnemonic.startswith("tgather") else "dst"])
        axis = self.statement.attributes.get("axis") if isinstance(self.statement, Instruction) else None
        unit, along = ("rows", 0) if mnemonic == "tscatter_rows" or axis in (0, "0") else ("columns", 1)
        extent = f"{limit} {unit} of '{tile}' (axis {along})"
        if axis is None and mnemonic != "tscatter_rows":
            extent = f"{limit} elements of '{tile}'"
        return (
            f"index {index} from '{self._shown(name)}' at [{row}, {col}] is outside the {extent}; "
            f"legal are 0..{limit - 1}"
        )

    def _window_of_tile(self, operands: Mapping[str, int]) -> tuple[str, list[int], list[int], list[int]]:
        """(register, corner, extents, extents of the tile) of the window that one tile is to another."""
        inserts = getattr(self.statement, "mnemonic", "").startswith("tinsert")
        whole, part = (self._name(operands[key]) for key in (("dst", "src") if inserts else ("src", "dst")))
        corner = [self._value(self._operand(operands[key]) or 0) for key in ("row", "col")]
        shapes = [
            [
                int(self.frame[self.program.offsets[name] + word])
                for word in (self.layout.TILE_ROWS, self.layout.TILE_COLS)
            ]
            for name in (part, whole)
        ]
        return whole, corner, shapes[0], shapes[1]

    def _tile_window_message(self, mnemonic: str, operands: Mapping[str, int]) -> str:
        name, corner, extents, shape = self._window_of_tile(operands)
        for axis, (noun, low, size, extent) in enumerate(zip(("rows", "columns"), corner, extents, shape)):
            if low < 0 or low + size > extent:
                return (
                    f"window of '{self._shown(name)}' {noun} {low}..{low + size} is outside its extent {extent} "
                    f"(axis {axis}, offset {low}, window {size})"
                )
        row, col = corner
        return f"'{mnemonic}' at row {row}, column {col} reaches outside its tile: {self._tile_shapes()}"

    def _by_element(self) -> bool:
        """Whether a gather or scatter takes its index as the number of an element, not of a row."""
        coalesce = getattr(self.statement, "attributes", {}).get("coalesce")
        return getattr(self.statement, "mnemonic", "") == "mscatter" or coalesce in ("elem", 1)

    def _refused(self) -> tuple[int, int, int]:
        """(number, value as an unsigned number, legal ones) of the index with which a gather or scatter stopped."""
        number, index, limit = (int(word) for word in self.frame[self.op.ARGUMENTS :][:3])
        return number, index, limit

    def index_element(self) -> IndexElement | None:
        """The element of an index tile with which a gather or scatter leaves its tensor or tile."""
        operands = self._operand_index()
        if (refused := self._refused_in_tile()) is not None:
            name, row, col, layout = *refused[:3], self.layout
            at, size = self.program.offsets[name], _bits(getattr(self.program.symbols[name], "dtype", "int32")) // 8
            return IndexElement(
                name, row, col, int(self.frame[at]) + size * (row * int(self.frame[at + layout.TILE_STRIDE]) + col)
            )
        if getattr(self.statement, "mnemonic", "") not in _INDEXED or self.code != self.layout.OUTSIDE_TENSOR:
            return None
        name, layout = self._name(operands["index"]), self.layout
        if not isinstance(self.program.symbols.get(name), Tile):
            return None
        at, walked = (self.program.offsets[self._name(operands[key])] for key in ("index", self._walked(operands)))
        row, col = divmod(self._refused()[0], int(self.frame[walked + layout.TILE_VALID_COLS]))
        pitch = int(self.frame[at + layout.TILE_STRIDE])
        return IndexElement(name, row, col, int(self.frame[at]) + 4 * (row * pitch + col))

    @staticmethod
    def _walked(operands: Mapping[str, int]) -> str:
        """The tile whose valid elements have an index each: what is scattered, or the indices of a gather."""
        return "src" if "src" in operands else "index"

    def _index_message(self, operands: Mapping[str, int]) -> str:
        _, found, limit = self._refused()
        name, unit = self._name(operands["index"]), "elements" if self._by_element() else "rows"
        signed = f"{_signed(found)} ({found} without a sign, as it counts)" if found >> 31 else str(found)
        return (
            f"index {signed} from '{self._shown(name)}' is outside the {limit} {unit} of "
            f"'{self._called(operands['tensor'])}'; "
            f"legal are 0..{limit - 1}"
        )

    def _window(self, act: str, tensor: int, offsets: Sequence[int], window: Sequence[int]) -> str:
        name = self._name(tensor)
        descriptor, name = self.program.offsets[name], self._shown(name)
        rank = int(self.frame[descriptor + self.layout.TENSOR_RANK])
        extents = self.frame[descriptor + self.layout.TENSOR_EXTENTS :][:rank]
        first = rank - len(offsets)
        for axis, (offset, size) in enumerate(zip(offsets, window), first):
            extent = int(extents[axis]) if 0 <= axis < rank else 1
            if offset < 0 or offset + size > extent:
                noun = {0: "rows", 1: "columns"}.get(axis, "elements") if rank == 2 else "elements"
                return (
                    f"{act} of '{name}' {noun} {offset}..{offset + size} is outside its extent {extent} "
                    f"(axis {axis}, offset {offset}, window {size})"
                )
        shape = " x ".join(str(extent) for extent in extents)
        return (
            f"{act} of '{name}' with offsets {list(offsets)} and window {list(window)} is outside its memory ({shape})"
        )

    def _array_message(self) -> str:
        mnemonic = getattr(self.statement, "mnemonic", "")
        name = self._called(1 if mnemonic == "aget" else 0) if mnemonic in ("aget", "aset") else ""
        return f"index {self.detail[0]} of array '{name}' is outside its {self.detail[1]} elements"

    def _valid_message(self) -> str:
        name = self._called(0) if getattr(self.statement, "mnemonic", "") == "setvalid" else ""
        axis = "rows" if self.detail[2] == 0 else "columns"
        return f"valid {axis} {self.detail[0]} of tile '{name}' are outside 0..{self.detail[1]}"

    def _view_message(self) -> str:
        if getattr(self.statement, "mnemonic", "") not in ("reshape", "reinterpret"):
            return "a view has another number of elements than its source"
        descriptor = self.program.offsets[self._name(1)]
        rank = int(self.frame[descriptor + self.layout.TENSOR_RANK])
        old = [int(extent) for extent in self.frame[descriptor + self.layout.TENSOR_EXTENTS :][:rank]]
        return (
            f"'{self._called(1)}' of shape {old} cannot be viewed as {self._list_values(2)}: the element counts "
            "differ, or the source is a window whose rows are not adjacent"
        )

    # operands

    def _operand(self, index: int) -> Operand | None:
        operands = getattr(self.statement, "operands", ())
        return operands[index] if index < len(operands) else None

    def _name(self, index: int) -> str:
        return getattr(self._operand(index), "name", "?")

    def _called(self, index: int) -> str:
        """Operand ``index`` as its author calls it."""
        return self._shown(self._name(index))

    def _shown(self, name: str) -> str:
        """A register as its author calls it: the copy of a window on a peer has the name of the window."""
        for statement in self.program.statements:
            if isinstance(statement, Instruction) and statement.mnemonic == "peerview":
                view, window = statement.operands[:2]
                if getattr(view, "name", "") == name:
                    name = getattr(window, "name", name)
                    break
        return self.program.author(name)

    def _value(self, operand: Operand) -> int:
        if isinstance(operand, int):
            return operand
        offset = self.program.offsets.get(getattr(operand, "name", ""))
        return 0 if offset is None else int(self.frame[offset])

    def _list_values(self, index: int) -> list[int]:
        operand = self._operand(index)
        return [self._value(item) for item in operand] if isinstance(operand, tuple) else []

    def _operand_index(self) -> Mapping[str, int]:
        """Operand positions of the tile instruction by name."""
        from pypto.ir.instructions import INSTRUCTIONS

        row = INSTRUCTIONS.get(getattr(self.statement, "mnemonic", ""))
        return row.index if row is not None else {}

    def _tile_shapes(self) -> str:
        """The tiles of the instruction with their extents, destinations first."""
        layout = self.layout
        shown = []
        for operand in getattr(self.statement, "operands", ()):
            name: str = getattr(operand, "name", "")
            if isinstance(self.program.symbols.get(name), Tile):
                words = self.frame[self.program.offsets[name] :]
                shown.append(f"'{self.program.author(name)}' is {words[layout.TILE_ROWS]} x {words[layout.TILE_COLS]}")
        return ", ".join(shown)


def where(program: TileProgram, index: int) -> str:
    """`` at file:line`` of an instruction with the source line, or its place in the kernel text."""
    place = program.place(index)
    if place is None:
        statement = program.statements[index] if 0 <= index < len(program.statements) else None
        line = f":{statement.position.line}" if statement is not None and statement.position.line else ""
        return f" at {program.text_file}{line}"
    path = program.files.get(place.file, f"file {place.file}")
    return f" at {path}:{place.line}{_source_line(path, place.line)}"


def source_place(program: TileProgram, index: int) -> str:
    """``file:line`` of an instruction, or its line in the kernel text."""
    place = program.place(index)
    if place is not None:
        return f"{program.files.get(place.file, f'file {place.file}')}:{place.line}"
    known = 0 <= index < len(program.statements)
    return f"{program.text_file}:{program.statements[index].position.line if known else 0}"


def _source_line(path: str, number: int) -> str:
    """The line itself and a caret under its code; nothing when the file cannot be read."""
    import linecache

    line = linecache.getline(path, number).rstrip()
    code = line.lstrip()
    if not code:
        return ""
    return f"\n    {code}\n    {'^' * len(code)}"


def describe(statement: Statement | None) -> str:
    """The instruction's mnemonic, for lists of waiting blocks."""
    return getattr(statement, "mnemonic", "?")
