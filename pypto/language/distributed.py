"""Names of multi-rank programs: ``import pypto.language.distributed as pld`` (spec distributed 1)."""

from __future__ import annotations

from pypto.ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from pypto.language.typing import DistributedTensor


class CommCtx:
    """Type of a communication context, for annotations."""

    opaque_name = "CommCtx"


CommCtxType = CommCtx

__all__ = ["AtomicType", "CommCtx", "CommCtxType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp"]
