"""Tensors of a worker with a shard on each of several chips (spec distributed 3.6)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.stacked_device_tensor import StackedDeviceTensor
from pypto.runtime.worker_base import Worker

if TYPE_CHECKING:
    import torch


class StackedMemory(Worker):
    """A worker whose chips hold the shards of stacked tensors."""

    @property
    @abstractmethod
    def world_size(self) -> int:
        """Number of chips."""

    def alloc_stacked_tensor(
        self, host: torch.Tensor, *, worker_ids: Sequence[int] | None = None
    ) -> StackedDeviceTensor:
        """Upload ``host[i]`` to worker ``worker_ids[i]`` (default ``i``)."""
        self._require_ready("alloc_stacked_tensor")
        source = host_tensor("host", host)
        if source.dim() < 2:
            raise ValueError(f"a stacked tensor needs rank >= 2, got shape {tuple(source.shape)}")
        count = source.shape[0]
        if count < 1:
            raise ValueError(f"a stacked tensor needs at least one shard, got shape {tuple(source.shape)}")
        if worker_ids is None and count > self.world_size:
            raise ValueError(
                f"a stack of shape {tuple(source.shape)} has {count} shards, one per worker, "
                f"and there are {self.world_size} workers: worker {self.world_size} is out of range"
            )
        ids = list(range(count)) if worker_ids is None else list(worker_ids)
        if any(isinstance(i, bool) or not isinstance(i, int) for i in ids):
            raise TypeError(f"worker_ids must be integers, got {ids}")
        if len(ids) != count:
            raise ValueError(f"worker_ids needs {count} entries, one per shard, got {len(ids)}: {ids}")
        if len(set(ids)) != count:
            raise ValueError(f"worker_ids must be distinct, got {ids}")
        outside = [w for w in ids if not 0 <= w < self.world_size]
        if outside:
            raise ValueError(f"worker_ids {outside} are out of range: there are {self.world_size} workers")
        shards: list[DeviceTensor] = []
        try:
            for index, worker in enumerate(ids):
                shards.append(self.alloc_tensor(source.shape[1:], source.dtype, init=source[index], worker_id=worker))
        except BaseException:
            for shard, worker in zip(shards, ids):
                self.free_tensor(shard, worker_id=worker)
            raise
        return StackedDeviceTensor(tuple(shards), tuple(source.shape), tuple(ids))

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Free every shard."""
        self._need_stack(stacked)
        for shard, worker in zip(stacked.shards, stacked.worker_ids):
            self.free_tensor(shard, worker_id=worker)

    def copy_stacked_from(self, stacked: StackedDeviceTensor, host: torch.Tensor) -> None:
        """Read every shard back into ``host[i]``."""
        self._need_stack(stacked)
        target = host_tensor("host", host)
        if tuple(target.shape) != stacked.full_shape:
            raise ValueError(
                f"host of shape {tuple(target.shape)} does not match stacked full_shape {stacked.full_shape}"
            )
        if target.dtype != stacked.dtype:
            raise ValueError(f"host of dtype {target.dtype} does not match stacked dtype {stacked.dtype}")
        for index, (shard, worker) in enumerate(zip(stacked.shards, stacked.worker_ids)):
            self.copy_from(target[index].data_ptr(), shard.data_ptr, shard.nbytes, worker_id=worker)

    def _need_stack(self, stacked: Any) -> None:
        if not isinstance(stacked, StackedDeviceTensor):
            raise TypeError(f"expects a StackedDeviceTensor, got {type(stacked).__name__}")


def host_tensor(name: str, value: Any) -> torch.Tensor:
    """``value`` as it is, a contiguous CPU tensor.

    Raises:
        TypeError: it is no torch tensor.
        ValueError: it has gaps or lies on another device.
    """
    import torch

    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if value.device.type != "cpu" or not value.is_contiguous():
        raise ValueError(
            f"{name} must be a contiguous CPU tensor, got shape {tuple(value.shape)}, "
            f"strides {value.stride()} on {value.device}"
        )
    return value
