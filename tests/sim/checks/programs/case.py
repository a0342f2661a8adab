"""A faulty program with its repaired twin, and what a good report says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Tensors = list[torch.Tensor]


@dataclass(frozen=True)
class Case:
    """``arguments()`` makes fresh arguments; ``expected`` takes them (before the run) to {position: values}."""

    name: str
    kind: str
    faulty: Any
    fixed: Any
    arguments: Callable[[], Tensors]
    expected: Callable[..., dict[int, torch.Tensor]]
    tensor: str = ""
    tasks: Sequence[str] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    repair: str = ""
    lines: Sequence[str] = ()
    """Pieces of the source lines that the report must show."""

    @property
    def faulty_name(self) -> str:
        """Name of the faulty kernel in its module, which is that of the case."""
        return self.name


def rnd(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype)


class Program:
    """A ``@pl.program`` class with the face of a jit kernel."""

    def __init__(self, program: Any):
        self.program = program

    def compile(self, *arguments: torch.Tensor, config: Any) -> Any:
        from pypto import ir

        return ir.compile(self.program, platform=config.platform)
