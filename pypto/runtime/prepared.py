"""A program ready to launch: its signature and its callable, with the last checks before a device runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pypto.runtime.arguments import Argument, Signature
from pypto.runtime.callable import ChipCallable
from pypto.runtime.chip_device import ChipDevice
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.launch import launch
from pypto.runtime.placement import placement_error
from pypto.runtime.run_config import RunConfig
from pypto.sim.checks.findings import CheckError, PlacementError

DFX_FOLDER: Final = "dfx_outputs"


@dataclass(frozen=True)
class PreparedProgram:
    """``signature`` checks a call, ``chip_callable`` runs it, ``diagnostics`` is where its diagnostics go.

    ``stand_ins`` are Python functions for the hand-written C++ kernels of the program by name. ``findings`` is the list
    that holds what the checks of the last launch found.
    """

    signature: Signature
    chip_callable: ChipCallable
    diagnostics: Path | None = None
    stand_ins: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    findings: list[Any] = field(default_factory=list)

    def launch(self, device: ChipDevice, owner: str, args: Sequence[Any], config: RunConfig) -> Any:
        """Check ``args`` against the signature and ``device``, run once, return what the call returns.

        ``owner`` says in errors whose device it is.
        """
        call = self.signature.bind(args)
        self.check_residency(device, owner, call.arguments)
        self.findings.clear()
        try:
            launched = launch(device, self.chip_callable, self.signature.slots, call.arguments, config, self.stand_ins)
        except CheckError as error:
            self.findings.extend(error.findings)
            raise
        self.findings.extend(launched.findings)
        if config.any_dfx_enabled():
            from pypto.runtime.dfx import write_diagnostics

            write_diagnostics(launched, self.chip_callable, config, self.dfx_folder)
        return call.result()

    @property
    def dfx_folder(self) -> Path:
        """Where the diagnostics of a launch go: ``dfx_outputs`` of the build directory unless said otherwise."""
        return self.diagnostics or self.chip_callable.build_dir / DFX_FOLDER

    def check_residency(self, device: ChipDevice, owner: str, arguments: Sequence[Argument]) -> None:
        """Every resident argument must be a live allocation of ``device``."""
        for slot, value in zip(self.signature.slots, arguments):
            if isinstance(value, DeviceTensor):
                problem = _handle_problem(value)
                if problem:
                    raise ValueError(f"At position {slot.position}: '{slot.name}' {problem}")
                if not device.memory.owns(value.buffer):
                    raise _elsewhere(device, owner, slot.position, slot.name, value)


def _handle_problem(tensor: DeviceTensor) -> str:
    if tensor.buffer is None:
        return (
            f"is a raw-pointer DeviceTensor (data_ptr {tensor.data_ptr:#x}) that no worker allocated; "
            "make it with worker.alloc_tensor"
        )
    if tensor.nbytes > tensor.buffer.nbytes:
        return f"needs {tensor.nbytes} bytes, more than the {tensor.buffer.nbytes} bytes of its allocation"
    return ""


def _elsewhere(device: ChipDevice, owner: str, position: int, name: str, tensor: DeviceTensor) -> PlacementError:
    """The tensor is no live allocation of ``device``."""
    there = getattr(tensor.buffer, "owner", "") or "another worker"
    if not getattr(tensor.buffer, "live", True):
        what = f"{there} freed it"
        repair = f"launch before free_tensor and before the worker closes, or make '{name}' again with alloc_tensor"
    else:
        what = f"it lives on {there}, and {device.memory.owner} runs the program"
        repair = f"launch on {there}, whose alloc_tensor made '{name}', or alloc_tensor a copy on {device.memory.owner}"
    message = f"At position {position}: '{name}' is not a live allocation owned by this {owner}: {what}"
    return placement_error(message, name, repair)
