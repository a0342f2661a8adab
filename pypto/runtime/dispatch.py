"""Calling a compiled program: on the worker open around the call, else on one made for the call (spec runtime 10.5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pypto.backend.platforms import find_platform
from pypto.runtime import active_workers
from pypto.runtime.active_workers import Binding
from pypto.runtime.arguments import Parameter, Signature
from pypto.runtime.call_config import CallConfig, make_call_config
from pypto.runtime.callable import ChipCallable, assemble
from pypto.runtime.chip_device import ChipDevice
from pypto.runtime.operands import pack
from pypto.runtime.prepared import PreparedProgram
from pypto.runtime.rank_checks import effective
from pypto.runtime.run_config import DUMP_MAX_LEVEL, RunConfig
from pypto.runtime.text_signature import text_signature
from pypto.sim.checks.selection import Checks

if TYPE_CHECKING:
    from pypto.runtime.worker import ChipWorker

LEVEL: Final = 2
ONE_SHOT_OWNER: Final = "call, which runs on a one-shot or raw simpler Worker as no ChipWorker with its binding is open"


class Compiled(Protocol):
    """A compiled program of one chip, as :mod:`pypto.ir` makes it."""

    @property
    def output_dir(self) -> Any: ...
    @property
    def platform(self) -> str: ...
    @property
    def param_infos(self) -> Sequence[Parameter]: ...
    @property
    def output_indices(self) -> Sequence[int]: ...
    @property
    def has_return(self) -> bool: ...
    @property
    def chip_callable(self) -> ChipCallable: ...


def prepare(compiled: Compiled, platform: str | None = None) -> PreparedProgram:
    """Assemble ``compiled`` (for ``platform`` instead of its own, when given) beside its signature."""
    if platform is None or platform == compiled.platform:
        chip_callable = compiled.chip_callable
    else:
        chip_callable = assemble(compiled.output_dir, platform)
    stand_ins = getattr(compiled, "_stand_ins", {})
    signature = Signature(compiled, chip_callable.name, chip_callable.written)
    return PreparedProgram(signature, chip_callable, None, stand_ins, getattr(compiled, "last_findings", []))


def prepare_directory(build_dir: str | Path, platform: str) -> PreparedProgram:
    """Assemble a build directory for ``platform``; its signature is that of the orchestration text."""
    chip_callable = assemble(build_dir, platform)
    return PreparedProgram(text_signature(chip_callable), chip_callable)


def dispatch(compiled: Compiled, args: Sequence[Any], config: RunConfig | None = None) -> Any:
    """Launch ``compiled`` with ``args``: in place, or return-style without the ``Out`` tensors.

    ``TypeError`` and ``ValueError`` name a wrong argument before anything runs. Without ``config`` the program runs on
    the platform it was compiled for, device 0.
    """
    config = effective(config, compiled) or RunConfig(platform=compiled.platform)
    check_config(config)
    prepared = prepare(compiled, config.platform)
    return dispatch_prepared(prepared, args, config)


def dispatch_prepared(prepared: PreparedProgram, args: Sequence[Any], config: RunConfig) -> Any:
    """Launch on the open worker bound to the platform and device of ``config``, else on a device of its own."""
    chip_callable = prepared.chip_callable
    worker = active_workers.find(Binding(LEVEL, config.platform, config.device_id, chip_callable.runtime_name))
    if worker is not None:
        return worker.dispatch(prepared, args, config)
    device = ChipDevice(find_platform(config.platform), config.device_id, chip_callable.runtime_name)
    try:
        return prepared.launch(device, ONE_SHOT_OWNER, args, config)
    finally:
        device.close()


def build_orch_args(compiled: Compiled, args: Sequence[Any], worker: ChipWorker) -> tuple[list[Any], list[Any], bool]:
    """Check ``args`` for a launch on ``worker``: (what the machine takes, checked arguments, return style).

    The first list refers to the memory of the second, which must outlive it.
    """
    from pypto.runtime.worker import ChipWorker

    if not isinstance(worker, ChipWorker):
        raise TypeError(f"worker must be a ChipWorker, got {type(worker).__name__}")
    prepared = prepare(compiled, worker.platform)
    call = prepared.signature.bind(args)
    worker.check_residency(prepared, call)
    return pack(prepared.signature.slots, call.arguments), list(call.arguments), call.returned is not None


def build_call_config(
    compiled: Compiled,
    config: RunConfig | None = None,
    *,
    aicpu_thread_num: int | None = None,
    dfx_dir: str | Path | None = None,
) -> CallConfig:
    """The options of one launch of ``compiled`` as a plain record."""
    config = RunConfig() if config is None else config
    threads = compiled.chip_callable.runtime_config.get("aicpu_thread_num", 0)
    return make_call_config(config, threads, aicpu_thread_num=aicpu_thread_num, dfx_dir=dfx_dir)


def check_config(config: object) -> None:
    """``TypeError`` unless ``config`` is a :class:`RunConfig`, ``ValueError`` for what no launch can do."""
    if not isinstance(config, RunConfig):
        raise TypeError(f"config must be a RunConfig, got {type(config).__name__} {config!r}")
    Checks.of(config.checks)
    if not 0 <= config.enable_dump_args <= DUMP_MAX_LEVEL:
        raise ValueError(
            f"enable_dump_args must be 0 (off), 1 (marked tensors), 2 (all) or {DUMP_MAX_LEVEL} (all, but contents of "
            f"marked tensors only), got {config.enable_dump_args}"
        )
    if config.jitter_seed is not None:
        raise ValueError(
            f"jitter_seed={config.jitter_seed}: the clock has no random part, equal launches take equal times; "
            "leave it None and compare variants by one launch each"
        )
