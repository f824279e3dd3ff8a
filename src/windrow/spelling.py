"""Suggestions for misspelt names, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 game", "2,000 games", "1 leaf", "4 leaves"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def explain_unknown(word: str, known: Iterable[str], *, what: str) -> str:
    """Return the end of an error message about an unknown `word`: the most similar known name, and all known names.

    Args:
        word: the unknown name.
        known: the known names.
        what: noun for the known names, in the plural.
    """
    names = list(known)
    if not names:
        return f"There are no {what}."
    by_lower = {name.lower(): name for name in names}
    nearest = get_close_matches(word.lower(), by_lower, n=1)
    guess = f"Did you mean {by_lower[nearest[0]]!r}? " if nearest else ""
    return f"{guess}The {what} are {', '.join(names)}."
