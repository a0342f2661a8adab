"""What the host's part of a launch costs on a clocked platform, in nanoseconds (spec hardware 13)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypto.sim.chips import Chip

# Building and uploading the runtime arena for a new ring sizing: "of the order of a second" (spec runtime 8.3); guess.
ARENA_BUILD_NS: Final = 1_000_000_000
# Finding the cached arena: bind.prebuilt of warm launches in a log of the hardware runtime, 4057 to 4279 ns; measured.
ARENA_REUSE_NS: Final = 4_000


@dataclass(frozen=True)
class HostModel:
    """Costs of one chip's host path; rates in bytes per microsecond (= MB/s), so that all arithmetic is integer."""

    allocation_ns: int
    upload_bytes_per_us: int
    download_bytes_per_us: int
    enqueue_ns: int
    drain_ns: int

    def upload_ns(self, nbytes: int) -> int:
        """Copying ``nbytes`` of pageable host memory to the device."""
        return nbytes * 1000 // self.upload_bytes_per_us

    def download_ns(self, nbytes: int) -> int:
        """Copying ``nbytes`` back to the host."""
        return nbytes * 1000 // self.download_bytes_per_us


@cache
def host_model(chip_name: str) -> HostModel:
    """The host path of the chip called ``chip_name``."""
    from pypto.sim.chips import chip

    return host_model_of(chip(chip_name))


def host_model_of(description: Chip) -> HostModel:
    """The host path of a described chip; all durations round to nanoseconds."""
    host = description.host
    return HostModel(
        allocation_ns=round(host.device_malloc.value),
        upload_bytes_per_us=round(host.upload_gbps.value * 1000),
        download_bytes_per_us=round(host.download_gbps.value * 1000),
        enqueue_ns=round(host.run.value + host.run_subtask.value + host.launch.value),
        drain_ns=round(host.drain.value),
    )
