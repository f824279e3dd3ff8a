"""Networks from their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from windrow.errors import ConfigError
from windrow.games.spelling import explain_unknown

KINDS: dict[str, str] = {
    "resnet": "windrow.nets.resnet:ResNet",
}
"""By what `spec["kind"]` says: import strings of classes that take the rest of the spec as keywords."""


def from_spec(spec: Mapping[str, Any]) -> Any:
    """A new network of the shape that `net.spec` described.

    Raises:
        ConfigError: this is not the description of a network.
    """
    kind, *settings = spec.get("kind"), *(item for item in spec.items() if item[0] != "kind")
    if kind not in KINDS:
        raise ConfigError(f"unknown kind of network {kind!r}. {explain_unknown(str(kind), KINDS, what='kinds')}")
    module, _, attribute = KINDS[kind].partition(":")
    make: Callable[..., Any] = getattr(import_module(module), attribute)
    try:
        return make(**dict(settings))
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"this is not the description of a network: {error}") from error
