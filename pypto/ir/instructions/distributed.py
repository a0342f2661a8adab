"""Transfers and signals between ranks (spec distributed 2.6 to 2.11).

A transfer works on a view of the peer's window (scalar instruction ``peerview``), so its kernel is that of a local one.
"""

from __future__ import annotations

from .movement import ATOMIC
from .table import Attribute, Instruction, Operand, destination, scalar, tiles

NOTIFY = {"add": 0, "set": 1}
COMPARE = {"eq": 0, "ge": 1}
_WINDOW = (Operand("offsets", "list"), Operand("window", "list"), Operand("valid", "list"))
_SIGNAL, _CELL = Operand("signal", "tensor"), Operand("offsets", "list")
_EXPECTED = (_SIGNAL, _CELL, scalar("expected"))

ROWS = (
    Instruction(
        "tremote_load",
        (destination(), Operand("tensor", "tensor"), *_WINDOW),
        (),
        "movement.load",
        "",
        "MTE2",
        "remote",
        0,
        "as tload, from a peer's window",
    ),
    Instruction(
        "tremote_store",
        (Operand("tensor", "tensor", "inout"), *tiles("src"), *_WINDOW),
        (Attribute("atomic", ATOMIC, default=0),),
        "movement.save",
        "",
        "space",
        "remote",
        1,
        "as tstore, into a peer's window",
    ),
    Instruction(
        "notify",
        (Operand("signal", "tensor", "inout"), scalar("peer"), _CELL, scalar("value")),
        (Attribute("op", NOTIFY),),
        "",
        "",
        "ALL",
        "notify",
        -1,
        "after everything this core did: add value to the peer's cell, or set it",
    ),
    Instruction(
        "signal_wait",
        _EXPECTED,
        (Attribute("cmp", COMPARE),),
        "",
        "",
        "S",
        "wait",
        -1,
        "go on when the own cell equals, or has reached, expected",
    ),
    Instruction(
        "signal_defer",
        _EXPECTED,
        (),
        "",
        "",
        "S",
        "wait",
        -1,
        "the task ends when the own cell, unsigned, has reached expected; no core is held",
    ),
)
