"""Mistakes are found and named: ranks, kernel, cell, place (spec distributed 3, 5)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import DeviceTensor, DistributedWorker

from .programs import config, row_program


def shared(*shape):
    return torch.zeros(*shape).share_memory_()


def compiled(body, ranks=2, size=64, platform="a2a3sim", signal=None):
    x, y = shared(ranks, 1, size), shared(ranks, 1, size)
    program = row_program(ranks, size, pl.FP32, [ranks, 1] if signal is None else signal, body)
    return program.compile(x, y, config=config(ranks, platform)), x, y


@pl.inline
def copy(inp, out, data, signal):
    out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)


@pl.inline
def wait_first(inp, out, data, signal):
    me = pld.rank(pld.get_comm_ctx(data))
    for src in pl.range(2):
        if src != me:
            pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
    for peer in pl.range(2):
        if peer != me:
            pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
    out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_every_rank_waits_before_it_notifies(platform):
    program, x, y = compiled(wait_first, platform=platform)
    with program.prepare() as rt:
        with pytest.raises(RuntimeError) as error:
            rt(x, y)
        text = str(error.value)
        for part in (
            "deadlock",
            "rank 0",
            "rank 1",
            "wait of kernel",
            "signal[1, 0] >= 1, holds 0",
            "test_misuse.py",
            "notify",
        ):
            assert part in text
        with pytest.raises(RuntimeError, match="deadlock"):  # the ranks are alive and find it again
            rt(x, y)


def test_one_rank_waits_for_a_cell_nobody_writes():
    @pl.inline
    def body(inp, out, data, signal):
        if pld.rank(pld.get_comm_ctx(data)) == 1:
            pld.system.wait(signal, offsets=[1, 0], expected=3, cmp=pld.WaitCmp.Eq)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    program, x, y = compiled(body)
    with pytest.raises(RuntimeError, match=r"(?s)deadlock.*rank 1.*signal\[1, 0\] == 3, holds 0"):
        program(x, y)


def test_a_deadlock_tells_what_the_cells_hold_at_the_end():
    """A rank that slept before its peers notified reports the credits that have come since."""

    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        for step in pl.range(3):
            pld.system.notify(signal, peer=1 - me, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[0, 0], expected=4, cmp=pld.WaitCmp.Ge)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    program, x, y = compiled(body)
    with pytest.raises(RuntimeError, match=r"(?s)rank 0.*>= 4, holds 3.*rank 1.*>= 4, holds 3"):
        program(x, y)


def test_a_threshold_above_the_credits_that_are_sent_is_advised_about():
    from pypto.runtime.rank_checks import deadlock_finding

    lines = ["  wait of kernel, block 0 of 1: signal signal[0, 0] >= 4, holds 3 at k.py:7"]
    finding = deadlock_finding(lines, ("chip",), ())
    assert finding.suggestion.startswith("wait for the credits that are sent, 3 instead of 4")


def test_a_window_read_outside_its_extent_on_a_peer():
    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        tile = pld.tile.remote_load(data, peer=1 - me, offsets=[me + 1, 0], shape=[1, 64])
        out = pl.store(tile, [0, 0], out)

    program, x, y = compiled(body)
    with pytest.raises(RuntimeError, match=r"remote load of 'data' rows [12]\.\.[23] is outside its extent 1 "):
        program(x, y)


def test_a_peer_outside_the_domain():
    @pl.inline
    def body(inp, out, data, signal):
        pld.system.notify(signal, peer=5, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    program, x, y = compiled(body)
    with pytest.raises(RuntimeError, match=r"peer 5 is outside the domain, whose ranks are 0..1") as error:
        program(x, y)
    assert (
        "rank " in str(error.value) and "test_misuse.py" in str(error.value) and "traceback of rank" in str(error.value)
    )


def test_a_signal_cell_outside_the_window():
    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        pld.system.notify(signal, peer=0, offsets=[me + 2, 0], value=1, op=pld.NotifyOp.Set)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)

    program, x, y = compiled(body)
    with pytest.raises(RuntimeError, match=r"signal cell of 'signal' at index [23] is outside its extent 2"):
        program(x, y)


def test_a_failure_on_one_rank_frees_the_others():
    """Rank 1 fails while rank 0 waits for it; the worker goes on."""

    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        if me == 1:
            out = pl.store(pl.load(inp, [0, 64 * me], [1, 64]), [0, 0], out)
        else:
            pld.system.wait(signal, offsets=[1, 0], expected=1, cmp=pld.WaitCmp.Ge)

    program, x, y = compiled(body)
    with program.prepare() as rt:
        for _ in range(2):
            with pytest.raises(
                RuntimeError, match=r"(?s)rank 1 \(device 1\) failed in chip: OutOfBoundsError.*outside its extent 64"
            ):
                rt(x, y)


def test_windows_smaller_than_their_view():
    @pl.jit.host
    def host(x: pl.Tensor[[2, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]]):
        data_buf = pld.alloc_window_buffer(64)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    @pl.jit.incore
    def kernel(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    ):
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)
        return out

    @pl.jit
    def chip(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    ):
        return kernel(inp, out, data, signal)

    with pytest.raises(ValueError, match="needs 256 bytes per rank; buffer 'data_buf' has 64"):
        host.compile(shared(2, 1, 64), shared(2, 1, 64), config=config(2))


# --- arguments ----------------------------------------------------------------------------------------------------------


def test_host_tensors_must_be_shared_before_the_worker_is_opened():
    program, x, y = compiled(copy)
    with program.prepare() as rt:
        with pytest.raises(TypeError, match="shared memory allocated BEFORE prepare"):
            rt(torch.zeros(2, 1, 64), y)
        with pytest.raises(TypeError, match="shared after the ranks were started"):
            rt(shared(2, 1, 64), y)
        rt(x, y)


def test_counts_shapes_and_dtypes():
    program, x, y = compiled(copy)
    short = torch.zeros(2, 1, 32).share_memory_()
    wrong = torch.zeros(2, 1, 64, dtype=torch.int32).share_memory_()
    with program.prepare() as rt:
        with pytest.raises(TypeError, match=r"expects 2 arguments \(x, y\), got 1"):
            rt(x)
        with pytest.raises(TypeError, match=r"argument 0 'x' expects shape \(2, 1, 64\), got \(2, 1, 32\)"):
            rt(short, y)
        with pytest.raises(TypeError, match="expects dtype torch.float32"):
            rt(wrong, y)
        with pytest.raises(TypeError, match="expects a shared torch.Tensor"):
            rt(3.0, y)
    with pytest.raises(RuntimeError, match=r"submit\(\) called after close"):
        rt(x, y)


def test_resident_tensors_are_checked():
    program, x, y = compiled(copy)
    with program.prepare() as rt, program.prepare() as other:
        stacked = rt.alloc_stacked_tensor(torch.ones(2, 1, 64))
        foreign = other.alloc_stacked_tensor(torch.ones(2, 1, 64))
        rt(stacked, y)
        torch.testing.assert_close(y, torch.ones(2, 1, 64))
        with pytest.raises(ValueError, match="not a live allocation owned by this DistributedWorker"):
            rt(foreign, y)
        with pytest.raises(TypeError, match="not subscriptable"):
            rt(rt.alloc_tensor((2, 1, 64), torch.float32), y)
        with pytest.raises(TypeError, match="raw-pointer DeviceTensor cannot be dispatched"):
            rt(DeviceTensor(4096, (2, 1, 64), torch.float32), y)
        crossed = rt.alloc_stacked_tensor(torch.ones(2, 1, 64), worker_ids=[1, 0])
        with pytest.raises(ValueError, match=r"resident on worker 1, but the dispatch runs on rank 0"):
            rt(crossed, y)
        rt.free_stacked_tensor(stacked)
        with pytest.raises(ValueError, match="not a live allocation"):
            rt(stacked, y)


def test_constructor_options():
    program, _, _ = compiled(copy)
    for options, kind, text in (
        ({"reset_persistent_windows": True}, ValueError, "requires persistent=True"),
        ({"startup_timeout_s": 0}, ValueError, "positive finite"),
        ({"startup_timeout_s": "1"}, TypeError, "number of seconds"),
        ({"callbacks": {"nobody": print}}, ValueError, "not sub-workers of any prepared program"),
    ):
        with pytest.raises(kind, match=text):
            program.prepare(**options)
    with pytest.raises(ValueError, match="at least one compiled program"):
        DistributedWorker([])
    other, _, _ = compiled(copy, ranks=3)
    with pytest.raises(ValueError, match="multi-program mode requires the same device_ids"):
        DistributedWorker([program, other])
    with pytest.raises(AttributeError):
        DistributedWorker(object())


@pytest.mark.parametrize(("ids", "text"), [([], "must not be empty"), ([0, 0], "distinct"), ([-1], "non-negative")])
def test_device_ids(ids, text):
    with pytest.raises(ValueError, match=text):
        DistributedConfig(device_ids=ids)


def test_memory_of_the_cards():
    program, _, _ = compiled(copy)
    with program.prepare() as rt:
        pointer = rt.malloc(256, worker_id=1)
        data, back = torch.arange(64, dtype=torch.float32), torch.zeros(64)
        rt.copy_to(pointer, data.data_ptr(), 256, worker_id=1)
        rt.copy_from(back.data_ptr(), pointer, 256, worker_id=1)
        torch.testing.assert_close(back, data)
        assert rt.committed_device_memory(1) == 256 and rt.committed_device_memory(0) == 0
        with pytest.raises(ValueError, match="interior pointer"):
            rt.copy_to(pointer + 8, data.data_ptr(), 8, worker_id=1)
        with pytest.raises(IndexError, match="out of range"):
            rt.malloc(8, worker_id=2)
        rt.free(pointer, worker_id=1)
        with pytest.raises(ValueError):
            rt.free(pointer, worker_id=1)


def test_runs_in_flight():
    program, x, y = compiled(copy)
    with program.prepare() as rt:
        x.fill_(5.0)
        handles = [rt.submit(program, x, y) for _ in range(4)]
        for handle in handles:
            assert handle.result(timeout=30) is None and handle.done
        torch.testing.assert_close(y, x)
        with pytest.raises(ValueError, match="non-negative finite"):
            handles[0].wait(timeout=-1)
        handle = rt.register(program)
        y.zero_()
        handle(x, y)
        torch.testing.assert_close(y, x)
        with pytest.raises(ValueError, match="registered when this worker was constructed"):
            rt.register(compiled(copy, ranks=3)[0])


def test_windows_are_zero_in_every_run_unless_they_are_kept():
    @pl.inline
    def body(inp, out, data, signal):
        data = pl.store(pl.add(pl.load(data, [0, 0], [1, 64]), pl.load(inp, [0, 0], [1, 64])), [0, 0], data)
        out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)

    program, x, y = compiled(body)
    x.fill_(1.0)
    for options, expected in (
        ({}, 1.0),
        ({"persistent": True}, 1.0),
        ({"persistent": True, "reset_persistent_windows": False}, 3.0),
    ):
        with program.prepare(**options) as rt:
            for _ in range(3):
                rt(x, y)
            torch.testing.assert_close(y, torch.full_like(y, expected))


def test_subsets_of_ranks_have_domains_of_their_own():
    """Three chips, a swap in {0, 1} and one in {1, 2}; chip 1 has two windows (A7)."""
    size = 64

    @pl.jit.incore
    def kernel(
        inp: pl.Tensor[[1, size], pl.FP32],
        out: pl.Out[pl.Tensor[[1, size], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        other = 1 - me
        pld.tile.remote_store(pl.load(inp, [0, 0], [1, size]), data, peer=other, offsets=[0, 0])
        pld.system.notify(signal, peer=other, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, offsets=[other, 0], expected=1, cmp=pld.WaitCmp.Ge)
        out = pl.store(pl.load(data, [0, 0], [1, size]), [0, 0], out)
        return out

    @pl.jit
    def swap(
        inp: pl.Tensor[[1, size], pl.FP32],
        out: pl.Out[pl.Tensor[[1, size], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    ):
        return kernel(inp, out, data, signal)

    @pl.jit.host
    def host(x: pl.Tensor[[4, 1, size], pl.FP32], y: pl.Out[pl.Tensor[[4, 1, size], pl.FP32]]):
        low_data, low_signal = (
            pld.alloc_window_buffer([1, size], dtype=pl.FP32),
            pld.alloc_window_buffer([2, 1], dtype=pl.INT32),
        )
        for r in pl.range(2):
            data = pld.window(low_data, [1, size], dtype=pl.FP32)
            signal = pld.window(low_signal, [2, 1], dtype=pl.INT32)
            swap(x[r], y[r], data, signal, device=r)

    with pytest.raises(Exception, match="one plain name"):
        host.compile(shared(4, 1, size), shared(4, 1, size), config=config(3))

    @pl.jit.host
    def both(x: pl.Tensor[[4, 1, size], pl.FP32], y: pl.Out[pl.Tensor[[4, 1, size], pl.FP32]]):
        low_data = pld.alloc_window_buffer([1, size], dtype=pl.FP32)
        low_signal = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        high_data = pld.alloc_window_buffer([1, size], dtype=pl.FP32)
        high_signal = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(0, 2):
            data = pld.window(low_data, [1, size], dtype=pl.FP32)
            signal = pld.window(low_signal, [2, 1], dtype=pl.INT32)
            swap(x[r], y[r], data, signal, device=r)
        for r in pl.range(1, 3):
            data2 = pld.window(high_data, [1, size], dtype=pl.FP32)
            signal2 = pld.window(high_signal, [2, 1], dtype=pl.INT32)
            swap(x[r + 1], y[r + 1], data2, signal2, device=r)

    x, y = torch.randn(4, 1, size).share_memory_(), shared(4, 1, size)
    both.compile(x, y, config=config(3))(x, y)
    torch.testing.assert_close(y, x[[1, 0, 3, 2]])


# --- a user who gets everything wrong -------------------------------------------------------------------------------------


@pl.inline
def sum_of_both(inp, out, data, signal):
    data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)


@pytest.fixture(scope="module")
def opened():
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    compiled = row_program(2, 64, pl.FP32, [2, 1], sum_of_both).compile(x, y, config=config(2))
    other = row_program(2, 64, pl.FP32, [2, 1], sum_of_both).compile(x, y, config=config(2))
    with compiled.prepare() as rt:
        yield rt, compiled, other, x, y


WRONG = {
    "no tensor": (lambda rt, c, o, x, y: rt(x, None), TypeError, "'y' expects a shared torch.Tensor"),
    "an array": (lambda rt, c, o, x, y: rt(x, y.numpy()), TypeError, "got ndarray"),
    "too many": (lambda rt, c, o, x, y: rt(x, y, y), TypeError, r"expects 2 arguments \(x, y\), got 3"),
    "another program": (lambda rt, c, o, x, y: rt.run(o, x, y), ValueError, "registered when this worker"),
    "a platform for a config": (
        lambda rt, c, o, x, y: rt(x, y, config="a2a3"),
        TypeError,
        "config must be a RunConfig, got str",
    ),
    "names for workers": (
        lambda rt, c, o, x, y: rt.alloc_stacked_tensor(torch.zeros(2, 4), worker_ids=["a", "b"]),
        TypeError,
        "must be integers",
    ),
    "a shard too many": (
        lambda rt, c, o, x, y: rt.alloc_stacked_tensor(torch.zeros(3, 4)),
        ValueError,
        r"3 shards, one per worker, and there are 2 workers: worker 2 is out of range",
    ),
    "a worker too many": (
        lambda rt, c, o, x, y: rt.alloc_tensor((4,), torch.float32, worker_id=2),
        IndexError,
        "there are 2 workers",
    ),
    "an empty tensor": (lambda rt, c, o, x, y: rt.alloc_tensor((0,), torch.float32), ValueError, "all positive"),
    "more than was allocated": (
        lambda rt, c, o, x, y: rt.copy_to(rt.malloc(64), y.data_ptr(), 65),
        ValueError,
        "65 bytes exceeds the 64",
    ),
    "memory of nobody": (lambda rt, c, o, x, y: rt.free(12345), ValueError, "not the base of a live allocation"),
    "a pickled worker": (lambda rt, c, o, x, y: __import__("pickle").dumps(rt), TypeError, "cannot be pickled"),
    "a list of callbacks": (
        lambda rt, c, o, x, y: c.prepare(callbacks=[print]),
        TypeError,
        "maps names of sub-workers",
    ),
    "a number for a program": (
        lambda rt, c, o, x, y: DistributedWorker(3),
        AttributeError,
        "int is no distributed program$",
    ),
    "no devices": (lambda rt, c, o, x, y: DistributedConfig(None), TypeError, "list of device numbers"),
    "one device": (lambda rt, c, o, x, y: DistributedConfig(2), TypeError, "list of device numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_refused_and_the_worker_goes_on(opened, name):
    rt, _, _, x, y = opened
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call(*opened)
    rt(x, y)
    torch.testing.assert_close(y, x.sum(0).expand(2, 1, 64))


def test_one_buffer_read_and_written_by_ranks_that_wait_for_each_other(opened):
    """Dependencies follow whole buffers (1.8): rank 1 reads what rank 0 writes, and rank 0 waits for it."""
    rt, _, _, x, y = opened
    with pytest.raises(RuntimeError) as caught:
        rt(x, x)
    text = str(caught.value)
    assert "rank 0 (device 0) in chip" in text and "rank 1 has not started chip" in text
    assert "chip on rank 0 writes" in text and "programs.py" in text and "read and write different ones" in text
    rt(x, y)


@pytest.mark.parametrize(
    "use",
    [
        lambda rt, c, x, y: rt(x, y), lambda rt, c, x, y: rt.run(c, x, y), lambda rt, c, x, y: rt.submit(c, x, y),
        lambda rt, c, x, y: rt.malloc(4), lambda rt, c, x, y: rt.alloc_tensor((4,), torch.float32), lambda rt, c, x, y: rt.register(c),
        lambda rt, c, x, y: rt.alloc_stacked_tensor(torch.zeros(2, 4)), lambda rt, c, x, y: rt.__enter__(),
    ],
)  # fmt: skip
def test_a_closed_worker(opened, use):
    _, compiled, _, x, y = opened
    rt = compiled.prepare()
    rt.close()
    with pytest.raises(RuntimeError, match=r"called after close\(\)"):
        use(rt, compiled, x, y)
