"""Calling a compiled program: styles, refusals, failures, worker discovery (spec runtime 4.2, 10.3, 10.5)."""

import threading

import pytest
import torch

from pypto.runtime import ChipWorker, RunConfig, benchmark, execute_compiled
from pypto.runtime.device_runner import compile_and_assemble, execute_on_device
from pypto.runtime.dispatch import build_call_config, build_orch_args
from pypto.sim import OutOfBoundsError

from .builds import COLS, ROWS, add_program


def test_in_place_and_return_style(add, tensors):
    a, b, out = tensors
    assert add(a, b, out) is None
    assert torch.equal(out, a + b)
    assert torch.equal(add(b, b), b + b)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim", "a2a3", "a5"])
def test_the_configuration_may_choose_another_platform(add, tensors, platform):
    a, b, out = tensors
    add(a, b, out, config=RunConfig(platform=platform))
    assert torch.equal(out, a + b)


@pytest.mark.parametrize(
    "spoil, error",
    [
        (lambda a, b, out: (a,), TypeError),
        (lambda a, b, out: (a, b, torch.zeros(ROWS, COLS + 1)), TypeError),
        (lambda a, b, out: (a.half(), b, out), TypeError),
        (lambda a, b, out: (torch.zeros(COLS, ROWS).t(), b, out), ValueError),
    ],
)
def test_a_refused_call_touches_nothing(add, tensors, spoil, error):
    a, b, out = tensors
    with pytest.raises(error):
        add(*spoil(a, b, out))
    assert torch.equal(out, torch.ones(ROWS, COLS))


def test_a_failed_launch_leaves_the_callers_tensors_alone(tmp_path, tensors):
    a, b, out = tensors
    outside = add_program(tmp_path, row=8)  # reads rows 8 to 39 of 32
    before = [t.clone() for t in tensors]
    for _ in range(2):
        with pytest.raises(OutOfBoundsError, match="'a'"):
            outside(a, b, out)
        assert all(torch.equal(t, was) for t, was in zip(tensors, before))


def test_an_input_that_is_stored_to_stays_as_it_was_on_the_host(tmp_path, tensors):
    """As on hardware, where inputs are not copied back; also when the launch fails after the store."""
    a, b, out = tensors
    program = add_program(tmp_path)
    [kernel], [main] = tmp_path.glob("kernels/aiv/*.pto"), tmp_path.glob("orchestration/*.orch")
    store = "tstore %out, %t0, [%r, 0], [32, 256], [32, 256]"
    text = kernel.read_text().replace("fp32> in", "fp32> inout", 1)
    kernel.write_text(text.replace(store, f"{store.replace('%out', '%a')}  {store}"))
    main.write_text(main.read_text().replace("[1, 1, ", "[4, 1, "))
    before = a.clone()
    program(a, b, out)
    assert torch.equal(a, before) and torch.equal(out, a + b)


def test_an_output_that_shares_memory_with_an_input_reads_the_old_values(tmp_path):
    """Every argument has a device buffer of its own, so the order of reads and writes inside does not matter."""
    program = add_program(tmp_path)
    flat = torch.arange(2.0 * ROWS * COLS)
    a, out = flat[: ROWS * COLS].view(ROWS, COLS), flat[COLS : COLS + ROWS * COLS].view(ROWS, COLS)
    want = a + a
    program(a, a, out)
    assert torch.equal(out, want)
    square = torch.ones(ROWS, COLS)
    program(square, square, square)
    assert torch.equal(square, torch.full((ROWS, COLS), 2.0))


def test_what_a_kernel_does_not_write_keeps_its_values(tmp_path):
    program = add_program(tmp_path, rows=64)
    a, b = torch.randn(64, COLS), torch.randn(64, COLS)
    out = torch.full((64, COLS), 5.0)
    program(a, b, out)
    assert torch.equal(out[:32], (a + b)[:32]) and torch.equal(out[32:], torch.full((32, COLS), 5.0))


def test_a_call_finds_the_worker_around_it(add, tensors):
    a, b, out = tensors
    config = RunConfig(platform="a2a3sim")
    with ChipWorker(config) as worker:
        resident = worker.alloc_tensor((ROWS, COLS), torch.float32, init=b)
        add(a, resident, out)
        assert torch.equal(out, a + b) and worker.aicpu_dlopen_count == 1
        with ChipWorker(RunConfig(device_id=1)) as inner:
            add(a, b, out, config=RunConfig(device_id=1))
            assert inner.aicpu_dlopen_count == 1
            with pytest.raises(ValueError, match="already active in an enclosing scope"), ChipWorker(config):
                pass
        with pytest.raises(ValueError, match="At position 1: 'b'.*one-shot or raw simpler Worker"):
            add(a, resident, out, config=RunConfig(device_id=2))


def test_another_thread_does_not_see_the_worker(add, tensors):
    a, b, out = tensors
    with ChipWorker() as worker:
        thread = threading.Thread(target=lambda: add(a, b, out))
        thread.start()
        thread.join()
        assert torch.equal(out, a + b) and worker.aicpu_dlopen_count == 0


