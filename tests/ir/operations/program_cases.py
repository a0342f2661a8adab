"""Whole programs for names that need more than one function, with their torch answer.

In a program every operation is written under its ``pl.`` name; a case rewrites one name to the spelling it is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from .value_cases import floats

Oracle = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class ProgramCase:
    """A program over ``a [32, 64]`` and ``b [64, 32]`` with one output ``y [32, 32]``, all FP32."""

    text: str
    oracle: Oracle

    @property
    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        return floats(32, 64) / 4, floats(64, 32, seed=1) / 4


PROGRAM_CASES: list = []


def program(names: str, namespaces: str, text: str, oracle: Oracle) -> None:
    """Cases of ``text`` for each of ``names`` under each of ``namespaces`` (``pl``, ``pl.tile``, ...)."""
    for name in names.split():
        own = re.compile(rf"\bpl\.(?:\w+\.)?{name}\(")
        assert own.search(text), f"the program does not use {name}"
        for namespace in namespaces.split():
            spelling = f"{namespace}.{name}"
            made = ProgramCase(HEAD + own.sub(f"{spelling}(", text), oracle)
            PROGRAM_CASES.append(pytest.param(spelling, made, id=spelling))


HEAD = "import pypto.language as pl\n\n@pl.program\nclass Whole:\n"
_A, _B, _Y = (
    "a: pl.Tensor[[32, 64], pl.FP32]",
    "b: pl.Tensor[[64, 32], pl.FP32]",
    "y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]",
)
_RESULT = "pl.Tensor[[32, 32], pl.FP32]"


def orchestrated(body: str) -> str:
    """A program of one orchestration."""
    return (
        f"    @pl.function(type=pl.FunctionType.Orchestration)\n    def main(self, {_A}, {_B}, {_Y}) -> {_RESULT}:\n"
        f"{body}        return y\n"
    )


def grouped(cube: str, vector: str) -> str:
    """A program of one group; both members take ``a, b, mid, y``, where ``mid`` is a tensor of the orchestration."""
    mid = f"mid: pl.InOut[{_RESULT}]"

    def member(kind: str, name: str, body: str, result: str) -> str:
        return (
            f"    @pl.function(type=pl.FunctionType.{kind})\n    def {name}(self, {_A}, {_B}, {mid}, {_Y}) -> {_RESULT}:\n"
            f"{body}        return {result}\n\n"
        )

    calls = "        mid = self.cube(a, b, mid, y)\n        y = self.vector(a, b, mid, y)\n"
    main = "        mid = pl.create_tensor([32, 32], dtype=pl.FP32)\n        y = self.pair(a, b, mid, y)\n"
    return (
        member("AIC", "cube", cube, "mid") + member("AIV", "vector", vector, "y") + member("Group", "pair", calls, "y")
        + orchestrated(main)
    )  # fmt: skip


PRODUCT = """
        left = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        right = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        product = pl.matmul(left, right)
