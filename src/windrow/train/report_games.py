"""Some of the newest games of a run, move by move."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.train.report_boards import Board, draw_board, draw_grid, draw_text, read_board
from windrow.train.report_charts import draw_curve
from windrow.train.report_data import PlayedGame
from windrow.train.report_html import Html, join, tag

_NUM_NEWEST = 256
"""Games that the samples are chosen from."""
_MAX_BOARDS = 64
"""Positions drawn of one game; a longer one skips some."""
_PLAYERS = ("x", "o")


def choose_games(games: Sequence[PlayedGame]) -> dict[str, PlayedGame]:
    """The shortest, the longest, a drawn and a random one of the newest games, by what they are; none of them twice."""
    left = [game for game in games[:_NUM_NEWEST] if game.actions]
    # A generator of its own, so that the same run gives the same page.
    dice = random.Random(left[0].iteration if left else 0)
    chosen: dict[str, PlayedGame] = {}

    def take(label: str, game: PlayedGame) -> None:
        chosen[label] = game
        left.remove(game)

    if left:
        take("Shortest game", min(left, key=_length))
    if left:
        take("Longest game", max(left, key=_length))
    if drawn := [game for game in left if not any(game.returns)]:
        take("Drawn game", dice.choice(drawn))
    if left:
        take("Random game", dice.choice(left))
    return chosen


def draw_games(game: CoreGame, games: Sequence[PlayedGame]) -> Html:
    """The section of the page."""
    chosen = choose_games(games)
    if not chosen:
        return tag("p", "There are no games in the run's logs yet.", class_="missing")
    board = read_board(game.render(game.initial_state()))
    drawn = [
        _draw_game(game, label, played, is_open=index == 0) for index, (label, played) in enumerate(chosen.items())
    ]
    return join(draw_grid(game.name, board) if board else None, drawn)


def _draw_game(game: CoreGame, label: str, played: PlayedGame, *, is_open: bool) -> Html:
    try:
        states = _replay(game, played)
    except (GameError, ValueError, IndexError) as error:
        reason = str(error).partition("\n")[0]
        text = f"{label}: game {played.number} does not fit the game in the run's settings: {reason}"
        return tag("p", text, class_="missing")
    players = [game.to_play(state) for state in states]
    for_first = [value if player == 0 else -value for value, player in zip(played.values, players, strict=False)]
    if game.num_values > 1:  # what is good for one says nothing of the others: the curve is of player 0's moves alone
        for_first = [value for value, player in zip(played.values, players, strict=False) if player == 0]
    num_moves = len(played.actions)
    facts = (
        f"number {played.number} of the run, iteration {played.iteration}: {num_moves} moves, {_result(game, played)}"
    )
    curve = draw_curve(for_first, label=f"The search's value for {_name(game, 0)}, move by move, from -1 to 1")
    return tag(
        "details",
        tag("summary", tag("b", label), f" — {facts}"),
        tag(
            "div",
            tag("p", game.moves_to_text(played.all_moves, game.unpack_start(played.initial)), class_="moves"),
            _with_legend(game, curve),
        ),
        _draw_positions(game, played, states, players),
        class_="game card",
        open=is_open,
    )


def _with_legend(game: CoreGame, curve: Html) -> Html:
    other = f", down for {_name(game, 1)}" if game.num_players == 2 else ""
    names = f"The search's value: up is good for {_name(game, 0)}{other}"
    return tag("figure", curve, tag("figcaption", names))


def _replay(game: CoreGame, played: PlayedGame) -> list[State]:
    """The states in which players moved, and the last one: one more than there are moves of theirs."""
    states = [game.unpack_start(played.initial)]
    for move in played.all_moves:
        states.append(game.apply(states[-1], move))
    return [state for state, is_shown in zip(states, [*played.is_action, True], strict=True) if is_shown]


def _draw_positions(game: CoreGame, played: PlayedGame, states: Sequence[State], players: Sequence[int]) -> Html:
    """The positions after each move, evenly thinned in a long game, the last one always."""
    num_moves = len(played.actions)
    every = -(-num_moves // _MAX_BOARDS)
    items: list[Html] = []
    if game.hash(states[0]) != game.hash(game.initial_state()):
        items.append(tag("li", _draw_position(game, states[0], None, "random opening"), tag("span", "opening")))
    for ply in range(num_moves):
        if (num_moves - 1 - ply) % every:
            continue
        name, player, value = game.action_name(played.actions[ply]), _name(game, players[ply]), played.values[ply]
        text = f"{ply + 1}. {player} {name}"
        words = f"after move {ply + 1}, {player} plays {name}"
        drawing = _draw_position(game, states[ply + 1], states[ply], words)
        shown = tag("small", f" {round(value, 2) + 0.0:+.2f}", title=f"value for {player}")
        items.append(tag("li", drawing, tag("span", text), shown if math.isfinite(value) else None))
    skipped = f"Every {every}th position of {num_moves}." if every > 1 else None
    return join(tag("p", skipped, class_="caption") if skipped else None, tag("ol", items, class_="film"))


def _draw_position(game: CoreGame, state: State, before: State | None, label: str) -> Html:
    text = game.render(state)
    board = read_board(text)
    if board is None:
        return draw_text(text, label=label)
    return draw_board(board, _board_of(game, before), label=label)


def _board_of(game: CoreGame, state: State | None) -> Board | None:
    return None if state is None else read_board(game.render(state))


def _length(played: PlayedGame) -> int:
    return len(played.actions)


def _result(game: CoreGame, played: PlayedGame) -> str:
    if played.resigned_by >= 0:
        return f"{_name(game, played.resigned_by)} resigned"
    if not any(played.returns):
        return "drawn"
    return f"{_name(game, played.returns.index(max(played.returns)))} wins"


def _name(game: CoreGame, player: int) -> str:
    """What a player is called: by the mark on the board where there are two."""
    if player == TERMINAL:
        return "nobody"
    return _PLAYERS[player] if game.num_players == len(_PLAYERS) else f"player {player + 1}"
