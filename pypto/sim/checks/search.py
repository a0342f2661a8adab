"""Search for a path in the order graph of a launch.

The graph keeps, per node, the nodes directly before it; they have lower numbers. A search marks the ancestors of one
node from its own number down to a limit, and goes on from there when it is asked for a lower one; so all questions
about one node together look at every edge once.
"""

from __future__ import annotations

from typing import Final

from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import load_word, store_word

# words of a search
G_STARTS: Final = 0  # address of int64[nodes + 1]: where the edges of a node start
G_EDGES: Final = 1  # address of int64: nodes directly before
G_MARKS: Final = 2  # address of int64[nodes]: number of the search that has found the node
G_PENDING: Final = 3  # address of int64[nodes]: nodes that were found and not left yet
G_COUNT: Final = 4  # of them
G_NODE: Final = 5  # whose ancestors are marked
G_LIMIT: Final = 6  # all its ancestors from here on are
G_NUMBER: Final = 7  # of the search
SEARCH_WORDS: Final = 8


@kernel_code
def _leave(search, node):
    """Find the nodes directly before ``node``."""
    for k in range(load_word(search[G_STARTS] + 8 * node), load_word(search[G_STARTS] + 8 * (node + 1))):
        other = load_word(search[G_EDGES] + 8 * k)
        if load_word(search[G_MARKS] + 8 * other) != search[G_NUMBER]:
            store_word(search[G_MARKS] + 8 * other, search[G_NUMBER])
            store_word(search[G_PENDING] + 8 * search[G_COUNT], other)
            search[G_COUNT] += 1


@kernel_code
def reaches(search, first, second):
    """Whether a path leads from node ``first`` to ``second``, which has a higher number."""
    if search[G_NODE] != second:
        search[G_NODE], search[G_LIMIT], search[G_COUNT] = second, second, 0
        search[G_NUMBER] += 1
        _leave(search, second)
    if load_word(search[G_MARKS] + 8 * first) == search[G_NUMBER]:
        return True
    if first >= search[G_LIMIT]:
        return False
    search[G_LIMIT] = first if search[G_LIMIT] == second else first // 2
    k = 0
    while k < search[G_COUNT]:
        node = load_word(search[G_PENDING] + 8 * k)
        if node > search[G_LIMIT]:
            search[G_COUNT] -= 1
            store_word(search[G_PENDING] + 8 * k, load_word(search[G_PENDING] + 8 * search[G_COUNT]))
            _leave(search, node)
        else:
            k += 1
    return load_word(search[G_MARKS] + 8 * first) == search[G_NUMBER]
