"""The kernel language: ``import pypto.language as pl`` (spec language 1).

Bodies are parsed, never executed; the names of operations and constructs resolve inside a body only.
"""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import (
    BF16,
    BOOL,
    FP4,
    FP8E4M3FN,
    FP8E5M2,
    FP8E8M0,
    FP16,
    FP32,
    HF4,
    HF8,
    INDEX,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    TASK_ID,
    UINT4,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
)
from pypto.ir.enums import (
    AtomicType,
    CompactMode,
    ForKind,
    FunctionType,
    Level,
    Mem,
    MemorySpace,
    PadValue,
    PipeType,
    Role,
    ScopeMode,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.uncaught import install as _report_uncaught_errors
from pypto.language import constructs
from pypto.language import program as _program
from pypto.language.constructs import (
    adir,
    at,
    cluster,
    cond,
    const,
    cross_core_slot,
    dump_tag,
    func_attr,
    manual_scope,
    max,
    min,
    no_dep,
    optimizations,
    parallel,
    pipeline,
    range,
    scope,
    split,
    split_aiv,
    spmd,
    spmd_submit,
    stage,
    static_assert,
    static_print,
    submit,
    unroll,
    while_,
    yield_,
)
from pypto.language.program import InlineFunction, function, inline, program
from pypto.language.text import loads, loads_program, parse, parse_program
from pypto.language.typing import (
    RUNTIME,
    Array,
    AsyncEvent,
    AsyncSession,
    DistributedTensor,
    DynVar,
    InOut,
    IntLike,
    MemRef,
    Out,
    PrefetchAsyncContext,
    Ptr,
    PtrType,
    Scalar,
    TaskId,
    Tensor,
    TensorView,
    Tile,
    TileView,
    Tuple,
    dynamic,
)

_report_uncaught_errors()

ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
MX_A_ZZ, MX_B_NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
AUTO = -1
MemRefType = MemRef

_LAZY = {
    "jit": ("pypto.jit", "jit"),
    "JITFunction": ("pypto.jit", "JITFunction"),
    "parser": ("pypto.language.parser", None),
}
_NAMESPACES = ("tensor", "tile", "system", "array", "prefetch")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_EXPORTED, *(n for n in constructs.operation_names() if n not in _EXPORTED)]
    if name in _LAZY:
        from importlib import import_module

        module, attribute = _LAZY[name]
        value = import_module(module) if attribute is None else getattr(import_module(module), attribute)
        globals()[name] = value
        return value
    value = constructs.operation_name(name, _EXPORTED) if name not in _NAMESPACES else constructs.Namespace(name)
    globals()[name] = value
    return value


_EXPORTED = [
    n for n in dir() if not n.startswith("_") and n not in ("annotations", "Any", "constructs", "DistributedTensor")
] + ["jit", "JITFunction", "parser", *_NAMESPACES]
