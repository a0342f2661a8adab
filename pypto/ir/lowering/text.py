"""Kernels as text (docs/architecture.md 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypto.ir.lowering.instructions import (
    ArrayRef,
    Branch,
    Instruction,
    Jump,
    Kernel,
    KernelParam,
    KernelRef,
    Loop,
    Node,
    Register,
    TensorRef,
    Tile,
    WhileLoop,
)
from pypto.ir.printer import number
from pypto.ir.span import Span

PLACE_COLUMN = 72


class Text:
    """Collects the lines of one unit."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.lines: list[str] = []

    def operand(self, value: Any) -> str:
        if isinstance(value, (Tile, Register, TensorRef, ArrayRef)):
            return f"%{value.name}"
        if isinstance(value, KernelRef):
            return f"@{value.name}"
        if isinstance(value, tuple):
            return f"[{', '.join(self.operand(v) for v in value)}]"
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, float):
            return _float(value)
        return str(value)

    def place(self, span: Span) -> str:
        if not span.line:
            return ""
        file = self.files.setdefault(span.filename, len(self.files))
        return f"@{file}:{span.line}"

    def line(self, pad: str, text: str, span: Span) -> None:
        place = self.place(span)
        body = f"{pad}{text}"
        self.lines.append(f"{body:<{PLACE_COLUMN}} {place}" if place else body)

    def body(self, nodes: list[Node], pad: str) -> None:
        for node in nodes:
            self.node(node, pad)

    def node(self, node: Node, pad: str) -> None:
        if isinstance(node, Instruction):
            self.line(pad, self.instruction(node), node.span)
        elif isinstance(node, Loop):
            low, high, step = (self.operand(v) for v in (node.start, node.stop, node.step))
            head = f"for %{node.variable.name} = {low} to {high} step {step} {{"
            self.line(pad, head, node.span)
            self.body(node.body, pad + "  ")
            self.lines.append(f"{pad}}}")
        elif isinstance(node, Branch):
            self.line(pad, f"if {self.operand(node.condition)} {{", node.span)
            self.body(node.then_body, pad + "  ")
            if node.else_body:
                self.lines.append(f"{pad}}} else {{")
                self.body(node.else_body, pad + "  ")
            self.lines.append(f"{pad}}}")
        elif isinstance(node, WhileLoop):
            self.line(pad, "while {", node.span)
            self.body(node.head, pad + "  ")
            self.lines.append(f"{pad}}} do {self.operand(node.condition)} {{")
            self.body(node.body, pad + "  ")
            self.lines.append(f"{pad}}}")
        elif isinstance(node, Jump):
            self.line(pad, node.kind, node.span)

    def instruction(self, node: Instruction) -> str:
        text = node.mnemonic
        if node.operands:
            text += " " + ", ".join(self.operand(o) for o in node.operands)
        if node.attributes:
            text += " {" + ", ".join(f"{k} = {self.operand(v)}" for k, v in node.attributes.items()) + "}"
        return text


def _float(value: float) -> str:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return number(value)


def kernel_text(kernel: Kernel) -> str:
    """The whole unit of one kernel."""
    text = Text()
    text.body(kernel.body, "  ")
    head = ["// pypto text 1", f"kernel @{kernel.name} {kernel.core} {{"]
    head += [f'  file {number} "{name}"' for name, number in text.files.items()]
    head += name_lines(kernel.names)
    head += [f"  {param_line(p)}" for p in kernel.params]
    head += [f"  {_tile_line(t, text)}" for t in kernel.tiles]
    head += [f"  tensor %{n} : {rank} x {dtype.to_string()}" for n, (rank, dtype) in kernel.tensors.items()]
    head += [f"  array %{n} : {extent} x {dtype.to_string()}" for n, (extent, dtype) in kernel.arrays.items()]
    return "\n".join([*head, *text.lines, "}", ""])


def name_lines(names: Mapping[str, str]) -> list[str]:
    """What the source text calls the values in registers."""
    return [f'  name %{register} "{name}"' for register, name in names.items()]


def param_line(param: KernelParam) -> str:
    """One ``param`` declaration."""
    if param.shape is None:
        return f"param %{param.name} : scalar<{param.dtype.to_string()}>"
    extents = "x".join("?" if d < 0 else str(d) for d in param.shape)
    window = " window" if param.window else ""
    return f"param %{param.name} : tensor<{extents}x{param.dtype.to_string()}> {param.direction}{window}"


def _tile_line(tile: Tile, text: Text) -> str:
    line = f"tile %{tile.name} : {tile.space}<{tile.rows}x{tile.cols}x{tile.dtype.to_string()}> at {tile.address}"
    if tile.row_stride != tile.cols:
        line += f" stride {tile.row_stride}"
    owner = tile.buffer
    if owner.slots > 1 and owner.slot is not None and not isinstance(owner.slot, int):
        line += f" slots {owner.slots} pitch {owner.pitch_bytes} by {text.operand(owner.slot)}"
    if tile.valid is not None:
        line += f" valid {tile.valid[0]} {tile.valid[1]}"
    return line
