"""Names of a body while it is parsed: what is bound where, and under which internal name."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto.ir import nodes as ir


@dataclass
class Block:
    """One block of the body. ``bound`` maps source names to the variables bound in it."""

    kind: str  # function, for, while, if, with
    bound: dict[str, ir.Var] = field(default_factory=dict)
    hidden: bool = False  # names first bound inside are not readable after it


class Names:
    """The stack of open blocks."""

    def __init__(self) -> None:
        self._blocks: list[Block] = [Block("function")]
        self._taken: set[str] = set()
        self._gone: dict[str, str] = {}  # names whose block has closed -> kind of that block

    def lookup(self, name: str) -> ir.Var | None:
        """The variable ``name`` stands for here, innermost block first."""
        for block in reversed(self._blocks):
            if name in block.bound:
                return block.bound[name]
        return None

    def closed_in(self, name: str) -> str | None:
        """Kind of the closed block that bound ``name`` first, if any."""
        return self._gone.get(name)

    def depth_of(self, name: str) -> int | None:
        """How many blocks up ``name`` is bound: 0 in the innermost one."""
        for up, block in enumerate(reversed(self._blocks)):
            if name in block.bound:
                return up
        return None

    def bind(self, name: str, variable: ir.Var) -> None:
        """Bind in the block that already holds ``name``, else in the innermost one."""
        for block in reversed(self._blocks):
            if name in block.bound:
                block.bound[name] = variable
                return
        self._blocks[-1].bound[name] = variable
        self._taken.add(variable.name)

    def shadow(self, name: str, variable: ir.Var) -> None:
        """Bind in the innermost block whatever the outer ones hold."""
        self._blocks[-1].bound[name] = variable
        self._taken.add(variable.name)

    def fresh(self, base: str) -> str:
        """An internal name derived from ``base`` that nothing uses yet."""
        if base not in self._taken:
            self._taken.add(base)
            return base
        number = 1
        while f"{base}_v{number}" in self._taken:
            number += 1
        self._taken.add(f"{base}_v{number}")
        return f"{base}_v{number}"

    def open(self, kind: str, hidden: bool = False) -> None:
        self._blocks.append(Block(kind, hidden=hidden))

    def close(self) -> Block:
        """Leave the innermost block; names of a visible block move outwards, others are remembered as gone."""
        block = self._blocks.pop()
        for name, variable in block.bound.items():
            if block.hidden:
                self._gone[name] = block.kind
            else:
                self._blocks[-1].bound[name] = variable
        return block

    def visible(self) -> set[str]:
        """All readable names."""
        return {name for block in self._blocks for name in block.bound}

    @property
    def kinds(self) -> list[str]:
        """Kinds of the open blocks, outermost first."""
        return [block.kind for block in self._blocks]
