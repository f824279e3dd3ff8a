"""The definition of a search, in plain Python: slow, and short enough to be seen to be right.

Every deterministic engine must give exactly the same visits at the same `leaves_per_tree`. The arrays of a node are
over its legal actions in ascending order. All scores are float32, computed in the order of operations written here.
"""

from windrow.reference.node import Node
from windrow.reference.proofs import playable_edges
from windrow.reference.search import ReferenceSearch
from windrow.reference.selection import surest_edge

__all__ = ["Node", "ReferenceSearch", "playable_edges", "surest_edge"]
