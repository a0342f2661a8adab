"""A program after placement to the texts of a build directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType, SplitMode
from pypto.ir.errors import CompileError, PartialCodegenError
from pypto.ir.lowering.cores import Core, separate
from pypto.ir.lowering.instructions import Kernel
from pypto.ir.lowering.kernel import KernelLowering
from pypto.ir.lowering.memory import Space, plan
from pypto.ir.lowering.orchestration import OrchestrationLowering
from pypto.ir.lowering.planners import DEFAULT_PLANNER, Planner
from pypto.ir.lowering.scalars import identifier
from pypto.ir.lowering.text import kernel_text

KERNEL_TYPES = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
SPACE_NAMES = ("vec", "mat", "left", "right", "acc", "bias", "leftscale", "rightscale")


@dataclass
class Unit:
    """One kernel of the build: its text and its place in the memory of its core."""

    name: str
    core: str
    text: str
    kernel: Kernel

    @property
    def path(self) -> str:
        """Its file in the build directory."""
        return f"kernels/{self.core}/{self.name}.pto"


@dataclass
class Build:
    """Everything a build directory holds for one orchestration."""

    orchestration: str
    orchestration_text: str
    planner: Planner = DEFAULT_PLANNER
    units: list[Unit] = field(default_factory=list)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    external: list[ir.Function] = field(default_factory=list)


def spaces_of(chip: Any) -> dict[str, Space]:
    """Capacities and alignments of the memory spaces of ``chip``."""
    titles = {"leftscale": "LeftScale", "rightscale": "RightScale"}
    found = {}
    for name in SPACE_NAMES:
        try:
            space = chip.space(name)
        except (KeyError, ValueError):
            found[name] = Space(titles.get(name, name.title()), 0, 32)
            continue
        found[name] = Space(titles.get(name, name.title()), space.capacity_bytes, space.alignment_bytes)
    return found


def build(program: ir.Program, entry: ir.Function, chip: Any, planner: Planner = DEFAULT_PLANNER) -> Build:
    """Texts of ``entry`` and of every kernel it reaches."""
    reached = _reached(program, entry)
    clusters = int(chip.cores.clusters.value)
    result = Build(identifier(entry.name), OrchestrationLowering(entry, program.functions, clusters).run(), planner)
    spaces = spaces_of(chip)
    failures: dict[str, CompileError] = {}
    for function in reached:
        if function.attrs.get("external") or "external_source" in function.attrs:
            result.external.append(function)
        elif function.type in KERNEL_TYPES:
            try:
                _add_kernel(result, function, spaces, clusters)
            except CompileError as error:
                failures[function.name] = error
        elif function.type == FunctionType.Group:
            _add_group(result, function, program)
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise PartialCodegenError(failures, {unit.path: unit.text for unit in result.units})
    return result


def fitting(chip: Any, planner: Planner = DEFAULT_PLANNER) -> Callable[[ir.Function], bool]:
    """Whether the buffers of a placed kernel fit the memories of a core of ``chip``."""
    spaces, clusters = spaces_of(chip), int(chip.cores.clusters.value)

    def fits(function: ir.Function) -> bool:
        try:
            _add_kernel(Build("", "", planner), function, spaces, clusters)
        except CompileError:
            return False
        return True

    return fits


_SIDES: Final[dict[FunctionType, Core]] = {FunctionType.AIC: "aic", FunctionType.AIV: "aiv"}


def _add_kernel(result: Build, function: ir.Function, spaces: dict[str, Space], clusters: int) -> None:
    kernel = KernelLowering(function, clusters).run()
    stated = _SIDES.get(function.type)
    members = separate(kernel, int(function.attrs.get("slot_num", 0)), stated)
    lanes = 2 if _uses_lanes(function) else 1
    if lanes == 2 and len(members) == 1 and members[0].core == "aiv":
        members[0].name = f"{kernel.name}_aiv"
        result.groups[identifier(function.name)] = {"aic": None, "aiv": members[0].name, "lanes": 2}
    for member in members:
        plan(member, spaces, function.span, result.planner)
        result.units.append(Unit(member.name, member.core, kernel_text(member), member))
    if len(members) == 2:
        result.groups[kernel.name] = {"aic": members[0].name, "aiv": members[1].name, "lanes": lanes}


def _uses_lanes(function: ir.Function) -> bool:
    """True when both vector cores of a cluster run the kernel (spec language 5.5)."""
    from pypto.ir.walk import has_lane_region

    return bool(function.attrs.get("dual_aiv_dispatch")) or has_lane_region(function.body)


def _add_group(result: Build, function: ir.Function, program: ir.Program) -> None:
    """An author-written Group: the AIC and AIV functions it calls (spec language 3.1)."""
    from pypto.ir.walk import expressions_of

    members = [e.callee for s in function.body for e in expressions_of(s) if isinstance(e, ir.FunctionCall)]
    kinds = {program.functions[m].type: m for m in members if m in program.functions}
    aic, aiv = kinds.get(FunctionType.AIC), kinds.get(FunctionType.AIV)
    if aic is None and aiv is None:
        raise CompileError(f"group {function.name!r} calls no AIC or AIV function", function.span)
    called = [function, *(program.functions[m] for m in (aic, aiv) if m)]
    both = members.count(aiv or "") == 2 or any(map(_asks_for_both_lanes, called))
    result.groups[identifier(function.name)] = {
        "aic": identifier(aic) if aic else None,
        "aiv": identifier(aiv) if aiv else None,
        "lanes": 2 if both else 1,
    }


def _asks_for_both_lanes(function: ir.Function) -> bool:
    """A split of the function or of one of its transfers hands every vector core its part (spec ops 17)."""
    from pypto.ir.walk import expressions_of

    if function.attrs.get("dual_aiv_dispatch") or function.attrs.get("split", SplitMode.NONE) != SplitMode.NONE:
        return True
    calls = (e for s in function.body for e in expressions_of(s) if isinstance(e, ir.Call))
    return any(_is_transfer(c) and c.arguments.get("split") for c in calls)


def _is_transfer(call: ir.Call) -> bool:
    return call.op.rpartition(".")[2].startswith(("tpush_to_", "tpop_from_"))


def _reached(program: ir.Program, entry: ir.Function) -> list[ir.Function]:
    """Functions ``entry`` launches, directly or through groups, in program order."""
    from pypto.ir.walk import expressions_of

    names: list[str] = []
    queue = [entry]
    while queue:
        function = queue.pop()
        for stmt in function.body:
            for expr in expressions_of(stmt):
                if isinstance(expr, ir.FunctionCall) and expr.callee in program.functions and expr.callee not in names:
                    names.append(expr.callee)
                    queue.append(program.functions[expr.callee])
    return [f for n, f in program.functions.items() if n in names]
