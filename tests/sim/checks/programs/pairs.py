"""A cube and a vector function of one group, from the lines of their bodies."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from .case import Program

_NUMBERS = itertools.count()
_A, _B = "a: pl.Tensor[[32, 64], pl.FP32]", "b: pl.Tensor[[64, 32], pl.FP32]"
_Y = "y: pl.{}[pl.Tensor[[320, 32], pl.FP32]]"
_TYPE = "pl.Tensor[[320, 32], pl.FP32]"


def pair(
    folder: Path, cube: str, vector: str, slots: int | None = None, both: bool = False,
    sizes: tuple[int, int] = (4096, 4096), masks: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """A program whose cube function has the product of ``a`` and ``b`` in ``acc`` and whose vector function writes ``y``.

    ``slots``: stated depth of the ring. ``both``: the ring has both directions. ``sizes`` and ``masks``: what the cube
    and the vector function declare.
    """
    depth = "" if slots is None else f" slot_num={slots},"
    masks = masks or ((3, 3) if both else (1, 1))
    rings = [f"dir_mask={mask}, slot_size={size},{depth}" for mask, size in zip(masks, sizes)]
    source = f"""import pypto.language as pl


@pl.program
class Pair:
    @pl.function(type=pl.FunctionType.AIC)
    def multiply(self, {_A}, {_B}, {_Y.format("InOut")}):
        peer = pl.import_peer_buffer(name="tiles", peer_func="finish")
        pl.aic_initialize_pipe({rings[0]} c2v_consumer_buf=peer)
        ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        tb = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        acc = pl.matmul(ta, tb)
{indent(dedent(cube).strip(), " " * 8)}

    @pl.function(type=pl.FunctionType.AIV)
    def finish(self, {_A}, {_B}, {_Y.format("InOut")}) -> {_TYPE}:
        ring = pl.reserve_buffer(name="tiles", size=32768, base=0x8000)
        pl.aiv_initialize_pipe({rings[1]} c2v_consumer_buf=ring)
{indent(dedent(vector).strip(), " " * 8)}
        return y

    @pl.function(type=pl.FunctionType.Group)
    def pair(self, {_A}, {_B}, {_Y.format("InOut")}) -> {_TYPE}:
        self.multiply(a, b, y)
        y = self.finish(a, b, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {_A}, {_B}, {_Y.format("InOut")}) -> {_TYPE}:
        y = self.pair(a, b, y)
        return y
"""
    path = folder / f"pair{next(_NUMBERS)}.py"
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return Program(module.Pair)
