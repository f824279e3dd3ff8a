"""Games of a network against itself on the device: all in lock-step, and a finished one is replaced in its place.

    selfplay = TensorSelfPlay(game, network, search_config, replay, device=device, generator=generator)
    for _ in range(1000):
        selfplay.step()  # one move of every game, written to the replay; nothing waits for the device
    print(selfplay.read_stats())

Every game has its slot for ever. One that ends gives its result to the replay and its place to a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.gumbel import warn_of_equal_games
from windrow.tensor.evaluators.network import Evaluator
from windrow.tensor.game import TensorGame, choose
from windrow.tensor.play.openings import Openings
from windrow.tensor.play.replay import TensorReplay
from windrow.tensor.result import TensorResult
from windrow.tensor.rules import check_config
from windrow.tensor.search import KernelsName, TensorSearch
from windrow.tensor.tree.chance import pass_chance
from windrow.tensor.tree.pools import slots_for

_STATS = ("games", "game_moves", "first_player_wins", "draws", "bad_trees")


class TensorSelfPlay:
    """Plays B games against itself, one move of all of them at a time. Every move is searched from the start.

    Where chance is to move it moves at once, so that every recorded position is a player's.

    Args:
        game: the rules.
        evaluator: as for `TensorSearch`; its weights may change between any two moves.
        search: how moves are searched: budget, noise or `root="gumbel"`, temperature, seed.
        replay: where positions and results go; its slots are the games.
        generator: of the random numbers besides the search's, on the replay's device.
        budgets: other numbers of simulations that `step` may be asked for. Each has trees of its own, for a Gumbel
            root divides a fixed budget.
        opening_plies: most random moves at the start of a game, which are not recorded.
        max_plies: a game of so many recorded moves is called a draw.
        temperature_plies: moves from the start drawn at the search's temperature; a Gumbel root has noise instead.
        late_temperature: of the moves after those. 0 plays the best one.
        kernels: as for `TensorSearch`.
        is_fused: as for `TensorSearch`.
    """

    def __init__(
        self,
        game: TensorGame,
        evaluator: Evaluator,
        search: SearchConfig,
        replay: TensorReplay,
        *,
        device: torch.device,
        generator: torch.Generator,
        budgets: Sequence[int] = (),
        opening_plies: int = 0,
        max_plies: int | None = None,
        temperature_plies: int = 15,
        late_temperature: float = 0.0,
        kernels: KernelsName = "auto",
        is_fused: bool | None = None,
    ) -> None:
        check_config(search)
        warn_of_equal_games(search)
        assert search.num_simulations is not None
        self.game, self.replay, self.num_slots = game, replay, replay.num_slots
        self.num_simulations: int = search.num_simulations
        self._temperature, self._late_temperature = search.temperature, late_temperature
        self._temperature_plies, self._max_plies = temperature_plies, max_plies
        self._generator = generator
        all_budgets = sorted({search.num_simulations, *budgets})
        # Equal numbers of slots make equal programs, which are compiled once.
        self._searches = {
            budget: TensorSearch(
                game,
                evaluator,
                search.replace(num_simulations=budget),
                num_trees=self.num_slots,
                device=device,
                max_nodes=slots_for(game, all_budgets[-1]),
                kernels=kernels,
                is_fused=is_fused,
            )
            for budget in all_budgets
        }
        self._openings = Openings(game, opening_plies, num_slots=self.num_slots, device=device, generator=generator)
        everywhere = torch.ones(self.num_slots, dtype=torch.bool, device=device)
        self._state, self._ply = self._openings.take(everywhere)
        self._num_moves = torch.zeros_like(self._ply)  # recorded ones, of the present game
        self._number = torch.zeros_like(self._ply)
        self._sums = torch.zeros(len(_STATS), dtype=torch.float64, device=device)

    @property
    def states(self) -> Any:
        """The positions that the next `step` searches."""
        return self._state

    def prepare(self) -> None:
        """Compile and capture everything, so that no `step` has to."""
        self._openings.prepare()
        for search in self._searches.values():
            search.run(self._state)

    @torch.no_grad()
    def step(self, num_simulations: int | None = None) -> TensorResult:
        """Search and play one move of every game; the replay gets the positions, and the results of games that end."""
        budget = self.num_simulations if num_simulations is None else num_simulations
        if budget not in self._searches:
            known = ", ".join(map(str, self._searches))
            raise ConfigError(f"this self-play was made for {known} simulations, not {budget}: name it in `budgets`")
        game = self.game
        result = self._searches[budget].run(self._state)
        action = self._draw(result)
        self.replay.write(self._state, target_of(result), value_of(result), self._number)
        after = pass_chance(game, game.step(self._state, action), self._generator)
        self._num_moves, self._ply = self._num_moves + 1, self._ply + 1
        is_over = game.terminal(after)
        returns = torch.where(is_over, game.returns(after)[:, 0], 0.0)
        if self._max_plies is not None:
            is_over = is_over | (self._num_moves >= self._max_plies)
        self.replay.finish(self._number, is_over, returns)
        self._count(is_over, returns, result)
        self._restart(after, is_over)
        return result

    def read_stats(self) -> dict[str, float]:
        """Games that ended since the last call, their recorded moves, what came of them; waits for the device.

        "bad_trees" counts searches in which the evaluator gave no number, or a value outside [-1, 1].
        """
        numbers: list[float] = self._sums.cpu().numpy().tolist()
        self._sums.zero_()
        return dict(zip(_STATS, numbers, strict=True))

    def _draw(self, result: TensorResult) -> Tensor:
        """[B] the moves to play."""
        if result.chosen_action is not None:
            return result.chosen_action
        early, late = (
            self._draw_at(result, temperature) for temperature in (self._temperature, self._late_temperature)
        )
        return torch.where(self._ply < self._temperature_plies, early, late)

    def _draw_at(self, result: TensorResult, temperature: float) -> Tensor:
        if temperature == 0:
            return result.best_action
        policy = result.policy_at(temperature)
        # The largest of probabilities divided by exponential draws is each with its probability.
        draws = torch.empty_like(policy).exponential_(generator=self._generator)
        return torch.where(policy > 0, policy / draws, -1.0).argmax(1)

    def _count(self, is_over: Tensor, returns: Tensor, result: TensorResult) -> None:
        of_these = (
            is_over,
            torch.where(is_over, self._num_moves, 0),
            is_over & (returns > 0),
            is_over & (returns == 0),
            result.is_bad,
        )
        self._sums += torch.stack([count.sum(dtype=torch.float64) for count in of_these])

    def _restart(self, after: Any, is_over: Tensor) -> None:
        """New games in the place of those that are over."""
        fresh, plies = self._openings.take(is_over)
        self._state = choose(is_over, fresh, after)
        self._ply = torch.where(is_over, plies, self._ply)
        self._num_moves = torch.where(is_over, 0, self._num_moves)
        self._number = torch.where(is_over, (self._number + 1) % self.replay.max_games, self._number)


def target_of(result: TensorResult) -> Tensor:
    """[B, A] what the network should learn: the improved policy of a Gumbel root, else the share of visits."""
    return result.policy_at(1.0) if result.improved_policy is None else result.improved_policy


def value_of(result: TensorResult) -> Tensor:
    """[B] what the search thinks of the position, for the player to move.

    A Gumbel root spends half of its visits on moves that it then rejects, so their mean is too low: there it is the
    values of the moves tried, weighted by the improved policy.
    """
    if result.improved_policy is None:
        return result.value
    weight = torch.where(result.visits > 0, result.improved_policy, 0.0)
    total = weight.sum(1)
    mean = (weight * result.q).sum(1) / total.clamp_min(1e-9)
    return torch.where(total > 1e-6, mean, result.value)
