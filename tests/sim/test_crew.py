"""Cores that wait for each other: queues, events, barriers, deadlocks."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from build_directory import arguments

from pypto.sim import DeadlockError, ExecutionError
from pypto.sim import recording as rec

GROUP = {"name": "mix", "group": {"aic": "cube", "aiv": "vector", "lanes": 2}}
ONE_LANE = {"name": "mix", "group": {"aic": "cube", "aiv": "vector", "lanes": 1}}

MAIN = """orchestration @main {
  param %a : tensor<?x64xfp32> in
  param %b : tensor<64x64xfp32> in
  param %c : tensor<?x64xfp32> out
  dim %rows, %a, 0
  sdiv.index %n, %rows, 32
  submit %t, @mix, [%a, %b, %c], [], [1, 1, 3] {blocks = %n}
}
"""
PARAMETERS = """
  param %a : tensor<?x64xfp32> in
  param %b : tensor<64x64xfp32> in
  param %c : tensor<?x64xfp32> out
  sblockidx %block
  smul.index %row, %block, 32
"""
CUBE_TILES = """
  tile %ma : mat<32x64xfp32> at 0
  tile %mb : mat<64x64xfp32> at 8192
  tile %back : mat<32x64xfp32> at 32768
  tile %l : left<32x64xfp32> at 0
  tile %r : right<64x64xfp32> at 0
  tile %acc : acc<32x64xfp32> at 0
"""


def cube(body: str) -> str:
    return f'kernel @cube aic {{\n file 0 "cube.py" {PARAMETERS} {CUBE_TILES} {body} }}'


def vector(body: str, rows: int = 16, cols: int = 64) -> str:
    tiles = f"tile %t : vec<{rows}x{cols}xfp32> at 0\n tile %u : vec<{rows}x{cols}xfp32> at 65536"
    return f'kernel @vector aiv {{\n file 0 "vector.py" {PARAMETERS} {tiles}\n ssubblock %lane\n {body} }}'


PRODUCT = """
  tload %ma, %a, [%row, 0], [32, 64], [32, 64]
  tload %mb, %b, [0, 0], [64, 64], [64, 64]
  tmov %l, %ma
  tmov %r, %mb
  tmatmul %acc, %l, %r
