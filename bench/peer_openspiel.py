"""OpenSpiel's part in peers.py: its MCTS in Python with a torch evaluator that is asked about one position at a time.

Games are searched one after another, so the rate does not depend on their number, and the first few of the task are
enough. One torch thread: at batch 1 a second one makes it slower. Every position of a search is evaluated once, priors
and value together, as OpenSpiel's own AlphaZero evaluator does by a cache.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pyspiel
import torch
from open_spiel.python.algorithms import mcts
from peer_child import Task, read_arguments, serve_answers
from resnet import ResNet, make_resnet

NUM_GAMES = 8
EXPLORATION = 2.0


class TorchEvaluator(mcts.Evaluator):
    """Priors and values from the network, batch 1."""

    def __init__(self, network: ResNet) -> None:
        self._network = network
        self._known: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.num_calls = 0

    def forget(self) -> None:
        """Before a new search."""
        self._known.clear()

    def answer(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Logits [7], and values for both players [2]."""
        key = state.history_str()
        if key not in self._known:
            self.num_calls += 1
            mover = state.current_player()
            planes = np.asarray(state.observation_tensor(), np.float32).reshape(3, 6, 7)
            # The network sees the mover's stones first, and row 0 on top.
            board = np.ascontiguousarray(planes[[mover, 1 - mover], ::-1])
            with torch.inference_mode():
                logits, values = self._network(torch.from_numpy(board).unsqueeze(0))
            value = values.item() if mover == 0 else -values.item()
            self._known[key] = logits[0].numpy(), np.array([value, -value])
        return self._known[key]

    def evaluate(self, state: Any) -> np.ndarray:
        """[2]."""
        return self.answer(state)[1]

    def prior(self, state: Any) -> list[tuple[int, float]]:
        """Legal actions and their probabilities."""
        legal = state.legal_actions()
        logits = self.answer(state)[0][legal]
        weights = np.exp(logits - logits.max())
        return list(zip(legal, weights / weights.sum(), strict=True))


def play(game: Any, bot: mcts.MCTSBot, evaluator: TorchEvaluator, task: Task) -> dict[str, float]:
    """Search the position before every move, game after game."""
    games = task.games[:NUM_GAMES]
    evaluator.num_calls = 0
    start = perf_counter()
    for moves in games:
        state = game.new_initial_state()
        for move in moves:
            evaluator.forget()
            root = bot.mcts_search(state)
            assert root.explore_count == task.num_simulations
            state.apply_action(move)
    seconds = perf_counter() - start
    num_searches = len(games) * len(games[0])
    return {
        "rate": num_searches * task.num_simulations / seconds,
        "calls_per_search": evaluator.num_calls / num_searches,
    }


def main() -> None:
    """Get ready and serve."""
    task, _ = read_arguments()
    torch.set_num_threads(1)
    network = make_resnet((2, 6, 7), 7)
    network.load_state_dict({name: torch.from_numpy(weight) for name, weight in task.weights.items()})
    game = pyspiel.load_game("connect_four")
    evaluator = TorchEvaluator(network)
    bot = mcts.MCTSBot(
        game,
        EXPLORATION,
        task.num_simulations,
        evaluator,
        solve=False,
        random_state=np.random.RandomState(1),
        child_selection_fn=mcts.SearchNode.puct_value,
    )
    answers = []
    for moves in task.games:
        state = game.new_initial_state()
        for move in moves:
            state.apply_action(move)
        logits, values = evaluator.answer(state)
        answers.append((logits, values[state.current_player()]))
    bot.mcts_search(game.new_initial_state())
    serve_answers(
        [logits for logits, _ in answers],
        [value for _, value in answers],
        lambda: play(game, bot, evaluator, task),
        packages=["open_spiel", "torch", "numpy"],
    )


if __name__ == "__main__":
    main()
