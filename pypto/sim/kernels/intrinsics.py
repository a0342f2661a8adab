"""LLVM operations that Numba does not expose and that vectorise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from pypto.sim.kernels.element import lowered


def _declare(builder: Any, name: str, result: ir.Type, arguments: list[ir.Type]) -> Any:
    return builder.module.declare_intrinsic(name, (), ir.FunctionType(result, arguments))


def _float_suffix(number: Any) -> str:
    return "f32" if number == types.float32 else "f64"


def _unary(name: str, meaning: str) -> Callable[..., Any]:
    @lowered
    def function(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
            kind = arguments[0].type
            return builder.call(_declare(builder, f"{name}.{_float_suffix(x)}", kind, [kind]), arguments)

        return x(x), codegen

    function.__doc__ = meaning
    return function


floor = _unary("llvm.floor", "largest integral value not above x")
ceil = _unary("llvm.ceil", "smallest integral value not below x")
truncated = _unary("llvm.trunc", "x without its fraction")
nearest_even = _unary("llvm.rint", "nearest integral value, ties to even")
magnitude = _unary("llvm.fabs", "x without its sign")
root = _unary("llvm.sqrt", "square root")


@lowered
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        kind = arguments[0].type
        return builder.call(_declare(builder, f"llvm.fma.{_float_suffix(a)}", kind, [kind] * 3), arguments)

    return a(a, a, a), codegen


@lowered
def with_sign(typingctx: Any, size: Any, sign: Any) -> Any:
    """``size`` with the sign of ``sign``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        kind = arguments[0].type
        return builder.call(_declare(builder, f"llvm.copysign.{_float_suffix(size)}", kind, [kind] * 2), arguments)

    return size(size, size), codegen


def _any_order(opcode: str) -> Callable[..., Any]:
    @lowered
    def function(typingctx: Any, a: Any, b: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
            return getattr(builder, opcode)(*arguments, flags=("reassoc",))

        return a(a, a), codegen

    function.__doc__ = f"{opcode} that the optimiser may regroup within a loop (the order is fixed when compiled)"
    return function


add_regrouped = _any_order("fadd")
mul_regrouped = _any_order("fmul")
