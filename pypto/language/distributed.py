"""Programs over several ranks: ``import pypto.language.distributed as pld`` (spec distributed 2).

Names of operations resolve inside a body only, as those of ``pl`` do.
"""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from pypto.language.constructs import Construct
from pypto.language.typing import DistributedTensor


class CommCtx:
    """Type of a communication context, for annotations."""

    opaque_name = "CommCtx"


CommCtxType = CommCtx


class Category:
    """``pld.system``, ``pld.tensor`` or ``pld.tile``."""

    def __init__(self, name: str):
        self.__name__ = name

    def __getattr__(self, name: str) -> Construct:
        category = self.__dict__.get("__name__", "")
        return _operation(f"pld.{category}", name, f"pld.{category}")

    def __dir__(self) -> list[str]:
        from pypto.ir.operations import table

        head = f"pld.{self.__name__}."
        return sorted(name.removeprefix(head) for name in table.names() if name.startswith(head))


class RankConstruct(Construct):
    """An operation of ``pld``, spelled from Python."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self!r} has a meaning only inside a kernel body, which is parsed and never executed")

    def __repr__(self) -> str:
        return f"pld.{self.__name__}"


def _operation(namespace: str, name: str, owner: str) -> RankConstruct:
    from pypto.ir.operations import table
    from pypto.ir.operations.distributed import canonical

    row = None if name.startswith("__") else table.find(canonical(namespace, name))
    if row is None:
        raise AttributeError(f"{owner} has no operation {name!r}")
    return RankConstruct(row.name.removeprefix("pld.") if namespace != "pld" else name, row.summary)


system, tensor, tile = Category("system"), Category("tensor"), Category("tile")

_OPERATIONS = (
    "alloc_window_buffer",
    "get_comm_ctx",
    "nranks",
    "rank",
    "remote_load",
    "remote_store",
    "window",
    "world_size",
)


def __getattr__(name: str) -> Any:
    return _operation("pld", name, "module 'pypto.language.distributed'")


__all__ = [  # noqa: PLE0604, F822 - operations are made on first use
    "AtomicType",
    "CommCtx",
    "CommCtxType",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "system",
    "tensor",
    "tile",
    *_OPERATIONS,
]
