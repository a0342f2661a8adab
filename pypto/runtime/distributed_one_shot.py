"""Calling a distributed program without a worker: one is opened for the call (spec distributed 3.2)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto.runtime.arguments import Slot, make_slot
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.distributed_worker import DistributedWorker
from pypto.runtime.stacked_device_tensor import StackedDeviceTensor
from pypto.runtime.torch_dtypes import to_torch_dtype

if TYPE_CHECKING:
    import torch

    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram


def execute_distributed(compiled: DistributedCompiledProgram, args: Sequence[Any], config: Any = None) -> Any:
    """Run ``compiled`` in place, or return-style without its outputs; host tensors are moved to shared memory."""
    slots = tuple(make_slot(i, p) for i, p in enumerate(compiled.param_infos))
    required = [s.name for s in compiled.sub_workers if s.required]
    if required:
        raise ValueError(
            f"sub-workers {required} have no body; a one-shot call cannot take callbacks, use prepare(callbacks=...)"
        )
    values, returned = _complete(compiled, slots, list(args))
    for slot, value in zip(slots, values):
        if slot.is_tensor:
            _share(slot, value)
    with DistributedWorker(compiled, config) as worker:
        worker(*values, config=config)
    if not returned:
        return None
    results = tuple(values[i] for i in returned)
    return results[0] if len(results) == 1 else results


def _complete(
    compiled: DistributedCompiledProgram, slots: tuple[Slot, ...], args: list[Any]
) -> tuple[list[Any], tuple[int, ...]]:
    outputs = compiled.output_indices
    if len(args) == len(slots):
        return args, ()
    if not compiled.has_return or len(args) != len(slots) - len(outputs):
        either = f" in-place or {len(slots) - len(outputs)} for return style" if compiled.has_return else " in-place"
        raise TypeError(f"{compiled.__name__} expects {len(slots)} arguments{either}, got {len(args)}")
    given = iter(args)
    return [_output(s) if s.position in outputs else next(given) for s in slots], tuple(outputs)


def _output(slot: Slot) -> Any:
    import torch

    if slot.shape is None or -1 in slot.shape:
        raise ValueError(f"{slot.place} has dynamic dimensions {slot.shape}: its shape is unknown, pass all tensors")
    return torch.zeros(slot.shape, dtype=to_torch_dtype(slot.dtype))


def _share(slot: Slot, value: Any) -> None:
    import torch

    for kind, maker in ((DeviceTensor, "alloc_tensor"), (StackedDeviceTensor, "alloc_stacked_tensor")):
        if isinstance(value, kind):
            raise TypeError(
                f"{slot.place} is a {kind.__name__}, which belongs to a prepared worker: "
                f"use compiled.prepare() and worker.{maker}"
            )
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{slot.place}: one-shot calls only support host torch.Tensor, got {type(value).__name__}")
    try:
        value.share_memory_()
    except RuntimeError as error:
        raise MemoryError(_no_room(slot, value)) from error


def _no_room(slot: Slot, value: torch.Tensor) -> str:
    """Host tensors are shared through files of this file system."""
    room = shutil.disk_usage("/dev/shm")
    return (
        f"{slot.place} cannot be moved to shared memory: it has {value.untyped_storage().nbytes()} bytes, "
        f"/dev/shm has {room.free} of {room.total} bytes free\n"
        f"make room there (df /dev/shm), or keep large tensors on the ranks with prepare() and alloc_tensor()"
    )
