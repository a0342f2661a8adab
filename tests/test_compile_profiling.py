"""Stages of a compile and their report (spec profiling 5.12)."""

import json
import threading

import pytest

from pypto import compile_profiling
from pypto.compile_profiling import CompileProfiler, Stage, get_active_profiler


def test_stages_nest_and_survive_an_exception():
    with CompileProfiler() as profiler:
        assert get_active_profiler() is CompileProfiler.current() is profiler
        with profiler.stage("passes"):
            profiler.add_stage_record("Simplify", 0.25, [Stage("fold", 0.125)])
        with pytest.raises(KeyError), profiler.stage("codegen"), profiler.stage("kernel_codegen:add"):
            raise KeyError("add")
    assert get_active_profiler() is None
    passes, codegen = profiler.to_dict()["stages"]
    assert passes["children"] == [
        {"name": "Simplify", "seconds": 0.25, "children": [{"name": "fold", "seconds": 0.125, "children": []}]}
    ]
    assert [child["name"] for child in codegen["children"]] == ["kernel_codegen:add"]
    assert profiler.total_seconds >= codegen["seconds"] > 0


def test_the_innermost_profiler_of_the_thread_is_active():
    with CompileProfiler(), CompileProfiler() as inner:
        assert get_active_profiler() is inner
        seen = []
        thread = threading.Thread(target=lambda: seen.append(get_active_profiler()))
        thread.start()
        thread.join()
        assert seen == [None]


def test_the_report(tmp_path, monkeypatch):
    profiler = CompileProfiler()
    profiler.add_stage_record("parse", 0.0005)
    profiler.add_stage_record("passes", 0.25, [Stage("Simplify", 2.5)])
    monkeypatch.setattr(CompileProfiler, "total_seconds", 2.0)
    profiler.write_report(tmp_path / "report")
    lines = (tmp_path / "report" / "pipeline_profile.txt").read_text().splitlines()
    assert lines[0] == "Compile profile report" and lines[1:4] == ["=" * 22, "Total: 2.000s", ""]
    assert lines[4] == f"{'parse':<28}{'500us':>10}  (  0.0%)"
    assert lines[5] == f"{'passes':<28}{'250.0ms':>10}  ( 12.5%)"
    assert lines[6] == f"  {'Simplify':<28}{'2.500s':>10}  (125.0%)"
    assert json.loads((tmp_path / "report" / "pipeline_profile.json").read_text())["total_seconds"] == 2.0


def test_the_environment_turns_collection_on(monkeypatch):
    monkeypatch.setattr(compile_profiling, "_from_environment", None)
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "yes")
    found = get_active_profiler()
    assert found is get_active_profiler() is not None
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "0")
    assert get_active_profiler() is None
