"""What a caller hands to a program of several chips, checked and bound (spec distributed 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pypto.runtime.arguments import Slot
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.distributed_host import fits, host_argument
from pypto.runtime.distributed_inherited import InheritedMemory
from pypto.runtime.distributed_memory import CardMemory
from pypto.runtime.distributed_programs import HostProgram
from pypto.runtime.placement import placement_error
from pypto.runtime.stacked_device_tensor import StackedDeviceTensor

_WHERE: Final = "DistributedWorker"


class HostArguments:
    """Binds arguments to memory that the chips of one worker can reach."""

    def __init__(self, cards: Sequence[CardMemory], inherited: InheritedMemory) -> None:
        self._cards = cards
        self._inherited = inherited

    def bind(self, program: HostProgram, args: Sequence[Any]) -> list[Any]:
        slots = program.slots
        if len(args) != len(slots):
            names = ", ".join(s.name for s in slots)
            raise TypeError(f"{program.compiled.__name__} expects {len(slots)} arguments ({names}), got {len(args)}")
        return [self._bound(slot, value) for slot, value in zip(slots, args)]

    def _bound(self, slot: Slot, value: Any) -> Any:
        if not slot.is_tensor:
            return slot.checked(value)
        if isinstance(value, StackedDeviceTensor):
            for index, shard in enumerate(value.shards):
                self._check_resident(f"{slot.place}, shard {index}", shard, value.worker_ids[index])
        elif isinstance(value, DeviceTensor):
            self._check_resident(slot.place, value, None)
        elif hasattr(value, "data_ptr"):
            self._inherited.check(slot.place, value)
        else:
            raise TypeError(
                f"{slot.place} expects a shared torch.Tensor, a DeviceTensor or a StackedDeviceTensor, "
                f"got {type(value).__name__}"
            )
        self._check_type(slot, value)
        return host_argument(slot.name, value, slot.dtype, self._owner)

    @staticmethod
    def _check_type(slot: Slot, value: Any) -> None:
        shape = tuple(value.shape)
        wanted = slot.shape
        if wanted is not None and (len(shape) != len(wanted) or any(w not in (-1, h) for w, h in zip(wanted, shape))):
            raise TypeError(f"{slot.place} expects shape {wanted}, got {shape}")
        if not fits(slot.dtype, value):
            raise TypeError(f"{slot.place} expects dtype {slot.torch_dtypes[0]} ({slot.dtype}), got {value.dtype}")
        if hasattr(value, "is_contiguous") and not value.is_contiguous():
            raise ValueError(f"{slot.place} is not contiguous: shape {shape}, strides {value.stride()}")

    def _check_resident(self, place: str, tensor: DeviceTensor, worker: int | None) -> None:
        if tensor.buffer is None:
            raise TypeError(f"{place}: a raw-pointer DeviceTensor cannot be dispatched; allocate it with alloc_tensor")
        owners = range(len(self._cards)) if worker is None else [worker]
        if not any(0 <= w < len(self._cards) and self._cards[w].owns(tensor.buffer) for w in owners):
            raise placement_error(
                f"{place} is not a live allocation owned by this {_WHERE}: it was freed, or another worker made it",
                place,
                "launch on the worker whose alloc_tensor or alloc_stacked_tensor made it, before it is freed",
            )

    def _owner(self, tensor: DeviceTensor) -> int:
        return next(rank for rank, card in enumerate(self._cards) if card.owns(tensor.buffer))
