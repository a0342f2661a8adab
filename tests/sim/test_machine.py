"""The interpreter: scalar arithmetic, control flow, element access, arrays, views."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from build_directory import arguments
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto.ir.dtype import DataType

INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "index": 64}
WORDS = st.integers(-(2**63), 2**63 - 1)
SHARED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

BINARY_MAIN = """orchestration @main {
  param %out : tensor<1xint64> out
  param %a : scalar<int64>
  param %b : scalar<int64>
  submit %t, @k, [%out, %a, %b], [], [3, 0, 0]
}"""
BINARY_KERNEL = """kernel @k aiv {{
  param %out : tensor<1xint64> out
  param %a : scalar<int64>
  param %b : scalar<int64>
  scvt.{dtype}.int64 %x, %a
  scvt.{dtype}.int64 %y, %b
  {operation}.{dtype} %z, %x, %y
  scvt.int64.{dtype} %w, %z
  sstore %out, [0], %w
}}"""


def wrapped(value: int, dtype: str) -> int:
    """Python's unbounded ``value`` in the dtype, sign- or zero-extended."""
    bits = INTEGERS[dtype]
    value &= (1 << bits) - 1
    return value if dtype.startswith("u") or not value >> (bits - 1) else value - (1 << bits)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "sadd": lambda a, b: a + b,
    "ssub": lambda a, b: a - b,
    "smul": lambda a, b: a * b,
    "sdiv": truncated,
    "sfloordiv": lambda a, b: a // b,
    "smod": lambda a, b: a % b,
    "sand": lambda a, b: a & b,
    "sor": lambda a, b: a | b,
    "sxor": lambda a, b: a ^ b,
    "smin": min,
    "smax": max,
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operation", BINARY)
def test_integers_wrap_at_their_width(load, operation, dtype):
    program = load(BINARY_MAIN, BINARY_KERNEL.format(operation=operation, dtype=dtype))
    out = np.zeros(1, np.int64)

    @settings(SHARED, max_examples=25)
    @given(WORDS, WORDS | st.sampled_from((-1, 1, 2**31, -(2**63), 255)))
    def check(a, b):
        x, y = wrapped(a, dtype), wrapped(b, dtype)
        if operation in ("sdiv", "sfloordiv", "smod") and y == 0:
            return
        program.execute(arguments(out, a, b))
        assert out[0] == wrapped(BINARY[operation](x, y), dtype)

    check()


@given(WORDS, WORDS)
@SHARED
def test_unsigned_64_bit_words(load, a, b):
    program = load(
        BINARY_MAIN.replace("<1xint64>", "<7xint64>"),
        """kernel @k aiv {
          param %out : tensor<7xint64> out
          param %a : scalar<int64>
          param %b : scalar<int64>
          slt.uint64 %z0, %a, %b
          sge.uint64 %z1, %a, %b
          smax.uint64 %z2, %a, %b
          sor.uint64 %d, %b, 1
          sdiv.uint64 %z3, %a, %d
          smod.uint64 %z4, %a, %d
          sshr.uint64 %z5, %a, 3
          sadd.uint64 %z6, %a, %b
          sstore %out, [0], %z0
          sstore %out, [1], %z1
          sstore %out, [2], %z2
          sstore %out, [3], %z3
          sstore %out, [4], %z4
          sstore %out, [5], %z5
          sstore %out, [6], %z6
        }""",
    )
    out = np.zeros(7, np.int64)
    program.execute(arguments(out, a, b))
    x, y = a % 2**64, b % 2**64
    expected = [int(x < y), int(x >= y), max(x, y), x // (y | 1), x % (y | 1), x >> 3, (x + y) % 2**64]
    assert [int(word) % 2**64 for word in out] == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sneg.int8 %z, -128", -128),
        ("sabs.int32 %z, -5", 5),
        ("snot.uint8 %z, 1", 254),
        ("lnot.int32 %z, 3", 0),
        ("lnot.int32 %z, 0", 1),
        ("land.bool %z, 1, 0", 0),
        ("lor.bool %z, 1, 0", 1),
        ("sshl.int32 %z, 1, 31", -(2**31)),
        ("sshl.int32 %z, 1, 32", 0),
        ("sshr.int32 %z, -8, 1", -4),
        ("sshr.int32 %z, -8, 99", -1),
        ("sshr.uint8 %z, 200, 3", 25),
        ("smov.int8 %z, 300", 44),
        ("smov.bool %z, 300", 1),
        ("sselect %z, 0, 7, 9", 9),
        ("sblockidx %z", 0),
        ("sblocknum %z", 1),
        ("dim %z, %out, 0", 1),
        ("scvt.int32.fp32 %z, 3.99", 3),
        ("scvt.int32.fp32 %z, -3.99", -3),
        ("scvt.int8.fp32 %z, 1000.0", 127),
        ("scvt.uint8.fp32 %z, -1.0", 0),
        ("scvt.int64.fp32 %z, inf", 2**63 - 1),
        ("scvt.int64.fp32 %z, nan", 0),
        ("slt.fp32 %z, 1.0, 2.0", 1),
        ("sgt.fp32 %z, 1.0, nan", 0),
        ("sne.fp32 %z, nan, nan", 1),
    ],
)
def test_one_scalar_instruction(compute, body, expected):
    assert compute(f"{body}\n sstore %out, [0], %z") == [expected]


TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bfloat16": torch.bfloat16}
FLOAT_MAIN = """orchestration @main {
  param %out : tensor<6xfp32> out
  param %x : scalar<fp32>
  param %y : scalar<fp32>
  submit %t, @k, [%out, %x, %y], [], [3, 0, 0]
}"""
FLOAT_KERNEL = """kernel @k aiv {{
  param %out : tensor<6xfp32> out
  param %x : scalar<fp32>
  param %y : scalar<fp32>
  scvt.{0}.fp32 %a, %x
  scvt.{0}.fp32 %b, %y
  sadd.{0} %z0, %a, %b
  ssub.{0} %z1, %a, %b
  smul.{0} %z2, %a, %b
  sdiv.{0} %z3, %a, %b
  smin.{0} %z4, %a, %b
  sneg.{0} %z5, %a
  sstore %out, [0], %z0
  sstore %out, [1], %z1
  sstore %out, [2], %z2
  sstore %out, [3], %z3
  sstore %out, [4], %z4
  sstore %out, [5], %z5
}}"""


@pytest.mark.parametrize("dtype", TORCH)
def test_floats_round_to_their_dtype_as_torch_does(load, dtype):
    program = load(FLOAT_MAIN, FLOAT_KERNEL.format(dtype))
    out = np.zeros(6, np.float32)
    floats = st.floats(width=32, allow_subnormal=True)

    @settings(SHARED, max_examples=200)
    @given(floats, floats | st.just(0.0))
    def check(x, y):
        program.execute(arguments(out, x, y))
        a, b = (torch.tensor(v, dtype=torch.float32).to(TORCH[dtype]) for v in (x, y))
        results = (a + b, a - b, a * b, a / b, torch.minimum(a, b), -a)
        expected = np.array([result.to(torch.float32).item() for result in results], np.float32)
        np.testing.assert_array_equal(out, expected)
        signed = ~np.isnan(expected)
        signed[4] &= expected[4] != 0  # which zero is the smaller one is nobody's business
        np.testing.assert_array_equal(np.signbit(out[signed]), np.signbit(expected[signed]))

    check()


@given(st.integers(-(2**63), 2**63 - 1))
@SHARED
def test_a_large_integer_is_rounded_once(load, value):
    program = load(
        """orchestration @main {
          param %out : tensor<2xfp32> out
          param %n : scalar<int64>
          submit %t, @k, [%out, %n], [], [3, 0]
        }""",
        """kernel @k aiv {
          param %out : tensor<2xfp32> out
          param %n : scalar<int64>
          scvt.fp32.int64 %a, %n
          scvt.fp32.uint64 %b, %n
          sstore %out, [0], %a
          sstore %out, [1], %b
        }""",
    )
    out = np.zeros(2, np.float32)
    program.execute(arguments(out, value))
    assert out[0] == np.float32(np.int64(value))
    assert out[1] == np.float32(np.uint64(value % 2**64))


# control flow


