"""Stacked weights that stay on their chips, once with shard i on rank i and once placed the other way round."""

import torch
from rank_report import ranks, shared

import pypto.language as pl
from pypto.runtime import DistributedWorker, configure_log

RANKS, SIZE = 2, 64


@pl.jit.incore
def add_kernel(
    x: pl.Tensor[[SIZE, SIZE], pl.FP32],
    w: pl.Tensor[[SIZE, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
):
    total = pl.add(pl.load(x, [0, 0], [SIZE, SIZE]), pl.load(w, [0, 0], [SIZE, SIZE]))
    y = pl.store(total, [0, 0], y)
    return y


@pl.jit
def add(
    x: pl.Tensor[[SIZE, SIZE], pl.FP32],
    w: pl.Tensor[[SIZE, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[SIZE, SIZE], pl.FP32]],
):
    return add_kernel(x, w, y)


@pl.jit.host
def straight(
    x: pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32],
    w: pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32]],
):
    for r in pl.range(RANKS):
        add(x[r], w[r], y[r], device=r)


@pl.jit.host
def crossed(
    x: pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32],
    w: pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32]],
):
    add(x[0], w[0], y[0], device=1)
    add(x[1], w[1], y[1], device=0)


def main() -> None:
    configure_log("error")
    torch.manual_seed(0)
    x, y = shared(RANKS, SIZE, SIZE), shared(RANKS, SIZE, SIZE)  # before the worker: its ranks inherit them
    weight = torch.randn(RANKS, SIZE, SIZE)  # uploaded: any tensor will do
    for program, placement in ((straight, [0, 1]), (crossed, [1, 0])):
        compiled = program.compile(x, weight, y, config=ranks(RANKS))
        with DistributedWorker(compiled) as worker:
            resident = worker.alloc_stacked_tensor(weight, worker_ids=placement)
            for step in range(3):
                x.fill_(float(step))
                worker(x, resident, y)
                torch.testing.assert_close(y, x + weight)
            back = torch.empty_like(weight)
            worker.copy_stacked_from(resident, back)
            torch.testing.assert_close(back, weight, rtol=0, atol=0)
            wrong = worker.alloc_stacked_tensor(weight, worker_ids=placement[::-1])
            try:
                worker(x, wrong, y)
            except ValueError as error:
                print(f"{program.__name__}: a shard on the wrong chip is refused: {str(error).splitlines()[0]}")
        print(f"{program.__name__}: three steps with weights on {placement} agree with torch")


if __name__ == "__main__":
    main()
