"""``pypto.pypto_core.passes``: the options of the pass pipeline."""

from pypto.ir.pass_manager import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
)

__all__ = [
    "DiagnosticCheck",
    "DiagnosticCheckSet",
    "DiagnosticPhase",
    "MemoryPlanner",
    "PassContext",
    "RuntimeKind",
    "VerificationLevel",
]
