"""The windows of a worker: symmetric memory on every rank of a domain (spec distributed 2.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pypto.runtime.address_space import AddressSpace
from pypto.runtime.shared_memory import SharedRegion
from pypto.sim.checks.shadow import BLOCK
from pypto.sim.checks.words import MIXED, UNWRITTEN
from pypto.sim.distributed import (
    CTX_BASE,
    CTX_CODES,
    CTX_DOMAIN,
    CTX_FLAGS,
    CTX_RANK,
    CTX_RANKS,
    CTX_STRIDE,
    CTX_WORDS,
    CTX_WORLD,
    MAX_RANKS,
)

BUFFER_ALIGNMENT: Final = 32
_PAGE: Final = 4096


@dataclass(frozen=True)
class Domain:
    """A communication domain: its world ranks in order, its buffers, and where everything is.

    ``stride``: bytes from one rank's window to the next; ``contexts``: address of the context record per member;
    ``devices``: where the chip of every member has the windows of all of them.
    """

    name: str
    number: int
    ranks: tuple[int, ...]
    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    base: int
    stride: int
    contexts: tuple[int, ...]
    devices: tuple[int, ...]

    def device(self, buffer: str, rank: int) -> int:
        """Address of ``buffer`` of world rank ``rank`` in the memory of its chip."""
        return self.devices[self.ranks.index(rank)] + self.address(buffer, rank) - self.base

    def address(self, buffer: str, rank: int) -> int:
        """Address of ``buffer`` on world rank ``rank``."""
        return self.base + self.ranks.index(rank) * self.stride + self.offsets[buffer]

    def context(self, rank: int) -> int:
        """Address of the context record of world rank ``rank``."""
        return self.contexts[self.ranks.index(rank)]


class Windows:
    """Domains by program and name. Each run finds its windows zero, unless the worker keeps them.

    ``spaces``: per rank, where its chip has what.

    ``followed``: the next run notes which bytes were written, in codes (:mod:`pypto.sim.checks.shadow`) that all ranks
    share.
    """

    followed = False

    def __init__(self, region: SharedRegion, spaces: Sequence[AddressSpace], *, persistent: bool, resets: bool):
        self._region, self._persistent, self._resets = region, persistent, resets
        self._spaces = spaces
        self._known: dict[tuple[int, str], Domain] = {}
        self._opened = 0
        self._codes: dict[int, tuple[int, int]] = {}

    @property
    def kept(self) -> bool:
        """Whether a run finds what the run before left."""
        return self._persistent and not self._resets

    def open(self, program: int, name: str, ranks: Sequence[int], buffers: Mapping[str, int]) -> Domain:
        """The domain ``name`` of ``program`` for one run."""
        key, members, sizes = (program, name), tuple(ranks), dict(buffers)
        if len(members) > MAX_RANKS:
            raise ValueError(f"{name} has {len(members)} ranks; a domain has at most {MAX_RANKS}")
        for buffer, size in sizes.items():
            if not isinstance(size, int) or size <= 0:
                raise ValueError(f"window buffer '{buffer}' has {size} bytes; a positive number is needed")
        found, fresh = self._known.get(key), False
        if found is not None and (found.ranks, found.sizes) != (members, sizes):
            if self._persistent:
                raise ValueError(
                    f"{name} changed from {found.sizes} on {list(found.ranks)} to {sizes} on {list(members)}; "
                    f"persistent windows keep their size"
                )
            self._release(found)
            found = None
        if found is None:
            found = self._known[key] = self._create(name, self._opened, members, sizes)
            self._opened += 1
            fresh = True
        if not self._persistent or self._resets:
            self._region.view(found.base, found.stride * len(members))[:] = 0
            fresh = True
        self._follow(found, fresh)
        return found

    def _follow(self, domain: Domain, fresh: bool) -> None:
        """Give the contexts of a domain the codes of its bytes: nobody has written any of a ``fresh`` one."""
        words = [self._region.words(address, CTX_WORDS) for address in domain.contexts]
        known = int(words[0][CTX_CODES]) > 0
        codes = flags = 0
        if self.followed and (fresh or known):
            size = domain.stride * len(domain.ranks)
            codes, flags = self._codes.get(domain.base, (0, 0))
            if codes == 0:
                codes, flags = self._region.allocate(size, _PAGE), self._region.allocate(size // BLOCK, _PAGE)
                self._codes[domain.base] = codes, flags
            if fresh:
                self._region.view(codes, size)[:] = UNWRITTEN
                self._region.view(flags, size // BLOCK)[:] = MIXED
        for context in words:
            context[CTX_CODES], context[CTX_FLAGS] = codes, flags

    def _create(self, name: str, number: int, members: tuple[int, ...], sizes: dict[str, int]) -> Domain:
        offsets, used = {}, 0
        for buffer, size in sizes.items():
            offsets[buffer] = used
            used += -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        stride = -(-max(used, 1) // _PAGE) * _PAGE
        base = self._region.allocate(stride * len(members), _PAGE)
        self._region.view(base, stride * len(members))[:] = 0
        contexts = tuple(self._context(number, members, position, base, stride) for position in range(len(members)))
        devices = tuple(self._spaces[rank].allocate(stride * len(members)) for rank in members)
        return Domain(name, number, members, offsets, sizes, base, stride, contexts, devices)

    def _context(self, number: int, members: tuple[int, ...], position: int, base: int, stride: int) -> int:
        address = self._region.allocate(8 * CTX_WORDS)
        words = self._region.words(address, CTX_WORDS)
        words[:] = -1
        words[CTX_RANK], words[CTX_RANKS], words[CTX_STRIDE], words[CTX_BASE] = position, len(members), stride, base
        words[CTX_DOMAIN], words[CTX_CODES], words[CTX_FLAGS] = number, 0, 0
        words[CTX_WORLD : CTX_WORLD + len(members)] = members
        return address

    def _release(self, domain: Domain) -> None:
        size = domain.stride * len(domain.ranks)
        self._region.release(domain.base, size, _PAGE)
        if domain.base in self._codes:
            codes, flags = self._codes.pop(domain.base)
            self._region.release(codes, size, _PAGE)
            self._region.release(flags, size // BLOCK, _PAGE)
        for address in domain.contexts:
            self._region.release(address, 8 * CTX_WORDS)
        for rank, device in zip(domain.ranks, domain.devices):
            self._spaces[rank].free(device)
