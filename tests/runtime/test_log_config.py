"""The runtime's log threshold (spec runtime 12.2)."""

import logging
import subprocess
import sys

import pytest

from pypto.runtime import configure_log, log_level
from pypto.runtime.log_config import TIMING


@pytest.fixture(autouse=True)
def level_restored():
    before = log_level()
    yield
    configure_log(before)


@pytest.mark.parametrize(
    "given, level",
    [("debug", 10), ("INFO", 20), ("Timing", 25), ("warn", 30), ("warning", 30), ("error", 40), ("null", 60), (37, 37)],
)
def test_levels_by_name_and_number(given, level):
    configure_log(given)
    assert log_level() == level == logging.getLogger("simpler").level


@pytest.mark.parametrize("given", ["v9", "20", None, 2.5, True])
def test_anything_unknown_is_the_default(given):
    configure_log("error")
    configure_log(given)
    assert log_level() == TIMING


def test_zero_inherits_the_root_level():
    configure_log(0)
    assert log_level() == logging.getLogger().getEffectiveLevel()


@pytest.mark.parametrize("value, level", [("error", 40), ("nonsense", 25), ("", 25)])
def test_the_environment_sets_the_level_at_import(value, level):
    done = subprocess.run(
        [sys.executable, "-c", "from pypto.runtime import log_level; print(log_level())"],
        env={"PYPTO_RUNTIME_LOG": value, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(level)
