"""``pl.jit``: kernels specialised to their arguments (spec language 3.2 to 3.5)."""

from pypto.jit.decorator import JITFunction, jit

__all__ = ["JITFunction", "jit"]
