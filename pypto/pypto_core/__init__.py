"""Import paths that public scripts use for compiler options (spec runtime 2)."""

from pypto.ir.dtype import DataType
from pypto.pypto_core import passes

__all__ = ["DataType", "passes"]
