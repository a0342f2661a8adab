"""Ranks that live and will not answer, and processes of ranks that outlive them: an error, never a wait without end."""

from __future__ import annotations

import os
import signal
import threading

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import ranks_pulse
from pypto.runtime.distributed_runner import _tensor_from_continuous
from pypto.runtime.ranks import RankProcess, in_forking_thread, stop_all
from pypto.runtime.ranks_pulse import Pulses, signs

from .programs import config, row_program

SOON_S = 1.5


@pl.inline
def exchange(inp, out, data, signal):
    me = pld.rank(pld.get_comm_ctx(data))
    pld.system.notify(signal, peer=1 - me, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, offsets=[1 - me, 0], expected=1, cmp=pld.WaitCmp.Ge)
    out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)


def shared(*shape):
    return torch.zeros(*shape).share_memory_()


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3"])
def test_a_rank_that_does_nothing(platform, monkeypatch):
    monkeypatch.setattr(ranks_pulse, "STALLED_S", SOON_S)
    x, y = shared(2, 1, 64), shared(2, 1, 64)
    compiled = row_program(2, 64, pl.FP32, [2, 1], exchange).compile(x, y, config=config(2, platform))
    with compiled.prepare() as rt:
        rt(x, y)
        os.kill(rt.pids[1], signal.SIGSTOP)
        with pytest.raises(RuntimeError, match=r"rank 1 of 2 on device 1 .* did nothing for 1.5 s and was ended"):
            rt(x, y)
        with pytest.raises(RuntimeError, match="cannot run: rank 1"):
            rt(x, y)


def test_the_signs_of_a_process_that_works_and_of_one_that_waits():
    ends: list[RankProcess] = []
    begin, over = os.pipe(), os.pipe()

    def main(connection):
        os.read(begin[0], 1)
        sum(range(3_000_000))
        os.write(over[1], b"x")
        connection.recv()

    in_forking_thread(lambda: ends.append(RankProcess("worker", main, [])), 60.0)
    (process,) = ends
    waiting = signs(process.pid)
    pulses = Pulses(1e-9)
    assert waiting is not None and pulses.stalled([process]) == []
    os.write(begin[1], b"x")
    os.read(over[0], 1)
    worked = signs(process.pid)
    assert worked is not None and worked[1:] != waiting[1:]
    pulses._next = 0.0
    assert pulses.stalled([process]) == [], "it has moved since"
    pid = process.pid
    stop_all(ends)
    assert signs(pid) is None
    for end in (*begin, *over):
        os.close(end)


def test_a_compilation_of_another_thread_does_not_reach_the_ranks():
    """A copy of the process made while a thread compiles would find Numba's lock held for ever."""
    from numba.core.compiler_lock import global_compiler_lock

    held, release, ends = threading.Event(), threading.Event(), []

    def compile_something():
        with global_compiler_lock:
            held.set()
            release.wait(60)

    def main(connection):
        found = []
        thread = threading.Thread(target=lambda: found.append(global_compiler_lock._lock.acquire(timeout=30)))
        thread.start()
        thread.join()
        connection.send(found)
        connection.recv()

    compiling = threading.Thread(target=compile_something)
    compiling.start()
    held.wait(60)
    forking = threading.Thread(
        target=lambda: in_forking_thread(lambda: ends.append(RankProcess("rank", main, [])), 60.0)
    )
    forking.start()
    assert not ends
    release.set()
    compiling.join()
    forking.join()
    assert ends[0].connection.recv() == [True]
    stop_all(ends)


def test_a_fork_that_never_happens_is_a_timeout():
    release = threading.Event()
    with pytest.raises(TimeoutError, match="could not be forked within 0.1 s"):
        in_forking_thread(lambda: release.wait(60), 0.1)
    release.set()


@pl.program
class WithSubWorker:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[
        [1, 64], pl.FP32
    ]:  # fmt: skip
        dst = pl.store(pl.load(src, [0, 0], [1, 64]), [0, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[
        [1, 64], pl.FP32
    ]:  # fmt: skip
        dst = self.copy(src, dst)
        return dst

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def post(value: pl.Tensor[[1, 64], pl.FP32], pids: pl.Out[pl.Tensor[[1, 64], pl.FP32]]): ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def drive(
        self,
        x: pl.Tensor[[1, 1, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[1, 1, 64], pl.FP32]],
        pids: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    ):
        value = self.chip(x[0], y[0], device=0)
        self.post(value, pids)


def test_a_sub_worker_that_dies_and_leaves_a_process_behind(tmp_path):
    """The process it leaves holds its ends of the pipes, so nothing but the death itself tells of it."""

    def post(args):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        _tensor_from_continuous(args[1])[0, 0] = pid
        os.kill(os.getpid(), signal.SIGKILL)

    compiled = ir.compile(WithSubWorker, tmp_path, platform="a2a3sim", distributed_config=DistributedConfig([0]))
    x, y, pids = shared(1, 1, 64), shared(1, 1, 64), shared(1, 64)
    try:
        with compiled.prepare(callbacks={"post": post}) as rt:  # noqa: SIM117
            with pytest.raises(RuntimeError, match=r"sub-worker process 0 .* killed by signal 9 \(SIGKILL\)"):
                rt(x, y, pids)
    finally:
        if pids[0, 0] > 0:
            os.kill(int(pids[0, 0]), signal.SIGKILL)
