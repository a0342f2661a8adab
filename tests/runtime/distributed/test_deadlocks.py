"""What is said when no rank can go on: who waits for what, what its cell has got, and who has ended or would tell."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from pypto.runtime.distributed_run import RankDeadlockError
from pypto.sim import WaitError

from .programs import row_program

RANKS = 3


def stuck(body, checks="all", ranks=RANKS):
    """The error of a run that comes to a standstill; every rank has a mesh of signal cells."""

    @pl.inline
    def whole(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        body(signal, me)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    config = RunConfig(
        platform="a2a3sim", checks=checks, distributed_config=DistributedConfig(device_ids=list(range(ranks)))
    )
    x, y = torch.randn(RANKS, 1, 64).share_memory_(), torch.zeros(RANKS, 1, 64).share_memory_()
    with pytest.raises(RankDeadlockError) as caught:
        row_program(RANKS, 64, pl.FP32, [RANKS, 1], whole).compile(x, y, config=config)(x, y)
    return caught.value


@pl.inline
def leaves_out_one(signal, me):
    """Rank 1 tells rank 2 and nobody else."""
    for peer in pl.range(RANKS):
        if peer != me and (me != 1 or peer == 2):
            pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(RANKS):
        if src != me:
            pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pl.inline
def waits_first(signal, me):
    pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
    pld.system.notify(signal, peer=(me + 1) % RANKS, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)


@pl.inline
def one_is_silent(signal, me):
    """Rank 0 counts all three ranks, and rank 2 does not tell."""
    if me < 2:
        pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    if me == 0:
        pld.system.wait(signal, offsets=[0, 0], expected=RANKS, cmp=pld.WaitCmp.Ge)


@pl.inline
def sets_do_not_add_up(signal, me):
    if me > 0:
        pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
    if me == 0:
        pld.system.wait(signal, offsets=[0, 0], expected=2, cmp=pld.WaitCmp.Ge)


@pl.inline
def sets_the_round(signal, me):
    if me == 1:
        for step in pl.range(40):
            pld.system.notify(signal, peer=0, offsets=[0, 0], value=step + 1, op=pld.NotifyOp.Set)
    if me == 0:
        pld.system.wait(signal, offsets=[0, 0], expected=41, cmp=pld.WaitCmp.Ge)


@pl.inline
def passes_the_value(signal, me):
    if me > 0:
        for _ in pl.range(2):
            pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    if me == 0:
        pld.system.wait(signal, offsets=[0, 0], expected=4, cmp=pld.WaitCmp.Ge)
        pld.system.wait(signal, offsets=[0, 0], expected=2, cmp=pld.WaitCmp.Eq)


CASES = {
    leaves_out_one: (
        {"signal[1, 0] of rank 0": "nobody has notified"},
        ("rank 1 has ended and has notified none of those that wait", "rank 2 has ended and has notified signal[2, 0]"),
        "let the rank that is awaited notify signal[1, 0] of rank 0 before it ends",
    ),
    waits_first: (
        {"signal[0, 0] of rank 2": "nobody has notified"},
        ("ranks 0, 1, 2 have not come to their notify at ",),
        "notify the peers first, before any wait",
    ),
    one_is_silent: (
        {"signal[0, 0] of rank 0": "was notified: rank 0 adds 1 at "},
        ("rank 1 adds 1 at ", "rank 2 has ended and has notified none of those that wait"),
        "rank 2 has not notified signal[0, 0] of rank 0",
    ),
    sets_do_not_add_up: (
        {"signal[0, 0] of rank 0": "was notified: rank 1 sets 1 at "}, ("rank 2 sets 1 at ",), "use NotifyOp.AtomicAdd",
    ),
    passes_the_value: (
        {"signal[0, 0] of rank 0": "rank 1 adds 1, 2 times, at "}, ("rank 2 adds 1, 2 times, at ",), "WaitCmp.Ge",
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", CASES, ids=lambda body: getattr(body, "__name__", str(body)))
def test_what_the_report_of_a_standstill_says(body, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells, said, repair = CASES[body]
    error = stuck(body)
    (finding,) = error.findings
    assert isinstance(error, WaitError) and finding.kind == "deadlock" and finding.tensor == "signal"
    for cell, got in cells.items():
        assert any(cell in line and got in line for line in finding.message.splitlines()), finding.message
    assert [text for text in said if text not in finding.message] == [], finding.message
    assert repair in finding.suggestion, finding.suggestion
    acts = {location.what for location in finding.locations}
    assert "waits" in acts and acts <= {"waits", "notifies", "would notify"}


def test_the_history_is_told_without_checks_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = stuck(one_is_silent, checks="none")
    assert "rank 1 adds 1 at " in str(error) and "rank 2 has ended" in str(error) and not hasattr(error, "findings")


def test_a_worker_goes_on_after_a_standstill(tmp_path, monkeypatch):
    """What ranks remember is that of the run: the next one reports its own."""
    monkeypatch.chdir(tmp_path)

    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        one_is_silent(signal, me)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(RANKS))))
    x, y = torch.randn(RANKS, 1, 64).share_memory_(), torch.zeros(RANKS, 1, 64).share_memory_()
    with row_program(RANKS, 64, pl.FP32, [RANKS, 1], body).compile(x, y, config=config).prepare() as worker:
        for _ in range(2):
            with pytest.raises(RankDeadlockError, match=r"rank 0 adds 1 at \S+, rank 1 adds 1 at"):
                worker(x, y)


def test_rounds_of_one_line_are_told_together():
    text = str(stuck(sets_the_round))
    assert "signal[0, 0] of rank 0 was notified: rank 1 sets 1, at last 40, 40 times, at " in text
