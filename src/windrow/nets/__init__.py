"""Networks in PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import MissingExtraError, how_to_install

if TYPE_CHECKING:
    from windrow.nets.folding import fold
    from windrow.nets.resnet import ResNet
    from windrow.nets.specs import from_spec

__all__ = ["ResNet", "fold", "from_spec"]

_MODULES = {
    "ResNet": "windrow.nets.resnet",
    "fold": "windrow.nets.folding",
    "from_spec": "windrow.nets.specs",
}


def __getattr__(name: str) -> Any:
    """Load what needs PyTorch when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(f"windrow.nets.{name} needs PyTorch: {how_to_install('torch')}") from error