def test_current_finds_exact_bindings_only():
    binding = {"level": 2, "platform": "a2a3sim", "device_id": 0, "runtime": "tensormap_and_ringbuffer"}
    assert ChipWorker.current(**binding) is None
    with ChipWorker() as worker:
        assert ChipWorker.current(**binding) is worker
        assert ChipWorker.current(**{**binding, "device_id": 1}) is None
        with pytest.raises(RuntimeError, match="active ChipWorker was created without enable_sdma=True"):
            ChipWorker.current(**binding, require_sdma=True)
    with ChipWorker(auto_init=False):
        assert ChipWorker.current(**binding) is not worker
    assert ChipWorker.current(**binding) is None


def test_a_directory_runs_without_a_compiled_program(add, tensors, tmp_path):
    a, b, out = tensors
    execute_compiled(add.output_dir, [a, b, out], platform="a2a3sim", device_id=0)
    assert torch.equal(out, a + b)
    found, runtime, options = compile_and_assemble(add.output_dir, "a2a3")
    assert (found.name, runtime, options["runtime"]) == ("add", "tensormap_and_ringbuffer", "tensormap_and_ringbuffer")
    execute_on_device(found, [b, b, out], "a2a3", runtime, 0)
    assert torch.equal(out, b + b)
    with pytest.raises(ValueError, match="output_prefix is required"):
        execute_on_device(found, [a, b, out], "a2a3", runtime, 0, enable_pmu=2)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        execute_compiled(tmp_path / "nowhere", [], platform="a2a3sim", device_id=0)
    with pytest.raises(ValueError, match="Invalid platform"):
        execute_compiled(add.output_dir, [a, b, out], platform="cpu", device_id=0)


def test_a_configuration_of_another_kind_is_refused(add, tensors):
    with pytest.raises(TypeError, match="config must be a RunConfig, got dict"):
        add(*tensors, config={"platform": "a2a3"})


@pytest.mark.parametrize("level", [-1, 4, 7])
def test_an_argument_dump_of_no_level_is_refused_and_nothing_runs(add, tensors, level):
    tensors[2].zero_()
    with pytest.raises(ValueError, match=rf"enable_dump_args must be 0 \(off\), 1 .* 2 .* or 3 .* got {level}"):
        add(*tensors, config=RunConfig(enable_dump_args=level))
    assert not tensors[2].any()


def test_arguments_and_options_for_callers_below(add, tensors):
    a, b, out = tensors
    with ChipWorker() as worker, ChipWorker(RunConfig(device_id=1)) as other:
        resident = worker.alloc_tensor((ROWS, COLS), torch.float32, init=b)
        packed, checked, returns = build_orch_args(add, (a, resident, out), worker)
        assert not returns and checked == [a, resident, out]
        assert [(p.name, p.address, p.resident) for p in packed] == [
            ("a", a.data_ptr(), False),
            ("b", resident.data_ptr, True),
            ("out", out.data_ptr(), False),
        ]
        assert build_orch_args(add, (a, b), worker)[2]
        with pytest.raises(ValueError, match="not a live allocation owned by this ChipWorker"):
            build_orch_args(add, (a, resident, out), other)
    with pytest.raises(TypeError, match="worker must be a ChipWorker"):
        build_orch_args(add, (a, b), None)
    config = RunConfig(aicpu_thread_num=3, ring_heap=2048, ring_dep_pool=[0, 4, 0, 8], enable_pmu=2)
    made = build_call_config(add, config, aicpu_thread_num=2, dfx_dir="/tmp/dfx")
    assert (made.aicpu_thread_num, made.enable_pmu, made.output_prefix) == (2, 2, "/tmp/dfx")
    assert made.runtime_env.ring_heap == [2048] * 4 and made.runtime_env.ring_dep_pool == [0, 4, 0, 8]
    assert made.runtime_env.ring_task_window == [0] * 4 and build_call_config(add, config).aicpu_thread_num == 3


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_a_seed_for_jitter_is_refused_and_nothing_runs(add, tensors, platform):
    with pytest.raises(ValueError, match="jitter_seed=1: the clock has no random part"):
        add(*tensors, config=RunConfig(platform=platform, jitter_seed=1))
    assert torch.equal(tensors[2], torch.ones(ROWS, COLS))


@pytest.mark.parametrize("checks", ["all", {"placement", "bounds"}])
def test_with_the_check_of_placement_a_nested_worker_is_a_second_chip(add, tensors, checks):
    from pypto.sim import PlacementError

    a, b, out = tensors
    config = RunConfig(platform="a2a3sim", checks=checks)
    with ChipWorker(config) as first, ChipWorker(config) as second:
        resident = first.alloc_tensor((ROWS, COLS), torch.float32, init=b)
        with pytest.raises(
            PlacementError, match="it lives on ChipWorker .* and ChipWorker .* runs the program"
        ) as caught:
            second.run(add, a, resident, out)
        [finding] = caught.value.findings
        assert (finding.kind, finding.tensor) == ("placement", "b")
        assert finding.locations[0].code == "second.run(add, a, resident, out)"
        first.run(add, a, resident, out)
        assert torch.equal(out, a + b)
        with pytest.raises(ValueError, match="already active"):
            benchmark(add, tensors, config=config)
        first.free_tensor(resident)
        with pytest.raises(PlacementError, match="ChipWorker .* freed it"):
            first.run(add, a, resident, out)
