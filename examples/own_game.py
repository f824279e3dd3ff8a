"""Train a game of your own: rules in one class, a training run in a few lines, and proof that it learned.

    python examples/own_game.py                      half a minute on two cores
    python examples/own_game.py --iterations 20      longer
    windrow check examples/own_game.py:Hexapawn      is the class right?

Hexapawn (Martin Gardner, 1962): chess pawns on a board of three by three. A pawn goes one square forward, or takes one
diagonally forward. Who reaches the far row wins; who cannot move loses. Played well, the second player wins: the
program tries every way in which a first player could go against the one it trained.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import windrow
from windrow import TERMINAL
from windrow.play import make_player, play_match
from windrow.testing import check_game
from windrow.train import TrainConfig, TrainingRun

FILES = "abc"
Pawns = frozenset[int]
"""Squares with a pawn, numbered row by row from player 0's side."""


class Hexapawn:
    """Action `3 * square + 1 + step` moves the pawn on `square` forward by a row, and by `step` (-1, 0, 1) columns."""

    num_players = 2
    num_actions = 27
    observation = (2, 3, 3)

    def initial_state(self) -> Any:
        """The pawns of both players, and who is to move."""
        return (frozenset({0, 1, 2}), frozenset({6, 7, 8})), 0

    def to_play(self, state: Any) -> int:
        """The player to move; the game ends when the other has arrived, or nothing can move."""
        _, player = state
        return TERMINAL if self.has_arrived(state, 1 - player) or not self.moves(state) else player

    def legal_actions(self, state: Any) -> list[int]:
        """Ascending; none when the game is over."""
        return [] if self.to_play(state) == TERMINAL else self.moves(state)

    def apply(self, state: Any, action: int) -> Any:
        """Move a pawn, and take what stands there."""
        pawns, player = state
        start, target = self.squares(action, player)
        own, other = pawns[player] - {start} | {target}, pawns[1 - player] - {target}
        return ((own, other) if player == 0 else (other, own)), 1 - player

    def returns(self, state: Any) -> tuple[int, int]:
        """Whoever is to move has lost: the other has arrived, or there is no move."""
        return (-1, 1) if state[1] == 0 else (1, -1)

    def observe(self, state: Any) -> np.ndarray:
        """[2, 3, 3] own pawns and the other's; player 1 sees the board from its own side."""
        pawns, player = state
        planes = np.zeros((2, 9), np.float32)
        planes[0, list(pawns[player])] = 1
        planes[1, list(pawns[1 - player])] = 1
        planes = planes.reshape(2, 3, 3)
        return planes if player == 0 else planes[:, ::-1].copy()

    # --- Comfort ----------------------------------------------------------------------------------------------

    def render(self, state: Any) -> str:
        """The board, player 1's side on top."""
        (own, other), _ = state
        marks = ["x" if square in own else "o" if square in other else "." for square in range(9)]
        rows = [f"{row + 1} {' '.join(marks[3 * row : 3 * row + 3])}" for row in (2, 1, 0)]
        return "\n".join([*rows, "  " + " ".join(FILES)])

    # --- Rules ------------------------------------------------------------------------------------------------

    def squares(self, action: int, player: int) -> tuple[int, int]:
        """Where a pawn comes from and goes to."""
        square, step = action // 3, action % 3 - 1
        return square, square + (3 if player == 0 else -3) + step

    def moves(self, state: Any) -> list[int]:
        """What the pawns of the player to move can do."""
        pawns, player = state
        found: list[int] = []
        for action in range(27):
            start, target = self.squares(action, player)
            step = action % 3 - 1
            if start in pawns[player] and 0 <= target < 9 and 0 <= start % 3 + step < 3:
                is_possible = target in pawns[1 - player] if step else target not in pawns[0] | pawns[1]
                found += [action] if is_possible else []
        return found

    def has_arrived(self, state: Any, player: int) -> bool:
        """Whether one of a player's pawns stands on the far row."""
        return any(square // 3 == (2 if player == 0 else 0) for square in state[0][player])


def lost_lines(game: Any, player: Any, side: int) -> tuple[int, int]:
    """In how many lines of play `player`, on `side`, loses, and how many there are: every answer is tried."""
    lost = lines = 0
    frontier = [game.initial_state()]
    while frontier:
        over = [state for state in frontier if game.to_play(state) == TERMINAL]
        lines += len(over)
        lost += sum(game.returns(state)[side] < 0 for state in over)
        mine = [state for state in frontier if game.to_play(state) == side]
        theirs = [state for state in frontier if game.to_play(state) == 1 - side]
        chosen = player.choose(mine) if mine else []
        frontier = [game.apply(state, action) for state, action in zip(mine, chosen, strict=True)]
        frontier += [game.apply(state, action) for state in theirs for action in game.legal_actions(state)]
    return lost, lines


def main() -> None:
    """Check the rules, train, and say how good it became."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--games", type=int, default=256, help="in each iteration")
    parser.add_argument("--run", type=Path, help="folder to keep the run in (none: a temporary one)")
    options = parser.parse_args()

    check_game(Hexapawn())  # raises with the moves that show what is wrong

    # The class is named by its file, so that a checkpoint knows what to load; `windrow train` does the same.
    config = TrainConfig.from_dict(
        {
            "game": f"{__file__}:Hexapawn",
            "num_iterations": options.iterations,
            "games_per_iteration": options.games,
            "min_positions": 200,
            "network": {"channels": 32, "blocks": 1},
            "search": {"num_simulations": 16, "root": "gumbel"},
            "selfplay": {"num_slots": 64, "opening_plies": 2},
            "learner": {"batch_size": 128, "learning_rate": 0.005},
        }
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.run or Path(temporary) / "run"
        run = TrainingRun.create(folder, config)
        for report in run.iterations():
            games, loss = report.metrics["games"], report.metrics.get("loss")
            learned = "nothing learned yet" if loss is None else f"loss {loss:.3f}"
            print(f"iteration {report.iteration}: {games} games, {learned}")
        run.close()

        game = windrow.make_game(config.game)
        player = make_player(game, f"{folder}:sims=50")
        print(play_match(game, player, "random", num_games=40, seed=1).table())
        lost, lines = lost_lines(game, player, side=1)
        print(f"as the second player it loses {lost} of the {lines} lines of play that a first player can choose")
        player.close()


if __name__ == "__main__":
    main()
