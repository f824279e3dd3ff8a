"""What is wrong with a game of the checker's tests."""

from __future__ import annotations

from collections.abc import Callable


class Defects(dict[type, tuple[str, str]]):
    """Games that are wrong in one way each; what the checker must find in them: the kind of fault, and the method."""

    def __call__(self, kind: str, method: str) -> Callable[[type], type]:
        """Marks a class as such a game."""

        def mark(game: type) -> type:
            self[game] = (kind, method)
            return game

        return mark
