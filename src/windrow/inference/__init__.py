"""The inference server: one owner of the network, many processes that ask it through shared memory."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.inference.client import InferenceClient
    from windrow.inference.policy import BatchingPolicy
    from windrow.inference.server import InferenceServer
    from windrow.inference.stats import ClientStats, ServerStats

__all__ = ["BatchingPolicy", "ClientStats", "InferenceClient", "InferenceServer", "ServerStats"]

_PLACES = {
    "BatchingPolicy": "policy",
    "ClientStats": "stats",
    "InferenceClient": "client",
    "InferenceServer": "server",
    "ServerStats": "stats",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: every search needs a part of this package, and few need all of it."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"windrow.inference.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
