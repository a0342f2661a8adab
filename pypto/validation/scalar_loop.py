"""A loop of scalar code over tiles (V2 case 0): two elements read, one written."""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

import tempfile
from typing import Any

import pypto.language as pl
from pypto.sim.capture import record

from .programs import compiled, launched, tensor

_TILE, _COUNT = 512, 4


def scalar_add_us(part: str) -> float:
    """Time of a core per element."""
    vectors = [tensor(1, _TILE * _COUNT).zero_() for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        recording = record(compiled(_scalar_add(), *vectors, folder=folder), vectors)
    return launched(recording, part).core_us / (_TILE * _COUNT)


def _scalar_add() -> Any:
    total, tile = _TILE * _COUNT, _TILE

    @pl.jit
    def add(
        x: pl.Tensor[[1, total], pl.FP16],
        y: pl.Tensor[[1, total], pl.FP16],
        z: pl.Out[pl.Tensor[[1, total], pl.FP16]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            for at in pl.range(0, total, tile):
                a = pl.load(x, [0, at], [1, tile])
                b = pl.load(y, [0, at], [1, tile])
                for i in pl.range(tile):
                    pl.write(a, [0, i], pl.read(a, [0, i]) + pl.read(b, [0, i]))
                z = pl.store(a, [0, at], z)
        return z

    return add
