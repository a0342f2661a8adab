"""Movement between global memory and tiles, and between tiles (ops 3)."""

from __future__ import annotations

from .table import Attribute, Instruction, Operand, destination, scalar, tiles

ATOMIC = {"none": 0, "add": 1}
_TRANSPOSE = Attribute("transpose", "int", default=0)
_WINDOW = (Operand("offsets", "list"), Operand("window", "list"), Operand("valid", "list"))

ROWS = (
    Instruction(
        "tload",
        (destination(), Operand("tensor", "tensor"), *_WINDOW),
        (),
        "movement.load",
        "",
        "MTE2",
        "copy_gm",
        0,
        "dst = tensor[offsets : offsets + valid], 0 in the rest of dst; the three lists address "
        "the trailing axes of the tensor",
    ),
    Instruction(
        "tstore",
        (Operand("tensor", "tensor", "inout"), *tiles("src"), *_WINDOW),
        (Attribute("atomic", ATOMIC, default=0),),
        "movement.save",
        "",
        "space",
        "copy_gm",
        1,
        "tensor[offsets : offsets + valid] = or += src, rounded to the tensor's dtype",
    ),
    Instruction(
        "tmov",
        (destination(), *tiles("src")),
        (_TRANSPOSE,),
        "movement.move",
        "",
        "space",
        "move",
        0,
        "dst = src (or its transpose), converted when the dtypes differ",
    ),
    Instruction(
        "textract",
        (destination(), *tiles("src"), scalar("row"), scalar("col")),
        (_TRANSPOSE,),
        "movement.extract",
        "",
        "space",
        "move",
        0,
        "dst[i,j] = src[row + i, col + j], or src[row + j, col + i] when transposed",
    ),
    Instruction(
        "tinsert",
        (destination(access="inout"), *tiles("src"), scalar("row"), scalar("col")),
        (),
        "movement.insert",
        "",
        "space",
        "move",
        1,
        "dst[row + i, col + j] = src[i,j] over the valid extent of src",
    ),
    Instruction(
        "tgather_row",
        (destination(access="inout"), Operand("tensor", "tensor"), Operand("dst_offset", "list"), *_WINDOW),
        (_TRANSPOSE,),
        "movement.gather_row",
        "",
        "MTE2",
        "copy_gm",
        0,
        "dst[dst_offset + i] = tensor[offsets + i] over valid, the rest of dst stays",
    ),
)
