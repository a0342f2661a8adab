"""The coverage page is what the tables and the tests say today."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto.ir.dtype import FP32
from pypto.ir.operations import coverage

ROOT = Path(__file__).resolve().parents[3]


PAGE = ROOT / "docs" / "coverage.md"


def test_the_page_says_what_the_tables_and_tests_say():
    """New tests do not make the page stale; a changed state, dtype or instruction and a claim without its test do."""
    written = PAGE.read_text(encoding="utf-8")
    expected = coverage.generate(ROOT, keep=coverage.claims(written))
    assert written == expected, "run: python -m pypto.ir.operations.coverage"


def test_claims_are_read_back_from_a_page():
    rows = [
        coverage.Coverage(coverage.Published("pl.tile", "add", "(lhs, rhs)", 3), "runs", test="tests/a.py::test_b"),
        coverage.Coverage(coverage.Published("pl", "const", "(value, dtype)", 1), "construct"),
    ]
    assert coverage.claims(coverage.page(rows)) == {"pl.const": "", "pl.tile.add": "tests/a.py::test_b"}


def test_every_published_name_is_there():
    published = coverage.read_published(ROOT / "docs" / "operations.tsv")
    assert len(published) == 417
    assert not [entry.spelling for entry in published if coverage.cover(entry).state == "missing"]


def test_a_state_follows_from_the_tables():
    def cover(namespace, name):
        return coverage.cover(coverage.Published(namespace, name, "()", 1), "tests/a.py::test_b")

    add = cover("pl.tile", "add")
    assert (add.state, add.instructions, add.test) == ("runs", ("tadd",), "tests/a.py::test_b")
    assert FP32 in add.dtypes
    assert cover("pl.tile", "log").dtypes == tuple(d for d in coverage._DTYPES if d.constant in ("FP16", "FP32"))
    assert cover("pl.tensor", "assemble").state == "placed"
    assert cover("pl", "const").state == "construct"
    assert cover("pl.tile", "ad").state == "missing"


def test_only_tests_that_run_a_kernel_against_torch_count(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    kernel = "def program(x):\n    return pl.tile.exp(pl.load(x))\n\ndef test_it():\n    program(1)\n"
    (folder / "test_a.py").write_text(f"import pypto.language as pl\n{kernel}")
    assert coverage.value_tests(folder) == {}
    (folder / "test_b.py").write_text(f"import torch\nimport pypto.language as pl\n{kernel}")
    assert coverage.value_tests(folder) == dict.fromkeys(("pl.tile.exp", "pl.load"), ["tests/test_b.py::test_it"])


def test_a_damaged_list_is_refused(tmp_path):
    path = tmp_path / "operations.tsv"
    path.write_text("namespace\tname\tsignature\tcalls\npl.tile\tadd\n")
    with pytest.raises(ValueError, match="operations.tsv:2: expected namespace, name, signature, calls"):
        coverage.read_published(path)
