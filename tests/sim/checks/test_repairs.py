"""What a report of a race proposes closes it: its lines are put into the source, and the program runs clean."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
import torch

import pypto.language as pl
from pypto.sim.checks.wait_edits import wait_edits

from .programs import order, races_in_helpers, races_to_repair
from .test_programs import run

_LINE = re.compile(r"^\s+(before )?[\w.]+:(\d+): (.*)$")


def pasted(text: str, suggestion: str) -> str:
    """``text`` with the lines of a suggestion in it."""
    lines = text.split("\n")
    found = [match for line in suggestion.split("\n") if (match := _LINE.match(line))]
    assert found, suggestion
    order = sorted(enumerate(found), key=lambda item: (int(item[1][2]), item[1][1] is None, item[0]), reverse=True)
    for _, match in order:
        at = int(match[2]) - 1
        if match[1]:
            lines.insert(at, match[3])
        else:
            lines[at] = match[3]
    return "\n".join(lines)


def loaded(path: Path, name: str):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


RACES = [(module, case) for module in (races_to_repair, races_in_helpers) for case in module.CASES] + [
    (order, case)
    for case in order.CASES
    if case.name in ("columns_then_rows", "blocks_then_refill", "middle_forgotten")
]


@pytest.mark.parametrize(("module", "case"), RACES, ids=[case.name for _, case in RACES])
def test_pasting_the_suggestion_closes_the_hole(module, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = Path(inspect.getfile(module)).read_text("utf-8").replace("from .", f"from {_PROGRAMS}.")
    for number in range(5):
        path = tmp_path / f"{case.name}_{number}.py"
        path.write_text(text, "utf-8")
        arguments = case.arguments()
        found = run(loaded(path, case.faulty_name), arguments)
        if not found:
            break
        assert number or found[0].kind == case.kind
        text = pasted(text, found[0].suggestion)
    else:
        pytest.fail(f"still {[str(finding) for finding in found]}")
    assert number > 0


_PROGRAMS = "tests.sim.checks.programs"


def test_a_name_that_the_author_bound_is_used(tmp_path):
    file = tmp_path / "k.py"
    file.write_text(
        "def k(x, y):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP) as made:\n"
        "        pass\n"
        "    with pl.at(level=pl.Level.CORE_GROUP, deps=[other]):\n"
        "        pass\n"
    )
    assert wait_edits(str(file), (2, "a"), (4, "b"), False) == (
        "made",
        ["k.py:4:     with pl.at(level=pl.Level.CORE_GROUP, deps=[other, made]):"],
    )


def test_what_is_no_submission_is_left_to_words(tmp_path):
    file = tmp_path / "k.py"
    file.write_text("def k(x, y):\n    y = pl.exp(x)\n    z = pl.exp(y)\n")
    assert wait_edits(str(file), (2, "a"), (3, "b"), False) == ("", [])
    assert wait_edits(str(tmp_path / "none.py"), (2, "a"), (3, "b"), False) == ("", [])


@pl.jit
def lanes_beside_each_other(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed"):
        score = pl.matmul(a[:, :], b[:, :])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            s = pl.aiv_shard(score)
            if lane == 0:
                s = pl.mul(s, 2.0)
            else:
                s = pl.mul(s, 3.0)
            y[:, 0:32] = s
    return y


@pl.jit
def blocks_beside_each_other(x: pl.Tensor[[16, 128], pl.FP32], y: pl.Out[pl.Tensor[[16, 128], pl.FP32]]):
    for b in pl.spmd(4, name_hint="strip"):
        pl.store(pl.exp(pl.load(x, [0, b * 32], [16, 32])), [0, b * 24], y)
    return y


def test_lanes_and_blocks_are_kept_apart_along_the_axis_that_has_room(findings):
    found = findings(lanes_beside_each_other, torch.ones(32, 64), torch.ones(64, 32), torch.zeros(32, 64))
    (overlap,) = [finding for finding in found if finding.kind == "parallel-overlap"]
    assert "columns of its own: add the lane index times 32 to the offset of axis 1 of 'y'" in overlap.suggestion
    found = findings(blocks_beside_each_other, torch.ones(16, 128), torch.zeros(16, 128))
    (overlap,) = [finding for finding in found if finding.kind == "parallel-overlap"]
    assert "at least 32 columns (axis 1 of 'y')" in overlap.suggestion


@pl.jit
def read_by_the_orchestration(x: pl.Tensor[[16, 64], pl.INT32], y: pl.Out[pl.Tensor[[16, 64], pl.INT32]]):
    count = pl.create_tensor([16, 64], dtype=pl.INT32)
    with pl.manual_scope():  # noqa: SIM117 - one manager per with
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
            count = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], count)
    rows = pl.cast(pl.read(count, [0, 0]), pl.INDEX)
    for i in pl.range(0, 16, rows):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
            y = pl.store(pl.load(x, [i, 0], [8, 64]), [i, 0], y)
    return y


@pl.jit
def written_by_the_orchestration(x: pl.InOut[pl.Tensor[[16, 64], pl.INT32]], y: pl.Out[pl.Tensor[[16, 64], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
        y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)
    pl.write(x, [0, 0], pl.const(3, pl.INT32))
    return x, y


@pytest.mark.parametrize(
    ("kernel", "kind", "repair"),
    [
        (read_by_the_orchestration, "raw", "or a task with deps=[...] reads it instead"),
        (
            written_by_the_orchestration,
            "war",
            "readers that declare their parameter pl.InOut only: declare that of 'copy'",
        ),
    ],
)
def test_the_orchestration_is_not_told_to_use_deps(findings, kernel, kind, repair):
    eights = torch.full((16, 64), 8, dtype=torch.int32)
    (finding,) = findings(kernel, eights, torch.zeros_like(eights))
    assert finding.kind == kind and repair in finding.suggestion and "first_id" not in finding.suggestion


_SHARED = """import pypto.language as pl

