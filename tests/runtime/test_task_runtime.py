"""Sizing of the task runtime: configuration, environment, defaults (spec runtime 8.3)."""

import pytest

from pypto.backend import find_platform
from pypto.runtime import RunConfig
from pypto.runtime.task_runtime import sizing

A2A3 = find_platform("a2a3")


@pytest.mark.parametrize(
    "asked, compiled, platform, threads",
    [(None, 0, "a2a3", 4), (None, 0, "a5", 5), (2, 0, "a2a3", 2), (None, 3, "a2a3", 3), (2, 3, "a2a3", 2)],
)
def test_control_threads(asked, compiled, platform, threads):
    config = RunConfig(aicpu_thread_num=asked)
    size = sizing(config, {"aicpu_thread_num": compiled}, find_platform(platform))
    assert size.aicpu_threads == threads and size.chip_figures() == {"scheduler_threads": threads - 1}


@pytest.mark.parametrize("threads", [1, 5, -2])
def test_threads_the_platform_does_not_have(threads):
    words = f"prepare_native_run failed: aicpu_thread_num={threads}, a2a3 runs with 2 to 4"
    with pytest.raises(RuntimeError, match=words):
        sizing(RunConfig(aicpu_thread_num=threads), {}, A2A3)


@pytest.mark.parametrize("threads", ["x", 2.0, True])
def test_control_threads_that_are_no_number(threads):
    with pytest.raises(TypeError, match=f"aicpu_thread_num must be an int, got {type(threads).__name__}"):
        sizing(RunConfig(aicpu_thread_num=threads), {}, A2A3)


def test_the_configuration_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("PTO2_RING_HEAP", "2048, 0, 4096, 0")
    monkeypatch.setenv("PTO2_RING_TASK_WINDOW", "8")
    size = sizing(RunConfig(ring_task_window=16), {}, A2A3)
    assert size.rings == (16, (2048, 0, 4096, 0), None)
    assert size.chip_figures() == {"scheduler_threads": 3, "ring_window": 16, "ring_heap": 2048}


@pytest.mark.parametrize(
    "value, words",
    [("abc", "PTO2_RING_HEAP must be one number or four"), ("1000", "power of 2"), ("1024,0", "exactly 4")],
)
def test_a_wrong_environment_is_named(monkeypatch, value, words):
    monkeypatch.setenv("PTO2_RING_HEAP", value)
    with pytest.raises(ValueError, match=words):
        sizing(RunConfig(), {}, A2A3)
