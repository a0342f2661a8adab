"""Names that mean something inside a parsed body only; called from Python they say so."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from pypto.ir.enums import ArgDirection, MaskPattern


class Construct:
    """A construct or operation of the language, spelled from Python."""

    def __init__(self, name: str, doc: str):
        self.__name__, self.__doc__ = name, doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"pl.{self.__name__} has a meaning only inside a kernel body, which is parsed and never executed"
        )

    def __repr__(self) -> str:
        return f"pl.{self.__name__}"


def operation_name(name: str, others: Iterable[str] = ()) -> Construct:
    """The operation ``pl.<name>``; ``AttributeError`` with the nearest name when there is none.

    ``others`` are the names of ``pl`` that are no operations: dtypes, types, enumerations.
    """
    from pypto.ir import operations

    if name.startswith("__") or not operations.exists("pl", name):
        near = _nearest("pl", name, others)
        raise AttributeError(
            f"module 'pypto.language' has no attribute {name!r}" + (f"; did you mean {near!r}?" if near else "")
        )
    return Construct(name, _summary("pl", name))


def operation_names() -> list[str]:
    """Every name that ``pl.<name>(...)`` takes for an operation."""
    from pypto.ir import operations

    return [name for name in _spellings("pl") if operations.exists("pl", name)]


def _spellings(namespace: str) -> list[str]:
    from pypto.ir import operations

    rows = (r.name.partition(".") for r in operations.rows())
    return sorted({name for home, _, name in rows if namespace in ("pl", home)})


def _nearest(namespace: str, name: str, others: Iterable[str] = ()) -> str | None:
    """The spelling closest to ``name``, capitals aside; ``None`` when nothing is close."""
    import difflib

    spelled = {known.lower(): known for known in (*_spellings(namespace), *others)}
    return next((spelled[n] for n in difflib.get_close_matches(name.lower(), spelled, 1)), None)


def _summary(namespace: str, name: str) -> str:
    from pypto.ir import operations

    homes = ("tile", "tensor", "system") if namespace == "pl" else (namespace,)
    row = next((r for r in (operations.find(f"{home}.{name}") for home in homes) if r is not None), None)
    return row.summary if row is not None else ""


class Namespace:
    """``pl.tensor``, ``pl.tile``, ``pl.system``, ``pl.array`` or ``pl.prefetch``."""

    def __init__(self, name: str):
        self.__name__ = name
        if name == "tile":
            self.MaskPattern = MaskPattern
        if name == "system":
            self.AUTO = -1

    def __getattr__(self, name: str) -> Construct:
        from pypto.ir import operations

        namespace = self.__dict__.get("__name__", "")
        if name.startswith("__") or not operations.exists(namespace, name):
            raise AttributeError(f"pl.{namespace} has no operation {name!r}")
        return Construct(f"{namespace}.{name}", _summary(namespace, name))

    def __dir__(self) -> list[str]:
        return _spellings(self.__name__)


range = Construct("range", "Ordinary loop: (stop), (start, stop) or (start, stop, step).")
parallel = Construct("parallel", "Loop whose iterations are independent.")
unroll = Construct("unroll", "Loop whose body is replicated at compile time.")
pipeline = Construct("pipeline", "Software-pipelined loop with `stage` copies of the body in flight.")
while_ = Construct("while_", "Loop with explicit state: for (a, b) in pl.while_(init_values=(x, y)).")
cond = Construct("cond", "Condition of a pl.while_ loop.")
yield_ = Construct("yield_", "Values a block hands to its loop or branch.")
const = Construct("const", "Literal with a dtype.")
static_print = Construct("static_print", "Print at compile time.")
static_assert = Construct("static_assert", "Check at compile time.")
func_attr = Construct("func_attr", "Attributes of the function, before its first statement.")
min = Construct("min", "Minimum of two scalars.")
max = Construct("max", "Maximum of two scalars.")
at = Construct("at", "Scope that becomes one device kernel and one task.")
cluster = Construct("cluster", "Scope that becomes one cube and vector group.")
spmd = Construct("spmd", "One task over several blocks.")
split_aiv = Construct("split_aiv", "Region executed by both vector cores of a cluster.")
stage = Construct("stage", "Printer output: one copy of a pipelined loop body.")
scope = Construct("scope", "Runtime scope.")
manual_scope = Construct("manual_scope", "Runtime scope without inferred dependencies.")
submit = Construct("submit", "Launch one task and take its id.")
spmd_submit = Construct("spmd_submit", "Launch one task over several blocks and take its id.")
no_dep = Construct("no_dep", "Mark a call argument that derives no dependency.")
dump_tag = Construct("dump_tag", "Dump a tensor with every task that takes it.")
split = Construct("split", "Split the vector part of a mixed kernel over two cores.")
cross_core_slot = Construct("cross_core_slot", "Depth of the cube/vector hand-over ring.")
optimizations = SimpleNamespace(
    split=split, cross_core_slot=cross_core_slot, Split=split, CrossCoreSlot=cross_core_slot, Optimization=Construct
)
_DIRECTIONS = {
    "scalar": ArgDirection.Scalar,
    "input": ArgDirection.Input,
    "output": ArgDirection.Output,
    "output_existing": ArgDirection.OutputExisting,
    "inout": ArgDirection.InOut,
    "no_dep": ArgDirection.NoDep,
}
adir = SimpleNamespace(
    **_DIRECTIONS,
    ArgDirection=ArgDirection,
    NAME_TO_DIRECTION=_DIRECTIONS,
    DIRECTION_TO_NAME={direction: name for name, direction in _DIRECTIONS.items()},
)
