"""Cube cores while vector cores move data between chips (spec hardware 10; timings C1)."""

import numpy as np
import pytest

from pypto.sim.chips import chip
from pypto.sim.layout import TRACE_PC
from pypto.sim.timing import DeviceState, time_ranks
from pypto.validation.writer import AIC, Kernel, Launch

A2A3, A5 = chip("a2a3"), chip("a5")
PIECE_PS = 10_000_000


def product(block, steps, multiplies=4):
    """Steps of 256 over k of a product of 256 x 128: two slots in L1, ``multiplies`` of 64 in each step."""
    k = Kernel("product", AIC)
    lhs = [k.tile(256, 256, "fp16", "mat") for _ in range(2)]
    rhs = [k.tile(256, 128, "fp16", "mat") for _ in range(2)]
    left = [k.tile(256, 64, "fp16", "left") for _ in range(2)]
    right = [k.tile(64, 128, "fp16", "right") for _ in range(2)]
    acc = k.tile(256, 128, "fp32", "acc")
    for step in range(steps):
        at, s = block * 2**19 + step % 2 * 2**18, step % 2
        k.load(lhs[s], at)
        k.load(rhs[s], at + 2**17)
        for i in range(multiplies):
            k.do("textract", [left[i % 2]], [lhs[s]])
            k.do("textract", [right[i % 2]], [rhs[s]])
            k.matmul(acc, left[i % 2], right[i % 2], step == i == 0)
    return k


def reader(pieces, pipe="MTE2"):
    k = Kernel("reader")
    tile = k.tile(64, 256)
    for _ in range(pieces):
        k.do("tremote_load", [tile], pipe=pipe)
    return k


def cubes_us(target, readers, pieces=40, steps=150, multiplies=4):
    """How long the cubes work, and from when to when everybody's vector cores move data (us)."""
    run = Launch()
    if readers:
        run.submit([reader(pieces) for _ in range(readers)], name="reader")
    run.submit([product(block, steps, multiplies) for block in range(target.clusters)], name="product")
    recording = run.recording()
    told = np.zeros(len(recording.trace), np.int64)
    for subtask, program in enumerate(recording.subtask_program):
        if recording.programs[program].name == "reader":
            rows = slice(recording.subtask_trace_start[subtask], recording.subtask_trace_stop[subtask])
            told[rows] = np.where(recording.trace[rows, TRACE_PC] >= 0, PIECE_PS, 0)
    timeline, _, _ = time_ranks(recording, target, DeviceState(), told)
    ends: dict[str, float] = {}
    for record in timeline.records():
        ends[record.name] = max(ends.get(record.name, 0.0), record.end_ns / 1000)
    start = min(record.start_ns for record in timeline.records() if record.name == "product") / 1000
    return ends["product"] - start, ends.get("reader", 0.0) - start


@pytest.mark.parametrize("multiplies", [0, 4])
def test_all_vector_cores_slow_the_cubes_by_the_published_share(multiplies):
    """Published: 24 % with 48 of 48 (hardware 10), nothing with 24 of 48 (timings C1: 367.2 us beside 368.1)."""
    alone, _ = cubes_us(A2A3, 0, multiplies=multiplies)
    half, over = cubes_us(A2A3, 24, multiplies=multiplies)
    assert over > half and half == pytest.approx(alone, rel=0.02)
    whole, over = cubes_us(A2A3, 48, multiplies=multiplies)
    assert over > whole and whole / alone == pytest.approx(1.24, abs=0.03)


def test_the_published_slowdown_of_the_other_chip():
    """24 of 64: 343.0 beside 316.9 us and 326.7 beside 312.0 us (timings C1)."""
    alone, _ = cubes_us(A5, 0)
    busy, over = cubes_us(A5, 24)
    assert over > busy and 1.047 - 0.03 < busy / alone < 1.082 + 0.03


@pytest.mark.parametrize("pieces", [5, 10, 15])
@pytest.mark.parametrize("multiplies", [0, 4])
def test_only_the_time_in_which_both_happen_is_longer(pieces, multiplies):
    alone, _ = cubes_us(A2A3, 0, multiplies=multiplies)
    busy, over = cubes_us(A2A3, 48, pieces, multiplies=multiplies)
    assert over < busy
    assert busy - alone == pytest.approx(over * (1 - 1 / 1.24), abs=3.0)


def test_more_cores_never_make_the_cubes_faster():
    times = [cubes_us(A2A3, readers, steps=60, multiplies=0)[0] for readers in range(24, 49, 6)]
    assert times == sorted(times) and times[-1] > times[0]
