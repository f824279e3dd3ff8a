"""OpenSpiel's part in peers_tree.py, on one core, one position after another, in two ways.

    python     its MCTS in Python, with an evaluator that looks at nothing
    c++        its MCTS in C++, with one random game as the value of a leaf: it has no evaluator that costs less

Both choose by PUCT and do not solve.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts
from peer_child import Task, measure_rate, read_arguments, serve

EXPLORATION = 2.0
MAX_MEMORY_MB = 1000


class NullEvaluator(mcts.Evaluator):
    """Equal priors, and nobody is ahead."""

    _nobody = np.zeros(2)

    def evaluate(self, state: Any) -> np.ndarray:
        """[2]."""
        return self._nobody

    def prior(self, state: Any) -> list[tuple[int, float]]:
        """Legal actions, all alike."""
        legal = state.legal_actions()
        return [(action, 1.0 / len(legal)) for action in legal]


def make_bot(game: Any, way: str | None, num_simulations: int) -> Any:
    """Of one of the ways."""
    if way == "python":
        return mcts.MCTSBot(
            game,
            EXPLORATION,
            num_simulations,
            NullEvaluator(),
            solve=False,
            random_state=np.random.RandomState(1),
            child_selection_fn=mcts.SearchNode.puct_value,
        )
    evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
    policy = pyspiel.ChildSelectionPolicy.PUCT
    return pyspiel.MCTSBot(game, evaluator, EXPLORATION, num_simulations, MAX_MEMORY_MB, False, 1, False, policy)


def play_openings(game: Any, openings: list[list[int]]) -> list[Any]:
    """The positions after some moves each."""
    positions = []
    for moves in openings:
        state = game.new_initial_state()
        for move in moves:
            state.apply_action(move)
        positions.append(state)
    return positions


def search_all(bot: Any, positions: list[Any], task: Task) -> int:
    """Search all positions; the simulations that were done."""
    for state in positions:
        root = bot.mcts_search(state)
        assert root.explore_count == task.num_simulations, root.explore_count
    return len(positions) * task.num_simulations


def main() -> None:
    """Get ready and serve."""
    task, way = read_arguments()
    game = pyspiel.load_game("connect_four")
    positions = play_openings(game, task.games)
    bot = make_bot(game, way, task.num_simulations)
    once = partial(search_all, bot, positions, task)
    measure_rate(once)
    serve(partial(measure_rate, once), packages=["open_spiel", "numpy"])


if __name__ == "__main__":
    main()
