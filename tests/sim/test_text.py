"""The kernel text: what parses, how it prints, and what the errors say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim.printer import to_text
from pypto.sim.syntax import (
    Array,
    For,
    Group,
    If,
    Instruction,
    KernelName,
    Place,
    Register,
    ScalarParameter,
    Slots,
    TensorParameter,
    TensorRegister,
    Tile,
    Unit,
    While,
)
from pypto.sim.text import DTYPE_NAMES, LAYOUTS, TextError, parse, read_unit

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
DTYPES = st.sampled_from(sorted(DTYPE_NAMES))
REGISTERS = st.builds(Register, NAMES)
PLACES = st.none() | st.builds(Place, st.integers(0, 3), st.integers(1, 9999))
FLOATS = st.floats(allow_nan=False)
ATOMS = REGISTERS | st.builds(KernelName, NAMES) | st.integers(-(2**63), 2**63) | FLOATS
OPERANDS = ATOMS | st.lists(ATOMS, max_size=4).map(tuple)
KEYWORDS = {"file", "param", "tile", "tensor", "array", "for", "if", "else", "while", "inf", "nan"}
MNEMONICS = st.from_regex(r"[a-z_]{1,6}(\.[a-z0-9]{1,4})?", fullmatch=True).filter(lambda name: name not in KEYWORDS)
VALUES = st.integers(-99, 99) | FLOATS | REGISTERS | NAMES.filter(lambda n: n not in KEYWORDS)
ATTRIBUTES = st.dictionaries(NAMES.filter(lambda n: n not in KEYWORDS), VALUES, max_size=3)
INSTRUCTIONS = st.builds(Instruction, MNEMONICS, st.lists(OPERANDS, max_size=4).map(tuple), ATTRIBUTES, PLACES)
BOUNDS = REGISTERS | st.integers(-100, 100)


def _nest(statements):
    blocks = st.lists(statements, max_size=3).map(tuple)
    return (
        st.builds(For, REGISTERS, BOUNDS, BOUNDS, BOUNDS, blocks, PLACES)
        | st.builds(If, REGISTERS, blocks, blocks, PLACES)
        | st.builds(While, blocks, REGISTERS, blocks, PLACES)
    )


STATEMENTS = st.recursive(INSTRUCTIONS, _nest, max_leaves=8)
EXTENTS = st.lists(st.integers(-1, 4096).map(lambda e: -1 if e == 0 else e), min_size=1, max_size=8).map(tuple)
DIRECTIONS = st.sampled_from(("in", "out", "inout"))
SLOTS = st.none() | st.builds(Slots, st.integers(1, 8), st.integers(0, 65536), REGISTERS)


@st.composite
def units(draw):
    names = iter(draw(st.lists(NAMES, min_size=12, max_size=12, unique=True)))
    size = st.integers(1, 4096)
    scalars = [ScalarParameter(next(names), draw(DTYPES)) for _ in range(draw(st.integers(0, 2)))]
    tensors = [
        TensorParameter(
            next(names), draw(EXTENTS), draw(DTYPES), draw(st.sampled_from(("in", "out", "inout"))), draw(st.booleans())
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    tiles = [
        Tile(
            next(names),
            draw(st.sampled_from(("vec", "mat", "left", "acc"))),
            draw(size),
            draw(size),
            draw(DTYPES),
            draw(st.integers(0, 1 << 19)),
            draw(st.none() | size),
            draw(SLOTS),
            draw(st.none() | st.tuples(size, size)),
            draw(st.none() | st.sampled_from(LAYOUTS)),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    views = [TensorRegister(next(names), draw(st.integers(1, 8)), draw(DTYPES)) for _ in range(draw(st.integers(0, 2)))]
    arrays = [Array(next(names), draw(size), draw(DTYPES)) for _ in range(draw(st.integers(0, 2)))]
    files = draw(st.dictionaries(st.integers(0, 9), st.from_regex(r"[a-z/. ]{1,10}", fullmatch=True), max_size=2))
    body = tuple(draw(st.lists(STATEMENTS, max_size=4)))
    core = draw(st.sampled_from(("aiv", "aic", None)))
    return Unit(draw(NAMES), core, files, (*scalars, *tensors), tuple(tiles), tuple(views), tuple(arrays), body)


@settings(max_examples=150, deadline=None)
@given(units())
def test_a_printed_unit_parses_to_itself(unit):
    assert parse(to_text(unit)) == unit


@given(st.builds(Group, NAMES, st.none() | NAMES, NAMES, st.sampled_from((1, 2))))
def test_a_printed_group_parses_to_itself(group):
    assert parse(to_text(group)) == group


@settings(max_examples=100, deadline=None)
@given(units(), st.randoms(use_true_random=False))
def test_blanks_and_comments_change_nothing(unit, random):
    lines = to_text(unit).splitlines()
    noisy = [" " * random.randrange(4) + line.strip() + random.choice(["", "  // note", "\n\n"]) for line in lines]
    assert parse("\n".join(noisy)) == unit


def test_everything_on_one_line():
    unit = parse("kernel @k aiv { param %n : scalar<int32> if %n { break } else { ret } tadd %a, %b, %c {m = x} @0:3 }")
    assert isinstance(unit, Unit)
    assert [type(s).__name__ for s in unit.body] == ["If", "Instruction"]
    assert unit.body[1].place == Place(0, 3)


def test_not_a_number_is_an_operand():
    unit = parse("kernel @k aiv { smov.fp32 %a, nan }")
    assert math.isnan(unit.body[0].operands[1])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("kernel @a aiv {\n  tadd %a %b\n}", 2, 11, "expected ',' or the end of 'tadd', found '%b'"),
        ("kernel @a aiv {\n  tadd %a,\n}", 3, 1, "expected an operand"),
        ("kernel @a avi {\n}", 1, 11, "expected the core of the kernel, 'aiv' or 'aic', found 'avi'"),
        ("kernel @a aiv {\n  tile %t : vec<3x4xfp33> at 0\n}", 2, 17, "unknown dtype 'fp33'; known: bool"),
        ("kernel @a aiv {\n  tile %t : ub<3x4xfp32> at 0\n}", 2, 13, "unknown memory space 'ub'; known: ddr, vec"),
        (
            "kernel @a aiv {\n  tile %t : vec<?x4xfp32> at 0\n}",
            2,
            17,
            "dynamic extent '?' is legal in tensor parameters only",
        ),
        ("kernel @a aiv {\n  param %t : scalar<fp32>\n  tile %t : vec<3x4xfp32> at 0\n}", 3, 8, "%t is declared twice"),
        ("kernel @a aiv {\n  for %i = 0 {\n  }\n}", 2, 14, "expected 'to' after the first value, found '{'"),
        (
            "kernel @a aiv {\n  for %i = 0 to 4 {\n",
            3,
            1,
            "the '}' that closes the loop is missing (its body starts at line 3)",
        ),
        ("kernel @a aiv {\n  tadd %a {x = 1, x = 2}\n}", 2, 19, "attribute 'x' is given twice"),
        ("kernel @a aiv {\n}\nkernel @b aiv {\n}", 3, 1, "one unit per file"),
        ("kernel @a aiv {\n  tadd ;\n}", 2, 8, "unexpected character ';'"),
        ("kernels @a aiv {\n}", 1, 1, "expected 'kernel', 'orchestration' or 'group', found 'kernels'"),
        ("", 1, 1, "expected 'kernel', 'orchestration' or 'group', found end of the file"),
        ("group @g { }", 1, 10, "group @g has no member"),
        (
            "kernel @a aiv {\n  smov.int64 %x, 18446744073709551616\n}",
            2,
            18,
            "18446744073709551616 does not fit 64 bits",
        ),
        ("kernel @a aiv {\n  tile %t : vec<99999999999999999999x4xfp32> at 0\n}", 2, 17, "does not fit 64 bits"),
        ("kernel @a aiv {\n  tile %t : vec<9223372036854775807x4xfp32> at 0\n}", 3, 1, "beyond every on-chip memory"),
        ("kernel @a aiv {\n  tensor %t : 9 x fp32\n}", 3, 1, "tensor %t has rank 9; legal ranks are 1 to 8"),
    ],
)
def test_errors_name_file_line_and_column(text, line, column, message):
    with pytest.raises(TextError) as error:
        parse(text, "kernels/aiv/a.pto")
    assert message in str(error.value)
    assert str(error.value).startswith(f"kernels/aiv/a.pto:{line}:{column}: ")
    assert (error.value.line, error.value.column) == (line, column)


def test_the_caret_stands_under_the_mistake():
    with pytest.raises(TextError) as error:
        parse("kernel @a aiv {\n  tadd %a %bb\n}", "a.pto")
    shown = str(error.value).splitlines()[1:]
    assert shown == ["    tadd %a %bb", "            ^^^"]


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "k.pto"
    path.write_bytes(b"kernel @k aiv {\n  // \xff\xfe\n}")
    with pytest.raises(ValueError, match=r"k.pto:2:1: byte 21 is not UTF-8 text"):
        read_unit(path)
