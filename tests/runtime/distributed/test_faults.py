"""Processes that die, interruptions, full memory: always an error that says what happened, nothing left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .programs import config, row_program

LIMIT_S = 5.0


@pl.inline
def exchange_forever(inp, out, data, signal):
    """Two ranks that hand a credit to and fro many times."""
    me = pld.rank(pld.get_comm_ctx(data))
    for step in pl.range(4000):
        pld.system.notify(signal, peer=1 - me, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[1 - me, 0], expected=step + 1, cmp=pld.WaitCmp.Ge)
    out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)


@pytest.fixture(scope="module")
def program():
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    return row_program(2, 64, pl.FP32, [2, 1], exchange_forever).compile(x, y, config=config(2)), x, y


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def segments() -> set[str]:
    return set(os.listdir("/dev/shm"))


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + LIMIT_S
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(alive, pids))


@pytest.mark.parametrize("seed", range(100))
def test_a_rank_is_killed_at_a_random_point(program, seed):
    compiled, x, y = program
    chance = random.Random(seed)
    before = segments()
    with compiled.prepare() as rt:
        pids = rt.pids
        victim = chance.randrange(2)
        timer = threading.Timer(chance.uniform(0.0, 0.03), os.kill, (pids[victim], signal.SIGKILL))
        timer.start()
        started = time.monotonic()
        try:
            while time.monotonic() < started + LIMIT_S:
                rt(x, y)
        except RuntimeError as error:
            assert "SIGKILL" in str(error) and f"rank {victim}" in str(error) or "cannot run" in str(error)
        assert time.monotonic() - started < LIMIT_S, "the death was not noticed"
        timer.join()
        with pytest.raises(RuntimeError, match=rf"rank {victim} of 2 on device {victim} .*killed by signal 9"):
            rt(x, y)
    assert gone(pids) and segments() == before


def test_an_interruption_of_the_parent(program):
    compiled, x, y = program
    with compiled.prepare() as rt:
        pids = rt.pids
        timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100_000):
                rt(x, y)
        assert all(map(alive, pids))
        rt(x, y)  # the worker is usable after it
    assert gone(pids)


PARENT = """
    import os, sys, time
    sys.path.insert(0, {root!r})
    from tests.runtime.distributed.test_faults import *
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    compiled = row_program(2, 64, pl.FP32, [2, 1], exchange_forever).compile(x, y, config=config(2))
    rt = compiled.prepare()
    print(*rt.pids, flush=True)
    {then}
"""


def run_parent(tmp_path, then: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT.format(root=root, then=then)))
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_die_with_their_parent(tmp_path, sign):
    before = {name for name in segments() if not name.startswith("torch_")}
    parent = run_parent(tmp_path, "while True: rt(x, y)")
    pids = [int(p) for p in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    parent.send_signal(sign)
    parent.wait()
    assert gone(pids)
    assert {name for name in segments() if not name.startswith("torch_")} == before


def test_a_parent_that_ends_without_closing(tmp_path):
    parent = run_parent(tmp_path, "raise SystemExit(3)")
    pids = [int(p) for p in parent.stdout.readline().split()]
    assert parent.wait() == 3 and gone(pids)


def test_memory_of_a_card_that_is_used_up(program):
    compiled, _, _ = program
    with compiled.prepare() as rt:
        with pytest.raises(MemoryError, match="of device 0"):
            rt.malloc(1 << 50)
        assert rt.committed_device_memory() == 0


def test_workers_do_not_need_shared_memory_files(program):
    """A full /dev/shm stops nobody: windows and card memory have no names there."""
    compiled, x, y = program
    before = segments()
    with compiled.prepare() as rt:
        tensor = rt.alloc_tensor((1024, 1024), torch.float32)
        assert segments() == before
        rt.free_tensor(tensor)


def test_a_rank_that_does_not_start(program, monkeypatch):
    from pypto.runtime import ranks_chip

    def broken(self, setup, connection):
        os._exit(7)

    compiled, _, _ = program
    monkeypatch.setattr(ranks_chip.ChipMain, "__init__", broken)
    with pytest.raises(RuntimeError, match=r"rank \d of 2 on device \d ended with exit code 7 while it started"):
        compiled.prepare()


def test_a_start_that_takes_too_long(program, monkeypatch):
    from pypto.runtime import ranks_chip

    compiled, _, _ = program
    monkeypatch.setattr(ranks_chip.ChipMain, "serve", lambda self: signal.pause())
    with pytest.raises(TimeoutError, match="did not start within 0.2 s"):
        compiled.prepare(startup_timeout_s=0.2)
