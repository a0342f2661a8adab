"""Descriptor 2 redirected and brought back."""

import os
import sys

import pytest

from pypto.runtime.stderr_capture import capture_stderr


def test_python_and_native_writes_are_caught_in_order(tmp_path, capfd, monkeypatch):
    log = tmp_path / "log"
    with open(2, "w", closefd=False) as buffered:
        monkeypatch.setattr(sys, "stderr", buffered)
        buffered.write("before\n")
        with capture_stderr(log):
            buffered.write("python\n")
            buffered.flush()
            os.write(2, b"native\n")
            buffered.write("python again\n")
        buffered.write("after\n")
        buffered.flush()
        monkeypatch.undo()
    assert log.read_text() == "python\nnative\npython again\n" and capfd.readouterr().err == "before\nafter\n"


@pytest.mark.parametrize("target", ["log", os.devnull])
def test_the_descriptor_comes_back_whatever_happens(tmp_path, capfd, target):
    before = os.fstat(2).st_ino
    with pytest.raises(KeyError), capture_stderr(tmp_path / target):
        raise KeyError("stop")
    with pytest.raises(OSError), capture_stderr(tmp_path / "no" / "such" / "folder"):
        pass
    os.write(2, b"still here\n")
    assert os.fstat(2).st_ino == before and capfd.readouterr().err == "still here\n"


def test_descriptors_are_not_leaked(tmp_path, capfd):
    count = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(5):
        with capture_stderr(tmp_path / "log"):
            pass
    assert count is None or len(os.listdir("/proc/self/fd")) == count
