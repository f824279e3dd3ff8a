"""Trees as tensors: a whole search runs to its end on the device of the evaluator, which also has the game.

`Search` brings states, configs and evaluators of the other engines; here they become tensors, and results come back as
arrays. To keep results on the device, or for a game that exists in torch ops alone, use `windrow.tensor.TensorSearch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from windrow.config import SearchConfig
from windrow.engines import Tensor
from windrow.evaluators.cache import PredictionCache
from windrow.evaluators.port import EvaluatorPort
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.search.engine import Engine, Order, Roots
from windrow.search.growth import Schedule
from windrow.search.proofs import Proofs
from windrow.search.stats import SearchStats, make_stats
from windrow.tensor.evaluators.from_host import on_device
from windrow.tensor.game import outcome_numbers_of
from windrow.tensor.games.host_states import check_host_states, to_device
from windrow.tensor.games.tensor_version import tensor_version
from windrow.tensor.result import TensorResult
from windrow.tensor.rules import CAPABILITIES, NAME
from windrow.tensor.search import TensorSearch
from windrow.tensor.tree.counts import TreeCounts, count_trees, most_visited_lines
from windrow.tensor.tree.pools import NO_CHILD, PROVEN


class TensorEngine(Engine):
    """Grows B trees in lock-step."""

    name = NAME
    capabilities = CAPABILITIES
    training = "windrow.train.device:DeviceTraining"
    Options = Tensor

    def __init__(self, game: CoreGame, evaluator: object, config: SearchConfig, cache: PredictionCache | None) -> None:
        self._game, self._evaluator, self._config = game, evaluator, config
        # It is never called through this, but whoever calls networks wrongly hears of it as with every other engine.
        self._port = EvaluatorPort(game, evaluator, max_batch=None)
        self._options = config.options_for(Tensor)
        self._tensor_game: Any = check_host_states(tensor_version(game, self._options.game))
        self._made: TensorSearch | None = None
        self._num_leaves = config.leaves_per_tree or 1
        self._roots: list[State] = []
        self._planted: Any = None
        self._num_advances = 0
        self._is_new: list[bool] = []
        """Of every tree, whether its root has never been searched."""
        self._order = (0, 0)  # simulations, and the number of the search
        self._before = TreeCounts()
        self._after: TreeCounts | None = None  # counted when it is asked for
        self._result: TensorResult | None = None
        self._seconds = 0.0

    @property
    def version(self) -> int:
        return self._port.version

    @property
    def num_advances(self) -> int:
        return self._num_advances

    # --- What is to be searched -------------------------------------------------------------------------------

    def plant(self, roots: Sequence[State]) -> None:
        if self._made is None or self._made.num_trees != len(roots):
            self._made = None
            network, device = on_device(self._evaluator, self._tensor_game, self._options.device)
            # Room for `advance` and for searches that go on.
            self._made = TensorSearch(
                self._tensor_game, network, self._config, num_trees=len(roots), device=device, keeps_subtrees=True
            )
        self._roots = list(roots)
        self._planted = to_device(self._tensor_game, self._game, self._roots, self._search.device)
        self._result, self._is_new = None, [True] * len(self._roots)

    def advance(self, moves: npt.NDArray[np.int64]) -> None:
        """Move every root. After an error the trees are planted anew where they were."""
        played = moves.tolist()
        after = [self._game.apply(root, move) for root, move in zip(self._roots, played, strict=True)]
        before, is_new = self._roots, [True] * len(after)
        try:
            if self._planted is None:
                of_chance = [self._game.to_play(root) == CHANCE for root in before]
                edges = [self._outcome(m) if is_so else m for m, is_so in zip(played, of_chance, strict=True)]
                self._search.advance(torch.tensor(edges, device=self._search.device))
                is_new = cast("list[bool]", self._search.is_unevaluated.tolist())
            else:
                self.plant(after)
        except BaseException:  # also an interrupt after the last of these calls
            self.plant(before)
            raise
        # No call from here on, so that no interrupt comes between these two lines.
        self._roots, self._result, self._is_new = after, None, is_new
        self._num_advances += 1

    def begin(self, order: Order) -> None:
        """Take the order of a search, of all trees alike; `grow` carries it out.

        What cannot be searched is refused here, while the trees are as they were.
        """
        self._order = self._search.budget_of(int(order.budgets[0])), int(order.counts[0])
        self._before = TreeCounts() if self._planted is not None else count_trees(self._search.pools)
        self._seconds = 0.0

    def grow(self, should_stop: Callable[[], bool]) -> Iterator[None]:
        """Search, and wait for the device. After an error the trees are planted anew where they were."""
        start = perf_counter()
        budget, number = self._order
        try:
            result = self._search.run(self._planted, num_simulations=budget, number=number)
            result.check()
        except BaseException:
            self.plant(self._roots)
            raise
        self._planted, self._result, self._is_new = None, result, [False] * len(self._roots)
        self._after = None
        self._seconds = perf_counter() - start
        yield

    # --- What is known ----------------------------------------------------------------------------------------

    def roots(self) -> Roots:
        result = self._known()
        visits, priors, qs, values = (
            tensor.cpu().numpy() for tensor in (result.visits, result.prior, result.q, result.value)
        )
        # With a Gumbel root, lines go on from the action to play.
        found = most_visited_lines(self._search.pools, self._counts().max_depth, result.chosen_action)
        improved = None if result.improved_policy is None else result.improved_policy.cpu().numpy()
        chosen = None if result.chosen_action is None else result.chosen_action.cpu().numpy()
        proofs = None if result.proven is None else Proofs(*(tensor.cpu().numpy() for tensor in result.proven))
        return Roots(visits, priors, qs, values, None, found, improved, chosen, proofs)

    def stats(self) -> SearchStats:
        """What the last search took; select, encode and complete are not apart from the evaluator here."""
        before, now, result = self._before, self._counts(), self._known()
        rounds, num_trees = -(-self._order[0] // self._num_leaves), len(self._roots)
        evaluated = now.evaluated - before.evaluated
        totals = {
            "simulations": int((result.node_visits - result.visits_before).sum()),
            "evaluations": evaluated,
            "cache_hits": 0,
            "collisions": 0,
            "terminal_hits": now.terminal_hits - before.terminal_hits,
            "depth_sum": now.depth_sum - before.depth_sum,
            "max_depth": now.max_depth,
            "nodes": now.nodes,
            "bytes": self._search.num_bytes,
            "full_trees": int(result.is_full.sum()),
            "proven_nodes": now.proven - before.proven,
            "proven_trees": 0 if result.proven is None else int((~result.proven.values.isnan()).sum()),
        }
        return make_stats(
            self.name,
            totals,
            Schedule(leaves_per_tree=self._num_leaves),
            [0.0, 0.0, 0.0, self._seconds, 1 + rounds, evaluated],
            num_trees=num_trees,
            num_places=num_trees * (1 + rounds * self._num_leaves),
            cache_bytes=0,
        )

    def node(self, tree: int, moves: Sequence[int]) -> Any:
        """The node that `moves` lead to from the root of a tree, as `_core.NodeView`; None if it was never reached.

        How often each outcome of chance came is not known here.
        """
        if self._is_new[tree]:
            return None  # what the pools hold is of earlier roots
        pools, slot = self._search.pools, 0
        for move in moves:
            edge = self._outcome(move) if int(pools.to_play[tree, slot]) == CHANCE else move
            slot = int(pools.slot_of(pools.child[tree, slot, edge])) if 0 <= edge < pools.num_edges else NO_CHILD
            if slot == NO_CHILD:
                return None
        player, visits = int(pools.to_play[tree, slot]), int(pools.node_visits[tree, slot])
        row = pools.prior[tree, slot].cpu().numpy()
        actions = np.flatnonzero(row[: pools.num_edges] >= 0) if player >= 0 else np.zeros(0, np.int64)
        value = float(pools.value[tree, slot])
        proof = 0 if pools.proof is None else int(pools.proof[tree, slot])
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
            is_proven=proof > 0,
            distance=max(proof - 1, 0),
            edges_proven=(pools.child[tree, slot].cpu().numpy()[actions] >= PROVEN).astype(np.uint8),
        )

    def num_in_flight(self, tree: int) -> int:
        """Nothing is, outside of `grow`."""
        return 0

    def _outcome(self, move: int) -> int:
        """The edge of an outcome, which may have a number of its own on the host; -1 if there is none."""
        numbers = outcome_numbers_of(self._tensor_game)
        return numbers.index(move) if move in numbers else -1

    @property
    def _search(self) -> TensorSearch:
        assert self._made is not None
        return self._made

    def _known(self) -> TensorResult:
        assert self._result is not None
        return self._result

    def _counts(self) -> TreeCounts:
        if self._after is None:
            self._after = count_trees(self._search.pools)
        return self._after

    def close(self) -> None:
        self._made = self._planted = self._result = None
