"""The pages about the kinds: the report is what the faulty program prints, and the repaired one prints none."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pypto.sim import CheckError
from pypto.sim.checks.selection import KINDS

PAGES = Path(__file__).resolve().parents[3] / "docs" / "checks"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def report_of(source: str, folder: Path, kind: str) -> str:
    """What a program of a page reports, with file names relative to its folder."""
    script = folder / f"{kind.replace('-', '_')}.py"
    script.write_text(source, "utf-8")
    try:
        runpy.run_path(str(script), run_name="__main__")
    except CheckError as error:
        return "\n".join(str(finding) for finding in error.findings).replace(f"{folder}/", "")
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_on_a_page_is_what_is_printed(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = _BLOCK.findall((PAGES / f"{kind}.md").read_text("utf-8"))
    assert [language for language, _ in blocks] == ["python", "", "python"]
    faulty, report, repaired = (text for _, text in blocks)
    (tmp_path / "faulty").mkdir()
    (tmp_path / "repaired").mkdir()
    # numbers of workers count on within a process
    assert _numbered(report_of(faulty, tmp_path / "faulty", kind)) == _numbered(report.rstrip("\n"))
    assert report_of(repaired, tmp_path / "repaired", kind) == ""


def _numbered(report: str) -> str:
    numbers: dict[str, str] = {}
    return re.sub(
        r"ChipWorker (\d+)", lambda m: f"ChipWorker {numbers.setdefault(m[1], str(len(numbers) + 1))}", report
    )
