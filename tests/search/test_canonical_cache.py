"""A cache with canonical keys takes a position for its mirror images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from windrow import PredictionCache, Search, SearchConfig, make_game
from windrow.engines import Vectorized
from windrow.evaluators import HashEvaluator, from_function

CASES = [
    ("connect4", {}, ""),
    ("connect4", {"rows": 5, "columns": 6}, "33"),
    ("gomoku", {"size": 7}, "d4"),
    ("othello", {}, "d3"),
    ("tictactoe", {}, ""),
]


class Equivariant:
    """Answers alike for the images of a position: the mean of a hash evaluator's answers over all of them.

    The mean over 2 or 8 images of dyadic numbers is exact, so that searches with and without the cache must agree to
    the last visit.
    """

    def __init__(self, game: Any) -> None:
        self.game, self.inner, self.num_rows = game, HashEvaluator(3).bind(game), 0

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.num_rows += len(observations)
        rows = observations.reshape(len(observations), -1)
        logits, values = np.zeros((len(rows), self.game.num_actions)), np.zeros(len(rows))
        symmetries = self.game.symmetries()
        for symmetry in symmetries:
            image_logits, image_values = self.inner.evaluate(rows[:, symmetry.observation].reshape(observations.shape))
            back = np.empty_like(image_logits)
            back[:, symmetry.actions] = image_logits
            logits, values = logits + back, values + image_values
        return logits / len(symmetries), values / len(symmetries)


@pytest.mark.parametrize("num_leaves", [1, 8])
@pytest.mark.parametrize(("name", "options", "moves"), CASES)
def test_an_equivariant_evaluator_gives_the_same_search(
    name: str, options: dict[str, Any], moves: str, num_leaves: int
) -> None:
    game = make_game(name, **options)
    config = SearchConfig(engine=Vectorized(num_threads=2), num_simulations=250, leaves_per_tree=num_leaves)
    states = [game.state_from_moves(moves)] * 3
    plain, canonical = Equivariant(game), Equivariant(game)
    want = Search(game, from_function(plain, batched=True), config).run(states)
    cache = PredictionCache(1 << 20, canonical=True)
    got = Search(game, from_function(canonical, batched=True), config, cache=cache).run(states)
    for one, other in zip(got, want, strict=True):
        assert one.visits.tolist() == other.visits.tolist(), f"\n{one.state}"
        assert one.prior.tolist() == other.prior.tolist()
    assert canonical.num_rows < plain.num_rows


def test_the_mirror_image_is_not_evaluated() -> None:
    """Connect-4 after 1 and after 7 are mirror images: the second search asks for nothing, and mirrors the first."""
    game = make_game("connect4")
    evaluator = Equivariant(game)
    cache = PredictionCache(1 << 20, canonical=True)
    search = Search(game, from_function(evaluator, batched=True), SearchConfig(num_simulations=0), cache=cache)
    left = search.run(game.state_from_moves("1"))
    assert evaluator.num_rows == 1
    right = search.run(game.state_from_moves("7"))
    assert evaluator.num_rows == 1
    assert right.prior.tolist() == left.prior[::-1].tolist()
    assert right.value == left.value
    assert search.stats is not None
    assert search.stats.cache_hits == 1


def test_images_in_one_batch_keep_their_own_answers() -> None:
    """An evaluator that answers differently for mirror images is asked for both if they are in one batch."""
    game = make_game("connect4")
    states = [game.state_from_moves("1"), game.state_from_moves("7")]
    config = SearchConfig(num_simulations=0, engine="vectorized")
    want = Search(game, HashEvaluator(1), config).run(states)
    got = Search(game, HashEvaluator(1), config, cache=PredictionCache(1 << 20, canonical=True)).run(states)
    assert [result.prior.tolist() for result in got] == [result.prior.tolist() for result in want]
    assert got[0].stats.nn_positions == 2
