"""Argument checks: count, kind, shape, dtype, layout; scalars (spec runtime 4.2, 4.3)."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pypto.ir import dtype as d
from pypto.ir.dtype import DataType
from pypto.runtime import DeviceTensor
from pypto.runtime.arguments import Signature, logical_shape, make_slot
from pypto.runtime.torch_dtypes import accepted_torch_dtypes, to_runtime_shape, to_torch_dtype


@dataclass
class Parameter:
    name: str
    direction: str
    kind: str
    shape: tuple | None
    dtype: DataType


@dataclass
class Program:
    param_infos: list
    has_return: bool = True

    @property
    def output_indices(self):
        return [i for i, p in enumerate(self.param_infos) if p.direction == "Out"]


def tensor(name, direction="In", shape=(4, 8), dtype=d.FP32):
    return Parameter(name, direction, "tensor", shape, dtype)


def scalar(name, dtype=d.INT32):
    return Parameter(name, "In", "scalar", None, dtype)


ADD_PARAMETERS = [tensor("a"), scalar("n"), tensor("out", "Out")]
ADD = Signature(Program(ADD_PARAMETERS), "add")


def test_in_place_and_return_style():
    a, out = torch.ones(4, 8), torch.ones(4, 8)
    in_place = ADD.bind((a, 3, out))
    assert in_place.arguments == (a, 3, out) and in_place.result() is None
    returned = ADD.bind((a, 3))
    assert returned.result() is returned.arguments[2]
    assert returned.result().shape == (4, 8) and not returned.result().any()


def test_several_outputs_come_back_in_parameter_order():
    s = Signature(Program([tensor("y", "Out", (2,)), tensor("x"), tensor("z", "Out", (3,), d.INT8)]))
    y, z = s.bind((torch.ones(4, 8),)).result()
    assert y.shape == (2,) and z.shape == (3,) and z.dtype is torch.int8


def test_two_outputs_need_memory_of_their_own():
    signature = Signature(Program([tensor("a"), tensor("y", "Out"), tensor("z", "InOut")]))
    a, y = torch.zeros(4, 8), torch.zeros(4, 8)
    with pytest.raises(ValueError, match="argument 1 'y' and argument 2 'z' are both written and get the same memory"):
        signature.bind([a, y, y])
    assert signature.bind([y, y, a]).arguments == (y, y, a), "an input may be an output"


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_wrong_count_lists_the_parameters(count):
    words = r"add: expects 3 or 2 arguments, got \d; parameters: a \(In\), n \(In\), out \(Out\)"
    with pytest.raises(TypeError, match=words):
        ADD.bind([torch.ones(4, 8)] * count)


def test_without_a_return_value_every_tensor_is_needed():
    with pytest.raises(
        TypeError, match="expects 3 arguments, got 2.*left out when the source declares its results with ->"
    ):
        Signature(Program(ADD_PARAMETERS, has_return=False)).bind((torch.ones(4, 8), 1))


GOOD = torch.zeros(4, 8)


@pytest.mark.parametrize(
    "position, value, error, words",
    [
        (0, 3, TypeError, "argument 0 'a' is a tensor.*torch.Tensor.*DeviceTensor.*int 3"),
        (0, None, TypeError, "is a tensor"),
        (1, torch.tensor(3), TypeError, "argument 1 'n' is a scalar of int32"),
        (1, DeviceTensor(8, (1,), torch.int32), TypeError, "scalar"),
        (1, 2.5, TypeError, "expects an integer, got float 2.5"),
        (1, "3", TypeError, "scalar of int32"),
        (1, ctypes.c_int64(3), TypeError, "expects c_int, got c_long"),
        (2, torch.zeros(4, 9), TypeError, r"argument 2 'out' expects shape \(4, 8\), got \(4, 9\)"),
        (2, torch.zeros(32), TypeError, r"expects rank 2 \(4, 8\), got shape \(32,\)"),
        (2, torch.zeros(4, 8).double(), TypeError, r"expects dtype torch.float32 \(fp32\), got torch.float64"),
        (2, torch.zeros(8, 4).t(), ValueError, "argument 2 'out' is not contiguous.*contiguous()"),
        (0, torch._neg_view(torch.zeros(4, 8)), ValueError, "argument 0 'a' is a lazily negated.*resolve_neg"),
        (2, torch.zeros(4, 8, device="meta"), ValueError, "on the CPU, got one on meta"),
        (2, DeviceTensor(8, (4, 4), torch.float32), TypeError, r"expects shape \(4, 8\)"),
        (2, DeviceTensor(8, (4, 8), torch.float16), TypeError, "expects dtype"),
    ],
)
def test_a_wrong_argument_is_named(position, value, error, words):
    arguments = [GOOD, 1, GOOD]
    arguments[position] = value
    with pytest.raises(error, match=words):
        ADD.bind(arguments)


def test_a_wrong_argument_is_shown_in_short():
    with pytest.raises(TypeError) as caught:
        ADD.bind((torch.zeros(1000, 10).tolist(), 1, GOOD))
    assert len(str(caught.value)) < 400


def test_kinds_are_checked_before_types():
    with pytest.raises(TypeError, match="argument 1 'n'"):
        ADD.bind((torch.zeros(1), torch.zeros(1), torch.zeros(1)))


def test_dynamic_extents_take_any_size_but_cannot_be_allocated():
    s = Signature(Program([tensor("x", shape=(-1, 8)), tensor("y", "Out", (-1, 8))]))
    s.bind((torch.zeros(5, 8), torch.zeros(5, 8)))
    with pytest.raises(ValueError, match=r"dynamic dimensions \(\?, 8\).*pass all tensors"):
        s.bind((torch.zeros(5, 8),))
    with pytest.raises(TypeError, match=r"expects shape \(\?, 8\), got \(5, 7\)"):
        s.bind((torch.zeros(5, 7), torch.zeros(5, 7)))


@pytest.mark.parametrize("dtype", [d.INT8, d.INT16, d.INT32, d.INT64, d.UINT8, d.UINT16, d.UINT32, d.UINT64, d.INDEX])
@given(value=st.integers(-(2**70), 2**70))
def test_integers_wrap_to_their_width(dtype, value):
    bits, signed = dtype.get_bit(), not dtype.is_unsigned_int()
    want = value % 2**bits
    if signed and want >= 2 ** (bits - 1):
        want -= 2**bits
    assert make_slot(0, scalar("n", dtype)).checked(value) == want


@given(value=st.floats(width=64))
def test_floats_are_rounded_to_single(value):
    got = make_slot(0, scalar("f", d.FP32)).checked(value)
    with np.errstate(over="ignore"):
        assert np.float32(value).tobytes() == np.float32(got).tobytes() or np.isnan(value)


def test_numbers_of_other_libraries_are_numbers():
    slot = make_slot(0, scalar("n"))
    assert slot.checked(np.int64(7)) == 7 and slot.checked(True) == 1 and slot.checked(ctypes.c_int32(-3)) == -3
    assert make_slot(0, scalar("b", d.BOOL)).checked(np.bool_(True)) is True


@pytest.mark.parametrize("dtype", [d.BOOL, d.INT8, d.INT64, d.UINT16, d.FP16, d.BF16, d.FP32, d.FP8E4M3FN])
def test_the_natural_torch_type_has_the_same_width(dtype):
    torch_dtype = to_torch_dtype(dtype)
    assert torch_dtype is not None and torch_dtype.itemsize == dtype.get_byte()
    assert accepted_torch_dtypes(dtype)[0] is torch_dtype


def test_four_bit_types_travel_two_per_element():
    assert to_runtime_shape((4, 64), d.FP4) == (4, 32) and logical_shape((4, 32), d.FP4) == (4, 64)
    assert to_runtime_shape((4, 64), d.FP16) == (4, 64) == logical_shape((4, 64), d.FP16)
    with pytest.raises(ValueError, match="must be even"):
        to_runtime_shape((4, 7), d.INT4)
    assert to_torch_dtype(d.INT4) is None


def test_one_name_is_one_extent(tmp_path):
    import pypto.language as pl
    from pypto import ir

    rows = pl.dynamic("M")

    @pl.program
    class Copy:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, a: pl.Tensor[[rows, 64], pl.FP32], out: pl.Out[pl.Tensor[[rows, 64], pl.FP32]]):
            out = pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[rows, 64], pl.FP32], out: pl.Out[pl.Tensor[[rows, 64], pl.FP32]]):
            out = self.copy(a, out)
            return out

    program = ir.compile(Copy, output_dir=tmp_path)
    a, out = torch.randn(16, 64), torch.zeros(16, 64)
    for runnable in (program, ir.CompiledProgram.from_dir(tmp_path)):
        runnable(a, out.zero_())
        assert torch.equal(out, a)
        with pytest.raises(TypeError, match=r"M is 32 in argument 0 'a' \(axis 0\) but 16 in argument 1 'out'"):
            runnable(torch.randn(32, 64), out)
        assert torch.equal(out, a)
