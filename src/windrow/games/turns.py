"""Whole turns of backgammon as people write them: "13/8 6/5", "8/5(2)", "24/18/13", "24/13", "bar/22 13/11*"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from windrow.errors import IllegalMoveError
from windrow.games.core_game import CoreGame, State
from windrow.games.native import NativeGame

_BAR = 25
_OFF = 0
_PASS = 150
_WORD = re.compile(r"(bar|\d{1,2})((?:/(?:\d{1,2}|off)\*?)+)(?:\((\d)\))?")

Steps = tuple[tuple[int, int], ...]
"""Checkers that are still to move: from where, to where."""


def parse_turn(game: CoreGame, state: State, text: str) -> list[int]:
    """The actions that `text` means in `state`: one move, or in backgammon several of the same player.

    Raises:
        IllegalMoveError: the text is no move, it is not legal here, or it can mean different moves.
    """
    words = text.replace(",", " ").split()
    is_backgammon = isinstance(game, NativeGame) and game.name == "backgammon"
    names = {game.action_name(action): action for action in game.legal_actions(state)} if is_backgammon else {}
    if len(words) == 1 and words[0].lower() in names:
        return [names[words[0].lower()]]
    found = [_WORD.fullmatch(word.lower()) for word in words]
    if not is_backgammon or not words or None in found:
        action = game.parse_move(state, text)
        if action not in (legal := game.legal_actions(state)):
            raise _illegal(game, state, text, legal)
        return [action]
    steps: list[tuple[int, int]] = []
    for match in found:
        assert match is not None
        places = [_place(name) for name in (match[1] + match[2].replace("*", "")).split("/")]
        steps += [*pairwise(places)] * int(match[3] or 1)
    player = game.to_play(state)
    ends: dict[State, list[int]] = {}
    if 0 < len(steps) <= 4:
        _search(game, player, state, tuple(steps), [], ends)
    if not ends:
        raise _illegal(game, state, text, names.values())
    if len(ends) > 1:
        ways = " or ".join(" ".join(map(game.action_name, actions)) for actions in ends.values())
        raise IllegalMoveError(f"{text!r:.100} is ambiguous: write {ways}.")
    return next(iter(ends.values()))


def _illegal(game: CoreGame, state: State, text: str, legal: Iterable[int]) -> IllegalMoveError:
    names = " ".join(game.move_name(state, action) for action in legal)
    return IllegalMoveError(f"{text!r:.100} is not legal here.\nLegal moves: {names}\n{state}")


def _place(name: str) -> int:
    return _BAR if name == "bar" else _OFF if name == "off" else int(name)


def _search(
    game: CoreGame, player: int, state: State, steps: Steps, actions: list[int], ends: dict[State, list[int]]
) -> None:
    """Collect the positions in which the steps can end, in any order and with any dice, and the actions to each."""
    if not steps:
        ends.setdefault(state, actions)
        return
    if game.to_play(state) != player:
        return
    for action in game.legal_actions(state):
        source, target = action // 6 + 1, max(action // 6 - action % 6, _OFF)
        if action == _PASS:
            continue
        for step in dict.fromkeys(steps):
            if step[0] == source and target >= step[1]:
                rest = list(steps)
                rest.remove(step)
                if target > step[1]:
                    rest.append((target, step[1]))
                _search(game, player, game.apply(state, action), tuple(rest), [*actions, action], ends)


def render_for(state: State, player: int) -> str:
    """The position as text; the points of backgammon keep the numbers of `player`, whoever is to move."""
    game = state.game
    if not isinstance(game, NativeGame) or game.name != "backgammon":
        return str(state)
    data = bytearray(state.data)
    data[30] = player
    board, _, _ = str(State(game, bytes(data))).rpartition("\n")
    return f"{board}\n{str(state).splitlines()[-1]}"


def turn_ends(game: CoreGame, start: State) -> dict[State, list[int]]:
    """All different positions that the turn which begins, or goes on, in `start` can lead to, each with its actions."""
    player = game.to_play(start)
    seen: set[State] = {start}
    waiting: list[tuple[State, list[int]]] = [(start, [])]
    ends: dict[State, list[int]] = {}
    while waiting:
        state, actions = waiting.pop()
        for action in game.legal_actions(state):
            after = game.apply(state, action)
            if game.to_play(after) != player:
                ends.setdefault(after, [*actions, action])
            elif after not in seen:
                seen.add(after)
                waiting.append((after, [*actions, action]))
    return ends
