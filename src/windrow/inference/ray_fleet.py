"""The inference fleet: it starts inference actors on a Ray cluster, gives them weights, and ends them.

with InferenceFleet(game, make_evaluator, num_actors=2, num_gpus=0.5) as fleet:
    evaluator = fleet.client()                 # for a search in this process, or pickled for another Ray actor
    fleet.set_weights(fold(net), version=1)    # every answer carries the version of its weights
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, cast
from weakref import WeakSet

from windrow.errors import ConfigError, EvaluatorError
from windrow.evaluators.backends.weights import read_weights
from windrow.games.byte_game import ByteGame
from windrow.games.python_game import as_core_game
from windrow.inference.policy import BatchingPolicy
from windrow.inference.ray_actor import Greeting, InferenceActor
from windrow.inference.ray_cargo import Cargo
from windrow.inference.ray_client import FleetFacts, RayEvaluator
from windrow.inference.ray_cluster import load_ray
from windrow.inference.ray_stats import ActorStats
from windrow.inference.ray_weights import WeightKeeper

_MAX_CONCURRENCY = 10_000
"""Maximum number of requests that may wait in one actor: enough for the clients of a large cluster."""
_ANSWER_S = 10.0
"""Seconds in which a healthy actor answers a call of `stats`."""
_UPDATE_S = 60.0
"""Seconds to wait for actors to take new weights. An actor that is still being restarted gets them later."""


class InferenceFleet:
    """Inference actors on the Ray cluster that this process is connected to (`ray_cluster.connect`, or `ray.init`).

    Ray restarts actors that die, and they then get the newest weights. The actors end with `close`, or with the process
    that made the fleet.

    Args:
        game: the game whose positions are evaluated.
        make_evaluators: a function that makes the evaluator in the actor; or several functions by the names of their
            models. They are pickled by value (cloudpickle); if a class comes from a single file, the file is sent too.
        num_actors: number of actors.
        num_gpus: GPUs per actor; with a fraction, several actors share a GPU.
        num_cpus: CPU cores per actor that Ray reserves.
        num_threads: CPU threads of each actor's evaluator. None: `num_cpus`, and at least one.
        policy: the policy that decides when an actor sends a batch, and how large the batch is.
        placement_group: Ray placement group of the actors; None: Ray spreads them over the nodes.
        max_restarts: maximum number of restarts of each actor; -1: no limit.
        start_timeout_s: seconds in which all actors must start.
        patience_s: seconds that a client's requests wait for an actor to restart when no actor is available.

    Raises:
        ConfigError: Ray is not connected, or the evaluators cannot be pickled.
        EvaluatorError: an evaluator could not be made, or the cluster does not have the resources.
    """

    def __init__(
        self,
        game: Any,
        make_evaluators: Callable[[], object] | Mapping[str, Callable[[], object]],
        *,
        num_actors: int = 1,
        num_gpus: float = 0.0,
        num_cpus: float = 1.0,
        num_threads: int | None = None,
        policy: BatchingPolicy | None = None,
        placement_group: Any = None,
        max_restarts: int = -1,
        start_timeout_s: float = 120.0,
        patience_s: float = 60.0,
    ) -> None:
        ray = load_ray()
        if not ray.is_initialized():
            raise ConfigError("Ray is not connected: call windrow.inference.connect() or ray.init() first")
        game = as_core_game(game)
        by_name = _by_name(make_evaluators)
        _check(by_name, num_actors, num_cpus=num_cpus, num_gpus=num_gpus)
        self._ray = ray
        self._names = tuple(by_name)
        self._keeper_name = f"windrow-weights-{os.urandom(8).hex()}"
        self._keeper: Any = None
        self._kept: dict[int, tuple[Any, int]] = {}
        self._clients: WeakSet[RayEvaluator] = WeakSet()
        self._is_closed = False
        self._owner = os.getpid()
        try:
            cargo: bytes = ray.cloudpickle.dumps(Cargo((game, by_name)))
        except Exception as error:
            raise ConfigError(
                f"the game and the evaluator cannot be sent to the actors: pickling them raised "
                f"{type(error).__name__}: {error}. Pass a function that makes the evaluator in the actor instead"
            ) from error
        threads = num_threads or max(1, int(num_cpus))
        # The object must exist as long as an actor may be restarted, so every client has a reference to it too.
        self._cargo = ray.put(cargo)
        maker = ray.remote(InferenceActor).options(
            num_cpus=num_cpus,
            num_gpus=num_gpus,
            max_restarts=max_restarts,
            max_concurrency=_MAX_CONCURRENCY,
            # With thousands of requests a second, recording each request as an event costs both sides time.
            enable_task_events=False,
            scheduling_strategy=_strategy(placement_group),
        )
        policy = policy or BatchingPolicy()
        self._handles = [maker.remote(i, threads, policy, self._keeper_name) for i in range(num_actors)]
        try:
            first = self._start(start_timeout_s, f"{num_actors} x (CPU {num_cpus:g}, GPU {num_gpus:g})")
        except BaseException:
            self.close()
            raise
        if any(first.takes_states) and not isinstance(game, ByteGame):
            self.close()
            raise ConfigError(
                f"an evaluator that takes states cannot run in an inference actor, because the states of {game!r} are "
                "Python objects: choose an engine that calls the evaluator in its own process"
            )
        self._facts = FleetFacts(
            num_actions=game.num_actions,
            num_values=game.num_values,
            models=self._names,
            reads_observations=first.reads_observations,
            takes_states=first.takes_states,
            patience_s=patience_s,
        )

    def __repr__(self) -> str:
        return f"<InferenceFleet of {len(self._handles)} actors>"

    @property
    def num_actors(self) -> int:
        """Number of actors, including those that are being restarted."""
        return len(self._handles)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models; "" for a model that was given without a name."""
        return self._names

    def client(self, model: str | None = None) -> RayEvaluator:
        """Make a client: an evaluator that sends requests to these actors, for a model by name (None: the first)."""
        self._check_open()
        number = self._number_of(model)
        version = self._kept.get(number, (None, 0))[1]
        client = RayEvaluator(self._facts, self._handles, self._cargo, number, version)
        self._clients.add(client)
        return client

    def set_weights(self, weights: object, version: int, model: str | None = None) -> None:
        """Give all actors new weights, sent once through the object store; block until all running actors have them.

        Batches in flight keep the weights with which they were started. A restarted actor starts with the newest
        weights.

        Args:
            weights: argument of the evaluator's `update`: a module, or arrays by name. For a `TorchEvaluator`, the
                argument of its module's `load_state_dict`.
            version: version of the weights, higher than before; every answer carries it.
            model: name of the model; None for the first.

        Raises:
            EvaluatorError: the weights do not fit; the actors keep their old weights.
        """
        self._check_open()
        ray, number = self._ray, self._number_of(model)
        before = self._kept.get(number)
        if before is not None and version <= before[1]:
            raise ConfigError(f"version {version} is not newer than {before[1]}, the version that the actors have")
        # All actors of a node read arrays in shared memory; each of them would have to unpickle a module.
        new = ray.put(read_weights(weights) if _is_network(weights) else weights), version
        if self._keeper is None:
            self._keeper = self._start_keeper()
        # The keeper comes first: an actor restarted from now on reads the weights there, and the others are called.
        ray.get(self._keeper.keep.remote(*new, number))
        update = [handle.set_weights.options(max_task_retries=-1) for handle in self._handles]
        refs = [method.remote(*new, number, [self._cargo]) for method in update]
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=_UPDATE_S)
        problems = [problem for ref in done if (problem := self._answer(ref))]
        if problems:
            ray.get(self._keeper.keep.remote(*(before or (None, 0)), number))
            raise EvaluatorError(f"the new weights do not fit: {problems[0]}")
        self._kept[number] = new
        for client in self._clients:
            if client.model == number:
                client.version = version

    def stats(self) -> list[ActorStats]:
        """Return the statistics of every actor since it was started; `is_alive` is False if it does not answer."""
        self._check_open()
        refs = [handle.stats.remote() for handle in self._handles]
        done, _ = self._ray.wait(refs, num_returns=len(refs), timeout=_ANSWER_S)
        found = [self._answer(ref) if ref in done else None for ref in refs]
        return [stats or ActorStats(actor, is_alive=False) for actor, stats in enumerate(found)]

    def close(self) -> None:
        """End the actors; may be called more than once."""
        if self._is_closed or os.getpid() != self._owner:  # a fork must not end its parent's actors
            return
        self._is_closed = True
        if not self._ray.is_initialized():
            return  # the actors ended with the connection
        for handle in [*self._handles, *([] if self._keeper is None else [self._keeper])]:
            self._ray.kill(handle, no_restart=True)

    def __enter__(self) -> InferenceFleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Inside -----------------------------------------------------------------------------------------------

    def _start(self, timeout_s: float, asked: str) -> Greeting:
        """Wait until all actors are ready; return the greeting of the first one."""
        ray = self._ray
        refs = [handle.hello.remote([self._cargo]) for handle in self._handles]
        done, late = ray.wait(refs, num_returns=len(refs), timeout=timeout_s)
        if late:
            has = ", ".join(f"{kind} {ray.cluster_resources().get(kind, 0):g}" for kind in ("CPU", "GPU"))
            free = ", ".join(f"{kind} {ray.available_resources().get(kind, 0):g}" for kind in ("CPU", "GPU"))
            raise EvaluatorError(
                f"{len(late)} of {len(refs)} inference actors did not start in {timeout_s:g} s. They need {asked}; "
                f"the cluster has {has}, of which {free} are free"
            )
        greetings: list[Greeting] = []
        for ref in done:
            try:
                greetings.append(ray.get(ref))
            except ray.exceptions.RayError as error:  # noqa: PERF203 - once per actor
                raise EvaluatorError(f"an inference actor did not start: {error}") from None
        for greeting in greetings:
            if greeting.error:
                raise EvaluatorError(f"an inference actor could not make its evaluator: {greeting.error}")
        return greetings[0]

    def _start_keeper(self) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # The keeper runs on this node, so that it is not lost before the fleet.
        here: Any = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        options = {"name": self._keeper_name, "num_cpus": 0, "scheduling_strategy": here}
        return self._ray.remote(WeightKeeper).options(**options).remote()

    def _answer(self, ref: Any) -> Any:
        """Return the result of a call; None if the actor died."""
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayActorError:
            return None

    def _number_of(self, model: str | None) -> int:
        if model is None:
            return 0
        if model not in self._names:
            raise ConfigError(f"the fleet has no model {model!r}; it has {', '.join(map(repr, self._names))}")
        return self._names.index(model)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConfigError("this fleet is closed")


def _by_name(makers: Any) -> dict[str, Callable[[], object]]:
    return dict(cast("Mapping[str, Any]", makers)) if isinstance(makers, Mapping) else {"": makers}


def _check(makers: Mapping[str, object], num_actors: int, *, num_cpus: float, num_gpus: float) -> None:
    """Raise `ConfigError` for invalid arguments."""
    if not makers:
        raise ConfigError("a fleet needs a function that makes an evaluator, or several by name")
    for name, make in makers.items():
        if not callable(make):
            which = f"model {name!r}" if name else "the evaluator"
            raise ConfigError(f"a fleet needs a function that makes {which}, not {make!r:.100}")
    if num_actors < 1:
        raise ConfigError(f"num_actors must be at least 1, not {num_actors}")
    if num_cpus < 0 or num_gpus < 0:
        raise ConfigError(f"an actor cannot have {num_cpus:g} CPUs and {num_gpus:g} GPUs")


def _is_network(weights: object) -> bool:
    return isinstance(weights, Mapping) or callable(getattr(weights, "state_dict", None))


def _strategy(placement_group: Any) -> Any:
    if placement_group is None:
        return "SPREAD"
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    return PlacementGroupSchedulingStrategy(placement_group)
