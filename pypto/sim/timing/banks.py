"""Bank clashes of the a2a3 unified buffer (spec hardware 2.2, 6.2), from the addresses of the memory plan."""

from __future__ import annotations

_BLOCK = 32
_BLOCKS_PER_REPEAT = 8


def _groups(offset: int, groups: int) -> frozenset[int]:
    """Which of the bank ``groups`` hold the eight blocks of a repeat that starts at ``offset``."""
    first = offset // _BLOCK
    return frozenset((first + i) % groups for i in range(_BLOCKS_PER_REPEAT))


def _bank(offset: int) -> int:
    return (offset >> 16) & 3


def sources_clash(first: int, second: int, groups: int = 16) -> bool:
    """Two reads of one cycle share a bank group. Byte offsets in the unified buffer."""
    return bool(_groups(first, groups) & _groups(second, groups))


def write_clashes(destination: int, sources: list[int], groups: int = 16) -> bool:
    """The write hits a bank that is being read, without falling on exactly the same blocks (it then slips a repeat)."""
    for source in sources:
        if _bank(destination) != _bank(source):
            continue
        written, read = _groups(destination, groups), _groups(source, groups)
        if written & read and written != read:
            return True
    return False
