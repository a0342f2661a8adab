"""Which host memory the ranks can see: what was mapped and shared when they were forked (spec distributed 3.5)."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch

_LINE: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ...(.) [0-9a-f]+ (\S+) (\d+)")
_RULE: Final = "must be shared memory allocated BEFORE prepare()"


@dataclass(frozen=True)
class _Mapping:
    first: int
    last: int
    shared: bool
    file: tuple[str, str]


class InheritedMemory:
    """The mappings at the time of the fork; tensors that were checked are kept alive, so that they stay valid."""

    def __init__(self, tensors: Sequence[torch.Tensor]):
        for number, tensor in enumerate(tensors):
            _check_inherited(number, tensor)
        self._mappings = _mappings()
        self._starts = [m.first for m in self._mappings]
        self._kept: dict[tuple[int, int], Any] = {(t.data_ptr(), t.nbytes): t for t in tensors if t.is_shared()}

    def check(self, place: str, tensor: Any) -> None:
        """``TypeError`` unless the ranks see the memory of ``tensor``."""
        if tensor.device.type != "cpu" or not tensor.is_shared():
            raise TypeError(
                f"{place} {_RULE}: call .share_memory_() on it before the worker is opened, and reuse it in place"
            )
        key = (tensor.data_ptr(), tensor.nbytes)
        if key in self._kept or tensor.nbytes == 0:
            return
        now = _find(_mappings(), None, key[0])
        then = _find(self._mappings, self._starts, key[0])
        if now is None or then is None or now.file != then.file or not then.shared or key[0] + key[1] > then.last:
            raise TypeError(
                f"{place} {_RULE}: it was shared after the ranks were started, which cannot see it; "
                f"call .share_memory_() "
                "before the worker is opened"
            )
        self._kept[key] = tensor.untyped_storage()

    def release(self) -> None:
        """Let go of the tensors."""
        self._kept.clear()


def _check_inherited(number: int, tensor: Any) -> None:
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"inherited_host_tensors[{number}] must be a torch.Tensor, got {type(tensor).__name__}")
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        raise ValueError(f"inherited_host_tensors[{number}] must be a contiguous CPU tensor")


def _mappings() -> list[_Mapping]:
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        match = _LINE.match(line)
        if match:
            first, last, mode, device, inode = match.groups()
            found.append(_Mapping(int(first, 16), int(last, 16), mode == "s", (device, inode)))
    return found


def _find(mappings: list[_Mapping], starts: list[int] | None, address: int) -> _Mapping | None:
    at = bisect.bisect(starts if starts is not None else [m.first for m in mappings], address) - 1
    return mappings[at] if at >= 0 and address < mappings[at].last else None
