"""Instructions over virtual tile registers, with structured control flow: what the memory planner and the text see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.span import UNKNOWN_SPAN, Span


@dataclass(eq=False)
class Tile:
    """A tile register. An alias (``root``) shares the bytes of another one, ``offset_bytes`` further on."""

    name: str
    rows: int
    cols: int
    dtype: DataType
    space: str
    stride: int = 0  # elements between rows; 0: cols
    valid: tuple[int, int] | None = None  # static partial valid shape
    root: Tile | None = None
    offset_bytes: int = 0
    allocation: str | None = None  # name of a declared allocation
    slots: int = 1
    slot: Any = None  # slot operand of a declared allocation
    pitch_bytes: int = 0  # from one slot to the next; known once planned
    stage: tuple[tuple[Any, int], ...] = ()  # (pipeline loop, copy) around its definition
    origin: Any = None  # what copies of one definition have in common
    address: int = -1

    @property
    def buffer(self) -> Tile:
        """The register that owns the bytes."""
        return self if self.root is None else self.root.buffer

    @property
    def row_stride(self) -> int:
        return self.stride or self.cols

    @property
    def element_bytes(self) -> int:
        return self.dtype.get_byte()

    @property
    def nbytes(self) -> int:
        return self.rows * self.row_stride * self.element_bytes

    def base_offset(self) -> int:
        """Bytes from the start of the owning buffer."""
        return 0 if self.root is None else self.offset_bytes + self.root.base_offset()


@dataclass(frozen=True)
class Register:
    """A scalar register."""

    name: str


@dataclass(frozen=True)
class TensorRef:
    """A tensor parameter or tensor register."""

    name: str


@dataclass(frozen=True)
class ArrayRef:
    """An operand that names an array of the kernel."""

    name: str


@dataclass(frozen=True)
class KernelRef:
    """An operand that names a kernel of the program."""

    name: str


Operand = Tile | Register | TensorRef | ArrayRef | KernelRef | int | float | tuple


@dataclass(eq=False)
class Instruction:
    """One instruction. ``writes``/``reads`` are the tile registers it touches; ``copy`` marks moves that may vanish."""

    mnemonic: str
    operands: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    span: Span = UNKNOWN_SPAN
    writes: tuple[Tile, ...] = ()
    reads: tuple[Tile, ...] = ()
    may_share: bool = False
    copy: bool = False


@dataclass(eq=False)
class Loop:
    """``for variable in range(start, stop, step)``; the bounds are registers or integers."""

    variable: Register
    start: Any
    stop: Any
    step: Any
    body: list[Node]
    span: Span = UNKNOWN_SPAN


@dataclass(eq=False)
class WhileLoop:
    """A loop whose ``head`` computes the condition again before every iteration."""

    head: list[Node]
    condition: Any
    body: list[Node]
    span: Span = UNKNOWN_SPAN


@dataclass(eq=False)
class Branch:
    """Two bodies, of which the condition chooses one."""

    condition: Any
    then_body: list[Node]
    else_body: list[Node]
    span: Span = UNKNOWN_SPAN


@dataclass(eq=False)
class Jump:
    """Leaves an iteration, a loop or the kernel."""

    kind: str  # break, continue, ret
    span: Span = UNKNOWN_SPAN


Node = Instruction | Loop | WhileLoop | Branch | Jump


def nested(node: Node) -> Iterator[list[Node]]:
    """The blocks inside ``node``."""
    if isinstance(node, Loop):
        yield node.body
    elif isinstance(node, WhileLoop):
        yield node.head
        yield node.body
    elif isinstance(node, Branch):
        yield node.then_body
        yield node.else_body


def instructions(body: list[Node]) -> Iterator[Instruction]:
    """Every instruction of ``body`` in program order."""
    for node in body:
        if isinstance(node, Instruction):
            yield node
        else:
            for block in nested(node):
                yield from instructions(block)


@dataclass(eq=False)
class KernelParam:
    """``shape`` is ``None`` for scalars; -1 marks a dynamic extent."""

    name: str
    dtype: DataType
    shape: tuple[int, ...] | None
    direction: str
    window: bool = False


@dataclass(eq=False)
class Kernel:
    """One program of one core kind."""

    name: str
    core: str  # aic or aiv
    params: list[KernelParam]
    body: list[Node]
    tiles: list[Tile] = field(default_factory=list)
    tensors: dict[str, tuple[int, DataType]] = field(default_factory=dict)
    arrays: dict[str, tuple[int, DataType]] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Register -> name of the value in the source text, where the two differ."""
