"""Broadcast of a column, a row or a scalar (ops 9)."""

from __future__ import annotations

from .table import Instruction, destination, scalar, tiles

_FORMULAS = {
    "add": "x + v",
    "sub": "x - v",
    "mul": "x * v",
    "div": "x / v",
    "max": "max(x, v)",
    "min": "min(x, v)",
    "expdif": "exp(x - v)",
}


def _combine(axis: str, index: str) -> tuple[Instruction, ...]:
    return tuple(
        Instruction(
            f"t{axis}expand{name}",
            (destination(), *tiles("x", "v")),
            (),
            f"expand.{axis}_combine",
            name,
            "V",
            f"expand_{axis}",
            0,
            f"dst = {formula} with v{index}",
        )
        for name, formula in _FORMULAS.items()
    )


ROWS = (
    Instruction(
        "trowexpand",
        (destination(), *tiles("v")),
        (),
        "expand.row_expand",
        "",
        "V",
        "expand_row",
        0,
        "dst[i,j] = v[i,0]",
    ),
    Instruction(
        "tcolexpand",
        (destination(), *tiles("v")),
        (),
        "expand.col_expand",
        "",
        "V",
        "expand_col",
        0,
        "dst[i,j] = v[0,j]",
    ),
    Instruction(
        "texpands", (destination(), scalar("s", like="dst")), (), "expand.fill", "", "V", "fill", 0, "dst[i,j] = s"
    ),
    *_combine("row", "[i,0]"),
    *_combine("col", "[0,j]"),
)
