"""HOST orchestrators and ``pld``: what is legal where, and which ranks share which windows (spec distributed 1, 2)."""

from __future__ import annotations

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.errors import Error, InvalidOperationError, ParserError, ParserSyntaxError, ParserTypeError
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


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        ("pld.world_size()", ParserSyntaxError, "only be called in HOST orchestration"),
        (
            "pld.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)",
            InvalidOperationError,
            "write pld.system.notify",
        ),
        ("pld.host.notify(signal)", InvalidOperationError, "no category; legal: system, tensor, tile"),
        ("pld.system.wait(inp, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)", InvalidOperationError, "window-bound"),
        ("pld.system.wait(data, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)", InvalidOperationError, "INT32 cells"),
        (
            "pld.system.wait(signal, offsets=[4, 0], expected=1, cmp=pld.WaitCmp.Ge)",
            InvalidOperationError,
            "outside the signal",
        ),
        (
            "pld.tile.remote_load(data, peer=1, offsets=[0, 32], shape=[1, 64])",
            InvalidOperationError,
            "reads past the end of dimension",
        ),
        ("pld.tensor.put(data, 1, inp, dst_offsets=[0, 0])", InvalidOperationError, "must be provided together"),
        ("pld.tensor.put(data, 1, inp, pipeline=True)", InvalidOperationError, "needs chunk_rows and chunk_cols"),
        ("pld.tensor.get(inp, 1, inp)", InvalidOperationError, "window-bound"),
        ("pld.tensor.allreduce(data, signal, mode='star')", InvalidOperationError, "legal modes: mesh, ring"),
        ("pld.tensor.allreduce(data, mode='ring')", InvalidOperationError, "requires an explicit signal"),
        ("pld.tensor.broadcast(data, signal, root=-1)", InvalidOperationError, "least legal value is 0"),
        ("pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Max)", InvalidOperationError, "reduce_scatter sums"),
        ("pld.get_comm_ctx(inp)", InvalidOperationError, "window-bound"),
    ],
)
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


# --- orchestrators that call orchestrators, names after a dispatch --------------------------------------------------------

CHIPS = """
import pypto.language as pl
import pypto.language.distributed as pld
N = pl.dynamic("N")
ROWS = pl.Tensor[[N, 1, 64], pl.FP32]


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def add_one(self, a: pl.Tensor[[1, 64], pl.FP32], b: pl.Out[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[[1, 64], pl.FP32]:
        b = pl.store(pl.add(pl.load(a, [0, 0], [1, 64]), 1.0), [0, 0], b)
        return b

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, a: pl.Tensor[[1, 64], pl.FP32], b: pl.Out[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[[1, 64], pl.FP32]:
        b = self.add_one(a, b)
        return b

    @pl.function(type=pl.FunctionType.InCore)
    def grow_core(self, a: pl.InOut[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[[1, 64], pl.FP32]:
        a = pl.store(pl.add(pl.load(a, [0, 0], [1, 64]), 1.0), [0, 0], a)
        return a

    @pl.function(type=pl.FunctionType.Orchestration)
    def grow(self, a: pl.InOut[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[[1, 64], pl.FP32]:
        a = self.grow_core(a)
        return a

    @pl.function(type=pl.FunctionType.InCore)
    def share_core(self, a: pl.Tensor[[1, 64], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]) -> pld.DistributedTensor[[1, 64], pl.FP32]:
        w = pl.store(pl.load(a, [0, 0], [1, 64]), [0, 0], w)
        return w

    @pl.function(type=pl.FunctionType.Orchestration)
    def share(self, a: pl.Tensor[[1, 64], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]) -> pld.DistributedTensor[[1, 64], pl.FP32]:
        w = self.share_core(a, w)
        return w

    @pl.function(type=pl.FunctionType.InCore)
    def fetch_core(self, w: pld.DistributedTensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[[1, 64], pl.FP32]:
        me = pld.rank(pld.get_comm_ctx(w))
        y = pl.store(pld.tile.remote_load(w, peer=1 - me, offsets=[0, 0], shape=[1, 64]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def fetch(self, w: pld.DistributedTensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]) -> pl.Tensor[[1, 64], pl.FP32]:
        y = self.fetch_core(w, y)
        return y
"""


