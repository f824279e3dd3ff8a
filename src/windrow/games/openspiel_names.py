"""What OpenSpiel calls moves, as far as that depends on nothing but the move.

OpenSpiel names a move for a player in a position; a game of windrow's names moves alone. So random games are played and
the names of legal moves are noted. If a move is called the same in all positions, and the same by all players but for a
mark of the player ("x3" and "o3" are both "3"), these are the names; if anything varies, moves are called by number.
Only legal moves are asked for: the name of an impossible one may be an error, which OpenSpiel prints. Names that have
spaces or commas in them get dashes there, because those stand between moves: "(1,2)" is "(1-2)".
"""

from __future__ import annotations

import random
import re
from itertools import takewhile
from typing import Any, TypeAlias

from windrow.games.protocol import CHANCE

_NUM_ASKED = 20_000
"""Names asked for in all, some hundredths of a second."""

Names: TypeAlias = "dict[int, str | None]"
"""By move: what it is called; None if that varies."""


class ActionNames:
    """The names of the moves of one game, and of the outcomes of chance."""

    def __init__(self, game: Any) -> None:
        asked = _ask(game)
        self._outcomes = _clear(asked.pop(CHANCE, {})) or {}
        self._names = _shared(list(asked.values()))
        self._actions = {name: action for action, name in self._names.items()}

    def action_name(self, action: int) -> str:
        """The name of a move; its number if it has none."""
        return self._names.get(action, str(action))

    def outcome_name(self, outcome: int) -> str:
        """The name of an outcome; its number if it has none."""
        return self._outcomes.get(outcome, str(outcome))

    def parse_action(self, text: str) -> int | None:
        """The move called so, or with that number; None if it is neither."""
        word = _dashed(text)
        if word in self._actions:
            return self._actions[word]
        return int(word) if word.isdecimal() and word.isascii() else None


def _ask(game: Any) -> dict[int, Names]:
    """What players, and chance, call their moves."""
    found: dict[int, Names] = {}
    draw = random.Random(0)
    num_asked = 0
    while num_asked < _NUM_ASKED:
        state = game.new_initial_state()
        num_asked += 1  # a game may be over before it begins
        while not state.is_terminal() and num_asked < _NUM_ASKED:
            player = int(state.current_player())
            actions: list[int] = state.legal_actions()
            names = found.setdefault(player, {})
            for action in actions:
                name = state.action_to_string(player, action).strip()
                names[action] = name if names.get(action, name) == name else None
            num_asked += len(actions)
            state.apply_action(draw.choice(actions))
    return found


def _shared(by_player: list[Names]) -> dict[int, str]:
    """One name per move, whoever makes it; empty if there are no such names."""
    for is_in_front in (True, False):
        shared: Names = {}
        for names in _without_marks(by_player, is_in_front=is_in_front):
            for action, name in names.items():
                shared[action] = name if shared.get(action, name) == name else None
        if clear := _clear(shared):
            return clear
    return {}


def _without_marks(by_player: list[Names], *, is_in_front: bool) -> list[Names]:
    """The names without what one move, common to all players, shows to be the mark of each."""
    common = set[int].intersection(*(set(names) for names in by_player)) if by_player else set[int]()
    if not common:
        return by_player
    texts = [names[min(common)] or "" for names in by_player]
    if is_in_front:
        num_same = _num_same([text[::-1] for text in texts])
        marks = [text[: len(text) - num_same] for text in texts]
    else:
        num_same = _num_same(texts)
        marks = [text[num_same:] for text in texts]
    return [
        {action: name and _without(name, mark, is_in_front=is_in_front) for action, name in names.items()}
        for names, mark in zip(by_player, marks, strict=True)
    ]


def _num_same(texts: list[str]) -> int:
    """How many characters all of the texts begin with."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))


def _without(name: str, mark: str, *, is_in_front: bool) -> str:
    return (name.removeprefix(mark) if is_in_front else name.removesuffix(mark)).strip(" :")


def _clear(names: Names) -> dict[int, str] | None:
    """The names, if each is that of one move only, and none is the number of another."""
    found = {action: _dashed(name) for action, name in names.items() if name}
    if len(found) < len(names) or len(set(found.values())) < len(found):
        return None
    if any(name.isdecimal() and int(name) != action for action, name in found.items()):
        return None
    return found


def _dashed(name: str) -> str:
    return re.sub(r"[,\s]+", "-", name.strip(" ,"))
