"""C++ kernels of class programs and their Python stand-ins (spec language 3.10)."""

import re

import pytest
import torch
from round_trip import random

import pypto.language as pl
from pypto import ir
from pypto.sim import compare_precision, record


@pl.program
class Scaled:
    @pl.function(type=pl.FunctionType.AIV, external_source="kernels/scaled.cpp")
    def scaled(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        top: pl.Out[pl.Tensor[[16, 8], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 16], pl.FP32], pl.Tensor[[16, 8], pl.FP32]]:
        """Written in C++."""
        pl.func_attr({"external_include_dirs": ["include", "third_party"]})

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        top: pl.Out[pl.Tensor[[16, 8], pl.FP32]],
    ) -> tuple[pl.Tensor[[16, 16], pl.FP32], pl.Tensor[[16, 8], pl.FP32]]:
        (y, top), _ = pl.submit(self.scaled, x, y, top)
        return y, top


def stand_in(x, y, top):
    y[:] = 3 * x
    top[:] = x[:, :8]


def test_results_are_output_parameters_in_their_order():
    compiled = ir.compile(Scaled, platform="a2a3sim")
    compiled.bind_external("scaled", stand_in)
    x = random(16, 16)
    y, top = compiled(x)
    assert torch.equal(y, 3 * x) and torch.equal(top, x[:, :8])


def test_the_text_keeps_the_source_and_the_attributes():
    text = Scaled.as_python()
    again = pl.parse(text)
    assert again == Scaled and again.as_python() == text
    assert again.functions["scaled"].attrs["external_source"] == "kernels/scaled.cpp"
    assert again.functions["scaled"].attrs["external_include_dirs"] == ["include", "third_party"]


@pytest.mark.parametrize(
    ("name", "function", "error", "says"),
    [
        ("scale", stand_in, ValueError, "'scale' is not a C++ kernel; those of this program: scaled"),
        ("scaled", 3, TypeError, "the stand-in of 'scaled' must be a function, got int"),
    ],
)
def test_what_is_not_a_stand_in_is_refused(name, function, error, says):
    with pytest.raises(error, match=re.escape(says)):
        ir.compile(Scaled, platform="a2a3sim").bind_external(name, function)


def test_a_stand_in_takes_one_argument_per_parameter():
    compiled = ir.compile(Scaled, platform="a2a3sim")
    compiled.bind_external("scaled", lambda x, y: None)
    with pytest.raises(RuntimeError, match="'scaled' gets 3 arguments, one per parameter of the kernel"):
        compiled(random(16, 16))


def test_a_result_that_is_no_output_is_refused():
    with pytest.raises(pl.parser.ParserError, match=r"result 0 of C\+\+ kernel 'f'.*it has y: pl.Tensor\[\[8, 8\]"):

        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.AIV, external_source="f.cpp")
            def f(
                self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]
            ) -> pl.Tensor[[8, 4], pl.FP32]: ...


def test_a_body_of_a_foreign_kernel_is_refused():
    with pytest.raises(pl.parser.ParserError, match=r"'f' is a C\+\+ kernel: its body holds"):

        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.AIV, external_source="f.cpp")
            def f(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
                y = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
                return y


@pytest.mark.parametrize("values", [True, False])
def test_a_launch_with_a_stand_in_is_recorded(values):
    compiled = ir.compile(Scaled, platform="a2a3")
    compiled.bind_external("scaled", stand_in)
    recording = record(compiled, [random(16, 16)], values=values)
    assert recording.time().device_wall_ns > 0


def test_precision_of_a_program_with_a_stand_in():
    compiled = ir.compile(Scaled, platform="a2a3sim")
    compiled.bind_external("scaled", stand_in)
    assert compare_precision(compiled, [random(16, 16)]).first is None
