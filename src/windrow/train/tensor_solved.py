"""Solved positions on the device: how often a search, or the bare network, keeps what a position is worth."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.games.core_game import CoreGame
from windrow.play.solved import FILE, Share, SolvedScore, solved_positions
from windrow.tensor.evaluators.network import Evaluator
from windrow.tensor.game import TensorGame, choose, rows, stack
from windrow.tensor.search import TensorSearch


class TensorSolvedTest:
    """`windrow.play.solved` for a network on the device.

    Args:
        config: how to search; by default 400 simulations without noise.
        num_trees: positions searched at once. The number that self-play has spares another compilation.
    """

    def __init__(
        self,
        game: CoreGame,
        tensor_game: TensorGame,
        evaluator: Evaluator,
        config: SearchConfig | None = None,
        *,
        num_trees: int,
        device: torch.device,
    ) -> None:
        positions = solved_positions(game)
        self.config = config or SearchConfig(num_simulations=400)
        self._phases = [position.phase for position in positions]
        is_kept = torch.zeros((len(positions), game.num_actions), dtype=torch.bool)
        for row, position in enumerate(positions):
            is_kept[row, position.best_actions] = True
        self._is_kept = is_kept.to(device)
        states = states_after(tensor_game, _moves(game), device)
        fill = tensor_game.initial(-len(positions) % num_trees, device)
        self._states = stack([states, fill])
        self._search = TensorSearch(
            tensor_game, evaluator, self.config, num_trees=num_trees, device=device, is_fused=False
        )
        self._num_trees, self._num_rows = num_trees, len(positions) + -len(positions) % num_trees

    def prepare(self) -> None:
        """Compile and capture."""
        self._search.run(rows(self._states, slice(0, self._num_trees)), num_simulations=0)

    def score(self, num_simulations: int | None = None) -> SolvedScore:
        """Search every position and see which moves are right; 0 simulations ask the bare network. Blocks."""
        budget = self.config.num_simulations if num_simulations is None else num_simulations
        chosen: list[Tensor] = []
        for first in range(0, self._num_rows, self._num_trees):
            batch = rows(self._states, slice(first, first + self._num_trees))
            chosen.append(self._search.run(batch, num_simulations=budget).best_action)
        actions = torch.cat(chosen)[: len(self._phases)]
        is_right: list[bool] = self._is_kept.gather(1, actions[:, None])[:, 0].cpu().numpy().tolist()
        counts: dict[str, list[bool]] = {}
        for phase, kept in zip(self._phases, is_right, strict=True):
            counts.setdefault(phase, []).append(kept)
        shares = {phase: Share(sum(kept), len(kept)) for phase, kept in counts.items()}
        return SolvedScore(f"{budget} simulations on {self._search.device.type}", shares)


def states_after(game: TensorGame, lines: list[list[int]], device: torch.device) -> Any:
    """The positions after lists of moves of any lengths, as one batch."""
    length = max(len(moves) for moves in lines)
    table = torch.tensor([[*moves, *[-1] * (length - len(moves))] for moves in lines], device=device)
    state = game.initial(len(lines), device)
    for ply in range(length):
        move = table[:, ply]
        state = choose(move >= 0, game.step(state, move.clamp_min(0)), state)
    return state


def _moves(game: CoreGame) -> list[list[int]]:
    """What leads to each of the solved positions."""
    text = (files("windrow.play") / "data" / FILE).read_text(encoding="utf-8")
    return [[game.parse_action(name) for name in line.split()[0]] for line in text.splitlines()]
