"""A quick strength test during training: how often the network alone keeps the result of a solved position."""

from __future__ import annotations

from windrow.config import SearchConfig
from windrow.games.core_game import CoreGame
from windrow.games.native import NativeGame
from windrow.play.solved import solved_positions
from windrow.search import Search


class StrengthTest:
    """The network's first choice, without a search, on solved positions.

    Args:
        game: the game, which `is_solved`.
    """

    def __init__(self, game: CoreGame, evaluator: object) -> None:
        self._positions = solved_positions(game)
        self._search = Search(game, evaluator, SearchConfig(num_simulations=0))

    def measure(self) -> dict[str, float]:
        """The share of first choices that keep the theoretical result."""
        results = self._search.run([position.state for position in self._positions])
        kept = [
            position.results[result.best_action] == position.value
            for position, result in zip(self._positions, results, strict=True)
        ]
        return {"solved_policy": sum(kept) / len(kept)}


def is_solved(game: CoreGame) -> bool:
    """Whether there are solved positions of this game."""
    return game == NativeGame("connect4")
