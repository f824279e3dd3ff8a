"""The base class of the built-in networks, and the layers that they share."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from windrow.errors import ConfigError
from windrow.games.protocol import Shape
from windrow.games.python_game import as_core_game
from windrow.nets.specs import from_spec, plain_shapes

if TYPE_CHECKING:
    from typing_extensions import Self

Observation: TypeAlias = "Shape | Mapping[str, Shape]"


_BOARD_DIMS = 3
_SMALL = 0.1
"""Scale of the initial weights of the last layers, relative to the scale that preserves the variance of a signal. With
such small weights a new network gives all actions about the same prior and every position a value near 0."""


class Network(nn.Module):
    """Base class of the built-in networks: `forward(x [K, ...]) -> (logits [K, A], values [K])`.

    If a game has several named observations, the network is called by name: `net(board=..., flat=...)`. A subclass
    makes its layers in `__init__` and implements `answer`.

    Args:
        kind: name of the kind.
        observation: the shape of one observation, or of each named part, as `game.observation` says.
        num_actions: number of actions, A.
        num_values: 1: values are [K]. The number of players: values are [K, players], the player to move first and the
            others in their order of play.
        settings: the remaining keyword arguments that determine the network's shape.
    """

    def __init__(self, kind: str, observation: Observation, num_actions: int, num_values: int, **settings: Any) -> None:
        super().__init__()
        if isinstance(observation, Mapping):
            self.__class__ = cast("Any", _called_by_name(type(self), tuple(observation)))
        shapes = {"observation": plain_shapes(observation), "num_actions": num_actions}
        self._spec: dict[str, Any] = {"kind": kind, **shapes, **settings, "num_values": num_values}
        for name, value in {"num_actions": num_actions, "num_values": num_values, **settings}.items():
            if not isinstance(value, bool) or not name.startswith("is_"):
                _check_count(name, value, at_least=0 if name == "blocks" else 1)

    @classmethod
    def for_game(cls, game: Any, **settings: Any) -> Self:
        """Make a network whose inputs, logits and values have the shapes that `game` needs."""
        settings.setdefault("num_values", as_core_game(game).num_values)
        return cast("Any", cls)(game.observation, game.num_actions, **settings)

    @property
    def spec(self) -> dict[str, Any]:
        """The description from which `windrow.nets.from_spec` makes a network of this shape. JSON can hold it."""
        return dict(self._spec)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and values for observations [K, ...]. The class for named observations replaces this method."""
        return self.answer({"": observations})

    @abstractmethod
    def answer(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return logits [K, A] and values for observations by name. The name is "" if the game has only one."""

    def bound_values(self, values: Tensor) -> Tensor:
        """Map values [K, num_values] into [-1, 1] by tanh. The result is [K] if `num_values` is 1."""
        bounded = torch.tanh(values)
        return bounded.squeeze(-1) if self._spec["num_values"] == 1 else bounded


class ValueHead(nn.Module):
    """One hidden layer, then the values before tanh."""

    def __init__(self, inputs: int, hidden: int, num_values: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(inputs, hidden), make_head(inputs=hidden, outputs=num_values)

    def forward(self, x: Tensor) -> Tensor:
        """[K, inputs] to [K, num_values]."""
        return self.out(functional.relu(self.hidden(x)))


def make_head(*, inputs: int, outputs: int) -> nn.Linear:
    """Make the last layer of a network; its initial outputs are near zero."""
    return init_small(nn.Linear(inputs, outputs))


def init_small(head: nn.Linear) -> nn.Linear:
    """Set initial weights so small that the layer's outputs are near zero, and return the layer."""
    nn.init.normal_(head.weight, std=_SMALL / head.in_features**0.5)
    nn.init.zeros_(head.bias)
    return head


def split_observation(observation: Observation) -> tuple[list[tuple[str, Shape]], list[tuple[str, Shape]]]:
    """Return the boards and the other parts of an observation, each as (name, shape); the only part is named ""."""
    parts = list(observation.items()) if isinstance(observation, Mapping) else [("", observation)]
    if not parts:
        raise ConfigError("a network needs at least one observation")
    boards = [(name, tuple(shape)) for name, shape in parts if len(shape) == _BOARD_DIMS]
    flats = [(name, tuple(shape)) for name, shape in parts if len(shape) != _BOARD_DIMS]
    if len({shape[1:] for _, shape in boards}) > 1:
        sizes = ", ".join(f"{name} {shape}" for name, shape in boards)
        raise ConfigError(f"boards of different sizes cannot share one trunk: {sizes}. Flatten one of them")
    return boards, flats


def count_entries(parts: Sequence[tuple[str, Shape]]) -> int:
    """Return how many numbers one row of these parts has."""
    return sum(prod(shape) for _, shape in parts)


def gather(wanted: Sequence[tuple[str, Shape]], parts: Mapping[str, Tensor], *, is_flat: bool) -> Tensor:
    """Concatenate the `wanted` parts: as rows [K, F] if `is_flat`, else as boards [K, planes, rows, columns]."""
    found = [parts[name].flatten(1) if is_flat else parts[name] for name, _ in wanted]
    return found[0] if len(found) == 1 else torch.cat(found, 1)


@cache
def _called_by_name(base: type[Network], names: tuple[str, ...]) -> type[Network]:
    """Return the subclass of `base` that is called as `net(board=..., flat=...)`.

    Its signature has the names, because torch.export needs them to find the batch dimension of each part.
    """

    def forward(self: Network, **parts: Tensor) -> tuple[Tensor, Tensor]:
        return self.answer(parts)

    def reduce(self: Network) -> tuple[Any, ...]:
        return from_spec, (self.spec,), self.__dict__  # pickle cannot find this class by its name

    by_name = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    whole = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *by_name]
    forward.__signature__ = inspect.Signature(whole)  # pyright: ignore[reportFunctionMemberAccess]
    return type(base.__name__, (base,), {"forward": forward, "__reduce__": reduce, "__module__": base.__module__})


def _check_count(name: str, value: Any, *, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{name} of a network must be a whole number of at least {at_least}, not {value!r}")
