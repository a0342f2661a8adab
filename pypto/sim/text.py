"""Parser of the kernel text (docs/architecture.md 1.1).

Line breaks and blanks carry no meaning: a mnemonic followed by something that cannot continue its operand list
ends the instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pypto.ir.dtype import BY_CONSTANT, DataType
from pypto.sim.layout import SPACES
from pypto.sim.syntax import (
    Array,
    Attribute,
    Core,
    Direction,
    For,
    Group,
    If,
    Instruction,
    KernelName,
    Operand,
    Parameter,
    Place,
    Position,
    Register,
    ScalarParameter,
    Slots,
    Statement,
    TensorParameter,
    TensorRegister,
    Tile,
    Unit,
    While,
)
from pypto.sim.text_tokens import Reader, TextError, Token, shown_token

LAYOUTS = ("nd", "dn", "nz", "zn")
_LARGEST_TILE = 2**31  # bytes; no on-chip memory comes near it
DTYPE_NAMES = frozenset(d.to_string() for d in BY_CONSTANT.values())

_OPERAND_KINDS = frozenset(("register", "number", "kernel"))


def parse(text: str, file: str = "<text>") -> Unit | Group:
    """The unit written in ``text``; ``TextError`` names ``file``, line and column of the first mistake."""
    reader = Reader(text, file)
    token = reader.expect_kind("word", "'kernel', 'orchestration' or 'group'")
    name = (
        reader.expect_kind("kernel", f"the name of the {token.text}, '@name',").text[1:] if token.text in _UNITS else ""
    )
    if token.text not in _UNITS:
        reader.complain(f"expected 'kernel', 'orchestration' or 'group', found '{token.text}'", token)
    unit = _UNITS[token.text](reader, name)
    if reader.token.kind != "end":
        reader.complain(f"one unit per file: nothing may follow the '}}' of @{name}, found {shown_token(reader.token)}")
    return unit


def read_unit(path: Path) -> Unit | Group:
    """:func:`parse` of a file; a file that is no UTF-8 text is a ``TextError`` too."""
    data = path.read_bytes()
    try:
        return parse(data.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextError(f"byte {error.start} is not UTF-8 text", str(path), "", Position(line, 1)) from None


def _kernel(reader: Reader, name: str) -> Unit:
    token = reader.expect_kind("word", "the core of the kernel, 'aiv' or 'aic'")
    if token.text not in ("aiv", "aic"):
        reader.complain(f"expected the core of the kernel, 'aiv' or 'aic', found '{token.text}'", token)
    core: Core = "aiv" if token.text == "aiv" else "aic"
    return _Body(reader, name, core).read()


def _orchestration(reader: Reader, name: str) -> Unit:
    return _Body(reader, name, None).read()


def _group(reader: Reader, name: str) -> Group:
    start = reader.token
    reader.expect("{", f"after group @{name}")
    members: dict[str, str] = {}
    lanes = 1
    while not reader.accept("}"):
        token = reader.expect_kind("word", "'aic @kernel', 'aiv @kernel' or 'lanes = N'")
        if token.text == "lanes":
            reader.expect("=", "after 'lanes'")
            lanes = reader.integer("the number of vector lanes")
            if lanes not in (1, 2):
                reader.complain(f"a cluster has 1 or 2 vector lanes, not {lanes}", token)
        elif token.text in ("aic", "aiv") and token.text not in members:
            members[token.text] = reader.expect_kind("kernel", f"the {token.text} member, '@kernel',").text[1:]
        else:
            reader.complain(f"expected 'aic @kernel', 'aiv @kernel' or 'lanes = N', found '{token.text}'", token)
    if not members:
        reader.complain(f"group @{name} has no member", start)
    return Group(name, members.get("aic"), members.get("aiv"), lanes)


_UNITS: dict[str, Callable[[Reader, str], Unit | Group]] = {
    "kernel": _kernel,
    "orchestration": _orchestration,
    "group": _group,
}


@dataclass
class _Body:
    """Reads the declarations and statements of one kernel or orchestration."""

    reader: Reader
    name: str
    core: Core | None
    files: dict[int, str] = field(default_factory=dict)
    parameters: list[Parameter] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    tensors: list[TensorRegister] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    def read(self) -> Unit:
        self.reader.expect("{", f"to open @{self.name}")
        statements = self._block(f"@{self.name}")
        return Unit(
            self.name,
            self.core,
            self.files,
            tuple(self.parameters),
            tuple(self.tiles),
            tuple(self.tensors),
            tuple(self.arrays),
            statements,
            self.names,
        )

    # declarations

    def _declared_name(self) -> tuple[str, Position]:
        token = self.reader.expect_kind("register", "the register declared here, '%name',")
        if token.text in self.declared:
            self.reader.complain(f"{token.text} is declared twice", token)
        self.declared.add(token.text)
        self.reader.expect(":", f"after {token.text}")
        return token.text[1:], self.reader.position(token)

    def _file(self) -> None:
        index = self.reader.integer("the number of the source file")
        self.files[index] = self.reader.expect_kind("string", "the path in double quotes").text[1:-1]

    def _source_name(self) -> None:
        register = self.reader.expect_kind("register", "the register whose name in the source follows").text[1:]
        self.names[register] = self.reader.expect_kind("string", "the name in double quotes").text[1:-1]

    def _parameter(self) -> None:
        name, position = self._declared_name()
        kind = self.reader.expect_kind("word", "'tensor<…>' or 'scalar<…>'")
        self.reader.expect("<", f"after '{kind.text}'")
        if kind.text == "scalar":
            self.parameters.append(ScalarParameter(name, self._dtype(), position))
            self.reader.expect(">", "after the dtype")
        elif kind.text == "tensor":
            self._tensor_parameter(name, position)
        else:
            self.reader.complain(f"expected 'tensor<…>' or 'scalar<…>', found '{kind.text}'", kind)

    def _tensor_parameter(self, name: str, position: Position) -> None:
        shape, dtype = self._shape("a tensor type such as 256x?xfp32", dynamic=True)
        if len(shape) > 8:
            self.reader.complain(f"tensor %{name} has rank {len(shape)}; the largest rank is 8")
        self.reader.expect(">", "after the tensor type")
        token = self.reader.expect_kind("word", "the direction, 'in', 'out' or 'inout',")
        if token.text not in ("in", "out", "inout"):
            self.reader.complain(f"expected the direction, 'in', 'out' or 'inout', found '{token.text}'", token)
        direction: Direction = "in" if token.text == "in" else "out" if token.text == "out" else "inout"
        window = self.reader.accept("window")
        self.parameters.append(TensorParameter(name, shape, dtype, direction, window, position))

    def _tile(self) -> None:
        name, position = self._declared_name()
        space = self._choice(tuple(SPACES), "memory space")
        self.reader.expect("<", "after the memory space")
        shape, dtype = self._shape("a tile type such as 32x64xfp32", dynamic=False)
        if len(shape) != 2:
            self.reader.complain(f"tile %{name} has {len(shape)} axes; a tile is rows x cols")
        self.reader.expect(">", "after the tile type")
        self.reader.expect("at", "and the byte offset after the tile type")
        offset = self.reader.integer("the byte offset")
        if offset < 0:
            self.reader.complain(f"tile %{name} has the negative byte offset {offset}")
        tile = Tile(name, space, shape[0], shape[1], dtype, offset, **self._tile_options(), position=position)
        if offset + tile.rows * max(tile.cols, tile.stride or 0) >= _LARGEST_TILE:
            self.reader.complain(f"tile %{name} ends beyond every on-chip memory")
        self.tiles.append(tile)

    def _tile_options(self) -> dict:
        options: dict = {}
        while self.reader.token.text in ("stride", "slots", "valid", "layout"):
            token = self.reader.take()
            if token.text in options:
                self.reader.complain(f"'{token.text}' is given twice", token)
            options[token.text] = getattr(self, f"_option_{token.text}")()
        return options

    def _option_stride(self) -> int:
        return self.reader.integer("the row stride in elements")

    def _option_slots(self) -> Slots:
        count = self.reader.integer("the number of slots")
        if count < 1:
            self.reader.complain(f"a tile has at least one slot, not {count}")
        self.reader.expect("pitch", "after the number of slots")
        pitch = self.reader.integer("the pitch in bytes")
        self.reader.expect("by", "and the slot register after the pitch")
        return Slots(count, pitch, self.reader.register("the slot register"))

    def _option_valid(self) -> tuple[int, int]:
        return self.reader.integer("the valid rows"), self.reader.integer("the valid columns")

    def _option_layout(self) -> str:
        return self._choice(LAYOUTS, "layout")

    def _tensor(self) -> None:
        name, position = self._declared_name()
        rank, dtype = self._counted("a tensor register, RANK x dtype")
        if not 1 <= rank <= 8:
            self.reader.complain(f"tensor %{name} has rank {rank}; legal ranks are 1 to 8")
        self.tensors.append(TensorRegister(name, rank, dtype, position))

    def _array(self) -> None:
        name, position = self._declared_name()
        length, dtype = self._counted("an array, N x dtype")
        self.arrays.append(Array(name, length, dtype, position))

    def _counted(self, what: str) -> tuple[int, str]:
        shape, dtype = self._shape(what, dynamic=False)
        if len(shape) != 1:
            self.reader.complain(f"expected {what}, found {len(shape)} numbers")
        return shape[0], dtype

    def _shape(self, what: str, *, dynamic: bool) -> tuple[tuple[int, ...], str]:
        token = self.reader.expect_kind("shape", what)
        *extents, dtype = (part.strip() for part in token.text.split("x", token.text.count("x")))
        # A dtype never holds an 'x' except 'index', which the split above has cut.
        if dtype == "" and extents and extents[-1] == "inde":
            dtype = extents.pop() + "x"
        if dtype not in DTYPE_NAMES:
            self.reader.complain(_unknown_dtype(dtype), token)
        if "?" in extents and not dynamic:
            self.reader.complain(f"expected {what}: a dynamic extent '?' is legal in tensor parameters only", token)
        return tuple(-1 if e == "?" else int(e) for e in extents), dtype

    def _dtype(self) -> str:
        token = self.reader.expect_kind("word", "a dtype")
        if token.text not in DTYPE_NAMES:
            self.reader.complain(_unknown_dtype(token.text), token)
        return token.text

    def _choice(self, known: tuple[str, ...], what: str) -> str:
        token = self.reader.expect_kind("word", f"a {what}")
        if token.text not in known:
            self.reader.complain(f"unknown {what} '{token.text}'; known: {', '.join(known)}", token)
        return token.text

    # statements

    def _block(self, what: str) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        opened = self.reader.token
        while not self.reader.accept("}"):
            token = self.reader.token
            if token.kind == "end":
                self.reader.complain(
                    f"the '}}' that closes {what} is missing (its body starts at line "
                    f"{self.reader.position(opened).line})"
                )
            if token.kind != "word":
                self.reader.complain(f"expected an instruction, found {shown_token(token)}")
            self.reader.take()
            declaration = _DECLARATIONS.get(token.text)
            if declaration:
                declaration(self)
            else:
                statements.append(_STATEMENTS.get(token.text, _Body._instruction)(self, token))
        return tuple(statements)

    def _for(self, token: Token) -> For:
        reader = self.reader
        index = reader.register("the loop register")
        reader.expect("=", f"after {index}")
        low = self._bound("the first value")
        reader.expect("to", "after the first value")
        high = self._bound("the bound")
        step = self._bound("the step") if reader.accept("step") else 1
        reader.expect("{", "to open the loop body")
        place = self._place()
        return For(index, low, high, step, self._block("the loop"), place, reader.position(token))

    def _bound(self, what: str) -> Register | int:
        if self.reader.token.kind == "register":
            return self.reader.register(what)
        return self.reader.integer(f"{what}, a register or an integer")

    def _if(self, token: Token) -> If:
        condition = self.reader.register("the condition register")
        self.reader.expect("{", "to open the 'if' body")
        place = self._place()
        then = self._block("the 'if'")
        orelse: tuple[Statement, ...] = ()
        if self.reader.accept("else"):
            self.reader.expect("{", "to open the 'else' body")
            orelse = self._block("the 'else'")
        return If(condition, then, orelse, place, self.reader.position(token))

    def _while(self, token: Token) -> While:
        self.reader.expect("{", "to open the 'while' test")
        place = self._place()
        test = self._block("the 'while' test")
        self.reader.expect("do", "after the 'while' test")
        condition = self.reader.register("the condition register")
        self.reader.expect("{", "to open the 'while' body")
        return While(test, condition, self._block("the 'while' body"), place, self.reader.position(token))

    def _instruction(self, token: Token) -> Instruction:
        reader = self.reader
        operands: list[Operand] = []
        positions: list[Position] = []
        if reader.token.kind in _OPERAND_KINDS or reader.next_is("["):
            positions.append(reader.position())
            operands.append(self._operand())
            while reader.accept(","):
                positions.append(reader.position())
                operands.append(self._operand())
            if reader.token.kind in _OPERAND_KINDS or reader.next_is("["):
                reader.complain(f"expected ',' or the end of '{token.text}', found {shown_token(reader.token)}")
        attributes = self._attributes() if reader.accept("{") else {}
        return Instruction(
            token.text, tuple(operands), attributes, self._place(), reader.position(token), tuple(positions)
        )

    def _operand(self) -> Operand:
        token = self.reader.token
        if self.reader.accept("["):
            return self._list()
        if token.kind not in _OPERAND_KINDS:
            self.reader.complain(
                f"expected an operand (%register, number, @kernel or [list]), found {shown_token(token)}"
            )
        self.reader.take()
        if token.kind == "number":
            return _number(token.text)
        return Register(token.text[1:]) if token.kind == "register" else KernelName(token.text[1:])

    def _list(self) -> tuple[Operand, ...]:
        items: list[Operand] = []
        while not self.reader.accept("]"):
            items.append(self._operand())
            if not self.reader.next_is("]"):
                self.reader.expect(",", "or ']' in the list")
        return tuple(items)

    def _attributes(self) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {}
        while not self.reader.accept("}"):
            name = self.reader.expect_kind("word", "an attribute, 'name = value',")
            if name.text in attributes:
                self.reader.complain(f"attribute '{name.text}' is given twice", name)
            self.reader.expect("=", f"after attribute '{name.text}'")
            attributes[name.text] = self._attribute_value(name.text)
            if not self.reader.next_is("}"):
                self.reader.expect(",", "or '}' after an attribute")
        return attributes

    def _attribute_value(self, name: str) -> Attribute:
        if self.reader.accept("["):
            items = self._list()
            if not all(isinstance(item, int) for item in items):
                self.reader.complain(f"attribute '{name}' is a list of integers")
            return tuple(item for item in items if isinstance(item, int))
        token = self.reader.take()
        if token.kind not in ("word", "register", "number"):
            self.reader.complain(f"expected the value of attribute '{name}', found {shown_token(token)}", token)
        if token.kind == "number":
            return _number(token.text)
        return Register(token.text[1:]) if token.kind == "register" else token.text

    def _place(self) -> Place | None:
        if self.reader.token.kind != "place":
            return None
        file, line = self.reader.take().text[1:].split(":")
        return Place(int(file), int(line))


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _unknown_dtype(name: str) -> str:
    try:
        DataType.from_string(name)
    except ValueError as error:
        return str(error)
    return f"dtype '{name}' is not legal here"


_DECLARATIONS: dict[str, Callable[[_Body], None]] = {
    "file": _Body._file,
    "name": _Body._source_name,
    "param": _Body._parameter,
    "tile": _Body._tile,
    "tensor": _Body._tensor,
    "array": _Body._array,
}
_STATEMENTS: dict[str, Callable[[_Body, Token], Statement]] = {
    "for": _Body._for,
    "if": _Body._if,
    "while": _Body._while,
}
