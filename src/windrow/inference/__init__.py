"""Evaluators in other processes: a server that clients reach through shared memory, and actors on a Ray cluster."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.inference.client import InferenceClient
    from windrow.inference.policy import BatchingPolicy
    from windrow.inference.ray_client import RayEvaluator
    from windrow.inference.ray_cluster import connect
    from windrow.inference.ray_fleet import InferenceFleet
    from windrow.inference.ray_stats import ActorStats
    from windrow.inference.server import InferenceServer
    from windrow.inference.stats import ClientStats, ServerStats

__all__ = [
    "ActorStats",
    "BatchingPolicy",
    "ClientStats",
    "InferenceClient",
    "InferenceFleet",
    "InferenceServer",
    "RayEvaluator",
    "ServerStats",
    "connect",
]

_MODULES = {
    "ActorStats": "ray_stats",
    "BatchingPolicy": "policy",
    "ClientStats": "stats",
    "InferenceClient": "client",
    "InferenceFleet": "ray_fleet",
    "InferenceServer": "server",
    "RayEvaluator": "ray_client",
    "ServerStats": "stats",
    "connect": "ray_cluster",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: every search needs a part of this package, and few searches need all of it."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"windrow.inference.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
