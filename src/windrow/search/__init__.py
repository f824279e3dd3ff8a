"""Searching: the facade, its engines and what they give."""

from windrow.search.result import SearchResult
from windrow.search.search import Search
from windrow.search.stats import SearchStats

__all__ = ["Search", "SearchResult", "SearchStats"]
