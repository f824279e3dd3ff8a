"""Random first moves of games on the device: a bank of openings that finished games take their successors from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from windrow.tensor.game import TensorGame, as_chance_game, choose, rows, tensors_of
from windrow.tensor.tree.chance import pass_chance

_MOVES_PER_FILL = 16
"""Moves of all games between two fillings of the bank."""
_SPARE_TRIES = 6
"""A random move that would end the game is drawn again, so often in all."""


class Openings:
    """Positions after 0 to `most` random moves, none of them over; where chance is to move it has moved.

    They are made by the thousand and then taken one by one, since a batch of openings costs as many small kernels as a
    single one. When more are taken than there are, some come twice.

    Args:
        game: the rules.
        most: most random moves; how many is drawn evenly for each.
        num_slots: games that take from the bank.
        device: where.
        generator: of the random numbers, on the same device.
    """

    def __init__(
        self, game: TensorGame, most: int, *, num_slots: int, device: torch.device, generator: torch.Generator
    ) -> None:
        self._game, self._most, self._generator = game, most, generator
        # Without either all games begin alike, and one bank is enough for ever.
        self._is_random = most > 0 or as_chance_game(game) is not None
        self._size = 2 * num_slots if self._is_random else num_slots
        self._bank = game.initial(self._size, device)
        self._plies = torch.zeros(self._size, dtype=torch.int64, device=device)
        self._next = torch.zeros((), dtype=torch.int64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._moves_left = 0
        self._device = device

    def prepare(self) -> None:
        """On a GPU, capture the filling; otherwise nothing."""
        if self._device.type != "cuda" or not self._is_random or self._graph is not None:
            return
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._fill()
        torch.cuda.synchronize(self._device)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, stream=stream):
            self._fill()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        self._graph = graph

    def take(self, is_wanted: Tensor) -> tuple[Any, Tensor]:
        """[B] positions and how many moves they are from the start; the rows of `is_wanted` [B] bool count as taken."""
        if self._is_random and self._moves_left == 0:
            if self._graph is None:
                self._fill()
            else:
                self._graph.replay()
            self._moves_left = _MOVES_PER_FILL
        self._moves_left -= 1
        count = is_wanted.to(torch.int64).cumsum(0)
        place = (self._next + count) % self._size
        self._next.add_(count[-1]).remainder_(self._size)
        return rows(self._bank, place), self._plies.index_select(0, place)

    def _fill(self) -> None:
        """New positions in the bank, in place."""
        game, device, generator = self._game, self._device, self._generator
        state = pass_chance(game, game.initial(self._size, device), generator)
        wanted = torch.randint(self._most + 1, (self._size,), device=device, generator=generator)
        plies = torch.zeros_like(wanted)
        for _ in range(self._most + _SPARE_TRIES if self._most else 0):
            draw = torch.rand((self._size, game.num_actions), device=device, generator=generator)
            after = game.step(state, torch.where(game.legal(state), draw, -1.0).argmax(1))
            after = pass_chance(game, after, generator)
            goes_on = (plies < wanted) & ~game.terminal(after)
            state = choose(goes_on, after, state)
            plies = plies + goes_on
        for kept, tensor in zip(tensors_of(self._bank), tensors_of(state), strict=True):
            kept.copy_(tensor)
        self._plies.copy_(plies)
