"""Machine words at raw addresses, and calls through function pointers, from compiled code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending, types

intrinsic: Any = extending.intrinsic
_WORD = ir.IntType(64)


def _pointer(builder: Any, address: Any, pointee: Any) -> Any:
    return builder.inttoptr(address, ir.PointerType(pointee))


def _loader(bits: int, signed: bool) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_pointer(builder, arguments[0], ir.IntType(bits)))
        word.align = 1
        if bits == 64:
            return word
        return builder.sext(word, _WORD) if signed else builder.zext(word, _WORD)

    return codegen


def _storer(bits: int) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
        instruction = builder.store(value, _pointer(builder, arguments[0], ir.IntType(bits)))
        instruction.align = 1
        return context.get_dummy_value()

    return codegen


@intrinsic
def load_word(typingctx: Any, address: Any) -> Any:
    """The int64 at ``address``."""
    return types.int64(types.int64), _loader(64, True)


@intrinsic
def load_int32(typingctx: Any, address: Any) -> Any:
    """The int32 at ``address``, sign-extended."""
    return types.int64(types.int64), _loader(32, True)


@intrinsic
def load_int16(typingctx: Any, address: Any) -> Any:
    """The int16 at ``address``, sign-extended."""
    return types.int64(types.int64), _loader(16, True)


@intrinsic
def load_int8(typingctx: Any, address: Any) -> Any:
    """The int8 at ``address``, sign-extended."""
    return types.int64(types.int64), _loader(8, True)


@intrinsic
def load_uint8(typingctx: Any, address: Any) -> Any:
    """The uint8 at ``address``."""
    return types.int64(types.int64), _loader(8, False)


@intrinsic
def store_word(typingctx: Any, address: Any, value: Any) -> Any:
    """Write ``value`` as int64 at ``address``."""
    return types.void(types.int64, types.int64), _storer(64)


@intrinsic
def store_int32(typingctx: Any, address: Any, value: Any) -> Any:
    """Write the low 32 bits of ``value`` at ``address``."""
    return types.void(types.int64, types.int64), _storer(32)


@intrinsic
def store_int16(typingctx: Any, address: Any, value: Any) -> Any:
    """Write the low 16 bits of ``value`` at ``address``."""
    return types.void(types.int64, types.int64), _storer(16)


@intrinsic
def store_int8(typingctx: Any, address: Any, value: Any) -> Any:
    """Write the low 8 bits of ``value`` at ``address``."""
    return types.void(types.int64, types.int64), _storer(8)


@intrinsic
def copy_bytes(typingctx: Any, target: Any, source: Any, count: Any) -> Any:
    """``memcpy`` of ``count`` bytes between raw addresses."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.PointerType(ir.IntType(8))
        function = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, _WORD])
        builder.call(
            function,
            [
                builder.inttoptr(arguments[0], byte),
                builder.inttoptr(arguments[1], byte),
                arguments[2],
                ir.Constant(ir.IntType(1), 0),
            ],
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _memset(builder: Any, target: Any, count: Any, value: Any) -> None:
    byte = ir.PointerType(ir.IntType(8))
    function = builder.module.declare_intrinsic("llvm.memset", [byte, _WORD])
    builder.call(function, [builder.inttoptr(target, byte), value, count, ir.Constant(ir.IntType(1), 0)])


@intrinsic
def clear_bytes(typingctx: Any, target: Any, count: Any) -> Any:
    """Zero ``count`` bytes at a raw address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _memset(builder, arguments[0], arguments[1], ir.Constant(ir.IntType(8), 0))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def fill_bytes(typingctx: Any, target: Any, count: Any, value: Any) -> Any:
    """Set ``count`` bytes at a raw address to the low 8 bits of ``value``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _memset(builder, arguments[0], arguments[1], builder.trunc(arguments[2], ir.IntType(8)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_kernel(typingctx: Any, address: Any, arguments_address: Any) -> Any:
    """Call the tile kernel ``int64(int64*)`` at ``address``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = ir.PointerType(_WORD)
        kernel = _pointer(builder, arguments[0], ir.FunctionType(_WORD, [words]))
        return builder.call(kernel, [builder.inttoptr(arguments[1], words)])

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def as_pointer(typingctx: Any, address: Any) -> Any:
    """``int64*`` at ``address``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _pointer(builder, arguments[0], _WORD)

    return types.CPointer(types.int64)(types.int64), codegen


@intrinsic
def as_float(typingctx: Any, word: Any) -> Any:
    """The float64 whose bits are ``word``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def as_word(typingctx: Any, value: Any) -> Any:
    """The bits of a float64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _WORD)

    return types.int64(types.float64), codegen


@intrinsic
def divide_signed(typingctx: Any, a: Any, b: Any) -> Any:
    """``a / b`` towards zero; the caller excludes ``b`` in (0, -1)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sdiv(arguments[0], arguments[1])

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def divide_unsigned(typingctx: Any, a: Any, b: Any) -> Any:
    """``a / b`` of unsigned 64-bit words; the caller excludes zero."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.udiv(arguments[0], arguments[1])

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def shift_right_unsigned(typingctx: Any, a: Any, count: Any) -> Any:
    """Logical shift right by 0 to 63."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.lshr(arguments[0], arguments[1])

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def less_unsigned(typingctx: Any, a: Any, b: Any) -> Any:
    """1 if ``a < b`` as unsigned 64-bit words, else 0."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.icmp_unsigned("<", arguments[0], arguments[1]), _WORD)

    return types.int64(types.int64, types.int64), codegen
