"""A quick strength test during training: how often the network alone keeps the result of a solved position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.config import SearchConfig
from windrow.games.core_game import CoreGame
from windrow.games.native import NativeGame
from windrow.search import Search

if TYPE_CHECKING:
    from windrow.play.solved import SolvedPosition


class StrengthTest:
    """The network's first choice, without a search, on solved positions.

    Args:
        game: the game; `positions_for` says whether it has solved positions.
        evaluator: the evaluator to test.
    """

    def __init__(self, game: CoreGame, evaluator: object, positions: list[SolvedPosition]) -> None:
        self._positions = positions
        self._search = Search(game, evaluator, SearchConfig(num_simulations=0))

    def measure(self) -> dict[str, float]:
        """The share of first choices that keep the theoretical result."""
        results = self._search.run([position.state for position in self._positions])
        kept = [
            position.results[result.best_action] == position.value
            for position, result in zip(self._positions, results, strict=True)
        ]
        return {"solved_policy": sum(kept) / len(kept)}


def make_strength_test(game: CoreGame, evaluator: object) -> StrengthTest | None:
    """The test for this game; None if the game has none."""
    if game.name != "connect4" or dict(game.options) != dict(NativeGame("connect4").options):
        return None
    from windrow.play.solved import solved_positions

    return StrengthTest(game, evaluator, solved_positions(game))
