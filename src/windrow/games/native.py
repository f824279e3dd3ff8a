"""The built-in games: rules in C++ (`windrow._core`), states as bytes.

>>> game = make_game("tictactoe")
>>> print(game.state_from_moves("b2 a3"))
3 o . .
2 . x .
1 . . .
  a b c
x to move
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from windrow import _core
from windrow.errors import GameError, UnknownKeyError
from windrow.games.azul_positions import AzulBoard
from windrow.games.byte_game import ByteGame
from windrow.games.core_game import State
from windrow.games.positions import NOTATIONS
from windrow.games.protocol import Symmetry
from windrow.spelling import explain_unknown

_POINTS = {("backgammon", "points"): 3.0, ("azul", "margin"): 50.0}
"""Points that a return of 1 stands for, by game and scoring."""


class NativeGame(ByteGame):
    """A built-in game, such as `NativeGame("gomoku", size=9)`. `make_game` creates all kinds of games.

    It fulfils `Game`, `Symmetric`, `Hashed` and `Readable`. Games are values: equal names and options make equal games,
    which can
    be pickled and used as keys.
    """

    has_notation = True

    def __init__(self, name: str, **options: int | float | str) -> None:
        if name not in _core.game_names():
            known = explain_unknown(name, _core.game_names(), what="built-in games")
            raise GameError(f"unknown built-in game {name!r}. {known}")
        defaults = _core.make_game(name, {}).options
        for option in options:
            if option not in defaults:
                known = explain_unknown(option, defaults, what=f"options of {name}")
                raise UnknownKeyError(f"{name} has no option {option!r}. {known}")
        try:
            native = _core.make_game(name, {option: _plain(value) for option, value in options.items()})
        except ValueError as error:
            raise GameError(f"{error}.") from None
        self.name = name
        self.options: Mapping[str, int | str] = MappingProxyType(native.options)
        self._adopt(native)
        self.points = _POINTS.get((name, str(native.options.get("scoring"))))
        self.names_depend_on_state = native.names_depend_on_state
        self._notation = NOTATIONS[name]
        self._all_names = [native.action_name(action) for action in range(self.num_actions)]
        self._key = (name, tuple(self.options.items()))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{option}={value!r}' for option, value in self.options.items())})"

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, NativeGame) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.name, dict(self.options))

    def symmetries(self) -> Sequence[Symmetry]:
        return self._symmetries

    @cached_property
    def _symmetries(self) -> Sequence[Symmetry]:
        return tuple(super().symmetries())

    def render(self, state: State) -> str:
        return self.native.render(self._check_own(state))

    def outcome_name(self, outcome: int) -> str:
        return self.native.outcome_name(outcome)

    def board(self, state: State) -> Any:
        """The board, in the form that docs/games.md gives for the game."""
        self._check_own(state)
        return self._notation.board(state)

    def score(self, state: State) -> float | None:
        """By how many points player 0 leads; None in games that do not count points so.

        In Go it is Black's area minus White's and minus komi, on the board as it is: every stone counts as alive.
        """
        return self.native.score(self._check_own(state))

    def scores(self, state: State) -> list[float] | None:
        """The scores of the players, in azul; otherwise None, also in backgammon, whose returns are its points."""
        board = self.board(state)
        return [float(player.score) for player in board.players] if isinstance(board, AzulBoard) else None

    def _parse(self, text: str) -> State:
        return self._notation.parse(self, text)

    def _to_text(self, state: State) -> str:
        return self._notation.to_text(state)

    def _names(self) -> Sequence[str]:
        return self._all_names

    def _action_name(self, action: int) -> str:
        return self._all_names[action]

    def _read_action(self, text: str) -> tuple[int, int]:
        return self.native.parse_action(text)

    def _move_name(self, state: State, action: int) -> str:
        return self.native.move_name(state.data, action) if self.names_depend_on_state else self._all_names[action]

    def _read_move(self, state: State, text: str) -> tuple[int, int]:
        return self.native.parse_move(state.data, text)

    def count_sequences(self, state: State, depth: int) -> int:
        """How many sequences of `depth` moves there are, in a game without chance: what chess players call perft.

        Sequences that end sooner do not count. In chess, draws end nothing here.
        """
        self._check_own(state)
        try:
            return self.native.count_sequences(state.data, depth)
        except ValueError as error:
            raise GameError(f"{self!r}: {error}.") from None

    def _read_outcome(self, text: str) -> tuple[int, int]:
        return self.native.parse_outcome(text)


def _plain(value: float | str) -> int | str:
    """The value as the core takes it; what it cannot take becomes text, which it reads (7.5) or refuses by name.

    Exact types, because True is an int to Python, but nobody means a board of True columns.
    """
    return value if type(value) is str or (type(value) is int and abs(value) < 2**63) else repr(value)


def _restore(name: str, options: dict[str, int | str]) -> NativeGame:
    return NativeGame(name, **options)
