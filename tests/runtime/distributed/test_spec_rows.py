"""Rows of the tables of the distributed chapter that no other file covers: results, sub-workers, errors by name."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import InternalError, ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.ir.errors import CompileError, Error, InvalidOperationError, ParserSyntaxError
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.stacked_device_tensor import StackedDeviceTensor

from .programs import config

Row = pl.Tensor[[1, 64], pl.FP32]
Rows = pl.Tensor[[2, 1, 64], pl.FP32]
Window = pld.DistributedTensor[[1, 64], pl.FP32]
NR = pl.dynamic("NR")


@pl.jit.incore
def copy_kernel(src: Row, dst: pl.Out[Row]):
    dst = pl.store(pl.load(src, [0, 0], [1, 64]), [0, 0], dst)
    return dst


@pl.jit
def copy(src: Row, dst: pl.Out[Row]):
    dst = copy_kernel(src, dst)
    return dst


@pl.jit.incore
def fill_kernel(src: Row, window: pl.InOut[Window]):
    window = pl.store(pl.load(src, [0, 0], [1, 64]), [0, 0], window)
    return window


@pl.jit
def fill(src: Row, window: pl.InOut[Window]):
    window = fill_kernel(src, window)
    return window


@pl.jit.incore
def read_kernel(window: Window, dst: pl.Out[Row]):
    dst = pl.store(pl.load(window, [0, 0], [1, 64]), [0, 0], dst)
    return dst


@pl.jit
def read(window: Window, dst: pl.Out[Row]):
    dst = read_kernel(window, dst)
    return dst


def defined(tmp_path, source: str, name: str) -> Any:
    path = tmp_path / f"{name}.py"
    path.write_text(source)
    names = {**globals()}
    exec(compile(source, str(path), "exec"), names)
    return names[name]


def host_of(tmp_path, body: str) -> Any:
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return defined(tmp_path, f"@pl.jit.host\ndef host(x: Rows, y: pl.Out[Rows]):\n{lines}\n", "host")


def compiled(tmp_path, body: str, platform: str = "a2a3sim") -> Any:
    x = torch.zeros(2, 1, 64)
    return host_of(tmp_path, body).compile(x, x.clone(), config=config(2, platform))


VIEW = "buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)\nw = pld.window(buf, [1, 64], dtype=pl.FP32)\n"
LOOP = "buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)\nfor r in pl.range({}):\n    w = pld.window(buf, [1, 64], dtype=pl.FP32)\n    "
DOMAINS = {
    "negative device": (VIEW + "fill(x[0], w, device=-1)", "non-negative"),
    "loop with step": (LOOP.format("0, 2, 2") + "fill(x[r], w, device=r)", "step 1"),
    "loop without iterations": (LOOP.format("0, 0") + "fill(x[r], w, device=r)", "'buf' is not consumed by any chip_orch"),
    "no device": (LOOP.format("2") + "fill(x[r], w)", "'buf' is not consumed by any chip_orch dispatch"),
    "no view": ("buf = pld.alloc_window_buffer(256)\ncopy(x[0], y[0], device=0)", "'buf' is a dead allocation"),
    "no window": ("fill(x[0], y[0], device=0)", "'window' is a window .* gets a plain tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_windows_and_ranks_that_do_not_fit(name, tmp_path):
    """The reference fails internally here; programs that expect that, and those that expect a ``ValueError``, work."""
    body, text = DOMAINS[name]
    with pytest.raises(InternalError, match=text) as caught:
        compiled(tmp_path, body)
    assert isinstance(caught.value, ValueError) and "host.py" in str(caught.value)


@pytest.mark.parametrize("call", ["[1, 64]", "64, dtype=pl.FP32", "[], dtype=pl.FP32", "[0, 4], dtype=pl.FP32"])
def test_allocations_that_are_none(call, tmp_path):
    with pytest.raises(ParserSyntaxError, match="host.py:3"):
        compiled(tmp_path, f"buf = pld.alloc_window_buffer({call})\nw = pld.window(buf, [1, 64], dtype=pl.FP32)")


def test_a_host_body_computes_nothing(tmp_path):
    with pytest.raises(ValueError, match="DistributedCodegen does not support op 'tensor.add'"):
        compiled(tmp_path, "z = pl.add(x, x)\ncopy(z[0], y[0], device=0)")


# --- results of chip programs and sub-workers -------------------------------------------------------------------------

PROGRAM = """
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def twice(self, src: Row, dst: pl.Out[Row]) -> Row:
        tile = pl.load(src, [0, 0], [1, 64])
        dst = pl.store(pl.add(tile, tile), [0, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, src: Row, dst: pl.Out[Row]) -> Row:
        dst = self.twice(src, dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def fresh(self, src: pl.Tensor[[NR, 64], pl.FP32], n: pl.Scalar[pl.INT32]) -> pl.Tensor[[NR, 64], pl.FP32]:
        made = pl.create_tensor([NR, 64], dtype=pl.FP32)
        if n > 0:
            made = self.twice(src, made)
        return made

    @pl.function(type=pl.FunctionType.Orchestration)
    def two(self, src: Row, given: pl.Out[Row]) -> tuple[Row, Row]:
        made = pl.create_tensor([1, 64], dtype=pl.FP32)
        given = self.twice(src, given)
        made = self.twice(given, made)
        return made, given

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def post(a: Row, o: pl.Out[Row]) -> Row:
        o.copy_(a + 1)
        return o

{methods}
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: Rows, y: pl.Out[Rows]):
{body}
"""


def run_program(tmp_path, body: str, platform: str = "a2a3sim", methods: str = "") -> tuple[torch.Tensor, torch.Tensor]:
    source = PROGRAM.format(
        body=textwrap.indent(textwrap.dedent(body), " " * 8), methods=textwrap.indent(textwrap.dedent(methods), " " * 4)
    )
    program = defined(tmp_path, source, "Program")
    made = ir.compile(program, tmp_path / "build", platform=platform, distributed_config=DistributedConfig([0, 1]))
    x, y = torch.randn(2, 1, 64), torch.zeros(2, 1, 64)
    made(x, y)
    return x, y


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_a_chip_program_returns_a_tensor_of_its_own(tmp_path, platform):
    """The host provides the memory, also in a loop."""
    x, y = run_program(
        tmp_path, "for r in pl.range(2):\n    t = self.fresh(x[r], 1, device=r)\n    self.chip(t, y[r], device=1 * r)", platform
    )  # fmt: skip
    torch.testing.assert_close(y, 4 * x, rtol=0, atol=0)


def test_memory_that_the_host_provides_is_zero(tmp_path):
    _, y = run_program(tmp_path, "t = self.fresh(x[0], 0, device=1)\nself.chip(t, y[0], device=0)")
    assert not y.any()


def test_a_result_of_its_own_beside_an_output(tmp_path):
    x, y = run_program(tmp_path, "made, given = self.two(x[0], y[0], device=1)\nself.chip(made, y[1], device=0)")
    torch.testing.assert_close(y, torch.stack([2 * x[0], 8 * x[0]]), rtol=0, atol=0)


def test_a_sub_worker_that_returns_its_output(tmp_path):
    x, y = run_program(tmp_path, "a = self.chip(x[0], y[0], device=0)\no = y[1]\no = self.post(a, o)")
    torch.testing.assert_close(y[1], 2 * x[0] + 1)


def test_a_sub_worker_has_no_self(tmp_path):
    methods = "@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)\ndef other(self, a: Row): ...\n"
    with pytest.raises(ParserSyntaxError, match="other is a HOST sub-worker and must not declare 'self'"):
        run_program(tmp_path, "self.chip(x[0], y[0], device=0)", methods=methods)


def test_an_abstract_sub_worker_says_so(tmp_path):
    @pl.program
    class Program:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def abstract(a: Row): ...

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def concrete(a: Row):
            print(a)

    assert Program.functions["abstract"].requires_runtime_binding is True
    assert Program.functions["concrete"].requires_runtime_binding is False


# --- deferred waits ---------------------------------------------------------------------------------------------------

DEFERRED = """
@pl.jit
def chip(signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]], out: pl.Out[Row]):
{body}
    return out

