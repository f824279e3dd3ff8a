"""The search of B positions in lock-step on one device.

A simulation has three parts: the game makes the selected leaves, the evaluator evaluates them, and one kernel completes
the simulation and selects the next leaves. On a GPU the three parts are captured once in a CUDA graph. A search is then
a sequence of graph replays that the host only starts.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.errors import ConfigError, EvaluatorError, GameError, SearchError
from windrow.games.protocol import CHANCE
from windrow.tensor.device import find_device
from windrow.tensor.evaluators.autotuning import tuned_on_the_device
from windrow.tensor.evaluators.network import Evaluator, Network, WeightCopy
from windrow.tensor.evaluators.tower import fuse
from windrow.tensor.game import TensorGame, as_chance_game, check_game, is_chance, like, tensors_of
from windrow.tensor.ops import load_kernels
from windrow.tensor.result import TensorResult
from windrow.tensor.rules import Rules, check_config
from windrow.tensor.tree.bounds import surest_actions
from windrow.tensor.tree.chance import bytes_of_chance, make_chance
from windrow.tensor.tree.gumbel_roots import make_roots
from windrow.tensor.tree.leaves import Leaves
from windrow.tensor.tree.memory import check_memory
from windrow.tensor.tree.pools import NodeFields, Pools, make_pools, slots_for
from windrow.tensor.tree.proofs import read_root_proofs
from windrow.tensor.tree.reuse import advance
from windrow.tensor.tree.root_priors import RootPriors
from windrow.tensor.tree.under_way import Answer, bytes_under_way, make_in_flight, make_root_rows, make_walks

KernelsName: TypeAlias = Literal["auto", "triton", "torch"]

_SEARCHES_KEPT = 3
_WARM_UPS = 2
_STEPS_PER_GRAPH = (32, 8, 1)
"""Numbers of simulations per graph, the largest first. Larger graphs save the short pause between two graphs."""


class _Graphs:
    """The captured CUDA graphs: the evaluation of roots, and simulations by their number per graph."""

    def __init__(self, max_steps: int) -> None:
        self.roots = torch.cuda.CUDAGraph()
        self.steps = {steps: torch.cuda.CUDAGraph() for steps in _STEPS_PER_GRAPH if steps <= max_steps or steps == 1}


class TensorSearch:
    """A search of B positions of a `TensorGame` at once, on one device.

    Args:
        game: batched torch functions; see `windrow.tensor.TensorGame`.
        evaluator: a module or function from observations [B, ...] (as keyword arguments if they are named) to logits
            [B, A] and values [B] for the player to move. A module is moved to the device. Its weights are not copied:
            the next search sees weights that a learner changes in place. The module may be compiled.
        config: settings of the search.
        num_trees: number of trees, B.
        device: "cuda", "cpu" or "auto", which is the GPU if there is one.
        keeps_subtrees: reserve memory for the nodes that `advance` keeps, three times that of one search.
        max_nodes: number of node slots per tree. None: chosen from the number of simulations and `keeps_subtrees`. A
            tree without a free slot ends its search early; `result.is_full` then is True.
        kernels: "triton", "torch" (the same functions in plain torch ops) or "auto", which is Triton on a GPU.
        is_compiled: compile the game with torch.compile. None: yes on a GPU.
        is_captured: capture a simulation in a CUDA graph. None: yes on a GPU with Triton's kernels.
        is_fused: evaluate a `windrow.nets.ResNet` in one kernel. None: if the network is in bfloat16 and fits, the GPU
            is a Hopper, and the answers agree with those in float32; `fusion` says why or why not. True: raise
            `ConfigError` if this is not possible. A compiled module is never fused.

    The first `run` compiles and captures. Use a search object from one thread only.
    """

    def __init__(
        self,
        game: TensorGame,
        evaluator: Evaluator,
        config: SearchConfig | None = None,
        *,
        num_trees: int,
        device: str | torch.device = "auto",
        keeps_subtrees: bool = False,
        max_nodes: int | None = None,
        kernels: KernelsName = "auto",
        is_compiled: bool | None = None,
        is_captured: bool | None = None,
        is_fused: bool | None = None,
    ) -> None:
        self.game, self.config = game, config or SearchConfig()
        check_config(self.config)
        check_game(game)
        if num_trees < 1:
            raise ConfigError(f"num_trees must be at least 1, not {num_trees}")
        self.num_trees, self.device = num_trees, find_device(device)
        is_gpu = self.device.type == "cuda"
        if kernels not in ("auto", "triton", "torch"):
            raise ConfigError(f'kernels must be "auto", "triton" or "torch", not {kernels!r}')
        self.kernels = ("triton" if is_gpu else "torch") if kernels == "auto" else kernels
        self._kernels = load_kernels(self.kernels)
        self._is_captured = (is_gpu and self.kernels == "triton") if is_captured is None else is_captured
        if self._is_captured and not (is_gpu and self.kernels == "triton"):
            raise ConfigError("only Triton kernels on a GPU can be captured: remove is_captured")
        self.num_simulations = self.budget_of(None)
        self.keeps_subtrees = keeps_subtrees
        room = slots_for(game, (_SEARCHES_KEPT if keeps_subtrees else 1) * self.num_simulations)
        self.max_nodes = room if max_nodes is None else max_nodes
        if self.max_nodes < slots_for(game, min(self.num_simulations, 1)):
            raise ConfigError(f"max_nodes={self.max_nodes} leaves no room for a search: increase it, or remove it")
        self._num_leaves = self.config.leaves_per_tree or 1
        more, max_memory = NodeFields.of(self.config), self.config.max_memory
        check_memory(game, num_trees, self.max_nodes, self._num_leaves, self.device, max_memory, more)
        self._rules = Rules.of(self.config)
        self.fusion = "one kernel was not asked for"
        """Agreement of the fused kernel with float32, or the reason why the network is not fused."""
        if is_fused is not False and not isinstance(evaluator, WeightCopy):
            evaluator = self._fuse(evaluator, is_required=bool(is_fused))
        self._network = Network(evaluator, self.device, game.num_actions)
        with torch.no_grad():
            self._pools = make_pools(game, num_trees, self.max_nodes, self.device, more)
            self._walks = make_walks(self._pools, self._num_leaves)
            self._root_rows = make_root_rows(self._pools, self._walks)
            self._in_flight = make_in_flight(self.config, self._pools, self._num_leaves)
            rules = as_chance_game(game)
            self._chance = None
            if rules is not None:
                self._chance = make_chance(
                    rules,
                    seed=self.config.seed,
                    num_trees=num_trees,
                    num_leaves=self._num_leaves,
                    device=self.device,
                )
            self._leaves = Leaves(
                game,
                self._pools,
                self._walks,
                self._chance,
                dtype=self._network.dtype,
                memory_format=self._network.memory_format,
                is_compiled=is_gpu if is_compiled is None else is_compiled,
            )
        self._root_priors = RootPriors(self.config, self._pools, self._kernels.noise)
        self._gumbel = None
        if self.config.root == "gumbel":
            self._gumbel = make_roots(self.config, num_trees, game.num_actions, self.device)
        self._graphs: _Graphs | None = None
        self._is_planted = False
        self._num_searches = 0

    @property
    def num_bytes(self) -> int:
        """Memory of the trees on the device, in bytes."""
        under_way = bytes_under_way(self._pools.stride, self.max_nodes, self._num_leaves)
        of_chance = bytes_of_chance(self._num_leaves) if self._chance else 0
        return self._pools.num_bytes + self.num_trees * (under_way + of_chance)

    @property
    def pools(self) -> Pools:
        """The trees as tensors, for inspection."""
        return self._pools

    @property
    def is_unevaluated(self) -> Tensor:
        """[B] bool: new roots, made by `advance` or planted, that the next search has to evaluate first."""
        return self._root_rows.is_new

    @torch.no_grad()
    def run(
        self,
        states: Any = None,
        *,
        planted: Tensor | None = None,
        num_simulations: int | None = None,
        number: int | None = None,
    ) -> TensorResult:
        """Search B positions, one per tree. Once everything is compiled, this does not wait for the device.

        Args:
            states: a batch of B states, as `game.initial` and `game.step` return them. Finished games and positions
                where chance is to move are allowed; their trees stay empty. None: search the current roots again, and
                keep their trees.
            planted: [B] bool, the trees that start anew from `states`; the other trees continue from their current
                roots. None: all trees start anew if `states` is given.
            num_simulations: number of simulations of this search, at most the config's. None: the config's.
            number: number of this search, which its random numbers depend on. None: the previous number plus one.
        """
        if number is not None:
            self._num_searches = number
        budget = self.budget_of(num_simulations)
        if states is None and (planted is not None or not self._is_planted):
            raise SearchError("there is no root yet: run(states) with one state per tree")
        if planted is not None and not self._is_planted:
            raise SearchError("the first search plants every tree: remove `planted`")
        if self._is_captured and self._graphs is None:
            self._plant(self.game.initial(self.num_trees, self.device), None)
            self._graphs = self._capture()
        if states is not None:
            self._plant(states, planted)
        try:
            result = self._search(budget)
        except BaseException:
            # The trees may hold an unfinished simulation, so they start anew.
            self._clear()
            raise
        self._is_planted = True
        return result

    def _search(self, budget: int) -> TensorResult:
        if self._graphs is None:
            self._evaluate_roots()
        else:
            self._graphs.roots.replay()
        self._root_priors.prepare(self._num_searches)
        visits_before = self._pools.node_visits[:, 0].clone()
        self._begin(budget)
        self._num_searches += 1
        if budget > 0:
            self._select()
        self._simulate_many(-(-budget // self._num_leaves))
        return self._result(budget, visits_before)

    @torch.no_grad()
    def advance(self, actions: Tensor) -> None:
        """Play a move in every tree: the child under `actions` [B] becomes the root and keeps its subtree.

        Where chance is to move, pass the outcome: the roll of the dice, or an outcome drawn from `game.outcomes` at
        `root_states()`. A negative number leaves its tree unchanged.

        Moves must be legal. This is not checked, because the host does not wait for the device. A finished game stays
        unchanged: start a new one in its tree with `run(states, planted=...)`.
        """
        if not self._is_planted:
            raise SearchError("there is no root yet: run(states) first")
        if not self.keeps_subtrees:
            raise SearchError("advance needs memory for the kept subtrees: make the search with keeps_subtrees=True")
        if tuple(actions.shape) != (self.num_trees,) or actions.device != self.device or actions.is_floating_point():
            raise SearchError(
                f"actions must be ({self.num_trees},) integers on {self.device}, not {tuple(actions.shape)} "
                f"{actions.dtype} on {actions.device}"
            )
        is_new, is_moved = advance(self.game, self._pools, self._leaves.template, actions, self.is_unevaluated)
        self._set_new(is_new)
        self._root_priors.note_moved(is_moved)

    def root_states(self) -> Any:
        """Return a copy of the root positions."""
        pools = self._pools
        roots = [pool.view(self.num_trees, self.max_nodes, *pool.shape[1:])[:, 0].clone() for pool in pools.states]
        return like(self._leaves.template, roots)

    def budget_of(self, num_simulations: int | None) -> int:
        """Return the number of simulations of a search; None is the config's number.

        Raises:
            ConfigError: the number is larger than the config's, or differs from it with a Gumbel root.
        """
        most = self.config.num_simulations
        assert most is not None
        budget = most if num_simulations is None else num_simulations
        if not 0 <= budget <= most:
            raise ConfigError(f"num_simulations must be from 0 to the config's {most}, not {budget}")
        if budget != most and self.config.root == "gumbel":
            raise ConfigError(
                "the Gumbel root divides the config's number of simulations: make a TensorSearch for each "
                "num_simulations"
            )
        return budget

    def _fuse(self, evaluator: Evaluator, *, is_required: bool) -> Evaluator:
        """Return the evaluator as one kernel if that is possible, otherwise unchanged."""
        if self.kernels == "triton":
            fused, self.fusion = fuse(evaluator, self.game, self.device)
            if fused is not None:
                return fused
        else:
            self.fusion = 'the kernel needs Triton, but kernels="torch" is set'
        if is_required:
            raise ConfigError(f"is_fused=True is set, but the network cannot be one kernel: {self.fusion}")
        return evaluator

    # --- One simulation ---------------------------------------------------------------------------------------------

    def _simulate(self) -> None:
        """Evaluate the selected leaves, complete them, and select again: one simulation of every tree, or K."""
        answer = self._answer(*self._leaves.describe_new())
        if self._in_flight is not None:
            self._kernels.rounds.complete(self._pools, answer, self._walks, self._in_flight)
            self._select()
        elif self._gumbel is None:
            self._kernels.one_leaf.complete_and_select(self._pools, answer, self._rules, self._walks, self._chance)
        else:
            self._kernels.one_leaf.complete(self._pools, answer, self._walks)
            self._select()

    def _select(self) -> None:
        pools, rules, walks, chance = self._pools, self._rules, self._walks, self._chance
        if self._in_flight is not None and chance is not None:
            # A walk may reach a chance node of the previous walk, so the game makes the leaves of each walk in turn.
            for walk in range(self._num_leaves):
                self._kernels.rounds.select(pools, rules, walks, self._in_flight, chance, walk)
                self._leaves.make(walk)
        elif self._in_flight is not None:
            self._kernels.rounds.select(pools, rules, walks, self._in_flight)
        elif self._gumbel is None:
            self._kernels.one_leaf.select(pools, rules, walks, None, chance)
        else:
            self._kernels.gumbel.choose(pools, self._gumbel)
            self._kernels.one_leaf.select(pools, rules, walks, self._gumbel.root_action, chance)

    def _simulate_many(self, count: int) -> None:
        if self._graphs is None:
            for _ in range(count):
                self._simulate()
            return
        for steps, graph in self._graphs.steps.items():
            for _ in range(count // steps):
                graph.replay()
            count %= steps

    def _evaluate_roots(self) -> None:
        """Evaluate the new roots. Every search starts here, so copies of the weights are updated here."""
        self._network.refresh()
        answer = self._answer(*self._leaves.describe_roots())
        self._kernels.one_leaf.complete(self._pools, answer, self._root_rows)
        if self._chance is not None:
            # `describe` marks these roots as finished games. Here they must differ, since an outcome may be played.
            of_chance = is_chance(self.game, self.root_states())
            self._pools.to_play[:, 0].masked_fill_(of_chance, CHANCE)
        # A search of the same roots again has nothing to evaluate.
        self.is_unevaluated.zero_()

    def _answer(self, to_play: Tensor, result: Tensor, legal: Tensor, observations: Any) -> Answer:
        logits, values = self._network(observations)
        return Answer(to_play, result, legal, logits, values)

    # --- A search ---------------------------------------------------------------------------------------------------

    def _plant(self, states: Any, planted: Tensor | None) -> None:
        """Make `states` the roots. Their node data is written when they are evaluated."""
        pools = self._pools
        tensors = tensors_of(states)
        if len(tensors) != len(pools.states):
            raise GameError(f"a state of this game has {len(pools.states)} tensors, not {len(tensors)}")
        if planted is not None and (planted.dtype != torch.bool or tuple(planted.shape) != (self.num_trees,)):
            raise SearchError(f"planted must be ({self.num_trees},) bool, not {tuple(planted.shape)} {planted.dtype}")
        for pool, tensor in zip(pools.states, tensors, strict=True):
            if tensor.shape != (self.num_trees, *pool.shape[1:]) or tensor.dtype != pool.dtype:
                raise GameError(
                    f"states must be {(self.num_trees, *pool.shape[1:])} {pool.dtype}, not {tuple(tensor.shape)} "
                    f"{tensor.dtype}: one row per tree"
                )
            if tensor.device != pool.device:
                raise GameError(f"states are on {tensor.device}, the search is on {pool.device}: move one of them")
            roots = pool.view(self.num_trees, self.max_nodes, *pool.shape[1:])[:, 0]
            if planted is not None:
                tensor = torch.where(planted.view(-1, *[1] * (tensor.dim() - 1)), tensor, roots)
            roots.copy_(tensor)
        # Roots made by `advance` still have to be evaluated.
        self._set_new(None if planted is None else planted | self.is_unevaluated)
        self._root_priors.note_moved(planted)

    def _set_new(self, is_new: Tensor | None) -> None:
        """Mark the roots whose evaluation is under way, in slot 0. `is_new` is [B] bool; None: all roots."""
        rows = self._root_rows
        if is_new is None:
            rows.is_new.fill_(True)
            rows.slot.zero_()
        else:
            rows.is_new.copy_(is_new)
            rows.slot.copy_(torch.where(is_new, 0, self.max_nodes - 1))

    def _end_round(self) -> None:
        """Discard the leaves that the last simulation selected."""
        self._root_rows.clear(self.max_nodes - 1)
        self._pools.is_bad.zero_()
        if self._chance is not None:
            self._chance.is_overdrawn.zero_()

    def _clear(self) -> None:
        """Reset after an error: no roots, nothing in flight."""
        self._is_planted = False
        self._end_round()
        if self._in_flight is not None:
            self._in_flight.edges.zero_()
            self._in_flight.nodes.zero_()

    def _begin(self, budget: int) -> None:
        if self._in_flight is not None:
            self._in_flight.remaining.fill_(budget)
        if self._chance is not None:
            self._chance.key[2].fill_(self._num_searches)
            self._chance.num_started.zero_()
        roots = self._gumbel
        if roots is None:
            return
        roots.before.copy_(self._pools.visits[:, 0, : self.game.num_actions])
        roots.num_started.zero_()
        if roots.scale:
            self._kernels.gumbel.draw_noise(roots, seed=self.config.seed, num_searches=self._num_searches)

    def _result(self, budget: int, visits_before: Tensor) -> TensorResult:
        pools, num_actions = self._pools, self.game.num_actions
        proven = None if pools.proof is None else read_root_proofs(pools)
        improved = chosen = None
        if self._gumbel is not None:
            self._kernels.gumbel.conclude(pools, self._gumbel, None if proven is None else proven.playable)
            improved, chosen = self._gumbel.policy.clone(), self._gumbel.best_action.to(torch.int64)
            if proven is not None:
                # Where the value is proven, one action is playable.
                improved = torch.where(proven.values.isnan()[:, None], improved, proven.playable.to(improved.dtype))
        if self.config.choose == "lcb":
            chosen = surest_actions(pools, self._rules.lcb_deviations, None if proven is None else proven.playable)
        result = TensorResult(
            visits=pools.visits[:, 0, :num_actions].clone(),
            value_sum=pools.value_sum[:, 0, :num_actions].clone(),
            raw_prior=pools.root_priors.clone(),
            node_sum=pools.node_sum[:, 0].clone(),
            node_visits=pools.node_visits[:, 0].clone(),
            visits_before=visits_before,
            num_simulations=budget,
            is_bad=pools.is_bad.clone(),
            is_overdrawn=None if self._chance is None else self._chance.is_overdrawn.clone(),
            temperature=self.config.temperature,
            improved_policy=improved,
            chosen_action=chosen,
            proven=proven,
        )
        self._end_round()
        return result

    # --- The graphs -------------------------------------------------------------------------------------------------

    def _capture(self) -> _Graphs:
        """Compile everything by running it, then capture graphs of the root evaluation and of simulations."""
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        graphs = _Graphs(max_steps=-(-self.num_simulations // self._num_leaves))
        try:
            with self._network.evaluating(), torch.cuda.stream(stream):
                with tuned_on_the_device():
                    for _ in range(_WARM_UPS):
                        self._end_round()
                        self._set_new(None)
                        self._evaluate_roots()
                        self._begin(1)
                        self._select()
                        self._simulate()
                torch.cuda.synchronize(self.device)
                with torch.cuda.graph(graphs.roots, stream=stream):
                    self._evaluate_roots()
                pool = graphs.roots.pool()
                for steps, graph in graphs.steps.items():
                    with torch.cuda.graph(graph, stream=stream, pool=pool):
                        for _ in range(steps):
                            self._simulate()
        except torch.cuda.OutOfMemoryError as error:
            raise SearchError(
                f"the evaluator ran out of memory on {self.num_trees * self._num_leaves} positions; the trees take "
                f"{self.num_bytes / 2**30:.2f} GiB: use a smaller num_trees"
            ) from error
        except RuntimeError as error:
            if "captur" not in str(error):
                raise
            raise EvaluatorError(
                "the evaluator or the game makes the host wait for the GPU, or copies data from the host, so the "
                f"simulation cannot be captured in a CUDA graph: {str(error).splitlines()[0]}. Keep all data on the "
                "device, or set is_captured=False"
            ) from error
        self._end_round()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        return graphs
