"""Compilations in a copy of the process: what they leave, and that the interrupt key ends them."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from pypto.sim import apart
from pypto.sim.apart import compile_apart


def children() -> set[str]:
    return set().union(*((task / "children").read_text().split() for task in Path("/proc/self/task").iterdir()))


def test_the_copy_leaves_its_file(tmp_path):
    path, here = tmp_path / "code", []

    def work():
        here.append(1)
        path.write_text(str(os.getpid()))

    compile_apart(path, work)
    assert path.read_text() != str(os.getpid()) and not here
    compile_apart(path, work)
    assert not here, "the file is there"


def test_a_copy_that_fails_is_no_error(tmp_path):
    """The caller compiles after all and meets the error itself."""
    compile_apart(tmp_path / "code", lambda: 1 / 0)
    assert not (tmp_path / "code").exists()


@pytest.mark.parametrize("when", ["no file", "thread", "key not heard"])
def test_where_it_gains_nothing_no_copy_is_made(tmp_path, when):
    done = []
    path = None if when == "no file" else tmp_path / "code"

    def run():
        compile_apart(path, lambda: path.write_text("x"))
        done.append(path is None or not path.exists())

    if when == "thread":
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)
    elif when == "key not heard":
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            run()
        finally:
            signal.signal(signal.SIGINT, previous)
    else:
        run()
    assert done == [True]


def test_the_key_ends_the_copy(tmp_path):
    """It would work for ever; nobody waits for it and nothing is left of it."""
    before, begun = children(), tmp_path / "begun"
    os.mkfifo(begun)

    def work():
        begun.write_text("x")
        while True:
            signal.pause()

    over = threading.Event()

    def press():
        begun.read_text()
        while True:  # Python drops an interruption that meets a finalizer
            os.kill(os.getpid(), signal.SIGINT)
            if over.wait(10.0):
                return

    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        compile_apart(tmp_path / "code", work)
    over.set()
    thread.join(60)
    assert children() == before


def test_a_copy_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "LONGEST_S", 0.3)
    before = children()
    compile_apart(tmp_path / "code", signal.pause)
    assert children() == before and not (tmp_path / "code").exists()
