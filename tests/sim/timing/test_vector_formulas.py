"""The vector unit of a2a3 against every figure of the hardware notes, section 6: the mechanism gives the formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instructions import A2A3, busy_cycles, price

from pypto.sim.timing.recipes import RECIPES
from pypto.validation.writer import Kernel

HALF, WORD = "fp16", "fp32"
LANES = {"fp32": 64, "fp16": 128}

# 6.4: cycles per element and cycles beside them, of aligned tiles; 17 more where rows are wider or ragged
TILES = {
    ("tadds", WORD): (1 / 64, 25), ("tadds", HALF): (1 / 128, 25),
    ("tmuls", WORD): (1 / 64, 26), ("tmuls", HALF): (1 / 128, 26),
    ("tmins", WORD): (1 / 64, 23), ("tmins", HALF): (1 / 128, 23),
    ("tmul", WORD): (1 / 32, 26), ("tmul", HALF): (1 / 64, 26),
    ("tadd", WORD): (1 / 32, 25), ("tadd", HALF): (1 / 64, 25),
    ("tsub", WORD): (1 / 32, 25), ("tsub", HALF): (1 / 64, 25),
    ("tdivs", WORD): (5 / 64, 45), ("tdivs", HALF): (9 / 128, 45),
    ("texp", WORD): (2 / 64, 30.1),
}  # fmt: skip
SOURCES = {"tadd": 2, "tsub": 2, "tmul": 2, "tdiv": 2, "tmax": 2, "tand": 2, "tcmp": 2, "tsel": 2}


@pytest.mark.parametrize(("mnemonic", "kind"), TILES)
@pytest.mark.parametrize("rows", [4, 16, 100])
def test_tiles_of_whole_repeats(mnemonic, kind, rows):
    slope, rest = TILES[mnemonic, kind]
    got = price(mnemonic, kind, rows, LANES[kind], sources=SOURCES.get(mnemonic, 1))
    assert got == pytest.approx(slope * rows * LANES[kind] + rest, abs=1)


@pytest.mark.parametrize(("mnemonic", "kind"), [key for key in TILES if key[0] != "texp"])
@pytest.mark.parametrize("repeats", [2, 3])
def test_rows_wider_than_a_repeat_that_do_not_follow_one_another(mnemonic, kind, repeats):
    slope, rest = TILES[mnemonic, kind]
    cols = repeats * LANES[kind]
    got = price(mnemonic, kind, 16, cols, sources=SOURCES.get(mnemonic, 1), stride=2 * cols)
    assert got == pytest.approx(slope * 16 * cols + rest + 17, abs=1)


@pytest.mark.parametrize("mnemonic", ["tmul", "tsub"])
@pytest.mark.parametrize(("kind", "cols"), [(WORD, 32), (HALF, 32), (HALF, 64), (HALF, 96)])
def test_short_rows_of_two_sources_cost_a_pass_each(mnemonic, kind, cols):
    """2 cycles per row and 42 to 43 beside them."""
    a, b = (price(mnemonic, kind, rows, cols, sources=2) for rows in (10, 50))
    assert (b - a) / 40 == 2 and a - 20 == pytest.approx(42.5, abs=1.5)


@pytest.mark.parametrize(("mnemonic", "published"), [
    ("tadds", 0.0169), ("tmuls", 0.0169), ("tmins", 0.0169), ("tsub", 0.0325), ("tmul", 0.0325),
])  # fmt: skip
def test_the_published_fit_of_128_columns_is_the_split_after_255_repeats(mnemonic, published):
    """A straight line through 8 to 256 rows: more per element than half a repeat, less beside it (14.5 to 17.5)."""
    rows = np.arange(8, 257, 8)
    times = [price(mnemonic, WORD, int(r), 128, sources=SOURCES.get(mnemonic, 1)) for r in rows]
    slope, rest = np.polyfit(rows * 128, times, 1)
    assert slope == pytest.approx(published, abs=0.0001)
    assert 14.5 <= rest <= 18.2


def columns(text):
    return [(int(part.split(":")[0]), *map(float, part.split(":")[1].strip("()").split(","))) for part in text.split()]


# 6.4: columns: (cycles per row, cycles beside them)
ROWS_AND_COLUMNS = {
    ("trowmax", WORD): "8:(7,46) 32:(7,47) 64:(7,32) 96:(9,61) 128:(8,48) 144:(10,77) 176:(9.8,79) 208:(10.8,100) "
    "240:(10.8,100) 272:(13.2,98) 304:(13.2,110) 336:(14,131)",
    ("trowmax", HALF): "32:(7,48) 64:(7,43) 96:(7,43) 128:(7,33) 160:(9,62) 208:(9,63) 240:(9.3,62) 272:(10,74) "
    "304:(9.8,80) 336:(10.1,97) 400:(11.2,92) 496:(11,119) 560:(13.5,110) 656:(14.7,125)",
    ("trowsum", WORD): "8:(7,58) 32:(7,59) 64:(7,44) 96:(9,75) 128:(8,61.5) 144:(10.1,92) 176:(10.1,93) "
    "208:(11.1,99) 240:(11.3,99) 272:(13.2,104) 304:(13.1,104) 336:(14.1,121)",
    ("trowsum", HALF): "32:(7,62) 64:(7,57) 96:(7,57) 128:(7,47) 160:(9,78) 208:(9.1,79) 272:(10,94) 336:(10,115) "
    "400:(11,103) 496:(11.4,121) 560:(13.1,106) 656:(14,126)",
    ("trowexpand", WORD): "8:(14.1,33) 32:(14,37) 64:(14,37) 96:(15,37) 128:(15.1,34.5)",
    ("trowexpand", HALF): "32:(14,37) 64:(14,37) 96:(14,37) 128:(14,37) 160:(15,37) 192:(15,37)",
    ("tcolsum", WORD): "8:(19,29) 16:(19.1,18) 32:(19.3,15) 64:(19.5,15) 96:(21,14) 128:(22.1,8) 176:(23.1,30) "
    "240:(24.7,36) 336:(28,34)",
    ("tcolsum", HALF): "16:(19.1,21) 32:(19.1,15) 64:(19.3,15) 128:(19.5,15) 160:(21,14) 240:(21.6,28) "
    "336:(23.2,30) 432:(24.6,36) 560:(26.5,35) 656:(28.3,34)",
    ("tcolmax", WORD): "8:(17,24) 32:(17.3,16) 64:(17.5,17) 96:(35,2) 128:(20.1,10)",
    ("tcolmax", HALF): "32:(17.1,16) 64:(17.2,16) 96:(17.6,19) 128:(17.5,17) 160:(35,2) 192:(35,2)",
}
CASES = [(*key, *figures) for key, text in ROWS_AND_COLUMNS.items() for figures in columns(text)]


@pytest.mark.parametrize(("mnemonic", "kind", "cols", "per_row", "rest"), CASES)
def test_row_and_column_operations(mnemonic, kind, cols, per_row, rest):
    """Every entry of the table: slope and tall tile within 6 %, a low one within 12."""
    shape = "tile" if "expand" in mnemonic else mnemonic[1:4]
    low, tall = (price(mnemonic, kind, rows, cols, shape=shape) for rows in (8, 64))
    assert (tall - low) / 56 == pytest.approx(per_row, rel=0.06)
    assert tall == pytest.approx(64 * per_row + rest, rel=0.06)
    assert low == pytest.approx(8 * per_row + rest, rel=0.12)


def test_the_mean_of_the_row_and_column_table_is_close():
    errors = []
    for mnemonic, kind, cols, per_row, rest in CASES:
        shape = "tile" if "expand" in mnemonic else mnemonic[1:4]
        errors.append(abs(price(mnemonic, kind, 64, cols, shape=shape) / (64 * per_row + rest) - 1))
    assert len(errors) == 91 and sum(errors) / len(errors) < 0.016


@pytest.mark.parametrize("kind", [WORD, HALF])
@given(cols=st.integers(1, 700), rows=st.integers(2, 200))
def test_a_reduction_folds_the_repeats_of_a_row_into_one(kind, cols, rows):
    """One whole-repeat reduction of 7 cycles per row, one cycle and one instruction per repeat folded (6.4)."""
    whole, tail = divmod(cols, LANES[kind])
    got = price("trowsum", kind, rows, cols, shape="row")
    folds = max(whole - 1, 0) + (2 if tail and whole else 0)
    assert got >= 7 * rows + folds * rows + 44
    assert got <= 7 * rows + (folds + 1) * rows + 44 + 16 * folds + 13


# 6.1: cycles of r repeats measured alone: slope, rest
LINES = {
    "tadd": (2.11, 24), "tmax": (2.01, 23), "tdiv": (4.03, 31), "tand": (2.03, 20), "tmuls": (1.0, 26),
    "tmaxs": (1.0, 23), "trelu": (1.0, 23), "tlrelu": (1.03, 26), "texp": (2.0, 31), "tlog": (2.0, 33),
    "trsqrt": (1.07, 24),
}  # fmt: skip


@pytest.mark.parametrize("mnemonic", LINES)
def test_measured_lines_of_instructions(mnemonic):
    """Natural layout: operands at multiples of 512 bytes share bank groups (6.2)."""
    slope, rest = LINES[mnemonic]
    for rows in (8, 64, 200):
        kind = "int32" if mnemonic == "tand" else WORD
        got = price(mnemonic, kind, rows, 64, sources=SOURCES.get(mnemonic, 1))
        assert got == pytest.approx(slope * rows + rest, rel=0.065)


# 6.1: head, slope, tail of instructions without a line or a tile formula of their own
PARTS = {
    "tsqrt": (14, 2, 25), "tsel": (13, 2, 14), "tcmp": (14, 2, 22), "texpands": (11, 1, 13),
    "tgather_mask": (14, 14, 20), "trsqrt": (10, 1, 14),
}  # fmt: skip


@pytest.mark.parametrize("mnemonic", PARTS)
def test_head_slope_and_tail(mnemonic):
    head, slope, tail = PARTS[mnemonic]
    for rows in (1, 50):
        kernel_price = price(mnemonic, WORD, rows, 64, sources=SOURCES.get(mnemonic, 1))
        assert kernel_price == head + slope * rows + tail


FLOATS, INTEGERS = ("fp32", "fp16", "bfloat16"), ("int32", "int16", "int8", "uint8")


@pytest.mark.parametrize("result", (*FLOATS, *INTEGERS))
@pytest.mark.parametrize("source", (*FLOATS, *INTEGERS))
def test_a_conversion_takes_two_cycles_per_repeat_of_its_wider_side(source, result):
    """14, 2 and 18 for every pair (6.1); between bytes and the other kind of number it takes two instructions."""
    if source == result:
        return
    bits = {"fp32": 32, "int32": 32, "fp16": 16, "bfloat16": 16, "int16": 16, "int8": 8, "uint8": 8}
    lanes = 2048 // max(bits[source], bits[result])
    narrow = min(bits[source], bits[result]) == 8 and (source in FLOATS) != (result in FLOATS)
    for repeats in (1, 10):
        got = price("tcvt", source, repeats, lanes, result=result)
        assert got == (14 + 18 + 2 * repeats) + narrow * (2 + 18 + 2 * repeats)


# 6.2, V3: byte offsets of both sources and the result; cycles of 64 repeats
BANKS = [
    ("none", (0, 0x10100, 0x20000), 88.4), ("same bank", (0, 0x4000, 0x10000), 154),
    ("same group", (0, 0x10000, 0x14100), 154), ("write waits a repeat", (0, 0x10100, 0x4000), 88.4),
    ("write and read", (0, 0x10100, 0x4020), 139), ("in place", (0, 0x10100, 0x10100), 88.4),
]  # fmt: skip


@pytest.mark.parametrize(("which", "at", "published"), BANKS)
def test_bank_clashes(which, at, published):
    assert price("tadd", WORD, 1, 4096, sources=2, at=at) == pytest.approx(published, rel=0.015)


def test_an_offset_of_256_bytes_removes_the_clash_of_congruent_tiles():
    def add(offset):
        return price("tadd", WORD, 64, 64, sources=2, at=(0, (1 << 16) + offset, 2 << 16))

    assert add(0) - add(256) == 64 and add(512) == add(0)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_only_offsets_modulo_the_groups_decide_whether_reads_clash(first, second):
    """16 groups of 32 bytes; a repeat takes eight of them in a row."""
    a, b = 32 * first, 32 * second
    apart = (first - second) % 16
    clash = price("tadd", WORD, 64, 64, sources=2, at=(a, b, 1 << 16)) > 24 + 64 + 0.8 * 64 + 1
    assert clash == (min(apart, 16 - apart) < 8)


def test_the_half_add_of_the_tuning_guide_in_both_layouts():
    """1.0 r + 22.6 without clashes, 2.0 r + 22.5 in the natural layout, 127 repeats per instruction (6.2)."""
    free = price("tadd", HALF, 1, 127 * 128, sources=2, at=(0, 0x10100, 0x20000))
    natural = price("tadd", HALF, 1, 127 * 128, sources=2)
    assert free == pytest.approx(127 + 22.6, abs=2) and natural == pytest.approx(2 * 127 + 22.5, abs=2)


def test_the_head_is_paid_by_every_instruction_even_back_to_back():
    def chain(count, dependent):
        kernel = Kernel()
        tiles = [kernel.tile(8, 64) for _ in range(count + 1)]
        for i in range(count):
            kernel.do("tmuls", [tiles[i + 1]], [tiles[i if dependent else 0]])
        return busy_cycles(kernel, "V")

    for dependent in (False, True):
        assert chain(9, dependent) - chain(8, dependent) == pytest.approx(8 + 26, abs=0.1)


def test_a_barrier_of_the_vector_pipe():
    kernel = Kernel().do("pipe_barrier", pipe="V")
    assert busy_cycles(kernel, "V") == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize("mnemonic", ["tadd", "tmuls", "texp", "tcvt"])
@given(rows=st.integers(1, 60), cols=st.integers(1, 400))
def test_ragged_and_masked_rows_never_cost_less_than_whole_ones(mnemonic, rows, cols):
    """A masked tail costs a repeat and a second pass (6.3: 16 to 17 cycles)."""
    sources = SOURCES.get(mnemonic, 1)
    whole = -(-cols // 64) * 64
    ragged = price(mnemonic, WORD, rows, cols, sources=sources, stride=whole)
    same = price(mnemonic, WORD, rows, whole, sources=sources, stride=whole)
    shorter = price(mnemonic, WORD, rows, max(cols - 1, 1), sources=sources, stride=whole)
    assert shorter <= ragged + 17 and 0 <= same + 17 - ragged <= 17 + 30 * (rows * whole // 64 // 255)


@pytest.mark.parametrize(("rows", "cols"), [(1, 64), (16, 64), (16, 256)])
def test_a_gather_loops_over_rows(rows, cols):
    """46.6 cycles per row of one repeat, with the scalar multiply and the barrier of the loop (6.1)."""
    got = price("tgather", WORD, rows, cols, sources=2)
    assert got == pytest.approx(rows * (46.6 + 2 * (cols // 64 - 1)), abs=0.1)


def test_sorting():
    """8 rows of 32 in 8 cycles (X1); a four-way merge takes 20 cycles once and 78 per block of 64 pairs (6.1)."""
    assert price("tsort32", WORD, 8, 32) == 8
    for blocks in (1, 4, 16):
        assert price("tmrgsort", WORD, 1, 128 * blocks) == 20 + 78 * blocks
        assert price("tmrgsort", HALF, 1, 256 * blocks) == 20 + 78 * blocks


def test_a_transpose_takes_two_cycles_per_repeat():
    small, large = (price("ttrans", WORD, side, side) for side in (64, 128))
    assert large - small == 2 * (128 * 128 - 64 * 64) / 64
    assert large == pytest.approx(501, rel=0.07), "X1, an untouched row"


@pytest.mark.parametrize(("mnemonic", "scalar"), [("tdivs", True), ("tdiv", True), ("tscatter", True), ("tadd", False)])
def test_what_has_no_vector_form_is_scalar_code(mnemonic, scalar):
    """Integer division (6.5) and scatter take 34 cycles per element (8)."""
    got = price(mnemonic, "int32", 8, 64, sources=SOURCES.get(mnemonic, 1))
    assert (got == 34 * 8 * 64) == scalar


def test_a_lone_row_is_copied_at_a_block_a_cycle():
    """Published: 390 cycles for a row of 3072 floats, whatever is asked for (X1)."""
    for mnemonic in ("tcolmax", "tcolsum"):
        assert price(mnemonic, WORD, 1, 3072, shape="col") == 6 + 3072 * 4 / 32 == 390


@pytest.mark.parametrize("rows", [8, 64, 200])
def test_a_row_operation_broadcasts_its_column_first(rows):
    """Block broadcast: eight rows a repeat, 18 beside them; then the operation, a repeat per row of 64 (6.1)."""
    kernel = Kernel()
    tile, column, out = kernel.tile(rows, 64, at=0), kernel.tile(rows, 1, at=0x1E100), kernel.tile(rows, 64, at=1 << 16)
    kernel.do("trowexpandmul", [out], [tile, column])
    got = busy_cycles(kernel, "V")
    assert got == pytest.approx(18 + -(-rows // 8) + 26 + rows, abs=1.1)


def test_recipes_use_only_instructions_of_the_unit():
    names = set(A2A3.vector.ops.names())
    assert {op for recipe in RECIPES.values() for op in recipe.repeat} <= names
