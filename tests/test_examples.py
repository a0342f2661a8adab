"""Every example runs and its assertions hold."""

import runpy
import sys
from pathlib import Path

import pytest

from pypto.runtime import configure_log, log_level
from pypto.sim.checks.forced import forced, taken

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SCRIPTS = sorted(p for p in EXAMPLES.rglob("*.py") if "__main__" in p.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def level_restored():
    before = log_level()
    yield
    configure_log(before)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_example(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example says what it has shown"


CHECKED = [p for p in SCRIPTS if p.parent.name in ("kernels", "distributed") and p.stem != "collectives"]  # slow


@pytest.mark.parametrize("script", CHECKED, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_an_example_has_no_finding(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script)])
    with forced("all", "collect"):
        runpy.run_path(str(script), run_name="__main__")
        assert [str(finding) for finding in taken()] == []


def test_there_are_examples():
    assert EXAMPLES / "benchmark_add.py" in SCRIPTS
