"""What a tile instruction does on the vector unit: the instructions it is made of, per generation.

A recipe names the shape of the work and the hardware instructions issued for it: ``repeat`` for the memory-to-memory
unit of a2a3 (names of ``RepeatVector.ops``), ``register`` for the vector functions of a5 (names of
``RegisterVector.ops``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Shape = Literal[
    "elementwise",
    "row_reduce",
    "col_reduce",
    "row_expand",
    "row_expand_op",
    "gather",
    "elements",
    "transpose",
    "sort",
    "nothing",
]


@dataclass(frozen=True)
class Recipe:
    """``sources`` counts the tiles read per step; two of them may clash in a bank (spec hardware 6.2).

    ``masked``: a mask is read beside them. ``cast``: bits of an element before and after.
    """

    shape: Shape
    repeat: tuple[str, ...]
    register: tuple[str, ...]
    sources: int = 1
    masked: bool = False
    cast: tuple[int, int] = (0, 0)

    @property
    def divides(self) -> bool:
        """Integer division has no vector instruction on a2a3 (spec hardware 6.5)."""
        return "div" in self.repeat


def _each(repeat: str, register: str, sources: int = 1, masked: bool = False) -> Recipe:
    return Recipe("elementwise", tuple(repeat.split()), tuple(register.split()), sources, masked)


_POLYNOMIAL = ("mul", "add") * 4
_SIN = Recipe(
    "elementwise",
    ("muls", "adds", "convert", "convert", "muls", "add", *_POLYNOMIAL, "mul", "add"),
    ("mul", "add", "convert_int", "convert_int", "mul", "add", *_POLYNOMIAL, "mul", "add"),
)
_RANDOM = Recipe("elementwise", ("muls", "logic", "logic", "adds") * 10, ("mul", "logic", "logic", "add") * 10)

# operation of an expand or partial instruction: (a2a3, a5)
_OPS: Final = {
    "add": ("add", "add"),
    "sub": ("add", "add"),
    "mul": ("mul", "mul"),
    "div": ("div", "div"),
    "max": ("max", "max"),
    "min": ("max", "max"),
    "expdif": ("add exp", "add exp"),
}

RECIPES: Final[dict[str, Recipe]] = {
    "tadd": _each("add", "add", 2),
    "tsub": _each("add", "add", 2),
    "tmul": _each("mul", "mul", 2),
    "tdiv": _each("div", "div", 2),
    "tmax": _each("max", "max", 2),
    "tmin": _each("max", "max", 2),
    "trem": _each("div convert convert mul add", "div convert_int convert_int mul add", 2),
    "tfmod": _each("div convert convert mul add", "div convert_int convert_int mul add", 2),
    "tprelu": _each("compare mul select", "compare mul select", 2),
    "taddc": _each("add add", "add add", 3),
    "tsubc": _each("add add", "add add", 3),
    "tadds": _each("adds", "max"),
    "tsubs": _each("adds", "max"),
    "tmuls": _each("muls", "mul"),
    "tdivs": _each("copy div", "div"),
    "tmaxs": _each("maxs", "max"),
    "tmins": _each("maxs", "max"),
    "trems": _each("copy div convert convert mul add", "div convert_int convert_int mul add"),
    "tfmods": _each("copy div convert convert mul add", "div convert_int convert_int mul add"),
    "taddsc": _each("adds add", "add add", 2),
    "tsubsc": _each("adds add", "add add", 2),
    "tlrelu": _each("lrelu", "mul max"),
    "tneg": _each("muls", "mul"),
    "tabs": _each("abs", "abs"),
    "texp": _each("exp", "exp"),
    "tlog": _each("ln", "ln"),
    "tsqrt": _each("sqrt", "sqrt"),
    "trsqrt": _each("rsqrt", "sqrt div"),
    "trecip": _each("copy div", "div"),
    "trelu": _each("relu", "max"),
    "tnot": _each("logic", "logic"),
    "tsin": _SIN,
    "tcos": _SIN,
    "tcmp": _each("compare", "compare", 2),
    "tcmps": _each("copy compare", "compare"),
    "tsel": _each("select", "select", 2, masked=True),
    "tsels": _each("copy select", "select", masked=True),
    "tand": _each("logic", "logic", 2),
    "tands": _each("copy logic", "logic"),
    "tor": _each("logic", "logic", 2),
    "tors": _each("copy logic", "logic"),
    "txor": _each("logic logic logic", "logic", 2),
    "txors": _each("copy logic logic logic", "logic"),
    "tshl": _each("shift", "logic", 2),
    "tshls": _each("shift", "logic"),
    "tshr": _each("shift", "logic", 2),
    "tshrs": _each("shift", "logic"),
    **{f"tpart{op}": _each(f"copy {_OPS[op][0]}", _OPS[op][1], 2) for op in ("add", "mul", "max", "min")},
    "trowexpand": Recipe("row_expand", ("copy",), ("duplicate",)),
    **{
        f"trowexpand{op}": Recipe("row_expand_op", tuple(names[0].split()), tuple(names[1].split()), 2)
        for op, names in _OPS.items()
    },
    "tcolexpand": _each("copy", "max"),
    **{f"tcolexpand{op}": _each(names[0], names[1], 2) for op, names in _OPS.items()},
    "texpands": _each("copy", "duplicate", 0),
    "tfillpad": _each("copy copy", "select"),
    "tfillpad_expand": _each("copy copy", "select"),
    "tci": _each("adds", "add", 0),
    "ttri": _each("copy copy", "select", 0),
    "trandom": _RANDOM,
    "tconcat": _each("copy", "max"),
    "treshape": Recipe("nothing", (), ()),
    "tmov": _each("copy", "max"),
    "textract": _each("copy", "max"),
    "tinsert": _each("copy", "max"),
    "trowsum": Recipe("row_reduce", ("cadd", "add"), ("row_sum", "add")),
    "trowprod": Recipe("row_reduce", ("cadd", "mul"), ("row_sum", "mul")),
    "trowmax": Recipe("row_reduce", ("cmax", "max"), ("row_max", "max")),
    "trowmin": Recipe("row_reduce", ("cmax", "max"), ("row_max", "max")),
    "trowargmax": Recipe("row_reduce", ("cmax", "max", "reduce_mask"), ("row_max", "max", "compare")),
    "trowargmin": Recipe("row_reduce", ("cmax", "max", "reduce_mask"), ("row_max", "max", "compare")),
    "tcolsum": Recipe("col_reduce", ("add",), ("add",)),
    "tcolprod": Recipe("col_reduce", ("mul",), ("mul",)),
    "tcolmax": Recipe("col_reduce", ("max",), ("max",)),
    "tcolmin": Recipe("col_reduce", ("max",), ("max",)),
    "tcolargmax": Recipe("col_reduce", ("compare", "select", "select"), ("compare", "select", "select")),
    "tcolargmin": Recipe("col_reduce", ("compare", "select", "select"), ("compare", "select", "select")),
    "tcvt": _each("convert", "convert"),
    "ttrans": Recipe("transpose", ("transpose",), ("pack",)),
    "tgather": Recipe("gather", ("gather",), ("gather",)),
    "tgather_axis": Recipe("gather", ("gather",), ("gather",)),
    "tgatherb": Recipe("gather", ("gather",), ("gather",)),
    "tgather_mask": _each("reduce_mask", "select"),
    "tgather_compare": _each("compare reduce_mask", "compare select"),
    "tscatter": Recipe("elements", (), ("scatter",)),
    "tscatter_axis": Recipe("elements", (), ("scatter",)),
    "tscatter_rows": _each("copy", "max"),
    "tscatter_mask": _each("copy select", "select"),
    "tsort32": Recipe("sort", ("sort32",), ("max",)),
    "tmrgsort": Recipe("sort", ("sort4",), ("max",)),
    "tmrgsort2": Recipe("sort", ("sort4",), ("max",)),
    "tmrgsort3": Recipe("sort", ("sort4",), ("max",)),
    "tmrgsort4": Recipe("sort", ("sort4",), ("max",)),
}


def conversion(source_bits: int, result_bits: int, source_float: bool, result_float: bool) -> Recipe:
    """``tcvt``: pairs without a direct instruction go through a common one (ops 11)."""
    repeat, register = "convert", "convert"
    if source_float != result_float:
        narrow = min(source_bits, result_bits) <= 8
        repeat, register = ("convert convert", "convert_int convert") if narrow else ("convert", "convert_int")
    return Recipe("elementwise", tuple(repeat.split()), tuple(register.split()), cast=(source_bits, result_bits))
