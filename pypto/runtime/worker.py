"""A worker of one chip: opened once, launched on many times, owner of device memory (spec runtime 10)."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Final

from pypto.backend.platforms import find_platform
from pypto.runtime import active_workers
from pypto.runtime.active_workers import Binding
from pypto.runtime.arguments import BoundCall
from pypto.runtime.callable import DEFAULT_RUNTIME, ChipCallable
from pypto.runtime.chip_device import ChipDevice
from pypto.runtime.device_memory import Allocation
from pypto.runtime.dispatch import LEVEL, Compiled, check_config, prepare
from pypto.runtime.prepared import PreparedProgram
from pypto.runtime.registration import CallableId, RegistrationHandle
from pypto.runtime.run_config import RunConfig
from pypto.runtime.worker_base import Worker
from pypto.sim.checks.forced import results_in_place

__all__ = ["ChipWorker", "RegistrationHandle"]

_DEFAULT_CONFIG: Final = RunConfig()
_numbers: Final = itertools.count(1)


class ChipWorker(Worker):
    """One chip, bound to the platform and device of ``config``.

    Open on construction; ``with worker:`` also lets ``compiled(...)`` calls inside the block find it, and closes it at
    the end. Diagnostics, thread counts and ring sizes come from the ``config`` of each call, not from this one.

    Two workers with one binding cannot be entered inside each other, as a device opens once; with the check of
    placement asked for by name or by ``checks="all"``, the inner one is a second chip: tensors that stray are found.

    ``runtime`` must be the task runtime the programs were compiled for; ``enable_sdma`` must be set for programs that
    prefetch through SDMA; ``auto_init=False`` leaves opening to :meth:`init`.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = LEVEL,
        runtime: str = DEFAULT_RUNTIME,
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ):
        super().__init__()
        if level != LEVEL:
            raise ValueError(f"ChipWorker only supports level=2, got {level!r}; DistributedWorker drives several chips")
        config = _DEFAULT_CONFIG if config is None else config
        check_config(config)
        self.binding = Binding(level, config.platform, config.device_id, runtime)
        self.enable_sdma = enable_sdma
        self.checks_placement = config.checks == "all" or (
            isinstance(config.checks, frozenset) and "placement" in config.checks
        )
        self._name = f"ChipWorker {next(_numbers)} ({config.platform}, device {config.device_id})"
        self._device: ChipDevice | None = None
        self._handles: weakref.WeakSet[RegistrationHandle] = weakref.WeakSet()
        self._callables: dict[str, ChipCallable] = {}
        if auto_init is not False:
            self.init()

    # --- binding and state ---------------------------------------------------------------------------------------

    @property
    def level(self) -> int:
        return self.binding.level

    @property
    def platform(self) -> str:
        return self.binding.platform

    @property
    def device_id(self) -> int:
        return self.binding.device_id

    @property
    def runtime(self) -> str:
        return self.binding.runtime

    @property
    def initialized(self) -> bool:
        """Whether the worker is open."""
        return self._device is not None

    @property
    def aicpu_dlopen_count(self) -> int:
        """Distinct callables, by content, loaded on the device since it was opened."""
        return 0 if self._device is None else self._device.callables

    @property
    def host_dlopen_count(self) -> int:
        """Host-side orchestration libraries loaded: none, as task graphs are built on the device."""
        return 0

    def init(self) -> None:
        """Open the device; nothing happens when it is open. After a close the device is a new one."""
        if self._device is None:
            self._device = ChipDevice(find_platform(self.platform), self.device_id, self.runtime, self._name)

    def close(self) -> None:
        """Free all device memory, close all handles and the device; a closed worker may be opened again."""
        if self._device is None:
            return
        self._close_owned_tensors()
        for handle in list(self._handles):
            handle.unregister()
        self._handles.clear()
        self._callables.clear()
        self._device.close()
        self._device = None

    def __enter__(self) -> ChipWorker:
        active_workers.push(self)
        try:
            self.init()
        except BaseException:
            active_workers.pop(self)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        active_workers.pop(self)
        self.close()

    @staticmethod
    def current(
        *, level: int, platform: str, device_id: int, runtime: str, require_sdma: bool = False
    ) -> ChipWorker | None:
        """The innermost worker open around the caller with exactly this binding, ``None`` without one."""
        worker = active_workers.find(Binding(level, platform, device_id, runtime))
        if worker is not None and require_sdma:
            worker._check_sdma("the program")
        return worker

    # --- launches ------------------------------------------------------------------------------------------------

    def run(self, compiled: Compiled, *args: Any, config: RunConfig | None = None) -> Any:
        """Launch ``compiled`` once; call styles and results are those of ``compiled(*args)``."""
        self._require_ready("run")
        return self.dispatch(self._prepare(compiled), args, config)

    def register(self, compiled: Compiled) -> RegistrationHandle:
        """Assemble and load ``compiled`` now, so that mistakes in it surface here; returns the handle to launch it.

        Registering a program again gives another handle of the same registration.
        """
        self._require_ready("register")
        prepared = self._prepare(compiled)
        number = self._load(prepared.chip_callable)
        handle = RegistrationHandle(self, compiled, CallableId(number, prepared.chip_callable.hid), prepared)
        self._handles.add(handle)
        return handle

    def dispatch(self, prepared: PreparedProgram, args: Sequence[Any], config: RunConfig | None) -> Any:
        """Launch a program prepared before (implicit calls and handles come here)."""
        device = self._open_device("run")
        config = _DEFAULT_CONFIG if config is None else config
        check_config(config)
        self._check_callable(prepared.chip_callable)
        self._load(prepared.chip_callable)
        return prepared.launch(device, "ChipWorker", args, config)

    def dispatch_registered(self, handle: RegistrationHandle, args: tuple[Any, ...], config: RunConfig | None) -> Any:
        """Launch the program of ``handle``."""
        with results_in_place():
            return self.dispatch(handle.prepared, args, config)

    def check_residency(self, prepared: PreparedProgram, call: BoundCall) -> None:
        """``ValueError`` unless every resident argument of ``call`` is a live tensor of this worker."""
        prepared.check_residency(self._open_device("build_orch_args"), "ChipWorker", call.arguments)

    def _prepare(self, compiled: Compiled) -> PreparedProgram:
        if not hasattr(compiled, "platform"):
            raise TypeError(
                f"a ChipWorker launches compiled programs, got {type(compiled).__name__}; "
                "make one with kernel.compile(...) or ir.compile(kernel.lower(...))"
            )
        if compiled.platform != self.platform:
            raise ValueError(
                f"{compiled} was compiled for platform {compiled.platform!r}, this ChipWorker is bound to "
                f"{self.platform!r}; open one with RunConfig(platform={compiled.platform!r})"
            )
        prepared = prepare(compiled)
        self._check_callable(prepared.chip_callable)
        return prepared

    def _check_callable(self, chip_callable: ChipCallable) -> None:
        if chip_callable.runtime_name != self.runtime:
            raise ValueError(
                f"{chip_callable.name} was compiled for runtime {chip_callable.runtime_name!r}, "
                f"this ChipWorker has {self.runtime!r}"
            )
        if chip_callable.enable_sdma:
            self._check_sdma(chip_callable.name)

    def _check_sdma(self, name: str) -> None:
        if not self.enable_sdma:
            raise RuntimeError(f"{name} needs SDMA, but the active ChipWorker was created without enable_sdma=True")

    def _load(self, chip_callable: ChipCallable) -> int:
        """The number of ``chip_callable`` on the device; the worker keeps it alive."""
        self._callables.setdefault(chip_callable.digest, chip_callable)
        return self._open_device("register").register(chip_callable)

    # --- memory --------------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Address of ``nbytes`` new bytes of device memory; their contents are undefined."""
        return self._memory("malloc", worker_id).malloc(nbytes).base

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Free the allocation that starts at ``ptr``."""
        self._memory("free", worker_id).free(ptr)

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy ``nbytes`` from host memory to the start of a device allocation."""
        device = self._device_of("copy_to", worker_id)
        device.memory.copy_to(dst_dev_ptr, src_host_ptr, nbytes)
        device.clock.advance(device.host.upload_ns(nbytes))

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy ``nbytes`` from the start of a device allocation to host memory."""
        device = self._device_of("copy_from", worker_id)
        device.memory.copy_from(dst_host_ptr, src_dev_ptr, nbytes)
        device.clock.advance(device.host.download_ns(nbytes))

    def _device_of(self, operation: str, worker_id: int) -> ChipDevice:
        device = self._open_device(operation)
        if worker_id != 0:
            raise ValueError(f"ChipWorker.{operation} only supports worker_id=0, got {worker_id!r}")
        return device

    def _memory(self, operation: str, worker_id: int) -> Any:
        return self._device_of(operation, worker_id).memory

    def _buffer_for_ptr(self, ptr: int, *, worker_id: int = 0) -> Allocation:
        return self._memory("alloc_tensor", worker_id).at(ptr)

    def _require_ready(self, operation: str) -> None:
        self._open_device(operation)

    def _open_device(self, operation: str) -> ChipDevice:
        if self._device is None:
            raise RuntimeError(
                f"ChipWorker.{operation} requires an initialized ChipWorker; call worker.init() or use `with worker:`"
            )
        return self._device
