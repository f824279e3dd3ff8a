"""Opens a client of inference actors for any kind of evaluator that a search accepts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.engines import Ray
from windrow.errors import ConfigError
from windrow.evaluators.protocol import EvaluatorLike, GameAware, StateEvaluator
from windrow.inference.policy import BatchingPolicy
from windrow.inference.ray_client import RayEvaluator
from windrow.inference.ray_cluster import connect, load_ray
from windrow.inference.ray_fleet import InferenceFleet

if TYPE_CHECKING:
    from windrow.evaluators.torch import TorchEvaluator


@dataclass(frozen=True, slots=True)
class _TorchMaker:
    """Makes a `TorchEvaluator` in the process that calls it, on the GPU if there is one."""

    module: Any
    dtype: Any

    def __call__(self) -> TorchEvaluator:
        from windrow.evaluators.torch import TorchEvaluator

        # The module stays in evaluation mode: several threads call it at once, so none of them may change the mode.
        return TorchEvaluator(self.module.eval(), "auto", self.dtype)


def open_client(game: Any, evaluator: object, options: Ray) -> tuple[RayEvaluator, InferenceFleet | None]:
    """Make a client for a search, and the fleet started for it, which must be closed with it (None: no new fleet).

    Args:
        game: the game whose positions are evaluated.
        evaluator: a fleet or a client of a fleet. Or an evaluator, a PyTorch module, or a function that makes an
            evaluator; then `options.num_actors` actors are started, each with its own evaluator.
        options: settings of the engine.
    """
    if isinstance(evaluator, RayEvaluator):
        return evaluator, None
    if isinstance(evaluator, InferenceFleet):
        return evaluator.client(), None
    make = as_maker(evaluator)
    if options.num_actors == 0:
        raise ConfigError("a search with the ray engine needs inference actors: set num_actors to 1 or more")
    connect(options.address)
    num_cpus, num_threads = _share(options.num_actors)
    num_passes = _passes_at_once(make, options, num_threads)
    fleet = InferenceFleet(
        game,
        make,
        num_actors=options.num_actors,
        num_gpus=options.gpus_per_actor,
        num_cpus=num_cpus if options.cpus_per_actor is None else options.cpus_per_actor,
        num_threads=num_threads // num_passes,
        start_timeout_s=options.start_timeout_s,
        policy=BatchingPolicy(
            max_batch=options.max_batch, max_wait_ms=options.max_wait_ms, max_inflight_batches=num_passes
        ),
    )
    return fleet.client(), fleet


def _passes_at_once(make: Callable[[], object], options: Ray, num_threads: int) -> int:
    """Number of batches that an actor evaluates at once: two for PyTorch on the CPU, each with half of the threads.

    The threads of one forward pass wait for each other at every layer. If one core is busy with a message, all of them
    wait for it. Two passes do not wait for each other. Other evaluators may not allow calls from two threads.
    """
    return 2 if isinstance(make, _TorchMaker) and not options.gpus_per_actor and num_threads > 1 else 1


def as_maker(evaluator: object) -> Callable[[], object]:
    """Return a function that makes the evaluator again in another process."""
    if isinstance(evaluator, type):
        raise ConfigError(f"an evaluator is needed, not a class: write {evaluator.__name__}(...)")
    torch = sys.modules.get("torch")  # if it is not imported, the evaluator is not a PyTorch module
    if torch is not None:
        from windrow.evaluators.torch import TorchEvaluator

        if isinstance(evaluator, torch.nn.Module):
            return _TorchMaker(_on_host(evaluator), None)
        if isinstance(evaluator, TorchEvaluator):
            return _TorchMaker(_on_host(evaluator.module), evaluator.dtype)
    if isinstance(evaluator, EvaluatorLike | StateEvaluator | GameAware):
        return lambda: evaluator  # cloudpickle sends it along
    if callable(evaluator):
        return evaluator
    raise ConfigError(
        f"{evaluator!r} is not an evaluator: it needs the methods evaluate and submit. "
        "windrow.evaluators.from_function makes an evaluator from a function, TorchEvaluator from a PyTorch module"
    )


def _on_host(module: Any) -> Any:
    """Return the module, or a copy on the CPU: the pickled module may be loaded on a machine without a GPU."""
    if all(tensor.device.type == "cpu" for tensor in [*module.parameters(), *module.buffers()]):
        return module
    from copy import deepcopy

    return deepcopy(module).cpu()


def _share(num_actors: int) -> tuple[float, int]:
    """Return the number of cores to reserve for each actor of a search, and of threads for its evaluator.

    Few cores are reserved, so that several searches fit into one cluster. The threads use all cores of a node.
    """
    nodes = [node["Resources"].get("CPU", 0.0) for node in load_ray().nodes() if node["Alive"]]
    per_node = max(1, -(-num_actors // max(len(nodes), 1)))
    return min(1.0, sum(nodes) / num_actors / 2), max(1, int(max(nodes, default=1.0)) // per_node)
