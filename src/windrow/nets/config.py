"""The settings of a network: a built-in kind with its settings, or your own class with its arguments.

In a TOML file they are the section `[network]`:

    [network]                       [network]
    kind = "mlp"                    kind = "mynet.py:Transformer"
    width = 256                     layers = 3

This module imports neither PyTorch nor your class; `windrow.nets.make_network` imports both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from windrow.errors import ConfigError
from windrow.settings import Settings
from windrow.spelling import explain_unknown

FACTS = ("observation", "num_actions", "num_values", "seed")
"""Arguments that windrow passes to a network's class. Your own class gets only those that it has parameters for."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class NetworkConfig(Settings):
    """Settings of a network: the base class of the settings of every kind."""

    kind: str = ""
    """A built-in kind (resnet, mlp, transformer), or the place of your own class, such as `mynet.py:Transformer`."""

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the network's class, without those that describe the game."""
        return {name: value for name, value in self.to_dict().items() if name != "kind"}

    def in_words(self) -> str:
        """Return a short name of the network: `ResNet 64x5`, `mlp width=128 layers=3`."""
        return describe_network(self.to_dict())


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ResNetConfig(NetworkConfig):
    """Settings of `windrow.nets.ResNet`: a residual network, convolutional if the game's observation is a board."""

    kind: str = "resnet"
    """The kind's name."""
    channels: int = 32
    """Width of the trunk: the number of channels."""
    blocks: int = 3
    """Number of residual blocks, of two layers each."""
    policy_channels: int = 4
    """Number of channels between the trunk and the policy head."""
    value_channels: int = 2
    """Number of channels between the trunk and the value head."""
    value_hidden: int = 64
    """Width of the value head's hidden layer."""

    def __post_init__(self) -> None:
        for name in self.setting_names()[1:]:
            self._check_integer(name, 0 if name == "blocks" else 1, 1 << 16)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class MLPConfig(NetworkConfig):
    """Settings of `windrow.nets.MLP`: fully connected layers, for games whose observation is a row of numbers."""

    kind: str = "mlp"
    """The kind's name."""
    width: int = 128
    """Width of the hidden layers."""
    layers: int = 3
    """Number of hidden layers."""

    def __post_init__(self) -> None:
        for name in self.setting_names()[1:]:
            self._check_integer(name, 1, 1 << 16)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class TransformerConfig(NetworkConfig):
    """Settings of `windrow.nets.Transformer`: self-attention between the cells of a board."""

    kind: str = "transformer"
    """The kind's name."""
    width: int = 64
    """Width of a token; a multiple of `heads`."""
    layers: int = 3
    """Number of transformer blocks."""
    heads: int = 4
    """Number of attention heads."""

    def __post_init__(self) -> None:
        for name in self.setting_names()[1:]:
            self._check_integer(name, 1, 1 << 16)
        if self.width % self.heads:
            raise ConfigError(f"width must be a multiple of heads={self.heads}, not {self.width}")


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class OwnNetwork(NetworkConfig):
    """Settings of a network class of your own. The class is imported only when the network is made."""

    kind: str = ""
    """Place of the class: `mynet.py:Transformer` or `package.nets:Transformer`."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of the class."""
    factory: Callable[..., Any] | None = None
    """The class itself, if it was given in Python; it is not saved."""

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the keyword arguments in one flat dict."""
        return {"kind": self.kind, **self.settings}


KINDS: dict[str, tuple[type[NetworkConfig], str]] = {
    "resnet": (ResNetConfig, "windrow.nets.resnet:ResNet"),
    "mlp": (MLPConfig, "windrow.nets.mlp:MLP"),
    "transformer": (TransformerConfig, "windrow.nets.transformer:Transformer"),
}
"""The built-in kinds: their settings, and the import strings of their classes."""


def as_network(network: object) -> NetworkConfig:
    """Return the settings of a network, given a kind, a table with `kind` and settings, or a class or function.

    Raises:
        ConfigError: the kind does not exist, or the table has a key that is not a setting of this kind.
    """
    if isinstance(network, NetworkConfig):
        return network
    if isinstance(network, str) or callable(network):
        network = {"kind": network}
    if not isinstance(network, Mapping):
        raise ConfigError(f"network must be a kind, a table of settings or a class, not {network!r:.100}")
    settings = dict(cast("Mapping[str, Any]", network))
    kind: Any = settings.pop("kind", "resnet")
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind][0](**settings)
    factory = kind if callable(kind) else None
    if factory is not None:
        kind = _target_of(factory)
    if not isinstance(kind, str) or not all(kind.rpartition(":")):
        is_file = isinstance(kind, str) and kind.endswith(".py")
        hint = (
            f"Name the class in the file too, such as {kind}:Net"
            if is_file
            else "For a network of your own, write mynet.py:Net"
        )
        known = explain_unknown(f"{kind!s:.100}", KINDS, what="kinds")
        raise ConfigError(f"there is no network {kind!r:.100}. {hint if is_file else f'{known} {hint}'}.")
    for name in FACTS:
        if name in settings:
            raise ConfigError(f"{kind}: remove the setting {name}, which windrow passes to the class itself")
    return OwnNetwork(kind=kind, settings=settings, factory=factory)


def describe_network(spec: Mapping[str, Any]) -> str:
    """Return a short name of a network, given its settings or its description."""
    kind = spec.get("kind", "resnet")
    if kind == "resnet":
        return f"ResNet {spec.get('channels')}x{spec.get('blocks')}"
    settings = [f"{name}={value}" for name, value in spec.items() if name not in ("kind", *FACTS)]
    return " ".join([f"{kind}", *settings])


def spell_network(network: NetworkConfig) -> str:
    """Return the argument of `--network` for your own network, with its text arguments, which files cannot set."""
    texts = [f"{name}={value}" for name, value in network.arguments().items() if isinstance(value, str)]
    return f"{network.kind}:{','.join(texts)}" if texts else network.kind


def _target_of(factory: Callable[..., Any]) -> str:
    """Return the place of a class in the form that commands take: `mynet.py:Net` or `package.nets:Net`."""
    module, name = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", type(factory).__name__)
    if module == "__main__" and (file := getattr(sys.modules[module], "__file__", None)):
        return f"{Path(file).name}:{name}"
    return f"{module}:{name}"
