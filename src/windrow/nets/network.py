"""What the built-in networks share: their description, how they are called, and their heads."""

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
"""Scale of the last layers' first weights, against what keeps a signal as strong as it is: a new network then says that
every move is as good as another, and that the game is a draw."""


class Network(nn.Module):
    """Base of the built-in networks: `forward(x [K, ...]) -> (logits [K, A], values [K])`.

    A game with several named observations calls the network by name: `net(board=..., flat=...)`. A subclass makes its
    layers in `__init__` and implements `answer`.

    Args:
        kind: the kind's name.
        observation: the shape of one observation, or of each named part, as `game.observation` says.
        num_actions: A.
        num_values: 1 gives values [K]. The number of players gives values [K, players], the player to move first and
            the others in their order of play.
        settings: the other keywords that make a network of this shape.
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
        """A new network that takes what `game` shows, knows its actions and gives the values it needs."""
        settings.setdefault("num_values", as_core_game(game).num_values)
        return cast("Any", cls)(game.observation, game.num_actions, **settings)

    @property
    def spec(self) -> dict[str, Any]:
        """All that `windrow.nets.from_spec` needs to make a network of this shape; fit for JSON."""
        return dict(self._spec)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The answer to one observation per row; by name if the game has several."""
        return self.answer({"": observations})

    @abstractmethod
    def answer(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Logits and values for observations by name, "" if the game has one."""

    def bound_values(self, values: Tensor) -> Tensor:
        """Values in [-1, 1], and [K] where there is one."""
        bounded = torch.tanh(values)
        return bounded.squeeze(-1) if self._spec["num_values"] == 1 else bounded


class ValueHead(nn.Module):
    """One hidden layer, and the values before they are bounded."""

    def __init__(self, inputs: int, hidden: int, num_values: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(inputs, hidden), make_head(inputs=hidden, outputs=num_values)

    def forward(self, x: Tensor) -> Tensor:
        """[K, inputs] to [K, num_values]."""
        return self.out(functional.relu(self.hidden(x)))


def make_head(*, inputs: int, outputs: int) -> nn.Linear:
    """The last layer of a network that knows nothing yet."""
    return quieten(nn.Linear(inputs, outputs))


def quieten(head: nn.Linear) -> nn.Linear:
    """The layer, with first weights so small that its answers are near zero."""
    nn.init.normal_(head.weight, std=_SMALL / head.in_features**0.5)
    nn.init.zeros_(head.bias)
    return head


def split_observation(observation: Observation) -> tuple[list[tuple[str, Shape]], list[tuple[str, Shape]]]:
    """Boards and flat parts, by name ("" if there is only one observation)."""
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
    """Numbers in one row of these parts."""
    return sum(prod(shape) for _, shape in parts)


def gather(wanted: Sequence[tuple[str, Shape]], parts: Mapping[str, Tensor], *, is_flat: bool) -> Tensor:
    """Some parts side by side: rows [K, F], or boards [K, planes, rows, columns]."""
    found = [parts[name].flatten(1) if is_flat else parts[name] for name, _ in wanted]
    return found[0] if len(found) == 1 else torch.cat(found, 1)


@cache
def _called_by_name(base: type[Network], names: tuple[str, ...]) -> type[Network]:
    """The class of networks that are called as `net(board=..., flat=...)`.

    `**parts` alone would do but for torch.export, which needs the names in the signature to know the batch of each.
    """

    def forward(self: Network, **parts: Tensor) -> tuple[Tensor, Tensor]:
        return self.answer(parts)

    def reduce(self: Network) -> tuple[Any, ...]:
        return from_spec, (self.spec,), self.__dict__  # pickle finds no class that was made here by its name

    by_name = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    whole = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *by_name]
    forward.__signature__ = inspect.Signature(whole)  # pyright: ignore[reportFunctionMemberAccess]
    return type(base.__name__, (base,), {"forward": forward, "__reduce__": reduce, "__module__": base.__module__})


def _check_count(name: str, value: Any, *, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{name} of a network must be a whole number from {at_least} up, not {value!r}")
