"""Compile an add kernel for the a2a3 chip, run it, check it, measure it.

python examples/benchmark_add.py [--platform a2a3] [--rounds 100]
"""

import argparse

import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import benchmark, configure_log

ROWS, COLS = 128, 128


@pl.jit
def add_kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ta = pl.load(a, [0, 0], [ROWS, COLS])
        tb = pl.load(b, [0, 0], [ROWS, COLS])
        pl.store(pl.add(ta, tb), [0, 0], out)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="a2a3", choices=["a2a3", "a5", "a2a3sim", "a5sim"])
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()

    configure_log("error")  # no markers of the single launch below
    torch.manual_seed(0)
    a, b = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)
    out = torch.zeros(ROWS, COLS)

    compiled = ir.compile(add_kernel.lower(a, b, out), platform=options.platform)
    print(f"compiled to {compiled.output_dir}")

    compiled(a, b, out)
    torch.testing.assert_close(out, a + b, rtol=0, atol=0)
    print("equal to torch, bit for bit")

    stats = benchmark(compiled, [a, b, out], rounds=options.rounds, warmup=3)
    assert len(stats.samples) == options.rounds
    print(stats)
    if stats.all_zero_device:
        print(f"{options.platform} computes values only: the host spans below are real time, there is no device clock")
    stats.print_mean_tree(spread="both")
    print(stats.to_pandas().head())


if __name__ == "__main__":
    main()
