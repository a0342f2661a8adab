"""The timing engine plays a launch again: its tables hold more than a timeline keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched
    from pypto.sim.timing.launch import Played


def play_again(launched: Launched, log_lines: int = 0, changed: Mapping[str, float] | None = None) -> Played:
    """Play the launch from the state it started in, with the same times; the log takes ``log_lines``.

    ``changed`` are constants of the chip that are to have another value.

    The tables are overwritten by whatever the thread plays next.
    """
    from pypto.sim.timing import DeviceState
    from pypto.sim.timing.launch import cache_tags, play

    recording, chip = launched.known_recording, launched.known_chip.replace(**changed or {})
    state = launched.state_before.copy() if launched.state_before is not None else DeviceState()
    cache = state.cover(cache_tags(recording, chip), int(chip.memory.l2_line_bytes.value))
    return play(recording, chip, cache, begin_ps(launched), log_lines, launched.told)


def play_with_log(launched: Launched) -> Played:
    """:func:`play_again` with a log as long as it needs to be."""
    from pypto.sim.timing import words

    lines = 64
    while True:
        played = play_again(launched, lines)
        needed = int(played.memory[words.LOGGED])
        if needed <= lines:
            return played
        lines = needed


def begin_ps(launched: Launched) -> int:
    """When orchestrator and schedulers start."""
    return launched.known_timeline.phases["orch"][0] * 1000
