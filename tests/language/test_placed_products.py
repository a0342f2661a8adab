"""A product put into one place of a stack, or taken out of one, stays on the cube's side (spec ops 12, 13)."""

import pytest
import torch

import pypto.language as pl
from pypto.ir.errors import CompileError
from pypto.runtime import RunConfig

SIZES = [(32, 64, 48), (512, 64, 512)]
"""A product that the accumulator holds, and one that is computed while it is stored."""


@pl.jit
def into_the_stack(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    for i in pl.parallel(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            c[i] = pl.matmul(a[i], b[i], out_dtype=pl.FP32)
    return c


@pl.jit
def below_two_axes(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    for i in pl.parallel(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            c[i, 0] = pl.matmul(a[i], b[i], out_dtype=pl.FP32)
    return c


@pl.jit
def out_of_the_stack(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    rows = a.shape[1]
    for i in pl.parallel(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.matmul(a[i : i + 1], b[i : i + 1], out_dtype=pl.FP32)
            c[i * rows : i * rows + rows, :] = pl.reshape(part, [a.shape[1], b.shape[2]])
    return c


def stacks(rows, inner, cols):
    draw = torch.Generator().manual_seed(3)
    a, b = (torch.randn(2, *shape, generator=draw).bfloat16() for shape in ((rows, inner), (inner, cols)))
    return a, b, a.float() @ b.float()


@pytest.mark.parametrize("platform", ["a2a3", "a5"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", [into_the_stack, below_two_axes, out_of_the_stack])
def test_no_vector_core_takes_part(kernel, size, platform):
    a, b, wanted = stacks(*size)
    shape = {"below_two_axes": (2, 1, size[0], size[2]), "out_of_the_stack": (2 * size[0], size[2])}
    c = torch.full(shape.get(kernel.__name__, wanted.shape), 7.0)
    compiled = kernel.compile(a, b, c, config=RunConfig(platform=platform))
    compiled(a, b, c)
    torch.testing.assert_close(c, wanted.reshape(c.shape), rtol=1e-4, atol=1e-3)
    assert not list(compiled.output_dir.glob("kernels/aiv/*.pto"))


@pytest.mark.parametrize("view", ["pl.transpose(p, 0, 1)", "pl.reshape(p, [512 * 512, 1])"])
def test_another_view_of_a_waiting_product_is_refused_with_its_bytes(view, tmp_path):
    from pypto import ir

    text = f"""@pl.program
class P:
    @pl.function
    def main(
        self,
        a: pl.Tensor[[512, 64], pl.FP16],
        b: pl.Tensor[[64, 512], pl.FP16],
        c: pl.Out[pl.Tensor[[512, 512], pl.FP32]],
    ) -> pl.Tensor[[512, 512], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            p = pl.matmul(a, b, out_dtype=pl.FP32)
            c[:] = pl.reshape({view}, [512, 512])
        return c
"""
    with pytest.raises(CompileError, match=r"\[512, 512\] needs 1,048,576 bytes of Acc"):
        ir.compile(pl.parse(text), output_dir=tmp_path)
