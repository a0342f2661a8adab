"""``pypto.backend.pto_backend``: where scripts import the error of code generation from (spec runtime 2)."""

from pypto.ir.errors import PartialCodegenError

__all__ = ["PartialCodegenError"]
