"""Joining a Ray cluster, or starting one on this machine.

Ray is the distributed engine: what schedules, what carries objects, what restarts. Nothing here does any of that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from windrow.errors import ConfigError, MissingExtraError, how_to_install


@dataclass(slots=True)
class Cluster:
    """The Ray cluster that this process works with.

    address: where its head is.
    is_own: whether this process has started it; then `close` ends it.
    """

    address: str
    is_own: bool

    def close(self) -> None:
        """End a cluster that `connect` has started; leave any other alone. May be called more than once."""
        if self.is_own:
            self.is_own = False
            load_ray().shutdown()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def load_ray() -> Any:
    """The `ray` module.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingExtraError(f"the Ray engine needs Ray: {how_to_install('ray')}") from error
    return ray


def connect(address: str | None = None, **options: Any) -> Cluster:
    """Join a Ray cluster, or start one on this machine; quiet. Joined already, whatever was asked for, it stays so.

    Args:
        address: "auto" or None: the cluster that this machine belongs to (or the one in the environment variable
            RAY_ADDRESS), and if there is none, one is started here. "local": always a new one. Anything else is the
            address of a cluster that must be there, such as "10.0.0.1:6379".
        **options: for `ray.init`, such as `num_cpus` of a cluster that is started.

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
    """What may be said of a cluster that is there already."""
    fixed = {"num_cpus", "num_gpus", "resources", "object_store_memory", "include_dashboard"}
    return {name: value for name, value in options.items() if name not in fixed}
