"""What one launch leaves on the device for the next."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .cache import Cache, content, empty_cache, forget, grown


@dataclass
class DeviceState:
    """The content of the L2; a new state is cold. Belongs to the chip it was first used with."""

    line_bytes: int = 0
    cache: Cache | None = None

    def digest(self) -> bytes:
        """Equal states, equal digests: what is cached, in order of use."""
        if self.cache is None:
            return b"cold"
        digest = hashlib.blake2b(content(self.cache).tobytes(), digest_size=16)
        digest.update(self.line_bytes.to_bytes(4, "little"))
        return digest.digest()

    def copy(self) -> DeviceState:
        return DeviceState(self.line_bytes, None if self.cache is None else self.cache.copy())

    def forget(self, address: int, nbytes: int) -> None:
        """Drop every line of ``[address, address + nbytes)``, as if it had never been touched."""
        if self.cache is not None and nbytes > 0:
            forget(self.cache, address // self.line_bytes, (address + nbytes - 1) // self.line_bytes)

    def cover(self, tags: int, line_bytes: int) -> Cache:
        """The cache, with room for addresses below ``tags`` times 64 lines of ``line_bytes``."""
        if self.cache is None:
            self.cache, self.line_bytes = empty_cache(tags), line_bytes
        if self.line_bytes != line_bytes:
            raise ValueError(
                f"this state holds cache lines of {self.line_bytes} bytes, the chip has lines of {line_bytes}; "
                "start from a new DeviceState"
            )
        self.cache = grown(self.cache, tags)
        return self.cache
