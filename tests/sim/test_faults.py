"""What a person reads when a program does something undefined, and when its text or directory is damaged."""

from __future__ import annotations

import numpy as np
import pytest
from build_directory import arguments, write_build

from pypto.sim import DivisionByZeroError, ExecutionError, OutOfBoundsError
from pypto.sim.program import load_program
from pypto.sim.text import TextError

COPY_MAIN = """orchestration @main {
  param %a : tensor<?x64xfp32> in
  param %c : tensor<?x64xfp32> out
  param %n : scalar<int64>
  submit %t, @copy, [%a, %c, %n], [], [1, 3, 0]
}"""
COPY = """kernel @copy aiv {{
  file 0 "{source}"
  param %a : tensor<?x64xfp32> in
  param %c : tensor<?x64xfp32> out
  param %n : scalar<int64>
  tile %t0 : vec<32x64xfp32> at 0
  tload %t0, %a, [%n, 0], [32, 64], [32, 64]    @0:2
  tstore %c, %t0, [0, 0], [32, 64], [32, 64]    @0:3
}}"""


def test_a_load_outside_its_tensor_names_line_tensor_and_numbers(tmp_path, load):
    source = tmp_path / "copy.py"
    source.write_text("def copy(a, c, n):\n    t = pl.load(a, [n, 0], [32, 64])\n    pl.store(t, [0, 0], c)\n")
    program = load(COPY_MAIN, COPY.format(source=source))
    a, c = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    with pytest.raises(OutOfBoundsError) as error:
        program.execute(arguments(a, c, 1))
    assert str(error.value).splitlines() == [
        "load of 'a' rows 1..33 is outside its extent 32 (axis 0, offset 1, window 32)",
        f"in copy at {source}:2",
        "    t = pl.load(a, [n, 0], [32, 64])",
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ]
    assert isinstance(error.value, IndexError)
    assert isinstance(error.value, RuntimeError)
    assert (c == 0).all()


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63 - 32, 2**62, -(2**63)])
def test_an_offset_near_the_ends_of_64_bits_is_outside(load, offset):
    program = load(COPY_MAIN, COPY.format(source="gone.py"))
    with pytest.raises(OutOfBoundsError, match="is outside its extent 32"):
        program.execute(arguments(np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32), offset))


@pytest.mark.parametrize("views", ["view %v, %a, [%n, 0], [32, 64], []", "reshape %v, %a, [%n, 64]"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**63 - 32, 2**58 + 32])
def test_a_view_near_the_end_of_64_bits_is_refused(load, views, number):
    main = COPY_MAIN.replace("  submit %t, @copy, [%a", f"  tensor %v : 2 x fp32\n  {views}\n  submit %t, @copy, [%v")
    program = load(main, COPY.format(source="gone.py"))
    with pytest.raises(ExecutionError):
        program.execute(arguments(np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32), number))


def test_a_program_works_again_after_a_fault(load):
    program = load(COPY_MAIN, COPY.format(source="gone.py"))
    a, c = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    with pytest.raises(OutOfBoundsError, match=r"offset -1, window 32\)\nin copy at gone.py:2$"):
        program.execute(arguments(a, c, -1))
    program.execute(arguments(a, c, 0))
    assert (c == 1).all()


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("sload %v, %out, [%n]", OutOfBoundsError, "read of 'out' at index 9 is outside its extent 1 (axis 0)"),
        ("sstore %out, [%n], 3", OutOfBoundsError, "write of 'out' at index 9 is outside its extent 1 (axis 0)"),
        ("aget %v, %a, %n", OutOfBoundsError, "index 9 of array 'a' is outside its 4 elements"),
        ("ssub.index %z, %n, 9\n sdiv.index %v, %n, %z", DivisionByZeroError, "integer division by zero"),
        ("ssub.index %z, %n, 9\n smod.index %v, %n, %z", DivisionByZeroError, "integer division by zero"),
        ("ssub.index %z, %n, 9\n for %i = 0 to 4 step %z {\n }", ExecutionError, "a loop has step 0"),
    ],
)
def test_scalar_faults(compute, body, kind, message):
    with pytest.raises(kind) as error:
        compute(body, n=9)
    assert str(error.value).splitlines()[0] == message
    assert "in k at " in str(error.value)


