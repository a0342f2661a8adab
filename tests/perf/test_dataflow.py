"""Lifetime edges that the data itself implies: proven by whole in-place updates only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pypto.perf.cli import main
from pypto.perf.graph_text import edges_shown
from pypto.perf.task_graph import TaskGraph, read_task_graph

BUFFER = {"tensor_id": "900", "buffer_addr": "4096", "version": 0, "dtype": "FLOAT32", "buffer_numel": "32"}
WHOLE = {"tensor_id": "900", "dtype": "FLOAT32", "shape": [4, 8], "start_offset": "0", "strides": [8, 1]}


def task(number: int, kind: str, view: dict[str, Any]) -> dict[str, Any]:
    arguments = [{"idx": 0, "type": kind, **view}]
    return {"task_id": str(number), "scope": "auto", "kernel_ids": [-1, 0, -1], "block_num": 1, "args": arguments}


def edge(pred: int, succ: int, source: str, overlap: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"pred": str(pred), "succ": str(succ), "arg": 0, "source": source, "tensor_id": "900"}
    return found | ({"overlap": overlap} if overlap else {})


def updated_in_place(
    folder: Path, *, kind: str = "INOUT", view: dict[str, Any] = WHOLE, overlap: str = "covered"
) -> TaskGraph:
    """0 makes a buffer, 1 updates it, 2 reads it; 0 must stay alive for both."""
    document = {
        "tasks": [task(0, "OUTPUT", {}), task(1, kind, view), task(2, "INPUT", WHOLE)],
        "tensors": [BUFFER],
        "edges": [edge(0, 1, "creator"), edge(0, 2, "creator"), edge(1, 2, "tensormap", overlap)],
    }
    (folder / "deps.json").write_text(json.dumps(document))
    return read_task_graph(folder / "deps.json")


def test_a_whole_update_carries_the_lifetime(tmp_path: Path) -> None:
    graph = updated_in_place(tmp_path)
    assert edges_shown(graph, "reduced") == [(0, 1), (0, 2), (1, 2)]
    assert edges_shown(graph, "reduced_dataflow") == [(0, 1), (1, 2)]
    assert edges_shown(graph, "omitted_dataflow") == [(0, 2)]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "INPUT"},
        {"overlap": "other"},
        {"view": WHOLE | {"shape": [3, 8]}},
        {"view": WHOLE | {"shape": [4, 4]}},
        {"view": WHOLE | {"start_offset": "8", "shape": [4, 8]}},
        {"view": WHOLE | {"strides": [1, 4]}},
        {"view": WHOLE | {"tensor_id": "901"}},
    ],
    ids=["reads-only", "partly-read", "rows-left", "columns-left", "offset", "gaps", "another-buffer"],
)
def test_what_is_not_proven_stays(changes: dict[str, Any], tmp_path: Path) -> None:
    assert edges_shown(updated_in_place(tmp_path, **changes), "reduced_dataflow") == [(0, 1), (0, 2), (1, 2)]


def test_command_counts_what_the_mode_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    updated_in_place(tmp_path)
    for mode in ("reduced_dataflow", "omitted_dataflow"):
        assert main(["deps", str(tmp_path), "--edge-mode", mode]) == 0
        assert f"1 of 3 edges are implied by longer paths ({mode})" in capsys.readouterr().out
    assert "  - 0 -> 2" in (tmp_path / "deps_viewer_omitted_dataflow.txt").read_text()
    assert "REDUCED EDGES\n  - 0 -> 1\n  - 1 -> 2\n" in (tmp_path / "deps_viewer_reduced_dataflow.txt").read_text()
