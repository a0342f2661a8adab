"""The page: self-contained, escaped, and alive in a browser."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.perf.chip_records import ChipRecords, ChipTask, SchedulerPhase
from pypto.perf.counters import CountersError, read_pipe_use, read_roofline
from pypto.perf.page import page_of, render_page
from pypto.perf.page_inputs import ChipRun, PageContent, find_run_files
from pypto.perf.runs import RunError, RunOptions
from pypto.perf.task_graph import GraphEdge, GraphTask, TaskGraph
from pypto.perf.timeline import timeline_of
from pypto.perf.trace_events import Slice, TraceDocument, nesting_lanes

from .properties import examples

SAMPLES = Path(__file__).parent / "samples"
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine (apt-get install chromium)")
PMU = (
    "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,vec_busy_cycles,cube_busy_cycles,event_type\n"
    "1,8,0x0000000000000000,0,1,1000,600,0,2\n1,8,0x0000000000000001,0,1,3000,1400,0,2\n"
)
ROOFLINE = {
    "peak_flops_per_s": 2e11,
    "peak_bytes_per_s": 1e11,
    "kernels": [{"name": "add", "flops": 1e6, "bytes": 6e6, "time_ns": 90_000}],
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    directory.mkdir()
    for name in ("l3_group.log", "chip_swimlane_records.json", "deps.json"):
        shutil.copy(SAMPLES / name, directory / name)
    (directory / "pmu.csv").write_text(PMU)
    (directory / "roofline.json").write_text(json.dumps(ROOFLINE))
    return directory


def test_logs_of_the_compiler_are_no_logs_of_a_run(run: Path) -> None:
    (run / "report").mkdir()
    hints = run / "report" / "perf_hints.log"
    hints.write_text("[perf_hint PH001] a hint\n")
    os.utime(hints, (2e9, 2e9))
    assert find_run_files(run).log == run / "l3_group.log"
    (run / "l3_group.log").unlink()
    assert find_run_files(run).log is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be"])
def test_a_marker_behind_much_else_is_found(tmp_path: Path, encoding: str) -> None:
    text = "x" * (1 << 20) + "[STRACE] v=1" + "x" * 100
    (tmp_path / "run.log").write_bytes(text.encode(encoding))
    (tmp_path / "later.log").write_text("nothing")
    os.utime(tmp_path / "later.log", (2e9, 2e9))
    assert find_run_files(tmp_path).log == tmp_path / "run.log"


@pytest.fixture
def page(run: Path) -> str:
    return page_of(find_run_files(run), RunOptions(warmup=1))


def test_page_shows_every_part_and_fetches_nothing(page: str) -> None:
    for anchor in ("overview", "tree", "distribution", "ranks", "swimlane", "critical-path", "pipes", "roofline"):
        assert f'<section id="{anchor}"' in page
    assert "`- device_wall [dev]" in html.unescape(page)
    assert "{{" not in page
    outside = re.findall(r"https?://[^\s\"']+", page)
    assert set(outside) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe)\b|\bsrc=|@import|\bfetch\(|XMLHttpRequest", page)


def test_every_rank_has_its_swimlane_and_critical_path(tmp_path: Path) -> None:
    for place in ("rank0/d0", "rank0/d1", "rank1/d0"):
        directory = tmp_path / "dfx_outputs" / place
        directory.mkdir(parents=True)
        for name in ("chip_swimlane_records.json", "deps.json"):
            shutil.copy(SAMPLES / name, directory / name)
    text = page_of(find_run_files(tmp_path), RunOptions())
    for place in ("rank0/d0", "rank0/d1", "rank1/d0"):
        assert f"Chip dfx_outputs/{place}: cores, schedulers, orchestrator</option>" in text
        assert f"[dfx_outputs/{place}] makespan=3.798ms" in text


def test_names_cannot_break_out_of_the_page() -> None:
    evil = "</script><script>alert(1)</script>"
    tasks = [ChipTask(0, 1, 0, "aiv", 0, 10, 20, 0, 30)]
    graph = TaskGraph({0: GraphTask(0, (-1, 0, -1), 1)}, [])
    records = ChipRecords(2, 50_000_000, ["aiv"], tasks)
    text = render_page(PageContent(evil, chips=(ChipRun(evil, records, graph, {0: evil}),)))
    assert "<script>alert" not in text
    data = re.search(r'<script type="application/json" id="run-data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert evil + "(t0)" in json.loads(data[1])["timelines"][0]["names"]


def test_runs_without_anything_to_show_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing to show: expected"):
        find_run_files(tmp_path)
    with pytest.raises(FileNotFoundError):
        find_run_files(tmp_path / "missing")
    empty = tmp_path / "empty.log"
    empty.write_text("no markers\n")
    with pytest.raises(RunError, match="no launch found"):
        page_of(find_run_files(empty), RunOptions())


def test_pipe_use_and_roofline_recordings(tmp_path: Path) -> None:
    path = tmp_path / "pmu.csv"
    path.write_text(PMU)
    (use,) = read_pipe_use(path, {0: "add"})
    assert (use.kernel, use.tasks, use.cycles, use.shares) == ("add", 2, 4000, {"vec": 0.5, "cube": 0.0})
    assert read_pipe_use(SAMPLES / "pmu.csv", {}) == []
    path.write_text(PMU.replace("3000", "x"))
    with pytest.raises(CountersError, match=r"pmu.csv:3: not a row of counters"):
        read_pipe_use(path, {})
    path.write_text("a,b\n")
    with pytest.raises(CountersError, match="columns missing"):
        read_pipe_use(path, {})
    path.write_text(json.dumps(ROOFLINE))
    (kernel,) = read_roofline(path).kernels
    assert kernel.intensity == pytest.approx(1 / 6)
    assert kernel.flops_per_s == pytest.approx(1e6 / 90e-6)
    for wrong in ("{}", '{"bounds_ns": {"HBM": 3}}', '{"bounds_ns": 3, "effective_ns": 9}', "[]"):
        path.write_text(wrong)
        with pytest.raises(CountersError, match="not a roofline recording"):
            read_roofline(path)


def test_bounds_per_resource_are_shown_against_the_launch(run: Path) -> None:
    bounds = {"effective_ns": 10_000, "bounds_ns": {"vector": 2_500.0, "GM->UB": 7_500.0}}
    (run / "roofline.json").write_text(json.dumps(bounds))
    page = page_of(find_run_files(run), RunOptions())
    assert "GM-&gt;UB alone needs 7.5 us of the 10.0 us that the launch took (75.0%)" in page
    assert 'roofline-chart"' not in page.split("<script")[0]
    (run / "roofline.json").write_text(json.dumps(ROOFLINE | bounds))
    both = page_of(find_run_files(run), RunOptions())
    assert "GM-&gt;UB alone needs" in both
    assert 'id="roofline-chart"' in both


def test_overview_agrees_with_the_distribution_and_names_what_is_left_out(run: Path) -> None:
    """Four rounds: the median lies between two of them."""
    page = page_of(find_run_files(run), RunOptions())
    assert "<dt>host median, us</dt><dd>324,492.2</dd>" in page
    assert "the newest of" not in page
    (run / "older.log").write_text("[STRACE] v=1 pid=1 tid=1 inv=1 hid=1 depth=0 name=chip.run ts=1 dur=1\n")
    os.utime(run / "older.log", (0, 0))
    page = page_of(find_run_files(run), RunOptions())
    assert "l3_group.log is the newest of 2 logs; the others are not shown." in page


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30))
@examples()
def test_rows_of_a_timeline_hold_disjoint_bars(raw: list[tuple[int, int]]) -> None:
    lanes = nesting_lanes([(start, start + size) for start, size in raw])
    slices = [Slice(f"n{size}", 1, lane, start, size) for lane, (start, size) in zip(lanes, raw)]
    timeline = timeline_of(TraceDocument(slices=slices), "x")
    assert len(timeline.row) == len(slices)
    bars = sorted(zip(timeline.row, timeline.start, timeline.dur))
    assert all(a[0] != b[0] or a[1] + a[2] <= b[1] or not a[2] or not b[2] for a, b in pairwise(bars))


def dump_dom(page: str, tmp_path: Path, *, fragment: str = "", script: str = "", flags: tuple[str, ...] = ()) -> str:
    """The document after its scripts ran, with an optional script of the test's own at the end."""
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>") if script else page)
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1200",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=4000", *flags, "--dump-dom",
        f"file://{path}{fragment}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return html.unescape(done.stdout)


