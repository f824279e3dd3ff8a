"""The opening tree of a run: what the newest games played in their first moves, and how that went."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.web.run_data import PlayedGame

_WIDTHS = (10, 5, 4, 3)
"""Moves shown at most in a position, by how deep it is; as many plies are shown."""
_MIN_GAMES = 2
"""A move deeper than the first is shown if so many games played it."""


@dataclass(slots=True)
class MoveCount:
    """A move in a position.

    games: how many games played it.
    score: for the player who moved, in sum: 1 a win, 1/2 a draw.
    """

    games: int = 0
    score: float = 0.0


Moves = dict[int, MoveCount]


def count_moves(game: CoreGame, games: Sequence[PlayedGame]) -> dict[int, Moves]:
    """By position, how often each move was played there in the first plies of a game.

    Positions are told apart by what is on the board, so that a game which began with random moves counts wherever it
    gets to a position of the tree. Those moves themselves were nobody's choice and do not count.
    """
    counts: dict[int, Moves] = {}
    for played in games:
        with suppress(GameError, ValueError):  # a game of other rules: someone has changed the run's settings
            _count_game(game, played, counts)
    return counts


def _count_game(game: CoreGame, played: PlayedGame, counts: dict[int, Moves]) -> None:
    state = game.unpack_start(played.initial)
    for action in played.actions[: len(_WIDTHS)]:
        after = game.apply(state, action)
        count = counts.setdefault(game.hash(state), {}).setdefault(action, MoveCount())
        count.games += 1
        count.score += (played.returns[game.to_play(state)] + 1) / 2
        state = after


def describe_openings(game: CoreGame, games: Sequence[PlayedGame]) -> dict[str, Any] | None:
    """The tree for the page: its `moves`, or in `missing` why there is none yet; None for a game of chance."""
    if game.chance != "none":
        return None
    if not games:
        return {"missing": "There are no games in the run's logs yet."}
    counts, root = count_moves(game, games), game.initial_state()
    if game.hash(root) not in counts:
        return {"missing": "None of the newest games began at the start of the game."}
    return {"num_games": len(games), **_describe_moves(game, counts, root, 0)}


def _describe_moves(game: CoreGame, counts: dict[int, Moves], state: State, ply: int) -> dict[str, Any]:
    """The moves of a position, the most played first, each with what followed; and how many are left out."""
    moves = counts.get(game.hash(state), {})
    total = sum(count.games for count in moves.values())
    ranked = sorted(moves.items(), key=lambda item: (-item[1].games, item[0]))
    shown = [(action, count) for action, count in ranked if ply == 0 or count.games >= _MIN_GAMES][: _WIDTHS[ply]]
    rows: list[dict[str, Any]] = []
    for action, count in shown:
        row: dict[str, Any] = {"name": f"{ply + 1}. {game.move_name(state, action)}", "games": count.games}
        row |= {"share": count.games / total, "score": count.score / count.games}
        if ply + 1 < len(_WIDTHS):
            row |= _describe_moves(game, counts, game.apply(state, action), ply + 1)
        rows.append(row)
    rest = len(moves) - len(shown)
    return {"moves": rows, "rest": [rest, total - sum(count.games for _, count in shown)] if rows and rest else None}
