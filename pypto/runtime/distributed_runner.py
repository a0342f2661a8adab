"""Python sub-workers in their own processes: tensors arrive as views of shared memory (spec distributed 1.10)."""

from __future__ import annotations

import ctypes
import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.runtime.distributed_programs import SubWorker
from pypto.runtime.ranks import STOP
from pypto.runtime.ranks_protocol import Done, Failed, TensorWords
from pypto.runtime.torch_dtypes import to_torch_dtype

if TYPE_CHECKING:
    import torch

READY = ("ready",)
_HOME = {
    "DistributedWorker": "pypto.runtime.distributed_worker",
    "execute_distributed": "pypto.runtime.distributed_one_shot",
    "execute_distributed_compiled": "pypto.ir.distributed_compiled_program",
}
"""Names that scripts import from here (spec runtime 2); the processes of sub-workers do not load their modules."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


@dataclass(frozen=True)
class SubCall:
    """One call of a sub-worker."""

    number: int
    name: str
    arguments: tuple[TensorWords | int | float, ...]


def _tensor_from_continuous(tensor: TensorWords) -> torch.Tensor:
    """A torch view of a mapped tensor argument: what is written to it, all processes see."""
    import torch

    dtype = DataType.from_code(tensor.dtype)
    element = to_torch_dtype(dtype)
    if element is None:
        raise TypeError(f"torch has no dtype for {dtype}")
    count = math.prod(tensor.shape)
    if count == 0:
        return torch.empty(tensor.shape, dtype=element)
    raw = (ctypes.c_uint8 * (count * dtype.get_byte())).from_address(tensor.address)
    return torch.frombuffer(raw, dtype=element, count=count).view(tensor.shape)


def serve(sub_workers: Mapping[str, SubWorker], connection: Connection) -> None:
    """The loop of a sub-worker process."""
    import torch

    torch.set_num_threads(1)  # thread pools do not survive a fork
    connection.send(READY)
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        if message == STOP:
            return
        connection.send(_call(sub_workers[message.name], message))


def _call(worker: SubWorker, call: SubCall) -> Any:
    try:
        if worker.is_callback:
            worker.function(call.arguments)
        else:
            worker.function(*[_tensor_from_continuous(a) if isinstance(a, TensorWords) else a for a in call.arguments])
    except Exception as error:  # the body is the user's
        return Failed(call.number, type(error).__name__, str(error), traceback.format_exc())
    return Done(call.number)
