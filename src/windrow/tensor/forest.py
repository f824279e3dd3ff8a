"""Trees on the device as `windrow.Search` sees a forest: what `engine="tensor"` is.

The facade brings states, configs and evaluators of the other engines; here they become tensors, and results come back
as arrays. A search is one piece: it begins, and it is over. Who wants results to stay on the device, or has a game in
torch ops only, uses `TensorSearch` itself.
"""

from __future__ import annotations

from time import perf_counter
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from windrow.config import SearchConfig
from windrow.errors import ConfigError, GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.answers import on_device
from windrow.tensor.census import Census, count, lines
from windrow.tensor.game import TensorGame
from windrow.tensor.games import GAMES, make_game
from windrow.tensor.games.host_states import HostStates
from windrow.tensor.pools import NO_CHILD
from windrow.tensor.result import TensorResult
from windrow.tensor.rules import check_config
from windrow.tensor.search import TensorSearch

IntArray: TypeAlias = npt.NDArray[np.int32]


def sibling_of(game: CoreGame) -> TensorGame:
    """The same game in torch ops."""
    if game.name not in GAMES:
        raise GameError(
            f"the tensor engine has no {game.name}: it knows {', '.join(sorted(GAMES))}. Write the game in torch ops "
            "(windrow.tensor.TensorGame) and search it with windrow.tensor.TensorSearch, or choose another engine"
        )
    return make_game(game.name, **game.options)


def check_facade(config: SearchConfig, *, has_cache: bool) -> None:
    """Raise `ConfigError` for what the facade offers and this engine has not."""
    check_config(config)
    if has_cache:
        raise ConfigError("the tensor engine has no prediction cache: leave `cache` out")
    if config.random_key != "tree":
        raise ConfigError('the tensor engine draws by tree: leave random_key="position" out')
    if config.trees_per_root != 1:
        raise ConfigError("the tensor engine has one tree per root: set trees_per_root=1")


