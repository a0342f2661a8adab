"""Gather and scatter, on chip and in global memory (ops 14)."""

from __future__ import annotations

from .compare import COMPARISONS
from .table import Attribute, Instruction, Operand, destination, scalar, tiles

_PATTERN = Attribute("pattern", "int")
_AXIS = (Attribute("axis", "int", default=1),)
BOUNDS = {"undefined": 0, "clamp": 1, "wrap": 2, "zero": 3}
_FETCH = (Attribute("coalesce", {"row": 0, "elem": 1}, default=0), Attribute("oob", BOUNDS, default=0))

ROWS = (
    Instruction("tgather", (destination(), *tiles("src", "index")), (), "gather.flat", "", "V", "gather", 0,
                "dst[i,j] = src.flat[index[i,j]], 0 outside src"),
    Instruction("tgather_axis", (destination(), *tiles("src", "index")), _AXIS, "gather.along_axis", "", "V", "gather",
                0, "dst[i,j] = src[i, index[i,j]] (axis 1) or src[index[i,j], j] (axis 0)"),
    Instruction("tgather_mask", (destination(), *tiles("src")), (_PATTERN,), "gather.masked", "", "V", "gather", 1,
                "the columns of src that pattern 1..7 selects, bits reinterpreted in the dtype of dst"),
    Instruction("tgather_compare", (destination(), destination("count"), *tiles("src"), scalar("kvalue", like="src")),
                (Attribute("mode", COMPARISONS), Attribute("offset", "int", default=0)), "gather.compared", "", "V",
                "gather", 2, "offset + columns of src that satisfy mode kvalue, and how many there are per row"),
    Instruction("tgatherb", (destination(), *tiles("src", "offset")), (), "gather.blocks", "", "V", "gather", 0,
                "32-byte blocks of src at the byte offsets"),
    Instruction("tscatter", (destination(access="inout"), *tiles("src", "index")), (), "scatter.flat", "", "V",
                "gather", 1, "dst.flat[index[i,j]] = src[i,j], later ones win"),
    Instruction("tscatter_axis", (destination(access="inout"), *tiles("src", "index")), _AXIS, "scatter.along_axis",
                "", "V", "gather", 1, "dst[i, index[i,j]] = src[i,j] (axis 1) or dst[index[i,j], j] (axis 0)"),
    Instruction("tscatter_rows", (destination(access="inout"), *tiles("src", "index")), (), "scatter.rows", "", "V",
                "gather", 1, "dst[index.flat[k], :] = src[k, :], later ones win"),
    Instruction("tscatter_mask", (destination(access="inout"), *tiles("src")),
                (_PATTERN, Attribute("others", {"zero": 0, "keep": 1}, default=0)), "scatter.masked", "", "V",
                "gather", 1, "the columns of dst that pattern 1..7 selects = the columns of src"),
    Instruction("mgather", (destination(), Operand("tensor", "tensor"), *tiles("index")), _FETCH,
                "gather_memory.fetch_indexed", "tile", "MTE2", "gather_gm", 0,
                "rows or elements of a tensor at unsigned indices"),
    Instruction("mgather_gm", (destination(), Operand("tensor", "tensor"), Operand("index", "tensor")), _FETCH,
                "gather_memory.fetch_indexed", "tensor", "MTE2", "gather_gm", 0,
                "mgather with the indices in a global tensor"),
    Instruction("mscatter", (Operand("tensor", "tensor", "inout"), *tiles("src", "index")), (),
                "gather_memory.scatter", "", "MTE3", "gather_gm", 1,
                "tensor.flat[index[i,j]] = src[i,j], later ones win"),
)
