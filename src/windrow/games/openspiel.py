"""Games of OpenSpiel: `make_game("openspiel:hex(board_size=7)")`.

Every sequential game with perfect information works, with or without chance, for any number of players. The rest is
refused in words: hidden cards, moves at the same time, mean fields, chance that only samples, no tensor to look at.

States are OpenSpiel's own; `apply` makes a child and leaves its parent alone. What a search calls all the time is
pyspiel's own function where that is possible, with no Python in between; so, as in OpenSpiel, `apply` trusts that the
move is legal. Two things differ from OpenSpiel:

- Returns are divided by the largest utility there is, so that they lie in [-1, 1]; those of two players whose utilities
  have a constant sum are moved first, so that they sum to zero.
- Many of OpenSpiel's tensors are the same for all players and do not say who moves: in pig, equal tensors belong to
  either player. Such a tensor, found by trying, is made longer along its first axis, by one plane per player: that of
  the player to move is all 1, the others are 0. Connect-4's (3, 6, 7) becomes (5, 6, 7). Tensors that are seen by the
  player to move stay as they are.

There is no `hash`: OpenSpiel's states can only be told apart by all of their history, and a cache that knew positions
by that would never find one again. What a network sees of a position is the better key.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from windrow.errors import GameError, IllegalMoveError, MissingExtraError, UnknownKeyError, first_line, how_to_install
from windrow.games.openspiel_names import ActionNames
from windrow.games.protocol import CHANCE, TERMINAL, FloatArray, Shape
from windrow.spelling import explain_unknown

PREFIX = "openspiel:"

_MAX_ACTIONS = 65535
_NUM_PROBED_GAMES = 4
_NUM_PROBED_PLIES = 40
_ROUNDING = 1e-6

Slot: TypeAlias = tuple[Callable[[Any, int], None], Any]
"""Writes the tensor of a state for a player into this array."""


class OpenSpielGame:
    """A game of OpenSpiel, `OpenSpielGame("hex(board_size=7)")` or `OpenSpielGame("hex", board_size=7)`.

    Fulfils `Game` and `Readable`; with chance, its outcomes are listed. A value: equal names make equal games, which
    may be pickled.

    name: "openspiel:" and what OpenSpiel calls the game, with the parameters that are not its defaults.
    game: the game as OpenSpiel knows it.
    zero_sum: True for two players of whom one wins what the other loses.
    scale: returns are OpenSpiel's, divided by this.
    shows_mover: whether planes that say who moves are added to OpenSpiel's tensor.

    Raises:
        GameError: there is no such game, or it is not one that can be searched; the message says why.
        UnknownKeyError: the game has no such parameter.
        MissingExtraError: OpenSpiel is not installed.
    """

    def __init__(self, name: str, **parameters: int | float | str | bool) -> None:
        pyspiel = _load_pyspiel()
        self.game: Any = _load_game(pyspiel, name.strip().removeprefix(PREFIX).strip(), parameters)
        self.name = PREFIX + str(self.game).removesuffix("()")
        kind = self.game.get_type()
        _refuse_kind(pyspiel, self.name, kind)
        self.num_players: int = self.game.num_players()
        self.num_actions: int = self.game.num_distinct_actions()
        if not 1 <= self.num_actions <= _MAX_ACTIONS:
            raise GameError(f"{self.name} has {self.num_actions} actions; 1 to {_MAX_ACTIONS} can be searched.")

        utility = pyspiel.GameType.Utility
        self.zero_sum = self.num_players == 2 and kind.utility in (utility.ZERO_SUM, utility.CONSTANT_SUM)
        self._shift = self.game.utility_sum() / 2 if self.zero_sum and kind.utility == utility.CONSTANT_SUM else 0.0
        ends = [self.game.min_utility() - self._shift, self.game.max_utility() - self._shift]
        self.scale = max(abs(end) for end in ends)
        if not math.isfinite(self.scale) or self.scale == 0.0:
            raise GameError(
                f"{self.name} says that utilities lie between {ends[0]:g} and {ends[1]:g}; "
                "that cannot be scaled into [-1, 1]."
            )

        # Not the state's own method: that of a state written in Python may give an enum.
        self._current_player: Callable[[Any], int] = pyspiel.State.current_player
        self._tensor_type, self._tensor_shape = _tensor(pyspiel, self.game, self.name)
        self._slots: list[Slot] = []
        self.shows_mover = self.num_players > 1 and not self._depends_on_player()
        first, *others = self._tensor_shape
        self.observation: Shape = (first + self.num_players, *others) if self.shows_mover else self._tensor_shape
        # Rows by the player to move, to be filled; the last one is for states in which none is.
        rows = np.zeros((self.num_players + 1, first + self.num_players, *others), np.float32)
        for player in range(self.num_players):
            rows[player, first + player] = 1.0
        self._rows: list[Any] = list(rows)

        # pyspiel's functions take the state as their only argument, as the protocol's methods do.
        self.initial_state: Callable[[], Any] = self.game.new_initial_state
        self.apply: Callable[[Any, int], Any] = pyspiel.State.child
        self.render: Callable[[Any], str] = pyspiel.State.__str__
        self.legal_actions: Callable[[Any], Sequence[int]] = pyspiel.State.legal_actions
        if kind.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC:
            self.legal_actions = _legal_actions_of_players
            self.chance_outcomes = _chance_outcomes
            self.max_outcomes: int = max(1, self.game.max_chance_outcomes())

    def __repr__(self) -> str:
        return f"OpenSpielGame({self.name.removeprefix(PREFIX)!r})"

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, OpenSpielGame) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.name,)

    # Rules.

    def to_play(self, state: Any) -> int:
        """The player to move, or `CHANCE`, or `TERMINAL`."""
        player = self._current_player(state)
        return player if player >= CHANCE else TERMINAL

    def returns(self, state: Any) -> list[float]:
        """One value in [-1, 1] per player, for a terminal state."""
        values = [(utility - self._shift) / self.scale for utility in state.returns()]
        if not all(-1.0 <= value <= 1.0 for value in values):
            if not all(abs(value) <= 1.0 + _ROUNDING for value in values):
                span = f"between {self.game.min_utility():g} and {self.game.max_utility():g}"
                raise GameError(f"{self.name} promises utilities {span}, but a game ended with {state.returns()}.")
            values = [min(max(value, -1.0), 1.0) for value in values]
        return values

    def observe(self, state: Any) -> FloatArray:
        """OpenSpiel's tensor for the player to move (player 0 where none is), and who moves if it does not say."""
        player = self._current_player(state)
        # A slot is taken out while it is used, so that threads do not write into each other's memory.
        try:
            slot = self._slots.pop()
        except IndexError:
            slot = self._make_slot()
        write, memory = slot
        write(state, player if player >= 0 else 0)
        if self.shows_mover:
            row = self._rows[player if player >= 0 else -1].copy()
            row[: len(memory)] = memory
        else:
            row = memory.copy()
        self._slots.append(slot)
        return row

    # Words.

    def action_name(self, action: int) -> str:
        """What OpenSpiel calls `action`, if that is the same in all positions; otherwise its number."""
        if not 0 <= action < self.num_actions:
            raise IllegalMoveError(
                f"action {action} does not exist; {self.name} has actions 0 to {self.num_actions - 1}."
            )
        return self._names.action_name(action)

    def parse_action(self, text: str) -> int:
        """The action called `text`; a number is an action too."""
        action = self._names.parse_action(text)
        if action is None or not 0 <= action < self.num_actions:
            raise IllegalMoveError(
                f"{text!r} is not the name of a move; a move of {self.name} is called such as "
                f"{self.action_name(0)!r}, or by its number, 0 to {self.num_actions - 1}."
            )
        return action

    def outcome_name(self, outcome: int) -> str:
        """What OpenSpiel calls an outcome of chance, if that is the same in all positions; otherwise its number."""
        return self._names.outcome_name(outcome)

    @cached_property
    def _names(self) -> ActionNames:
        return ActionNames(self.game)

    # Observations.

    def _make_slot(self) -> Slot:
        observation = import_module("open_spiel.python.observation").make_observation(self.game, self._tensor_type)
        return observation.set_from, np.reshape(observation.tensor, self._tensor_shape)

    def _depends_on_player(self) -> bool:
        """Whether the tensor of some position is not the same for all players."""
        write, memory = self._make_slot()
        for state in random_states(self.game, _NUM_PROBED_GAMES, _NUM_PROBED_PLIES):
            if self._current_player(state) < 0:
                continue
            write(state, 0)
            first: FloatArray = memory.copy()
            for player in range(1, self.num_players):
                write(state, player)
                if not np.array_equal(memory, first):
                    return True
        return False


