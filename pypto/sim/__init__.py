"""The simulated chip: kernel text, machine, tile kernels, recordings and the timing engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto.sim.faults import DeadlockError, DivisionByZeroError, ExecutionError, OutOfBoundsError

if TYPE_CHECKING:
    from pypto.sim.capture import record
    from pypto.sim.chip_sweep import sweep
    from pypto.sim.chips import Chip, chip
    from pypto.sim.explanation import Difference, Explanation, compare, explain
    from pypto.sim.recording import Recording
    from pypto.sim.timing import DeviceState, Timeline

_HOMES = {
    "CheckError": "checks.findings",
    "Checks": "checks.selection",
    "Finding": "checks.findings",
    "BoundsError": "checks.findings",
    "DirectionError": "checks.findings",
    "FifoError": "checks.findings",
    "OrderError": "checks.findings",
    "PlacementError": "checks.findings",
    "PrecisionError": "checks.findings",
    "ShapeContractError": "checks.findings",
    "SignalError": "checks.findings",
    "UndefinedValueError": "checks.findings",
    "WaitError": "checks.findings",
    "compare_precision": "precision",
    "chip": "chips",
    "Chip": "chips",
    "record": "capture",
    "Recording": "recording",
    "sweep": "chip_sweep",
    "compare": "explanation",
    "explain": "explanation",
    "Difference": "explanation",
    "Explanation": "explanation",
    "DeviceState": "timing",
    "Timeline": "timing",
}


def __getattr__(name: str) -> Any:
    """Load on first use."""
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"pypto.sim.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pypto.sim' has no attribute {name!r}")


__all__ = [
    "Chip",
    "DeadlockError",
    "DeviceState",
    "Difference",
    "DivisionByZeroError",
    "ExecutionError",
    "Explanation",
    "OutOfBoundsError",
    "Recording",
    "Timeline",
    "chip",
    "compare",
    "explain",
    "record",
    "sweep",
]
