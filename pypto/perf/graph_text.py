"""A task graph as text: summary, index, fan-in and fan-out, reduced edges (``profiling.md`` 5.7)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pypto.perf.dataflow import pairs_the_data_implies
from pypto.perf.task_graph import TaskGraph
from pypto.perf.task_id import local_of, ring_of

EdgeMode = Literal["full", "reduced", "omitted", "reduced_dataflow", "omitted_dataflow"]


def graph_text(
    graph: TaskGraph, source: str, *, mode: EdgeMode = "full", sidecar: bool = False, named: bool = False
) -> str:
    """The text view.

    Args:
        mode: ``reduced`` leaves out edges that a longer path implies (lifetime edges stay), ``omitted`` lists those;
            the ``_dataflow`` modes also drop a lifetime edge whose whole buffer provably flows through other tasks.
        sidecar: whether swimlane records lie beside the graph.
        named: whether kernel names are known.
    """
    pairs = edges_shown(graph, mode)
    lines = ["SUMMARY", f"source: {source}", f"tasks: {len(graph.all_ids)}", f"unique_task_edges: {len(graph.pairs)}"]
    lines += [f"annotated_edges: {len(graph.edges)}", f"tensors: {graph.tensors}"]
    lines += [f"perf_sidecar: {_yes(sidecar)}", f"func_name_map: {_yes(named)}", ""]
    if mode != "full":
        title = "REDUCED EDGES" if mode.startswith("reduced") else "OMITTED EDGES"
        return "\n".join([*lines, title, *(f"  - {_id(graph, a)} -> {_id(graph, b)}" for a, b in pairs), ""])
    lines.append("TASK INDEX")
    lines += [_index_line(graph, task) for task in graph.all_ids]
    for task in graph.all_ids:
        preds, succs = graph.preds.get(task, []), graph.succs.get(task, [])
        lines += ["", f"TASK {_id(graph, task)}", f"FANIN {len(preds)}"]
        lines += [f"  <- {_id(graph, pred)}" for pred in preds]
        lines += [f"FANOUT {len(succs)}", *(f"  -> {_id(graph, succ)}" for succ in succs)]
    return "\n".join([*lines, ""])


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _id(graph: TaskGraph, task_id: int) -> str:
    if any(ring_of(task) for task in graph.all_ids[-1:]):
        return f"({ring_of(task_id)}, {local_of(task_id)})"
    return str(local_of(task_id))


def _index_line(graph: TaskGraph, task_id: int) -> str:
    task = graph.tasks.get(task_id)
    kind = "alloc" if task is None else "dummy" if task.is_dummy else "submit"
    kernels = "unknown" if task is None else "none" if task.is_dummy else f"[{','.join(map(str, task.kernel_ids))}]"
    blocks = f" SPMD block num = {task.block_num}" if task and task.block_num > 1 else ""
    degrees = f"fanin={len(graph.preds.get(task_id, ()))} fanout={len(graph.succs.get(task_id, ()))}"
    return f"TASK {_id(graph, task_id)} kind={kind} func_id={kernels}{blocks} {degrees}"


def edges_shown(graph: TaskGraph, mode: EdgeMode) -> list[tuple[int, int]]:
    """Edges of a mode: all, those a transitive reduction keeps, or those it drops."""
    if mode == "full":
        return graph.pairs
    lifetime = {(edge.pred, edge.succ) for edge in graph.edges if edge.source == "creator"}
    if mode.endswith("_dataflow"):
        lifetime -= pairs_the_data_implies(graph)
    implied = [pair for pair in graph.pairs if pair not in lifetime and _implied(graph, *pair)]
    if mode.startswith("omitted"):
        return implied
    dropped = set(implied)
    return [pair for pair in graph.pairs if pair not in dropped]


def _implied(graph: TaskGraph, pred: int, succ: int) -> bool:
    """Whether a path of two or more edges leads from ``pred`` to ``succ``."""
    seen: set[int] = set()
    todo = [task for task in graph.succs.get(pred, ()) if task != succ]
    while todo:
        task = todo.pop()
        if task == succ:
            return True
        if task not in seen:
            seen.add(task)
            todo += graph.succs.get(task, ())
    return False


def graph_dot(graph: TaskGraph, *, mode: EdgeMode = "full", direction: str = "LR") -> str:
    """The graph in Graphviz's language."""
    lines = ["digraph deps {", f"  rankdir={direction};", "  node [shape=box];"]
    lines += [f'  "{task}" [label="{_id(graph, task)}"];' for task in graph.all_ids]
    lines += [f'  "{pred}" -> "{succ}";' for pred, succ in edges_shown(graph, mode)]
    return "\n".join([*lines, "}", ""])


def default_output(source: Path, mode: EdgeMode, suffix: str) -> Path:
    """``deps_viewer[_<mode>]`` beside the input."""
    return source.with_name(f"deps_viewer{'' if mode == 'full' else '_' + mode}{suffix}")
