"""A tensor whose leading axis is spread over several chips (spec runtime 10.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pypto.runtime.device_tensor import DeviceTensor

if TYPE_CHECKING:
    import torch

_WHOLE = slice(None)


@dataclass(frozen=True)
class StackedDeviceTensor:
    """``shards[i]`` holds row ``i`` of a tensor of shape ``full_shape`` on worker ``worker_ids[i]``."""

    shards: tuple[DeviceTensor, ...]
    full_shape: tuple[int, ...]
    worker_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("shards", "full_shape", "worker_ids"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check_counts()
        self._check_shards()

    def _check_counts(self) -> None:
        if len(self.full_shape) < 2:
            raise ValueError(f"a stacked tensor needs rank >= 2, got shape {self.full_shape}")
        count = self.full_shape[0]
        if count < 1:
            raise ValueError(f"a stacked tensor needs at least one shard, got shape {self.full_shape}")
        if len(self.shards) != count:
            raise ValueError(f"shape {self.full_shape} needs {count} shards, got {len(self.shards)}")
        if len(self.worker_ids) != count:
            raise ValueError(f"shape {self.full_shape} needs {count} worker_ids, got {len(self.worker_ids)}")
        if len(set(self.worker_ids)) != count:
            raise ValueError(f"worker_ids must be distinct, got {list(self.worker_ids)}")

    def _check_shards(self) -> None:
        tail = self.full_shape[1:]
        for i, shard in enumerate(self.shards):
            if not isinstance(shard, DeviceTensor):
                raise TypeError(f"shard {i} must be a DeviceTensor, got {type(shard).__name__}")
            if shard.shape != tail:
                raise ValueError(f"shard {i} has shape {shard.shape}, the per-shard shape is {tail}")
            if shard.dtype != self.shards[0].dtype:
                raise ValueError(f"shard {i} has dtype {shard.dtype}, shard 0 has {self.shards[0].dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.full_shape

    @property
    def dtype(self) -> torch.dtype:
        return self.shards[0].dtype

    def __getitem__(self, index: Any) -> DeviceTensor:
        """``x[i]`` (or ``x[i, ...]``, ``x[i, :, :]``): the shard of row ``i``; a part of a shard is not addressable."""
        leading, *rest = index if isinstance(index, tuple) else (index,)
        if not isinstance(leading, int) or isinstance(leading, bool):
            raise TypeError(f"the leading index of a stacked tensor must be an int, got {leading!r}")
        if not 0 <= leading < len(self.shards):
            raise IndexError(f"shard {leading} is out of range: there are {len(self.shards)}")
        self._check_tail(rest)
        return self.shards[leading]

    def _axes(self, rest: Sequence[Any]) -> list[int]:
        """The axis that each part of an index is about; what an Ellipsis stands for is left out."""
        at = next((i for i, part in enumerate(rest) if part is Ellipsis), len(rest))
        behind = len(rest) - at - 1
        return [i + 1 if i <= at else len(self.full_shape) - behind + i - at - 1 for i in range(len(rest))]

    def _is_whole(self, part: Any, axis: int) -> bool:
        """``...``, ``:`` and slices over a whole axis."""
        if part is Ellipsis or part == _WHOLE:
            return True
        extent = self.full_shape[axis]
        return isinstance(part, slice) and part.step in (None, 1) and _bounds(part, extent) == (0, extent)

    def _check_tail(self, rest: Sequence[Any]) -> None:
        ellipses = sum(part is Ellipsis for part in rest)
        if ellipses > 1:
            raise IndexError(f"at most one Ellipsis may index a stacked tensor, got {ellipses}")
        if len(rest) - ellipses > len(self.full_shape) - 1:
            raise IndexError(f"too many indices: {1 + len(rest) - ellipses} for rank {len(self.full_shape)}")
        if not all(self._is_whole(part, axis) for part, axis in zip(rest, self._axes(rest))):
            raise ValueError(f"only whole-shard access is possible after the leading index, got {list(rest)}")


def _bounds(part: slice, extent: int) -> tuple[Any, Any]:
    """First and last + 1 as written; ``None`` is the end of the axis."""
    return (0 if part.start is None else part.start, extent if part.stop is None else part.stop)
