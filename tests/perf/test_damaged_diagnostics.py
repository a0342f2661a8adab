"""Swimlane records and task graphs with a value of a wrong kind: one line that names the file, never a traceback."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto.perf.chip_records import ChipRecordsError, records_of
from pypto.perf.cli import main
from pypto.perf.task_graph import TaskGraphError, read_kernel_names

SAMPLES = Path(__file__).parent / "samples"
FILES = ("chip_swimlane_records.json", "deps.json")
WRONG = (None, -1, 0, "x", [], {}, 3.5, "18446744073709551616")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys that lead to every value inside a document."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


DOCUMENTS = {name: json.loads((SAMPLES / name).read_text()) for name in FILES}
DAMAGE = st.one_of(
    *(st.tuples(st.just(name), st.sampled_from(sorted(places(DOCUMENTS[name]), key=repr))) for name in FILES)
)


def damaged(name: str, place: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(DOCUMENTS[name])
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


@given(DAMAGE, st.sampled_from(WRONG))
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_command_answers_or_names_the_file(tmp_path: Path, damage: tuple[str, Any], value: Any) -> None:
    for name in FILES:
        shutil.copy(SAMPLES / name, tmp_path / name)
    name, place = damage
    (tmp_path / name).write_text(json.dumps(damaged(name, place, value)))
    folder = str(tmp_path)
    for command in (
        ["swimlane", folder, "--overhead"],
        ["sched-overhead", "--chip-swimlane-records-json", folder],
        ["deps", folder, "-o", "-", "--edge-mode", "reduced_dataflow"],
        ["deps", folder, "-o", "-"],
        ["html", folder, "-o", str(tmp_path / "page.html")],
    ):
        assert main(command) in (0, 1)


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_block_is_named_with_its_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = "metadata" if name == FILES[0] else "tasks"
    for other in FILES:
        shutil.copy(SAMPLES / other, tmp_path / other)
    (tmp_path / name).write_text(json.dumps(damaged(name, (block,), [3.5])))
    assert main(["swimlane", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {tmp_path / name}: ")


def test_an_unknown_kind_of_core_is_refused() -> None:
    with pytest.raises(ChipRecordsError, match=r"core_types\[1\] is 'gpu': expected 'aic' or 'aiv'"):
        records_of(damaged(FILES[0], ("metadata", "core_types", 1), "gpu"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module\n", "it does not run: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "it does not run: SystemExit(3)"),
        ("NAMES = []\n", "no kernel names"),
        ("KERNELS = [{'func_id': 'x', 'name': 'add'}]\n", "no kernel names"),
    ],
)
def test_a_kernel_config_that_cannot_be_used_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "kernel_config.py").write_text(text)
    with pytest.raises(TaskGraphError, match=re.escape(f"kernel_config.py: {message}")):
        read_kernel_names(tmp_path / "kernel_config.py")


def test_names_that_are_no_text_are_shown_as_such(tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text('{"callable_id_to_name": {"0": 5, "1": null}}')
    assert read_kernel_names(tmp_path / "names.json") == {0: "5", 1: "None"}
