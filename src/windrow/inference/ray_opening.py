"""From whatever a search was given for an evaluator to a client of inference actors."""

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
class _Given:
    """Makes an evaluator that was made already, by having been pickled with it."""

    evaluator: object

    def __call__(self) -> object:
        return self.evaluator


@dataclass(frozen=True, slots=True)
class _TorchMaker:
    """Makes a `TorchEvaluator` where it is called: on the GPU there, if there is one."""

    module: Any
    dtype: Any

    def __call__(self) -> TorchEvaluator:
        from windrow.evaluators.torch import TorchEvaluator

        # For good: it is called by several threads at once, and none may put it back while another is at work.
        return TorchEvaluator(self.module.eval(), "auto", self.dtype)


def open_client(game: Any, evaluator: object, options: Ray) -> tuple[RayEvaluator, InferenceFleet | None]:
    """A client for a search, and the fleet that was started for it and ends with it.

    Args:
        game: whose positions are evaluated.
        evaluator: a fleet or a client of one; or an evaluator, a PyTorch module, or a function that makes an evaluator:
            then `options.num_actors` actors are started, each with one of its own.
        options: of the engine.
    """
    if isinstance(evaluator, RayEvaluator):
        return evaluator, None
    if isinstance(evaluator, InferenceFleet):
        return evaluator.client(), None
    make = as_maker(evaluator)
    if options.num_actors == 0:
        raise ConfigError("a search asks inference actors: set num_actors to 1 or more")
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
    """Batches that an actor's evaluator has at once: two where PyTorch runs on the CPU, each on half of the threads.

    The threads of one pass wait for each other at every layer, and so all of them for the one whose core has just
    carried a message. Two passes do not wait for each other. Of other evaluators it is not known whether two threads
    may call them.
    """
    return 2 if isinstance(make, _TorchMaker) and not options.gpus_per_actor and num_threads > 1 else 1


def as_maker(evaluator: object) -> Callable[[], object]:
    """A function that makes the evaluator anew in another process."""
    if isinstance(evaluator, type):
        raise ConfigError(f"an evaluator is needed, not a class: write {evaluator.__name__}(...)")
    torch = sys.modules.get("torch")  # who has a module has imported it
    if torch is not None:
        from windrow.evaluators.torch import TorchEvaluator

        if isinstance(evaluator, torch.nn.Module):
            return _TorchMaker(_on_host(evaluator), None)
        if isinstance(evaluator, TorchEvaluator):
            return _TorchMaker(_on_host(evaluator.module), evaluator.dtype)
    if isinstance(evaluator, EvaluatorLike | StateEvaluator | GameAware):
        return _Given(evaluator)
    if callable(evaluator):
        return evaluator
    raise ConfigError(
        f"{evaluator!r} is not an evaluator: it needs the methods evaluate and submit. "
        "windrow.evaluators.from_function makes one of a function, TorchEvaluator of a PyTorch module"
    )


def _on_host(module: Any) -> Any:
    """The module, or a copy of it in the memory of the host: what is pickled may be read where there is no GPU."""
    if all(tensor.device.type == "cpu" for tensor in [*module.parameters(), *module.buffers()]):
        return module
    from copy import deepcopy

    return deepcopy(module).cpu()


def _share(num_actors: int) -> tuple[float, int]:
    """Cores to set aside for each actor of a search, and threads for its evaluator.

    Few are set aside, so that several searches fit into one cluster; the threads use what there is.
    """
    nodes = [node["Resources"].get("CPU", 0.0) for node in load_ray().nodes() if node["Alive"]]
    per_node = max(1, -(-num_actors // max(len(nodes), 1)))
    return min(1.0, sum(nodes) / num_actors / 2), max(1, int(max(nodes, default=1.0)) // per_node)
