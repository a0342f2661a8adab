"""Python sub-workers beside the chips, class programs, dynamic rank counts, reloading (spec distributed 1)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, execute_distributed_compiled
from pypto.runtime.distributed_runner import _tensor_from_continuous

from .programs import config

NR = pl.dynamic("NR")


def _concrete():
    @pl.program
    class Combined:
        @pl.function(type=pl.FunctionType.InCore)
        def twice(
            self, src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]
        ) -> pl.Tensor[[1, 64], pl.FP32]:
            t = pl.load(src, [0, 0], [1, 64])
            dst = pl.store(pl.add(t, t), [0, 0], dst)
            return dst

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_chip(
            self, src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]
        ) -> pl.Tensor[[1, 64], pl.FP32]:
            dst = self.twice(src, dst)
            return dst

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def combine(
            left: pl.Tensor[[1, 64], pl.FP32],
            right: pl.Tensor[[1, 64], pl.FP32],
            total: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        ):
            total.copy_(left + right)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def drive(
            self,
            x: pl.Tensor[[2, 1, 64], pl.FP32],
            y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]],
            total: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        ):
            a = self.per_chip(x[0], y[0], device=0)
            b = self.per_chip(x[1], y[1], device=1)
            self.combine(a, b, total)

    return Combined


def _abstract():
    @pl.program
    class Required:
        @pl.function(type=pl.FunctionType.InCore)
        def twice(
            self, src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]
        ) -> pl.Tensor[[1, 64], pl.FP32]:
            t = pl.load(src, [0, 0], [1, 64])
            dst = pl.store(pl.add(t, t), [0, 0], dst)
            return dst

        @pl.function(type=pl.FunctionType.Orchestration)
        def per_chip(
            self, src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]
        ) -> pl.Tensor[[1, 64], pl.FP32]:
            dst = self.twice(src, dst)
            return dst

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def combine(
            left: pl.Tensor[[1, 64], pl.FP32],
            right: pl.Tensor[[1, 64], pl.FP32],
            total: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        ): ...

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def drive(
            self,
            x: pl.Tensor[[2, 1, 64], pl.FP32],
            y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]],
            total: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        ):
            a = self.per_chip(x[0], y[0], device=0)
            b = self.per_chip(x[1], y[1], device=1)
            self.combine(a, b, total)

    return Required


def tensors():
    return (
        torch.randn(2, 1, 64).share_memory_(),
        torch.zeros(2, 1, 64).share_memory_(),
        torch.zeros(1, 64).share_memory_(),
    )


def compiled(program, tmp_path):
    return ir.compile(program, output_dir=tmp_path, platform="a2a3sim", distributed_config=config(2).distributed_config)


def test_a_sub_worker_sees_what_the_chips_wrote(tmp_path):
    program = compiled(_concrete(), tmp_path)
    x, y, total = tensors()
    with program.prepare() as rt:
        for _ in range(2):
            x.normal_()
            rt(x, y, total)
            torch.testing.assert_close(y, 2 * x)
            torch.testing.assert_close(total, y.sum(0))


def test_a_bound_callback_runs_in_its_own_process(tmp_path):
    program = compiled(_abstract(), tmp_path)
    x, y, total = tensors()
    seen: list[int] = []

    def combine(args):
        seen.append(1)
        left, right, out = (_tensor_from_continuous(args[i]) for i in range(3))
        out.copy_(left * right)

    with pytest.raises(ValueError, match="runtime-bound callbacks .* must be supplied via callbacks"):
        program.prepare()
    with pytest.raises(ValueError, match="one-shot call cannot take callbacks"):
        program(x, y, total)
    for wrong, kind, text in (
        (3, TypeError, "not callable"),
        (lambda: None, TypeError, "single positional"),
        (lambda a, b: None, TypeError, "single positional"),
    ):
        with pytest.raises(kind, match=text):
            program.prepare(callbacks={"combine": wrong})
    with program.prepare(callbacks={"combine": combine}) as rt:
        rt(x, y, total)
    torch.testing.assert_close(total, y[0] * y[1])
    assert not seen


def test_a_failing_sub_worker_leaves_the_worker_usable(tmp_path):
    program = compiled(_abstract(), tmp_path)
    x, y, total = tensors()

    def combine(args):
        if _tensor_from_continuous(args[0])[0, 0] > 0:
            raise KeyError("no such row")

    with program.prepare(callbacks={"combine": combine}) as rt:
        x.fill_(1.0)
        with pytest.raises(RuntimeError, match=r"sub_worker: KeyError: 'no such row'$"):
            rt(x, y, total)
        x.fill_(-1.0)
        rt(x, y, total)
        torch.testing.assert_close(y, 2 * x)


def test_a_reloaded_program(tmp_path):
    compiled(_concrete(), tmp_path)
    x, y, total = tensors()
    again = DistributedCompiledProgram.from_dir(tmp_path)
    again(x, y, total)
    torch.testing.assert_close(total, 2 * x.sum(0))
    total.zero_()
    execute_distributed_compiled(tmp_path, [x, y, total])
    torch.testing.assert_close(total, 2 * x.sum(0))
    assert again.program is None and str(again) == str(tmp_path.resolve())


@pytest.mark.parametrize(
    ("damage", "kind", "text"),
    [
        (lambda d: (d / "distributed_meta.json").unlink(), FileNotFoundError, "no distributed_meta.json"),
        (lambda d: (d / "distributed_meta.json").write_text("{"), ValueError, "is damaged"),
        (lambda d: (d / "distributed_meta.json").write_text('{"schema": 1}'), ValueError, "schema 1"),
        (lambda d: (d / "orchestration" / "host_orch.py").unlink(), FileNotFoundError, "host_orch.py"),
        (
            lambda d: (d / "next_levels" / "per_chip" / "kernel_config.py").unlink(),
            FileNotFoundError,
            "kernel_config.py",
        ),
    ],
)
def test_damaged_directories(tmp_path, damage, kind, text):
    compiled(_concrete(), tmp_path)
    damage(tmp_path)
    with pytest.raises(kind, match=text):
        DistributedCompiledProgram.from_dir(tmp_path)


def rows_program(kind):
    @pl.jit.incore
    def kernel(src: pl.Tensor[[32, 96], pl.FP32], dst: pl.Out[pl.Tensor[[32, 96], pl.FP32]]):
        t = pl.load(src, [0, 0], [32, 96])
        dst = pl.store(pl.mul(t, 3.0), [0, 0], dst)
        return dst

    @pl.jit
    def chip(src: pl.Tensor[[32, 96], pl.FP32], dst: pl.Out[pl.Tensor[[32, 96], pl.FP32]]):
        return kernel(src, dst)

    if kind == "range":

        @pl.jit.host
        def host(x: pl.Tensor[[NR, 32, 96], pl.FP32], y: pl.Out[pl.Tensor[[NR, 32, 96], pl.FP32]]):
            for r in pl.range(pld.world_size()):
                chip(x[r], y[r], device=r)
    else:

        @pl.jit.host
        def host(x: pl.Tensor[[NR, 32, 96], pl.FP32], y: pl.Out[pl.Tensor[[NR, 32, 96], pl.FP32]]):
            for r in pl.parallel(pld.world_size()):
                chip(x[r], y[r], device=r)

    return host


@pytest.mark.parametrize("kind", ["range", "parallel"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_one_source_for_any_number_of_ranks(kind, ranks):
    x, y = torch.randn(ranks, 32, 96).share_memory_(), torch.zeros(ranks, 32, 96).share_memory_()
    rows_program(kind).compile(x, y, config=config(ranks))(x, y)
    torch.testing.assert_close(y, 3 * x)


def test_dispatches_without_a_device_go_round_and_results_chain():
    """Three dispatches on two chips, each reading what the one before wrote."""

    @pl.jit.incore
    def kernel(src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        dst = pl.store(pl.add(pl.load(src, [0, 0], [1, 64]), 1.0), [0, 0], dst)
        return dst

    @pl.jit
    def chip(src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        return kernel(src, dst)

    @pl.jit.host
    def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        first = pl.create_tensor([1, 64], dtype=pl.FP32)
        second = pl.create_tensor([1, 64], dtype=pl.FP32)
        first = chip(x, first)
        second = chip(first, second)
        y = chip(second, y)

    x, y = torch.randn(1, 64).share_memory_(), torch.zeros(1, 64).share_memory_()
    host.compile(x, y, config=config(2))(x, y)
    torch.testing.assert_close(y, x + 3)
