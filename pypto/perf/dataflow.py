"""Which lifetime edges of a task graph the data itself implies (``profiling.md`` 5.7, the dataflow edge modes).

A ``creator`` edge keeps the task that owns a buffer alive for a consumer. It says nothing new when every byte of the
buffer reaches the consumer through tasks that update the whole of it in place.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from pypto.perf.task_graph import GraphArgument, GraphEdge, TaskGraph

Pair = tuple[int, int]


def pairs_the_data_implies(graph: TaskGraph) -> set[Pair]:
    """Pairs of tasks all of whose creator edges are proven to be implied by whole in-place updates."""
    creators: dict[Pair, list[GraphEdge]] = defaultdict(list)
    for edge in graph.edges:
        if edge.source == "creator":
            creators[edge.pred, edge.succ].append(edge)
    hops = _hops_by_buffer(graph)
    return {
        pair
        for pair, edges in creators.items()
        if all((buffer := _buffer_of(graph, edge)) is not None and _flows(graph, hops[buffer], edge, buffer)
               for edge in edges)
    }  # fmt: skip


def _buffer_of(graph: TaskGraph, edge: GraphEdge) -> int | None:
    found = graph.buffers.get(edge.tensor_id) if edge.tensor_id is not None else None
    return found[0] if found else None


def _hops_by_buffer(graph: TaskGraph) -> dict[int, dict[int, list[GraphEdge]]]:
    """Edges that carry a buffer, by buffer address and producer; a part of a producer's tile carries nothing whole."""
    hops: dict[int, dict[int, list[GraphEdge]]] = defaultdict(lambda: defaultdict(list))
    for edge in graph.edges:
        buffer = _buffer_of(graph, edge)
        if buffer is not None and (edge.source == "creator" or edge.overlap == "covered"):
            hops[buffer][edge.pred].append(edge)
    return hops


def _flows(graph: TaskGraph, hops: dict[int, list[GraphEdge]], edge: GraphEdge, buffer: int) -> bool:
    """Whether the buffer reaches ``edge.succ`` from ``edge.pred`` through at least one task that updates all of it."""
    seen: set[int] = set()
    todo = [hop.succ for hop in hops.get(edge.pred, ()) if hop.succ != edge.succ]
    while todo:
        task = todo.pop()
        if task in seen or not _updates_whole(graph, task, buffer):
            continue
        seen.add(task)
        for hop in hops.get(task, ()):
            if hop.succ == edge.succ:
                return True
            todo.append(hop.succ)
    return False


def _updates_whole(graph: TaskGraph, task_id: int, buffer: int) -> bool:
    task = graph.tasks.get(task_id)
    return task is not None and any(
        argument.kind == "INOUT" and _covers(graph, argument, buffer) for argument in task.arguments
    )


def _covers(graph: TaskGraph, argument: GraphArgument, buffer: int) -> bool:
    """Whether an argument is the whole buffer without gaps."""
    found = graph.buffers.get(argument.tensor_id) if argument.tensor_id is not None else None
    if found is None or found[0] != buffer or argument.start_offset:
        return False
    dense = [prod(argument.shape[at + 1 :]) for at in range(len(argument.shape))]
    return prod(argument.shape) == found[1] and list(argument.strides) == dense
