"""The chip family selected for this process (spec runtime 1.1).

``ir.compile`` takes the family from its own arguments and does not consult the selection; it serves harnesses that fix
one family for a whole group of tests.
"""

from __future__ import annotations

from pypto.backend.platforms import BackendType

_selected: BackendType | None = None


def set_backend_type(backend_type: BackendType) -> None:
    """Select ``backend_type``; ``ValueError`` when another family is selected (see :func:`reset_for_testing`)."""
    global _selected
    if not isinstance(backend_type, BackendType):
        raise TypeError(f"set_backend_type expects a BackendType, got {type(backend_type).__name__} {backend_type!r}")
    if _selected not in (None, backend_type):
        raise ValueError(
            f"Backend type already set to {_selected.name}, cannot change it to {backend_type.name}; "
            "call pypto.backend.reset_for_testing() first"
        )
    _selected = backend_type


def get_backend_type() -> BackendType:
    """The selected family; ``RuntimeError`` when none was selected."""
    if _selected is None:
        raise RuntimeError("no backend type is set; call pypto.backend.set_backend_type(BackendType.Ascend910B)")
    return _selected


def is_backend_configured() -> bool:
    """Whether a family was selected."""
    return _selected is not None


def reset_for_testing() -> None:
    """Forget the selection."""
    global _selected
    _selected = None
