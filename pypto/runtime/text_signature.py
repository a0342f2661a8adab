"""The signature of a build directory, from the parameters of its orchestration text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pypto.ir.dtype import DataType
from pypto.runtime.arguments import Direction, Signature
from pypto.runtime.callable import orchestration_text
from pypto.runtime.torch_dtypes import to_runtime_shape

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


def text_signature(build_dir: Path) -> Signature:
    """The signature of the orchestration in ``build_dir``."""
    from pypto.sim.syntax import Parameter, TensorParameter, Unit
    from pypto.sim.text import read_unit

    def parameter(p: Parameter) -> TextParameter:
        dtype = DataType.from_string(p.dtype)
        if not isinstance(p, TensorParameter):
            return TextParameter(p.name, "In", "scalar", None, dtype)
        return TextParameter(p.name, _DIRECTIONS[p.direction], "tensor", to_runtime_shape(p.shape, dtype), dtype)

    path = orchestration_text(build_dir)
    unit = read_unit(path)
    if not isinstance(unit, Unit):
        raise ValueError(f"{path} holds a group, not an orchestration")
    return Signature(TextProgram(tuple(map(parameter, unit.parameters))), unit.name)
