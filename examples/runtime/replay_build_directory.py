"""Rebuild a program from its build directory, edit its kernel text by hand, and measure the edited one."""

import tempfile
from pathlib import Path

import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig, benchmark, configure_log
from pypto.runtime.debug import invalidate_binary_cache, rebuild_kernel_cpp_from_pto, replay

ROWS, COLS = 128, 128
CONFIG = RunConfig(platform="a2a3")


@pl.jit
def add_kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ta = pl.load(a, [0, 0], [ROWS, COLS])
        tb = pl.load(b, [0, 0], [ROWS, COLS])
        pl.store(pl.add(ta, tb), [0, 0], out)
    return out


def edit(folder: Path, old: str, new: str) -> Path:
    """Replace a mnemonic in the one kernel text that has it."""
    (text,) = [p for p in folder.rglob("*.pto") if old in p.read_text()]
    text.write_text(text.read_text().replace(old, new))
    return text


def main() -> None:
    configure_log("error")  # no markers of the launches below
    torch.manual_seed(0)
    a, b, out = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ir.compile(add_kernel.lower(a, b, out), platform=CONFIG.platform, output_dir=str(folder))

        again = ir.CompiledProgram.from_dir(folder)
        assert again.program is None, "nothing but the directory is needed"
        before = benchmark(again, [a, b, out], rounds=5, warmup=1)
        torch.testing.assert_close(out, a + b, rtol=0, atol=0)

        edited = edit(folder, "tadd", "tsub")
        rebuild_kernel_cpp_from_pto(folder)  # the document's two steps; content decides, so both are optional
        invalidate_binary_cache(folder)
        after = benchmark(ir.CompiledProgram.from_dir(folder), [a, b, out], rounds=5, warmup=1)
        torch.testing.assert_close(out, a - b, rtol=0, atol=0)

        out.zero_()
        replay(folder, a, b, out, config=CONFIG)  # the same without a compiled program
        torch.testing.assert_close(out, a - b, rtol=0, atol=0)
        print(f"add takes {before.device_us_median:.2f} us, the edited {edited.name} {after.device_us_median:.2f} us")


if __name__ == "__main__":
    main()
