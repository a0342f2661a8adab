"""The single-precision matrix product of SciPy's BLAS, called from compiled code.

The product runs on the calling thread: the blocks of a launch may run on several host threads, and the grouping of a
sum must not depend on how many there are.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from scipy.linalg import cython_blas

from pypto.sim.kernels.element import lowered

_SYMBOL: Final = "pypto_sgemm"


def _pointer(name: str) -> int:
    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def _use_one_thread() -> None:
    """SciPy's own OpenBLAS starts a thread per core for products as small as 64**3; other builds keep their setting."""
    library = ctypes.CDLL(cython_blas.__file__)
    for name in ("scipy_openblas_set_num_threads", "openblas_set_num_threads"):
        if hasattr(library, name):
            getattr(library, name)(1)
            return


# Compiled kernels refer to the routine by name, so that they can be kept on disk.
llvm.add_symbol(_SYMBOL, _pointer("sgemm"))
_use_one_thread()


@lowered
def sgemm(
    typingctx: Any,
    trans_a: Any,
    trans_b: Any,
    m: Any,
    n: Any,
    k: Any,
    a: Any,
    lda: Any,
    b: Any,
    ldb: Any,
    beta: Any,
    c: Any,
    ldc: Any,
) -> Any:
    """C = op(A) op(B) + beta C in column-major order; addresses are integers, ``beta`` is a float32."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        byte, word, real, wide = ir.IntType(8), ir.IntType(32), ir.FloatType(), ir.IntType(64)

        def reference(value: ir.Value) -> ir.Value:
            with builder.goto_entry_block():
                slot = builder.alloca(value.type)
            builder.store(value, slot)
            return builder.bitcast(slot, byte.as_pointer())

        def flag(value: ir.Value) -> ir.Value:
            transposed = builder.icmp_signed("!=", value, ir.Constant(wide, 0))
            return reference(builder.select(transposed, byte(ord("T")), byte(ord("N"))))

        def size(value: ir.Value) -> ir.Value:
            return reference(builder.trunc(value, word))

        def place(value: ir.Value) -> ir.Value:
            return builder.inttoptr(value, byte.as_pointer())

        ta, tb, im, jn, kk, pa, la, pb, lb, scale, pc, lc = arguments
        actual = [
            flag(ta),
            flag(tb),
            size(im),
            size(jn),
            size(kk),
            reference(real(1.0)),
            place(pa),
            size(la),
            place(pb),
            size(lb),
            reference(scale),
            place(pc),
            size(lc),
        ]
        routine = ir.FunctionType(ir.VoidType(), [byte.as_pointer()] * len(actual))
        builder.call(cgutils.get_or_insert_function(builder.module, routine, _SYMBOL), actual)
        return context.get_dummy_value()

    i = types.int64
    return types.void(i, i, i, i, i, i, i, i, i, types.float32, i, i), codegen
