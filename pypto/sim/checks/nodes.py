"""The nodes of the order graph as reports name them, and the tasks that are among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from pypto.sim.checks.order_graph import OrderGraph

FEW: Final = 1024
"""Nodes that are kept whether or not they matter any more."""


@dataclass(slots=True)
class Node:
    """A task, or an access of the orchestration (``name`` empty)."""

    name: str
    task: int
    site: int  # instruction of the orchestration
    repeated: int = -1  # the next node of this site


class Nodes:
    """Nodes of one launch by their numbers in ``graph``; those that matter no more can be left out."""

    def __init__(self, graph: OrderGraph) -> None:
        self._graph = graph
        self._nodes: dict[int, Node] = {}
        self._newest: dict[int, Node] = {}  # by site
        self._most = FEW
        self.of_task: dict[int, int] = {}
        """Node of a task, or one that orders as much; none for a task that orders nothing that is kept."""

    def __getitem__(self, number: int) -> Node:
        return self._nodes[number]

    def __contains__(self, number: int) -> bool:
        return number in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def last(self) -> int:
        """Number of the newest node."""
        return self._graph.count - 1

    @property
    def are_many(self) -> bool:
        """Whether it is worth while to look for nodes that matter no more."""
        return len(self._nodes) >= self._most

    def add(self, producers: Iterable[int], node: Node, also_after: int) -> int:
        """A node behind the tasks ``producers`` and, unless it is -1, the node ``also_after``; returns its number."""
        before = [self.of_task[task] for task in producers if task in self.of_task]
        if also_after >= 0:
            before.append(also_after)
        number = self._graph.add(before)
        self._nodes[number] = node
        if node.task >= 0:
            self.of_task[node.task] = number
        if node.site >= 0:
            if node.site in self._newest:
                self._newest[node.site].repeated = number
            self._newest[node.site] = node
        return number

    def postpone(self) -> None:
        """Most nodes matter still: look again when there are twice as many."""
        self._most = 2 * len(self._nodes)

    def keep(
        self, asked: Iterable[int], named: Iterable[int], running: Iterable[int], reported: Collection[int]
    ) -> None:
        """Leave out all but the nodes ``asked`` and ``reported``, and those of the tasks ``running``.

        The order behind the tasks ``named`` stays.
        """
        tasks = self.of_task
        unfinished = {task: tasks[task] for task in running}
        asked = {node for node in asked if node >= 0}.union(unfinished.values())
        waited_for = {task: tasks[task] for task in named if task in tasks}
        stands_for = self._graph.keep(asked, waited_for.values())
        orders = {task: stands_for[node] for task, node in waited_for.items() if node in stands_for}
        self.of_task = orders | unfinished
        self._nodes = {number: self._nodes[number] for number in sorted(asked.union(reported)) if number in self._nodes}
        self._most = FEW + max(len(self._nodes), self._graph.size) + len(self._nodes)