def test_a_loop_with_a_negative_step(compute):
    body = """smov.index %s, 0
    for %i = 10 to 0 step -3 {
      smul.index %s, %s, 100
      sadd.index %s, %s, %i
    }
    sstore %out, [0], %s"""
    assert compute(body) == [10070401]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_break_and_continue(compute, n):
    body = """smov.index %s, 0
    for %i = 0 to %n {
      smod.index %odd, %i, 2
      if %odd {
        continue
      }
      seq.index %five, %i, 6
      if %five {
        break
      }
      sadd.index %s, %s, %i
    }
    sstore %out, [0], %s"""
    assert compute(body, n=n) == [sum(i for i in range(min(n, 6)) if i % 2 == 0)]


@pytest.mark.parametrize("n", [1, 6, 27, 97])
def test_while_counts_collatz_steps(compute, n):
    body = """smov.index %v, %n
    smov.index %steps, 0
    while {
      sne.index %more, %v, 1
    } do %more {
      sadd.index %steps, %steps, 1
      smod.index %odd, %v, 2
      if %odd {
        smul.index %v, %v, 3
        sadd.index %v, %v, 1
        continue
      } else {
        sdiv.index %v, %v, 2
      }
    }
    sstore %out, [0], %steps"""
    steps, value = 0, n
    while value != 1:
        value = 3 * value + 1 if value % 2 else value // 2
        steps += 1
    assert compute(body, n=n) == [steps]


def test_loop_controls_are_read_once(compute):
    """As with Python's ``range``: the body may write the index, the bound and the step."""
    body = """smov.index %hi, 4
    smov.index %st, 1
    smov.index %s, 0
    for %i = 0 to %hi step %st {
      sadd.index %s, %s, %i
      smov.index %i, 100
      smov.index %hi, 0
      smov.index %st, 50
    }
    sstore %out, [0], %s"""
    assert compute(body) == [0 + 1 + 2 + 3]


def test_return_from_inside_a_loop(compute):
    body = """for %i = 0 to 10 {
      seq.index %here, %i, 4
      if %here {
        sstore %out, [0], %i
        ret
      }
    }
    sstore %out, [0], 99"""
    assert compute(body) == [4]


@pytest.mark.parametrize("bounds", [(0, 0, 1), (3, 1, 1), (0, 5, 2), (5, -1, -2), (-4, 4, 3)])
def test_loops_agree_with_range(compute, bounds):
    low, high, step = bounds
    body = f"""smov.index %s, 0
    for %i = {low} to {high} step {step} {{
      smul.index %s, %s, 31
      sadd.index %s, %s, %i
    }}
    sstore %out, [0], %s"""
    expected = 0
    for i in range(low, high, step):
        expected = expected * 31 + i
    assert compute(body) == [expected]


def test_a_long_loop_is_interrupted_and_resumed(compute):
    body = """smov.index %s, 0
    for %i = 0 to 3000000 {
      sadd.index %s, %s, 1
    }
    sstore %out, [0], %s"""
    assert compute(body) == [3_000_000]


# memory


def test_arrays(compute):
    body = """for %i = 0 to 4 {
      smul.index %sq, %i, %i
      aset %a, %i, %sq
    }
    smov.index %s, 0
    for %i = 0 to 4 {
      aget %v, %a, %i
      sadd.index %s, %s, %v
    }
    sstore %out, [0], %s"""
    assert compute(body) == [14]


