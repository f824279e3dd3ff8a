"""Random openings for games on the device: a bank of positions from which new games start."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from windrow.tensor.game import TensorGame, as_chance_game, choose, rows, tensors_of
from windrow.tensor.tree.chance import pass_chance

_MOVES_PER_FILL = 16
"""Moves of all games after which the bank is refilled."""
_SPARE_TRIES = 6
"""Number of additional draws per opening, to replace random moves that would end the game."""


class Openings:
    """A bank of positions after 0 to `most` random moves. No game is over, and in each a player is to move.

    Openings are made in large batches and then taken one by one, because a batch needs as many small kernels as a
    single opening. If more are taken than the bank holds, some are used twice.

    Args:
        game: the rules.
        most: maximum number of random moves. The number is drawn uniformly for each opening.
        num_slots: number of games that take openings from the bank.
        device: device of the positions.
        generator: generator of the random numbers, on the same device.
    """

    def __init__(
        self, game: TensorGame, most: int, *, num_slots: int, device: torch.device, generator: torch.Generator
    ) -> None:
        self._game, self._most, self._generator = game, most, generator
        # Without random moves and chance all openings are the same, and the bank is never refilled.
        self._is_random = most > 0 or as_chance_game(game) is not None
        self._size = 2 * num_slots if self._is_random else num_slots
        self._bank = game.initial(self._size, device)
        self._plies = torch.zeros(self._size, dtype=torch.int64, device=device)
        self._next = torch.zeros((), dtype=torch.int64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._moves_left = 0
        self._device = device

    def prepare(self) -> None:
        """Capture the filling of the bank in a CUDA graph. On a CPU this does nothing."""
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
        """Return B positions and their numbers of moves from the start; `is_wanted` [B] bool are the rows used."""
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
        """Replace the positions in the bank, in place."""
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
