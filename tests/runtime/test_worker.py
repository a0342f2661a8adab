"""Workers: life cycle, registration, raw memory, resident tensors (spec runtime 10)."""

import gc
import weakref

import pytest
import torch

from pypto.runtime import ChipWorker, DeviceTensor, RunConfig

from .builds import COLS, ROWS, add_program


@pytest.fixture
def worker():
    opened = ChipWorker()
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"level": 3}, "only supports level=2"),
        ({"runtime": "host_build_graph"}, "is not available for platform 'a2a3sim'"),
    ],
)
def test_refused_workers(options, words):
    with pytest.raises(ValueError, match=words):
        ChipWorker(**options)


def test_life_cycle(add, tensors):
    a, b, out = tensors
    worker = ChipWorker(RunConfig(device_id=3), auto_init=False)
    assert (worker.level, worker.platform, worker.device_id, worker.initialized) == (2, "a2a3sim", 3, False)
    for operation in (lambda: worker.run(add, a, b, out), lambda: worker.register(add), lambda: worker.malloc(4)):
        with pytest.raises(RuntimeError, match="requires an initialized ChipWorker"):
            operation()
    worker.init()
    worker.init()
    handle = worker.register(add)
    stale = worker.alloc_tensor((ROWS, COLS), torch.float32)
    worker.close()
    worker.close()
    assert not worker.initialized and handle.closed and worker.aicpu_dlopen_count == 0
    worker.free_tensor(stale)
    worker.init()
    with pytest.raises(ValueError, match="At position 0: 'a' is not a live allocation owned by this ChipWorker"):
        worker.run(add, stale, b, out)
    with pytest.raises(RuntimeError, match="unregistered"):
        handle(a, b, out)
    with worker:
        worker.run(add, a, b, out)
    assert torch.equal(out, a + b) and not worker.initialized
    with worker as again:
        assert again is worker and again.initialized


def test_one_registration_per_content(add, tensors, tmp_path, worker):
    a, b, out = tensors
    assert worker.aicpu_dlopen_count == 0
    handle, alias = worker.register(add), worker.register(add)
    same = worker.register(add_program(add.output_dir))
    assert handle.cid == alias.cid == same.cid and worker.aicpu_dlopen_count == 1
    for launch in (handle, alias, lambda *args: worker.run(add, *args)):
        launch(a, b, out)
        assert torch.equal(out, a + b)
    assert worker.aicpu_dlopen_count == 1
    other = worker.register(add_program(tmp_path / "sub", operation="tsub"))
    assert worker.aicpu_dlopen_count == 2 and other.cid != handle.cid
    alias.unregister()
    alias.unregister()
    assert torch.equal(handle(a, b), a + b)
    with handle as entered:
        assert entered is handle
    with pytest.raises(RuntimeError, match="unregistered"):
        handle(a, b, out)
    assert not other.closed and torch.equal(other(a, b), a - b)


def test_a_dropped_handle_is_not_kept_alive(add, worker):
    handle = weakref.ref(worker.register(add))
    gc.collect()
    assert handle() is None


def test_a_program_of_another_platform_is_refused(worker, clocked_add, tensors):
    for refused in (lambda: worker.register(clocked_add), lambda: worker.run(clocked_add, *tensors)):
        with pytest.raises(ValueError, match="compiled for platform 'a2a3', this ChipWorker is bound to 'a2a3sim'"):
            refused()


def test_a_damaged_program_is_refused_at_registration(add, worker):
    text = add.output_dir / "kernels" / "aiv" / "add_0.pto"
    text.write_text(text.read_text().replace("tadd", "tadx"))
    with pytest.raises(ValueError, match="add_0.pto.*tadx"):
        worker.register(add)
    (add.output_dir / "orchestration" / "add.orch").unlink()
    with pytest.raises(FileNotFoundError, match="orchestration"):
        worker.register(add)


def test_an_edited_text_takes_effect_on_the_next_load(add, tensors, worker):
    a, b, _ = tensors
    assert torch.equal(worker.run(add, a, b), a + b)
    edited = add_program(add.output_dir, operation="tmul")
    assert torch.equal(worker.run(edited, a, b), a * b)
    assert torch.equal(worker.run(add, a, b), a + b), "what was loaded before stays loaded"


# --- memory ----------------------------------------------------------------------------------------------------------


def test_raw_memory_round_trip(worker):
    data, back = torch.arange(100, dtype=torch.int32), torch.zeros(100, dtype=torch.int32)
    pointer = worker.malloc(400)
    worker.copy_to(pointer, data.data_ptr(), 400)
    worker.copy_from(back.data_ptr(), pointer, 396)
    assert torch.equal(back[:99], data[:99]) and back[99] == 0
    worker.free(pointer)
    with pytest.raises(ValueError, match="interior pointer"):
        worker.free(pointer)


@pytest.mark.parametrize("nbytes", [0, -1, 2.0, None])
def test_refused_sizes(worker, nbytes):
    with pytest.raises(ValueError, match="positive int"):
        worker.malloc(nbytes)
    pointer = worker.malloc(8)
    with pytest.raises(ValueError, match="positive int"):
        worker.copy_to(pointer, 1, nbytes)


def test_refused_pointers(worker):
    pointer, host = worker.malloc(64), torch.zeros(64, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"interior pointer, 8 bytes into the 64 bytes"):
        worker.copy_from(host.data_ptr(), pointer + 8, 8)
    with pytest.raises(ValueError, match="65 bytes exceeds the 64 bytes"):
        worker.copy_to(pointer, host.data_ptr(), 65)
    with pytest.raises(ValueError, match="only supports worker_id=0"):
        worker.malloc(8, worker_id=1)
    other = ChipWorker()
    with pytest.raises(ValueError, match="interior pointer"):
        other.free(pointer)
    other.close()


