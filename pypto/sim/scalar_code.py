"""Machine code of the scalar instructions, element accesses, arrays and views (docs/architecture.md 1.2, 1.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pypto.ir.dtype import DataType
from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.emitter import Emitter
from pypto.sim.syntax import Array, Instruction, Register, TensorParameter, TensorRegister, Tile
from pypto.sim.tile_program import Access

TENSORS: Final = (TensorRegister, TensorParameter)

# mnemonic: integer operation, float operation or None
_BINARY: Final[dict[str, tuple[int, int | None]]] = {
    "sadd": (op.ADD, op.FADD),
    "ssub": (op.SUB, op.FSUB),
    "smul": (op.MUL, op.FMUL),
    "sdiv": (op.DIV, op.FDIV),
    "sfloordiv": (op.FLOORDIV, op.FFLOORDIV),
    "smod": (op.MOD, op.FMOD),
    "sshl": (op.SHL, None),
    "sshr": (op.SHR, None),
    "sand": (op.AND, None),
    "sor": (op.OR, None),
    "sxor": (op.XOR, None),
    "smin": (op.MIN, op.FMIN),
    "smax": (op.MAX, op.FMAX),
}
_UNARY: Final[dict[str, tuple[int, int | None]]] = {
    "sneg": (op.NEG, op.FNEG),
    "sabs": (op.ABS, op.FABS),
    "snot": (op.NOT, None),
    "smov": (op.WRAP, op.FROUND),
}
# mnemonic: integer operation, float operation, operands exchanged
_COMPARISON: Final[dict[str, tuple[int, int, bool]]] = {
    "slt": (op.LT, op.FLT, False),
    "sle": (op.LE, op.FLE, False),
    "seq": (op.EQ, op.FEQ, False),
    "sne": (op.NE, op.FNE, False),
    "sgt": (op.LT, op.FLT, True),
    "sge": (op.LE, op.FLE, True),
    "land": (op.LAND, op.FLAND, False),
    "lor": (op.LOR, op.FLOR, False),
}
_HEADER_WORDS: Final = {"sblockidx": op.BLOCK, "sblocknum": op.BLOCKS, "ssubblock": op.LANE}

# further instructions whose scalar result is an integer or a handle
_WHOLE: Final = frozenset({"lnot", "dim", "aget", "submit", "dummy", "commctx", "commrank", "commsize"})


def wrapping(dtype: DataType) -> tuple[int, int]:
    """(shift, kind) of :func:`pypto.sim.scalars.wrap` for an integer dtype."""
    if dtype.category == "bool":
        return 63, 2
    return 64 - dtype.get_bit(), 1 if dtype.is_unsigned_int() else 0


def result_class(emitter: Emitter, instruction: Instruction) -> bool | None:
    """Whether the scalar that the instruction writes is a float; ``None`` when it writes no scalar."""
    name, *dtypes = instruction.mnemonic.split(".")
    if name in _BINARY or name in _UNARY or name == "scvt":
        return dtype_of(emitter, instruction, 0).is_float()
    if name in _COMPARISON or name in _HEADER_WORDS or name in _WHOLE:
        return False
    if name == "sload" and len(instruction.operands) > 1:
        return _element_dtype(emitter, instruction, 1).is_float()
    if name == "sselect":
        return _select_class(emitter, instruction)
    return None


def _select_class(emitter: Emitter, instruction: Instruction) -> bool:
    if "." in instruction.mnemonic:
        return dtype_of(emitter, instruction, 0).is_float()
    for operand in instruction.operands[2:4]:
        if isinstance(operand, Register) and operand.name in emitter.is_float:
            return emitter.is_float[operand.name]
    return any(isinstance(operand, float) for operand in instruction.operands[2:4])


def dtype_of(emitter: Emitter, instruction: Instruction, index: int) -> DataType:
    """The dtype suffix number ``index`` of the mnemonic."""
    name, *suffixes = instruction.mnemonic.split(".")
    if index >= len(suffixes):
        form = "scvt.dst.src" if name == "scvt" else f"{name}.int32"
        emitter.complain(f"'{instruction.mnemonic}' needs a dtype suffix, as in '{form}'", instruction.position)
    try:
        return DataType.from_string(suffixes[index])
    except ValueError as error:
        emitter.complain(str(error), instruction.position)


def _element_dtype(emitter: Emitter, instruction: Instruction, index: int) -> DataType:
    symbol = emitter.symbol(instruction, index, (Tile, *TENSORS), "a tensor or tile")
    return DataType.from_string(symbol.dtype)


def _arithmetic(emitter: Emitter, instruction: Instruction, operations: tuple[int, int | None], arity: int) -> None:
    dtype = dtype_of(emitter, instruction, 0)
    emitter.count(instruction, f"{instruction.mnemonic} %d, {'a, b' if arity == 2 else 'a'}", arity + 1)
    target = emitter.target(instruction)
    operands = [
        emitter.number(instruction, operand, instruction.operand_position(i + 1), dtype)
        for i, operand in enumerate(instruction.operands[1:])
    ]
    first, second = operands[0], operands[-1]
    if not dtype.is_float():
        shift, kind = wrapping(dtype)
        if operations[0] == op.WRAP and shift == 0:
            emitter.emit(op.MOVE, target, first)
        else:
            emitter.emit(operations[0], target, first, second, shift, kind, emitter.index_of(instruction))
            return
    elif operations[1] is None:
        emitter.complain(
            f"'{instruction.mnemonic}': bit operations and shifts have no float form", instruction.position
        )
    else:
        emitter.emit(operations[1], target, first, second, dtype.code())
    emitter.index_of(instruction)


def _binary(emitter: Emitter, instruction: Instruction) -> None:
    _arithmetic(emitter, instruction, _BINARY[instruction.mnemonic.split(".")[0]], 2)


def _unary(emitter: Emitter, instruction: Instruction) -> None:
    _arithmetic(emitter, instruction, _UNARY[instruction.mnemonic.split(".")[0]], 1)


def _comparison(emitter: Emitter, instruction: Instruction) -> None:
    integer, real, exchanged = _COMPARISON[instruction.mnemonic.split(".")[0]]
    dtype = dtype_of(emitter, instruction, 0)
    emitter.count(instruction, f"{instruction.mnemonic} %d, a, b", 3)
    target = emitter.target(instruction)
    a, b = (
        emitter.number(instruction, instruction.operands[i], instruction.operand_position(i), dtype) for i in (1, 2)
    )
    if exchanged:
        a, b = b, a
    unsigned = 1 if dtype.is_unsigned_int() and dtype.get_bit() == 64 else 0
    emitter.emit(real if dtype.is_float() else integer, target, a, b, 0 if dtype.is_float() else unsigned)
    emitter.index_of(instruction)


def _logical_not(emitter: Emitter, instruction: Instruction) -> None:
    dtype = dtype_of(emitter, instruction, 0)
    emitter.count(instruction, f"{instruction.mnemonic} %d, a", 2)
    a = emitter.number(instruction, instruction.operands[1], instruction.operand_position(1), dtype)
    emitter.emit(op.FLNOT if dtype.is_float() else op.LNOT, emitter.target(instruction), a, a, 0)
    emitter.index_of(instruction)


def _convert(emitter: Emitter, instruction: Instruction) -> None:
    to, source = dtype_of(emitter, instruction, 0), dtype_of(emitter, instruction, 1)
    emitter.count(instruction, f"{instruction.mnemonic} %d, a", 2)
    target = emitter.target(instruction)
    a = emitter.number(instruction, instruction.operands[1], instruction.operand_position(1), source)
    index = emitter.index_of(instruction)
    if to.is_float() and source.is_float():
        emitter.emit(op.FROUND, target, a, a, to.code())
    elif to.is_float():
        emitter.emit(op.INT_TO_FLOAT, target, a, int(source.is_unsigned_int()), to.code())
    elif source.is_float():
        emitter.emit(op.FLOAT_TO_INT, target, a, *wrapping(to))
    else:
        emitter.emit(op.WRAP, target, a, a, *wrapping(to), index)


def _select(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "sselect %d, %c, a, b", 4)
    is_float = _select_class(emitter, instruction)
    dtype = (
        dtype_of(emitter, instruction, 0)
        if "." in instruction.mnemonic
        else DataType.from_string("fp32" if is_float else "int64")
    )
    condition = emitter.integer(instruction, instruction.operands[1], instruction.operand_position(1))
    a, b = (
        emitter.number(instruction, instruction.operands[i], instruction.operand_position(i), dtype) for i in (2, 3)
    )
    emitter.emit(op.SELECT, emitter.target(instruction), condition, a, b)
    emitter.index_of(instruction)


def _header_word(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, f"{instruction.mnemonic} %d", 1)
    emitter.emit(op.MOVE, emitter.target(instruction), _HEADER_WORDS[instruction.mnemonic.split(".")[0]])
    emitter.index_of(instruction)


def _dim(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "dim %d, %x, axis", 3)
    symbol = emitter.symbol(instruction, 1, TENSORS, "a tensor")
    axis = emitter.literal(instruction, 2, "the axis")
    rank = rank_of(symbol)
    if not -rank <= axis < rank:
        emitter.complain(
            f"axis {axis} of %{symbol.name}: its axes are 0 to {rank - 1}", instruction.operand_position(2)
        )
    source = emitter.offsets[symbol.name] + layout.TENSOR_EXTENTS + axis % rank
    emitter.emit(op.MOVE, emitter.target(instruction), source)
    emitter.index_of(instruction)


def rank_of(symbol: object) -> int:
    """Rank of a tensor register or parameter."""
    return len(symbol.shape) if isinstance(symbol, TensorParameter) else symbol.rank  # type: ignore[attr-defined]


def _access(
    emitter: Emitter, instruction: Instruction, subject: int, indices: int, value: int, *, stores: bool
) -> None:
    """Element read or write: ``value`` is the offset of the register word."""
    symbol = emitter.symbol(instruction, subject, (Tile, *TENSORS), "a tensor or tile")
    places = emitter.items(instruction, indices, "the indices")
    rank = 2 if isinstance(symbol, Tile) else rank_of(symbol)
    if len(places) != rank:
        emitter.complain(
            f"%{symbol.name} has {rank} axes, found {len(places)} indices", instruction.operand_position(indices)
        )
    offset = emitter.offsets[symbol.name]
    index = emitter.index_of(instruction)
    if isinstance(symbol, Tile):
        emitter.emit(op.STORE_TILE if stores else op.LOAD_TILE, value, offset, index, *places)
        return
    if emitter.unit.core is None:
        emitter.requests.append(Access(offset, stores, index))
        emitter.emit(op.YIELD, len(emitter.requests) - 1)
    emitter.emit(op.STORE_TENSOR if stores else op.LOAD_TENSOR, value, offset, index, len(places), *places)


def _load(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "sload %d, %x, [i, j]", 3)
    emitter.facts.add("reads_memory")
    _access(emitter, instruction, 1, 2, emitter.target(instruction), stores=False)


def _store(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "sstore %x, [i, j], %v", 3)
    dtype = _element_dtype(emitter, instruction, 0)
    value = emitter.number(instruction, instruction.operands[2], instruction.operand_position(2), dtype)
    emitter.facts.add("stores_scalars")
    _access(emitter, instruction, 0, 1, value, stores=True)


def _set_valid(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "setvalid %t, rows, cols", 3)
    tile = emitter.symbol(instruction, 0, Tile, "a tile")
    rows, cols = (
        emitter.integer(instruction, instruction.operands[i], instruction.operand_position(i)) for i in (1, 2)
    )
    emitter.facts.add("partial")
    emitter.emit(op.SET_VALID, emitter.offsets[tile.name], rows, cols, emitter.index_of(instruction))


def _array(emitter: Emitter, instruction: Instruction, position: int) -> tuple[int, int]:
    array = emitter.symbol(instruction, position, Array, "an array")
    assert isinstance(array, Array)
    return emitter.offsets[array.name], array.length


def _array_get(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "aget %d, %a, i", 3)
    offset, length = _array(emitter, instruction, 1)
    index = emitter.integer(instruction, instruction.operands[2], instruction.operand_position(2))
    emitter.emit(op.ARRAY_GET, emitter.target(instruction), offset, length, index, emitter.index_of(instruction))


def _array_set(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "aset %a, i, v", 3)
    offset, length = _array(emitter, instruction, 0)
    index, value = (
        emitter.integer(instruction, instruction.operands[i], instruction.operand_position(i)) for i in (1, 2)
    )
    emitter.emit(op.ARRAY_SET, value, offset, length, index, emitter.index_of(instruction))


def _views(emitter: Emitter, instruction: Instruction) -> tuple[TensorRegister, TensorRegister | TensorParameter]:
    target = emitter.symbol(instruction, 0, TensorRegister, "a tensor register")
    source = emitter.symbol(instruction, 1, TENSORS, "a tensor")
    assert isinstance(target, TensorRegister) and isinstance(source, TENSORS)
    if instruction.mnemonic != "reinterpret" and target.dtype != source.dtype:
        emitter.complain(
            f"%{target.name} holds {target.dtype}, %{source.name} {source.dtype}", instruction.operand_position(1)
        )
    return target, source


def _check_rank(emitter: Emitter, instruction: Instruction, target: TensorRegister, rank: int) -> None:
    if target.rank != rank:
        emitter.complain(
            f"%{target.name} has rank {target.rank}; this view has rank {rank}", instruction.operand_position(0)
        )


def _view(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "view %v, %x, [offsets], [shape], [dropped axes]", 4, 5)
    target, source = _views(emitter, instruction)
    rank = rank_of(source)
    offsets, shape = emitter.items(instruction, 2, "the offsets"), emitter.items(instruction, 3, "the shape")
    dropped = instruction.operands[4] if len(instruction.operands) > 4 else ()
    if not isinstance(dropped, tuple) or not all(isinstance(axis, int) and 0 <= axis < rank for axis in dropped):
        emitter.complain(
            f"the dropped axes are a list of integers from 0 to {rank - 1}", instruction.operand_position(4)
        )
    for items, position in ((offsets, 2), (shape, 3)):
        if len(items) != rank:
            emitter.complain(
                f"%{source.name} has {rank} axes, found {len(items)} numbers", instruction.operand_position(position)
            )
    _check_rank(emitter, instruction, target, rank - len(dropped))
    axes = [axis for axis in dropped if isinstance(axis, int)]
    emitter.emit(
        op.VIEW,
        emitter.offsets[target.name],
        emitter.offsets[source.name],
        emitter.index_of(instruction),
        rank,
        *offsets,
        *shape,
        len(axes),
        *axes,
    )


def _reshape(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, f"{instruction.mnemonic} %v, %x, [shape]", 3)
    target, source = _views(emitter, instruction)
    shape = emitter.items(instruction, 2, "the shape")
    _check_rank(emitter, instruction, target, len(shape))
    dtype = -1
    if instruction.mnemonic == "reinterpret":
        dtype = attribute_dtype(emitter, instruction).code()
        if dtype != DataType.from_string(target.dtype).code():
            emitter.complain(
                f"%{target.name} holds {target.dtype}, not {instruction.attributes['dtype']}", instruction.position
            )
    emitter.emit(
        op.RESHAPE,
        emitter.offsets[target.name],
        emitter.offsets[source.name],
        emitter.index_of(instruction),
        len(shape),
        *shape,
        dtype,
    )


def attribute_dtype(emitter: Emitter, instruction: Instruction) -> DataType:
    """The attribute ``dtype``."""
    name = instruction.attributes.get("dtype")
    if not isinstance(name, str):
        emitter.complain(
            f"'{instruction.mnemonic}' needs the attribute dtype, as in {{dtype = fp32}}", instruction.position
        )
    try:
        return DataType.from_string(name)
    except ValueError as error:
        emitter.complain(str(error), instruction.position)


def _permute(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "permute %v, %x, axis, axis", 4)
    target, source = _views(emitter, instruction)
    rank = rank_of(source)
    _check_rank(emitter, instruction, target, rank)
    axes = [emitter.literal(instruction, i, "an axis") for i in (2, 3)]
    for axis, position in zip(axes, (2, 3)):
        if not -rank <= axis < rank:
            emitter.complain(
                f"axis {axis} of %{source.name}: its axes are 0 to {rank - 1}", instruction.operand_position(position)
            )
    emitter.emit(
        op.PERMUTE, emitter.offsets[target.name], emitter.offsets[source.name], *(axis % rank for axis in axes)
    )
    emitter.index_of(instruction)


SCALAR_INSTRUCTIONS: Final[dict[str, Callable[[Emitter, Instruction], None]]] = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(_COMPARISON, _comparison),
    **dict.fromkeys(_HEADER_WORDS, _header_word),
    "lnot": _logical_not,
    "scvt": _convert,
    "sselect": _select,
    "dim": _dim,
    "sload": _load,
    "sstore": _store,
    "setvalid": _set_valid,
    "aget": _array_get,
    "aset": _array_set,
    "view": _view,
    "reshape": _reshape,
    "reinterpret": _reshape,
    "permute": _permute,
}


__all__ = ["SCALAR_INSTRUCTIONS", "TENSORS", "attribute_dtype", "dtype_of", "rank_of", "result_class", "wrapping"]
