"""Transfers between the cores of a cluster, events and barriers (ops 16, 17); the machine executes them itself."""

from __future__ import annotations

from pypto.sim.layout import PIPES

from .table import Attribute, Instruction, Operand, destination, scalar, tiles

CORES = {"aic": 0, "aiv": 1}
_SPLIT = Attribute("split", "int", default=0)
_ID = Attribute("id", "int", default=0)
_LANE = Attribute("lane_stride", "int", default=0)
_SLOTS = Attribute("slots", "int", default=0)
"""Tiles a queue holds; 0: the default of the hardware."""
_RING = (Attribute("dir_mask", "int"), Attribute("slot_size", "int"), _SLOTS, _ID)
"""Ways (1 to the lanes, 2 to the cube, 3 both), bytes of a slot, slots and number of a ring."""
_FREED_SPLIT = Attribute("split", "int", default=-1)
"""How the tile was divided when it was popped; -1: not stated."""
_COPIED = Attribute("copied", "int", default=0)
"""1: src is a copy of what was in the slot, and stays."""
_PIPE = Attribute("pipe", PIPES)


def _row(
    mnemonic: str, operands: tuple[Operand, ...], attributes: tuple[Attribute, ...], pipe: str, cost: str, summary: str
) -> Instruction:
    work = 0 if operands and operands[0].kind == "tile" else -1
    return Instruction(mnemonic, operands, attributes, "", "", pipe, cost, work, summary)


ROWS = (
    _row("tpush_to_aiv", tiles("src"), (_SPLIT, _LANE, _ID, _SLOTS), "FIX", "push", "hand src to the vector lanes"),
    _row("tpush_to_aic", tiles("src"), (_SPLIT, _ID, _SLOTS), "MTE3", "push", "hand src to the cube"),
    _row("tpop_from_aic", (destination(),), (_SPLIT, _LANE, _ID), "MTE2", "pop", "receive a tile from the cube"),
    _row("tpop_from_aiv", (destination(),), (_SPLIT, _ID), "MTE2", "pop", "receive a tile from the vector lanes"),
    _row(
        "tfree_to_aic", tiles("src"), (_FREED_SPLIT, _ID, _COPIED), "S", "free", "give the slot of src back to the cube"
    ),
    _row(
        "tfree_to_aiv",
        tiles("src"),
        (_FREED_SPLIT, _ID, _COPIED),
        "S",
        "free",
        "give the slot of src back to the vector lanes",
    ),
    _row("ring_aic", (), _RING, "S", "none", "the cube's declaration of a ring: nothing happens"),
    _row("ring_aiv", (), _RING, "S", "none", "a vector lane's declaration of a ring: nothing happens"),
    _row(
        "sync_set",
        (scalar("event"),),
        (_PIPE, Attribute("ffts_mode", "int", default=2), Attribute("core", CORES, default=0)),
        "attribute",
        "event",
        "set an event",
    ),
    _row(
        "sync_wait",
        (scalar("event"),),
        (_PIPE, Attribute("core", CORES, default=0)),
        "attribute",
        "event",
        "wait for an event",
    ),
    _row("pipe_barrier", (), (_PIPE,), "attribute", "barrier", "wait until the pipe has drained"),
    _row(
        "syncall",
        (),
        (Attribute("core_type", {"aiv_only": 0, "aic_only": 1, "mix": 2}, default=2),),
        "ALL",
        "barrier",
        "wait for all blocks of the launch",
    ),
    _row(
        "syncall_soft",
        (Operand("workspace", "tensor", "inout"), scalar("used")),
        (Attribute("core_type", {"aiv_only": 0, "aic_only": 1, "mix": 2}, default=2),),
        "ALL",
        "barrier",
        "wait for so many cores at the workspace",
    ),
    _row("fence", (), (), "ALL", "barrier", "order the accesses to global memory"),
    _row("cacheinvalid", (), (), "S", "none", "drop cached lines of global memory"),
    _row("prefetch", (Operand("tensor", "tensor"),), (), "MTE2", "prefetch", "warm the cache; no value changes"),
)
