"""The opening tree of a run: what the newest games played in their first moves, and how that went."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.train.report_data import PlayedGame
from windrow.train.report_html import Html, tag

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


def draw_openings(game: CoreGame, games: Sequence[PlayedGame]) -> Html:
    """The section of the page."""
    root = game.initial_state()
    if not games:
        return tag("p", "There are no games in the run's logs yet.", class_="missing")
    if game.chance != "none":
        return tag("p", "In a game of chance openings are not chosen alone.", class_="missing")
    counts = count_moves(game, games)
    if game.hash(root) not in counts:
        return tag("p", "None of the newest games began at the start of the game.", class_="missing")
    head = tag(
        "div",
        *(tag("span", name) for name in ("move", "share", "games", "score")),
        class_="row head",
        aria_hidden="true",
    )
    return tag("div", head, _draw_moves(game, counts, root, 0, is_main=True), class_="tree")


def _draw_moves(game: CoreGame, counts: dict[int, Moves], state: State, ply: int, *, is_main: bool) -> list[Html]:
    """The moves of a position, the most played first, each with what followed."""
    moves = counts.get(game.hash(state), {})
    total = sum(count.games for count in moves.values())
    ranked = sorted(moves.items(), key=lambda item: (-item[1].games, item[0]))
    shown = [(action, count) for action, count in ranked if ply == 0 or count.games >= _MIN_GAMES][: _WIDTHS[ply]]
    drawn: list[Html] = []
    for rank, (action, count) in enumerate(shown):
        row = _draw_row(f"{ply + 1}. {game.action_name(action)}", count, total)
        is_main_move = is_main and rank == 0
        children = list[Html]()
        if ply + 1 < len(_WIDTHS):
            children = _draw_moves(game, counts, game.apply(state, action), ply + 1, is_main=is_main_move)
        if children:
            drawn.append(tag("details", tag("summary", row), tag("div", children, class_="below"), open=is_main_move))
        else:
            drawn.append(tag("div", row, class_="leaf"))
    if drawn and (rest := len(moves) - len(shown)):
        left = total - sum(count.games for _, count in shown)
        text = f"{rest} other {_plural(rest, 'move')} in {left} {_plural(left, 'game')}"
        drawn.append(tag("div", text, class_="leaf rest"))
    return drawn


def _draw_row(name: str, count: MoveCount, total: int) -> Html:
    share, score = count.games / total, count.score / count.games
    return tag(
        "div",
        tag("b", name),
        tag("span", tag("i", style=f"width:{share:.1%}"), class_="bar", aria_hidden="true"),
        tag("span", f"{count.games:,}", tag("small", f" · {share:.0%}"), class_="number"),
        tag("span", f"{score:.0%}", class_="number", title="score of the player who moves"),
        class_="row",
    )


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
