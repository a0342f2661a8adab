"""Findings as text, table and JSON; selection; the command line and the pytest plugin."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
import torch

import pypto.language as pl
from pypto.sim import BoundsError, CheckError, Finding, OrderError
from pypto.sim.checks.findings import Location, error_of, table, to_json
from pypto.sim.checks.selection import CHEAP, KINDS, Checks

FOUND = Finding(
    "war", "'a' reads and 'b' writes", "box", ("a", "b"), (Location("k.py", 3, "reads"), Location("k.py", 5)), (0, 64),
    ((0, 2), (0, 8)), "deps=[a]", 2,
)  # fmt: skip


def test_a_finding_as_text():
    text = str(FOUND)
    for part in ("[war]", "bytes 0..64 of 'box'", "axis 0: 0..2", "k.py:3 (reads)", "2 times", "to repair: deps=[a]"):
        assert part in text


def test_a_finding_as_json_and_as_a_table():
    (row,) = json.loads(to_json([FOUND]))
    assert row["kind"] == "war" and row["locations"][1]["line"] == 5 and row["bytes"] == [0, 64]
    assert table([FOUND]).row_count == 1


def test_errors_by_kind_survive_a_pipe():
    error = error_of([FOUND])
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(error, OrderError) and isinstance(copy, CheckError) and copy.findings == (FOUND,)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_error(kind):
    assert isinstance(error_of([Finding(kind, "x")]), CheckError)


def test_selection():
    assert Checks.of(None, clocked=True).kinds == CHEAP and not Checks.of(None, clocked=False)
    assert not Checks.of("cheap").deep and Checks.of("all").deep and Checks.of({"war"}).deep
    with pytest.raises(ValueError, match="unknown kind of check 'wra'; known: war"):
        Checks.of({"wra"})


_SCRIPT = """
import torch, pypto.language as pl
from pypto.runtime import RunConfig

@pl.jit
def half(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [ROWS, 32]), [0, 0], y)
    return y

half(torch.ones(16, 32), torch.zeros(16, 32), config=RunConfig(platform="a2a3"))
"""


@pytest.mark.parametrize(("rows", "code", "kinds"), [(8, 1, ["uninit"]), (16, 0, [])])
def test_the_command_line(tmp_path, rows, code, kinds):
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.replace("ROWS", str(rows)))
    command = [sys.executable, "-m", "pypto.sim.check", "--json", "found.json", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert [row["kind"] for row in json.loads((tmp_path / "found.json").read_text())] == kinds


@pytest.mark.parametrize(("rows", "outcome"), [(8, "1 failed"), (16, "1 passed")])
def test_the_pytest_plugin(tmp_path, rows, outcome):
    body = _SCRIPT.replace("ROWS", str(rows)).replace("half(torch", "def test_it():\n    half(torch")
    (tmp_path / "test_it.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "--pypto-checks=all", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert outcome in done.stdout, done.stdout


def test_a_test_that_fails_shows_its_findings_too(tmp_path):
    body = _SCRIPT.replace("ROWS", "8").replace("half(torch", "def test_it():\n    half(torch") + "    assert False\n"
    (tmp_path / "test_it.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "--pypto-checks=all", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "assert False" in done.stdout and "1 failed" in done.stdout
    assert "Captured pypto checks call" in done.stdout and "[uninit]" in done.stdout, done.stdout


def test_kinds_that_do_not_exist_are_refused_before_any_test():
    from pypto.testing.checks_plugin import pytest_configure

    class Asked:
        def getoption(self, name, default=None):
            return "war,wra"

    with pytest.raises(pytest.UsageError, match="--pypto-checks: unknown kind of check 'wra'; known: war"):
        pytest_configure(Asked())


_IN_PLACE = (
    _SCRIPT.replace("half(torch", "def launch(call):\n    call(torch")
    + """
def test_part_of_an_output():
    from pypto.runtime import ChipWorker
    with ChipWorker(RunConfig(platform="a2a3")) as worker:
        x, y = torch.ones(16, 32), torch.zeros(16, 32)
        worker.register(half.compile(x, y, config=RunConfig(platform="a2a3")))(x, y)
        assert torch.isnan(y[8:]).all() and torch.equal(y[:8], x[:8])
"""
)


def test_the_plugin_leaves_the_poison_where_a_handle_fills_part_of_an_output(tmp_path):
    (tmp_path / "test_it.py").write_text(_IN_PLACE.replace("ROWS", "8"))
    command = [sys.executable, "-m", "pytest", "-q", "--pypto-checks=all", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout


def test_a_table_shows_what_stands_in_brackets():
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    finding = Finding("war", "m", suggestion="with deps=[use_id]: [bold]")
    Console(file=out, width=120).print(table([finding]))
    assert "deps=[use_id]: [bold]" in out.getvalue()


@pl.jit
def neighbours_in_one_launch(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    mid = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(4, name_hint="wave"):
        pl.store(pl.exp(pl.load(x, [b * 16, 0], [16, 32])), [b * 16, 0], mid)
        pl.store(pl.neg(pl.load(mid, [(b + 1) % 4 * 16, 0], [16, 32])), [b * 16, 0], y)
    return y


def test_what_races_is_not_told_again_as_unwritten(findings):
    found = findings(neighbours_in_one_launch, torch.ones(64, 32), torch.zeros(64, 32))
    assert {finding.kind for finding in found} == {"raw"}
    alone = findings(neighbours_in_one_launch, torch.ones(64, 32), torch.zeros(64, 32), checks={"uninit"})
    assert {finding.kind for finding in alone} == {"uninit"}


@pl.jit
def exponentials_of_zeros(x: pl.Tensor[[16, 48], pl.FP32], y: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="soft"):
        t = pl.fillpad(pl.load(x, [0, 0], [16, 64], valid_shape=[16, 48]), pad_value=pl.PadValue.zero)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pl.store(pl.row_sum(pl.exp(t), tmp), [0, 0], y)
    return y


@pl.jit
def row_above_the_first(x: pl.Tensor[[16, 48], pl.FP32], y: pl.Out[pl.Tensor[[16, 48], pl.FP32]]):
    for b in pl.spmd(2, name_hint="above"):
        pl.store(pl.load(x, [b * 8 - 8, 0], [8, 48]), [b * 8, 0], y)
    return y


def test_a_repair_is_one_for_what_is_wrong(findings):
    (padding,) = findings(exponentials_of_zeros, torch.ones(16, 48), torch.zeros(16, 1))
    assert "'row_sum'" in padding.message
    assert "pad_value=pl.PadValue.min" in padding.suggestion
    with pytest.raises(BoundsError, match="offset -8") as raised:
        findings(row_above_the_first, torch.ones(16, 48), torch.zeros(16, 48))
    assert "pl.max(offset, 0)" in raised.value.findings[0].suggestion
