"""Orchestrations: tasks, SPMD blocks, scopes, allocations, predicates, recordings, threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from build_directory import arguments

from pypto.sim import recording as rec
from pypto.sim.recording import Recording

SCALE = """kernel @scale aiv {
  param %x : tensor<?x64xfp32> in
  param %y : tensor<?x64xfp32> out
  param %k : scalar<fp32>
  tile %t : vec<8x64xfp32> at 0
  sblockidx %b
  smul.index %row, %b, 8
  tload %t, %x, [%row, 0], [8, 64], [8, 64]
  tmuls %t, %t, %k
  tstore %y, %t, [%row, 0], [8, 64], [8, 64]
}
"""


def test_blocks_of_an_spmd_task(load):
    program = load(
        """orchestration @main {
          param %x : tensor<?x64xfp32> in
          param %y : tensor<?x64xfp32> out
          dim %rows, %x, 0
          sdiv.index %n, %rows, 8
          submit %t, @scale, [%x, %y, 0.5], [], [1, 3, 0] {blocks = %n}
        }""",
        SCALE,
    )
    x = np.random.default_rng(0).standard_normal((72, 64), np.float32)
    y = np.zeros_like(x)
    recording = program.execute(arguments(x, y), record=True).recording
    np.testing.assert_array_equal(y, x * np.float32(0.5))
    assert recording.task_blocks.tolist() == [9]
    assert recording.subtask_block.tolist() == list(range(9))
    assert recording.subtask_start.tolist() == [0, 9]


CHAIN = """orchestration @main {
  param %x : tensor<16x64xfp32> in
  param %y : tensor<16x64xfp32> out
  tensor %tmp : 2 x fp32
  tensor %top : 2 x fp32
  tensor %low : 2 x fp32
  scope
  alloc %tmp, [16, 64] {dtype = fp32}
  submit %t0, @scale, [%x, %tmp, 2.0], [], [1, 3, 0] {blocks = 2}
  view %top, %tmp, [0, 0], [8, 64], []
  view %low, %tmp, [8, 0], [8, 64], []
  submit %t1, @scale, [%top, %top, 3.0], [], [1, 4, 0]
  submit %t2, @scale, [%low, %low, 5.0], [], [1, 4, 0]
  submit %t3, @scale, [%tmp, %y, 1.0], [%t0], [1, 3, 0] {blocks = 2}
  endscope
}
"""


def dependencies(recording: Recording) -> list[list[int]]:
    return [recording.deps[a:b].tolist() for a, b in zip(recording.deps_start, recording.deps_start[1:])]


def test_a_chain_through_windows_of_an_allocated_tensor(load):
    program = load(CHAIN, SCALE)
    x = np.random.default_rng(1).standard_normal((16, 64), np.float32)
    y = np.zeros_like(x)
    recording = program.execute(arguments(x, y), record=True).recording
    expected = x * np.float32(2) * np.repeat(np.float32([3, 5]), 8)[:, None]
    np.testing.assert_array_equal(y, expected)
    # the two windows are disjoint: neither waits for the other, the last waits for both
    assert dependencies(recording) == [[], [0], [0], [0, 1, 2]] or dependencies(recording) == [[], [0], [0], [0, 2, 1]]
    assert recording.deps_kind[-3:].tolist() == [1, 0, 0]


def test_events_and_scopes_of_the_orchestrator(load):
    program = load(CHAIN, SCALE)
    x, y = np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    recording = program.execute(arguments(x, y), record=True).recording
    events = [tuple(row) for row in recording.events.tolist() if row[0] != rec.SCALAR]
    assert events == [
        (rec.SCOPE_BEGIN, 1, 0, 0),
        (rec.ALLOC, 16 * 64 * 4, 1, 2),
        (rec.SUBMIT, 0, 2, 1),
        (rec.SUBMIT, 1, 2, 1),
        (rec.SUBMIT, 2, 2, 1),
        (rec.SUBMIT, 3, 2, 1),
        (rec.SCOPE_END, 1, 0, 0),
    ]
    scalars = sum(row[1] for row in recording.events.tolist() if row[0] == rec.SCALAR)
    assert scalars == 2  # the two views
    assert recording.task_scope.tolist() == [1, 1, 1, 1]
    assert recording.arguments.tolist() == [[4096, 1, 0, 0], [4096, 0, 1, 0]]


@pytest.mark.parametrize(
    ("dtype", "init"), [("fp32", 2.5), ("fp16", 1.5), ("bfloat16", -3.0), ("int32", -7), ("int8", 5)]
)
def test_an_allocation_is_filled_or_zero(load, dtype, init):
    program = load(
        f"""orchestration @main {{
          param %y : tensor<8xfp32> out
          tensor %v : 1 x {dtype}
          alloc %v, [3] {{dtype = {dtype}, init = {init}}}
          for %i = 0 to 3 {{
            sload %e, %v, [%i]
            scvt.fp32.{dtype} %f, %e
            sstore %y, [%i], %f
          }}
          alloc %v, [5] {{dtype = {dtype}}}
          for %i = 0 to 5 {{
            sload %e, %v, [%i]
            scvt.fp32.{dtype} %f, %e
            sadd.index %j, %i, 3
            sstore %y, [%j], %f
            sstore %v, [%i], %e
          }}
          sstore %v, [1], %e
        }}"""
    )
    for _ in range(2):
        y = np.full(8, 9, np.float32)
        program.execute(arguments(y))
        assert y.tolist() == [init] * 3 + [0.0] * 5


def test_memory_of_a_launch_does_not_leak_into_the_next(load):
    program = load(
        """orchestration @main {
          param %y : tensor<1xint64> out
          param %n : scalar<int64>
          tensor %v : 1 x int64
          alloc %v, [1000] {dtype = int64}
          sload %e, %v, [777]
          sstore %y, [0], %e
          sstore %v, [777], %n
        }"""
    )
    y = np.zeros(1, np.int64)
    for value in (5, 6, 7):
        program.execute(arguments(y, value))
        assert y[0] == 0


@pytest.mark.parametrize(
    ("operator", "runs"), [("gt", False), ("ge", True), ("eq", True), ("ne", False), ("lt", False), ("le", True)]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_a_predicate_is_evaluated_on_what_earlier_tasks_wrote(load, operator, runs, dtype):
    name = np.dtype(dtype).name
    program = load(
        f"""orchestration @main {{
          param %flag : tensor<2x2x{name}> inout
          param %x : tensor<8x64xfp32> in
          param %y : tensor<8x64xfp32> out
          submit %t0, @set, [%flag], [], [4]
          submit %t1, @scale, [%x, %y, 2.0], [%t0], [1, 3, 0], [%flag, 1, 0] {{pred_op = {operator}, pred_value = 3}}
          submit %t2, @scale, [%x, %x, 1.0], [%t1], [1, 4, 0]
        }}""",
        SCALE,
        f"kernel @set aiv {{\n param %f : tensor<2x2x{name}> inout\n sstore %f, [1, 0], 3\n}}",
    )
    flag, x, y = np.zeros((2, 2), dtype), np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    recording = program.execute(arguments(flag, x, y), record=True).recording
    assert (y == (2 if runs else 0)).all()
    assert [bool(flags & rec.PREDICATE_FALSE) for flags in recording.task_flags] == [False, not runs, False]
    assert recording.subtask_start.tolist() == ([0, 1, 2, 3] if runs else [0, 1, 1, 2])


def test_blocks_that_start_together_must_fit(load):
    program = load(
        """orchestration @main {
          param %x : tensor<?x64xfp32> in
          param %y : tensor<?x64xfp32> out
          submit %t, @scale, [%x, %y, 0.5], [], [1, 3, 0] {blocks = 6, sync_start = 1}
        }""",
        SCALE,
    )
    x = np.ones((48, 64), np.float32)
    program.execute(arguments(x, x.copy()), clusters=3)
    with pytest.raises(RuntimeError, match="scale has sync_start and 6 blocks; the chip runs 4 of them at once"):
        program.execute(arguments(x, x.copy()), clusters=2)


EXTERNAL = [{"func_id": 0, "name": "fast", "source": "/src/fast.cpp", "core_type": "aiv", "external": True}]
EXTERNAL_MAIN = """orchestration @main {
  file 0 "main.py"
  param %x : tensor<8x64xfp32> in
  param %y : tensor<8x64xfp32> out
  tensor %v : 2 x fp32
  tensor %w : 2 x fp32
  view %v, %x, [2, 8], [4, 16], []
  view %w, %y, [0, 0], [4, 16], []
  submit %t, @fast, [%v, %w, 3, 0.5], [], [1, 3, 0, 0]     @0:9
}"""


def test_a_stand_in_runs_in_place_of_a_foreign_kernel(load):
    program = load(EXTERNAL_MAIN, groups=EXTERNAL)

    def fast(source, target, count, factor):
        assert (count, factor) == (3, 0.5)
        target[:] = source * factor

    x, y = np.random.default_rng(0).standard_normal((8, 64), np.float32), np.zeros((8, 64), np.float32)
    recording = program.execute(arguments(x, y), record=True, stand_ins={"fast": fast}).recording
    np.testing.assert_array_equal(y[:4, :16], x[2:6, 8:24] * np.float32(0.5))
    assert (y[4:] == 0).all()
    assert recording.task_name == ["fast"]
    assert recording.subtask_start.tolist() == [0, 0]


def test_a_foreign_kernel_without_stand_in_is_named(load):
    program = load(EXTERNAL_MAIN, groups=EXTERNAL)
    x = np.zeros((8, 64), np.float32)
    with pytest.raises(RuntimeError) as error:
        program.execute(arguments(x, x.copy()))
    assert str(error.value) == (
        "'fast' is a C++ kernel and cannot run on the simulated chip; attach a Python stand-in with "
        "program.bind_external('fast', function)\nin main at main.py:9"
    )


def test_deps_through_arrays_dummies_and_manual_scopes(load):
    program = load(
        """orchestration @main {
          param %x : tensor<32x64xfp32> in
          param %y : tensor<32x64xfp32> out
          array %ids : 4 x task_id
          tensor %w : 2 x fp32
          scope {mode = manual}
          for %i = 0 to 3 {
            smul.index %r, %i, 8
            view %w, %y, [%r, 0], [8, 64], []
            submit %t, @scale, [%x, %w, 1.0], [], [1, 3, 0] {early = 1}
            aset %ids, %i, %t
          }
          dummy %gate, [%ids]
          submit %last, @scale, [%y, %y, 2.0], [%gate], [1, 4, 0]
          submit %free, @scale, [%y, %y, 2.0], [], [1, 4, 0] {sync_start = 1}
          endscope
        }""",
        SCALE,
    )
    x, y = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    recording = program.execute(arguments(x, y), record=True).recording
    assert dependencies(recording) == [[], [], [], [0, 1, 2], [3], []]
    assert recording.task_kind.tolist() == [rec.AIV] * 3 + [rec.DUMMY] + [rec.AIV] * 2
    assert recording.task_lookups.tolist() == [0] * 6
    assert recording.task_flags.tolist() == [rec.EARLY_RESOLVE] * 3 + [0, 0, rec.SYNC_START]
    assert [row[2] for row in recording.events.tolist() if row[0] == rec.SCOPE_BEGIN] == [1]


def test_the_orchestration_waits_for_what_it_reads(load):
    program = load(
        """orchestration @main {
          param %x : tensor<8x64xfp32> in
          param %y : tensor<8x64xfp32> out
          submit %t0, @scale, [%x, %y, 2.0], [], [1, 3, 0]
          sload %a, %x, [0, 0]
          sload %b, %y, [0, 0]
          sstore %y, [0, 0], %a
        }""",
        SCALE,
    )
    x, y = np.full((8, 64), 4, np.float32), np.zeros((8, 64), np.float32)
    recording = program.execute(arguments(x, y), record=True).recording
    waits = [row[1:3] for row in recording.events.tolist() if row[0] == rec.READ_WAIT]
    assert waits == [[-1, 0], [0, 0], [0, 1]]
    assert y[0, 0] == 4
    assert y[0, 1] == 8


MATMUL = """kernel @mm aic {
  param %a : tensor<32x64xfp16> in
  param %b : tensor<64x48xfp16> in
  param %c : tensor<32x48xfp32> out
  tile %ma : mat<32x64xfp16> at 0 layout nz
  tile %mb : mat<64x48xfp16> at 8192 layout nz
  tile %l : left<32x64xfp16> at 0 layout nz
  tile %r : right<64x48xfp16> at 0 layout zn
  tile %acc : acc<32x48xfp32> at 0 layout nz
  tload %ma, %a, [0, 0], [32, 64], [32, 64]
  tload %mb, %b, [0, 0], [64, 48], [64, 48]
  tmov %l, %ma
  tmov %r, %mb
  tmatmul %acc, %l, %r
  tmatmul_acc %acc, %l, %r
  tstore %c, %acc, [0, 0], [32, 48], [32, 48]
}
"""


def test_a_matrix_product_on_the_cube(load):
    from pypto.sim.layout import PIPES

    program = load(
        """orchestration @main {
          param %a : tensor<32x64xfp16> in
          param %b : tensor<64x48xfp16> in
          param %c : tensor<32x48xfp32> out
          submit %t, @mm, [%a, %b, %c], [], [1, 1, 3]
        }""",
        MATMUL,
    )
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(32, 64, generator=generator).half(), torch.randn(64, 48, generator=generator).half()
    c = torch.zeros(32, 48)
    recording = program.execute(arguments(a.numpy(), b.numpy(), c.numpy()), record=True).recording
    torch.testing.assert_close(c.double(), 2 * (a.double() @ b.double()), rtol=1e-5, atol=1e-5)
    names = {code: name for name, code in PIPES.items()}
    (record,) = recording.programs
    assert [names[code] for code in record.pipe] == ["MTE2", "MTE2", "MTE1", "MTE1", "M", "M", "FIX"]
    assert recording.trace[4, 3:7].tolist()[1:] == [32, 64, 48]
    assert recording.task_kind.tolist() == [rec.AIC]
    assert record.writes_start.tolist() == [0, 1, 2, 3, 4, 5, 6, 6]
    assert record.reads[record.reads_start[5] : record.reads_start[6]].tolist() == [4, 2, 3]


# recordings


def test_a_recording_is_the_same_in_every_run(load, tmp_path):
    program = load(CHAIN, SCALE)
    digests = set()
    for _ in range(3):
        x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
        recording = program.execute(arguments(x, y), record=True, platform="a2a3").recording
        digests.add(recording.digest())
    assert len(digests) == 1
    recording.save(tmp_path / "launch.npz")
    loaded = Recording.load(tmp_path / "launch.npz")
    assert loaded.digest() in digests
    assert loaded.programs[0].mnemonics == recording.programs[0].mnemonics
    np.testing.assert_array_equal(loaded.trace, recording.trace)
    loaded.trace[0, 1] += 1
    assert loaded.digest() not in digests


def test_addresses_in_the_trace_are_relative_to_stable_allocations(load):
    program = load(CHAIN, SCALE)
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    recording = program.execute(arguments(x, y), record=True).recording
    (_, first, size), (_, second, _), (_, third, _) = recording.allocations.tolist()
    assert first % 512 == second % 512 == third % 512 == 0
    assert first + size <= second < third
    pc = [record.mnemonics[m] for record in recording.programs for m in record.mnemonic].index("tload")
    loads = recording.trace[recording.trace[:, 0] == pc]
    rows = 8 * 64 * 4
    assert loads[:, 3].tolist() == [first, first + rows, third, third + rows, third, third + rows]
    assert loads[0, 4:7].tolist() == [8, 256, 256]


def test_a_damaged_recording_is_named(tmp_path):
    path = tmp_path / "launch.npz"
    path.write_bytes(b"not a recording")
    with pytest.raises(ValueError, match=r"launch.npz: no recording"):
        Recording.load(path)
    with pytest.raises(FileNotFoundError):
        Recording.load(tmp_path / "gone.npz")


def test_no_recording_unless_asked_for(load):
    program = load(CHAIN, SCALE)
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    execution = program.execute(arguments(x, y))
    assert execution.recording is None
    assert execution.tasks == 4


def test_scalar_instructions_are_counted_between_tile_instructions(load):
    program = load(
        """orchestration @main {
          param %x : tensor<8x64xfp32> inout
          submit %t, @k, [%x], [], [4]
        }""",
        """kernel @k aiv {
          param %x : tensor<8x64xfp32> inout
          tile %t : vec<8x64xfp32> at 0
          smov.index %a, 1
          sadd.index %a, %a, 1
          tload %t, %x, [0, 0], [8, 64], [8, 64]
          tadd %t, %t, %t
          sadd.index %a, %a, 1
          tstore %x, %t, [0, 0], [8, 64], [8, 64]
          sadd.index %a, %a, 1
          sadd.index %a, %a, 1
          sadd.index %a, %a, 1
        }""",
    )
    recording = program.execute(arguments(np.zeros((8, 64), np.float32)), record=True).recording
    assert recording.trace[:, 0].tolist() == [2, 3, 5, -1]
    assert recording.trace[:, 7].tolist() == [2, 0, 1, 3]


def test_a_trace_outgrows_its_buffer(load):
    program = load(
        """orchestration @main {
          param %x : tensor<1x8xint32> inout
          submit %t, @k, [%x], [], [4]
        }""",
        """kernel @k aiv {
          param %x : tensor<1x8xint32> inout
          tile %t : vec<1x8xint32> at 0
          tload %t, %x, [0, 0], [1, 8], [1, 8]
          for %i = 0 to 3000 {
            tadds %t, %t, 1
          }
          tstore %x, %t, [0, 0], [1, 8], [1, 8]
        }""",
    )
    x = np.zeros((1, 8), np.int32)
    recording = program.execute(arguments(x), record=True).recording
    assert (x == 3000).all()
    assert len(recording.trace) == 3003
    assert recording.trace[:, 7].sum() == 2 + 2 * 3000


# threads


def test_launches_from_several_threads_do_not_disturb_each_other(load):
    program = load(CHAIN, SCALE)
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal((16, 64), np.float32)
        expected = x * np.float32(2) * np.repeat(np.float32([3, 5]), 8)[:, None]
        for _ in range(50):
            y = np.zeros_like(x)
            program.execute(arguments(x, y), record=True)
            if not np.array_equal(y, expected):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arguments_that_share_memory_share_an_allocation(load):
    program = load(
        """orchestration @main {
          param %x : tensor<8x64xfp32> in
          param %y : tensor<8x64xfp32> out
          submit %t0, @scale, [%x, %y, 2.0], [], [1, 3, 0]
          submit %t1, @scale, [%x, %y, 2.0], [], [1, 3, 0]
        }""",
        SCALE,
    )
    x, y = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    apart = program.execute(arguments(x, y), record=True).recording
    together = program.execute(arguments(x, x), record=True).recording
    assert dependencies(apart) == [[], []]
    assert dependencies(together) == [[], [0]]
    assert len(together.allocations) == 1
    assert (x == 4).all()


def test_equal_looking_scalars_are_different_arguments(load):
    program = load(
        """orchestration @main {
          param %y : tensor<1xfp32> out
          param %n : scalar<int32>
          param %x : scalar<fp32>
          sstore %y, [0], %x
        }"""
    )
    y = np.zeros(1, np.float32)
    for value in (0.0, -0.0, 0.0):
        program.execute(arguments(y, 1, value))
        assert np.signbit(y[0]) == np.signbit(value)
    with pytest.raises(TypeError, match="'n' expects an integer"):
        program.execute(arguments(y, 1.0, 0.0))


def test_marks_for_the_dump_are_positions_of_arguments(load):
    text = """orchestration @main {
          param %x : tensor<?x64xfp32> in
          param %y : tensor<?x64xfp32> out
          submit %t, @scale, [%x, %y, 0.5], [], [1, 3, 0] {dump = [0, 3]}
        }"""
    with pytest.raises(ValueError, match=r"'dump' is a list of argument positions from 0 to 2, found \(0, 3\)"):
        load(text, SCALE)
    program = load(text.replace("[0, 3]", "[0, 1]"), SCALE)
    assert next(r for r in program.orchestration.requests).dumped == {0, 1}