TILE = pl.Tensor[[16, 64], pl.FP32]


@pl.jit.inline
def fill(x: pl.Tensor[[16, 64], pl.FP32], box: pl.Tensor[[16, 64], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pour"):
        pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], box)
    return box


@pl.jit.inline
def look_at(box: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="look"):
        pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [0, 0], y)


@pl.jit.inline
def clear(x: pl.Tensor[[16, 64], pl.FP32], box: pl.Tensor[[16, 64], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="wipe"):
        pl.store(pl.abs(pl.load(x, [0, 0], [16, 64])), [0, 0], box)
    return box
"""
_ENTRY = """import pypto.language as pl
from {module} import clear, fill, look_at


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    box = fill(x, box)
{reader}
    box = clear(x, box)
    return y
"""
_READERS = {
    "helper": "    look_at(box, y)",
    "own": '    with pl.at(level=pl.Level.CORE_GROUP, name_hint="look"):\n'
    "        pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [0, 0], y)",
}


@pytest.mark.parametrize("reader", _READERS)
def test_helpers_of_another_file_are_edited_there(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = {"shared": _SHARED, "entry": _ENTRY}
    for number in range(3):
        names = {part: f"{part}_{reader}_{number}" for part in texts}
        for part, text in texts.items():
            filled = text.replace("{module}", names["shared"]).replace("{reader}", _READERS[reader])
            (tmp_path / f"{names[part]}.py").write_text(filled, "utf-8")
        importlib.invalidate_caches()
        found = run(loaded(tmp_path / f"{names['entry']}.py", "kernel"), [torch.ones(16, 64), torch.zeros(16, 64)])
        if not found:
            break
        assert [finding.kind for finding in found] == ["war"]
        for part in texts:
            own = [line for line in found[0].suggestion.split("\n") if f"{names[part]}.py:" in line]
            filled = (tmp_path / f"{names[part]}.py").read_text("utf-8")
            texts[part] = pasted(filled, "\n".join(own)).replace(names["shared"], "{module}")
    assert not found and number == 1
