"""Placement: tensor-level code of a kernel becomes loads, tile operations and stores (docs/compiler.md)."""

from pypto.ir.passes.place.kernel import place

__all__ = ["place"]
