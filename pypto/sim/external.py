"""Python stand-ins for hand-written C++ kernels, which cannot run on the simulated chip."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from pypto.ir.dtype import FP16, DataType
from pypto.sim import layout
from pypto.sim.emitter import word_float
from pypto.sim.faults import ExecutionError
from pypto.sim.memory import memory_view
from pypto.sim.recording import Words
from pypto.sim.tile_program import Submit

StandIn = Callable[..., Any]


def call_stand_in(function: StandIn, request: Submit, frame: Words) -> None:
    """Call ``function`` with the arguments of ``request``: NumPy views of the tensors, Python numbers for scalars.

    It writes its results into the views. ``bfloat16`` tensors are seen as ``uint16`` words, 8-bit floats and packed
    4-bit elements as bytes. What it returns is ignored.
    """
    arguments: list[Any] = []
    for position, (is_tensor, offset) in enumerate(request.arguments):
        if is_tensor:
            arguments.append(tensor_view(frame[offset : offset + layout.TENSOR_WORDS]))
        else:
            word = int(frame[offset])
            arguments.append(word_float(word) if position in request.floats else word)
    _check_takes(function, request.kernel, len(arguments))
    function(*arguments)


def _check_takes(function: StandIn, kernel: str, count: int) -> None:
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:
        return  # a built-in function that does not tell its parameters
    except TypeError as e:
        raise ExecutionError(
            f"the stand-in of C++ kernel '{kernel}' gets {count} arguments, one per parameter of the kernel: {e}"
        ) from e


def tensor_view(words: Words) -> NDArray[Any]:
    """A NumPy view of the tensor with descriptor ``words``; a packed 4-bit tensor is a flat array of bytes."""
    dtype = DataType.from_code(int(words[layout.TENSOR_DTYPE]))
    rank, address = int(words[layout.TENSOR_RANK]), int(words[layout.TENSOR_ADDRESS])
    extents = words[layout.TENSOR_EXTENTS : layout.TENSOR_EXTENTS + rank].tolist()
    strides = words[layout.TENSOR_STRIDES : layout.TENSOR_STRIDES + rank].tolist()
    if 0 in extents:
        return np.zeros(extents, _numpy(dtype))
    last = sum((extent - 1) * stride for extent, stride in zip(extents, strides))
    if dtype.get_bit() == 4:
        return memory_view(address, last // 2 + 1)
    size = dtype.get_byte()
    flat = memory_view(address, (last + 1) * size).view(_numpy(dtype))
    return as_strided(flat, extents, [stride * size for stride in strides])


def _numpy(dtype: DataType) -> np.dtype[Any]:
    return np.dtype(np.float16) if dtype == FP16 else np.dtype(dtype.storage)
