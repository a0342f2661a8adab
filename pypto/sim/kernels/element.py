"""Typed access to the elements of tiles and tensors from compiled code.

A :class:`~pypto.ir.dtype.DataType` is a compile-time constant inside a kernel: ``fetch(address, index, dtype)`` and
``store(address, index, dtype, value)`` become one load or store of the storage word plus the conversion between the
storage format and the type arithmetic is done in:

=================  ============  ==============================================
dtype              storage word  value seen by the kernel
=================  ============  ==============================================
fp32               float         float32
fp16               half          float32 (``fpext`` / ``fptrunc``, to nearest even)
bfloat16           16-bit word   float32 (shift / round to nearest even, NaN stays NaN)
integers, bool     itself        itself; a stored value keeps its low bits
8- and 4-bit       byte          the byte as uint8 (the cast kernels decode it)
float formats
=================  ============  ==============================================
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, typeof_impl

from pypto.ir.dtype import BF16, FP16, FP32, DataType

# Numba's stub types an intrinsic by the function that types it, not by the one that kernels call.
lowered: Any = intrinsic


class ElementType(types.Type):
    """Numba type of a :class:`DataType` constant; carries the dtype and no run-time value."""

    def __init__(self, dtype: DataType) -> None:
        self.dtype = dtype
        super().__init__(name=f"element({dtype.to_string()})")


@typeof_impl.register(DataType)
def _typeof_dtype(value: DataType, context: Any) -> ElementType:
    return ElementType(value)


@register_default(ElementType)
class _ElementModel(models.OpaqueModel):
    pass


@lower_constant(ElementType)
def _lower_dtype(context: Any, builder: Any, element: ElementType, value: DataType) -> Any:
    return context.get_dummy_value()


_INTEGERS: dict[str, Any] = {
    "int8": types.int8,
    "int16": types.int16,
    "int32": types.int32,
    "int64": types.int64,
    "uint8": types.uint8,
    "uint16": types.uint16,
    "uint32": types.uint32,
    "uint64": types.uint64,
}


def value_type(dtype: DataType) -> Any:
    """Numba type in which a kernel sees elements of ``dtype``."""
    if dtype in (FP32, FP16, BF16):
        return types.float32
    return _INTEGERS[dtype.storage]


def _storage(dtype: DataType) -> ir.Type:
    if dtype == FP32:
        return ir.FloatType()
    if dtype == FP16:
        return ir.HalfType()
    return ir.IntType(8 * dtype.get_byte())


def _decode(builder: Any, dtype: DataType, word: ir.Value) -> ir.Value:
    if dtype == FP16:
        return builder.fpext(word, ir.FloatType())
    if dtype == BF16:
        wide = builder.shl(builder.zext(word, ir.IntType(32)), ir.Constant(ir.IntType(32), 16))
        return builder.bitcast(wide, ir.FloatType())
    return word


def _encode(builder: Any, dtype: DataType, value: ir.Value) -> ir.Value:
    if dtype == FP16:
        return builder.fptrunc(value, ir.HalfType())
    if dtype == BF16:
        return _encode_bfloat16(builder, value)
    return value


def _encode_bfloat16(builder: Any, value: ir.Value) -> ir.Value:
    i32 = ir.IntType(32)
    bits = builder.bitcast(value, i32)
    odd = builder.and_(builder.lshr(bits, i32(16)), i32(1))
    nearest = builder.add(bits, builder.add(odd, i32(0x7FFF)))
    quiet = builder.or_(bits, i32(0x400000))
    word = builder.select(builder.fcmp_unordered("uno", value, value), quiet, nearest)
    return builder.trunc(builder.lshr(word, i32(16)), ir.IntType(16))


def _cell(builder: Any, dtype: DataType, address: ir.Value, index: ir.Value) -> ir.Value:
    pointer = builder.inttoptr(address, ir.PointerType(_storage(dtype)))
    return builder.gep(pointer, [index])


def _mark(builder: Any, instruction: Any, kind: str) -> None:
    """Scoped alias metadata: what ``fetch`` reads is not written by a ``store`` of the same kernel beforehand.

    Tiles are often updated in place (destination = source). An elementwise loop reads every element before it
    writes it, but the optimiser cannot know that and would leave the loop scalar.
    """
    module = builder.module
    domain = module.add_metadata(["tile kernel"])
    scope = module.add_metadata(["stores", domain])
    instruction.set_metadata(kind, module.add_metadata([scope]))


def _widen(function: Any) -> None:
    """Let the loops of a function use the widest vectors of the processor (LLVM keeps to 256 bits otherwise)."""
    set.add(function.attributes, '"prefer-vector-width"="512"')


def _load(typingctx: Any, dtype: Any, ahead: bool) -> Any:
    element: DataType = dtype.dtype

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        word = builder.load(_cell(builder, element, arguments[0], arguments[1]), align=element.get_byte())
        if ahead:
            _mark(builder, word, "noalias")
        return _decode(builder, element, word)

    return value_type(element)(types.int64, types.int64, dtype), codegen


@lowered
def fetch(typingctx: Any, address: Any, index: Any, dtype: Any) -> Any:
    """Element ``index`` at ``address``, which no ``store`` of this kernel has changed before (see :func:`_mark`)."""
    return _load(typingctx, dtype, ahead=True)


@lowered
def load(typingctx: Any, address: Any, index: Any, dtype: Any) -> Any:
    """Element ``index`` at ``address``, written by this kernel or not."""
    return _load(typingctx, dtype, ahead=False)


@lowered
def store(typingctx: Any, address: Any, index: Any, dtype: Any, value: Any) -> Any:
    """Write ``value`` to element ``index`` at ``address``, rounded (floats) or cut (integers) to ``dtype``."""
    element: DataType = dtype.dtype

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        typed = context.cast(builder, arguments[3], value, value_type(element))
        word = _encode(builder, element, typed)
        cell = _cell(builder, element, arguments[0], arguments[1])
        instruction = builder.store(word, cell, align=element.get_byte())
        _mark(builder, instruction, "alias.scope")
        _widen(builder.function)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, dtype, value), codegen


@lowered
def as_element(typingctx: Any, value: Any, dtype: Any) -> Any:
    """``value`` converted to ``dtype`` and back to the type the kernel computes in."""
    element: DataType = dtype.dtype
    result = value_type(element)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        typed = context.cast(builder, arguments[0], value, result)
        return _decode(builder, element, _encode(builder, element, typed))

    return result(value, dtype), codegen


@lowered
def scalar(typingctx: Any, word: Any, dtype: Any) -> Any:
    """The scalar operand ``word`` as an element of ``dtype``: float64 bits for float dtypes, an integer otherwise."""
    element: DataType = dtype.dtype
    result = value_type(element)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        if element.is_float():
            double = builder.bitcast(arguments[0], ir.DoubleType())
            typed = builder.fptrunc(double, ir.FloatType())
            return _decode(builder, element, _encode(builder, element, typed))
        return context.cast(builder, arguments[0], types.int64, result)

    return result(types.int64, dtype), codegen


@lowered
def bits(typingctx: Any, value: Any, example: Any) -> Any:
    """Reinterpret the bits of ``value`` as the (equally wide) type of ``example``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        return builder.bitcast(arguments[0], context.get_value_type(example))

    return example(value, example), codegen
