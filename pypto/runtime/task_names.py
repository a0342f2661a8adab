"""Names of the callables assembled in this process, by the identity their markers carry (spec profiling 1.8)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FNV_OFFSET: Final = 0xCBF29CE484222325
FNV_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1

_names: dict[str, str] = {}
_places: dict[str, str] = {}


def fnv1a_64(data: bytes) -> int:
    """The 64-bit FNV-1a hash of ``data``."""
    value = FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * FNV_PRIME & _MASK
    return value


def hid_of(orchestration: bytes) -> str:
    """Identity of an orchestration artifact: its content hash as lower-case hex without padding."""
    return f"{fnv1a_64(orchestration):x}"


def remember(hid: str, name: str) -> None:
    """Note that ``hid`` is called ``name``; the first name stays."""
    _names.setdefault(hid.lower(), name)


def task_names() -> Mapping[str, str]:
    """``hid`` → name of every callable assembled so far."""
    return MappingProxyType(_names)


def remember_places(names: Mapping[str, str]) -> None:
    """Note the chip programs of the ranks just started, which carry their place as identity without a device clock."""
    _places.clear()
    _places.update(names)


def rank_task_names() -> Mapping[str, str]:
    """As :func:`task_names`, with the places of the ranks started last; on one chip those numbers mean nothing."""
    return {**_names, **_places}
