"""Compiling the engine ahead of its first use."""

import subprocess

from pypto.sim.timing import ahead


def test_the_smallest_recording_reaches_the_engine():
    timeline = ahead.smallest_recording().time()
    assert timeline.device_wall_ns > 0 and timeline.device_wall_ns == ahead.smallest_recording().time().device_wall_ns


def test_started_once_and_only_without_the_marker(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(ahead, "folder", lambda: tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **streams: started.append((command, streams)))
    monkeypatch.setattr(ahead, "_started", False)
    ahead.compile_ahead()
    ahead.compile_ahead()
    assert len(started) == 1
    command, streams = started[0]
    assert command[1:] == ["-m", "pypto.sim.timing.ahead"]
    assert set(streams.values()) == {subprocess.DEVNULL}, "a first run's own output stays readable"
    ahead.main()
    monkeypatch.setattr(ahead, "_started", False)
    ahead.compile_ahead()
    assert len(started) == 1


def test_nothing_is_started_where_nothing_can_be_kept(monkeypatch):
    monkeypatch.setattr(ahead, "folder", lambda: None)
    monkeypatch.setattr(ahead, "_started", False)
    monkeypatch.setattr(subprocess, "Popen", None)
    ahead.compile_ahead()