def random_states(game: Any, num_games: int, max_plies: int) -> Iterator[Any]:
    """The positions of random games of OpenSpiel's, one after another in one state, which changes."""
    draw = random.Random(0)
    for _ in range(num_games):
        state = game.new_initial_state()
        for _ in range(max_plies):
            if state.is_terminal():
                break
            yield state
            state.apply_action(draw.choice(state.legal_actions()))


def _legal_actions_of_players(state: Any) -> Sequence[int]:
    # OpenSpiel counts the outcomes of chance among the legal actions.
    return () if state.is_chance_node() else state.legal_actions()


def _chance_outcomes(state: Any) -> list[tuple[int, float]]:
    """What chance may do, ascending, with probabilities."""
    return sorted(pair for pair in state.chance_outcomes() if pair[1] > 0.0)


# --- Loading ------------------------------------------------------------------------------------------------------


def _load_pyspiel() -> Any:
    try:
        return import_module("pyspiel")
    except ModuleNotFoundError as error:
        if error.name != "pyspiel":
            raise
        raise MissingExtraError(f"games of OpenSpiel need open_spiel: {how_to_install('openspiel')}") from error


def _load_game(pyspiel: Any, text: str, parameters: Mapping[str, int | float | str | bool]) -> Any:
    """The game `text` names. What can be wrong is looked for first, because OpenSpiel also prints what it raises."""
    name = text.partition("(")[0].strip()
    if name.startswith("python_"):
        import_module("open_spiel.python.games")
    known: list[str] = pyspiel.registered_names()
    if name not in known:
        nearest = get_close_matches(name, known, n=1)
        guess = f"Did you mean {nearest[0]!r}? " if nearest else ""
        raise GameError(f"OpenSpiel has no game {name!r}. {guess}pyspiel.registered_names() lists all {len(known)}.")
    if text.count("(") != text.count(")"):
        raise GameError(f"{text!r} has an open bracket; parameters are written such as hex(board_size=7).")
    kind = next(kind for kind in pyspiel.registered_games() if kind.short_name == name)
    try:
        merged: dict[str, Any] = {**pyspiel.game_parameters_from_string(text), **parameters}
        merged.pop("name", None)
        for parameter in merged:
            if parameter not in kind.parameter_specification:
                hint = explain_unknown(parameter, kind.parameter_specification, what=f"parameters of {name}")
                raise UnknownKeyError(f"{name} has no parameter {parameter!r}. {hint}")
        return pyspiel.load_game(name, merged)
    except pyspiel.SpielError as error:
        raise GameError(f"OpenSpiel cannot load {text!r}: {first_line(error).rstrip('.')}.") from None


