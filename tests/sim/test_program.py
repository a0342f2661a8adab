"""Build directories from text to values."""

from __future__ import annotations

import numpy as np
import pytest
from build_directory import arguments, write_build

from pypto.sim.program import load_program

ADD = """kernel @add aiv {
  param %a : tensor<?x64xfp32> in
  param %b : tensor<?x64xfp32> in
  param %c : tensor<?x64xfp32> out
  tile %t0 : vec<16x64xfp32> at 0
  tile %t1 : vec<16x64xfp32> at 4096
  dim %rows, %a, 0
  for %i = 0 to %rows step 16 {
    ssub.index %left, %rows, %i
    smin.index %valid, %left, 16
    tload %t0, %a, [%i, 0], [16, 64], [%valid, 64]
    tload %t1, %b, [%i, 0], [16, 64], [%valid, 64]
    tadd %t0, %t0, %t1
    tstore %c, %t0, [%i, 0], [16, 64], [%valid, 64]
  }
}
"""
MAIN = """orchestration @main {
  param %a : tensor<?x64xfp32> in
  param %b : tensor<?x64xfp32> in
  param %c : tensor<?x64xfp32> out
  scope
  submit %t, @add, [%a, %b, %c], [], [1, 1, 3]
  endscope
}
"""


@pytest.mark.parametrize("rows", [16, 48, 50, 1])
def test_tail_of_a_loop_stores_its_valid_rows_only(load, rows):
    program = load(MAIN, ADD)
    generator = np.random.default_rng(rows)
    a, b = (generator.standard_normal((rows, 64), np.float32) for _ in range(2))
    c = np.zeros_like(a)
    program.execute(arguments(a, b, c))
    np.testing.assert_array_equal(c, a + b)


def test_an_edited_text_takes_effect_on_the_next_load(tmp_path):
    directory = write_build(tmp_path, MAIN, ADD)
    a, b, c = np.full((16, 64), 3, np.float32), np.full((16, 64), 2, np.float32), np.zeros((16, 64), np.float32)
    load_program(directory).execute(arguments(a, b, c))
    assert (c == 5).all()
    path = directory / "kernels" / "aiv" / "add.pto"
    path.write_text(path.read_text().replace("tadd ", "tmul "))
    load_program(directory).execute(arguments(a, b, c))
    assert (c == 6).all()


def test_parameters_of_the_program(load):
    program = load(MAIN, ADD)
    assert program.name == "main"
    assert [(p.name, p.kind, p.direction, p.shape) for p in program.params] == [
        ("a", "tensor", "in", (-1, 64)),
        ("b", "tensor", "in", (-1, 64)),
        ("c", "tensor", "out", (-1, 64)),
    ]
    assert list(program.kernels) == ["add"]
