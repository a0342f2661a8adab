"""Bank clashes of the a2a3 unified buffer (spec hardware 2.2, 6.2), from the addresses of the memory plan."""

from __future__ import annotations

_BLOCK = 32
_GROUPS = 16
_BLOCKS_PER_REPEAT = 8


def _groups(offset: int) -> frozenset[int]:
    """Bank groups of the eight blocks of a repeat that starts at ``offset``."""
    first = offset // _BLOCK
    return frozenset((first + i) % _GROUPS for i in range(_BLOCKS_PER_REPEAT))


def _bank(offset: int) -> int:
    return (offset >> 16) & 3


def sources_clash(first: int, second: int) -> bool:
    """Two reads of one cycle share a bank group. Byte offsets in the unified buffer."""
    return bool(_groups(first) & _groups(second))


def write_clashes(destination: int, sources: list[int]) -> bool:
    """The write hits a bank that is being read, without falling on exactly the same blocks (it then slips a repeat)."""
    for source in sources:
        if _bank(destination) != _bank(source):
            continue
        written, read = _groups(destination), _groups(source)
        if written & read and written != read:
            return True
    return False