class TensorForest:
    """B trees of one search object.

    Args:
        game: of the states that are planted; one that has a sibling in torch ops.
        evaluator: a `TorchEvaluator`, whose device is where everything runs; or one of those for tests.
        config: how to search.
        num_trees: B.
    """

    def __init__(self, game: CoreGame, evaluator: object, config: SearchConfig, num_trees: int) -> None:
        self._game, self.num_trees = game, num_trees
        rules = sibling_of(game)
        assert isinstance(rules, HostStates)
        self._rules: Any = rules
        network, device = on_device(evaluator, rules)
        # Room for `advance` and for searches that go on.
        self._search = TensorSearch(rules, network, config, num_trees=num_trees, device=device, keeps_subtrees=True)
        self._num_leaves = config.leaves_per_tree or 1
        self._roots: list[State] = []
        self._planted: Any = None
        self._is_new = [True] * num_trees
        """Of every tree, whether its root has been searched never yet."""
        self._order = (0, 0)  # simulations, and the number of the search
        self._before = self._now = Census()
        self._result: TensorResult | None = None
        self._seconds, self._num_batches, self._num_rows = 0.0, 0, 0

    # --- What is to be searched -------------------------------------------------------------------------------

    def plant(self, roots: list[State]) -> None:
        """Plant all trees anew."""
        self._roots = list(roots)
        rows = np.asarray(self._game.rows_of(self._roots), np.uint8)
        self._planted = self._rules.from_host(rows, self._search.device)
        self._result, self._is_new = None, [True] * self.num_trees

    def advance_many(self, trees: IntArray, moves: npt.NDArray[np.int64]) -> None:
        """Move every root; `trees` are all trees, in order. After an error they are planted anew where they were."""
        assert len(trees) == self.num_trees
        played = moves.tolist()
        after = [self._game.apply(root, move) for root, move in zip(self._roots, played, strict=True)]
        if self._planted is None:
            of_chance = [self._game.to_play(root) == CHANCE for root in self._roots]
            edges = [self._outcome(m) if is_so else m for m, is_so in zip(played, of_chance, strict=True)]
            try:
                self._search.advance(torch.tensor(edges, device=self._search.device))
                is_new = cast("list[bool]", self._search.pools.is_new.tolist())
            except BaseException:
                self.plant(self._roots)
                raise
            self._roots, self._result, self._is_new = after, None, is_new
        else:
            self.plant(after)

    def begin_many(
        self,
        trees: IntArray,
        num_simulations: npt.NDArray[np.int64],
        keys: npt.NDArray[np.uint32],
        moves: npt.NDArray[np.uint32],
        explores: npt.NDArray[np.bool_],
        model_version: int = 0,
    ) -> None:
        """Say what the next search is to be, of all trees alike; `grow` carries it out.

        What cannot be searched is refused here, while the trees are as they were.
        """
        assert len(trees) == len(keys) == len(explores) == self.num_trees
        self._order = self._search.budget_of(int(num_simulations[0])), int(moves[0])
        self._before = Census() if self._planted is not None else count(self._search.pools)

    def grow(self) -> None:
        """Search, and wait for the device. After an error the trees are planted anew where they were."""
        start = perf_counter()
        budget, number = self._order
        try:
            result = self._search.run(self._planted, num_simulations=budget, number=number)
            result.check()
        except BaseException:
            self.plant(self._roots)
            raise
        self._planted, self._result, self._is_new = None, result, [False] * self.num_trees
        self._now = count(self._search.pools)
        self._seconds += perf_counter() - start
        self._num_batches += 1 + -(-budget // self._num_leaves)
        self._num_rows += self._now.evaluated - self._before.evaluated

    # --- What is known ----------------------------------------------------------------------------------------

    @property
    def num_places(self) -> int:
        """Rows that the evaluator was given in the last search, those of nobody included."""
        return self.num_trees * (1 + -(-self._order[0] // self._num_leaves) * self._num_leaves)

    def refresh(self) -> None:
        """Everything is known already."""

    def totals(self, trees: IntArray) -> dict[str, int]:
        """What the last search did, and what the trees hold now."""
        before, now, result = self._before, self._now, self._known()
        simulations = int((result.node_visits - result.visits_before).sum())
        evaluations = now.evaluated - before.evaluated
        return {
            "simulations": simulations,
            "evaluations": evaluations,
            "cache_hits": 0,
            "collisions": 0,
            "terminal_hits": now.terminal_hits - before.terminal_hits,
            "depth_sum": now.depth_sum - before.depth_sum,
            "max_depth": now.max_depth,
            "nodes": now.nodes,
            "bytes": self._search.num_bytes,
            "full_trees": int(result.is_full.sum()),
        }

    def roots(self, trees: IntArray) -> tuple[Any, Any, Any, Any]:
        """Visits, priors and Q [B, A], and mean values [B]."""
        result = self._known()
        visits, priors, qs, values = (
            tensor.cpu().numpy() for tensor in (result.visits, result.prior, result.q, result.value)
        )
        return visits, priors, qs, values

    def player_values(self, trees: IntArray) -> Any:
        """Games here are between two players, of whom one value says it all."""
        raise AssertionError

    def lines(self, trees: IntArray) -> list[list[int]]:
        """The most visited line of each tree; with a Gumbel root, from the action to play on."""
        return lines(self._search.pools, self._now.max_depth, self._known().chosen_action)

    def gumbel_roots(self, trees: IntArray) -> tuple[Any, Any]:
        """Improved policies [B, A] and the actions to play [B]."""
        result = self._known()
        assert result.improved_policy is not None and result.chosen_action is not None
        return result.improved_policy.cpu().numpy(), result.chosen_action.cpu().numpy()

    def node(self, tree: int, moves: list[int]) -> Any:
        """The node that `moves` lead to from the root of a tree, as `_core.NodeView`; None if it was never reached.

        How often each outcome of chance came is not known here.
        """
        if self._is_new[tree]:
            return None  # what the pools hold is of earlier roots
        pools, slot = self._search.pools, 0
        for move in moves:
            edge = self._outcome(move) if int(pools.to_play[tree, slot]) == CHANCE else move
            slot = int(pools.child[tree, slot, edge]) if 0 <= edge < pools.num_edges else NO_CHILD
            if slot == NO_CHILD:
                return None
        player, visits = int(pools.to_play[tree, slot]), int(pools.node_visits[tree, slot])
        row = pools.prior[tree, slot].cpu().numpy()
        actions = np.flatnonzero(row[: pools.num_edges] >= 0) if player >= 0 else np.zeros(0, np.int64)
        value = float(pools.value[tree, slot])
        return SimpleNamespace(
            kind={TERMINAL: "over", CHANCE: "chance"}.get(player, "expanded"),
            to_play=player,
            visits=visits,
            in_flight=0,
            value=-value if player == 1 else value,
            value_sum=float(pools.node_sum[tree, slot]),
            player_value_sums=[],
            actions=actions,
            priors=row[actions],
            edge_visits=pools.visits[tree, slot].cpu().numpy()[actions],
            edge_value_sums=pools.value_sum[tree, slot].cpu().numpy()[actions],
            edges_in_flight=np.zeros(len(actions), np.int32),
        )

    def num_in_flight(self, tree: int) -> int:
        """Nothing is, outside of `grow`."""
        return 0

    @property
    def num_batches_out(self) -> int:
        """Nothing is, outside of `grow`."""
        return 0

    def seconds(self) -> tuple[float, float, float]:
        """Select, encode and complete are not apart from the evaluator here."""
        return 0.0, 0.0, 0.0

    def evaluated(self) -> tuple[float, int, int]:
        """Seconds on the device, calls and rows of the evaluator, so far."""
        return self._seconds, self._num_batches, self._num_rows

    def _outcome(self, move: int) -> int:
        """The edge of an outcome, which may have a number of its own on the host; -1 if there is none."""
        numbers: tuple[int, ...] = getattr(self._rules, "outcome_numbers", ())
        return move if not numbers else numbers.index(move) if move in numbers else -1

    def _known(self) -> TensorResult:
        assert self._result is not None
        return self._result
