"""Running compiled programs: workers, device tensors, launches, benchmarks.

Names are imported where they are first used, so that ``import pypto.runtime`` loads neither torch nor the simulator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pypto.runtime import log_config
from pypto.runtime.log_config import configure_log

if TYPE_CHECKING:
    from pypto.ir.distributed_compiled_program import execute_distributed_compiled
    from pypto.runtime.bench import BenchmarkStats, TraceInvocation, TraceSpan, benchmark
    from pypto.runtime.device_tensor import DeviceTensor
    from pypto.runtime.distributed_worker import DistributedRunHandle, DistributedWorker
    from pypto.runtime.log_config import current_level as log_level
    from pypto.runtime.pto_isa import ensure_pto_isa_root, pto_isa_include_dir
    from pypto.runtime.ranks_explanation import explain_ranks
    from pypto.runtime.registration import RegistrationHandle
    from pypto.runtime.run_config import RunConfig
    from pypto.runtime.runner import RunResult, compile_program, execute_compiled, run
    from pypto.runtime.specs import ScalarSpec, TensorSpec
    from pypto.runtime.stacked_device_tensor import StackedDeviceTensor
    from pypto.runtime.worker import ChipWorker
    from pypto.runtime.worker_base import Worker

# name -> module and name there
_HOME = {
    "BenchmarkStats": ("pypto.perf", "BenchmarkStats"),
    "TraceInvocation": ("pypto.perf", "TraceInvocation"),
    "TraceSpan": ("pypto.perf", "TraceSpan"),
    "benchmark": ("pypto.runtime.bench", "benchmark"),
    "ChipWorker": ("pypto.runtime.worker", "ChipWorker"),
    "DistributedRunHandle": ("pypto.runtime.distributed_worker", "DistributedRunHandle"),
    "DistributedWorker": ("pypto.runtime.distributed_worker", "DistributedWorker"),
    "DeviceTensor": ("pypto.runtime.device_tensor", "DeviceTensor"),
    "RegistrationHandle": ("pypto.runtime.registration", "RegistrationHandle"),
    "RunConfig": ("pypto.runtime.run_config", "RunConfig"),
    "RunResult": ("pypto.runtime.runner", "RunResult"),
    "ScalarSpec": ("pypto.runtime.specs", "ScalarSpec"),
    "StackedDeviceTensor": ("pypto.runtime.stacked_device_tensor", "StackedDeviceTensor"),
    "TensorSpec": ("pypto.runtime.specs", "TensorSpec"),
    "Worker": ("pypto.runtime.worker_base", "Worker"),
    "compile_program": ("pypto.runtime.runner", "compile_program"),
    "execute_distributed_compiled": ("pypto.ir.distributed_compiled_program", "execute_distributed_compiled"),
    "explain_ranks": ("pypto.runtime.ranks_explanation", "explain_ranks"),
    "ensure_pto_isa_root": ("pypto.runtime.pto_isa", "ensure_pto_isa_root"),
    "execute_compiled": ("pypto.runtime.runner", "execute_compiled"),
    "log_level": ("pypto.runtime.log_config", "current_level"),
    "pto_isa_include_dir": ("pypto.runtime.pto_isa", "pto_isa_include_dir"),
    "run": ("pypto.runtime.runner", "run"),
}

__all__ = [
    "BenchmarkStats",
    "ChipWorker",
    "DeviceTensor",
    "DistributedRunHandle",
    "DistributedWorker",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "StackedDeviceTensor",
    "TensorSpec",
    "TraceInvocation",
    "TraceSpan",
    "Worker",
    "benchmark",
    "compile_program",
    "configure_log",
    "ensure_pto_isa_root",
    "execute_compiled",
    "execute_distributed_compiled",
    "explain_ranks",
    "log_level",
    "pto_isa_include_dir",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pypto.runtime' has no attribute {name!r}")
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


log_config.apply_environment()
