"""Searches of B positions in lock-step, on one device.

One simulation is: the game makes the leaves that were selected, the evaluator looks at them, and one kernel completes
that simulation and selects the next. On a GPU the three are captured once in a CUDA graph; a search then is a row of
replays that the host only starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.errors import ConfigError, EvaluatorError, GameError, MissingExtraError, SearchError
from windrow.tensor.advance import Leaves
from windrow.tensor.game import TensorGame, check_game, tensors_of
from windrow.tensor.memory import check_memory
from windrow.tensor.pools import make_pools
from windrow.tensor.result import TensorResult
from windrow.tensor.rules import Rules, check_config
from windrow.tensor.twins import Answer

Kernels: TypeAlias = Literal["auto", "triton", "torch"]
Network: TypeAlias = Callable[..., tuple[Tensor, Tensor]]

_SPARE_SLOTS = 2
"""Beside one slot per simulation: the root's and the one that is nobody's."""
_WARM_UPS = 2


class TensorSearch:
    """Searches B positions of a `TensorGame` at once, all on one device.

    Args:
        game: batched torch functions; see `windrow.tensor.TensorGame`.
        evaluator: a module or function from observations [B, ...] (by name if there are several) to logits [B, A] and
            values [B] for the player to move. A module is moved to the device; its weights are used where they are, so
            what a learner changes in place the next search sees. Compile it or not as you like.
        config: how to search.
        num_trees: B.
        device: "auto" is the GPU if there is one.
        max_nodes: slots per tree; by default what one search from a new root needs. A tree without a free slot ends its
            search early.
        kernels: "triton" or "torch", the plain twins; "auto" takes Triton on a GPU.
        is_compiled: translate the game with torch.compile; None does so on a GPU.
        is_captured: capture a simulation in a CUDA graph; None does so on a GPU with Triton's kernels.

    The first `run` compiles and captures. One search object belongs to one thread.
    """

    def __init__(
        self,
        game: TensorGame,
        evaluator: Network | torch.nn.Module,
        config: SearchConfig | None = None,
        *,
        num_trees: int,
        device: str | torch.device = "auto",
        max_nodes: int | None = None,
        kernels: Kernels = "auto",
        is_compiled: bool | None = None,
        is_captured: bool | None = None,
    ) -> None:
        self.game, self.config = game, config or SearchConfig()
        check_config(self.config)
        check_game(game)
        if num_trees < 1:
            raise ConfigError(f"num_trees must be at least 1, not {num_trees}")
        self.num_trees, self.device = num_trees, _find_device(device)
        is_gpu = self.device.type == "cuda"
        if kernels not in ("auto", "triton", "torch"):
            raise ConfigError(f'kernels must be "auto", "triton" or "torch", not {kernels!r}')
        self.kernels = ("triton" if is_gpu else "torch") if kernels == "auto" else kernels
        self._ops = _load_kernels(self.kernels)
        self._is_captured = (is_gpu and self.kernels == "triton") if is_captured is None else is_captured
        if self._is_captured and not (is_gpu and self.kernels == "triton"):
            raise ConfigError("only Triton's kernels on a GPU can be captured: leave is_captured out")
        self.num_simulations = self._budget(None)
        self.max_nodes = self.num_simulations + _SPARE_SLOTS if max_nodes is None else max_nodes
        if self.max_nodes < _SPARE_SLOTS + min(self.num_simulations, 1):
            raise ConfigError(f"max_nodes={self.max_nodes} leaves no room for a search")
        check_memory(game, num_trees, self.max_nodes, self.device, self.config.max_memory)
        self._rules = Rules.of(self.config)
        self._network = _Network(evaluator, self.device, num_trees, game.num_actions)
        with torch.no_grad():
            self._pools = make_pools(game, num_trees, self.max_nodes, self.device)
            self._leaves = Leaves(
                game,
                self._pools,
                dtype=self._network.dtype,
                memory_format=self._network.memory_format,
                is_compiled=is_gpu if is_compiled is None else is_compiled,
            )
        self._noise = torch.zeros((num_trees, game.num_actions), dtype=torch.float32, device=self.device)
        self._graphs: tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph] | None = None
        self._num_searches = 0

    @property
    def num_bytes(self) -> int:
        """What the trees take on the device."""
        return self._pools.num_bytes

    @torch.no_grad()
    def run(self, states: Any, *, num_simulations: int | None = None) -> TensorResult:
        """Search B positions, one per tree. Nothing in here waits for the device once everything is compiled.

        Args:
            states: a batch of B states, as `game.initial` and `game.step` make them; games that are over may be among
                them, their trees stay empty.
            num_simulations: another budget for this search, no larger than the config's.
        """
        budget = self._budget(num_simulations)
        if self._is_captured and self._graphs is None:
            self._plant(states)
            self._graphs = self._capture()
        self._plant(states)
        if self._graphs is None:
            self._evaluate_roots()
        else:
            self._graphs[0].replay()
        self._mix_noise()
        self._num_searches += 1
        if budget > 0:
            self._ops.select(self._pools, self._rules)
        for _ in range(budget):
            if self._graphs is None:
                self._simulate()
            else:
                self._graphs[1].replay()
        return self._result(budget)

    # --- One simulation ---------------------------------------------------------------------------------------------

    def _simulate(self) -> None:
        """Evaluate what was selected, complete it, select again."""
        answer = self._answer(*self._leaves.describe_new())
        self._ops.complete_and_select(self._pools, answer, self._rules)

    def _evaluate_roots(self) -> None:
        answer = self._answer(*self._leaves.describe_roots())
        self._ops.complete(self._pools, answer)

    def _answer(self, to_play: Tensor, outcome: Tensor, legal: Tensor, observations: Any) -> Answer:
        logits, values = self._network(observations)
        return Answer(to_play, outcome, legal, logits, values)

    # --- A search ---------------------------------------------------------------------------------------------------

    def _plant(self, states: Any) -> None:
        """Make `states` the roots. Their slot is written when they are evaluated."""
        pools = self._pools
        tensors = tensors_of(states)
        if len(tensors) != len(pools.states):
            raise GameError(f"a state of this game has {len(pools.states)} tensors, not {len(tensors)}")
        for pool, tensor in zip(pools.states, tensors, strict=True):
            if tensor.shape != (self.num_trees, *pool.shape[1:]) or tensor.dtype != pool.dtype:
                raise GameError(
                    f"states must have {(self.num_trees, *pool.shape[1:])} {pool.dtype}, not "
                    f"{tuple(tensor.shape)} {tensor.dtype}: one row per tree"
                )
            if tensor.device != pool.device:
                raise GameError(f"states are on {tensor.device}, the search is on {pool.device}: move one of them")
            pool.view(self.num_trees, self.max_nodes, *pool.shape[1:])[:, 0] = tensor
        for tensor in (pools.depth, pools.leaf, pools.slot, pools.parent, pools.action, pools.is_bad):
            tensor.zero_()
        pools.is_new.fill_(True)

    def _mix_noise(self) -> None:
        config, pools = self.config, self._pools
        if config.dirichlet_fraction == 0:
            return
        clean = pools.prior[:, 0, : pools.num_actions].clone()
        legal = clean >= 0
        self._ops.root_noise(
            legal, seed=config.seed, move=self._num_searches, alpha=config.dirichlet_alpha, noise=self._noise
        )
        self._ops.mix_noise(pools, clean, self._noise, config.dirichlet_fraction)

    def _result(self, budget: int) -> TensorResult:
        pools, num_actions = self._pools, self.game.num_actions
        prior = pools.prior[:, 0, :num_actions].clone()
        legal = prior >= 0
        visits = pools.visits[:, 0, :num_actions].clone()
        node_visits = pools.node_visits[:, 0]
        value = (pools.node_sum[:, 0] / node_visits.clamp_min(1)).to(torch.float32)
        return TensorResult(
            visits=visits,
            value_sum=pools.value_sum[:, 0, :num_actions].clone(),
            prior=prior.clamp_min(0.0),
            value=value,
            legal=legal,
            is_full=(node_visits > 0) & (visits.sum(1) < budget),
            is_bad=pools.is_bad.clone(),
            temperature=self.config.temperature,
        )

    def _budget(self, num_simulations: int | None) -> int:
        most = self.config.num_simulations
        assert most is not None
        budget = most if num_simulations is None else num_simulations
        if not 0 <= budget <= most:
            raise ConfigError(f"num_simulations must be from 0 to the config's {most}, not {budget}")
        return budget

    # --- The graphs -------------------------------------------------------------------------------------------------

    def _capture(self) -> tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph]:
        """Compile everything by running it, then record: the evaluation of roots, and one simulation."""
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        try:
            with self._network.evaluating(), torch.cuda.stream(stream):
                for _ in range(_WARM_UPS):
                    self._pools.slot.zero_()
                    self._pools.is_new.fill_(True)
                    self._pools.depth.zero_()
                    self._evaluate_roots()
                    self._ops.select(self._pools, self._rules)
                    self._simulate()
                torch.cuda.synchronize(self.device)
                with torch.cuda.graph(graphs[0], stream=stream):
                    self._evaluate_roots()
                with torch.cuda.graph(graphs[1], stream=stream, pool=graphs[0].pool()):
                    self._simulate()
        except torch.cuda.OutOfMemoryError as error:
            raise SearchError(
                f"the evaluator ran out of memory on {self.num_trees} positions at a time, beside trees of "
                f"{self.num_bytes / 2**30:.2f} GiB: use fewer num_trees"
            ) from error
        except RuntimeError as error:
            if "captur" not in str(error):
                raise
            raise EvaluatorError(
                "the evaluator (or the game) makes the host wait for the GPU, or copies from the host, so a simulation "
                f"cannot be captured: {str(error).splitlines()[0]}. Keep everything on the device, or set "
                "is_captured=False"
            ) from error
        torch.cuda.current_stream(self.device).wait_stream(stream)
        return graphs


class _Network:
    """The evaluator as the search calls it: always in evaluation mode, its answers checked once."""

    def __init__(self, evaluator: Any, device: torch.device, num_trees: int, num_actions: int) -> None:
        self._call, self._shape = evaluator, (num_trees, num_actions)
        self._is_checked = False
        self.dtype, self.memory_format = torch.float32, torch.contiguous_format
        if isinstance(evaluator, torch.nn.Module):
            evaluator.to(device)
            floating = [tensor for tensor in evaluator.parameters() if tensor.is_floating_point()]
            if len({tensor.dtype for tensor in floating}) > 1:
                kinds = sorted({str(tensor.dtype) for tensor in floating})
                raise EvaluatorError(
                    f"the module mixes {' and '.join(kinds)}: give it one, such as .to(torch.bfloat16)"
                )
            if floating:
                self.dtype = floating[0].dtype
            channels_last = torch.channels_last
            if any(
                tensor.dim() == 4 and tensor.is_contiguous(memory_format=channels_last) and not tensor.is_contiguous()
                for tensor in floating
            ):
                self.memory_format = channels_last

    def __call__(self, observations: Any) -> tuple[Tensor, Tensor]:
        with self.evaluating():
            answer: Any = self._call(**observations) if isinstance(observations, Mapping) else self._call(observations)
        if not self._is_checked:
            self._check(answer)
        logits, values = answer
        return logits.contiguous(), values.reshape(-1)

    @contextmanager
    def evaluating(self) -> Any:
        """Parts in training mode are put into evaluation mode, and back."""
        parts = self._call.modules() if isinstance(self._call, torch.nn.Module) else ()
        training = [part for part in parts if part.training]
        for part in training:
            part.training = False
        try:
            yield
        finally:
            for part in training:
                part.training = True

    def _check(self, answer: Any) -> None:
        num_trees, num_actions = self._shape
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise EvaluatorError(f"the evaluator must return logits [B, A] and values [B], not {type(answer).__name__}")
        for name, tensor, shapes in (
            ("logits", answer[0], [(num_trees, num_actions)]),
            ("values", answer[1], [(num_trees,), (num_trees, 1)]),
        ):
            if not isinstance(tensor, Tensor) or tuple(tensor.shape) not in shapes:
                got = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
                raise EvaluatorError(f"the evaluator's {name} must be {shapes[0]}, not {got}")
            if tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16):
                raise EvaluatorError(
                    f"the evaluator's {name} are {tensor.dtype}: return float32, bfloat16 or float16 (a search counts "
                    "in float32)"
                )
        self._is_checked = True


def _find_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    found = torch.device(device)
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f'the tensor engine runs on "cuda" and "cpu", not on {str(device)!r}')
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f'device="{device}" was asked for, but PyTorch finds no GPU: use device="cpu" (plain torch ops, slow), or '
            "the vectorized engine"
        )
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", torch.cuda.current_device())
    return found


def _load_kernels(name: str) -> ModuleType:
    """Triton is imported when it is used, and not before."""
    if name == "torch":
        return import_module("windrow.tensor.twins")
    try:
        return import_module("windrow.tensor.kernels")
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise MissingExtraError(
            'the kernels of the tensor engine need Triton, which comes with PyTorch for CUDA; kernels="torch" runs '
            "without it, slowly"
        ) from error
