"""One load serves every use of a window until something writes the tensor (docs/compiler.md, PlaceTensors)."""

import pytest
import torch
from round_trip import random, run_everywhere

import pypto.language as pl
from pypto import ir

ROWS, COLS = 32, 64
HEAD = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{ROWS}, {COLS}], pl.FP32], h: pl.InOut[pl.Tensor[[{ROWS}, {COLS}], pl.FP32]],
             y: pl.Out[pl.Tensor[[{ROWS}, {COLS}], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
"""


def program(body):
    lines = "".join(f"            {line}\n" for line in body.strip("\n").split("\n"))
    return pl.parse(HEAD + lines + "        return h, y\n")


def loads(source, tmp_path):
    """How often a kernel's text loads."""
    compiled = ir.compile(source, output_dir=tmp_path, platform="a2a3sim", dump_passes=False)
    return sum(text.read_text().count("tload ") for text in compiled.output_dir.glob("kernels/*/*.pto"))


SOFTMAX = """
t = x[:, :]
e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
y[:] = pl.row_expand_div(e, pl.row_sum(e))
h[:] = e
"""
TWICE_IN_A_CALL = """
y[:] = pl.add(x, x)
h[:] = x
"""
BEFORE_AND_IN_A_LOOP = """
t = x[0:8, :]
m = pl.exp(t)
for i in pl.range(0, 32, 8):
    y[i : i + 8, :] = pl.add(m, t)
h[0:8, :] = m
"""
IN_BOTH_BRANCHES = """
t = x[0:8, :]
m = pl.exp(t)
for i in pl.range(0, 32, 8):
    if i > 8:
        y[i : i + 8, :] = pl.add(m, t)
    else:
        y[i : i + 8, :] = pl.sub(m, t)
h[0:8, :] = m
"""
OTHER_WINDOWS = """
y[0:16, :] = pl.add(x[0:16, :], x[16:32, :])
y[16:32, :] = pl.mul(x[0:16, :], x[16:32, :])
h[:] = y[:, :]
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [(SOFTMAX, 1), (TWICE_IN_A_CALL, 2), (BEFORE_AND_IN_A_LOOP, 1), (IN_BOTH_BRANCHES, 1), (OTHER_WINDOWS, 3)],
)
def test_a_window_is_loaded_once(body, count, tmp_path):
    assert loads(program(body), tmp_path) == count


WRITTEN_BETWEEN = """
t = h[0:16, :]
h[0:16, :] = pl.add(t, 1.0)
y[0:16, :] = pl.mul(t, 2.0)
y[16:32, :] = t
"""
WRITTEN_LATER_IN_THE_LOOP = """
t = h[0:8, :]
y[0:8, :] = pl.mul(t, 3.0)
for i in pl.range(8, 32, 8):
    y[i : i + 8, :] = pl.mul(t, 2.0)
    h[0:8, :] = pl.add(y[i : i + 8, :], 1.0)
"""
WRITTEN_IN_A_BRANCH = """
t = h[0:8, :]
y[0:8, :] = pl.mul(t, 3.0)
for i in pl.range(8, 32, 8):
    if i > 8:
        h[0:8, :] = pl.add(x[i : i + 8, :], 1.0)
    y[i : i + 8, :] = pl.mul(t, 2.0)
"""
WRITTEN_BY_ELEMENT = """
t = h[0:8, :]
y[0:8, :] = pl.mul(t, 3.0)
pl.write(h, [2, 3], 7.0)
y[8:16, :] = pl.mul(t, 3.0)
y[16:32, :] = x[16:32, :]
"""
ADDED_ATOMICALLY = """
t = h[0:8, :]
y[0:8, :] = pl.mul(t, 3.0)
h = pl.assemble(h, x[0:8, :], [0, 0], atomic=pl.AtomicType.Add)
y[8:16, :] = pl.mul(t, 3.0)
y[16:32, :] = x[16:32, :]
"""


def reference(body, x, h):
    """What the lines do with views of torch tensors."""
    y = torch.zeros_like(h)
    if body == WRITTEN_BETWEEN:
        h[0:16] += 1
        y[0:16], y[16:32] = h[0:16] * 2, h[0:16]
    elif body == WRITTEN_LATER_IN_THE_LOOP:
        y[0:8] = h[0:8] * 3
        for i in range(8, 32, 8):
            y[i : i + 8] = h[0:8] * 2
            h[0:8] = y[i : i + 8] + 1
    elif body == WRITTEN_IN_A_BRANCH:
        y[0:8] = h[0:8] * 3
        for i in range(8, 32, 8):
            if i > 8:
                h[0:8] = x[i : i + 8] + 1
            y[i : i + 8] = h[0:8] * 2
    else:
        y[0:8], y[16:32] = h[0:8] * 3, x[16:32]
        if body == WRITTEN_BY_ELEMENT:
            h[2, 3] = 7.0
        else:
            h[0:8] += x[0:8]
        y[8:16] = h[0:8] * 3
    return h, y


@pytest.mark.parametrize(
    "body",
    [WRITTEN_BETWEEN, WRITTEN_LATER_IN_THE_LOOP, WRITTEN_IN_A_BRANCH, WRITTEN_BY_ELEMENT, ADDED_ATOMICALLY],
)
def test_what_was_written_is_loaded_anew(body):
    x, h = random(ROWS, COLS, seed=1), random(ROWS, COLS, seed=2)
    found = run_everywhere(program(body), x, h, torch.zeros(ROWS, COLS))
    for have, want in zip(found[1:], reference(body, x, h.clone())):
        torch.testing.assert_close(have, want, rtol=1e-6, atol=1e-6)


IN_PLACE = """
t = x[:, :]
m = pl.row_max(t)
c = pl.set_validshape(t, 8, 64)
s = pl.fillpad(c, pad_value=pl.PadValue.zero)
y[:] = s
h[:] = pl.row_expand_sub(t, m)
"""


def test_what_changes_a_tile_in_place_has_its_own():
    x = random(ROWS, COLS, seed=1)
    _, h, y = run_everywhere(program(IN_PLACE), x, torch.zeros(ROWS, COLS), torch.zeros(ROWS, COLS))
    assert torch.equal(h, x - x.amax(1, keepdim=True))
    assert torch.equal(y[:8], x[:8]) and not y[8:].any()


def test_where_a_buffer_cannot_live_so_long_the_window_is_loaded_again(tmp_path):
    text = """@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[192, 128], pl.FP32], w: pl.Tensor[[1, 128], pl.FP32],
             y: pl.Out[pl.Tensor[[192, 128], pl.FP32]], z: pl.Out[pl.Tensor[[1, 128], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            top = pl.col_max(x)
            low = pl.col_min(pl.exp(x))
            z[:] = pl.sub(top, low)
            y[:] = pl.col_expand_mul(x, w)
        return y, z
"""
    source = pl.parse(text)
    assert loads(source, tmp_path) > 2
    x, w = random(192, 128, seed=1), random(1, 128, seed=2)
    found = run_everywhere(source, x, w, torch.zeros(192, 128), torch.zeros(1, 128))
    torch.testing.assert_close(found[2], x * w)


@pl.jit
def gate_and_up(x: pl.Tensor, wg: pl.Tensor, wu: pl.Tensor, g: pl.Out[pl.Tensor], u: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        g[:] = pl.matmul(x, wg, out_dtype=pl.FP32)
        u[:] = pl.matmul(x, wu, out_dtype=pl.FP32)
    return g, u


def test_an_operand_of_two_products_is_loaded_once(tmp_path):
    x, wg, wu = (random(*shape, seed=s, dtype=torch.bfloat16) for s, shape in enumerate([(32, 64), (64, 32), (64, 32)]))
    g, u = torch.zeros(32, 32), torch.zeros(32, 32)
    lowered = gate_and_up.lower(x, wg, wu, g, u)
    assert loads(lowered, tmp_path) == 3
    _, _, _, g, u = run_everywhere(lowered, x, wg, wu, g, u)
    torch.testing.assert_close(u, x.float() @ wu.float(), rtol=1e-4, atol=1e-4)
