"""HOST orchestrators and ``pld``: what is legal where, and which ranks share which windows (spec distributed 1, 2)."""

from __future__ import annotations

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.errors import InvalidOperationError, ParserError, ParserSyntaxError
from pypto.ir.lowering.distributed_domains import Domains


@pl.jit.incore
def kernel(inp: pl.Tensor[[1, 64], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]):
    data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
    return data


@pl.jit
def chip(inp: pl.Tensor[[1, 64], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]):
    return kernel(inp, data)


def domains(host):
    program = host._program(*host._bind_signature({}))
    return Domains(program.functions[host.__name__]).infer()


def members(host):
    return {name: d.members for d in domains(host) for name in d.buffers}


def test_a_loop_to_the_world_size_is_all_ranks():
    @pl.jit.host
    def host(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        n = pld.world_size()
        for r in pl.range(n):
            w = pld.window(buf, [1, 64], dtype=pl.FP32)
            chip(x[r], w, device=r)

    assert members(host) == {"buf": None}


def test_constants_and_constant_loops_are_subsets():
    @pl.jit.host
    def host(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        one = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        two = pld.alloc_window_buffer(64 * pl.FP32.get_byte())
        w = pld.window(one, [1, 64], dtype=pl.FP32)
        chip(x[0], w, device=3)
        w1 = pld.window(one, [1, 64], dtype=pl.FP32)
        chip(x[0], w1, device=1)
        for r in pl.range(1, 3):
            v = pld.window(two, [1, 64], dtype=pl.FP32)
            chip(x[r], v, device=r)

    assert members(host) == {"one": (1, 3), "two": (1, 2)}
    assert [d.name for d in domains(host)] == ["comm_d0", "comm_d1"]


def failing(reason, kind=Exception):
    def check(host):
        with pytest.raises(kind, match=reason):
            domains(host)

    return check


def test_dispatch_expressions_that_name_no_rank():
    @pl.jit.host
    def arithmetic(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        for r in pl.range(2):
            w = pld.window(buf, [1, 64], dtype=pl.FP32)
            chip(x[r], w, device=r + 1)

    failing("must be ConstInt or the induction var of pl.range", ValueError)(arithmetic)

    @pl.jit.host
    def local(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        for r in pl.range(2):
            s = r + 1
            w = pld.window(buf, [1, 64], dtype=pl.FP32)
            chip(x[r], w, device=s)

    failing("is not the induction variable", ValueError)(local)

    @pl.jit.host
    def step(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        for r in pl.range(0, 4, 2):
            w = pld.window(buf, [1, 64], dtype=pl.FP32)
            chip(x[r], w, device=r)

    failing("has step 1")(step)


def test_buffers_that_nobody_uses():
    @pl.jit.host
    def dead(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        other = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        w = pld.window(buf, [1, 64], dtype=pl.FP32)
        chip(x[0], w, device=0)

    failing("'other' is a dead allocation")(dead)

    @pl.jit.host
    def undispatched(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        w = pld.window(buf, [1, 64], dtype=pl.FP32)
        chip(x[0], w)

    failing("not consumed by any chip_orch dispatch")(undispatched)




@pytest.mark.parametrize(("call", "kind", "text"), [
    ("pld.world_size()", ParserSyntaxError, "only be called in HOST orchestration"),
    ("pld.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)", InvalidOperationError, "write pld.system.notify"),
    ("pld.host.notify(signal)", InvalidOperationError, "no category; legal: system, tensor, tile"),
    ("pld.system.wait(inp, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)", InvalidOperationError, "window-bound"),
    ("pld.system.wait(data, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)", InvalidOperationError, "INT32 cells"),
    ("pld.system.wait(signal, offsets=[4, 0], expected=1, cmp=pld.WaitCmp.Ge)", InvalidOperationError, "outside the signal"),
    ("pld.tile.remote_load(data, peer=1, offsets=[0, 32], shape=[1, 64])", InvalidOperationError, "reads past the end of dimension"),
    ("pld.tensor.put(data, 1, inp, dst_offsets=[0, 0])", InvalidOperationError, "must be provided together"),
    ("pld.tensor.put(data, 1, inp, pipeline=True)", InvalidOperationError, "needs chunk_rows and chunk_cols"),
    ("pld.tensor.get(inp, 1, inp)", InvalidOperationError, "window-bound"),
    ("pld.tensor.allreduce(data, signal, mode='star')", InvalidOperationError, "legal modes: mesh, ring"),
    ("pld.tensor.allreduce(data, mode='ring')", InvalidOperationError, "requires an explicit signal"),
    ("pld.tensor.broadcast(data, signal, root=-1)", InvalidOperationError, "least legal value is 0"),
    ("pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Max)", InvalidOperationError, "reduce_scatter sums"),
    ("pld.get_comm_ctx(inp)", InvalidOperationError, "window-bound"),
])
def test_calls_in_a_kernel_that_make_no_sense(call, kind, text):
    source = f"""
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class Wrong:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, inp: pl.Tensor[[1, 64], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]],
    ):
        value = {call}
"""
    with pytest.raises(ParserError) as error:
        pl.parse(source)
    assert isinstance(error.value, kind) and text in str(error.value)


def test_names_from_python():
    assert repr(pld.rank) == "pld.rank" and "index" in pld.rank.__doc__
    assert "notify" in dir(pld.system) and "allreduce" in dir(pld.tensor)
    with pytest.raises(RuntimeError, match="only inside a kernel body"):
        pld.system.notify()
    with pytest.raises(AttributeError, match="pld.system has no operation 'shout'"):
        pld.system.shout  # noqa: B018
    with pytest.raises(AttributeError):
        pld.allreduce  # noqa: B018


def test_a_host_body_computes_nothing():
    @pl.jit.host
    def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        y = pl.add(x, x)

    with pytest.raises(InvalidOperationError, match="stands in orchestration code"):
        domains(host)


def test_a_window_larger_than_its_buffer():
    @pl.jit.host
    def host(x: pl.Tensor[[4, 1, 64], pl.FP32]):
        buf = pld.alloc_window_buffer(4)
        w = pld.window(buf, [1, 64], dtype=pl.FP32)
        chip(x[0], w, device=0)

    with pytest.raises(ValueError, match="needs 256 bytes per rank; buffer 'buf' has 4"):
        domains(host)
