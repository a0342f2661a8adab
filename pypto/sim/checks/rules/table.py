"""The compiled form of every rule: a function of the core's state (words.py), made when a program first needs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.entry import source_digest
from pypto.sim.kernels.compilation import Kernel, load_or_compile
from pypto.sim.kernels.progress import Progress
from pypto.sim.native import as_pointer
from pypto.sim.recording import Words

_MODULES: Final[dict[int, str]] = {
    # rule: module and the piece in it; all others are rules of elements
    w.LOAD: "loads.follow_load",
    w.LOAD_ROWS: "loads.follow_load",
    w.STORE: "stores.follow_store",
    w.MATMUL: "product.follow_product",
    w.MOVE: "moves.follow_move",
    w.EXTRACT: "moves.follow_move",
    w.INSERT: "moves.follow_move",
    w.TRANSPOSE: "moves.follow_move",
    w.RESHAPE: "moves.follow_reshape",
    w.FILL_PAD: "moves.follow_fill_pad",
    w.CONCAT: "moves.follow_concat",
    w.WHOLE: "elements.follow_whole",
    w.COMPARE: "predicates.follow_compare",
    w.BITWISE: "predicates.follow_bitwise",
    w.GATHER: "indexed.follow_gather",
    w.GATHER_AXIS: "indexed.follow_gather_axis",
    w.GATHER_BLOCKS: "indexed.follow_gather_blocks",
    w.GATHER_COLUMNS: "records.follow_columns",
    w.GATHER_MATCHES: "records.follow_rows",
    w.SORT: "records.follow_rows",
    w.MERGE: "records.follow_rows",
    w.MERGE_LISTS: "records.follow_rows",
    w.SCATTER: "scatters.follow_scatter",
    w.SCATTER_AXIS: "scatters.follow_scatter",
    w.SCATTER_ROWS: "scatters.follow_scatter",
    w.SCATTER_COLUMNS: "scatters.follow_scatter",
    w.FETCH: "memory_indexed.follow_fetch",
    w.SPREAD: "memory_indexed.follow_spread",
}
_ELEMENTS: Final = "elements.follow_elements"
_INTEGERS: Final = "wrap.follow_integers"
_REDUCTION: Final = "padded.follow_reduction"
_ALSO: Final = {w.GATHER: w.BOUNDS, w.FETCH: w.ORDER, w.SPREAD: w.ORDER}
"""What, besides undefined values, a rule looks for."""
RULES: Final = w.SELECT + 1


@cache
def handlers_of(rules: frozenset[int], asked: int) -> Words:
    """Addresses of the compiled ``rules``, ``int64[RULES]``; 0 for others and where nothing is ``asked`` of a rule."""
    handlers = new_handlers()
    wanted = [r for r in sorted(rules) if r != w.NOTHING and asked & (w.UNDEFINED | _ALSO.get(r, 0))]
    pieces = {rule: _piece(rule, asked) for rule in wanted}
    with Progress(len(set(pieces.values()))) as progress:
        for rule, piece in pieces.items():
            handlers[rule] = _compiled(piece, progress).address
    return handlers


def _piece(rule: int, asked: int) -> str:
    if rule in _MODULES:
        return _MODULES[rule]
    if asked & w.WRAP:
        return _INTEGERS
    return _REDUCTION if rule in (w.ROW_REDUCE, w.COL_REDUCE) else _ELEMENTS


def new_handlers() -> Words:
    """No rules yet: ``int64[RULES]``."""
    return np.zeros(RULES, np.int64)


_COMPILED: Final[dict[str, Any]] = {}


def _compiled(name: str, progress: Progress) -> Any:
    if name not in _COMPILED:
        from importlib import import_module

        module, _, piece = name.partition(".")
        body = _body(getattr(import_module(f"pypto.sim.checks.rules.{module}"), piece))
        kernel = Kernel(f"{piece}.{_digest()}", body)
        _COMPILED[name] = load_or_compile(kernel, lambda: progress.compiling(f"the check {piece}"))
    return _COMPILED[name]


def _body(piece: Any) -> Callable[[Any], int]:
    def body(state: Any) -> int:
        fact = as_pointer(state[w.FACTS] + 8 * w.FACT_WORDS * state[w.INSTRUCTION])
        piece(state, as_pointer(state[w.FRAME] + 8 * op.ARGUMENTS), fact)
        return 0

    return body


@cache
def _digest() -> str:
    """Of all sources that decide what a rule compiles to."""
    here = Path(__file__).parent
    checks = [here.parent / f"{name}.py" for name in ("shadow", "accesses", "cell_log", "boxes", "cells", "words")]
    return source_digest((*checks, *sorted(here.glob("*.py")), *(here.parent.parent / f"{n}.py" for n in _BELOW)))


_BELOW: Final = ("opcodes", "layout", "scalars", "native")
