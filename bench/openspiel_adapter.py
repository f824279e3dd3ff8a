"""OpenSpiel's own games: simulations per second of windrow through the adapter, and of OpenSpiel's MCTS in Python.

Connect-4 as OpenSpiel plays it, one tree, an evaluator that knows nothing on both sides: equal priors, value 0. windrow
searches `make_game("openspiel:connect_four")` with the sequential engine and writes an observation for every leaf;
OpenSpiel's `MCTSBot` chooses by PUCT too and evaluates without looking. Both search the same positions in turns, and
the ratio is taken within a turn, so that a busy moment of the machine falls on both alike; "others" are the cores that
other processes used meanwhile.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pyspiel
from machine import on_cores, take_quiet
from peer_tree_openspiel import EXPLORATION, make_bot, play_openings
from report import Figure, number, print_table, run_alone

import windrow

GAME = "connect_four"
NUM_POSITIONS = 8
NUM_PLIES = 4
NUM_SIMULATIONS = 16_000
"""Of each program in a turn, in all its searches, so that a turn is long enough to tell how busy the machine is."""
MIN_RATIO = 1.0


def draw_moves(game: Any) -> list[list[int]]:
    """Random openings; none of them ends a game of Connect-4."""
    draw = random.Random(0)
    openings: list[list[int]] = []
    for _ in range(NUM_POSITIONS):
        state = game.new_initial_state()
        for _ in range(NUM_PLIES):
            state.apply_action(draw.choice(state.legal_actions()))
        openings.append(state.history())
    return openings


class Contest:
    """Both programs, ready to search the same positions with the same budget."""

    def __init__(self, openings: list[list[int]], num_simulations: int) -> None:
        self._budget = num_simulations
        game = windrow.make_game(f"openspiel:{GAME}")
        config = windrow.SearchConfig(engine="sequential", num_simulations=num_simulations, c_puct=EXPLORATION)
        self._search = windrow.Search(game, windrow.evaluators.UniformEvaluator(), config)
        self._states = [game.state_from_moves(moves) for moves in openings]
        theirs = pyspiel.load_game(GAME)
        self._bot = make_bot(theirs, "python", num_simulations)
        self._their_states = play_openings(theirs, openings)
        self._num_repeats = max(1, NUM_SIMULATIONS // (num_simulations * len(openings)))

    def take_turns(self) -> tuple[float, float]:
        """Simulations per second of windrow, and of OpenSpiel."""
        return self._rate(self._search_windrow, self._states), self._rate(self._search_openspiel, self._their_states)

    def _rate(self, search: Callable[[Any], int], states: list[Any]) -> float:
        start = perf_counter()
        for _ in range(self._num_repeats):
            for state in states:
                assert search(state) == self._budget
        return self._num_repeats * len(states) * self._budget / (perf_counter() - start)

    def _search_windrow(self, state: Any) -> int:
        self._search.run(state)
        assert self._search.stats is not None
        return self._search.stats.simulations

    def _search_openspiel(self, state: Any) -> int:
        return self._bot.mcts_search(state).explore_count

    def close(self) -> None:
        """Give the memory back."""
        self._search.close()


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    openings = draw_moves(pyspiel.load_game(GAME))
    num_rounds = 2 if is_smoke else 15
    figures: list[Figure] = []
    rows: list[tuple[str, ...]] = []
    with on_cores(1):
        for budget in (64, 400):
            contest = Contest(openings, budget)
            contest.take_turns()  # now both are warm
            turns = take_quiet(contest.take_turns, wanted=num_rounds, max_samples=2 * num_rounds, max_s=60.0)
            contest.close()
            ratios = [ours / theirs for ours, theirs in turns.values]
            best = [max(rates) for rates in zip(*turns.values, strict=True)]
            ratio = statistics.median(ratios)
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            row = (f"{budget} simulations", number(best[0]), number(best[1]), f"{ratio:.2f}", spread, turns.noise)
            rows.append(row)
            figures.append(
                Figure.of(
                    f"OpenSpiel's Connect-4, {budget} simulations, against OpenSpiel's Python MCTS",
                    ratios,
                    unit="x",
                    at_least=MIN_RATIO,
                    note="median of turns",
                    is_unclear=turns.leaves_open(ratios, MIN_RATIO),
                )
            )
            ours = [rate for rate, _ in turns.values]
            figures.append(Figure.of(f"OpenSpiel's Connect-4, {budget} simulations", ours, unit="sims/s"))
    title = f"{GAME} of OpenSpiel, one tree, null evaluator, 1 core: simulations per second, the best turn"
    print_table(title, ("budget", "windrow", "OpenSpiel", "ratio", "in a turn", "others"), rows)
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
