"""Two programs on one worker share a resident cache: prefill fills it, every decode step appends a row and sums it."""

import torch
from rank_report import ranks, shared

import pypto.language as pl
from pypto.runtime import DistributedWorker, configure_log

PROMPT, LENGTH, WIDTH = 4, 8, 64


@pl.jit.incore
def prefill_kernel(prompt: pl.Tensor[[PROMPT, WIDTH], pl.FP32], cache: pl.InOut[pl.Tensor[[LENGTH, WIDTH], pl.FP32]]):
    cache = pl.store(pl.mul(pl.load(prompt, [0, 0], [PROMPT, WIDTH]), 0.5), [0, 0], cache)
    return cache


@pl.jit
def prefill_chip(prompt: pl.Tensor[[PROMPT, WIDTH], pl.FP32], cache: pl.InOut[pl.Tensor[[LENGTH, WIDTH], pl.FP32]]):
    return prefill_kernel(prompt, cache)


@pl.jit.host
def prefill(prompt: pl.Tensor[[PROMPT, WIDTH], pl.FP32], cache: pl.InOut[pl.Tensor[[LENGTH, WIDTH], pl.FP32]]):
    prefill_chip(prompt, cache, device=0)


@pl.jit.incore
def decode_kernel(
    token: pl.Tensor[[1, WIDTH], pl.FP32],
    step: pl.Tensor[[1, 8], pl.INT32],
    cache: pl.InOut[pl.Tensor[[LENGTH, WIDTH], pl.FP32]],
    out: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
):
    position = pl.cast(pl.read(step, [0, 0]), pl.INDEX)
    row = pl.mul(pl.load(token, [0, 0], [1, WIDTH]), 0.5)
    cache = pl.store(row, [position, 0], cache)
    total = row
    for i in pl.range(position):
        total = pl.add(total, pl.load(cache, [i, 0], [1, WIDTH]))
    out = pl.store(total, [0, 0], out)
    return out


@pl.jit
def decode_chip(
    token: pl.Tensor[[1, WIDTH], pl.FP32],
    step: pl.Tensor[[1, 8], pl.INT32],
    cache: pl.InOut[pl.Tensor[[LENGTH, WIDTH], pl.FP32]],
    out: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
):
    return decode_kernel(token, step, cache, out)


@pl.jit.host
def decode(
    token: pl.Tensor[[1, WIDTH], pl.FP32],
    step: pl.Tensor[[1, 8], pl.INT32],
    cache: pl.InOut[pl.Tensor[[LENGTH, WIDTH], pl.FP32]],
    out: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
):
    decode_chip(token, step, cache, out, device=0)


def main() -> None:
    configure_log("error")
    torch.manual_seed(0)
    prompt, token = torch.randn(PROMPT, WIDTH).share_memory_(), shared(1, WIDTH)
    step, out = shared(1, 8, dtype=torch.int32), shared(1, WIDTH)
    sample = torch.zeros(LENGTH, WIDTH)
    first = prefill.compile(prompt, sample, config=ranks(1))
    following = decode.compile(token, step, sample, out, config=ranks(1))
    history = 0.5 * prompt
    with DistributedWorker([first, following]) as worker:
        cache = worker.alloc_tensor((LENGTH, WIDTH), torch.float32, init=torch.zeros(LENGTH, WIDTH))
        worker.run(first, prompt, cache)
        for position in range(PROMPT, LENGTH):
            token.normal_()
            step[0, 0] = position
            worker.run(following, token, step, cache, out)
            history = torch.cat([history, 0.5 * token])
            torch.testing.assert_close(out[0], history.sum(0), rtol=1e-5, atol=1e-5)
    print(f"prefill and {LENGTH - PROMPT} decode steps over one resident cache agree with torch")


if __name__ == "__main__":
    main()
