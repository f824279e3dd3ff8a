"""The actors of self-play on a Ray cluster: who is there, where, and what was heard of them.

Ray places actors and says when one is gone. One that is gone is replaced by a new one, which Ray places wherever there
is room; where there is none, it waits for a node to join.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from time import monotonic, sleep
from typing import Any

from windrow.cores import num_cores
from windrow.engines import Ray
from windrow.errors import ConfigError, SearchError
from windrow.games.core_game import CoreGame
from windrow.inference.policy import BatchingPolicy
from windrow.inference.ray_cargo import Cargo
from windrow.inference.ray_client import RayEvaluator
from windrow.inference.ray_cluster import Cluster, connect, load_ray
from windrow.inference.ray_fleet import InferenceFleet
from windrow.train.ray_worker import Hello, PlayOrder, PlayReport, TreeWorker, WorkerSetup

PATIENCE_S = 60.0
"""How long workers wait for an inference actor to come back when none is left."""


@dataclass(slots=True)
class Member:
    """One place in the crew, and the worker that has it now."""

    index: int
    actor: Any = None
    waiting: deque[Any] = field(default_factory=deque[Any])
    """What it was asked and has not answered, oldest first."""
    hello: Hello | None = None
    """Where it is; None until it is up."""
    heard_at: float = 0.0
    """When it last said something, or had nothing to do."""
    num_deaths: int = 0
    """Workers of this place that were lost since one last reported."""
    counts: dict[str, float] = field(default_factory=dict[str, float])
    """As it last reported."""
    news: list[float] = field(default_factory=list[float])
    """What others learned about resigning and it does not know."""
    num_finished: float = 0.0
    """Games in a report, lately."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker does not answer any more."""

    reason: str


