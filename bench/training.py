"""Three minutes of training on the CPU, from random weights: how strong does a Connect-4 player become?

What `make demo` does, with the shipped config, as figures. Right moves are those that keep the theoretical result, on
the positions of `windrow.play.solved`; the match is played in pairs of games from random openings.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from report import Figure, print_table, run_alone

from windrow import SearchConfig
from windrow.play import SearchPlayer, make_player, play_match, score_player, solved_positions
from windrow.train import TrainConfig, TrainingRun, shipped_config

TRAINING_S = 180.0
SIMULATIONS = 100
NUM_GAMES = 100
YARDSTICK = "rollout:1000"
OPPONENT = "rollout:400"


def right_moves(name: str, player: Any, positions: Any) -> Figure:
    """A share of the solved positions, with the error of their number."""
    found = score_player(player, positions).overall
    note = f"{found.num_positions} positions; one run"
    return Figure(name=f"right moves, {name}", value=found.share, standard_error=found.standard_error, note=note)


def measure(is_smoke: bool) -> list[Figure]:
    """Train, test, print, and return the figures."""
    config = TrainConfig.read(shipped_config("connect4"), {"time_limit_s": 3.0 if is_smoke else TRAINING_S})
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun.create(Path(folder) / "run", config)
        for report in run.iterations():
            print(f"iteration {report.iteration}: {report.metrics.get('total_s', 0.0):.0f} s", flush=True)
        summary = run.summary()
        player = SearchPlayer(
            run.game, run.strategy.evaluator, SearchConfig(num_simulations=SIMULATIONS), name="trained"
        )
        positions = solved_positions(run.game)[:: 20 if is_smoke else 1]
        figures = [
            Figure(name="games played", value=summary["games"], unit="games", note="one run"),
            right_moves(f"{SIMULATIONS} simulations", player, positions),
            right_moves(YARDSTICK, make_player(run.game, YARDSTICK), positions),
        ]
        num_games = 4 if is_smoke else NUM_GAMES
        opponent = make_player(run.game, OPPONENT, seed=1)
        result = play_match(run.game, player, opponent, num_games=num_games, stop_when_sure=False)
        run.close()
    error = math.sqrt(result.score * (1 - result.score) / num_games)
    note = f"{result.wins} won, {result.draws} drawn, {result.losses} lost; one run"
    figures.append(Figure(name=f"score against {OPPONENT}", value=result.score, standard_error=error, note=note))
    rows = [(figure.name, figure.measured, figure.spread, figure.note) for figure in figures]
    print_table("After training", ("figure", "measured", "", "how"), rows)
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
