"""What workers of one chip and of several have in common: device memory and the tensors in it (spec runtime 10.1)."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto.runtime.device_tensor import DeviceTensor, check_dtype, checked_shape

if TYPE_CHECKING:
    import torch

    from pypto.runtime.registration import RegistrationHandle

# The name scripts filter on (spec runtime 10.7).
_log = logging.getLogger("pypto.runtime.runtime_base")


class Worker(ABC):
    """An opened device, or several, that launches programs and owns device memory."""

    def __init__(self) -> None:
        self._owned_tensors: dict[tuple[int, int], DeviceTensor] = {}

    @abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Address of ``nbytes`` new bytes."""

    @abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Free the allocation that starts at ``ptr``."""

    @abstractmethod
    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Host memory to device memory."""

    @abstractmethod
    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Device memory to host memory."""

    @abstractmethod
    def run(self, compiled: Any, *args: Any, config: Any = None) -> Any:
        """Launch ``compiled`` once."""

    @abstractmethod
    def register(self, compiled: Any) -> RegistrationHandle:
        """Load ``compiled`` now and return a handle that launches it."""

    @abstractmethod
    def close(self) -> None:
        """Free everything; nothing can be launched afterwards."""

    @abstractmethod
    def _require_ready(self, operation: str) -> None:
        """Raise ``RuntimeError`` when ``operation`` cannot be done now."""

    @abstractmethod
    def _buffer_for_ptr(self, ptr: int, *, worker_id: int = 0) -> Any:
        """The allocation that starts at ``ptr``."""

    def _prepare_init(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor`` as a contiguous CPU tensor to upload."""
        return tensor.detach().cpu().contiguous()

    def alloc_tensor(
        self, shape: Sequence[int], dtype: torch.dtype, *, init: torch.Tensor | None = None, worker_id: int = 0
    ) -> DeviceTensor:
        """A resident tensor, with the contents of ``init`` (equal shape and dtype) or undefined ones.

        Free it with :meth:`free_tensor`; whatever is left is freed by :meth:`close`.
        """
        self._require_ready("alloc_tensor")
        extents = checked_shape(shape)
        check_dtype(dtype)
        pointer = self.malloc(math.prod(extents) * dtype.itemsize, worker_id=worker_id)
        try:
            buffer = self._buffer_for_ptr(pointer, worker_id=worker_id)
            tensor = DeviceTensor(pointer, extents, dtype, buffer=buffer)
            if init is not None:
                self._upload(tensor, init, worker_id)
        except BaseException:
            self.free(pointer, worker_id=worker_id)
            raise
        self._owned_tensors[worker_id, pointer] = tensor
        return tensor

    def _upload(self, tensor: DeviceTensor, init: torch.Tensor, worker_id: int) -> None:
        if tuple(init.shape) != tensor.shape or init.dtype != tensor.dtype:
            raise ValueError(
                f"init must have shape {tensor.shape} and dtype {tensor.dtype}, "
                f"got {tuple(init.shape)} and {init.dtype}"
            )
        source = self._prepare_init(init)
        self.copy_to(tensor.data_ptr, source.data_ptr(), tensor.nbytes, worker_id=worker_id)

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Free a tensor of :meth:`alloc_tensor`; nothing happens when it was freed already."""
        if not isinstance(tensor, DeviceTensor):
            raise TypeError(f"free_tensor takes a DeviceTensor of alloc_tensor, got {type(tensor).__name__}")
        owned = self._owned_tensors.get((worker_id, tensor.data_ptr))
        if owned is None:
            others = [w for w, pointer in self._owned_tensors if pointer == tensor.data_ptr]
            if others:
                raise ValueError(f"worker_id {worker_id} does not match the owning worker {others[0]} of {tensor}")
            return
        if owned is not tensor and owned.buffer is not tensor.buffer:
            raise ValueError(f"stale DeviceTensor: {tensor} was freed and its address now belongs to {owned}")
        self.free(tensor.data_ptr, worker_id=worker_id)
        del self._owned_tensors[worker_id, tensor.data_ptr]

    def _close_owned_tensors(self) -> None:
        """Free what :meth:`free_tensor` was not called for."""
        for (worker_id, pointer), tensor in list(self._owned_tensors.items()):
            try:
                self.free(pointer, worker_id=worker_id)
            except Exception as error:  # one bad free must not keep the others from being freed
                _log.warning("leaking %r: %s", tensor, error)
            del self._owned_tensors[worker_id, pointer]