"""


def _inputs(blocks=3):
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(32 * blocks, 64, generator=generator), torch.randn(64, 64, generator=generator)
    return a, b, torch.zeros(32 * blocks, 64)


def _run(program, a, b, c, **options):
    return program.execute(arguments(a.numpy(), b.numpy(), c.numpy()), record=True, **options).recording


@pytest.mark.parametrize("split", [1, 2])
def test_each_lane_gets_its_half_of_a_product(load, split):
    rows, cols = (16, 64) if split == 1 else (32, 32)
    offset = "smul.index %first, %lane, 16" if split == 1 else "smul.index %left, %lane, 32"
    start = "smov.index %left, 0" if split == 1 else "smov.index %first, 0"
    program = load(
        MAIN,
        cube(PRODUCT + f"tpush_to_aiv %acc {{split = {split}}}"),
        vector(
            f"""{offset}
            {start}
            sadd.index %first, %first, %row
            tpop_from_aic %t {{split = {split}}}
            texp %u, %t
            tfree_to_aic %t {{split = {split}}}
            tstore %c, %u, [%first, %left], [{rows}, {cols}], [{rows}, {cols}]""",
            rows,
            cols,
        ),
        groups=[GROUP],
    )
    a, b, c = _inputs()
    recording = _run(program, a * 0.1, b * 0.1, c)
    torch.testing.assert_close(c, torch.exp((a * 0.1) @ (b * 0.1)), rtol=2e-5, atol=1e-6)
    assert recording.task_kind.tolist() == [rec.MIX]
    assert recording.subtask_block.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert recording.subtask_lane.tolist() == [0, 0, 1] * 3
    assert [recording.programs[p].name for p in recording.subtask_program[:3]] == ["cube", "vector", "vector"]


def test_a_whole_tile_reaches_both_lanes(load):
    program = load(
        MAIN,
        cube(PRODUCT + "tpush_to_aiv %acc"),
        vector(
            """tpop_from_aic %t
            tfree_to_aic %t
            smul.index %first, %lane, 16
            sadd.index %first, %first, %row
            textract %u, %t, 0, 0
            if %lane {
              textract %u, %t, 16, 0
            }
            tstore %c, %u, [%first, 0], [16, 64], [16, 64]""",
            32,
        ).replace("tile %u : vec<32x", "tile %u : vec<16x"),
        groups=[GROUP],
    )
    a, b, c = _inputs()
    _run(program, a, b, c)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)


def test_lanes_send_their_halves_to_the_cube(load):
    program = load(
        MAIN,
        cube(
            """tload %mb, %b, [0, 0], [64, 64], [64, 64]
            tpop_from_aiv %back {split = 1}
            tmov %l, %back
            tfree_to_aiv %back {split = 1}
            tmov %r, %mb
            tmatmul %acc, %l, %r
            tstore %c, %acc, [%row, 0], [32, 64], [32, 64]"""
        ),
        vector(
            """smul.index %first, %lane, 16
            sadd.index %first, %first, %row
            tload %t, %a, [%first, 0], [16, 64], [16, 64]
            tmuls %t, %t, 2.0
            tpush_to_aic %t {split = 1}"""
        ),
        groups=[GROUP],
    )
    a, b, c = _inputs()
    recording = _run(program, a, b, c)
    torch.testing.assert_close(c, 2 * a @ b, rtol=1e-4, atol=1e-4)
    cube_rows = recording.trace[recording.subtask_trace_start[0] : recording.subtask_trace_stop[0]]
    names = [recording.programs[0].mnemonics[recording.programs[0].mnemonic[pc]] for pc in cube_rows[:-1, 0]]
    assert names.index("tpop_from_aiv") == 1
    assert cube_rows[1, 1:3].tolist() == [32, 64]


PING_PONG = """
  smov.index %n, 20
  for %i = 0 to %n {{
    {0}
  }}
