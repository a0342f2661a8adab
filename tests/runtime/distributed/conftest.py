"""No test of several processes waits for ever: what hangs becomes a failure that shows where."""

from __future__ import annotations

import faulthandler
import signal
import sys

import pytest

LIMIT_S = 180.0
"""Far more than any of these tests needs; the product itself gives up on a lost rank much earlier."""
AGAIN_S = 5.0
"""An exception raised by a signal may be swallowed (in a finaliser), so it is raised again."""


@pytest.fixture(autouse=True)
def limited_in_time():
    """``Failed`` with the stacks of all threads when a test takes longer than :data:`LIMIT_S`."""

    def expire(number, frame):
        faulthandler.dump_traceback(sys.__stderr__, all_threads=True)
        pytest.fail(f"the test was not done after {LIMIT_S:g} s; the stacks of its threads are on stderr")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S, AGAIN_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, previous)
