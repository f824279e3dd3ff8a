"""Networks from their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import ConfigError
from windrow.spelling import explain_unknown

if TYPE_CHECKING:
    from torch import Tensor

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
    if not isinstance(kind, str) or kind not in KINDS:
        known = explain_unknown(f"{kind!s:.100}", KINDS, what="kinds")
        raise ConfigError(f"unknown kind of network {kind!r:.100}. {known}")
    module, _, attribute = KINDS[kind].partition(":")
    make: Callable[..., Any] = getattr(import_module(module), attribute)
    try:
        return make(**dict(settings))
    except ConfigError:
        raise
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason, _, _ = str(error).partition("\n")  # the rest of PyTorch's is where in its own code it happened
        raise ConfigError(f"this is not the description of a network: {reason}") from error


def from_weights(spec: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Any:
    """The network of a description with these weights, in evaluation mode.

    The weights of a stranger may come with any description. So they are compared with it before a network of that size
    is made: first on PyTorch's meta device, where tensors have shapes and take no memory.

    Raises:
        ConfigError: this is not the description of a network, or not of one with such weights.
    """
    import torch

    blocks = spec.get("blocks")
    if isinstance(blocks, int) and blocks > len(weights):  # each of them has weights of its own
        raise ConfigError(f"a network with {blocks} blocks has more than {len(weights)} tensors")
    with torch.device("meta"):
        wanted: dict[str, Tensor] = from_spec(spec).state_dict()
    for name in sorted({*wanted, *weights}):
        if name not in weights or name not in wanted:
            raise ConfigError(f"{name!r:.100} is {'missing' if name in wanted else 'no weight of such a network'}")
        there, here = weights[name], wanted[name]
        if there.shape != here.shape or there.dtype != here.dtype:
            raise ConfigError(
                f"{name!r} is {list(there.shape)} of {there.dtype}, where such a network has {list(here.shape)} of "
                f"{here.dtype}"
            )
    net = from_spec(spec)
    net.load_state_dict(weights)
    return net.eval()