@pytest.mark.parametrize(
    "host, error, words",
    [
        (0, ValueError, "host address must be positive, got 0"),
        (None, TypeError, "host address must be an int, got NoneType"),
        (torch.zeros(8), TypeError, "got Tensor; a tensor has its address in data_ptr"),
    ],
)
def test_refused_host_addresses(worker, host, error, words):
    pointer = worker.malloc(8)
    for transfer in (lambda: worker.copy_from(host, pointer, 8), lambda: worker.copy_to(pointer, host, 8)):
        with pytest.raises(error, match=words):
            transfer()


def test_handles_are_no_addresses(worker):
    tensor, host = worker.alloc_tensor((2,), torch.float32), torch.zeros(2)
    with pytest.raises(TypeError, match="device address must be an int, got DeviceTensor"):
        worker.copy_from(host.data_ptr(), tensor, 8)


def test_more_memory_than_there_is(worker):
    with pytest.raises(MemoryError, match="no room for a device tensor of 4,611,686,018,427,387,904 bytes"):
        worker.alloc_tensor((1 << 60,), torch.float32)


@pytest.mark.parametrize("handle", [None, torch.zeros(2)])
def test_only_device_tensors_are_freed(worker, handle):
    with pytest.raises(TypeError, match="free_tensor takes a DeviceTensor"):
        worker.free_tensor(handle)


def test_a_dtype_is_refused_before_memory_is_taken(worker):
    with pytest.raises(TypeError, match="torch.dtype, got str 'float32'"):
        worker.alloc_tensor((2,), "float32")


def test_only_compiled_programs_are_launched(worker):
    for use in (worker.run, worker.register):
        with pytest.raises(TypeError, match="launches compiled programs, got function"):
            use(test_only_compiled_programs_are_launched)


@pytest.mark.parametrize(
    "shape, error, words",
    [
        ((), ValueError, "non-empty"),
        ((2, 0), ValueError, "positive"),
        ((2, True), TypeError, "ints"),
        ((2.0,), TypeError, "ints"),
    ],
)
def test_refused_shapes(worker, shape, error, words):
    with pytest.raises(error, match=words):
        worker.alloc_tensor(shape, torch.float32)


@pytest.mark.parametrize("init", [torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.float64)])
def test_a_refused_init_is_rolled_back(worker, init):
    with pytest.raises(ValueError, match="must have shape"):
        worker.alloc_tensor((2, 3), torch.float32, init=init)
    assert not worker._owned_tensors


def test_resident_tensors_round_trip(worker):
    source = torch.randn(6, 4).t()
    tensor = worker.alloc_tensor((4, 6), torch.float32, init=source)
    back = torch.empty(4, 6)
    worker.copy_from(back.data_ptr(), tensor.data_ptr, tensor.nbytes)
    assert torch.equal(back, source) and len(worker._owned_tensors) == 1
    worker.free_tensor(tensor)
    worker.free_tensor(tensor)
    assert not worker._owned_tensors


def test_memory_without_init_reads_as_nan(worker):
    tensor, back = worker.alloc_tensor((8,), torch.float32), torch.zeros(8)
    worker.copy_from(back.data_ptr(), tensor.data_ptr, tensor.nbytes)
    assert back.isnan().all()


def test_stale_and_foreign_handles(worker):
    tensor = worker.alloc_tensor((8,), torch.float32)
    twin = DeviceTensor(tensor.data_ptr, (8,), torch.float32)
    with pytest.raises(ValueError, match="stale DeviceTensor"):
        worker.free_tensor(twin)
    with pytest.raises(ValueError, match="does not match the owning worker"):
        worker.free_tensor(tensor, worker_id=1)


def test_only_live_tensors_of_the_worker_can_be_launched(add, tensors, worker):
    a, b, out = tensors
    other = ChipWorker()
    foreign = other.alloc_tensor((ROWS, COLS), torch.float32, init=b)
    freed = worker.alloc_tensor((ROWS, COLS), torch.float32, init=b)
    worker.free_tensor(freed)
    raw = DeviceTensor(foreign.data_ptr, (ROWS, COLS), torch.float32)
    small = worker.alloc_tensor((4,), torch.float32)
    grown = DeviceTensor(small.data_ptr, (ROWS, COLS), torch.float32, buffer=small.buffer)
    for refused, words in (
        (foreign, "not a live allocation owned by this ChipWorker"),
        (freed, "not a live allocation"),
        (raw, "raw-pointer DeviceTensor"),
        (grown, "more than the 16 bytes of its allocation"),
    ):
        with pytest.raises(ValueError, match=f"At position 1: 'b'.*{words}"):
            worker.run(add, a, refused, out)
    assert torch.equal(out, torch.ones(ROWS, COLS))
    other.close()


def test_a_resident_output_stays_on_the_device(add, tensors, worker):
    a, b, _ = tensors
    resident = worker.alloc_tensor((ROWS, COLS), torch.float32, init=torch.zeros(ROWS, COLS))
    assert worker.run(add, a, b, resident) is None
    worker.run(add, resident, b, resident)
    back = torch.empty(ROWS, COLS)
    worker.copy_from(back.data_ptr(), resident.data_ptr, resident.nbytes)
    assert torch.equal(back, a + b + b)


def test_close_frees_what_was_left_and_reports_what_it_could_not(worker, caplog):
    kept = worker.alloc_tensor((8,), torch.float32)
    lost = worker.alloc_tensor((8,), torch.float32)
    worker.free(lost.data_ptr)
    worker.close()
    assert not kept.buffer.live and not worker._owned_tensors
    assert [r.name for r in caplog.records] == ["pypto.runtime.runtime_base"] and "leaking" in caplog.text
