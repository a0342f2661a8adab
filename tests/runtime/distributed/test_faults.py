"""Processes that die, interruptions, full memory: always an error that says what happened, nothing left behind."""

from __future__ import annotations

import contextlib
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
ENOUGH_S = 60.0


def exchange(times):
    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        for step in pl.range(times):
            pld.system.notify(signal, peer=1 - me, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[1 - me, 0], expected=step + 1, cmp=pld.WaitCmp.Ge)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    return body


def compiled_exchange(platform="a2a3sim"):
    """Two ranks that hand a credit to and fro many times."""
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    body = exchange(4000 if platform == "a2a3sim" else 40)
    return row_program(2, 64, pl.FP32, [2, 1], body).compile(x, y, config=config(2, platform)), x, y


@pytest.fixture(scope="module")
def program():
    return compiled_exchange()


@pytest.fixture(scope="module")
def programs(program):
    return {"a2a3sim": program, "a2a3": compiled_exchange("a2a3")}


def children() -> set[int]:
    """Processes that are this one's children, whichever thread forked them; zombies are gone."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(
            FileNotFoundError, ProcessLookupError
        ):  # a thread that ended meanwhile has no children
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return {pid for pid in found if alive(pid)}


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def segments(*pids: int) -> set[str]:
    """Shared memory files made by this process and by ``pids``; other programs come and go meanwhile."""
    owners = {str(pid) for pid in (os.getpid(), *pids)}
    return {name for name in os.listdir("/dev/shm") if name.startswith("torch_") and name.split("_")[1] in owners}


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + LIMIT_S
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(alive, pids))


class Key:
    """The interrupt key, pressed once after ``delay_s`` seconds by another thread."""

    def __init__(self, delay_s: float):
        self.pressed_at: float | None = None
        self.dropped = False
        self._timer = threading.Timer(delay_s, self._press)
        self._previous = sys.unraisablehook

    def _press(self) -> None:
        self.pressed_at = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def _unraisable(self, report) -> None:
        if issubclass(report.exc_type, KeyboardInterrupt):
            self.dropped = True
        else:
            self._previous(report)

    def __enter__(self):
        sys.unraisablehook = self._unraisable
        self._timer.start()
        return self

    def __exit__(self, *error):
        self._timer.cancel()
        self._timer.join()
        sys.unraisablehook = self._previous

    @property
    def elapsed_s(self) -> float:
        """Seconds since the key was pressed, 0 before."""
        return 0.0 if self.pressed_at is None else time.monotonic() - self.pressed_at

    @property
    def waited_for(self) -> bool:
        """Whether it may still be heard.

        Python drops an interruption that meets a finalizer or a callback of the collector (Hypothesis has one, and a
        collection of a large heap takes long): then the key is pressed again, here, as a person would.
        """
        if self.dropped:
            self.dropped = False
            signal.raise_signal(signal.SIGINT)
        return self.elapsed_s < LIMIT_S


@pytest.mark.parametrize("seed", range(100))
def test_a_rank_is_killed_at_a_random_point(programs, seed):
    """Without a device clock and, every fourth time, with one: while it computes, waits, or times its launches."""
    compiled, x, y = programs["a2a3sim" if seed % 4 else "a2a3"]
    chance = random.Random(seed)
    before = segments()
    with compiled.prepare() as rt:
        pids = rt.pids
        victim = chance.randrange(2)
        killed: list[float] = []

        def kill():
            killed.append(time.monotonic())
            os.kill(pids[victim], signal.SIGKILL)

        timer = threading.Timer(chance.uniform(0.0, 0.03 if seed % 4 else 0.6), kill)
        timer.start()
        with pytest.raises(RuntimeError) as caught:
            while not killed or time.monotonic() < killed[0] + LIMIT_S:
                rt(x, y)
        assert time.monotonic() - killed[0] < LIMIT_S, "the death was noticed late"
        text = str(caught.value)
        assert f"rank {victim} of 2" in text and "SIGKILL" in text, text
        timer.join()
        with pytest.raises(RuntimeError, match=rf"rank {victim} of 2 on device {victim} .*killed by signal 9"):
            rt(x, y)
    assert gone(pids) and segments(*pids) <= before


def test_an_interruption_of_the_parent(program):
    compiled, x, y = program
    with compiled.prepare() as rt:
        pids = rt.pids
        with pytest.raises(KeyboardInterrupt), Key(0.05) as key:
            while key.waited_for:
                rt(x, y)
        assert all(map(alive, pids))
        rt(x, y)  # the worker is usable after it
    assert gone(pids)


@pytest.mark.parametrize("seed", range(24))
def test_an_interruption_at_a_random_point(seed):
    """While a program is compiled, its ranks start, run, time their launches or end: nothing is left."""
    chance = random.Random(seed)
    before, shared, phases = children(), segments(), []

    def cycle():
        phases.append("compile")
        compiled, x, y = compiled_exchange("a2a3" if seed % 3 == 0 else "a2a3sim")
        phases.append("prepare")
        with compiled.prepare() as rt:
            phases.append("run")
            rt(x, y)
            phases.append("close")

    cycle()
    with pytest.raises(KeyboardInterrupt), Key(chance.uniform(0.0, 0.5)) as key:
        while key.waited_for:
            cycle()
    assert key.elapsed_s < LIMIT_S, phases[-1]
    assert children() == before and segments() <= shared


@pl.inline
def count_long(inp, out, data, signal):
    """Rank 0 is busy for minutes, rank 1 waits for it."""
    me = pld.rank(pld.get_comm_ctx(data))
    if me == 0:
        for step in pl.range(2_000_000_000):
            pl.write(data, [0, 0], pl.cast(step, pl.FP32))
        pld.system.notify(signal, peer=1, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    else:
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)


@pytest.mark.parametrize("through", ["call", "submit", "one_shot"])
def test_an_interruption_while_a_rank_computes_for_long(through):
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    compiled = row_program(2, 64, pl.FP32, [2, 1], count_long).compile(x, y, config=config(2))
    before = children()
    with pytest.raises(KeyboardInterrupt), Key(1.0) as key:
        if through == "one_shot":
            compiled(x, y)
        with compiled.prepare() as rt:
            if through == "call":
                rt(x, y)
            else:
                rt.submit(compiled, x, y)  # leaving the block waits for it
    assert key.elapsed_s < LIMIT_S
    assert children() == before


def test_a_handler_of_the_program_is_called_in_the_middle_of_a_run(program):
    """A program that handles the key itself goes on, and so does its run."""
    compiled, x, y = program
    pressed = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        with compiled.prepare() as rt:
            timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            while not pressed:
                rt(x, y)
            timer.join()
        torch.testing.assert_close(y, x)
        assert signal.getsignal(signal.SIGINT) not in (previous, signal.default_int_handler)
    finally:
        signal.signal(signal.SIGINT, previous)


@pl.inline
def read_where_told(inp, out, data, signal):
    """Every rank reads the cell that its own input names; all of them meet before and after."""
    data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    at = pl.cast(pl.read(inp, [0, 0]), pl.INDEX)
    pl.write(data, [0, at], 1.0)
    data = pld.tensor.allreduce(data, signal)
    out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_kernel_that_raises_on_any_one_rank(ranks, platform):
    x, y = torch.zeros(ranks, 1, 64).share_memory_(), torch.zeros(ranks, 1, 64).share_memory_()
    compiled = row_program(ranks, 64, pl.FP32, [ranks, 1], read_where_told).compile(
        x, y, config=config(ranks, platform)
    )
    with compiled.prepare() as rt:
        pids = rt.pids
        for victim in range(ranks):
            x.zero_()
            x[victim, 0, 0] = 1000.0
            began = time.monotonic()
            with pytest.raises(RuntimeError, match=rf"rank {victim} \(device {victim}\) failed in chip") as caught:
                rt(x, y)
            assert time.monotonic() - began < LIMIT_S
            assert "1000" in str(caught.value) and "test_faults.py" in str(caught.value)
            x.zero_()
            rt(x, y)  # the worker goes on with fresh windows
    assert gone(pids)


FULL = """
    import sys, time
    sys.path.insert(0, {root!r})
    from tests.runtime.distributed.test_faults import *
    x, y = torch.ones(2, 1, 64), torch.zeros(2, 1, 64)
    compiled, xs, ys = compiled_exchange()
    with open("/dev/shm/filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError as error:
            print(error.errno, flush=True)
    with compiled.prepare() as rt:      # needs no room there
        pids = rt.pids
        rt(xs, ys)
        big = rt.alloc_tensor((256, 1024), torch.float32, init=torch.ones(256, 1024))
    print(gone(pids), flush=True)
    began = time.monotonic()
    try:
        compiled(x, y)
    except BaseException as error:
        print(type(error).__name__, str(error).replace(chr(10), " | "), time.monotonic() - began < LIMIT_S, children(), flush=True)
"""


def test_a_full_shared_memory_file_system(tmp_path):
    """A file system of 256 KB at /dev/shm, in a mount namespace of its own, filled to the last page."""
    script = tmp_path / "full.py"
    script.write_text(textwrap.dedent(FULL.format(root=str(Path(__file__).parents[3]))))
    mount = f"mount -t tmpfs -o size=256k none /dev/shm && exec {sys.executable} {script}"
    ran = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=ENOUGH_S,
    )
    if "unshare" in ran.stderr and not ran.stdout:
        pytest.skip(f"no mount namespace here: {ran.stderr.strip()}")
    lines = ran.stdout.splitlines()
    assert lines[:2] == ["28", "True"], ran.stderr
    assert "'x'" in lines[2] and "512 bytes" in lines[2] and "/dev/shm" in lines[2]
    assert lines[2].endswith("True set()")


PARENT = """
    import os, sys, time
    sys.path.insert(0, {root!r})
    from tests.runtime.distributed.test_faults import *
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    compiled = compiled_exchange()[0]
    rt = compiled.prepare()
    print(*rt.pids, flush=True)
    {then}
"""


def run_parent(tmp_path, then: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT.format(root=root, then=then)))
    return subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    )


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_die_with_their_parent(tmp_path, sign):
    parent = run_parent(tmp_path, "while True: rt(x, y)")
    pids = [int(p) for p in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    parent.send_signal(sign)
    parent.wait(ENOUGH_S)
    assert gone(pids)
    assert segments(parent.pid, *pids) == set()


def test_a_parent_that_ends_without_closing(tmp_path):
    parent = run_parent(tmp_path, "raise SystemExit(3)")
    pids = [int(p) for p in parent.stdout.readline().split()]
    assert parent.wait(ENOUGH_S) == 3 and gone(pids)


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


def test_a_worker_outlives_the_thread_that_opened_it(program):
    """Ranks die with their parent, which to Linux is the thread that forked them."""
    compiled, x, y = program
    opened = []
    thread = threading.Thread(target=lambda: opened.append(compiled.prepare()))
    thread.start()
    thread.join()
    (rt,) = opened
    with rt:
        y.zero_()
        rt(x, y)
        torch.testing.assert_close(y, x)
        assert all(map(alive, rt.pids))


def test_workers_opened_and_used_by_many_threads(program):
    compiled, _, _ = program
    failures = []
    tensors = [
        (torch.full((2, 1, 64), float(k)).share_memory_(), torch.zeros(2, 1, 64).share_memory_()) for k in range(4)
    ]

    def use(x, y):
        try:
            with compiled.prepare() as rt:
                for _ in range(3):
                    rt(x, y)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=pair) for pair in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for x, y in tensors:
        torch.testing.assert_close(y, x)


def test_one_worker_called_by_many_threads(program):
    """Runs of one worker follow each other whoever asks for them."""
    compiled, x, y = program
    failures = []
    with compiled.prepare() as rt:

        def use():
            try:
                for _ in range(5):
                    rt(x, y)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_a_forked_copy_of_the_process_leaves_the_ranks_alone(program):
    compiled, x, y = program
    with compiled.prepare() as rt:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:  # whatever happens, this copy must not go on with the tests
            try:
                with pytest.raises(RuntimeError) as caught:
                    rt(x, y)
                with contextlib.suppress(RuntimeError):
                    rt.close()
                os.write(writing, str(caught.value).encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        assert f"belongs to process {os.getpid()}, this is process {pid}" in text
        y.zero_()
        rt(x, y)
        torch.testing.assert_close(y, x)