@pl.jit.host
def host(x: Rows, y: pl.Out[Rows]):
    buf = pld.alloc_window_buffer([4, 1], dtype=pl.INT32)
    for r in pl.range(2):
        s = pld.window(buf, [4, 1], dtype=pl.INT32)
        chip(s, y[r], device=r)
"""
WAIT = "pld.system.defer_wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)"
WRONG_WAITS = {
    "work beside it": (
        f"with pl.at(level=pl.Level.CORE_GROUP) as tid:\n    {WAIT}\n    out = pl.store(pl.tile.full([1, 64], dtype=pl.FP32, value=1.0), [0, 0], out)",
        "does nothing else",
    ),
    "blocks": (f"for b in pl.spmd(2):\n    {WAIT}", "takes no core_num="),
    "early": (
        f"with pl.at(level=pl.Level.CORE_GROUP, allow_early_resolve=True) as tid:\n    {WAIT}", "takes no allow_early",
    ),
    "a view": (
        f"part = pl.slice(signal, [2, 1], [0, 0])\nwith pl.at(level=pl.Level.CORE_GROUP) as tid:\n    {WAIT.replace('signal,', 'part,')}",
        "signal must be window-bound",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRONG_WAITS))
def test_a_deferred_wait_is_a_task_of_its_own(name, tmp_path):
    body, text = WRONG_WAITS[name]
    host = defined(tmp_path, DEFERRED.format(body=textwrap.indent(body, "    ")), "host")
    x = torch.zeros(2, 1, 64)
    with pytest.raises(Error, match=text):
        host.compile(x, x.clone(), config=config(2))


def test_a_deferred_wait_does_not_stand_in_a_kernel(tmp_path):
    kernel = f"@pl.jit.incore\ndef kernel(signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]], out: pl.Out[Row]):\n    {WAIT}\n    return out\n"
    host = defined(tmp_path, kernel + DEFERRED.format(body="    out = kernel(signal, out)"), "host")
    x = torch.zeros(2, 1, 64)
    with pytest.raises(Error, match="defer_wait stands in the kernel 'kernel'"):
        host.compile(x, x.clone(), config=config(2))


# --- collectives ------------------------------------------------------------------------------------------------------


def host_allreduce(tmp_path, call: str, signal: str, platform: str = "a2a3sim") -> Any:
    return compiled(
        tmp_path,
        f"""
        wb = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        sb = pld.alloc_window_buffer({signal}, dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(wb, [1, 64], dtype=pl.FP32)
            fill(x[r], w, device=r)
        w1 = pld.window(wb, [1, 64], dtype=pl.FP32)
        s = pld.window(sb, {signal}, dtype=pl.INT32)
        {call}
        for r in pl.range(pld.world_size()):
            w2 = pld.window(wb, [1, 64], dtype=pl.FP32)
            read(w2, y[r], device=r)
        """,
        platform,
    )


@pytest.mark.parametrize(
    ("call", "signal", "text"),
    [
        (
            "pld.tensor.allreduce(w1, s, core_num=49)",
            "[2, 49]",
            r"core_num=49 exceeds the backend AIV core count \(48\)",
        ),
        ("pld.tensor.allreduce(w1, s, mode='ring')", "[2, 2]", r"a ring of 2 ranks needs \[3, 2\] cells"),
        ("pld.tensor.allreduce(w1, s, mode='ring', op=pld.ReduceOp.Max)", "[3, 2]", "ReduceOp.Sum only"),
        ("pld.tensor.allreduce(w1, s, mode='ring')", "[5, 3]", "64 elements do not divide into 3 equal segments"),
    ],
)
def test_what_a_collective_of_the_host_cannot_do(call, signal, text, tmp_path):
    with pytest.raises(CompileError, match=text):
        host_allreduce(tmp_path, call, signal)


def test_a_ring_of_the_host(tmp_path):
    x, y = torch.randn(2, 1, 64), torch.zeros(2, 1, 64)
    host_allreduce(tmp_path, "pld.tensor.allreduce(w1, s, mode='ring')", "[3, 2]")(x, y)
    torch.testing.assert_close(y, x.sum(0, keepdim=True).expand_as(x))


KERNEL = """
@pl.jit.incore
def kernel(w: pl.InOut[Window], s: pl.InOut[pld.DistributedTensor[{shape}, pl.INT32]]):
    w = pld.tensor.allreduce(w{signal})
    return w

@pl.jit
def chip(w: pl.InOut[Window], s: pl.InOut[pld.DistributedTensor[{shape}, pl.INT32]]):
    w = kernel(w, s)
    return w

@pl.jit.host
def host(x: Rows, y: pl.Out[Rows]):
    wb = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    sb = pld.alloc_window_buffer({shape}, dtype=pl.INT32)
    for r in pl.range(2):
        w = pld.window(wb, [1, 64], dtype=pl.FP32)
        s = pld.window(sb, {shape}, dtype=pl.INT32)
        chip(w, s, device=r)
"""


@pytest.mark.parametrize(
    ("shape", "signal", "kind", "text"),
    [
        ("[2]", ", s", CompileError, r"the signal must be \[ranks, 1\], got \[2\]"),
        ("[2, 2]", ", s", CompileError, r"the signal must be \[ranks, 1\], got \[2, 2\]"),
        ("[2, 1]", ", None", InvalidOperationError, "expects a DistributedTensor signal"),
        ("[2, 1]", "", InvalidOperationError, "needs an explicit signal"),
    ],
)
def test_signals_of_a_collective_in_a_kernel(shape, signal, kind, text, tmp_path):
    host = defined(tmp_path, KERNEL.format(shape=shape, signal=signal), "host")
    x = torch.zeros(2, 1, 64)
    with pytest.raises(kind, match=text):
        host.compile(x, x.clone(), config=config(2))


# --- stacked tensors --------------------------------------------------------------------------------------------------


def test_whole_slices_of_a_shard():
    shards = tuple(DeviceTensor(1024 * (i + 1), (3, 4), torch.float32) for i in range(2))
    stack = StackedDeviceTensor(shards, (2, 3, 4), (0, 1))
    for index in ((1,), (1, ...), (1, slice(0, 3), slice(None, 4)), (1, ..., slice(0, 4)), (1, slice(0, 3), ...)):
        assert stack[index] is shards[1]
    for index in ((1, slice(0, 2)), (1, ..., slice(1, 4)), (1, slice(0, 3), slice(0, 5)), (1, slice(0, 4)), (1, 0)):
        with pytest.raises(ValueError, match="only whole-shard access"):
            stack[index]
    with pytest.raises(IndexError, match="too many indices"):
        stack[1, :, :, :]