@needs_browser
def test_browser_shows_tree_swimlane_and_a_search_hit(page: str, tmp_path: Path) -> None:
    dom = dump_dom(page, tmp_path, fragment="#search=func_1")
    assert "`- device_wall [dev]" in dom
    assert "hit 1 of 4: func_1_b(r1t1)" in dom
    assert "waits for: func_0_a(t0); feeds: func_2_c(r1t2)" in dom
    canvas = re.search(r"<canvas[^>]*>", dom)
    assert canvas is not None
    assert 'data-arrows="2"' in canvas[0]
    assert int(re.search(r'data-drawn="(\d+)"', canvas[0])[1]) > 3  # type: ignore[index]
    assert dom.count('class="point"') >= 4


KEYBOARD = """
const log = [], canvas = document.getElementById("lane-canvas"), search = document.getElementById("lane-search");
const press = (target, key, more = {}) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const status = () => document.getElementById("lane-status").textContent;
const detail = () => document.getElementById("lane-detail").textContent.split("\\n")[0];
press(document.body, "/"); log.push(document.activeElement.id);
search.value = "func_1"; search.dispatchEvent(new Event("input")); log.push(status());
press(search, "Enter"); log.push(status());
press(search, "Enter", { shiftKey: true }); log.push(status());
press(search, "Escape"); log.push(document.activeElement.id, status());
const before = lanes.to - lanes.from;
press(canvas, "+"); log.push(lanes.to - lanes.from < before);
const from = lanes.from; press(canvas, "ArrowRight"); log.push(lanes.from > from);
press(canvas, "0"); log.push(lanes.from === 0);
press(canvas, "]"); const first = detail(); press(canvas, "["); log.push(detail() !== first);
press(canvas, "ArrowDown"); log.push(detail());
press(canvas, "Escape"); log.push(detail());
document.body.append(Object.assign(document.createElement("pre"), { id: "log", textContent: JSON.stringify(log) }));
"""


