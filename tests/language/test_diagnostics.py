"""Mistakes get the right class, the place and the numbers (spec language 8)."""

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.ir.errors import (
    CompileError,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    PartialCodegenError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")
T = pl.Tensor[[32, 32], pl.FP32]
X = torch.zeros(32, 32)


def plain_range(x: T, y: pl.Out[T]):
    for i in range(4):
        y[:] = x
    return y


def augmented(x: T, y: pl.Out[T]):
    n = 1
    n += 1
    return y


def operator_on_tensors(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = x + x
    return y


def number_as_condition(x: T, y: pl.Out[T], n: pl.Scalar[pl.INT32]):
    if n:
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)
    return y


def other_type(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.full([8, 8], dtype=pl.FP32, value=0.0)
        for i in pl.range(4):
            acc = pl.cast(acc, pl.FP16)
        y[:] = x
    return y


def misspelt_name(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        scaled = pl.mul(x, 2.0)
        y[:] = scalde  # noqa: F821
    return y


def misspelt_operation(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.exxp(x)
    return y


def mixed_scalars(x: T, y: pl.Out[T], n: pl.Scalar[pl.INT32]):
    m = n + 1.5
    return y


def pipeline_without_stage(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.pipeline(4):
            y[:] = x
    return y


def unroll_of_a_scalar(x: T, y: pl.Out[T], n: pl.Scalar[pl.INT32]):
    for i in pl.unroll(n):
        pass
    return y


def nested_core_scopes(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):  # noqa: SIM117
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x
    return y


def gone_after_the_loop(x: T, y: pl.Out[T]):
    for i in pl.range(4):
        late = i * 2
    with pl.at(level=pl.Level.CORE_GROUP):
        y[0:1, :] = pl.mul(x[0:1, :], pl.cast(late, pl.FP32))
    return y


def scope_with_auto(x: T, y: pl.Out[T]):
    with pl.scope():
        pass
    return y


def submit_as_a_statement(x: T, y: pl.Out[T]):
    pl.submit(self.kernel, x, y)  # noqa: F821
    return y


def load_to_left(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [32, 32], target_memory=pl.Mem.Left)
        pl.store(t, [0, 0], y)
    return y


def break_in_parallel(x: T, y: pl.Out[T]):
    for i in pl.parallel(4):
        break
    return y


def slice_with_a_step(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = x[0:32:2, :]
    return y


def element_assignment(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[0, 0] = 1.0
    return y


def window_of_another_size(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[0:16, :] = x
    return y


def extent_at_run_time(x: T, y: pl.Out[T], n: pl.Scalar[pl.INDEX]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [pl.cast(pl.read(x, [0, 0]), pl.INDEX), 32]), [0, 0], y)
    return y


def half_of_a_product_without_shard(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP):
        score = pl.matmul(x, x, b_trans=True)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            y[lane * 16 : lane * 16 + 16, 0:32] = pl.exp(score)
    return y


@pl.jit.incore
def no_result(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    pl.store(pl.load(x, [0, 0], [32, 32]), [0, 0], y)


def result_of_a_kernel_without_return(x: T, y: pl.Out[T]):
    y = no_result(x, y)
    return y


CASES = [
    (extent_at_run_time, InvalidOperationError, "valid shape"),
    (half_of_a_product_without_shard, ParserTypeError, "pl.aiv_shard"),
    (result_of_a_kernel_without_return, InvalidOperationError, "no_result returns nothing"),
    (plain_range, ParserSyntaxError, "pl.range"),
    (augmented, UnsupportedFeatureError, "x = x + e"),
    (operator_on_tensors, ParserSyntaxError, "pl.add"),
    (number_as_condition, ParserTypeError, "BOOL"),
    (other_type, ParserTypeError, "FP16"),
    (misspelt_name, UndefinedVariableError, "'scaled'"),
    (misspelt_operation, InvalidOperationError, "exp"),
    (mixed_scalars, ParserSyntaxError, "float"),
    (pipeline_without_stage, ParserSyntaxError, "stage="),
    (unroll_of_a_scalar, ParserSyntaxError, "pl.range"),
    (nested_core_scopes, ParserSyntaxError, "core scope"),
    (gone_after_the_loop, UndefinedVariableError, "before the for"),
    (scope_with_auto, ParserSyntaxError, "auto_scope=False"),
    (submit_as_a_statement, ParserSyntaxError, "result, tid"),
    (load_to_left, InvalidOperationError, "Mat"),
    (break_in_parallel, InvalidOperationError, "pl.parallel"),
    (slice_with_a_step, UnsupportedFeatureError, "step"),
    (element_assignment, UnsupportedFeatureError, "pl.write"),
    (window_of_another_size, ParserTypeError, "16"),
]


@pytest.mark.parametrize("body,kind,hint", CASES, ids=lambda v: getattr(v, "__name__", None))
def test_class_place_and_advice(body, kind, hint):
    scalars = {"n": 3} if "n" in body.__annotations__ else {}
    if body is unroll_of_a_scalar or body is number_as_condition or body is mixed_scalars:
        with pytest.raises(kind) as e:
            pl.jit(body).compile(n=pl.RUNTIME, config=SIM)
    else:
        with pytest.raises(kind) as e:
            pl.jit(body).compile(X, X.clone(), config=SIM, **scalars)
    text = str(e.value)
    assert hint in text
    assert "test_diagnostics.py" in text and "^" in text, text
    assert isinstance(e.value, ParserError)


def test_the_form_of_a_message():
    with pytest.raises(ParserTypeError) as e:
        pl.jit(other_type).compile(X, X.clone(), config=SIM)
    lines = str(e.value).splitlines()
    assert lines[0].startswith(
        "'acc' is pl.Tensor[[8, 8], pl.FP32] and cannot be rebound to pl.Tensor[[8, 8], pl.FP16]"
    )
    assert lines[1].strip().startswith("--> ") and lines[1].count(":") >= 2
    caret = next(i for i, line in enumerate(lines) if "^" in line)
    assert "acc = pl.cast(acc, pl.FP16)" in lines[caret - 1]
    assert lines[caret].index("^") == lines[caret - 1].index("acc")
    assert any("for i in pl.range(4):" in line for line in lines[:caret]), "two lines of context"
    assert "= help:" in lines[-1]


def test_on_chip_overflow_names_space_and_bytes():
    @pl.jit
    def too_big(x: pl.Tensor[[1024, 512], pl.FP32], y: pl.Out[pl.Tensor[[1024, 512], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.exp(x)
        return y

    with pytest.raises(CompileError) as e:
        too_big.compile(config=SIM)
    assert "Vec" in str(e.value) and "2,097,152" in str(e.value) and "188,416" in str(e.value)
    assert "work on about 92 of its 1024 rows at a time" in str(e.value)


@pytest.mark.parametrize(
    "call,kind,text",
    [
        (lambda k: k(X), TypeError, "y"),
        (lambda k: k(X, X.clone(), X), TypeError, "too many"),
        (lambda k: k(X, 3), ValueError, "missing inferred tensor metadata"),
        (lambda k: k(X.double(), X.clone()), TypeError, "float64"),
        (lambda k: k.compile(X, X.clone(), zap=1), TypeError, "zap"),
    ],
    ids=["too few", "too many", "number for a tensor", "dtype", "unknown keyword"],
)
def test_arguments_of_a_jit_call(call, kind, text):
    @pl.jit
    def k(x: T, y: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(x)
        return y

    with pytest.raises(kind) as e:
        call(k)
    assert text in str(e.value)


def test_decorator_options():
    for bad in (lambda: pl.jit.incore(auto_scope=True), lambda: pl.jit.inline(level=None), lambda: pl.jit(level=3)):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(ValueError, match="source file not found"):
        pl.jit.extern(source="no_such_kernel.cpp")(plain_range)
    with pytest.raises(AttributeError, match="did you mean"):
        pl.tile_load_  # noqa: B018
    with pytest.raises(RuntimeError, match="kernel body"):
        pl.add(1, 2)


@pytest.mark.parametrize(("written", "meant"), [("fp32", "FP32"), ("FP23", "FP32"), ("Bf16", "BF16"), ("Int8", "INT8")])
def test_a_misspelt_name_of_an_annotation_gets_the_near_one_and_its_place(written, meant):
    with pytest.raises(pl.parser.ParserError, match=f"did you mean '{meant}'") as caught:
        pl.parse(
            f"@pl.function\ndef k(first: pl.Tensor[[4, 4], pl.FP16], x: pl.Tensor[[4, 4], pl.{written}]):\n    return x\n"
        )
    assert caught.value.span.column == 44


@pytest.mark.parametrize("name", ["Tensr", "tensor_", "Lvel", "SplitMod", "laod", "PadValu"])
def test_a_misspelt_name_of_the_language_names_the_near_one(name):
    with pytest.raises(AttributeError, match="did you mean"):
        getattr(pl, name)


def test_a_quoted_end_of_a_message_stays_whole():
    text = """
@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.aiv_shard(x)
        return y
"""
    with pytest.raises(pl.parser.ParserSyntaxError, match=r"inside 'for lane in pl.split_aiv\(2, mode=...\)'\n"):
        pl.parse(text)


def test_computing_in_orchestration_code_names_the_function_the_operation_and_the_remedy():
    text = """
@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        z = pl.neg(x)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.neg(z)
        return y
"""
    with pytest.raises(PartialCodegenError, match=r"1 function cannot[\s\S]*pl.neg computes.*'main'.*pl.at") as caught:
        ir.compile(pl.parse(text), platform="a2a3sim")
    assert list(caught.value.failures) == ["main"] and "6:9" in str(caught.value)