def _refuse_kind(pyspiel: Any, name: str, kind: Any) -> None:
    """Say why a game of this kind cannot be searched, if it cannot."""
    types = pyspiel.GameType
    if kind.dynamics == types.Dynamics.MEAN_FIELD:
        raise GameError(f"{name} is a mean-field game: it has no single players to move.")
    if kind.dynamics != types.Dynamics.SEQUENTIAL:
        raise GameError(f"{name} has players move at the same time; only games in which one moves after another work.")
    if kind.information != types.Information.PERFECT_INFORMATION:
        raise GameError(
            f"{name} has imperfect information: players do not see all there is, but a search would; "
            "only games with perfect information work."
        )
    if kind.chance_mode == types.ChanceMode.SAMPLED_STOCHASTIC:
        raise GameError(f"{name} draws what chance does inside of its moves; only games that list the outcomes work.")
    if getattr(kind, "action_structs_only", False):
        raise GameError(f"{name} has moves that are no numbers; only games with numbered moves work.")


def _tensor(pyspiel: Any, game: Any, name: str) -> tuple[Any, Shape]:
    """Which tensor a network is to see, and its shape."""
    kind = game.get_type()
    if kind.provides_observation_tensor:
        return pyspiel.IIGObservationType(perfect_recall=False), tuple(game.observation_tensor_shape())
    if kind.provides_information_state_tensor:
        return pyspiel.IIGObservationType(perfect_recall=True), tuple(game.information_state_tensor_shape())
    raise GameError(
        f"{name} has neither an observation tensor nor an information state tensor: there is nothing that a network "
        "could see."
    )
