"""Searching: the facade, its engines and what they give."""

from windrow.search.result import SearchResult
from windrow.search.search import Search
from windrow.search.stats import SearchStats
from windrow.search.tree_picture import draw_tree

__all__ = ["Search", "SearchResult", "SearchStats", "draw_tree"]
