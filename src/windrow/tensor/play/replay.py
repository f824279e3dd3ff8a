"""Positions to learn from, in a ring on the device: what was played never visits the host.

    states            [T, B, ...]   the game's own tensors; observations are made when a position is drawn
    policy  float16   [T, B, A]     what the search made of it
    value   float32   [T, B]        what the search thinks of it, for the player to move
    number  int32     [T, B]        which game of its column it belongs to
    results float32   [T + 1, B]    by that number: what became of the game, for player 0; NaN while it goes on

Every move of all B games is one row. Games end at any row, and then only their result is written: no position is looked
for, moved or counted, so nothing has to wait. A position whose game goes on is drawn with weight 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from windrow.errors import ConfigError
from windrow.games.protocol import Shape, Symmetry
from windrow.tensor.game import Observations, TensorGame, like, observation_size, tensors_of


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """Positions to learn from, on the device.

    observations: [batch, ...] float32, by name if the game has several.
    policy: [batch, A] float32 target; sums to 1.
    value: [batch] float32 target, for the player to move.
    legal: [batch, A] bool.
    weight: [batch] float32: 1, or 0 for a position whose game is not over, and whose value means nothing.
    """

    observations: Observations
    policy: Tensor
    value: Tensor
    legal: Tensor
    weight: Tensor


class TensorReplay:
    """The last moves of B games that are played in lock-step.

    Args:
        game: which game it is.
        num_slots: B.
        max_positions: positions kept, rounded down to whole rows of B.
        device: where.
        value_mix: what the value learns: 0 the game's result, 1 the search's own value, between them a mixture.
        symmetries: of the game, such as `windrow.make_game(...).symmetries()`; positions are shown as a random one of
            their images. Empty: as they are.
        generator: of the random numbers, on the same device.
    """

    def __init__(
        self,
        game: TensorGame,
        num_slots: int,
        max_positions: int,
        *,
        device: torch.device,
        generator: torch.Generator,
        value_mix: float = 0.25,
        symmetries: Sequence[Symmetry] = (),
    ) -> None:
        self.num_rows = max_positions // num_slots
        if self.num_rows < 1:
            raise ConfigError(
                f"{num_slots} games in lock-step write {num_slots} positions a move, but the replay holds "
                f"{max_positions}: raise [replay] max_positions, to fifty times as many or more"
            )
        self.game, self.num_slots, self.value_mix = game, num_slots, value_mix
        self._generator = generator
        self._template = game.initial(1, device)
        try:
            self._allocate(device)
        except torch.cuda.OutOfMemoryError as error:
            raise ConfigError(
                f"a replay of {max_positions:,} positions does not fit on the device: lower [replay] max_positions"
            ) from error
        self._size = torch.zeros((), dtype=torch.float64, device=device)
        self._num_written = 0
        self._images = _images(symmetries, game, device) if len(symmetries) > 1 else None

    def _allocate(self, device: torch.device) -> None:
        shape = (self.num_rows, self.num_slots)
        self._states = [tensor.new_zeros((*shape, *tensor.shape[1:])) for tensor in tensors_of(self._template)]
        self._policy = torch.zeros((*shape, self.game.num_actions), dtype=torch.float16, device=device)
        self._value = torch.zeros(shape, device=device)
        self._number = torch.zeros(shape, dtype=torch.int32, device=device)
        # A game has at least one row, so this many numbers are enough for no two games in the ring to share one.
        self._results = torch.full((self.num_rows + 1, self.num_slots), torch.nan, device=device)

    @property
    def max_games(self) -> int:
        """Games of one slot are numbered from 0 to this, and then from 0 again."""
        return self.num_rows + 1

    def __len__(self) -> int:
        """Positions in it, those of games in progress included."""
        return min(self._num_written, self.num_rows) * self.num_slots

    @property
    def num_bytes(self) -> int:
        """What it takes on the device, full or not."""
        held = [*self._states, self._policy, self._value, self._number, self._results]
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    def write(self, states: Any, policy: Tensor, value: Tensor, number: Tensor) -> None:
        """One move of every game: the positions before it, [B, A] targets, [B] values and numbers of the games."""
        row = self._num_written % self.num_rows
        for kept, tensor in zip(self._states, tensors_of(states), strict=True):
            kept[row].copy_(tensor)
        self._policy[row].copy_(policy)
        self._value[row].copy_(value)
        self._number[row].copy_(number)
        self._num_written += 1
        self._size.fill_(len(self))

    def finish(self, number: Tensor, is_over: Tensor, result: Tensor) -> None:
        """[B] each: the games in progress, which of them are over, and what they gave player 0."""
        self._results.scatter_(0, number[None].to(torch.int64), torch.where(is_over, result, torch.nan)[None])

    def sample(self, batch_size: int) -> TensorBatch:
        """Positions drawn with replacement; may be captured in a CUDA graph. An empty replay gives weight 0."""
        device = self._value.device
        draw = torch.rand(batch_size, dtype=torch.float64, device=device, generator=self._generator)
        place = (draw * self._size).to(torch.int64)
        parts = [kept.flatten(0, 1).index_select(0, place) for kept in self._states]
        states = like(self._template, parts)
        number = self._number.flatten().index_select(0, place).to(torch.int64)
        result = self._results.flatten().index_select(0, number * self.num_slots + place % self.num_slots)
        is_known = ~result.isnan()
        result = torch.where(is_known, result, 0.0)
        for_mover = torch.where(self.game.to_play(states) == 0, result, -result)
        searched = self._value.flatten().index_select(0, place)
        policy = self._policy.flatten(0, 1).index_select(0, place).to(torch.float32)
        policy = policy / policy.sum(1, keepdim=True).clamp_min(1e-6)  # float16 has rounded it
        observations, legal = self.game.observe(states), self.game.legal(states)
        if self._images is not None:
            of_actions, of_cells = self._images
            image = torch.randint(len(of_actions), (batch_size,), device=device, generator=self._generator)
            policy, legal = policy.gather(1, of_actions[image]), legal.gather(1, of_actions[image])
            observations = _permute(observations, of_cells[image])
        value = (1.0 - self.value_mix) * for_mover + self.value_mix * searched
        return TensorBatch(observations, policy, value, legal, is_known.to(torch.float32))


def _images(symmetries: Sequence[Symmetry], game: TensorGame, device: torch.device) -> tuple[Tensor, Tensor]:
    """[S, A] and [S, F]: what every symmetry does to actions and to the floats of an observation."""
    actions = np.stack([np.asarray(symmetry.actions, np.int64) for symmetry in symmetries])
    cells = np.stack([np.asarray(symmetry.observation, np.int64) for symmetry in symmetries])
    if actions.shape[1] != game.num_actions or cells.shape[1] != observation_size(game):
        raise ConfigError(
            f"these are symmetries of another game: of {actions.shape[1]} actions and {cells.shape[1]} floats, not of "
            f"{game.num_actions} and {observation_size(game)}"
        )
    return torch.from_numpy(actions).to(device), torch.from_numpy(cells).to(device)


def _permute(observations: Observations, order: Tensor) -> Observations:
    """Every row in an order of its own; named parts count as one row, one after the other."""
    if not isinstance(observations, Mapping):
        return observations.flatten(1).gather(1, order).view(observations.shape)
    whole = torch.cat([part.flatten(1) for part in observations.values()], 1).gather(1, order)
    shapes: dict[str, Shape] = {name: tuple(part.shape[1:]) for name, part in observations.items()}
    sizes = [prod(shape) for shape in shapes.values()]
    parts = cast("tuple[Tensor, ...]", cast("Any", whole).split(sizes, 1))
    return {name: part.reshape(-1, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
