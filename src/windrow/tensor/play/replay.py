"""The replay buffer of training positions, a ring on the device; nothing is copied to the host.

    states            [T, B, ...]   the game's own tensors; observations are made when a position is drawn
    policy  float16   [T, B, A]     policy of the search
    value   float32   [T, B]        value of the search, for the player to move
    number  int32     [T, B]        number of the game in its column
    results float32   [T + 1, B]    by that number: result of the game for player 0; NaN while it goes on
    proven  bool      [T, B]        with `prove` only: whether the value is proven

A row holds one move of all B games. When a game ends, only its result is written: no position is searched for, moved or
counted, so nothing waits for the device. A position of an unfinished game has weight 0 in a batch.
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
    """A batch of training positions on the device.

    observations: [batch, ...] float32, by name if the game has several.
    policy: [batch, A] float32 target; sums to 1.
    value: [batch] float32 target, for the player to move.
    legal: [batch, A] bool.
    weight: [batch] float32: 1, or 0 for a position of an unfinished game, whose value is meaningless.
    """

    observations: Observations
    policy: Tensor
    value: Tensor
    legal: Tensor
    weight: Tensor


class TensorReplay:
    """A ring buffer of the last positions of B games that are played in lock-step.

    Args:
        game: the rules.
        num_slots: number of games, B.
        max_positions: capacity in positions, rounded down to whole rows of B.
        device: device of the buffer.
        value_mix: weight of the search's own value in the value target; the rest is the game's result.
        prove: keep which values the search has proven. The value target of these positions is the proven value.
        symmetries: symmetries of the game, such as `windrow.make_game(...).symmetries()`. Every drawn position is
            transformed by a random one. Empty: positions are not transformed.
        generator: generator of the random numbers, on the same device.
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
        prove: bool = False,
        symmetries: Sequence[Symmetry] = (),
    ) -> None:
        self.num_rows = max_positions // num_slots
        if self.num_rows < 1:
            raise ConfigError(
                f"{num_slots} games in lock-step write {num_slots} positions a move, but the replay holds "
                f"{max_positions}: increase [replay] max_positions to at least 50 times the number of games"
            )
        self.game, self.num_slots, self.value_mix, self.prove = game, num_slots, value_mix, prove
        self._generator = generator
        self._template = game.initial(1, device)
        try:
            self._allocate(device)
        except torch.cuda.OutOfMemoryError as error:
            raise ConfigError(
                f"a replay of {max_positions:,} positions does not fit on the device: decrease [replay] max_positions"
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
        self._is_proven = torch.zeros(shape, dtype=torch.bool, device=device) if self.prove else None
        # A game has at least one row, so with this many numbers no two games in the ring share one.
        self._results = torch.full((self.num_rows + 1, self.num_slots), torch.nan, device=device)

    @property
    def max_games(self) -> int:
        """Number of different game numbers. The games of a slot are numbered modulo this."""
        return self.num_rows + 1

    def __len__(self) -> int:
        """Return the number of positions, including those of unfinished games."""
        return min(self._num_written, self.num_rows) * self.num_slots

    @property
    def num_bytes(self) -> int:
        """Memory of the buffer on the device in bytes, whether it is full or not."""
        held = [*self._states, self._policy, self._value, self._number, self._results, self._is_proven]
        return sum(tensor.numel() * tensor.element_size() for tensor in held if tensor is not None)

    def write(
        self, states: Any, policy: Tensor, value: Tensor, number: Tensor, is_proven: Tensor | None = None
    ) -> None:
        """Add one move of every game.

        Args:
            states: the B positions before the move.
            policy: [B, A] policy targets.
            value: [B] values of the search, for the player to move.
            number: [B] numbers of the games.
            is_proven: [B] bool, which values are proven, in a replay with `prove`.
        """
        row = self._num_written % self.num_rows
        for kept, tensor in zip(self._states, tensors_of(states), strict=True):
            kept[row].copy_(tensor)
        self._policy[row].copy_(policy)
        self._value[row].copy_(value)
        self._number[row].copy_(number)
        if self._is_proven is not None and is_proven is not None:
            self._is_proven[row].copy_(is_proven)
        self._num_written += 1
        self._size.fill_(len(self))

    def finish(self, number: Tensor, is_over: Tensor, result: Tensor) -> None:
        """Write the results of games that are over.

        Args:
            number: [B] numbers of the current games.
            is_over: [B] bool, the games that are over.
            result: [B] results for player 0.
        """
        self._results.scatter_(0, number[None].to(torch.int64), torch.where(is_over, result, torch.nan)[None])

    def sample(self, batch_size: int) -> TensorBatch:
        """Draw positions with replacement; can be captured in a CUDA graph. An empty replay gives weight 0."""
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
        policy = policy / policy.sum(1, keepdim=True).clamp_min(1e-6)  # corrects the rounding to float16
        observations, legal = self.game.observe(states), self.game.legal(states)
        if self._images is not None:
            of_actions, of_cells = self._images
            image = torch.randint(len(of_actions), (batch_size,), device=device, generator=self._generator)
            policy, legal = policy.gather(1, of_actions[image]), legal.gather(1, of_actions[image])
            observations = _permute(observations, of_cells[image])
        value = (1.0 - self.value_mix) * for_mover + self.value_mix * searched
        if self._is_proven is not None:
            value = torch.where(self._is_proven.flatten().index_select(0, place), searched, value)
        return TensorBatch(observations, policy, value, legal, is_known.to(torch.float32))


def _images(symmetries: Sequence[Symmetry], game: TensorGame, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the S symmetries as permutations of actions, [S, A], and of an observation's floats, [S, F]."""
    actions = np.stack([np.asarray(symmetry.actions, np.int64) for symmetry in symmetries])
    cells = np.stack([np.asarray(symmetry.observation, np.int64) for symmetry in symmetries])
    if actions.shape[1] != game.num_actions or cells.shape[1] != observation_size(game):
        raise ConfigError(
            f"these are symmetries of another game: they have {actions.shape[1]} actions and {cells.shape[1]} "
            f"observation floats, but the game has {game.num_actions} and {observation_size(game)}"
        )
    return torch.from_numpy(actions).to(device), torch.from_numpy(cells).to(device)


def _permute(observations: Observations, order: Tensor) -> Observations:
    """Permute the floats of every row by its row of `order`; named parts are first concatenated."""
    if not isinstance(observations, Mapping):
        return observations.flatten(1).gather(1, order).view(observations.shape)
    whole = torch.cat([part.flatten(1) for part in observations.values()], 1).gather(1, order)
    shapes: dict[str, Shape] = {name: tuple(part.shape[1:]) for name, part in observations.items()}
    sizes = [prod(shape) for shape in shapes.values()]
    parts = cast("tuple[Tensor, ...]", cast("Any", whole).split(sizes, 1))
    return {name: part.reshape(-1, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
