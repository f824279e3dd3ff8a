"""The check that a game in torch ops is the same as a game in C++ or Python.

The tensor engine searches the game in torch ops; players, matches and the web page use the other one. If the two
differ, a network learns one game and has to play another.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.game import TensorGame, check_game, choose, max_draws_of, outcome_numbers_of, tensors_of
from windrow.tensor.games.host_states import HostStates, to_device


def check_same_game(game: CoreGame, tensor_game: TensorGame, *, num_games: int = 24, seed: int = 1) -> None:
    """Play random games to the end with both, and raise `GameError` where they differ.

    Players, legal actions, observations (to the last bit), results and the probabilities of chance outcomes must be the
    same. If the tensor game has `from_host`, the games are played again, and every second game continues after each
    move from the state that `from_host` returns.

    Args:
        game: the game in C++ or Python.
        tensor_game: the game in torch ops.
        num_games: number of games, which are played at once.
        seed: random seed of the moves.

    Raises:
        GameError: the games differ.
    """
    check_game(tensor_game)
    for name in ("num_actions", "num_players", "observation"):
        here, there = _plain(getattr(game, name)), _plain(getattr(tensor_game, name))
        if here != there:
            raise GameError(f"{name} is {here} in {game!r}, but {there} in {type(tensor_game).__name__}")
    _LockStep(game, tensor_game, num_games, seed).play()
    if isinstance(tensor_game, HostStates):
        _LockStep(game, tensor_game, num_games, seed, converts=True).play()


class _LockStep:
    """Random games, played move by move with both games."""

    def __init__(
        self, game: CoreGame, tensor_game: TensorGame, num_games: int, seed: int, *, converts: bool = False
    ) -> None:
        self._game = game
        self._tensor_game: Any = tensor_game
        self._draw = random.Random(seed)
        self._states: list[State] = [game.initial_state()] * num_games
        self._moves: list[list[int]] = [[] for _ in range(num_games)]
        self._num_draws = [0] * num_games
        self._max_draws = max_draws_of(tensor_game)
        self._is_converted = torch.arange(num_games) % 2 == 1 if converts else None
        self._numbers = outcome_numbers_of(tensor_game)

    def play(self) -> None:
        tensor_game, batch = self._tensor_game, self._tensor_game.initial(len(self._states))
        while True:
            if self._is_converted is not None:
                batch = choose(self._is_converted, self._convert(batch), batch)
            is_over = tensor_game.terminal(batch)
            chosen = self._compare(batch, is_over.tolist())
            if bool(is_over.all()):
                return
            # `step` and `happen` are called on all rows; results for rows where they do not apply are discarded.
            actions, outcomes = (torch.tensor(part) for part in zip(*chosen, strict=True))
            stepped = tensor_game.step(batch, actions)
            if self._max_draws:
                stepped = choose(outcomes >= 0, tensor_game.happen(batch, outcomes.clamp_min(0)), stepped)
            batch = choose(is_over, batch, stepped)

    def _convert(self, batch: Any) -> Any:
        """Convert the current states with `from_host`, and check that shapes and types are those of `batch`."""
        found = to_device(self._tensor_game, self._game, self._states, "cpu")
        kinds = [[(tuple(tensor.shape), tensor.dtype) for tensor in tensors_of(made)] for made in (batch, found)]
        if kinds[0] != kinds[1]:
            name = type(self._tensor_game).__name__
            raise GameError(
                f"{name}.from_host must return tensors as `initial` and `step` do, {kinds[0]}, not {kinds[1]}"
            )
        return found

    def _compare(self, batch: Any, is_over: Sequence[bool]) -> list[tuple[int, int]]:
        """Compare all positions, play a move in each, and return (action, outcome) of each game; no outcome is -1."""
        tensor_game, game = self._tensor_game, self._game
        players, legal, returns = (
            part.numpy() for part in (tensor_game.to_play(batch), tensor_game.legal(batch), tensor_game.returns(batch))
        )
        shares = tensor_game.outcomes(batch).numpy() if self._max_draws else None
        shown = tensor_game.observe(batch)
        chosen: list[tuple[int, int]] = []
        for row, state in enumerate(self._states):
            player = game.to_play(state)
            self._expect(row, "the game is over", player == TERMINAL, is_over[row])
            self._expect(row, "legal actions", list(game.legal_actions(state)), np.flatnonzero(legal[row]).tolist())
            self._expect_shown(row, game.observe(state), shown)
            if player == TERMINAL:
                self._expect(row, "returns", list(game.returns(state)), returns[row].tolist())
                chosen.append((0, -1))
                continue
            self._expect(row, "to_play", player, int(players[row]))
            if player == CHANCE:
                known = {number: float(np.float32(share)) for number, share in game.chance_outcomes(state)}
                assert shares is not None
                found = {self._numbers[i]: float(shares[row, i]) for i in np.flatnonzero(shares[row])}
                self._expect(row, "probabilities of outcomes", known, found)
                self._num_draws[row] += 1
                if self._num_draws[row] > self._max_draws:
                    self._fail(
                        row, f"chance moves {self._num_draws[row]} times in a row, but max_draws is {self._max_draws}"
                    )
                move = self._draw.choice(list(known))
                chosen.append((0, self._numbers.index(move)))
            else:
                self._num_draws[row] = 0
                move = self._draw.choice(list(game.legal_actions(state)))
                chosen.append((move, -1))
            self._states[row] = game.apply(state, move)
            self._moves[row].append(move)
        return chosen

    def _expect_shown(self, row: int, known: Any, shown: Any) -> None:
        parts, found = (_by_name(observation) for observation in (known, shown))
        for name, part in parts.items():
            here = np.ascontiguousarray(part, np.float32)
            there = np.ascontiguousarray(found[name][row].numpy()).reshape(here.shape)
            different = np.argwhere(here.view(np.uint32) != there.view(np.uint32))  # compares bits, since -0.0 == 0.0
            if len(different):
                place = tuple(int(i) for i in different[0])
                self._differ(row, f"observation {name}{list(place)}", float(here[place]), float(there[place]))

    def _expect(self, row: int, what: str, known: object, found: object) -> None:
        if known != found:
            self._differ(row, what, known, found)

    def _differ(self, row: int, what: str, known: object, found: object) -> None:
        self._fail(row, f"{what}: {known} in {self._game!r}, but {found} in {type(self._tensor_game).__name__}")

    def _fail(self, row: int, text: str) -> None:
        moves = " ".join(map(str, self._moves[row])) or "none"
        is_converted = self._is_converted is not None and bool(self._is_converted[row])
        which = "the state from from_host" if is_converted else "its version in torch ops"
        raise GameError(f"the game and {which} differ after the moves {moves}: {text}")


def _by_name(observation: Any) -> dict[str, Any]:
    """Return the parts of an observation by name; an observation without named parts has the name ""."""
    return dict(cast("Mapping[str, Any]", observation)) if isinstance(observation, Mapping) else {"": observation}


def _plain(value: Any) -> Any:
    """Return an integer, or shapes converted to tuples."""
    if isinstance(value, int):
        return value
    shapes = {name: tuple(shape) for name, shape in _by_name(value).items()}
    return shapes[""] if set(shapes) == {""} else shapes
