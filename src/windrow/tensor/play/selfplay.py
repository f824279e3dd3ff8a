"""Self-play on the device: all games run in lock-step, and a new game replaces each finished one.

    selfplay = TensorSelfPlay(game, network, search_config, replay, device=device, generator=generator)
    for _ in range(1000):
        selfplay.step()  # one move of every game, written to the replay; nothing waits for the device
    print(selfplay.read_stats())

A game keeps its slot until it ends. Its result then goes to the replay, and a new game starts in the slot.
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
    """Self-play of B games, one move of all games at a time. Every move starts a new search tree.

    Chance moves are played at once, so a player is to move in every recorded position.

    Args:
        game: the rules.
        evaluator: as for `TensorSearch`; its weights may change between two moves.
        search: settings of the search: budget, noise or `root="gumbel"`, temperature, seed. With `prove`, only moves
            that no proven move beats are played, and the replay needs `prove` too.
        replay: buffer for the positions and results; its slots are the games.
        device: device of the games, the same as the replay's.
        generator: generator of all random numbers outside the search, on the replay's device.
        budgets: other numbers of simulations that `step` may be called with. Each has its own trees, because a Gumbel
            root divides a fixed budget.
        opening_plies: maximum number of random moves at the start of a game. They are not recorded.
        max_plies: number of recorded moves after which a game is counted as a draw.
        temperature_plies: number of moves from the start that are drawn at the search's temperature. A Gumbel root uses
            its noise instead.
        late_temperature: temperature of all later moves. 0: the best action is played.
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
        if search.prove != replay.prove:
            raise ConfigError(
                f"the search has prove={search.prove}, so the replay needs it too: TensorReplay(prove={search.prove})"
            )
        self.game, self.replay, self.num_slots = game, replay, replay.num_slots
        self.num_simulations: int = search.num_simulations
        self._temperature, self._late_temperature = search.temperature, late_temperature
        self._temperature_plies, self._max_plies = temperature_plies, max_plies
        self._generator = generator
        all_budgets = sorted({search.num_simulations, *budgets})
        # With equal numbers of slots all searches share the same programs, which are compiled once.
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
        self._num_moves = torch.zeros_like(self._ply)  # recorded moves of the current game
        self._number = torch.zeros_like(self._ply)
        self._sums = torch.zeros(len(_STATS), dtype=torch.float64, device=device)

    @property
    def states(self) -> Any:
        """The B positions that the next `step` searches."""
        return self._state

    def prepare(self) -> None:
        """Compile and capture everything before the first `step`."""
        self._openings.prepare()
        for search in self._searches.values():
            search.run(self._state)

    @torch.no_grad()
    def step(self, num_simulations: int | None = None) -> TensorResult:
        """Search and play one move of every game. The positions, and the results of games that end, go to the replay.

        Args:
            num_simulations: number of simulations of this search; one of `budgets`, or None for the search's own.
        """
        budget = self.num_simulations if num_simulations is None else num_simulations
        if budget not in self._searches:
            known = ", ".join(map(str, self._searches))
            raise ConfigError(f"this self-play was made for {known} simulations, not {budget}: add it to `budgets`")
        game = self.game
        result = self._searches[budget].run(self._state)
        action = self._draw(result)
        is_proven = None if result.proven is None else ~result.proven.values.isnan()
        self.replay.write(self._state, target_of(result), value_of(result), self._number, is_proven)
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
        """Return the counts since the last call. Blocks until the device has finished.

        "games" and "game_moves" count the games that ended and their recorded moves, "first_player_wins" and "draws"
        their results, and "bad_trees" the searches in which the evaluator returned a NaN, an infinity or a value
        outside [-1, 1].
        """
        numbers: list[float] = self._sums.cpu().numpy().tolist()
        self._sums.zero_()
        return dict(zip(_STATS, numbers, strict=True))

    def _draw(self, result: TensorResult) -> Tensor:
        """Return the moves to play, [B] int64."""
        if result.improved_policy is not None:
            return result.best_action
        early, late = (
            self._draw_at(result, temperature) for temperature in (self._temperature, self._late_temperature)
        )
        return torch.where(self._ply < self._temperature_plies, early, late)

    def _draw_at(self, result: TensorResult, temperature: float) -> Tensor:
        if temperature == 0:
            return result.best_action
        policy = result.policy_at(temperature)
        # The argmax of probabilities divided by exponential draws is a sample from the probabilities.
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
        """Replace the games that are over by new ones."""
        fresh, plies = self._openings.take(is_over)
        self._state = choose(is_over, fresh, after)
        self._ply = torch.where(is_over, plies, self._ply)
        self._num_moves = torch.where(is_over, 0, self._num_moves)
        self._number = torch.where(is_over, (self._number + 1) % self.replay.max_games, self._number)


def target_of(result: TensorResult) -> Tensor:
    """Return the policy target [B, A]: the improved policy of a Gumbel root, otherwise the shares of visits."""
    return result.policy_at(1.0) if result.improved_policy is None else result.improved_policy


def value_of(result: TensorResult) -> Tensor:
    """Return the search's value [B] of the positions, for the player to move.

    A Gumbel root spends half of its visits on moves that it then rejects, so the mean over visits is too low. The value
    is then the mean of the tried moves' values, weighted by the improved policy.
    """
    if result.improved_policy is None:
        return result.value
    weight = torch.where(result.visits > 0, result.improved_policy, 0.0)
    total = weight.sum(1)
    mean = (weight * result.q).sum(1) / total.clamp_min(1e-9)
    mean = torch.where(total > 1e-6, mean, result.value)
    return mean if result.proven is None else torch.where(result.proven.values.isnan(), mean, result.value)
