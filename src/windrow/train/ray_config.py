"""Where on a Ray cluster the parts of self-play and training go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.settings import Settings

Placement: TypeAlias = Literal["spread", "pack"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class RayConfig(Settings):
    """What `engine="ray"` needs to know besides a `SearchConfig`, whose `num_workers` are the tree workers."""

    address: str | None = None
    """The cluster: "auto" for the one this machine belongs to, and if there is none, one is started here; "local" for
    one that is always started; else the address of its head, such as "10.0.0.1:6379". None: the `SearchConfig`'s
    `ray_address`."""
    num_actors: int | None = None
    """Inference actors, which evaluate for all workers. 0: every worker has the network itself, which suits workers
    with a GPU or many cores of their own. None: the `SearchConfig`'s `num_actors`."""
    cpus_per_worker: float = 1.0
    """Cores that Ray sets aside for a worker; it grows its trees with as many threads."""
    gpus_per_worker: float = 0.0
    """GPUs of a worker, or a fraction of one; for `num_actors=0`."""
    cpus_per_actor: float = 1.0
    """Cores that Ray sets aside for an inference actor; on the CPU it evaluates with as many threads."""
    gpus_per_actor: float | None = None
    """GPUs of an inference actor, or a fraction of one. With 1 the actors go to the nodes that have GPUs. None: the
    `SearchConfig`'s `gpus_per_actor`."""
    placement: Placement = "spread"
    """"spread": workers and actors go wherever there is room, evenly over the nodes; those for which there is none wait
    for nodes that join. "pack": room for all of them together is set aside on as few nodes as can be (a placement
    group), so that most leaves need not leave their node; the cluster must have it before anything begins."""
    max_lag: int = 1
    """Most versions that the weights of a worker may be behind the newest. A worker that is further behind plays
    nothing until it has newer ones. 0: nobody plays while new weights are on their way."""
    report_s: float = 0.5
    """Seconds from one report of a worker to the next: what is played ahead, and how often each worker says
    something."""
    start_timeout_s: float = 300.0
    """Seconds in which a first worker must be up, and all inference actors."""

    def __post_init__(self) -> None:
        address: Any = self.address
        if address is not None and (not isinstance(address, str) or not address):
            raise ConfigError(f"address must be the text of an address, not {address!r}")
        self._check_integer("num_actors", 0, 1 << 16, is_optional=True)
        self._check_number("cpus_per_worker", 0.0, 4096.0)
        self._check_number("gpus_per_worker", 0.0, 64.0)
        self._check_number("cpus_per_actor", 0.0, 4096.0)
        self._check_number("gpus_per_actor", 0.0, 64.0, is_optional=True)
        self._check_choice("placement", Placement)
        self._check_integer("max_lag", 0, 2**31 - 1)
        self._check_number("report_s", 1e-3, 3600.0)
        self._check_number("start_timeout_s", 1e-3, 1e9)
        if self.gpus_per_worker and self.num_actors != 0:
            raise ConfigError("gpus_per_worker is for workers that have the network themselves: set num_actors=0 too")

    @property
    def actors(self) -> int:
        """`num_actors` once it is known."""
        return self.num_actors or 0

    @property
    def actor_gpus(self) -> float:
        """`gpus_per_actor` once it is known."""
        return self.gpus_per_actor or 0.0

    def completed(self, search: SearchConfig, *, has_actors: bool) -> RayConfig:
        """With what this leaves to the search's own settings, and without actors unless there are to be some."""
        num_actors = search.num_actors if self.num_actors is None else self.num_actors
        return self.replace(
            address=self.address or search.ray_address,
            num_actors=num_actors if has_actors else 0,
            gpus_per_actor=search.gpus_per_actor if self.gpus_per_actor is None else self.gpus_per_actor,
        )
