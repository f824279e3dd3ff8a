"""Help for whoever mistyped a name, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: "1 game", "2,000 games", "1 leaf", "4 leaves"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def explain_unknown(word: str, known: Iterable[str], *, what: str) -> str:
    """The end of an error message about an unknown `word`: the nearest known name, and all of them.

    Args:
        word: what was written.
        known: what could have been written.
        what: what the known names are, in the plural.
    """
    names = list(known)
    if not names:
        return f"There are no {what}."
    by_lower = {name.lower(): name for name in names}
    nearest = get_close_matches(word.lower(), by_lower, n=1)
    guess = f"Did you mean {by_lower[nearest[0]]!r}? " if nearest else ""
    return f"{guess}The {what} are {', '.join(names)}."
