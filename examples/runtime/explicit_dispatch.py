"""Three ways to launch: implicitly inside a worker's block, through the worker, through a registered handle."""

import time

import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import ChipWorker, RunConfig, configure_log

ROWS, COLS = 128, 128
CONFIG = RunConfig(platform="a2a3sim")


@pl.jit
def add_kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]) -> pl.Tensor:
    with pl.at(level=pl.Level.CORE_GROUP):
        ta = pl.load(a, [0, 0], [ROWS, COLS])
        tb = pl.load(b, [0, 0], [ROWS, COLS])
        pl.store(pl.add(ta, tb), [0, 0], out)
    return out


def serve(compiled, batches, weight):
    """A service: registered when it starts, launched for every request."""
    worker = ChipWorker(config=CONFIG)
    try:
        handle = worker.register(compiled)
        resident = worker.alloc_tensor(tuple(weight.shape), weight.dtype, init=weight)
        for batch in batches:
            out = torch.zeros_like(batch)
            handle(batch, resident, out)
            yield out
    finally:
        worker.close()


def train(compiled, value, step, steps):
    """A training loop: one worker around it, plain calls inside find it."""
    with ChipWorker(config=CONFIG):
        for _ in range(steps):
            value = compiled(value, step)  # return style, as the kernel declares -> pl.Tensor
    return value


def count_registrations(compiled, a, b, launches):
    """Registering twice and launching often loads the program once."""
    with ChipWorker(config=CONFIG) as worker:
        assert worker.aicpu_dlopen_count == 0
        handle, alias = worker.register(compiled), worker.register(compiled)
        out = torch.zeros_like(a)
        start = time.perf_counter()
        for _ in range(launches):
            handle(a, b, out)
        elapsed = time.perf_counter() - start
        alias.unregister()
        assert worker.aicpu_dlopen_count == 1
    return elapsed / launches


def main() -> None:
    configure_log("error")  # no markers of the launches below
    torch.manual_seed(0)
    a, b = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)
    compiled = ir.compile(add_kernel.lower(a, b, torch.zeros(ROWS, COLS)), platform=CONFIG.platform)

    batches = [a, 2 * a, 3 * a]
    for batch, out in zip(batches, serve(compiled, batches, b)):
        torch.testing.assert_close(out, batch + b, rtol=0, atol=0)

    torch.testing.assert_close(train(compiled, a, b, 4), a + b + b + b + b, rtol=0, atol=0)
    print(f"a registered launch takes {count_registrations(compiled, a, b, 200) * 1e6:.0f} us of this computer's time")


if __name__ == "__main__":
    main()
