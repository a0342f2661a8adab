"""The table holds every published name under its published signature."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto.ir.nodes import Call, NoneType
from pypto.ir.operations import calls, define, find, register, row, rows, samples, table
from pypto.ir.operations.coverage import CONSTRUCTS, read_published
from pypto.ir.operations.emitter import renamed
from pypto.ir.operations.unified import UNIFIED

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = read_published(ROOT / "docs" / "operations.tsv")
NAMESPACE = {"pl": "pl"} | {f"pl.{name}": name for name in calls.NAMESPACES}
OWN_SIGNATURES = {
    "pl.tensor.reshape": "(tensor, shape, valid_shape=None)",
    "pl.tensor.scatter_update": "(input, dim, index, src)",
    "pl.tile.scatter_update": "(input, dim, index, src)",
    "pl.tile.aiv_shard": "(x, *, split=None)",
    "pl.tile.aic_gather": "(x, *, split=None)",
    "pl.reserve_buffer": "(*, name, size, base=-1)",
    "pl.system.reserve_buffer": "(*, name, size, base=-1)",
}
"""Where ours says more than the published one: what the parser fills in, or ``*args`` spelled out."""


def published(entries):
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.spelling)


def without_span(signature: str) -> str:
    parts = [part for part in signature.strip("()").split(", ") if part and part != "span=None"]
    if parts and parts[-1] == "*":
        parts.pop()
    return f"({', '.join(parts)})"


@published([entry for entry in PUBLISHED if entry.name not in CONSTRUCTS])
def test_a_published_name_is_there_with_its_signature(entry):
    namespace = NAMESPACE[entry.namespace]
    assert calls.exists(namespace, entry.name)
    if namespace == "pl" and entry.name in UNIFIED:
        assert [name for name, _ in UNIFIED[entry.name].parameters] == unified_names(entry)
        return
    found = row(f"{namespace}.{entry.name}" if namespace != "pl" else table.promoted()[entry.name])
    assert found.signature() == OWN_SIGNATURES.get(entry.spelling, without_span(entry.signature))


def unified_names(entry):
    own = {name: ["x", "split"] for name in ("aiv_shard", "aic_gather")}
    own["scatter_update"] = ["input", "dim", "index", "src"]
    written = [part.partition("=")[0] for part in without_span(entry.signature).strip("()").split(", ")]
    return own.get(entry.name, [name for name in written if name != "*"])


@published([entry for entry in PUBLISHED if entry.name not in CONSTRUCTS])
def test_a_published_name_types_its_smallest_call(entry):
    namespace = NAMESPACE[entry.namespace]
    for level in samples.levels(namespace, entry.name):
        made = samples.example(namespace, entry.name, level)
        if isinstance(made, Call) and not isinstance(made.type, NoneType):
            assert find(made.op) is not None


def test_tensor_forms_name_rows_that_take_their_arguments():
    for entry in rows():
        if isinstance(entry.tile_form, str):
            target = row(entry.tile_form)
            made = samples.example("tensor", entry.name.partition(".")[2], "tensor")
            needed = {p.name for p in target.parameters if p.required}
            assert needed <= set(renamed(entry, target, made)), entry.name
        if entry.scalar_form is not None:
            assert row(entry.scalar_form).parameters[0].name == entry.parameters[0].name


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="tile.add is already registered"):
        register(row("tile.add"))
    with pytest.raises(ValueError, match="tile.arange is already registered"):
        define("tile.triangle", lambda: NoneType(), aliases=("arange",), kind="memory", summary="x", spec="x")


@published([entry for entry in PUBLISHED if entry.name not in CONSTRUCTS])
def test_binding_the_stored_arguments_again_changes_nothing(entry):
    """A printed call parses back to itself, and a pass may type a call anew."""
    namespace = NAMESPACE[entry.namespace]
    for level in samples.levels(namespace, entry.name):
        made = samples.example(namespace, entry.name, level)
        if isinstance(made, Call):
            assert calls.call(row(made.op), made.arguments) == made


def test_another_package_can_add_a_namespace(monkeypatch):
    def rule(count: int = 1) -> NoneType:
        return NoneType()

    for registry in ("_ROWS", "_ALIASES"):
        monkeypatch.setattr(table, registry, dict(getattr(table, registry)))
    define("pld.probe.beep", rule, kind="system", summary="beeps", spec="none")
    made = calls.build("pld.probe", "beep", [], {"count": 3})
    assert isinstance(made, Call) and made.arguments == {"count": 3}
    with pytest.raises(TypeError, match="pld.probe.beep: count needs an integer, got 'x'"):
        calls.build("pld.probe", "beep", [], {"count": "x"})
