"""Networks in PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import MissingExtraError, how_to_install

if TYPE_CHECKING:
    from windrow.nets.checking import check_network
    from windrow.nets.config import (
        MLPConfig,
        NetworkConfig,
        OwnNetwork,
        ResNetConfig,
        TransformerConfig,
        as_network,
    )
    from windrow.nets.folding import fold
    from windrow.nets.mlp import MLP
    from windrow.nets.resnet import ResNet
    from windrow.nets.specs import from_spec, make_network, spec_of
    from windrow.nets.transformer import Transformer

__all__ = [
    "MLP",
    "MLPConfig",
    "NetworkConfig",
    "OwnNetwork",
    "ResNet",
    "ResNetConfig",
    "Transformer",
    "TransformerConfig",
    "as_network",
    "check_network",
    "fold",
    "from_spec",
    "make_network",
    "spec_of",
]

_CONFIG, _SPECS = "windrow.nets.config", "windrow.nets.specs"
_MODULES = {
    "MLP": "windrow.nets.mlp",
    "MLPConfig": _CONFIG,
    "NetworkConfig": _CONFIG,
    "OwnNetwork": _CONFIG,
    "ResNet": "windrow.nets.resnet",
    "ResNetConfig": _CONFIG,
    "Transformer": "windrow.nets.transformer",
    "TransformerConfig": _CONFIG,
    "as_network": _CONFIG,
    "check_network": "windrow.nets.checking",
    "fold": "windrow.nets.folding",
    "from_spec": _SPECS,
    "make_network": _SPECS,
    "spec_of": _SPECS,
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: `import windrow.nets` does not need PyTorch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(f"windrow.nets.{name} needs PyTorch: {how_to_install('torch')}") from error
