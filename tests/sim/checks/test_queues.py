"""Queues and events between the cores of a group: every way to use them wrongly, with its repaired twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import pypto.language as pl
from pypto.ir.errors import CompileError
from pypto.runtime import RunConfig
from pypto.sim.checks.freed_uses import may_use_freed
from pypto.sim.program import load_program

from .programs.case import rnd, zeros
from .programs.pairs import pair
from .test_programs import run

TILE = "pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec]"
BACK = "pl.Tile[[32, 32], pl.FP32, pl.Mem.Mat]"


def pushes(count: int, more: str = "split=0") -> str:
    return f"for i in pl.range({count}):\n    pl.tpush_to_aiv(acc, {more})"


def trips(count: int, *lines: str) -> str:
    """A loop of the vector function that pops, and stores one more than the product."""
    body = "\n    ".join(lines)
    return f"for i in pl.range({count}):\n    got: {TILE} = pl.tpop_from_aic(split=0)\n    {body}"


ADD, FREE, STORE = "done = pl.add(got, 1.0)", "pl.tfree_to_aic(got)", "y = pl.store(done, [i % 10 * 32, 0], y)"
TWO = f"one: {TILE} = pl.tpop_from_aic(split=0)\ntwo: {TILE} = pl.tpop_from_aic(split=0)\n"
SUM = "y = pl.store(pl.sub(pl.add(one, two), one), [0, 0], y)\n"
LANE = "lane = pl.tile.get_subblock_idx()\n"
HALF = "half: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)"
HALF_STORE, HALF_FREE = "y = pl.store(half, [lane * 16, 0], y)", "pl.tfree_to_aic(half)"
PART = "part = pl.load(a, [0, 0], [16, 32])\n"
SET = "pl.system.sync_set(3, pipe=pl.PipeType.MTE3)"
AGAIN = (
    "left = pl.move(back, target_memory=pl.Mem.Left)\n"
    "right = pl.move(pl.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)\n"
    "pl.tpush_to_aiv(pl.matmul(left, right), split=0)"
)
PLAIN = "y = pl.store(pl.load(a, [0, 0], [32, 32]), [0, 0], y)"


@dataclass(frozen=True)
class Case:
    """``faulty`` and ``fixed`` are (cube, vector); ``says`` are pieces of the finding; ``options`` of the pair."""

    name: str
    kind: str
    faulty: tuple[str, str]
    fixed: tuple[str, str]
    says: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()


BOTH = (("both", True),)
CASES = [
    Case("used_after_free", "fifo",
         (pushes(3), trips(3, FREE, ADD, STORE)), (pushes(3), trips(3, ADD, FREE, STORE)),
         ("'adds' in 'finish' uses 'got' after its slot was freed", FREE, ADD, "behind the last use of 'got'")),
    Case("stored_after_free", "fifo",
         (pushes(1), trips(1, FREE, "y = pl.store(got, [0, 0], y)")),
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", FREE)),
         ("'store' in 'finish' uses 'got'", "y = pl.store(got, [0, 0], y)")),
    Case("window_of_a_freed_tile", "fifo",
         (pushes(1), trips(1, "half = pl.tile.slice(got, [16, 32], [16, 0])", FREE, "y = pl.store(half, [0, 0], y)")),
         (pushes(1), trips(1, "half = pl.tile.slice(got, [16, 32], [16, 0])", "y = pl.store(half, [0, 0], y)", FREE)),
         ("uses 'half' after its slot was freed (tfree_to_aic of 'got')",)),
    Case("element_of_a_freed_tile", "fifo",
         (pushes(1), trips(1, FREE, "s = pl.tile.read(got, [0, 0])",
                           "y = pl.store(pl.mul(pl.load(a, [0, 0], [32, 32]), s), [0, 0], y)")),
         (pushes(1), trips(1, "s = pl.tile.read(got, [0, 0])", FREE,
                           "y = pl.store(pl.mul(pl.load(a, [0, 0], [32, 32]), s), [0, 0], y)")),
         ("'read' in 'finish' uses 'got'", "s = pl.tile.read(got, [0, 0])")),
    Case("pushed_on_after_free", "fifo",
         (f"{pushes(1)}\nback: {BACK} = pl.tpop_from_aiv(split=0)\npl.tfree_to_aiv(back)",
          trips(1, FREE, "pl.tpush_to_aic(got, split=0)")),
         (f"{pushes(1)}\nback: {BACK} = pl.tpop_from_aiv(split=0)\npl.tfree_to_aiv(back)",
          trips(1, "pl.tpush_to_aic(got, split=0)", FREE)),
         ("'tpush_to_aic' in 'finish' uses 'got'",), BOTH),
    Case("freed_in_another_order", "fifo",
         (pushes(2), TWO + "y = pl.store(two, [0, 0], y)\npl.tfree_to_aic(two)\ny = pl.store(one, [32, 0], y)\n"
                           "pl.tfree_to_aic(one)"),
         (pushes(2), TWO + "y = pl.store(one, [32, 0], y)\npl.tfree_to_aic(one)\ny = pl.store(two, [0, 0], y)\n"
                           "pl.tfree_to_aic(two)"),
         ("uses 'one' after its slot was freed", "of 'two' gives the oldest slot back, which is that of 'one'",
          "'one' before 'two'")),
    Case("freed_twice", "fifo",
         (pushes(3), trips(3, ADD, FREE, FREE, STORE)), (pushes(3), trips(3, ADD, FREE, STORE)),
         ("the slot of 'got' is freed a second time", "frees it first", "once")),
    Case("freed_twice_while_another_is_held", "fifo",
         (pushes(2), TWO + SUM + "pl.tfree_to_aic(one)\npl.tfree_to_aic(one)"),
         (pushes(2), TWO + SUM + "pl.tfree_to_aic(one)\npl.tfree_to_aic(two)"),
         ("the slot of 'one' is freed a second time",)),
    Case("freed_with_another_id", "fifo",
         (pushes(1) + "\n" + pushes(1, "split=0, id=1"),
          f"one: {TILE} = pl.tpop_from_aic(split=0)\ntwo: {TILE} = pl.tpop_from_aic(split=0, id=1)\n" + SUM
          + "pl.tfree_to_aic(one, id=1)\npl.tfree_to_aic(two, id=0)"),
         (pushes(1) + "\n" + pushes(1, "split=0, id=1"),
          f"one: {TILE} = pl.tpop_from_aic(split=0)\ntwo: {TILE} = pl.tpop_from_aic(split=0, id=1)\n" + SUM
          + "pl.tfree_to_aic(one)\npl.tfree_to_aic(two, id=1)"),
         ("'one' is freed in queue 1 and was popped from queue 0", "free a tile with the id")),
    Case("popped_with_another_split", "fifo",
         (pushes(1), f"got: {TILE} = pl.tpop_from_aic(split=1)\ny = pl.store(got, [0, 0], y)\n{FREE}"),
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", FREE)),
         ("with split 1 (rows), and what lies there was pushed with split 0 (whole)", "pl.tpush_to_aiv(acc, split=0)",
          "pl.tpop_from_aic(split=1)")),
    Case("freed_with_another_split", "fifo",
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", "pl.tfree_to_aic(got, split=2)")),
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", "pl.tfree_to_aic(got, split=0)")),
         ("freed with split 2 (columns) and was popped with split 0",)),
    Case("popped_with_fewer_rows", "fifo",
         (pushes(1), "got: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\n"
                     f"y = pl.store(got, [0, 0], y)\n{FREE}"),
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", FREE)),
         ("is 32 x 32 fp32 and does not fit 'got', which is 16 x 32 fp32", "pl.tpush_to_aiv(acc")),
    Case("popped_with_more_rows", "fifo",
         (pushes(1), "got: pl.Tile[[64, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\n"
                     f"y = pl.store(got, [0, 0], y)\n{FREE}"),
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", FREE)),
         ("is 32 x 32 fp32 and does not fit 'got', which is 64 x 32 fp32",)),
    Case("popped_as_another_dtype", "fifo",
         (pushes(1), "got: pl.Tile[[32, 32], pl.INT32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\n"
                     f"y = pl.store(pl.cast(got, target_type=pl.FP32), [0, 0], y)\n{FREE}"),
         (pushes(1), trips(1, "y = pl.store(got, [0, 0], y)", FREE)),
         ("is 32 x 32 fp32 and does not fit 'got', which is 32 x 32 int32",)),
    Case("popped_in_another_order", "fifo",
         ("small = pl.matmul(pl.tile.slice(ta, [16, 64], [0, 0]), tb)\npl.tpush_to_aiv(acc, split=0)\n"
          "pl.tpush_to_aiv(small, split=0)",
          f"two: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\n"
          f"one: {TILE} = pl.tpop_from_aic(split=0)\ny = pl.store(one, [0, 0], y)\ny = pl.store(two, [32, 0], y)\n"
          "pl.tfree_to_aic(two)\npl.tfree_to_aic(one)"),
         ("small = pl.matmul(pl.tile.slice(ta, [16, 64], [0, 0]), tb)\npl.tpush_to_aiv(acc, split=0)\n"
          "pl.tpush_to_aiv(small, split=0)",
          f"one: {TILE} = pl.tpop_from_aic(split=0)\n"
          f"two: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\n"
          "y = pl.store(one, [0, 0], y)\ny = pl.store(two, [32, 0], y)\npl.tfree_to_aic(one)\npl.tfree_to_aic(two)"),
         ("does not fit 'two'", "pl.tpush_to_aiv(acc, split=0)", "in the order in which they are pushed")),
    Case("never_freed", "fifo",
         (pushes(12), trips(12, ADD, STORE)), (pushes(12), trips(12, ADD, FREE, STORE)),
         ("waits for ever for a free slot of queue 0 (tpush_to_aiv, depth 8)", "has popped 8 tiles and freed 0",
          "tiles 0 to 7, popped into 'got', are not freed", "pl.tpush_to_aiv(acc", "after its last use at", "tfree")),
    Case("never_freed_in_a_shallow_ring", "fifo",
         (pushes(3), trips(3, ADD, STORE)), (pushes(3), trips(3, ADD, FREE, STORE)),
         ("depth 2", "tiles 0 to 1"), (("slots", 2),)),
    Case("freed_in_a_branch_only", "fifo",
         (pushes(24), trips(24, ADD, STORE, "if i % 2 == 0:\n        pl.tfree_to_aic(got)")),
         (pushes(24), trips(24, ADD, STORE, FREE)),
         ("has popped 16 tiles and freed 8", "after its last use at")),
    Case("freed_after_the_next_pop_of_a_ring_of_one", "fifo",
         (pushes(2), TWO + SUM + "pl.tfree_to_aic(one)\npl.tfree_to_aic(two)"),
         (pushes(2), trips(2, "y = pl.store(got, [i * 32, 0], y)", FREE)),
         ("depth 1", "before the pop that waits", "slot_num"), (("slots", 1),)),
    Case("not_freed_at_the_end", "fifo",
         (pushes(3), trips(3, ADD, STORE)), (pushes(3), trips(3, ADD, STORE, FREE)),
         ("pops 3 tiles from queue 0", "frees 0: 3 of the 8 slots stay taken", "after its last use at")),
    Case("left_behind", "fifo",
         (pushes(5), trips(4, ADD, FREE, STORE)), (pushes(4), trips(4, ADD, FREE, STORE)),
         ("pushes 5 tiles into queue 0", "4 are popped", "1 left behind")),
    Case("popped_in_an_inner_loop_once_too_few", "fifo",
         (pushes(6), "for k in pl.range(2):\n    for i in pl.range(2):\n"
                     f"        got: {TILE} = pl.tpop_from_aic(split=0)\n        {ADD}\n        {FREE}\n        {STORE}"),
         (pushes(6), "for k in pl.range(2):\n    for i in pl.range(3):\n"
                     f"        got: {TILE} = pl.tpop_from_aic(split=0)\n        {ADD}\n        {FREE}\n        {STORE}"),
         ("pushes 6 tiles", "4 are popped")),
    Case("popped_once_too_often", "deadlock",
         (pushes(3), trips(4, ADD, FREE, STORE)), (pushes(4), trips(4, ADD, FREE, STORE)),
         ("waits for a tile in queue 0: AIC has pushed 3 into it, and has ended", "pl.tpush_to_aiv",
          "pushes 3 into queue 0, and one more is popped")),
    Case("more_pushes_than_the_ring_holds", "deadlock",
         (pushes(14), trips(4, ADD, FREE, STORE)), (pushes(14), trips(14, ADD, FREE, STORE)),
         ("frees none of its 8: 8 not popped, and has ended", "has popped 4")),
    Case("pushed_with_another_id", "deadlock",
         (pushes(1, "split=0, id=1"), trips(1, ADD, FREE, STORE)), (pushes(1), trips(1, ADD, FREE, STORE)),
         ("pushes to id 1", "has no tpush_to_aiv with id 0; it uses other ids")),
    Case("both_sides_pop_first", "deadlock",
         (f"back: {BACK} = pl.tpop_from_aiv(split=0)\npl.tfree_to_aiv(back)\n{pushes(1)}",
          trips(1, "pl.tpush_to_aic(got, split=0)", FREE)),
         (f"{pushes(1)}\nback: {BACK} = pl.tpop_from_aiv(split=0)\npl.tfree_to_aiv(back)",
          trips(1, "pl.tpush_to_aic(got, split=0)", FREE)),
         ("2 of the cores that run wait", "waits itself", "let 'finish' push into queue 0 before it waits"), BOTH),
    Case("both_sides_push_until_the_rings_are_full", "deadlock",
         (f"{pushes(6)}\nfor i in pl.range(6):\n    back: {BACK} = pl.tpop_from_aiv(split=0)\n    pl.tfree_to_aiv(back)",
          "part = pl.load(a, [0, 0], [32, 32])\nfor i in pl.range(6):\n    pl.tpush_to_aic(part, split=0)\n"
          + trips(6, ADD, FREE, STORE)),
         (f"{pushes(4)}\nfor i in pl.range(4):\n    back: {BACK} = pl.tpop_from_aiv(split=0)\n    pl.tfree_to_aiv(back)",
          "part = pl.load(a, [0, 0], [32, 32])\nfor i in pl.range(4):\n    pl.tpush_to_aic(part, split=0)\n"
          + trips(4, ADD, FREE, STORE)),
         ("frees none of its 4: 4 not popped, and waits itself", "at most 4 tiles are on their way"), BOTH),
    Case("set_and_not_awaited", "fifo",
         ("pl.system.sync_set(3, pipe=pl.PipeType.FIX)", PLAIN),
         ("pl.system.sync_set(3, pipe=pl.PipeType.FIX)", f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("sets event 3 for AIV0", "1 left", "sync_wait(3) once for each")),
    Case("set_twice_and_awaited_once", "fifo",
         ("for i in pl.range(2):\n    pl.system.sync_set(3, pipe=pl.PipeType.FIX)",
          f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("for i in pl.range(2):\n    pl.system.sync_set(3, pipe=pl.PipeType.FIX)",
          f"for i in pl.range(2):\n    pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("1 left", "sync_wait(3, pipe")),
    Case("awaited_twice_and_set_once", "deadlock",
         ("pl.system.sync_set(3, pipe=pl.PipeType.FIX)",
          f"for i in pl.range(2):\n    pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("pl.system.sync_set(3, pipe=pl.PipeType.FIX)", f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("waits for event 3 again: it has come 1 time", "pl.system.sync_set(3", "as often as it is awaited")),
    Case("another_event_is_set", "deadlock",
         ("pl.system.sync_set(4, pipe=pl.PipeType.FIX)", f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("pl.system.sync_set(3, pipe=pl.PipeType.FIX)", f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{PLAIN}"),
         ("waits for event 3, which nobody sets; event 4 is set", "pl.system.sync_set(4", "4 is set and not awaited")),
    Case("both_sides_wait_before_they_set", "deadlock",
         ("pl.system.sync_wait(5, pipe=pl.PipeType.FIX)\npl.system.sync_set(3, pipe=pl.PipeType.FIX)",
          f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\npl.system.sync_set(5, pipe=pl.PipeType.MTE3)\n{PLAIN}"),
         ("pl.system.sync_set(3, pipe=pl.PipeType.FIX)\npl.system.sync_wait(5, pipe=pl.PipeType.FIX)",
          f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\npl.system.sync_set(5, pipe=pl.PipeType.MTE3)\n{PLAIN}"),
         ("2 of the cores that run wait", "before the other side waits itself")),
    Case("awaits_an_event_that_is_set_behind_a_full_ring", "deadlock",
         (f"{pushes(12)}\npl.system.sync_set(3, pipe=pl.PipeType.FIX)",
          f"pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)\n{trips(12, ADD, FREE, STORE)}"),
         (f"{pushes(12)}\npl.system.sync_set(3, pipe=pl.PipeType.FIX)",
          f"{trips(12, ADD, FREE, STORE)}\npl.system.sync_wait(3, pipe=pl.PipeType.MTE2)"),
         ("waits for event 3", "let 'finish' pop from queue 0 before it waits")),
    Case("only_one_lane_pops", "fifo",
         ("pl.tpush_to_aiv(acc, split=1)", f"{LANE}if lane == 0:\n    {HALF}\n    {HALF_STORE}\n    {HALF_FREE}"),
         ("pl.tpush_to_aiv(acc, split=1)", f"{LANE}{HALF}\n{HALF_STORE}\n{HALF_FREE}"),
         ("pushes 1 tile into queue 0 (tpush_to_aiv) of AIV1 and 0 are popped",)),
    Case("only_one_lane_pops_for_ever", "deadlock",
         ("for i in pl.range(12):\n    pl.tpush_to_aiv(acc, split=1)",
          f"{LANE}if lane == 0:\n    for i in pl.range(12):\n        {HALF}\n        {HALF_STORE}\n        {HALF_FREE}"),
         ("for i in pl.range(12):\n    pl.tpush_to_aiv(acc, split=1)",
          f"{LANE}for i in pl.range(12):\n    {HALF}\n    {HALF_STORE}\n    {HALF_FREE}"),
         ("AIV1 frees none of its 8: 8 not popped, and has ended", "'finish' on AIV1 has popped 0")),
    Case("only_one_lane_frees", "fifo",
         ("pl.tpush_to_aiv(acc, split=1)", f"{LANE}{HALF}\n{HALF_STORE}\nif lane == 0:\n    {HALF_FREE}"),
         ("pl.tpush_to_aiv(acc, split=1)", f"{LANE}{HALF}\n{HALF_STORE}\n{HALF_FREE}"),
         ("of AIV1 and frees 0: 1 of the 8 slots stay taken",)),
    Case("only_one_lane_pushes", "deadlock",
         (f"back: {BACK} = pl.tpop_from_aiv(split=1)\npl.tfree_to_aiv(back)",
          f"{LANE}{PART}if lane == 0:\n    pl.tpush_to_aic(part, split=1)\ny = pl.store(part, [lane * 16, 0], y)"),
         (f"back: {BACK} = pl.tpop_from_aiv(split=1)\npl.tfree_to_aiv(back)",
          f"{LANE}{PART}pl.tpush_to_aic(part, split=1)\ny = pl.store(part, [lane * 16, 0], y)"),
         ("AIV1 has pushed 0 into it, and has ended", "'finish' on AIV1 pushes 0"), BOTH),
    Case("only_one_lane_sets", "deadlock",
         ("pl.tpush_to_aiv(acc, split=1)\npl.system.sync_wait(3, pipe=pl.PipeType.FIX)",
          f"{LANE}{HALF}\n{HALF_STORE}\n{HALF_FREE}\nif lane == 0:\n    {SET}"),
         ("pl.tpush_to_aiv(acc, split=1)\npl.system.sync_wait(3, pipe=pl.PipeType.FIX)",
          f"{LANE}{HALF}\n{HALF_STORE}\n{HALF_FREE}\n{SET}"),
         ("waits for event 3, which AIV1 has not set", "on every vector lane", SET)),
    Case("parts_that_are_whole_tiles", "fifo",
         (f"back: {BACK} = pl.tpop_from_aiv(split=1)\npl.tfree_to_aiv(back)",
          f"{LANE}part = pl.load(a, [0, 0], [32, 32])\npl.tpush_to_aic(part, split=1)\n"
          "y = pl.store(part, [lane * 32, 0], y)"),
         (f"back: {BACK} = pl.tpop_from_aiv(split=1)\npl.tfree_to_aiv(back)",
          f"{LANE}{PART}pl.tpush_to_aic(part, split=1)\ny = pl.store(part, [lane * 16, 0], y)"),
         ("is 32 x 32 fp32 from each lane and does not fit 'back', which is 32 x 32 fp32",), BOTH),
    Case("used_after_free_by_the_cube", "fifo",
         (f"back: {BACK} = pl.tpop_from_aiv(split=0)\npl.tfree_to_aiv(back)\n{AGAIN}",
          f"part = pl.load(a, [0, 0], [32, 32])\npl.tpush_to_aic(part, split=0)\n{trips(1, ADD, FREE, STORE)}"),
         (f"back: {BACK} = pl.tpop_from_aiv(split=0)\n{AGAIN}\npl.tfree_to_aiv(back)",
          f"part = pl.load(a, [0, 0], [32, 32])\npl.tpush_to_aic(part, split=0)\n{trips(1, ADD, FREE, STORE)}"),
         ("'move' in 'multiply' uses 'back' after its slot was freed (tfree_to_aiv)",), BOTH),
]  # fmt: skip
HARMLESS = {
    "loop_carried": (
        pushes(4),
        f"held: {TILE} = pl.tpop_from_aic(split=0)\nfor i in pl.range(3):\n"
        f"    next_: {TILE} = pl.tpop_from_aic(split=0)\n    y = pl.store(held, [i * 32, 0], y)\n"
        "    pl.tfree_to_aic(held)\n    held = next_\ny = pl.store(held, [96, 0], y)\npl.tfree_to_aic(held)",
    ),
    "freed_together_in_another_order": (pushes(2), TWO + SUM + "pl.tfree_to_aic(two)\npl.tfree_to_aic(one)"),
    "copied_before_the_free": (
        pushes(3),
        trips(3, "kept = pl.mul(got, 1.0)", FREE, "y = pl.store(kept, [i * 32, 0], y)"),
    ),
    "popped_again_into_the_same_name": (
        pushes(2),
        trips(1, FREE) + f"\ngot: {TILE} = pl.tpop_from_aic(split=0)\ny = pl.store(got, [0, 0], y)\n{FREE}",
    ),
    "freed_in_both_branches": (
        pushes(4),
        trips(4, ADD, STORE, f"if i % 2 == 0:\n        {FREE}\n    else:\n        {FREE}"),
    ),
    "eight_held_at_once": (
        pushes(8),
        "\n".join(f"t{k}: {TILE} = pl.tpop_from_aic(split=0)" for k in range(8))
        + "\n"
        + "\n".join(f"y = pl.store(t{k}, [{32 * k}, 0], y)\npl.tfree_to_aic(t{k})" for k in range(8)),
    ),
    "two_ids_of_different_shapes": (
        "small = pl.matmul(pl.tile.slice(ta, [16, 64], [0, 0]), tb)\npl.tpush_to_aiv(small, split=0, id=1)\n"
        "pl.tpush_to_aiv(acc, split=0)",
        f"one: {TILE} = pl.tpop_from_aic(split=0)\n"
        "two: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0, id=1)\n"
        "y = pl.store(one, [0, 0], y)\ny = pl.store(two, [32, 0], y)\npl.tfree_to_aic(two, id=1)\npl.tfree_to_aic(one)",
    ),
}


def arguments() -> list[torch.Tensor]:
    return [rnd(32, 64), rnd(64, 32, seed=1), zeros(320, 32)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_queue_used_wrongly_is_told(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(pair(tmp_path, *case.faulty, **dict(case.options)), arguments())
    assert {finding.kind for finding in found} == {case.kind}, [str(finding) for finding in found]
    text = "\n".join(str(finding) for finding in found)
    assert [piece for piece in case.says if piece not in text] == [], text
    assert all(finding.locations and finding.tasks and finding.suggestion for finding in found)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"sizes": (4096, 8192)},
         ("by 'multiply' with 8 slots of 4096 bytes and by 'finish' with 8 slots of 8192 bytes", "slot_size=8192")),
        ({"masks": (1, 3)}, ("with 8 slots of 4096 bytes", "4 slots of 4096 bytes", "the same dir_mask and slot_num")),
        ({"sizes": (2048, 2048)},
         ("pushes 4096 bytes of 'acc' (32 x 32 fp32) into queue 0, whose slots hold 2048", "slot_size=4096")),
        ({"sizes": (1024, 1024), "split": 1},
         ("2048 bytes of 'acc' (16 x 32 fp32 for each lane)", "slot_size=2048")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("checks", ["cheap", "all"])
def test_what_both_sides_declare_of_a_queue_is_compared(checks, declared, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = dict(declared)
    whole = pushes(1), trips(1, ADD, STORE, FREE)
    halves = pushes(1, "split=1"), f"{LANE}{HALF}\n{HALF_STORE}\n{HALF_FREE}"
    found = run(pair(tmp_path, *(halves if options.pop("split", 0) else whole), **options), arguments(), checks=checks)
    assert [finding.kind for finding in found] == ["fifo"], [str(finding) for finding in found]
    assert [piece for piece in (*says, "_initialize_pipe(") if piece not in str(found[0])] == [], str(found[0])


def test_slots_for_the_part_of_a_lane_are_enough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    halves = pushes(1, "split=1"), f"{LANE}{HALF}\n{HALF_STORE}\n{HALF_FREE}"
    assert run(pair(tmp_path, *halves, sizes=(2048, 2048)), arguments()) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_repaired_twin_is_silent(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [str(f) for f in run(pair(tmp_path, *case.fixed, **dict(case.options)), arguments())] == []


@pytest.mark.parametrize("name", HARMLESS)
def test_what_only_looks_wrong_is_silent_and_right(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = arguments()
    product = given[0] @ given[1]
    assert [str(f) for f in run(pair(tmp_path, *HARMLESS[name]), given)] == []
    first = product + 1 if name == "freed_in_both_branches" else product
    torch.testing.assert_close(given[2][:32], first, rtol=1e-4, atol=1e-3)


def test_the_cheap_checks_tell_them_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for case in CASES:
        found = run(pair(tmp_path, *case.faulty, **dict(case.options)), arguments(), checks="cheap")
        assert {finding.kind for finding in found} == {case.kind}, case.name


def suspicious(tmp_path, cube: str, vector: str, **options: Any) -> bool:
    compiled = pair(tmp_path, cube, vector, **options).compile(config=RunConfig(platform="a2a3"))
    return may_use_freed(load_program(compiled.output_dir))


def test_only_launches_of_suspicious_programs_are_followed_by_the_cheap_checks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sound = [(case.fixed, dict(case.options)) for case in CASES] + [(text, {}) for text in HARMLESS.values()]
    assert [text for text, options in sound if suspicious(tmp_path, *text, **options)] == []
    assert not suspicious(tmp_path, pushes(2), trips(2, f"if i == 5:\n        {FREE}", ADD, STORE, FREE))
    assert suspicious(tmp_path, pushes(2), TWO + trips(1, "y = pl.store(one, [0, 0], y)", "pl.tfree_to_aic(one)", FREE))


@pytest.mark.parametrize(
    ("cube", "vector", "told"),
    [
        ("pl.tpush_to_aic(acc, split=0)", PLAIN, "'multiply' is an AIC function, which runs on the cube; legal there: "
                                                 "pl.tpush_to_aiv"),
        ("pl.tpush_to_aiv(acc, split=0)", f"part = pl.load(a, [0, 0], [32, 32])\npl.tpush_to_aiv(part, split=0)\n{PLAIN}",
         "'finish' is an AIV function, which runs on the vector lanes; legal there: pl.tpush_to_aic"),
    ],
)  # fmt: skip
def test_a_transfer_of_the_other_side_is_no_program(cube, vector, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CompileError, match=told):
        run(pair(tmp_path, cube, vector), arguments())


@pl.jit
def predicated(
    a: pl.Tensor[[32, 32], pl.FP16],
    b: pl.Tensor[[32, 32], pl.FP16],
    flag: pl.Tensor[[1, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
):
    for _ in pl.spmd(1, name_hint="perhaps", predicate=flag[0, 0] == 1):
        y[:, :] = pl.add(pl.matmul(a, b, out_dtype=pl.FP32), 1.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="always"):
        y[:, :] = pl.add(y, pl.add(pl.matmul(a, b, out_dtype=pl.FP32), 1.0))
    return y


@pytest.mark.parametrize("runs", [0, 1])
def test_a_mixed_task_that_is_skipped_leaves_nothing_to_wait_for(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b, y = rnd(32, 32).half(), rnd(32, 32, seed=1).half(), zeros(32, 32)
    assert [str(f) for f in run(predicated, [a, b, torch.full((1, 8), runs, dtype=torch.int32), y])] == []
    torch.testing.assert_close(y, (1 + runs) * (a.float() @ b.float() + 1), rtol=1e-3, atol=1e-2)
