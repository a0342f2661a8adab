"""Import path of ``compile`` (spec runtime 2); the module itself is callable, as ``pypto.ir.compile`` names both."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pypto.ir.compilation import compile  # noqa: A004 - the public name

__all__ = ["compile"]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return compile(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
