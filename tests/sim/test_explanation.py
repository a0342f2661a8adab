"""Why one of two kernels is faster: the class, the instruction and the tasks that the reason is known to be in."""

import html
import re
from pathlib import Path

import pytest
import rich
import torch

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim import DeviceState, chip, compare, explain, record
from pypto.sim.explanation.text import MEANING
from pypto.sim.timing.critical import CLASSES
from pypto.validation.writer import Kernel, Launch

SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()
ROWS, COLS = 512, 128
ARGUMENTS = [torch.ones(ROWS, COLS), torch.zeros(ROWS, COLS)]
Matrix = pl.Tensor[[ROWS, COLS], pl.FP32]


def streamed(stage):
    """One task that streams through its rows with ``stage`` buffers."""

    @pl.jit
    def stream(x: Matrix, y: pl.Out[Matrix]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="stream"):
            for r in pl.pipeline(0, ROWS, 32, stage=stage):
                y[r : r + 32, :] = pl.exp(x[r : r + 32, :])
        return y

    return recorded(stream)


def recorded(kernel):
    return record(kernel.compile(*ARGUMENTS, config=RunConfig(platform="a2a3")), ARGUMENTS)


@pl.jit
def many_tasks(x: Matrix, y: pl.Out[Matrix]):
    for r in pl.parallel(0, ROWS, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
            y[r : r + 16, :] = pl.exp(x[r : r + 16, :])
    return y


@pl.jit
def one_task(x: Matrix, y: pl.Out[Matrix]):
    for i in pl.spmd(32, name_hint="rows"):
        y[i * 16 : i * 16 + 16, :] = pl.exp(x[i * 16 : i * 16 + 16, :])
    return y


@pl.jit
def chain(x: Matrix, y: pl.Out[Matrix]):
    once = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
    for i in pl.spmd(4, name_hint="first"):
        once[i * 128 : i * 128 + 128, :] = pl.exp(x[i * 128 : i * 128 + 128, :])
    for i in pl.spmd(4, name_hint="second"):
        y[i * 128 : i * 128 + 128, :] = pl.exp(once[i * 128 : i * 128 + 128, :])
    return y


def test_a_second_buffer_hides_transfers():
    difference = compare(streamed(1), streamed(2))
    changes = {change.name: change.change_us for change in difference.classes()}
    assert changes["GM->UB"] + changes["UB->GM"] == pytest.approx(difference.effective.change_us, rel=0.2)
    assert [change.name for change in difference.instructions("GM->UB")] == ["tload"]
    assert sum(changes.values()) == pytest.approx(difference.effective.change_us, abs=0.001)


def test_a_barrier_is_explained_by_the_block_that_comes_last():
    def block(before, behind):
        k = Kernel(f"work{before}")
        tile = k.tile(64, 64)
        for _ in range(before):
            k.do("texp", [tile], [tile])
        k.do("syncall", report=(0, 0, 0, 0), pipe="S")
        for _ in range(behind):
            k.do("tadd", [tile], [tile, tile])
        return k

    launch = Launch()
    launch.submit([block(4, 80), block(400, 1), block(4, 80)])
    explanation = explain(launch.recording())
    busy = explanation.timeline.core_pipe_busy_us()
    instructions = explanation.instruction_us("vector")
    # the scalar unit arrives when its queue of 32 has taken the last instruction before the barrier
    assert instructions["texp"] == pytest.approx((400 - 32) / 400 * busy["aiv1"]["V"], rel=0.02), "the last to arrive"
    assert instructions["tadd"] > 0.5 * busy["aiv0"]["V"], "the work behind the barrier of one that waited"
    assert explanation.class_us()["scalar"] < 3.0, "the barrier itself takes a microsecond"


def test_blocks_of_one_task_move_time_from_the_orchestrator_to_the_scheduler():
    difference = compare(recorded(many_tasks), recorded(one_task))
    changes = {change.name: change.change_us for change in difference.classes()}
    assert difference.classes()[0].name == "orchestrator" and changes["orchestrator"] < 0 < changes["scheduler"]
    text = str(difference)
    assert f"less: orchestrator, {MEANING['orchestrator']}" in text and "more: scheduler" in text
    assert set(difference.after.place_us("scheduler")) <= {"dispatch", "pick-up", "next block", "notice"}


def test_tasks_on_the_path_and_lines_of_the_source():
    explanation = explain(recorded(chain))
    assert explanation.path_tasks() == [("first", 1), ("second", 1)]
    lines = {step.line for step in explanation.steps if step.what in ("tload", "texp", "tstore")}
    assert lines == {line for line, text in enumerate(SOURCE, 1) if re.search(r"128, :\] = pl.exp", text)}
    assert {name.split(":")[0] for name in explanation.place_us("GM->UB")} == {"first", "second"}


def test_the_table_adds_up_and_says_where():
    text = str(explain(recorded(chain)))
    rows = re.findall(r"^(\S+) +(\d+\.\d\d) +\d+\.\d%  (.*)$", text, re.M)
    whole = float(re.search(r"effective (\S+) us", text)[1])
    assert sum(float(us) for _, us, _ in rows) == pytest.approx(whole, abs=0.1)
    assert all(where for _, _, where in rows) and "tasks on the path: first -> second" in text


def test_the_same_launch_twice_differs_in_nothing():
    recording = recorded(chain)
    text = str(compare(recording, recording))
    assert (
        "us, the same" in text
        and "less:" not in text
        and "more:" not in text
        and "-0.00" not in text
        and not re.search(r"[+-]\d+\.(?!00)\d\d$", text, re.M)
    )


def test_another_chip_and_a_warm_cache_are_explained_first():
    recording, state = recorded(chain), DeviceState()
    recording.time(state=state)
    kept = state.copy()
    warm, cold = explain(recording, state=state), explain(recording)
    assert warm.timeline.effective_us < cold.timeline.effective_us
    assert recording.time(state=state).effective_us == recording.time(state=kept).effective_us, "the state stays"
    slower = explain(recording, chip("a2a3").replace(clock_mhz=900))
    assert compare(cold, slower).effective.change_us > 0


def test_tasks_on_no_core_and_launches_without_tasks():
    @pl.jit
    def fenced(x: Matrix, y: pl.Out[Matrix]):
        once = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as tid:
                once[0:64, :] = pl.exp(x[0:64, :])
            gate = pl.system.task_dummy(deps=[tid])
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="second", deps=[gate]):
                y[0:64, :] = pl.exp(once[0:64, :])
        return y

    explanation = explain(recorded(fenced))
    assert [name for name, _ in explanation.path_tasks()] == ["first", "dummy", "second"]
    idle = explain(Launch().recording())
    assert set(idle.class_us()) == {"orchestrator"} and "tasks on the path: none" in str(idle)
    assert compare(idle, explanation).effective.change_us > 0


def test_steps_are_a_frame_without_gaps():
    explanation = explain(recorded(chain))
    frame = explanation.to_pandas()
    assert frame.us.sum() == pytest.approx(explanation.timeline.effective_us)
    assert list(compare(explanation, explanation).to_pandas().change_us) == [0.0] * len(explanation.class_us())


def test_notebooks_and_rich_show_the_same_table(capsys):
    difference = compare(recorded(chain), recorded(one_task))
    assert difference._repr_html_() == f"<pre>{html.escape(str(difference))}</pre>"
    rich.print(explain(recorded(chain)))
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines()) and "tasks on the path: first -> second" in shown


def test_every_class_is_told_in_words():
    assert set(MEANING) == set(CLASSES)


def test_what_is_no_recording_is_named():
    with pytest.raises(TypeError, match=r"explain takes what pypto.sim.record gives, got Timeline"):
        explain(recorded(chain).time())
    with pytest.raises(TypeError, match="got str"):
        compare(recorded(chain), "run.npz")
    with pytest.raises(TypeError, match="description such as"):
        explain(recorded(chain), "a5")
