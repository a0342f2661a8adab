"""The compiler's log level, alone and following the runtime's (spec runtime 12.1, 12.2)."""

import subprocess
import sys

import pytest

from pypto import log
from pypto.log import LogLevel
from pypto.runtime import configure_log, log_level


@pytest.fixture(autouse=True)
def levels_restored():
    compiler, runtime = log.get_log_level(), log_level()
    yield
    log.set_log_level(compiler)
    configure_log(runtime)


def test_messages_below_the_level_are_dropped(capsys):
    log.set_log_level(LogLevel.WARN)
    for write in (log.log_debug, log.log_info, log.log_warn, log.log_error, log.log_fatal, log.log_event):
        write(write.__name__)
    assert capsys.readouterr().err == "[WARN] log_warn\n[ERROR] log_error\n[FATAL] log_fatal\n[EVENT] log_event\n"
    log.set_log_level(LogLevel.NONE)
    log.log_event("nothing")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "runtime, compiler",
    [("debug", "DEBUG"), ("info", "INFO"), ("timing", "WARN"), ("error", "ERROR"), ("null", "NONE")],
)
def test_the_runtime_may_set_the_compilers_level(runtime, compiler):
    configure_log(runtime, sync_pypto=True)
    assert log.get_log_level() is LogLevel[compiler]


@pytest.mark.parametrize("value, level", [("error", "ERROR"), ("Debug", "DEBUG"), ("loud", "INFO"), ("", "INFO")])
def test_the_environment_sets_the_first_level(value, level):
    done = subprocess.run(
        [sys.executable, "-c", "from pypto import log; print(log.get_log_level().name)"],
        env={"PYPTO_LOG_LEVEL": value, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == level
