"""The signature of a build directory, from the parameters of its orchestration text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pypto.ir.dtype import DataType
from pypto.runtime.arguments import Direction, Signature
from pypto.runtime.callable import ChipCallable
from pypto.runtime.torch_dtypes import to_runtime_shape

if TYPE_CHECKING:
    from pypto.sim.program import ProgramParameter

_DIRECTIONS: Final[dict[str, Direction]] = {"in": "In", "out": "Out", "inout": "InOut"}


@dataclass(frozen=True)
class TextParameter:
    """One parameter; ``shape`` is that of the host tensor (-1: any extent), ``None`` for a scalar."""

    name: str
    direction: Direction
    kind: str
    shape: tuple[int, ...] | None
    dtype: DataType


@dataclass(frozen=True)
class TextProgram:
    """What an orchestration text says of a call. It does not record whether the source returns its outputs."""

    param_infos: tuple[TextParameter, ...]
    has_return: bool = False

    @property
    def output_indices(self) -> list[int]:
        return [i for i, p in enumerate(self.param_infos) if p.direction == "Out"]


def text_signature(chip_callable: ChipCallable) -> Signature:
    """The signature of ``chip_callable``."""
    program = TextProgram(tuple(map(_parameter, chip_callable.program.params)))
    return Signature(program, chip_callable.name, chip_callable.written)


def _parameter(p: ProgramParameter) -> TextParameter:
    shape = None if p.shape is None else to_runtime_shape(p.shape, p.dtype)
    return TextParameter(p.name, _DIRECTIONS[p.direction], p.kind, shape, p.dtype)
