"""A weight that stays on the chip: uploaded once, used by every batch.

The host part of a launch shrinks by the weight's upload; the device's part does not change.
"""

import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import ChipWorker, RunConfig, benchmark, configure_log

ROWS, COLS = 128, 128
PLATFORM = "a2a3"


@pl.jit
def add_kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ta = pl.load(a, [0, 0], [ROWS, COLS])
        tb = pl.load(b, [0, 0], [ROWS, COLS])
        pl.store(pl.add(ta, tb), [0, 0], out)
    return out


def main() -> None:
    configure_log("error")  # no markers of the launches below
    torch.manual_seed(0)
    a, b = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)
    compiled = ir.compile(add_kernel.lower(a, b, torch.zeros(ROWS, COLS)), platform=PLATFORM)

    with ChipWorker(config=RunConfig(platform=PLATFORM)) as worker:
        resident = worker.alloc_tensor((ROWS, COLS), torch.float32, init=b)
        for batch in range(3):
            out = torch.zeros(ROWS, COLS)
            worker.run(compiled, a + batch, resident, out)
            torch.testing.assert_close(out, a + batch + b, rtol=0, atol=0)

        # An output may be resident as well; it is read back only when asked for.
        total = worker.alloc_tensor((ROWS, COLS), torch.float32)
        worker.run(compiled, a, resident, total)
        host = torch.empty(ROWS, COLS)
        worker.copy_from(host.data_ptr(), total.data_ptr, total.nbytes)
        torch.testing.assert_close(host, a + b, rtol=0, atol=0)

        worker.free_tensor(total)
        worker.free_tensor(resident)

    moved = benchmark(compiled, [a, b, torch.zeros(ROWS, COLS)], rounds=10, warmup=1)
    upload_us = moved.mean_invocation().by_name()["chip.run.bind.args"].dur_us
    print("three batches and one read-back agree with torch")
    print(f"without residency bind.args costs {upload_us:.1f} us a launch")


if __name__ == "__main__":
    main()
