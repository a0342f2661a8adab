"""Which figures of a chip a computation reads. A change of any other figure cannot change what it computes."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from pypto.sim.chips.description import Constant, OpTable


@dataclass(frozen=True)
class Watched(Constant):
    """A constant that notes in ``seen`` when its value is read."""

    name: str = field(default="", compare=False)
    seen: Any = field(default=None, compare=False)

    def __getattribute__(self, key):
        if key == "value":
            object.__getattribute__(self, "seen").add(object.__getattribute__(self, "name"))
        return object.__getattribute__(self, key)


class Watch:
    """A chip that tells which of its figures were read."""

    def __init__(self, target):
        self._seen: set[str] = set()
        self.chip = self._watched(target, "")

    def of(self, call):
        """What ``call`` returns for the chip, and the names of the figures it read."""
        self._seen.clear()
        result = call(self.chip)
        return result, frozenset(self._seen)

    def _watched(self, node, name):
        if isinstance(node, Constant):
            return Watched(node.value, node.unit, node.source, node.confidence, name, self._seen)
        if isinstance(node, OpTable):
            return OpTable(tuple((key, self._watched(row, f"{name}.{key}")) for key, row in node.rows))
        if dataclasses.is_dataclass(node):
            parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
            inner = {key: self._watched(part, f"{name}.{key}" if name else key) for key, part in parts.items()}
            return dataclasses.replace(node, **inner)
        return node
