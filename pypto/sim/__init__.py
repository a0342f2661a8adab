"""The simulated chip: kernel text, machine, tile kernels, recordings and the timing engine."""

from pypto.sim.faults import DeadlockError, DivisionByZeroError, ExecutionError, OutOfBoundsError

__all__ = ["DeadlockError", "DivisionByZeroError", "ExecutionError", "OutOfBoundsError"]
