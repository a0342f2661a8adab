"""Chip families, platforms, and what a family's chip is made of."""

from __future__ import annotations

from pypto.backend.platforms import DEFAULT_PLATFORM, PLATFORMS, BackendType, Platform, find_platform, sim_platform_of
from pypto.backend.selection import get_backend_type, is_backend_configured, reset_for_testing, set_backend_type
from pypto.backend.soc import Backend, Backend910B, Backend950, Cluster, Core, Die, Mem, SoC, get_backend_instance

__all__ = [
    "Backend",
    "Backend910B",
    "Backend950",
    "BackendType",
    "Cluster",
    "Core",
    "DEFAULT_PLATFORM",
    "Die",
    "Mem",
    "PLATFORMS",
    "Platform",
    "SoC",
    "find_platform",
    "get_backend_instance",
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
    "sim_platform_of",
]
