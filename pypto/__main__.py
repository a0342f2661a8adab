"""``python -m pypto``: the version and the command lines of the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

COMMANDS: Final = {
    "pypto.perf": "statistics, comparison, pages and timelines of a log of markers (installed as pypto-perf)",
    "pypto.perf.strace_timing": "timing tables of a log of markers",
    "pypto.perf.device_log_timing": "timing of older device logs",
    "pypto.sim.check": "run a script with every check on",
    "pypto.sim.validate": "published times beside simulated ones",
    "pypto.runtime.debug.replay": "run a build directory as it is now",
    "pypto.ir.instructions": "the instructions of kernel text",
}
"""Modules to be run with ``python -m``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the version with ``--version``, else what can be run."""
    from pypto import __version__

    rows = "\n".join(f"  python -m {module:<29} {what}" for module, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m pypto",
        description=f"PyPTO {__version__}: tile kernels for Ascend NPUs, run and timed without a card.",
        epilog=f"commands:\n{rows}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pypto {__version__}")
    parser.parse_args(argv)
    parser.print_help(sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