def test_a_tile_element_outside_and_a_valid_shape_too_large(load):
    main = """orchestration @main {
      param %n : scalar<int64>
      submit %t, @k, [%n], [], [0], {blocks = 1}
    }"""
    kernel = """kernel @k aiv {{
      param %n : scalar<int64>
      tile %t : vec<4x8xfp32> at 0
      {}
    }}"""
    main = main.replace("[0], {", "[0] {")
    for body, message in (
        ("sload %v, %t, [0, %n]", "read of 't' at index 8 is outside its extent 8 (axis 1)"),
        ("setvalid %t, %n, 8", "valid rows 8 of tile 't' are outside 0..4"),
    ):
        with pytest.raises(OutOfBoundsError) as error:
            load(main, kernel.format(body)).execute(arguments(8))
        assert str(error.value).startswith(message)


def test_a_view_outside_its_tensor(load):
    program = load(
        """orchestration @main {
          file 0 "main.py"
          param %x : tensor<8x4xfp32> in
          param %n : scalar<int64>
          tensor %v : 2 x fp32
          view %v, %x, [%n, 0], [4, 4], []   @0:7
        }"""
    )
    x = np.zeros((8, 4), np.float32)
    program.execute(arguments(x, 4))
    with pytest.raises(OutOfBoundsError) as error:
        program.execute(arguments(x, 5))
    assert str(error.value) == (
        "view of 'x' rows 5..9 is outside its extent 8 (axis 0, offset 5, window 4)\nin main at main.py:7"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "textract %u, %t, %n, 0",
            "window of 't' rows 9..13 is outside its extent 8 (axis 0, offset 9, window 4)",
        ),
        (
            "tload %i, %x, [0, 0], [8, 8], [8, 8]\n tadds %i, %i, %m\n tgather_axis %t, %t, %i {axis = 1}",
            "index 9 from 'i' at [0, 0] is outside the 8 columns of 't' (axis 1); legal are 0..7",
        ),
        (
            "tgather_row %i, %x, [0, 0], [%n, 0], [1, 8], [1, 8]",
            "load of 'x' rows 9..10 is outside its extent 8 (axis 0, offset 9, window 1)",
        ),
    ],
)
def test_faults_of_tile_instructions_show_their_numbers(load, body, message):
    program = load(
        """orchestration @main {
          param %x : tensor<8x8xint32> in
          param %n : scalar<int64>
          submit %t, @k, [%x, %n], [], [1, 0]
        }""",
        f"""kernel @k aiv {{
          param %x : tensor<8x8xint32> in
          param %n : scalar<int64>
          tile %t : vec<8x8xfp32> at 0
          tile %u : vec<4x8xfp32> at 256
          tile %i : vec<8x8xint32> at 512
          scvt.int32.int64 %m, %n
          {body}
        }}""",
    )
    with pytest.raises(OutOfBoundsError) as error:
        program.execute(arguments(np.zeros((8, 8), np.int32), 9))
    assert str(error.value).splitlines()[0] == message


def test_a_kernel_that_gets_another_extent_than_it_declares(load):
    program = load(
        """orchestration @main {
          param %x : tensor<?x4xfp32> in
          submit %t, @k, [%x], [], [1]
        }""",
        "kernel @k aiv {\n param %tokens : tensor<8x4xfp32> in\n}",
    )
    program.execute(arguments(np.zeros((8, 4), np.float32)))
    with pytest.raises(ExecutionError, match="'tokens' of k has extent 8 on axis 0; the tensor passed has 6"):
        program.execute(arguments(np.zeros((6, 4), np.float32)))


# texts that do not assemble

