"""What a test of a kernel needs, in one place: specs of its arguments, golden files, comparison, results."""

from __future__ import annotations

from pypto.runtime.device_runner import validate_golden
from pypto.runtime.golden_runner import validate_persisted_outputs
from pypto.runtime.golden_writer import generate_golden_source, write_golden
from pypto.runtime.runner import RunResult
from pypto.runtime.specs import ScalarSpec, TensorSpec

__all__ = [
    "RunResult",
    "ScalarSpec",
    "TensorSpec",
    "generate_golden_source",
    "validate_golden",
    "validate_persisted_outputs",
    "write_golden",
]