"""


def test_more_tiles_than_slots_go_through_a_queue(load):
    """Twenty round trips through queues of four slots; sequence numbers count them."""
    program = load(
        MAIN,
        cube(
            "tload %ma, %a, [%row, 0], [32, 64], [32, 64]\n tmov %back, %ma\n tmov %l, %ma\n"
            + PRODUCT
            + PING_PONG.format(
                "tpush_to_aiv %acc {split = 1}\n tpop_from_aiv %back {split = 1}\n tfree_to_aiv %back {split = 1}"
            )
            + "tload %mb, %b, [0, 0], [64, 64], [64, 64]\n tmov %l, %back\n tmov %r, %mb\n tmatmul %acc, %l, %r\n"
            + "tstore %c, %acc, [%row, 0], [32, 64], [32, 64]"
        ),
        vector(
            PING_PONG.format("tpop_from_aic %t {split = 1}\n tfree_to_aic %t {split = 1}\n tpush_to_aic %t {split = 1}")
        ),
        groups=[GROUP],
    )
    a, b, c = _inputs(1)
    recording = _run(program, a, b, c)
    torch.testing.assert_close(c, a @ b @ b, rtol=1e-3, atol=1e-2)
    rows = recording.trace[recording.subtask_trace_start[1] : recording.subtask_trace_stop[1]]
    record = recording.programs[recording.subtask_program[1]]
    pops = [
        row for row in rows.tolist() if row[0] >= 0 and record.mnemonics[record.mnemonic[row[0]]] == "tpop_from_aic"
    ]
    assert [row[4] for row in pops] == list(range(20))


@pytest.mark.parametrize(
    ("split", "valid", "lanes"), [(1, 20, [16, 4]), (1, 7, [7, 0]), (3, 31, [16, 15]), (0, 20, [20, 20])]
)
def test_valid_rows_are_divided_between_the_lanes(load, split, valid, lanes):
    program = load(
        MAIN,
        cube(f"{PRODUCT} setvalid %acc, {valid}, 64\n tpush_to_aiv %acc {{split = {split}}}"),
        vector(f"tpop_from_aic %t {{split = {split}}}\n tfree_to_aic %t", 32 if split == 0 else 16),
        groups=[GROUP],
    )
    recording = _run(program, *_inputs(1))
    assert [int(recording.trace[recording.subtask_trace_start[k], 1]) for k in (1, 2)] == lanes


def test_events_order_the_two_sides(load):
    """The vector lanes write what the cube then reads, ordered by an event only."""
    program = load(
        MAIN.replace("[1, 1, 3]", "[4, 1, 3]").replace("%a : tensor<?x64xfp32> in", "%a : tensor<?x64xfp32> inout"),
        cube("sync_wait 3 {pipe = MTE2}\n" + PRODUCT + "tstore %c, %acc, [%row, 0], [32, 64], [32, 64]").replace(
            "fp32> in\n  param %b", "fp32> inout\n  param %b"
        ),
        vector(
            """smul.index %first, %lane, 16
            sadd.index %first, %first, %row
            tload %t, %a, [%first, 0], [16, 64], [16, 64]
            tmuls %t, %t, 3.0
            tstore %a, %t, [%first, 0], [16, 64], [16, 64]
            sync_set 3 {pipe = MTE3}"""
        ).replace("fp32> in\n  param %b", "fp32> inout\n  param %b"),
        groups=[GROUP],
    )
    a, b, c = _inputs()
    original = a.clone()
    _run(program, a, b, c)
    torch.testing.assert_close(c, 3 * original @ b, rtol=1e-4, atol=1e-3)


BARRIER_MAIN = """orchestration @main {
  param %x : tensor<?x16xint32> inout
  param %y : tensor<?x16xint32> out
  dim %n, %x, 0
  submit %t, @k, [%x, %y], [], [4, 3] {blocks = %n}
}"""
BARRIER = """kernel @k aiv {
  file 0 "k.py"
  param %x : tensor<?x16xint32> inout
  param %y : tensor<?x16xint32> out
  tile %t : vec<1x16xint32> at 0
  sblockidx %b
  sblocknum %n
  tload %t, %x, [%b, 0], [1, 16], [1, 16]
  tadds %t, %t, 1
  tstore %x, %t, [%b, 0], [1, 16], [1, 16]
  syncall {core_type = aiv_only}                                     @0:9
  ssub.index %last, %n, 1
  ssub.index %other, %last, %b
  tload %t, %x, [%other, 0], [1, 16], [1, 16]
  syncall {core_type = aiv_only}
  tstore %y, %t, [%b, 0], [1, 16], [1, 16]
}"""


@pytest.mark.parametrize("blocks", [1, 2, 48])
def test_a_barrier_of_all_blocks(load, blocks):
    program = load(BARRIER_MAIN, BARRIER)
    x = np.arange(blocks * 16, dtype=np.int32).reshape(blocks, 16)
    y, expected = np.zeros_like(x), (x + 1)[::-1]
    recording = program.execute(arguments(x, y), record=True).recording
    np.testing.assert_array_equal(y, expected)
    assert recording.subtask_block.tolist() == list(range(blocks))


def test_a_barrier_of_more_blocks_than_the_chip_runs(load):
    program = load(BARRIER_MAIN, BARRIER)
    x = np.zeros((6, 16), np.int32)
    program.execute(arguments(x, x.copy()), clusters=3)
    with pytest.raises(DeadlockError) as error:
        program.execute(arguments(x, x.copy()), clusters=2)
    lines = str(error.value).splitlines()
    assert lines[0] == "deadlock: 4 of the cores that run wait and none can go on"
    assert (
        lines[1]
        == "  k, block 0, AIV0: waits at a barrier of all blocks (aiv_only), to which 4 of 6 cores have come at k.py:9"
    )
    assert "2 of the 6 blocks cannot start before these end" in lines[-1]
    assert "runs 4 of its blocks at once" in lines[-1]


@pytest.mark.parametrize(
    ("cube_body", "vector_body", "reasons"),
    [
        (
            "",
            "tpop_from_aic %t @0:5",
            [
                "vector, block 0, AIV0: waits for a tile in queue 0: AIC has pushed 0 into it, and has ended at vector.py:5"
            ],
        ),
        (
            "for %i = 0 to 9 {\n tpush_to_aiv %acc {split = 1, id = 2} @0:8\n }",
            "tpop_from_aic %t {split = 1, id = 2} @0:4",
            [
                "cube, block 0, AIC: waits for a free slot in queue 2: AIV0 frees none of its 8: 1 popped and not freed "
                "(vector.py:4), 7 not popped, and has ended at cube.py:8"
            ],
        ),
        ("sync_wait 4 {pipe = M} @0:3", "", ["cube, block 0, AIC: waits for event 4, which nobody sets at cube.py:3"]),
        (
            "tpop_from_aiv %back @0:2\n tpush_to_aiv %acc",
            "tpop_from_aic %t @0:4\n tpush_to_aic %t",
            ["cube, block 0, AIC: waits for a tile", "vector, block 0, AIV0: waits for a tile"],
        ),
    ],
)
def test_a_wait_that_nobody_answers_is_reported(load, cube_body, vector_body, reasons):
    program = load(MAIN, cube(cube_body), vector(vector_body), groups=[GROUP])
    a, b, c = _inputs(1)
    with pytest.raises(DeadlockError) as error:
        _run(program, a, b, c)
    for reason in reasons:
        assert re.search(re.escape(reason), str(error.value))


def test_a_tile_that_does_not_fit_and_a_slot_freed_twice(load):
    a, b, c = _inputs(1)
    wide = load(MAIN, cube("tpush_to_aiv %acc"), vector("tpop_from_aic %t @0:1\n tfree_to_aic %t"), groups=[ONE_LANE])
    with pytest.raises(
        ExecutionError, match=r"pushed by the other core is 32 x 64 fp32 and does not fit 't', which is 16 x"
    ):
        _run(wide, a, b, c)
    twice = load(
        MAIN,
        cube("tpush_to_aiv %acc {split = 1}"),
        vector("tpop_from_aic %t {split = 1}\n tfree_to_aic %t\n tfree_to_aic %t @0:3"),
        groups=[ONE_LANE],
    )
    with pytest.raises(
        ExecutionError, match=r"slot of 't' is freed a second time, first at .*\nin vector at vector.py:3"
    ):
        _run(twice, a, b, c)


def test_a_group_without_waits_runs_its_members_one_after_the_other(load):
    program = load(
        MAIN,
        cube(PRODUCT + "tstore %c, %acc, [%row, 0], [32, 64], [32, 64]"),
        vector("tmuls %t, %t, 1.0"),
        groups=[GROUP],
    )
    a, b, c = _inputs(2)
    recording = _run(program, a, b, c)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)
    assert recording.subtask_block.tolist() == [0, 0, 0, 1, 1, 1]
    assert recording.subtask_lane.tolist() == [0, 0, 1, 0, 0, 1]


def test_columns_from_both_lanes_are_put_side_by_side(load):
    program = load(
        MAIN,
        cube(
            """tload %mb, %b, [0, 0], [64, 64], [64, 64]
            tpop_from_aiv %back {split = 2}
            tmov %l, %back
            tfree_to_aiv %back {split = 2}
            tmov %r, %mb
            tmatmul %acc, %l, %r
            tstore %c, %acc, [%row, 0], [32, 64], [32, 64]"""
        ),
        vector(
            """smul.index %left, %lane, 32
            tload %t, %a, [%row, %left], [32, 32], [32, 32]
            tpush_to_aic %t {split = 2}""",
            32,
            32,
        ),
        groups=[GROUP],
    )
    a, b, c = _inputs()
    _run(program, a, b, c)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("stride", "valid", "lanes"), [(10, 20, [10, 10]), (10, 14, [10, 4]), (16, 32, [16, 16])])
def test_lane_stride_moves_the_second_part(load, stride, valid, lanes):
    """Lane 1 starts ``stride`` rows into the tile; both boxes are half the tile (spec ops 17)."""
    program = load(
        MAIN,
        cube(f"{PRODUCT} setvalid %acc, {valid}, 64\n tpush_to_aiv %acc {{split = 1, lane_stride = {stride}}}"),
        vector(
            f"""tpop_from_aic %t {{split = 1, lane_stride = {stride}}}
            tfree_to_aic %t {{split = 1}}
            smul.index %first, %lane, {stride}
            setvalid %t, 10, 64
            tstore %c, %t, [%first, 0], [10, 64], [10, 64]"""
        ),
        groups=[GROUP],
    )
    a, b, c = _inputs(1)
    recording = _run(program, a, b, c)
    assert [int(recording.trace[recording.subtask_trace_start[k], 1]) for k in (1, 2)] == lanes
    expected = a @ b
    for lane in range(2):
        rows = slice(lane * stride, lane * stride + 10)
        torch.testing.assert_close(c[rows], expected[rows], rtol=1e-4, atol=1e-4)


EVENT_MAIN = """orchestration @main {
  param %x : tensor<?x16xint32> inout
  dim %n, %x, 0
  submit %t, @pair, [%x], [], [4] {blocks = %n}
}"""


def _exchange(index: str, peer: str, mode: int) -> str:
    """Every core adds 1 to its row, waits until the others have, and takes the row of its peer."""
    return f"""kernel @k aiv {{
      param %x : tensor<?x16xint32> inout
      tile %t : vec<1x16xint32> at 0
      {index}
      tload %t, %x, [%i, 0], [1, 16], [1, 16]
      tadds %t, %t, 1
      tstore %x, %t, [%i, 0], [1, 16], [1, 16]
      sync_set 5 {{pipe = MTE3, ffts_mode = {mode}}}
      sync_wait 5 {{pipe = MTE2}}
      {peer}
      tload %t, %x, [%p, 0], [1, 16], [1, 16]
      sync_set 6 {{pipe = MTE2, ffts_mode = {mode}}}
      sync_wait 6 {{pipe = MTE3}}
      tstore %x, %t, [%i, 0], [1, 16], [1, 16]
    }}"""


def test_an_event_between_the_lanes_of_a_cluster(load):
    program = load(
        EVENT_MAIN.replace("dim %n, %x, 0", "smov.index %n, 1"),
        _exchange("ssubblock %i", "ssub.index %p, 1, %i", mode=1),
        groups=[{"name": "pair", "group": {"aic": None, "aiv": "k", "lanes": 2}}],
    )
    x = np.arange(32, dtype=np.int32).reshape(2, 16)
    expected = x[::-1] + 1
    program.execute(arguments(x))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("blocks", [1, 5])
def test_an_event_between_all_blocks(load, blocks):
    program = load(
        EVENT_MAIN.replace("@pair", "@k"),
        _exchange("sblockidx %i", "sblocknum %n\n ssub.index %p, %n, 1\n ssub.index %p, %p, %i", mode=0),
    )
    x = np.arange(blocks * 16, dtype=np.int32).reshape(blocks, 16)
    expected = x[::-1] + 1
    program.execute(arguments(x))
    np.testing.assert_array_equal(x, expected)


def test_an_event_outside_the_sixteen(load):
    program = load(
        EVENT_MAIN.replace("@pair", "@k"),
        'kernel @k aiv {\n file 0 "k.py"\n param %x : tensor<?x16xint32> inout\n sync_set 16 {pipe = V} @0:4\n}',
    )
    with pytest.raises(ExecutionError, match=r"an event id is outside 0..15\nin k at k.py:4"):
        program.execute(arguments(np.zeros((1, 16), np.int32)))
