"""Which core runs an instruction, and the separation of a mixed kernel into a cube and a vector program.

A value that changes sides goes through a cross-core queue: a push on the producer's core, a pop and a free on the
consumer's (spec ops 17). Scalar instructions and control flow run on both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import (
    Branch,
    Instruction,
    Kernel,
    Loop,
    Node,
    Register,
    Tile,
    WhileLoop,
    instructions,
)

Core = Literal["aic", "aiv"]
CUBE_SPACES = ("mat", "left", "right", "acc", "bias", "leftscale", "rightscale")
PURE = {
    "smov",
    "sadd",
    "ssub",
    "smul",
    "sdiv",
    "sfloordiv",
    "smod",
    "sshl",
    "sshr",
    "sand",
    "sor",
    "sxor",
    "smin",
    "smax",
    "sneg",
    "snot",
    "sabs",
    "slt",
    "sle",
    "seq",
    "sne",
    "sgt",
    "sge",
    "land",
    "lor",
    "lnot",
    "scvt",
    "sselect",
    "dim",
    "sload",
    "aget",
    "sblockidx",
    "sblocknum",
    "ssubblock",
}
SIDES: dict[str, Core] = {
    "tpush_to_aiv": "aic",
    "tpop_from_aiv": "aic",
    "tfree_to_aiv": "aic",
    "tpush_to_aic": "aiv",
    "tpop_from_aic": "aiv",
    "tfree_to_aic": "aiv",
    "ring_aic": "aic",
    "ring_aiv": "aiv",
}


def sides(node: Instruction) -> set[Core]:
    """Cores whose memories ``node`` touches."""
    if node.mnemonic in SIDES:
        return {SIDES[node.mnemonic]}
    found: set[Core] = set()
    for operand in node.operands:
        if isinstance(operand, Tile):
            found.add("aic" if operand.space in CUBE_SPACES else "aiv")
    return found


def _check_transfers(kernel: Kernel, stated: Core) -> None:
    """``CompileError`` for a transfer that the other side of the cluster makes."""
    for node in instructions(kernel.body):
        name = node.mnemonic
        if SIDES.get(name, stated) != stated and not name.startswith("ring_"):
            there, other = {"aic": ("cube", "aiv"), "aiv": ("vector lanes", "aic")}[stated]
            own = name.rpartition("_")[0] + f"_{other}"
            raise CompileError(
                f"pl.{name} runs on the other side: {kernel.name!r} is an {stated.upper()} function, which runs on the "
                f"{there}; legal there: pl.{own}",
                node.span,
            )


def separate(kernel: Kernel, slots: int = 0, stated: Core | None = None) -> list[Kernel]:
    """The programs of ``kernel``: one for a pure kernel, cube and vector for a mixed one.

    ``slots``: tiles in flight per queue between the two, 0 for the default. ``stated``: the side that its author says
    it runs on. ``CompileError`` for a transfer that the other side makes.
    """
    if stated is not None:
        _check_transfers(kernel, stated)
    used = {side for node in instructions(kernel.body) for side in sides(node)}
    if len(used) < 2:
        core: Core = used.pop() if used else "aiv"
        kernel.core = core
        kernel.body = without_dead_scalars(kernel.body)
        return [kernel]
    crossings = _Crossings(slots)
    body = crossings.rewrite(kernel.body)
    members = []
    for core in ("aic", "aiv"):
        part = Kernel(
            f"{kernel.name}_{core}",
            core,
            list(kernel.params),
            [],
            list(kernel.tiles),
            dict(kernel.tensors),
            dict(kernel.arrays),
            names=kernel.names,
        )
        part.body = without_dead_scalars(list(_kept(body, core)))
        members.append(part)
    return members


class _Crossings:
    """Replaces moves between the two sides by queue transfers."""

    def __init__(self, slots: int) -> None:
        self._channels = itertools.count()
        self._depth = {"slots": slots} if slots else {}

    def rewrite(self, body: list[Node]) -> list[Node]:
        result: list[Node] = []
        for node in body:
            if isinstance(node, Instruction):
                result += self._transfer(node) if len(sides(node)) == 2 else [node]
            elif isinstance(node, Loop):
                result.append(replace(node, body=self.rewrite(node.body)))
            elif isinstance(node, WhileLoop):
                result.append(replace(node, head=self.rewrite(node.head), body=self.rewrite(node.body)))
            elif isinstance(node, Branch):
                result.append(
                    replace(node, then_body=self.rewrite(node.then_body), else_body=self.rewrite(node.else_body))
                )
            else:
                result.append(node)
        return result

    def _transfer(self, node: Instruction) -> list[Node]:
        target, source = node.operands[0], node.operands[1]
        to_vector = target.space == "vec"
        there, back = ("aiv", "aic") if to_vector else ("aic", "aiv")
        attributes = {"split": node.attributes.get("split", 0), "id": next(self._channels) % 16}
        return [
            Instruction(f"tpush_to_{there}", [source], {**attributes, **self._depth}, node.span, (), (source,)),
            Instruction(f"tpop_from_{back}", [target], dict(attributes), node.span, (target,), ()),
            Instruction(f"tfree_to_{back}", [target], {**attributes, "copied": 1}, node.span, (), (target,)),
        ]


def _kept(body: list[Node], core: Core) -> Iterator[Node]:
    """The part of ``body`` that runs on ``core``; blocks left empty disappear."""
    for node in body:
        if isinstance(node, Instruction):
            wanted = sides(node)
            if wanted == {core} or (
                not wanted
                and (
                    core == "aiv"
                    or node.mnemonic.partition(".")[0]
                    in PURE | {"aset", "view", "reshape", "permute", "reinterpret", "setvalid"}
                )
            ):
                yield node
        elif isinstance(node, Loop):
            inner = list(_kept(node.body, core))
            if _works(inner):
                yield replace(node, body=inner)
        elif isinstance(node, WhileLoop):
            yield replace(node, head=list(_kept(node.head, core)), body=list(_kept(node.body, core)))
        elif isinstance(node, Branch):
            then_body, else_body = list(_kept(node.then_body, core)), list(_kept(node.else_body, core))
            if _works(then_body) or _works(else_body):
                yield replace(node, then_body=then_body, else_body=else_body)
        else:
            yield node


def _works(body: list[Node]) -> bool:
    """True when a block does more than compute scalars that nothing outside it could need."""
    for node in body:
        if not isinstance(node, Instruction):
            return True
        if node.mnemonic.partition(".")[0] not in PURE:
            return True
        if node.operands and isinstance(node.operands[0], Register) and not node.operands[0].name.startswith("_"):
            return True
    return False


def without_dead_scalars(body: list[Node]) -> list[Node]:
    """Drop scalar instructions whose result nothing reads."""
    while True:
        used = set(_read_registers(body))
        smaller = list(_live(body, used))
        if sum(1 for _ in instructions(smaller)) == sum(1 for _ in instructions(body)):
            return smaller
        body = smaller


def _live(body: list[Node], used: set[str]) -> Iterator[Node]:
    for node in body:
        if isinstance(node, Instruction):
            pure = node.mnemonic.partition(".")[0] in PURE and isinstance(node.operands[0], Register)
            if not pure or node.operands[0].name in used:
                yield node
        elif isinstance(node, Loop):
            yield replace(node, body=list(_live(node.body, used)))
        elif isinstance(node, WhileLoop):
            yield replace(node, head=list(_live(node.head, used)), body=list(_live(node.body, used)))
        elif isinstance(node, Branch):
            yield replace(
                node, then_body=list(_live(node.then_body, used)), else_body=list(_live(node.else_body, used))
            )
        else:
            yield node


def _read_registers(body: list[Node]) -> Iterator[str]:
    for node in body:
        if isinstance(node, Instruction):
            first = 1 if node.mnemonic.partition(".")[0] in PURE else 0
            yield from _registers(tuple(node.operands[first:]))
            yield from _registers(tuple(node.attributes.values()))
            for operand in node.operands:
                if isinstance(operand, Tile):
                    yield from _registers((operand.buffer.slot,))
        elif isinstance(node, Loop):
            yield from _registers((node.start, node.stop, node.step))
            yield from _read_registers(node.body)
        elif isinstance(node, WhileLoop):
            yield from _registers((node.condition,))
            yield from _read_registers(node.head)
            yield from _read_registers(node.body)
        elif isinstance(node, Branch):
            yield from _registers((node.condition,))
            yield from _read_registers(node.then_body)
            yield from _read_registers(node.else_body)


def _registers(values: tuple[object, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Register):
            yield value.name
        elif isinstance(value, tuple):
            yield from _registers(value)