TILES = """
  param %x : tensor<32x64xfp32> in
  param %f : scalar<fp32>
  param %n : scalar<int32>
  tile %a : vec<16x64xfp32> at 0
  tile %b : vec<16x64xint32> at 4096
  array %arr : 4 x int32
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("tad %a, %a, %a", "unknown instruction 'tad': nearest is 'tadd'"),
        ("tadd %a, %a", "'tadd' takes 3 operands (tadd dst, a, b), found 2"),
        ("tadd %a, %a, %aa", "tile %aa is not declared: nearest is 'a'"),
        ("tadd %a, %a, %x", "'tadd' needs a tile here; %x is a tensor of fp32"),
        ("tadd %a, %a, 3", "'tadd' needs a tile here, found '3'"),
        ("tadd %a, %a, %b", "tadd: no kernel for"),
        ("tadds %a, %a, %n", "'tadds' needs a float here; %n holds an integer (convert it with scvt)"),
        ("tadds %b, %b, %f", "'tadds' needs an integer here; %f holds a float (convert it with scvt)"),
        ("tadds %b, %b, 0.5", "'tadds' needs an integer here, found 0.5"),
        ("tload %a, %x, 0, [16, 64], [16, 64]", "'tload' needs 'offsets', a list in brackets, found '0'"),
        ("tadd %a, %a, %a {mode = x}", "'tadd' has no attribute 'mode'; it has none"),
        ("tstore %x, %a, [0, 0], [16, 64], [16, 64] {atomic = twice}", "attribute 'atomic' = twice; legal: none, add"),
        ("sadd.index %z, %q, 1", "scalar register %q is never written: nearest is"),
        ("sadd %z, %n, 1", "'sadd' needs a dtype suffix, as in 'sadd.int32'"),
        ("sadd.int33 %z, %n, 1", "unknown dtype 'int33'"),
        ("sand.fp32 %z, %f, %f", "'sand.fp32': bit operations and shifts have no float form"),
        ("smov.fp32 %z, 1.0\n smov.int32 %z, 1", "%z is written as an integer here and as a float elsewhere"),
        ("smov.int32 %a, 1", "%a is declared as a tile (vec, fp32) and cannot be written as a scalar"),
        ("dim %z, %x, 2", "axis 2 of %x: its axes are 0 to 1"),
        ("sload %z, %x, [0]", "%x has 2 axes, found 1 indices"),
        ("aget %z, %a, 0", "'aget' needs an array here; %a is a tile (vec, fp32)"),
        ("break", "'break' outside a loop"),
        ("submit %t, @k, [], [], []", "'submit' is legal in an orchestration only"),
        ("if %f {\n }", "'if' needs an integer here; %f holds a float (convert it with scvt)"),
        ("tile %l : left<16x16xfp16> at 0", "tile %l is in 'left', a memory of the cube core"),
        ("tpush_to_aiv %a", "'tpush_to_aiv' runs on the AIC side of a cluster; this is an AIV kernel"),
    ],
)
def test_texts_that_do_not_assemble(load, body, message):
    with pytest.raises(TextError) as error:
        load("orchestration @main {\n}", f"kernel @k aiv {{{TILES}  {body}\n}}")
    assert message in str(error.value)
    assert "k.pto:" in str(error.value)
    assert "^" in str(error.value)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("submit %t, @kk, [%x], [], [1]", "no kernel @kk in this build directory; it has @k"),
        ("submit %t, @k, [%x, %x], [], [1, 1]", "@k has 1 parameters, found 2 arguments"),
        ("submit %t, @k, [%n], [], [0]", "'y' of @k is a tensor; the argument or its direction 0 is not"),
        ("submit %t, @k, [%z], [], [1]", "'y' of @k has rank 2 and dtype fp32; %z has rank 2 and dtype int32"),
        ("submit %t, @k, [%x], [], [1, 1]", "'submit' needs 1 directions from 0 to 5, found [1, 1]"),
        ("submit %t, @k, [%x], [], [7]", "'submit' needs 1 directions from 0 to 5, found [7]"),
        ("submit %t, @k, [%x], [%x], [1]", "needs a scalar register or a number here; %x is a tensor"),
        ("submit %t, @k, [%x], [], [1] {block = 3}", "'submit' has no attribute 'block'; known: blocks"),
        ("submit %t, @k, [%x], [], [1] {blocks = 0}", "a task has at least one block, found blocks = 0"),
        ("tadd %x, %x, %x", "'tadd' is a tile instruction; an orchestration submits kernels instead"),
        ("scope {mode = free}", "scope mode free: legal modes are auto and manual"),
    ],
)
def test_orchestrations_that_do_not_fit(load, statement, message):
    kernel = "kernel @k aiv {\n  param %y : tensor<8x4xfp32> in\n}"
    main = f"""orchestration @main {{
      param %x : tensor<8x4xfp32> in
      param %z : tensor<8x4xint32> in
      param %n : scalar<int32>
      {statement}
    }}"""
    with pytest.raises(ValueError, match="main.orch:5") as error:
        load(main, kernel)
    assert message in str(error.value)


# damaged directories

GOOD = ("orchestration @main {\n}", "kernel @k aiv {\n}")


def _damage(tmp_path, name, old, new):
    directory = write_build(tmp_path, *GOOD)
    path = directory / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return directory


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("kernel_config.py", "RUNTIME_CONFIG", "RUNTIME", r"kernel_config.py:1: RUNTIME_CONFIG is missing"),
        ("kernel_config.py", "KERNELS = [", "KERNELS = [[", r"kernel_config.py:3: no Python literal"),
        ("kernel_config.py", "KERNELS = ", "KERNELS = list()#", r"kernel_config.py:3: KERNELS is no plain literal"),
        ("kernel_config.py", "'name': 'k'", "'name': 3", r"KERNELS\[0\] has no text under \"name\""),
        ("kernel_config.py", "'core_type': 'aiv'", "'core_type': 'gpu'", r'core_type "gpu"; legal are "aic" and "aiv"'),
        (
            "kernel_config.py",
            "'core_type': 'aiv'",
            "'core_type': 'aic'",
            r"expected an aic kernel, found an aiv kernel",
        ),
        ("kernels/aiv/k.pto", "kernel", "kernal", r"k.pto:1:1: expected 'kernel', 'orchestration' or 'group'"),
        ("kernels/aiv/k.pto", "}", "", r"k.pto:2:1: the '}' that closes @k is missing"),
        (
            "orchestration/main.orch",
            "orchestration @main",
            "kernel @main aiv",
            r"expected an orchestration, found an aiv",
        ),
    ],
)
def test_a_damaged_directory_names_the_file(tmp_path, name, old, new, message):
    with pytest.raises(ValueError, match=message):
        load_program(_damage(tmp_path, name, old, new))


@pytest.mark.parametrize("name", ["kernel_config.py", "kernels/aiv/k.pto", "orchestration/main.orch"])
def test_a_missing_file_is_named(tmp_path, name):
    directory = write_build(tmp_path, *GOOD)
    (directory / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load_program(directory)


def test_the_manifest_is_read_and_never_run(tmp_path):
    directory = write_build(tmp_path, *GOOD)
    path = directory / "kernel_config.py"
    path.write_text(f"import os\n_ROOT = os.mkdir({str(tmp_path / 'ran')!r})\n" + path.read_text())
    load_program(directory)
    assert not (tmp_path / "ran").exists()


# arguments


def test_arguments_are_checked_before_anything_runs(load):
    program = load(COPY_MAIN, COPY.format(source="gone.py"))
    a, c = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    for bad, message in (
        (arguments(a, c), "main takes 3 arguments, found 2"),
        (arguments(a.astype(np.int32), c, 0), "'a' expects shape (-1, 64) and dtype fp32, found (32, 64) and int32"),
        (arguments(a.reshape(64, 32), c, 0), "'a' expects shape (-1, 64)"),
        (arguments(a, 3, 0), "'c' is a tensor, found 3"),
        (arguments(a, c, c), "'n' is a scalar, found a tensor"),
        (arguments(a, c, 0.5), "'n' expects an integer (int64), found 0.5"),
    ):
        with pytest.raises(TypeError) as error:
            program.execute(bad)
        assert message in str(error.value)
    assert (c == 0).all()
