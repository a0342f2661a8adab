"""Asynchronous cache prefetch (spec ops 19): costs time, changes no value."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import BOOL
from pypto.ir.nodes import OpaqueType, ScalarType, TensorType, Type
from pypto.ir.operations import dims
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.row import Lowering
from pypto.ir.operations.table import define

CONTEXT, SESSION, EVENT = (OpaqueType(name) for name in ("PrefetchContext", "PrefetchSession", "PrefetchEvent"))


def _need(handle: OpaqueType, wanted: OpaqueType, name: str) -> None:
    if handle != wanted:
        raise OperandValueError(f"{name} is a {handle.name}; a {wanted.name} is needed")


def _make_context() -> Type:
    return CONTEXT


def _session(ctx: OpaqueType) -> Type:
    _need(ctx, CONTEXT, "ctx")
    return SESSION


def _async_prefetch(src: TensorType, ctx: OpaqueType) -> Type:
    _need(ctx, CONTEXT, "ctx")
    static = all(isinstance(extent, int) for extent in src.shape)
    if not static or any(extent != 1 for extent in src.shape[:-1]):
        raise OperandValueError(
            f"src {dims.listing(src.shape)} must be static with every axis before the last equal to 1; "
            "reshape or slice it first"
        )
    return EVENT


def _wait(event: OpaqueType, session_handle: OpaqueType) -> Type:
    _need(event, EVENT, "event")
    _need(session_handle, SESSION, "session_handle")
    return ScalarType(BOOL)


_ROW: dict[str, Any] = {"kind": "memory", "spec": "19"}
define("prefetch.make_context", _make_context, **_ROW, summary="a context that prefetches are issued in")
define("prefetch.session", _session, **_ROW, summary="the session to wait with")
define(
    "prefetch.async_prefetch",
    _async_prefetch,
    **_ROW,
    lowering=Lowering("prefetch", ("src",)),
    summary="start bringing a tensor into the cache",
)
define("prefetch.wait", _wait, **_ROW, summary="wait for a prefetch; always true")
