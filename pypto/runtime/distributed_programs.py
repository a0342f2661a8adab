"""A distributed program, loaded: its driver, its chip programs, its sub-workers (spec distributed 1.10, 1.11)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.runtime.arguments import Slot, make_slot
from pypto.runtime.callable import ChipCallable, assemble
from pypto.runtime.text_signature import text_signature

if TYPE_CHECKING:
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, SubWorkerSource

DRIVER = "orchestration/host_orch.py"


@dataclass(frozen=True)
class ChipTask:
    """One chip program: ``number`` among all of the worker, ``in_turns``: adds to peers' memory."""

    name: str
    number: int
    callable: ChipCallable
    slots: tuple[Slot, ...]
    in_turns: bool
    stand_ins: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class SubWorker:
    """One Python sub-worker; ``is_callback``: takes one indexable argument instead of tensors."""

    name: str
    function: Callable[..., Any]
    is_callback: bool


class HostProgram:
    """One program of a worker; without ``values`` its chip programs only report what they would do."""

    def __init__(self, compiled: DistributedCompiledProgram, index: int, first_task: int, values: bool = True):
        self.compiled, self.index = compiled, index
        self.slots = tuple(make_slot(i, p) for i, p in enumerate(compiled.param_infos))
        self.entry = _driver(Path(compiled.output_dir) / DRIVER)
        self.tasks: dict[str, ChipTask] = {}
        for number, name in enumerate(compiled.chip_tasks, first_task):
            found = assemble(Path(compiled.output_dir) / "next_levels" / name, compiled.platform)
            if not values:
                found = _outlined(found)
            slots, in_turns = text_signature(found).slots, _adds_remotely(found)
            self.tasks[name] = ChipTask(name, number, found, slots, in_turns, dict(compiled._stand_ins))

    @property
    def runtime_name(self) -> str:
        """The task runtime its artifacts name."""
        return next((t.callable.runtime_name for t in self.tasks.values()), self.compiled.distributed_config.runtime)

    def chip_task(self, name: str) -> ChipTask:
        """The chip program called ``name``."""
        if name not in self.tasks:
            raise ValueError(
                f"{self.compiled}: the driver dispatches {name!r}; "
                f"there are {', '.join(self.tasks) or 'no chip programs'}"
            )
        return self.tasks[name]

    def sub_directions(self, name: str) -> list[str]:
        """Direction of every parameter of a sub-worker."""
        program = self.compiled.program
        function = None if program is None else program.functions.get(name)
        if function is None:
            source = next(s for s in self.compiled.sub_workers if s.name == name)
            return directions_in(source)
        return [p.direction.name for p in function.params]


def directions_in(source: SubWorkerSource) -> list[str]:
    """Directions as the text of a sub-worker's signature states them."""
    tree = _definition(source)
    found = []
    for argument in tree.args.args:
        text = "" if argument.annotation is None else ast.unparse(argument.annotation)
        found.append("InOut" if ".InOut[" in text else "Out" if ".Out[" in text else "In")
    return found


def _definition(source: SubWorkerSource) -> ast.FunctionDef:
    import textwrap

    tree = ast.parse(textwrap.dedent(source.text)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise ValueError(f"sub-worker {source.name!r}: its text is not a function")
    return tree


def _outlined(found: ChipCallable) -> ChipCallable:
    from pypto.sim.outline import outlined

    return replace(found, program=outlined(found.program))


def _adds_remotely(found: ChipCallable) -> bool:
    for program in found.program.kernels.values():
        record = program.record
        for pc, name in enumerate(record.mnemonic):
            if record.mnemonics[name] == "tremote_store" and record.attributes[pc].get("atomic"):
                return True
    return False


def _driver(path: Path) -> Callable[..., Any]:
    """The entry of a generated driver, which is marked by an attribute."""
    names: dict[str, Any] = {"__name__": "host_orch", "__file__": str(path)}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    except SyntaxError as e:
        raise ValueError(f"{path}:{e.lineno}: damaged ({e.msg}); compile the program again") from e
    entry = next((v for v in names.values() if getattr(v, "_pypto_distributed_entry", False)), None)
    if entry is None:
        raise ValueError(f"{path} has no host entry; compile the program again")
    return entry


# --- sub-workers ------------------------------------------------------------------------------------------------------


def bind_sub_workers(programs: Sequence[HostProgram], callbacks: Mapping[str, Any]) -> dict[str, SubWorker]:
    """The sub-workers of all programs with ``callbacks`` in place of their bodies."""
    sources = {s.name: s for p in programs for s in p.compiled.sub_workers}
    missing = sorted(n for n, s in sources.items() if s.required and n not in callbacks)
    if missing:
        raise ValueError(f"runtime-bound callbacks {missing} must be supplied via callbacks={{name: function}}")
    unknown = sorted(n for n in callbacks if n not in sources)
    if unknown:
        raise ValueError(
            f"callbacks {unknown} are not sub-workers of any prepared program; there are {sorted(sources) or 'none'}"
        )
    for name, function in callbacks.items():
        _check_callback(name, function)
    bound = {n: SubWorker(n, f, True) for n, f in callbacks.items()}
    for name, source in sources.items():
        if name not in bound:
            bound[name] = SubWorker(name, source.function or _from_text(source), False)
    return bound


def _check_callback(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"callback {name!r} is not callable: {function!r}")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    if not positional or len(required) > 1 or any(p.kind is p.KEYWORD_ONLY for p in required):
        raise TypeError(f"callback {name!r} must accept a single positional argument")


def _from_text(source: SubWorkerSource) -> Callable[..., Any]:
    """A sub-worker's body from its captured text."""
    import torch

    tree = _definition(source)
    tree.decorator_list, tree.returns = [], None
    for argument in tree.args.args:
        argument.annotation = None
    names: dict[str, Any] = {"torch": torch}
    exec(compile(ast.Module([tree], []), f"<sub-worker {source.name}>", "exec"), names)
    return names[source.name]
