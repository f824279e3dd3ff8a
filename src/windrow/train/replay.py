"""The replay memory: played positions, packed, in a ring of a fixed number of bytes.

    state  uint8   [N, S]   the position; observations are made when it is drawn; for a game in Python, its objects
    policy float16 [N, A]   policy of the search
    value  float32 [N, V]   target value, for the player to move; V is 1, or the number of players, starting with that
    one

A sample depends on the random numbers and on the last N recorded moves, not on the order in which they arrived: a
replay filled from the end of a log gives the same batches as one that saw the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError, TrainingError
from windrow.games.core_game import CoreGame, Rows
from windrow.games.protocol import Game
from windrow.games.python_game import as_core_game
from windrow.train.records import GameRecord

FloatArray: TypeAlias = npt.NDArray[np.float32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Batch:
    """B positions to learn from.

    observations: [B, *shape], or one such array per named part.
    policy: [B, A] target policy; sums to 1.
    value: [B] target value for the player to move; [B, players], that player first, from a replay with one value per
        player.
    legal: [B, A] which actions are legal.
    """

    observations: FloatArray | Mapping[str, FloatArray]
    policy: FloatArray
    value: FloatArray
    legal: BoolArray

    def __len__(self) -> int:
        return len(self.policy)


class Replay:
    """Replay memory: the last `max_positions` recorded moves of the games that were added.

    Args:
        game: the game.
        max_positions: maximum number of recorded moves kept; the oldest are dropped first.
        value_mix: mixture of the value target: 0 is the game's result, 1 is the search's own value. The target of a
            position that the search has proven is its proven value.
        use_symmetries: show each position in a random one of its symmetric images.
        is_per_player: give values [B, players]; see `windrow.nets.ResNet`. None: only if the game has such values.
    """

    def __init__(
        self,
        game: CoreGame | Game,
        max_positions: int,
        value_mix: float = 0.0,
        use_symmetries: bool = True,
        *,
        is_per_player: bool | None = None,
    ) -> None:
        if max_positions < 1:
            raise ConfigError(f"max_positions must be at least 1, not {max_positions}")
        if not 0.0 <= value_mix <= 1.0:
            raise ConfigError(f"value_mix must be from 0 to 1, not {value_mix}")
        self.game = game = as_core_game(game)
        self.max_positions, self.value_mix = max_positions, value_mix
        self._symmetries = game.symmetries() if use_symmetries else game.symmetries()[:1]
        self._is_per_player = game.num_values > 1 if is_per_player is None else is_per_player
        num_values = game.num_players if self._is_per_player else 1
        # Memory that is not touched is not taken from the machine until it is.
        self._state = game.empty_rows(max_positions)
        self._policy = np.empty((max_positions, game.num_actions), np.float16)
        self._value = np.empty((max_positions, num_values), np.float32)
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def bytes(self) -> int:
        """Memory of a full replay in bytes, which is also the maximum."""
        return self._state.nbytes + self._policy.nbytes + self._value.nbytes

    def add(self, record: GameRecord) -> int:
        """Add the recorded moves of a game; return their number.

        Raises:
            TrainingError: the record does not fit the game; nothing was added.
        """
        states, policy, value = self._unpack(record)
        count = len(states)
        # Of a game longer than the replay the last moves are kept.
        kept = slice(max(0, count - self.max_positions), count)
        rows = (self._next + np.arange(kept.start, count)) % self.max_positions
        self._state[rows], self._policy[rows], self._value[rows] = states[kept], policy[kept], value[kept]
        self._next = (self._next + count) % self.max_positions
        self._size = min(self._size + count, self.max_positions)
        return count

    def sample(self, batch_size: int, rng: np.random.Generator) -> Batch:
        """Draw positions with replacement, each in a random one of its symmetric images.

        The rows come grouped by image, because their order does not matter to a learner. `windrow.train.step_rng` makes
        the generator for one step of a run, so that a resumed run draws the same positions.

        Raises:
            TrainingError: the replay is empty.
        """
        if not self._size:
            raise TrainingError("the replay is empty: add games with recorded moves before drawing from it")
        # Counted from the oldest, wherever in the ring that lies.
        rows = (self._next - self._size + rng.integers(0, self._size, batch_size)) % self.max_positions
        states = self._state[rows]
        policy = self._policy[rows].astype(np.float32)
        policy /= policy.sum(axis=1, keepdims=True)  # float16 has rounded it
        observations = self.game.observe_many(states)
        legal = self.game.legal_many(states)
        if len(self._symmetries) > 1:
            counts = np.bincount(
                rng.integers(0, len(self._symmetries), batch_size), minlength=len(self._symmetries)
            ).tolist()
            start = counts[0]  # the identity's
            for symmetry, count in zip(self._symmetries[1:], counts[1:], strict=True):
                image = slice(start, start + count)
                observations[image] = observations[image][:, symmetry.observation]
                policy[image] = policy[image][:, symmetry.actions]
                legal[image] = legal[image][:, symmetry.actions]
                start += count
        value = self._value[rows]
        return Batch(
            split_observations(self.game, observations), policy, value if self._is_per_player else value[:, 0], legal
        )

    def _unpack(self, record: GameRecord) -> tuple[Rows, npt.NDArray[np.float16], FloatArray]:
        """States [R, S], policies [R, A] and value targets [R, V] of the recorded moves."""
        game = self.game
        moves, is_action = record.all_moves()
        try:
            states = game.play_many(game.unpack_start(record.initial), moves)[:-1][is_action][record.is_recorded]
        except ValueError as error:
            raise TrainingError(f"game {record.number} is not a game of {self.game!r}: {error}") from error
        num_players, num_actions = self.game.num_players, self.game.num_actions
        if record.policy.shape[1] != num_actions or record.returns.shape != (num_players,):
            raise TrainingError(
                f"game {record.number} has policies over {record.policy.shape[1]} actions and {len(record.returns)} "
                f"returns, but {self.game!r} has {num_actions} actions and {num_players} players"
            )
        policy = record.policy
        is_possible = (
            np.isfinite(policy).all() and (policy >= 0).all() and (policy.sum(axis=1, dtype=np.float32) > 0).all()
        )
        if not is_possible or policy[~game.legal_many(states)].any():
            raise TrainingError(f"game {record.number} has a policy that is not a distribution over legal moves")
        if not np.isfinite(record.root_value).all() or not np.isfinite(record.returns).all():
            raise TrainingError(f"game {record.number} has values that are not finite numbers")
        movers = game.to_play_many(states).astype(np.intp)
        seats = (movers[:, None] + np.arange(self._value.shape[1])) % num_players
        value = record.returns[seats]  # the player to move first
        searched = record.root_value[record.is_recorded].astype(np.float32)
        mix = np.where(record.is_proven[record.is_recorded], np.float32(1), np.float32(self.value_mix))
        value[:, 0] = (1 - mix) * value[:, 0] + mix * searched
        if self._is_per_player and num_players == 2 and game.num_values == 1:
            value[:, 1] = -value[:, 0]  # with more players nobody knows what the search thought of the others
        return states, policy, value


def split_observations(game: CoreGame, rows: FloatArray) -> FloatArray | dict[str, FloatArray]:
    """Reshape flat observations [B, floats] for a network: [B, *shape], by name if the game has several parts."""
    shapes = game.observation
    parts: dict[str, FloatArray] = {}
    start = 0
    for name, shape in (shapes if isinstance(shapes, Mapping) else {"": shapes}).items():
        end = start + prod(shape)
        parts[name] = np.ascontiguousarray(rows[:, start:end]).reshape(-1, *shape)
        start = end
    return parts[""] if "" in parts else parts
