"""An assembled program: machine code, the frame it starts from, and what its driver must know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pypto.ir.dtype import DataType
from pypto.ir.instructions.table import Instruction as Row
from pypto.sim.recording import ProgramRecord, Words
from pypto.sim.syntax import Array, Core, Parameter, Place, Statement, TensorRegister, Tile


@dataclass(frozen=True)
class Allocate:
    """``alloc``: word offsets in the frame unless said otherwise."""

    target: int
    extents: tuple[int, ...]
    dtype: int  # dtype code
    initial: int | None  # register word to fill with
    manual: bool
    index: int = -1  # instruction index


@dataclass(frozen=True)
class Dependency:
    """One entry of a ``deps`` list: ``count`` task ids from word ``offset`` on."""

    offset: int
    count: int


@dataclass(frozen=True)
class Predicate:
    """``tensor[indices] operator value`` decides whether the task runs."""

    tensor: int
    indices: tuple[int, ...]
    operator: Literal["eq", "ne", "lt", "le", "gt", "ge"]
    value: int


@dataclass(frozen=True)
class Submit:
    """``submit``: ``arguments`` are (is tensor, word offset) in the order of the kernel's parameters."""

    target: int
    kernel: str
    arguments: tuple[tuple[bool, int], ...]
    dependencies: tuple[Dependency, ...]
    directions: tuple[int, ...]
    blocks: int  # word offset
    flags: int  # recording.EARLY_RESOLVE | SYNC_START
    predicate: Predicate | None
    index: int  # instruction index
    floats: frozenset[int] = frozenset()  # positions of the arguments that are floats
    dumped: frozenset[int] = frozenset()  # positions of the tensors marked for the argument dump


@dataclass(frozen=True)
class Dummy:
    """``dummy``."""

    target: int
    dependencies: tuple[Dependency, ...]


@dataclass(frozen=True)
class Scope:
    """``scope`` (``manual`` or not) and ``endscope`` (``opens`` false)."""

    opens: bool
    manual: bool = False
    index: int = -1  # instruction index


@dataclass(frozen=True)
class Access:
    """The orchestration is about to read or write an element of ``tensor``."""

    tensor: int
    writes: bool
    index: int = -1  # instruction index


Request = Allocate | Submit | Dummy | Scope | Access


@dataclass(frozen=True)
class Binding:
    """Where parameter ``parameter`` lives in the frame."""

    parameter: Parameter
    offset: int
    is_tensor: bool


@dataclass(frozen=True)
class Transfer:
    """A cross-core push or pop: direction, queue id, split code, bytes of the tile, stated slots (0: the default)."""

    pushes: bool
    direction: int
    channel: int
    split: int
    bytes: int
    slots: int = 0


@dataclass(frozen=True)
class Call:
    """A kernel call: its row, the dtypes of its operands, and the code word that takes the kernel's address."""

    row: Row
    dtypes: tuple[DataType | None, ...]
    at: int


@dataclass(frozen=True, eq=False)
class TileProgram:
    """One kernel or orchestration, ready to run.

    ``template`` is the frame of a block before its parameters are bound; the words at ``relocated`` hold byte offsets
    and get the base address of memory space ``relocated_space`` added. ``space_bytes``: pairs (space code, bytes
    used).
    """

    name: str
    core: Core | None
    code: Words
    template: Words
    relocated: Words
    relocated_space: Words
    space_bytes: tuple[tuple[int, int], ...]
    bindings: tuple[Binding, ...]
    record: ProgramRecord
    statements: tuple[Statement, ...]  # by instruction index (pc of the trace)
    requests: tuple[Request, ...]
    files: dict[int, str]
    text_file: str
    symbols: dict[str, Tile | TensorRegister | Array | Parameter]
    offsets: dict[str, int]
    transfers: tuple[Transfer, ...] = ()
    calls: tuple[Call, ...] = ()
    waits: bool = False  # has cross-core instructions
    spans_blocks: bool = False  # has barriers or events that reach other blocks
    signals: bool = False  # notifies or waits for other ranks
    listable: bool = False  # its GM accesses follow from its parameters alone (footprint.py)
    reads_memory: bool = False  # reads scalars from tensors or tiles
    clears: bool = True  # a tile may be read before all of it is written
    names: dict[int, str] = field(default_factory=dict)  # descriptor offset -> register name
    authors: dict[str, str] = field(default_factory=dict)  # register -> its name in the source, where the two differ
    body: tuple[Statement, ...] = ()  # as in the text, with branches and loops around what is inside

    def author(self, register: str) -> str:
        """What the source text calls the value in ``register``."""
        return self.authors.get(register, register)

    def place(self, index: int) -> Place | None:
        """Source place of the instruction with index ``index``."""
        return self.statements[index].place if 0 <= index < len(self.statements) else None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(binding.parameter for binding in self.bindings)

    @property
    def frame_words(self) -> int:
        return int(np.size(self.template))