"""

# --- tiles through rings, both ways: y = exp(a b) (a b) -----------------------------------------------------------------

THERE_AND_BACK = grouped(
    f"""
        there = pl.import_peer_buffer(name="there", peer_func="vector")
        back = pl.reserve_buffer(name="back", size=4 * 4096)
        pl.aic_initialize_pipe(there, back, dir_mask=3, slot_size=4096)
        {PRODUCT.strip()}
        pl.tpush_to_aiv(product, split=0)
        grown: pl.Tile[[32, 32], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
        small = pl.move(pl.load(mid, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        done = pl.matmul(pl.move(grown, target_memory=pl.Mem.Left), small)
        pl.tfree_to_aiv(grown)
        y = pl.store(done, [0, 0], y)
""",
    """
        there = pl.reserve_buffer(name="there", size=4 * 4096)
        back = pl.import_peer_buffer(name="back", peer_func="cube")
        pl.aiv_initialize_pipe(there, back, dir_mask=3, slot_size=4096)
        got: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        mid = pl.store(pl.mul(got, 2.0), [0, 0], mid)
        grown = pl.exp(got)
        pl.tfree_to_aic(got)
        pl.tpush_to_aic(grown, split=0)
""",
)
program(
    "import_peer_buffer reserve_buffer aic_initialize_pipe aiv_initialize_pipe tfree_to_aiv tfree_to_aic",
    "pl pl.system", THERE_AND_BACK, lambda a, b: torch.exp(a @ b) @ (2 * (a @ b)),
)  # fmt: skip
program(
    "tpush_to_aiv tpop_from_aic tpush_to_aic tpop_from_aiv", "pl pl.system pl.tile",
    THERE_AND_BACK, lambda a, b: torch.exp(a @ b) @ (2 * (a @ b)),
)  # fmt: skip

# --- events -------------------------------------------------------------------------------------------------------------

EVENT = grouped(
    PRODUCT + "        mid = pl.store(product, [0, 0], mid)\n        pl.system.sync_set(3, pipe=pl.PipeType.FIX)\n",
    """
        pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)
        y = pl.store(pl.add(pl.load(mid, [0, 0], [32, 32]), 1.0), [0, 0], y)
""",
)
program("sync_set sync_wait", "pl.system", EVENT, lambda a, b: a @ b + 1)

FLAG = f"""
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, {_A}, flags: pl.Tensor[[256], pl.INT64], {_Y}) -> {_RESULT}:
        pl.system.set_ffts(flags)
        part = pl.load(a, [0, 0], [32, 32])
        pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        y = pl.store(pl.abs(part), [0, 0], y)
        return y

""" + orchestrated("        flags = pl.create_tensor([256], dtype=pl.INT64)\n        y = self.vector(a, flags, y)\n")
program("set_ffts sync_src sync_dst", "pl.system", FLAG, lambda a, b: a[:, :32].abs())

# --- regions of two lanes ----------------------------------------------------------------------------------------------

REGION = orchestrated("""
        with pl.at(level=pl.Level.CORE_GROUP):
            product = pl.matmul(a, b)
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                grown = pl.aic_gather(pl.exp(pl.aiv_shard(product)))
            y[:] = pl.matmul(grown, a[:, 0:32], b_trans=True)
""")
program("aiv_shard aic_gather", "pl pl.tile", REGION, lambda a, b: torch.exp(a @ b) @ a[:, :32].T)

# --- tensors and tasks --------------------------------------------------------------------------------------------------

GATHERED = orchestrated("""
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = pl.create_l1([32, 64], dtype=pl.FP32)
            for i in pl.range(32):
                rows = pl.tensor.gather_row(rows, a, [i, 0], [31 - i, 0], [1, 64])
            y[:] = pl.matmul(rows, b)
""")
program("create_l1", "pl pl.tensor", GATHERED, lambda a, b: a.flip(0) @ b)
program("gather_row", "pl.tensor", GATHERED, lambda a, b: a.flip(0) @ b)

MARKED = f"""
    @pl.function(type=pl.FunctionType.InCore)
    def half(self, {_A}, {_Y}) -> {_RESULT}:
        y = pl.store(pl.mul(pl.load(a, [0, 0], [32, 32]), 0.5), [0, 0], y)
        return y

""" + orchestrated("        pl.dump_tag(a)\n        y = self.half(pl.no_dep(a), y)\n")
program("dump_tag no_dep", "pl pl.tensor", MARKED, lambda a, b: a[:, :32] / 2)

DECLARED = orchestrated("""
        with pl.at(level=pl.Level.CORE_GROUP):
            room: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)
            other: pl.Ptr = pl.tensor.alloc(pl.Mem.Vec, 4096)
            y[:] = pl.mul(a[:, 0:32], pl.const(3.0, pl.FP32))
""")
program("const", "pl", DECLARED, lambda a, b: 3 * a[:, :32])
program("alloc", "pl.tile", DECLARED, lambda a, b: 3 * a[:, :32])
program("alloc", "pl.tensor", DECLARED, lambda a, b: 3 * a[:, :32])

WIDTH = orchestrated("""
        clusters = pl.system.available_cluster_count()
        cores = pl.system.available_aiv_count()
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(a[:, 0:32], pl.cast(cores - 2 * clusters, pl.FP32))
""")
program("available_cluster_count available_aiv_count", "pl.system", WIDTH, lambda a, b: a[:, :32])

NO_TASK = orchestrated("""
        nobody = pl.system.task_invalid()
        with pl.at(level=pl.Level.CORE_GROUP, deps=[nobody]):
            y[:] = pl.neg(a[:, 0:32])
""")
program("task_invalid", "pl.system", NO_TASK, lambda a, b: -a[:, :32])

WARM = orchestrated("""
        with pl.at(level=pl.Level.CORE_GROUP):
            context = pl.prefetch.make_context()
            event = pl.prefetch.async_prefetch(a[0:1, :], context)
            arrived = pl.prefetch.wait(event, pl.prefetch.session(context))
            factor = 1.0
            if arrived:
                factor = 2.0
            y[:] = pl.mul(a[:, 0:32], factor)
""")
program("make_context async_prefetch session wait", "pl.prefetch", WARM, lambda a, b: 2 * a[:, :32])