ELEMENTS = {
    "int8": ([-128, -1, 0, 127], torch.int8),
    "int16": ([-32768, 32767], torch.int16),
    "int32": ([-(2**31), 2**31 - 1], torch.int32),
    "int64": ([-(2**63), 2**63 - 1], torch.int64),
    "uint8": ([0, 255], torch.uint8),
    "uint16": ([0, 65535], torch.uint16),
    "uint32": ([0, 2**32 - 1], torch.uint32),
    "bool": ([0, 1], torch.bool),
    "fp32": ([1.5, -0.0, math.inf, 1e-45], torch.float32),
    "fp16": ([1.5, -0.0, math.inf, 6e-8, 65504.0, 0.333251953125], torch.float16),
    "bfloat16": ([1.5, -0.0, math.inf, 1e-40, 3.140625], torch.bfloat16),
    "fp8e4m3fn": ([1.5, -0.0, 448.0, 2.0**-9, 0.40625], torch.float8_e4m3fn),
    "fp8e5m2": ([1.5, -0.0, math.inf, 2.0**-16, 0.4375], torch.float8_e5m2),
    "fp8e8m0": ([1.0, 2.0**-127, 2.0**127, 0.5], torch.float8_e8m0fnu),
}


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_an_element_keeps_its_value_through_a_register(load, dtype):
    """Copy through a register, and look at the value in an arithmetic that torch shares."""
    values, kind = ELEMENTS[dtype]
    source = torch.tensor(values, dtype=torch.float32 if kind.is_floating_point else torch.int64).to(kind)
    copy, shown = torch.zeros_like(source), torch.zeros(len(values), dtype=torch.float32)
    convert = f"scvt.fp32.{dtype} %f, %v"
    program = load(
        f"""orchestration @main {{
          param %x : tensor<?x{dtype}> in
          param %y : tensor<?x{dtype}> out
          param %z : tensor<?xfp32> out
          submit %t, @k, [%x, %y, %z], [], [1, 3, 3]
        }}""",
        f"""kernel @k aiv {{
          param %x : tensor<?x{dtype}> in
          param %y : tensor<?x{dtype}> out
          param %z : tensor<?xfp32> out
          dim %n, %x, 0
          for %i = 0 to %n {{
            sload %v, %x, [%i]
            sstore %y, [%i], %v
            {convert}
            sstore %z, [%i], %f
          }}
        }}""",
    )
    from pypto.sim.program import TensorArgument

    code = DataType.from_string(dtype)
    program.execute(
        [
            TensorArgument("x", source.data_ptr(), tuple(source.shape), code),
            TensorArgument("y", copy.data_ptr(), tuple(copy.shape), code),
            *arguments(shown.numpy()),
        ]
    )
    assert torch.equal(copy.view(torch.uint8), source.view(torch.uint8))
    assert torch.equal(shown, source.to(torch.float32))


@pytest.mark.parametrize("dtype", ["fp16", "bfloat16"])
def test_every_16_bit_pattern_is_decoded_and_encoded(load, dtype):
    source = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(TORCH[dtype])
    copy, shown = torch.zeros_like(source), torch.zeros(65536)
    program = load(
        f"""orchestration @main {{
          param %x : tensor<65536x{dtype}> in
          param %y : tensor<65536x{dtype}> out
          param %z : tensor<65536xfp32> out
          for %i = 0 to 65536 {{
            sload %v, %x, [%i]
            sstore %y, [%i], %v
            sstore %z, [%i], %v
          }}
        }}"""
    )
    from pypto.sim.program import TensorArgument

    code = DataType.from_string(dtype)
    tensors = [TensorArgument(n, t.data_ptr(), (65536,), code) for n, t in (("x", source), ("y", copy))]
    program.execute([*tensors, *arguments(shown.numpy())])
    numbers = ~torch.isnan(source)
    assert torch.equal(torch.isnan(shown), ~numbers)
    assert torch.equal(shown[numbers], source.to(torch.float32)[numbers])
    assert torch.equal(copy.view(torch.int16)[numbers], source.view(torch.int16)[numbers])


def test_packed_4_bit_elements(load):
    program = load(
        """orchestration @main {
          param %x : tensor<6xint4> inout
          param %y : tensor<6xint64> out
          for %i = 0 to 6 {
            sload %v, %x, [%i]
            sstore %y, [%i], %v
          }
          sstore %x, [3], -2
        }"""
    )
    from pypto.sim.program import TensorArgument

    packed, out = np.array([0x21, 0xF3, 0x8], np.uint8), np.zeros(6, np.int64)
    program.execute([TensorArgument("x", packed.ctypes.data, (6,), DataType.from_string("int4")), *arguments(out)])
    assert out.tolist() == [1, 2, 3, -1, -8, 0]
    assert packed.tolist() == [0x21, 0xE3, 0x8]


# views


