"""``python -m pypto.sim.validate``: published times beside simulated ones (``docs/validation.md``)."""

from __future__ import annotations


def main() -> int:
    """Run the comparison, which :mod:`pypto.validation` holds: its workloads are programs of the language above."""
    from pypto.validation.command import main as compare

    return compare()


if __name__ == "__main__":
    raise SystemExit(main())