def host_program(tmp_path, **functions):
    """``name=(level, parameters, body)``; the program of ``CHIPS`` with these orchestrators."""
    import importlib.util

    text = CHIPS
    for name, (level, body) in functions.items():
        text += f"\n    @pl.function(level=pl.Level.{level}, role=pl.Role.Orchestrator)\n"
        text += f"    def {name}(self, x: ROWS, y: pl.Out[ROWS]):\n"
        text += "".join(f"        {line}\n" for line in body.strip().splitlines())
    (tmp_path / "hosts.py").write_text(text)
    spec = importlib.util.spec_from_file_location("hosts", tmp_path / "hosts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Program


def run_host(tmp_path, **functions):
    import torch

    from pypto import ir
    from pypto.ir.distributed_compiled_program import DistributedConfig

    x, y = torch.randn(2, 1, 64), torch.zeros(2, 1, 64)
    compiled = ir.compile(
        host_program(tmp_path, **functions), platform="a2a3sim", distributed_config=DistributedConfig([0, 1])
    )
    compiled(x, y)
    return x, y


EVERY_ROW = """
for r in pl.range(pld.world_size()):
    self.chip(x[r], y[r], device=r)
"""


@pytest.mark.parametrize("level", ["HOST", "CLUSTER_0", "CLUSTER_1", "GLOBAL"])
def test_an_orchestrator_that_calls_one_of_its_level_or_below(tmp_path, level):
    """A plain call (1.3); levels above HOST have this one host below them."""
    x, y = run_host(tmp_path, inner=("HOST", EVERY_ROW), top=(level, "self.inner(x, y)"))
    assert (y == x + 1).all()


def test_a_chain_of_levels_and_calls_in_loops(tmp_path):
    x, y = run_host(
        tmp_path,
        inner=("HOST", EVERY_ROW),
        middle=("CLUSTER_0", "for k in pl.range(2):\n    if k == 1:\n        self.inner(x, y)"),
        top=("CLUSTER_1", "self.middle(x, y)"),
    )
    assert (y == x + 1).all()


def test_called_twice_each_call_has_its_own_tensors(tmp_path):
    inner = """
t = pl.create_tensor([1, 64], dtype=pl.FP32)
t = self.chip(x[0], t, device=0)
self.chip(t, y[1], device=1)
"""
    x, y = run_host(tmp_path, inner=("HOST", inner), top=("HOST", "self.inner(x, y)\nself.inner(x, y)"))
    assert (y[1] == x[0] + 1 + 1).all()


@pytest.mark.parametrize(
    ("functions", "text"),
    [
        ({"a": ("HOST", EVERY_ROW), "b": ("HOST", EVERY_ROW)}, "needs exactly one HOST orchestrator, it has a, b"),
        ({"a": ("HOST", EVERY_ROW), "b": ("HOST", "self.a(x, y, device=0)")}, "'a'"),
    ],
)
def test_orchestrators_without_an_order(tmp_path, functions, text):
    with pytest.raises(Exception, match=text) as caught:
        run_host(tmp_path, **functions)
    assert isinstance(caught.value, (ValueError, TypeError))


STALE = {
    "in a loop": "t = pl.create_tensor([1, 64], dtype=pl.FP32)\nfor r in pl.range(2):\n    self.grow(t, device=0)",
    "after a dispatch": "t = pl.create_tensor([1, 64], dtype=pl.FP32)\nself.grow(t, device=0)\nself.chip(t, y[0], device=0)",
    "a window before a loop": (
        "buffer = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)\nw = pld.window(buffer, [1, 64], dtype=pl.FP32)\n"
        "for r in pl.range(pld.world_size()):\n    self.share(x[r], w, device=r)"
    ),
}


@pytest.mark.parametrize("name", STALE)
def test_a_name_after_it_went_into_an_output_slot(tmp_path, name):
    with pytest.raises(
        Error, match="InOutUseDiscipline.*assign the result of that call back, or take a new view"
    ) as caught:
        run_host(tmp_path, top=("HOST", STALE[name]))
    assert "hosts.py" in str(caught.value)


FRESH = {
    "assigned back": "t = pl.create_tensor([1, 64], dtype=pl.FP32)\nfor r in pl.range(2):\n    t = self.grow(t, device=0)\nself.chip(t, y[0], device=0)",
    "rows": "for r in pl.range(2):\n    self.chip(x[r], y[r], device=r)\nfor r in pl.range(2):\n    self.chip(y[r], y[1 - r], device=r)",
}


@pytest.mark.parametrize("name", FRESH)
def test_names_that_stay_good(tmp_path, name):
    run_host(tmp_path, top=("HOST", FRESH[name]))


def test_a_kernel_called_without_an_orchestration(tmp_path):
    """A bare InCore callee is a chip dispatch without a device: ranks take turns (1.3, 1.6)."""
    body = "for r in pl.range(2):\n    self.add_one(x[r], y[r])\nself.grow_core(y[1])"
    x, y = run_host(tmp_path, top=("HOST", body))
    assert (y[0] == x[0] + 1).all() and (y[1] == x[1] + 1 + 1).all()


def test_results_of_kernels_called_by_the_host(tmp_path):
    body = "t = pl.create_tensor([1, 64], dtype=pl.FP32)\nt = self.add_one(x[0], t)\nt = self.grow_core(t)\nself.chip(t, y[0], device=0)"
    x, y = run_host(tmp_path, top=("HOST", body))
    assert (y[0] == x[0] + 1 + 1 + 1).all()


def test_a_kernel_has_no_device(tmp_path):
    with pytest.raises(
        ParserTypeError, match="'add_one' is a kernel and does not accept keyword argument 'device'"
    ) as caught:
        run_host(tmp_path, top=("HOST", "self.add_one(x[0], y[0], device=0)"))
    assert "hosts.py" in str(caught.value)
