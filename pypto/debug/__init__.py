"""Finding the pass that broke a program (spec runtime 14.2)."""

from __future__ import annotations

from pypto.debug.pass_validation import validate_pass_ir_codegen_results

__all__ = ["validate_pass_ir_codegen_results"]
