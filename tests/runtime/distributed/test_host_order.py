"""What a dispatch waits for (spec distributed 1.8)."""

from __future__ import annotations

from typing import Any

import pytest

from pypto.runtime.distributed_host import HostRun


def waits(*directions: str) -> list[set[int]]:
    """Tasks that each of the dispatches waits for, when all name one buffer."""
    unused: Any = None
    run, after = HostRun(unused, unused, 2, unused), []
    for number, direction in enumerate(directions):
        edges: set[int] = set()
        run._order(number, "y", direction, edges)
        after.append(edges)
    return after


@pytest.mark.parametrize(
    ("directions", "expected"),
    [
        (("Out", "In"), [set(), {0}]),
        (("Out", "Out", "In"), [set(), set(), {0, 1}]),
        (("In", "Out"), [set(), set()]),
        (("Out", "InOut", "In"), [set(), {0}, {1}]),
        (("Out", "Out", "InOut", "Out", "In"), [set(), set(), {0, 1}, set(), {2, 3}]),
    ],
)
def test_readers_wait_for_every_writer_since_the_last_update(directions, expected):
    assert waits(*directions) == expected
