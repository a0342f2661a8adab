"""Updates of a tensor in GM by its own name reach the caller's memory (spec ops 1.11)."""

import torch
from round_trip import run_everywhere

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def values(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


CACHE, NEW = values(16, 32), values(4, 32, seed=1)
AT = torch.tensor([[3, 1, 7, 15]], dtype=torch.int32)


def updated(cache):
    result = cache.clone()
    result[AT[0].long()] = NEW
    return result


@pl.jit
def put_rows(cache: pl.InOut[pl.Tensor], at: pl.Tensor, new: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        cache = pl.scatter_update(cache, -2, at, new)
    return cache


@pl.jit
def put_elsewhere(cache: pl.Tensor, at: pl.Tensor, new: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.scatter_update(cache, -2, at, new)
    return out


@pl.jit
def put_along_rows(cache: pl.InOut[pl.Tensor], at: pl.Tensor, new: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        for _ in pl.range(2):
            cache = pl.scatter(cache, dim=-1, index=at, src=new)
    return cache


def test_rows_of_the_callers_tensor_are_replaced():
    got = run_everywhere(put_rows.lower(CACHE, AT, NEW), CACHE, AT, NEW)
    assert torch.equal(got[0], updated(CACHE))


def test_an_input_written_elsewhere_stays_as_it_is():
    cache, out = CACHE.clone(), torch.zeros(16, 32)
    put_elsewhere(cache, AT, NEW, out, config=SIM)
    assert torch.equal(out, updated(CACHE)) and torch.equal(cache, CACHE)


def test_elements_along_an_axis():
    at = torch.argsort(values(16, 8, seed=2), 1).int() * 3
    new = values(16, 8, seed=3)
    got = run_everywhere(put_along_rows.lower(CACHE, at, new), CACHE, at, new)
    assert torch.equal(got[0], CACHE.scatter(1, at.long(), new))


def test_a_kernel_with_a_tensor_parameter():
    source = pl.parse("""@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def put(self, cache: pl.InOut[pl.Tensor[[16, 32], pl.FP32]], at: pl.Tensor[[1, 4], pl.INT32],
            new: pl.Tensor[[4, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
        cache = pl.tensor.scatter_update(cache, -2, at, new)
        return cache

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, cache: pl.InOut[pl.Tensor[[16, 32], pl.FP32]], at: pl.Tensor[[1, 4], pl.INT32],
             new: pl.Tensor[[4, 32], pl.FP32]):
        cache = self.put(cache, at, new)
        return cache
""")
    cache = CACHE.clone()
    ir.compile(source, platform="a2a3sim", dump_passes=False)(cache, AT, NEW)
    assert torch.equal(cache, updated(CACHE))