@needs_browser
def test_browser_is_driven_by_keyboard(page: str, tmp_path: Path) -> None:
    dom = dump_dom(page, tmp_path, script=KEYBOARD)
    log = json.loads(re.search(r'<pre id="log">(.*?)</pre>', dom, re.DOTALL)[1])  # type: ignore[index]
    assert log[:4] == [
        "lane-search",
        "hit 1 of 4: func_1_b(r1t1)",
        "hit 2 of 4: func_1_b(r1t0)",
        "hit 1 of 4: func_1_b(r1t1)",
    ]
    assert log[4] == "lane-canvas"
    assert log[5].endswith("arrows")
    assert log[6:10] == [True, True, True, True]
    assert " on " in log[10]
    assert log[11] == "Nothing selected."


THEME = """
const shades = [], button = document.getElementById("theme");
for (let i = 0; i < 2; i++) { shades.push(getComputedStyle(document.body).backgroundColor); button.click(); }
document.body.append(Object.assign(document.createElement("pre"), { id: "log", textContent: JSON.stringify(shades) }));
"""


@needs_browser
def test_browser_shows_light_and_dark(page: str, tmp_path: Path) -> None:
    dom = dump_dom(page, tmp_path, script=THEME)
    light, dark = json.loads(re.search(r'<pre id="log">(.*?)</pre>', dom, re.DOTALL)[1])  # type: ignore[index]
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(20, 22, 26)")


def large_run(tasks: int) -> tuple[ChipRecords, TaskGraph]:
    """Tasks back to back on 24 cores with one scheduler phase each: three slices per task."""
    cores, rows, phases = 24, [], []
    for task in range(tasks):
        start = 1_000 * (task // cores) + 10
        rows.append(ChipTask(task, task, task % cores, "aiv", start, start + 50, start + 900, start - 5, start + 950))
        phases.append(SchedulerPhase(0, "dispatch", 40 * task, 40 * task + 20, task, 1))
    graph = TaskGraph(
        {t: GraphTask(t, (-1, t % 7, -1), 1) for t in range(tasks)},
        [GraphEdge(t - cores, t, "creator") for t in range(cores, tasks)],
    )
    records = ChipRecords(3, 50_000_000, ["aiv"] * cores, rows, [phases], core_to_thread=[0] * cores)
    return records, graph


@needs_browser
def test_browser_copes_with_a_hundred_thousand_slices(tmp_path: Path) -> None:
    records, graph = large_run(33_334)
    text = render_page(PageContent("large", chips=(ChipRun("large", records, graph),)))
    timing = """
const begin = performance.now();
for (let i = 0; i < 10; i++) { lanes.zoom(0.7); lanes.move(0.1); }
lanes.find("t33333");
const spent = Math.round(performance.now() - begin);
document.body.append(Object.assign(document.createElement("pre"), { id: "log", textContent: spent }));
"""
    dom = dump_dom(text, tmp_path, script=timing)
    assert "hit 1 of 2: func_6_g(t33333)" in dom
    assert re.search(r'<pre id="log">\d+</pre>', dom)
    assert text.count('"dur"') == 1
    data = json.loads(re.search(r'id="run-data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert len(data["timelines"][0]["row"]) >= 100_000
