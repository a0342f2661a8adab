"""Shape, padding and layout transforms that move data (ops 13)."""

from __future__ import annotations

from .table import Attribute, Instruction, destination, tiles

PADS = {"zero": 1, "max": 2, "min": 3}
_PAD = (Attribute("pad", PADS, default=1),)

ROWS = (
    Instruction(
        "tfillpad",
        (destination(), *tiles("src")),
        _PAD,
        "transform.fill_pad",
        "",
        "V",
        "fill",
        0,
        "dst = src where src is valid, the pad value elsewhere",
    ),
    Instruction(
        "tfillpad_expand",
        (destination(), *tiles("src")),
        _PAD,
        "transform.fill_pad",
        "",
        "V",
        "fill",
        0,
        "tfillpad into a larger tile",
    ),
    Instruction(
        "ttrans",
        (destination(), *tiles("src")),
        (Attribute("batch", "int", default=1),),
        "transform.transpose",
        "",
        "V",
        "transpose",
        1,
        "dst = transpose of src; batch matrices stacked along the rows are transposed one by one",
    ),
    Instruction(
        "treshape",
        (destination(), *tiles("src")),
        (),
        "transform.reshape",
        "",
        "V",
        "move",
        0,
        "dst = the bytes of src in row-major order",
    ),
    Instruction(
        "tconcat",
        (destination(), *tiles("a", "b")),
        (),
        "transform.concat",
        "",
        "V",
        "move",
        0,
        "dst = the valid columns of a, then those of b",
    ),
)
