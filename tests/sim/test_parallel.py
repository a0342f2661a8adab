"""Blocks on several threads: when they may run so, and that nobody can tell."""

from __future__ import annotations

import multiprocessing
import os
import threading

import numpy as np
import pytest
from build_directory import arguments

from pypto.sim import OutOfBoundsError, launch
from pypto.sim import parallel as module

MAIN = """orchestration @main {
  param %x : tensor<?x256xfp32> in
  param %y : tensor<?x256xfp32> out
  param %n : scalar<int64>
  param %shift : scalar<int64>
  submit %t, @k, [%x, %y, %shift], [], [1, 3, 0] {blocks = %n}
}"""


def kernel(body: str) -> str:
    return f"""kernel @k aiv {{
      file 0 "k.py"
      param %x : tensor<?x256xfp32> in
      param %y : tensor<?x256xfp32> out
      param %shift : scalar<int64>
      tile %t : vec<16x64xfp32> at 0
      sblockidx %b
      sdiv.index %band, %b, 4
      smul.index %row, %band, 16
      smod.index %column, %b, 4
      smul.index %col, %column, 64
      {body}
    }}"""


COLUMNS = """tload %t, %x, [%row, %col], [16, 64], [16, 64]
  texp %t, %t
  texp %t, %t
  tstore %y, %t, [%row, %col], [16, 64], [16, 64]"""
SHIFTED = """tload %t, %y, [%row, %col], [16, 64], [16, 64]
  tadds %t, %t, 1.0
  sadd.index %to, %row, %shift
  tstore %y, %t, [%to, %col], [16, 64], [16, 64]"""
ELEMENT = "sstore %y, [%row, %col], %b_f\n".replace("%b_f", "1.0")
READS = "sload %v, %x, [%row, 0]\n" + COLUMNS
ATOMIC = """tload %t, %x, [%row, %col], [16, 64], [16, 64]
  tstore %y, %t, [0, 0], [16, 64], [16, 64] {atomic = add}"""


@pytest.fixture
def parts(monkeypatch):
    """Always worth a thread; counts the tasks that were run in parts."""
    counted = []
    original = module.run_parts

    def run_parts(blocks, frames, allocations, first):
        counted.append(len(frames))
        return original(blocks, frames, allocations, first)

    monkeypatch.setattr(launch, "WORTHWHILE_S", 0.0)
    monkeypatch.setattr(launch, "run_parts", run_parts)
    return counted


def run(program, rows, blocks, shift, threads):
    x = np.random.default_rng(3).standard_normal((rows, 256), np.float32)
    y = np.zeros_like(x)
    recording = program.execute(arguments(x, y, blocks, shift), record=True, threads=threads).recording
    return y, recording.digest()


@pytest.mark.parametrize(
    ("body", "shift", "parallel"),
    [
        (COLUMNS, 0, True),  # windows side by side: their byte ranges interleave, their cells do not
        (SHIFTED, 0, True),  # every block reads and writes its own window
        (SHIFTED, 16, False),  # a block reads what the one four places before it writes
        (SHIFTED, 1, False),
        (ELEMENT, 0, True),
        (READS, 0, False),  # a scalar comes from memory
        (ATOMIC, 0, False),
    ],
)
def test_values_and_recording_do_not_depend_on_the_threads(load, parts, body, shift, parallel):
    program = load(MAIN, kernel(body))
    alone = run(program, 96, 20, shift, threads=1)
    assert parts == []
    for threads in (2, 3, 50):
        together = run(program, 96, 20, shift, threads)
        np.testing.assert_array_equal(together[0], alone[0])
        assert together[1] == alone[1]
    assert parts == ([2, 3, 19] if parallel else [])


def test_a_fault_of_the_lowest_block_is_reported(load, parts):
    program = load(MAIN, kernel(COLUMNS))
    messages = set()
    for threads in (1, 2, 4):
        with pytest.raises(OutOfBoundsError) as error:
            run(program, 40, 20, 0, threads)
        messages.add(str(error.value))
    assert len(messages) == 1
    assert "block 8 of 20" in messages.pop()
    assert parts == []


def test_few_or_quick_blocks_stay_on_one_thread(load, monkeypatch):
    monkeypatch.setattr(launch, "run_parts", None)
    monkeypatch.setattr(launch, "WORTHWHILE_S", 3600.0)
    run(load(MAIN, kernel(COLUMNS)), 96, 20, 0, threads=8)
    monkeypatch.setattr(launch, "WORTHWHILE_S", 0.0)
    run(load(MAIN, kernel(COLUMNS)), 96, 2, 0, threads=8)


def test_a_forked_process_has_threads_of_its_own(load, parts):
    """The pool of the parent is there after a fork, its threads are not: a part handed to it would never run."""
    program = load(MAIN, kernel(COLUMNS))
    alone = run(program, 96, 20, 0, threads=3)
    threads = os.cpu_count() or 1
    everybody = threading.Barrier(threads)
    list(module._pool().map(lambda _: everybody.wait(60), range(threads)))  # all have begun and are idle again

    def child() -> None:
        again = run(program, 96, 20, 0, threads=3)
        raise SystemExit(0 if again[1] == alone[1] and np.array_equal(again[0], alone[0]) else 1)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(20)
    process.kill()
    assert parts == [3] and process.exitcode == 0