def test_a_window_of_a_permuted_window(load):
    program = load(
        """orchestration @main {
          param %x : tensor<4x6x8xint64> in
          param %y : tensor<3x2xint64> out
          tensor %w : 3 x int64
          tensor %p : 3 x int64
          tensor %v : 2 x int64
          view %w, %x, [1, 2, 3], [2, 3, 4], []
          permute %p, %w, 0, 2
          view %v, %p, [2, 0, 0], [1, 3, 2], [0]
          for %i = 0 to 3 {
            for %j = 0 to 2 {
              sload %e, %v, [%i, %j]
              sstore %y, [%i, %j], %e
            }
          }
        }"""
    )
    x, y = np.arange(4 * 6 * 8).reshape(4, 6, 8), np.zeros((3, 2), np.int64)
    program.execute(arguments(x, y))
    np.testing.assert_array_equal(y, x[1:3, 2:5, 3:7].transpose(2, 1, 0)[2])


@given(st.data())
@SHARED
def test_reshape_is_a_view_exactly_when_numpy_makes_one(load, data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=3, max_size=3))
    size = [data.draw(st.integers(1, extent)) for extent in shape]
    count = math.prod(size)
    new = data.draw(
        st.sampled_from([(count,), (count, 1), (size[0] * size[1], size[2]), (size[0], size[1] * size[2]), (1, count)])
    )
    x = np.arange(math.prod(shape)).reshape(shape)
    window = x[: size[0], : size[1], : size[2]]
    index = ", ".join(f"%i{k}" for k in range(len(new)))
    loops = "".join(f"for %i{k} = 0 to {extent} {{\n" for k, extent in enumerate(new))
    program = load(
        f"""orchestration @main {{
          param %x : tensor<{"x".join(map(str, shape))}xint64> in
          param %y : tensor<{"x".join(map(str, new))}xint64> out
          tensor %w : 3 x int64
          tensor %r : {len(new)} x int64
          view %w, %x, [0, 0, 0], {size}, []
          reshape %r, %w, {list(new)}
          {loops} sload %e, %r, [{index}]
          sstore %y, [{index}], %e
          {"}" * len(new)}
        }}"""
    )
    y = np.zeros(new, np.int64)
    try:
        expected = window.view()
        expected.shape = new
    except AttributeError:
        with pytest.raises(RuntimeError, match="cannot be viewed as"):
            program.execute(arguments(x, y))
        return
    program.execute(arguments(x, y))
    np.testing.assert_array_equal(y, expected)


def test_reinterpret_reads_the_same_bytes(load):
    program = load(
        """orchestration @main {
          param %x : tensor<2x3xfp32> in
          param %y : tensor<6xint64> out
          tensor %r : 1 x int32
          reinterpret %r, %x, [6] {dtype = int32}
          for %i = 0 to 6 {
            sload %e, %r, [%i]
            sstore %y, [%i], %e
          }
        }"""
    )
    x, y = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), np.zeros(6, np.int64)
    program.execute(arguments(x, y))
    assert y.tolist() == x.view(np.int32).ravel().tolist()


def test_slots_rotate_with_their_register(load):
    """Three loads into a tile with two slots: the third lands where the first did, the second stays."""
    program = load(
        """orchestration @main {
          param %x : tensor<3x8xint32> in
          param %y : tensor<2x8xint32> out
          submit %t, @k, [%x, %y], [], [1, 3]
        }""",
        """kernel @k aiv {
          param %x : tensor<3x8xint32> in
          param %y : tensor<2x8xint32> out
          tile %t : vec<1x8xint32> at 64 slots 2 pitch 64 by %s
          tile %first : vec<1x8xint32> at 64
          tile %second : vec<1x8xint32> at 128
          for %s = 0 to 3 {
            tload %t, %x, [%s, 0], [1, 8], [1, 8]
          }
          tstore %y, %first, [0, 0], [1, 8], [1, 8]
          tstore %y, %second, [1, 0], [1, 8], [1, 8]
        }""",
    )
    x, y = np.arange(24, dtype=np.int32).reshape(3, 8), np.zeros((2, 8), np.int32)
    recording = program.execute(arguments(x, y), record=True).recording
    np.testing.assert_array_equal(y, x[[2, 1]])
    assert (recording.trace[:3, 7] >> 32).tolist() == [0, 1, 0]
