"""What an operation says when it is used against its contract."""

from __future__ import annotations


class OperandTypeError(TypeError):
    """An argument of the wrong class, or an option that the chosen form does not have (spec ops 1.4)."""


class OutsideRegionError(OperandTypeError):
    """A construct of a ``pl.split_aiv`` region outside of one (spec ops 1.4)."""


class OperandValueError(ValueError):
    """A shape, rank, dtype, range, memory space or valid region that the operation does not accept (spec ops 1.4)."""


class UnknownOperationError(LookupError):
    """No operation has this name; ``nearest`` holds the closest spellings there are."""

    def __init__(self, name: str, nearest: tuple[str, ...] = ()):
        self.name, self.nearest = name, nearest
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(f"unknown operation {name}{hint}")