class RayCrew:
    """Workers, and the inference actors they ask."""

    def __init__(self, options: Ray, max_workers: int) -> None:
        self.options, num_workers = options, options.num_workers
        self.cpus_per_actor = 1.0 if options.cpus_per_actor is None else options.cpus_per_actor
        """Cores that Ray reserves for an inference actor."""
        needed = (num_workers or 1) * options.cpus_per_worker + options.num_actors * self.cpus_per_actor
        started: dict[str, Any] = {}
        if (cores := num_cores()) < needed:
            started["num_cpus"] = ceil(needed)  # what was asked for is to fit into a cluster that is started here
        self._cluster: Cluster = connect(options.address, **started)
        self._ray = load_ray()
        self.num_workers = min(max_workers, num_workers or self._room(cores))
        self.members: list[Member] = []
        self.heard: deque[tuple[Member, Hello | PlayReport | Lost]] = deque()
        """What workers have said, to be taken from the left."""
        self.fleet: InferenceFleet | None = None
        self._group: Any = None
        self._setup: Any = None

    def _room(self, default: int) -> int:
        """Workers for which the cluster has room beside the inference actors and this process."""
        options = self.options
        cpus = self._ray.cluster_resources().get("CPU", default) - options.num_actors * self.cpus_per_actor - 1
        count = cpus / options.cpus_per_worker if options.cpus_per_worker else default
        if options.gpus_per_worker:
            count = min(count, self._ray.cluster_resources().get("GPU", 0) / options.gpus_per_worker)
        return max(1, int(count))

    # --- Beginning --------------------------------------------------------------------------------------------

    def reserve(self) -> None:
        """With `placement="pack"`, set room aside for everybody; waits for it."""
        options = self.options
        if options.placement != "pack" or self._group is not None:
            return
        from ray.util import placement_group

        bundles = [{"CPU": options.cpus_per_worker, "GPU": options.gpus_per_worker} for _ in range(self.num_workers)]
        # An actor may be put into any bundle that is large enough for it, so no worker's may be larger than an actor's:
        # one that was lost then finds room whoever is put back first.
        cpus = self.cpus_per_actor if options.gpus_per_actor else max(self.cpus_per_actor, options.cpus_per_worker)
        bundles += [{"CPU": cpus, "GPU": options.gpus_per_actor} for _ in range(options.num_actors)]
        wanted = [{name: amount for name, amount in bundle.items() if amount} for bundle in bundles]
        self._group = group = placement_group([bundle for bundle in wanted if bundle], strategy="PACK")
        if not group.wait(timeout_seconds=options.start_timeout_s):
            raise SearchError(f"the cluster has no room for all at once (placement='pack'). {self.explain_room()}")

    def start_fleet(self, game: CoreGame, make_evaluator: Callable[[], object], policy: BatchingPolicy) -> RayEvaluator:
        """Start the inference actors; returns an evaluator that asks them."""
        options = self.options
        self.fleet = InferenceFleet(
            game,
            make_evaluator,
            num_actors=options.num_actors,
            num_cpus=self.cpus_per_actor,
            num_gpus=options.gpus_per_actor,
            policy=policy,
            placement_group=self._group,
            start_timeout_s=options.start_timeout_s,
            patience_s=PATIENCE_S,
        )
        return self.fleet.client()

    def prepare(self, setup: WorkerSetup) -> None:
        """Say what all workers are made with."""
        try:
            self._setup = self._ray.put(Cargo(setup))  # once, not once per worker
        except Exception as error:
            raise ConfigError(
                f"{setup.game!r} or its evaluator cannot be sent to other machines: pickling raised "
                f"{type(error).__name__}: {error}"
            ) from error
        self.members = [Member(index) for index in range(self.num_workers)]

    def start(self, member: Member, version: int, newest: int, margins: list[float]) -> None:
        """Have a new worker in a place; it is heard of when it is up. Of one that was there before nothing is left."""
        options = self.options
        self._end(member.actor)
        member.actor = None  # until everything is done: an interrupt leaves an empty place, which is filled later
        member.waiting.clear()
        member.hello, member.counts, member.news, member.num_finished = None, {}, [], 0.0
        strategy: Any = "SPREAD"
        if self._group is not None:
            from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

            # With a bundle of its own where an inference actor does not fit into it.
            is_alone = options.gpus_per_actor > 0 or self.cpus_per_actor > options.cpus_per_worker
            bundle = member.index if is_alone and options.cpus_per_worker else -1
            strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)
        remote = self._ray.remote(
            num_cpus=options.cpus_per_worker,
            num_gpus=options.gpus_per_worker,
            max_restarts=0,  # a new one has none of the games: it is told apart from the old one
            concurrency_groups={"control": 1},
            scheduling_strategy=strategy,
        )(TreeWorker)
        actor = remote.remote(self._setup, member.index, version, newest, margins)
        member.heard_at, member.version = monotonic(), newest
        member.waiting.append(actor.hello.remote())
        member.actor = actor

    # --- Asking -----------------------------------------------------------------------------------------------

    def order(self, member: Member, order: PlayOrder) -> None:
        """Have a worker play; its report will come."""
        if not member.waiting:
            member.heard_at = monotonic()
        member.waiting.append(member.actor.play.remote(order))

    def tell(self, member: Member, what: str, *arguments: Any) -> None:
        """Tell a worker something whatever it is doing: `announce`, `deliver` or `halt`; one to come will know."""
        if member.actor is None:
            return
        getattr(member.actor, what).options(concurrency_group="control").remote(*arguments)

    def forget(self, member: Member) -> None:
        """Have a worker drop its games, once it has done what it was ordered before."""
        member.actor.forget.remote()

    def put(self, value: Mapping[str, Any]) -> Any:
        """Something large that is sent to many."""
        return self._ray.put(value)

    def listen(self, timeout_s: float) -> None:
        """Add to `heard` what workers have answered, each in the order it was asked; waits a while for something."""
        asked = {member.waiting[0]: member for member in self.members if member.waiting}
        if not asked:
            sleep(timeout_s)
            return
        questions = list(asked)
        ready, _ = self._ray.wait(questions, num_returns=1, timeout=timeout_s, fetch_local=False)
        if ready and len(questions) > 1:
            ready, _ = self._ray.wait(questions, num_returns=len(questions), timeout=0, fetch_local=False)
        for question in ready:
            member = asked[question]
            # An interrupt in between makes it heard twice, which does no harm, but never not at all.
            self.heard.append((member, self._answer(question)))
            member.waiting.popleft()
            member.heard_at = monotonic()

    def _answer(self, question: Any) -> Hello | PlayReport | Lost:
        errors = self._ray.exceptions
        try:
            return self._ray.get(question)
        except errors.RayTaskError:
            raise  # what a worker does not answer for is a mistake of windrow's
        except errors.RayActorError as error:
            if error.actor_init_failed:
                raise SearchError(f"a worker could not be started: {error}") from error
            return Lost(str(error))
        except errors.RayError as error:  # it lived, and what it said is lost with its node
            return Lost(str(error))

    # --- Ending -----------------------------------------------------------------------------------------------

    def explain_room(self) -> str:
        """What was asked for, and what the cluster has, in words."""
        options, ray = self.options, self._ray

        def words(resources: Mapping[str, float]) -> str:
            return f"{resources.get('CPU', 0):g} CPU and {resources.get('GPU', 0):g} GPU"

        return (
            f"Asked for: {self.num_workers} workers of {options.cpus_per_worker:g} CPU and {options.gpus_per_worker:g} "
            f"GPU, {options.num_actors} inference actors of {self.cpus_per_actor:g} CPU and "
            f"{options.gpus_per_actor:g} GPU. The cluster has {words(ray.cluster_resources())}, free are "
            f"{words(ray.available_resources())}"
        )

    def close(self) -> None:
        """End all actors, and the cluster if it was started here; may be called more than once."""
        if self._ray.is_initialized():
            for member in self.members:
                self._end(member.actor)
            if self.fleet is not None:
                self.fleet.close()
            if self._group is not None:
                from ray.util import remove_placement_group

                remove_placement_group(self._group)
        self.members, self.fleet, self._group, self._setup = [], None, None, None
        self._cluster.close()

    def _end(self, actor: Any) -> None:
        if actor is not None:
            with suppress(Exception):  # it is gone already, or its node is
                self._ray.kill(actor, no_restart=True)
