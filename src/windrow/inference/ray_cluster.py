"""Functions that join a Ray cluster or start one on this machine.

Scheduling, transport of objects and restarts are left to Ray.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from windrow.errors import ConfigError, MissingExtraError, how_to_install


@dataclass(slots=True)
class Cluster:
    """The Ray cluster to which this process is connected.

    address: address of its head node.
    is_own: whether this process started the cluster; `close` then ends it.
    """

    address: str
    is_own: bool

    def close(self) -> None:
        """End the cluster if `connect` started it; another cluster keeps running. May be called more than once."""
        if self.is_own:
            self.is_own = False
            load_ray().shutdown()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_ray() -> Any:
    """Import and return the `ray` module.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingExtraError(f"the Ray engine needs Ray: {how_to_install('ray')}") from error
    return ray


def connect(address: str | None = None, **options: Any) -> Cluster:
    """Join a Ray cluster, or start one on this machine. Ray's own log messages are suppressed.

    If this process is connected to a cluster already, it keeps that connection, whatever the arguments are.

    Args:
        address: "auto" or None: the cluster of the environment variable RAY_ADDRESS, or else the cluster that this
            machine belongs to; if there is none, a new one is started here. "local": always a new one. Any other text
            is the address of a running cluster, such as "10.0.0.1:6379".
        **options: arguments of `ray.init`, such as `num_cpus` of a new cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigError: there is no cluster at that address.
    """
    ray = load_ray()
    if ray.is_initialized():
        return Cluster(ray.get_runtime_context().gcs_address, is_own=False)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", **options}
    if address != "local":
        try:
            found = ray.init(address="auto" if address is None else address, **_for_joining(quiet))
            return Cluster(found.address_info["address"], is_own=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            if address not in (None, "auto") or os.environ.get("RAY_ADDRESS"):
                where = os.environ.get("RAY_ADDRESS") if address in (None, "auto") else address
                raise ConfigError(f"there is no Ray cluster at {where}: {error}") from error
    started = ray.init(address="local", include_dashboard=False, **quiet)
    return Cluster(started.address_info["address"], is_own=True)


def _for_joining(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are allowed for a cluster that runs already."""
    fixed = {"num_cpus", "num_gpus", "resources", "object_store_memory", "include_dashboard"}
    return {name: value for name, value in options.items() if name not in fixed}
