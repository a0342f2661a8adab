"""Detectors of limits and signals: harmless neighbours stay silent, and limits are exact."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from pypto.sim import CheckError, Finding
from pypto.sim.checks.scopes import scope_findings
from pypto.sim.checks.selection import Rings
from pypto.sim.recorder import Recorder
from pypto.sim.recording import ALLOC, SCOPE_BEGIN, SCOPE_END, SUBMIT

NR = pl.dynamic("NR")


def found(host, ranks: int, *arguments: torch.Tensor, **options) -> list[Finding]:
    """Findings of one run on ``ranks`` chips."""
    distributed = DistributedConfig(device_ids=list(range(ranks)))
    options.setdefault("checks", "all")
    config = RunConfig(platform="a2a3sim", distributed_config=distributed, **options)
    shared = [argument.share_memory_() for argument in arguments]
    try:
        host.compile(*shared, config=config)(*shared)
    except CheckError as error:
        return list(error.findings)
    return []


# --- both lanes


def of_two_lanes(cell_of_the_lane: bool, expected: int, op: pld.NotifyOp):
    """A mixed task whose lanes notify the next rank, which waits for ``expected``."""

    @pl.jit
    def chip(
        a: pl.Tensor[[64, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 2], pl.INT32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
            me = pld.rank(pld.get_comm_ctx(signal))
            peer = (me + 1) % 2
            score = pl.matmul(a[:, :], b[:, :])
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                half = pl.aiv_shard(score)
                y[lane * 32 : lane * 32 + 32, :] = pl.mul(half, 2.0)
                if cell_of_the_lane:
                    pld.system.notify(signal, peer=peer, offsets=[me, lane], value=1, op=op)
                else:
                    pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=op)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="done"):
            other = (pld.rank(pld.get_comm_ctx(signal)) + 1) % 2
            pld.system.wait(signal, offsets=[other, 0], expected=expected, cmp=pld.WaitCmp.Ge)
        return y

    @pl.jit.host
    def host(
        a: pl.Tensor[[2, 64, 64], pl.FP32],
        b: pl.Tensor[[2, 64, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[2, 64, 32], pl.FP32]],
    ):
        buf = pld.alloc_window_buffer([2, 2], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            signal = pld.window(buf, [2, 2], dtype=pl.INT32)
            chip(a[r], b[r], y[r], signal, device=r)

    return host


@pytest.mark.parametrize(
    ("own_cell", "expected", "op", "kinds"),
    [
        (False, 1, pld.NotifyOp.AtomicAdd, ["duplicate-notify"]),
        (False, 2, pld.NotifyOp.AtomicAdd, []),
        (True, 1, pld.NotifyOp.AtomicAdd, []),
        (False, 1, pld.NotifyOp.Set, []),
    ],
)
def test_signals_of_both_lanes(own_cell, expected, op, kinds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = torch.randn(2, 64, 64), torch.randn(2, 64, 32), torch.zeros(2, 64, 32)
    findings = found(of_two_lanes(own_cell, expected, op), 2, *arguments)
    assert sorted({finding.kind for finding in findings}) == kinds
    for finding in findings:
        assert finding.tensor == "signal" and finding.tasks == ("product_aiv",) and finding.bytes is not None


def of_lanes_in_turns(in_turns: int):
    """A mixed task whose lanes add in turns to one cell; the next rank waits for fewer than all of it."""

    @pl.jit
    def chip(
        a: pl.Tensor[[64, 64], pl.FP32],
        b: pl.Tensor[[64, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 2], pl.INT32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
            me = pld.rank(pld.get_comm_ctx(signal))
            peer = (me + 1) % 2
            score = pl.matmul(a[:, :], b[:, :])
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                half = pl.aiv_shard(score)
                y[lane * 32 : lane * 32 + 32, :] = pl.mul(half, 2.0)
                for i in pl.range(4):
                    if in_turns == 0:
                        pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
                    turn = i % 2
                    if in_turns == 1 and turn == lane:
                        pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
                if in_turns == 2:
                    for k in pl.range(lane, 4, 2):
                        pld.system.notify(signal, peer=peer, offsets=[me, k // 4], value=1, op=pld.NotifyOp.AtomicAdd)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="done"):
            other = (pld.rank(pld.get_comm_ctx(signal)) + 1) % 2
            pld.system.wait(signal, offsets=[other, 0], expected=3, cmp=pld.WaitCmp.Ge)
        return y

    @pl.jit.host
    def host(
        a: pl.Tensor[[2, 64, 64], pl.FP32],
        b: pl.Tensor[[2, 64, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[2, 64, 32], pl.FP32]],
    ):
        buf = pld.alloc_window_buffer([2, 2], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            signal = pld.window(buf, [2, 2], dtype=pl.INT32)
            chip(a[r], b[r], y[r], signal, device=r)

    return host


@pytest.mark.parametrize(("in_turns", "kinds"), [(0, {"duplicate-notify"}), (1, set()), (2, set())])
def test_lanes_that_take_turns_are_not_doubled(in_turns, kinds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = torch.randn(2, 64, 64), torch.randn(2, 64, 32), torch.zeros(2, 64, 32)
    findings = found(of_lanes_in_turns(in_turns), 2, *arguments)
    assert {finding.kind for finding in findings} == kinds, [str(finding) for finding in findings]


# --- deferred waits


def deferred(conditions: int, start: int):
    """A task with ``conditions`` deferred waits on cells that held ``start`` and get one credit more."""

    @pl.jit.incore
    def begin(signal: pl.InOut[pld.DistributedTensor[[80, 1], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(signal))
        for cell in pl.range(conditions):
            pld.system.notify(signal, peer=me, offsets=[cell, 0], value=start, op=pld.NotifyOp.AtomicAdd)
        return signal

    @pl.jit.incore
    def tell(signal: pl.InOut[pld.DistributedTensor[[80, 1], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(signal))
        for cell in pl.range(conditions):
            pld.system.notify(signal, peer=me, offsets=[cell, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        return signal

    @pl.jit
    def chip(
        x: pl.Tensor[[1, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[80, 1], pl.INT32]],
    ):
        signal = begin(signal)
        signal = tell(signal)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="told") as told:
            for cell in pl.range(conditions):
                pld.system.defer_wait(signal, offsets=[cell, 0], expected=1, cmp=pld.WaitCmp.Ge)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[told], name_hint="go_on"):
            y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)
        return y

    @pl.jit.host
    def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        buf = pld.alloc_window_buffer([80, 1], dtype=pl.INT32)
        signal = pld.window(buf, [80, 1], dtype=pl.INT32)
        chip(x, y, signal, device=0)

    return host


@pytest.mark.parametrize(("conditions", "start", "told"), [(64, 1, ""), (65, 1, "65 conditions"), (2, -3, "holds -2")])
def test_limits_of_deferred_waits(conditions, start, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    findings = found(deferred(conditions, start), 1, torch.randn(1, 64), torch.zeros(1, 64))
    assert [told in finding.message for finding in findings] == [True] * bool(told)
    assert {finding.kind for finding in findings} <= {"deferred-wait"}


def crowded(tasks: int):
    """So many tasks with a deferred wait, and one that tells them all."""

    @pl.jit.incore
    def tell(signal: pl.InOut[pld.DistributedTensor[[256, 1], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(signal))
        for cell in pl.range(tasks):
            pld.system.notify(signal, peer=me, offsets=[cell, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        return signal

    @pl.jit
    def chip(
        x: pl.Tensor[[1, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[256, 1], pl.INT32]],
    ):
        ids = pl.array.create(tasks, pl.TASK_ID)
        for cell in pl.range(tasks):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="told") as told:
                pld.system.defer_wait(signal, offsets=[cell, 0], expected=1, cmp=pld.WaitCmp.Ge)
            ids[cell] = told
        signal = tell(signal)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids], name_hint="go_on"):
            y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)
        return y

    @pl.jit.host
    def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        buf = pld.alloc_window_buffer([256, 1], dtype=pl.INT32)
        signal = pld.window(buf, [256, 1], dtype=pl.INT32)
        chip(x, y, signal, device=0)

    return host


@pytest.mark.parametrize(("tasks", "told"), [(64, ""), (192, ""), (193, "193 tasks like 'told' are deferred at once")])
def test_tasks_deferred_at_once_are_as_many_as_the_schedulers_hold(tasks, told, tmp_path, monkeypatch):
    """64 per scheduler and three schedulers (spec distributed 2.11, 6.1)."""
    monkeypatch.chdir(tmp_path)
    findings = found(crowded(tasks), 1, torch.randn(1, 64), torch.zeros(1, 64))
    assert [told in finding.message for finding in findings] == [True] * bool(told), [str(f) for f in findings]
    for finding in findings:
        assert finding.kind == "deferred-wait" and "3 schedulers hold 64 each, 192 together" in finding.message


# --- rings


class Submissions:
    """Just enough of an orchestration for a report."""

    name, statements, text_file = "main", (), "main.py"

    def place(self, index):
        return None


RINGS = Rings((8, 8, 8, 8), (4096, 4096, 4096, 4096), 3)


def ring_findings(*events: tuple[int, int, int]) -> list[Finding]:
    recorder = Recorder()
    for kind, a, b in events:
        if kind == SUBMIT:
            a = len(recorder.tasks)
            recorder.task(f"t{a}", 0, 1, 0, 0, 0, 0, 0, (), ())
        elif kind == ALLOC:
            recorder.allocated += a
        recorder.events.append((kind, a, b, 0))
    return list(scope_findings(recorder, Submissions(), RINGS))  # type: ignore[arg-type]


TASK = (SUBMIT, 0, 0)
OPEN, CLOSE = (SCOPE_BEGIN, 1, 0), (SCOPE_END, 1, 0)


def test_a_scope_that_holds_all_slots():
    assert ring_findings(*[TASK] * 7) == []
    (finding,) = ring_findings(*[TASK] * 8)
    assert finding.kind == "scope-deadlock" and "7 of the 8 slots" in finding.message and finding.tasks == ("t7",)
    assert "ring_task_window=16" in finding.suggestion


def test_scopes_that_end_give_their_slots_back():
    assert ring_findings(*[OPEN, *[TASK] * 6, CLOSE] * 20) == []
    assert ring_findings(*[OPEN, *[TASK] * 8, CLOSE]) != []


def test_what_stands_behind_an_open_scope_in_its_ring_is_held_too():
    deep = [OPEN] * 3
    assert ring_findings(*deep, TASK, *[OPEN, TASK, TASK, CLOSE] * 3) == []
    assert ring_findings(*deep, TASK, *[OPEN, TASK, TASK, CLOSE] * 3, TASK) != []


def test_a_scope_that_holds_the_heap():
    buffer = (ALLOC, 2048, 0)
    assert ring_findings(*[buffer, TASK] * 2) == []
    (finding,) = ring_findings(*[buffer, TASK] * 3)
    assert "6144 bytes of a heap of 4096" in finding.message and "ring_heap=8192" in finding.suggestion
    first_alone = ring_findings((ALLOC, 8192, 0), TASK)
    assert first_alone == []  # an empty ring takes one task of any size


# --- what no rank has written


def published(rows: int, read: int, adds: bool = False):
    """Every rank publishes ``rows`` rows and the next one reads ``read`` of them; ``adds``: by remote additions."""

    @pl.jit.incore
    def exchange(
        inp: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[32, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        peer = (me + 1) % 2
        if adds:
            tile = pl.load(inp, [0, 0], [rows, 64])
            pld.tile.remote_store(tile, peer=peer, offsets=[0, 0], target=data, atomic=pl.AtomicType.Add)
        else:
            data = pl.store(pl.load(inp, [0, 0], [rows, 64]), [0, 0], data)
        pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
        if adds:
            part = pl.load(data, [0, 0], [read, 64])
        else:
            part = pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[read, 64])
        out = pl.store(pl.mul(part, 2.0), [0, 0], out)
        return out

    @pl.jit
    def chip(
        inp: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[32, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        out = exchange(inp, out, data, signal)
        return out

    @pl.jit.host
    def host(x: pl.Tensor[[2, 32, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 32, 64], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([32, 64], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [32, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    return host


@pytest.mark.parametrize(
    ("rows", "read", "adds", "first"),
    [(24, 32, False, 24), (24, 24, False, None), (16, 32, True, 16), (32, 32, True, None)],
)
def test_rows_of_a_window_that_nobody_wrote(rows, read, adds, first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = torch.randn(2, 32, 64), torch.zeros(2, 32, 64)
    findings = found(published(rows, read, adds), 2, *arguments, checks={"unpublished"})
    assert bool(findings) == (first is not None)
    for finding in findings:
        assert finding.kind == "unpublished" and finding.tensor == "data" and finding.locations
        assert finding.index_ranges == ((first, 32), (0, 64)) and finding.bytes == (256 * first, 256 * 32)


def test_zeros_of_a_window_are_values_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert found(published(24, 32), 2, torch.randn(2, 32, 64), torch.zeros(2, 32, 64)) == []


# --- the destination of a transfer before its end


def fetched(in_two_tasks: bool):
    """One block gets a peer's row into a tensor of the chip, another block reads it."""

    @pl.jit
    def chip(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        box = pl.create_tensor([1, 64], dtype=pl.FP32, init_value=0.0)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="publish"):
            me = pld.rank(pld.get_comm_ctx(data))
            peer = (me + 1) % 2
            pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
            pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
        if in_two_tasks:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="fetch"):
                other = (pld.rank(pld.get_comm_ctx(data)) + 1) % 2
                pld.tensor.get(box, peer=other, src=data)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="use"):
                pl.store(pl.neg(pl.load(box, [0, 0], [1, 64])), [0, 0], out)
        else:
            for b in pl.spmd(2, name_hint="both"):
                if b == 0:
                    other = (pld.rank(pld.get_comm_ctx(data)) + 1) % 2
                    pld.tensor.get(box, peer=other, src=data)
                else:
                    pl.store(pl.neg(pl.load(box, [0, 0], [1, 64])), [0, 0], out)
        return out

    @pl.jit.host
    def host(x: pl.Tensor[[2, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    return host


@pytest.mark.parametrize("in_two_tasks", [True, False])
def test_the_destination_of_a_get_before_its_end(in_two_tasks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    findings = found(fetched(in_two_tasks), 2, torch.randn(2, 1, 64), torch.zeros(2, 1, 64))
    races = [finding for finding in findings if finding.kind == "raw"]
    assert findings == races and bool(races) != in_two_tasks
    for finding in races:
        assert finding.tensor == "box" and finding.index_ranges == ((0, 1), (0, 64))
