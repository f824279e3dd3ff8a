"""A residual policy and value network for boards, for flat observations, and for named parts of both.

With a board among the observations (a part of shape [planes, rows, columns]) the trunk is convolutional and flat parts
are added to every cell of its first layer; without one it is a residual network of linear layers:

    board [K, P, R, C] -> 3x3 conv -+-> BN ReLU -> blocks x (conv BN ReLU conv BN + ReLU) -+-> 1x1 conv -> logits [K, A]
    flat  [K, F]       -> linear   -+                                                      +-> 1x1 conv -> values [K]
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from windrow.errors import ConfigError
from windrow.games.protocol import Shape
from windrow.games.python_game import as_core_game
from windrow.nets.specs import from_spec

Observation: TypeAlias = "Shape | Mapping[str, Shape]"

_BOARD_DIMS = 3
_SMALL = 0.1
"""Of the last layers' weights against what keeps a signal as strong as it is, so that a new network says: any move, and
a draw."""


class ResNet(nn.Module):
    """`forward(x [K, ...]) -> (logits [K, A], values [K] in [-1, 1] for the player to move)`.

    A game with several named observations calls it by name: `net(board=..., flat=...)`. Boards among them must be of
    one size; every other part counts as flat.

    Args:
        observation: the shape of one observation, or of each named part, as `game.observation` says.
        num_actions: A.
        channels: width of the trunk.
        blocks: residual blocks, of two layers each.
        policy_channels: planes between trunk and policy; flat trunks have no such layer.
        value_channels: the same for the value.
        value_hidden: width of the value head's hidden layer.
        num_values: 1 gives values [K]. The number of players gives values [K, players], the player to move first and
            the others in their order of play.
        is_folded: without batch norm, as `windrow.nets.fold` makes it.
        seed: of the first weights. Equal seeds give equal weights, whatever else draws random numbers.
    """

    def __init__(
        self,
        observation: Observation,
        num_actions: int,
        *,
        channels: int = 64,
        blocks: int = 5,
        policy_channels: int = 4,
        value_channels: int = 2,
        value_hidden: int = 64,
        num_values: int = 1,
        is_folded: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if isinstance(observation, Mapping):
            self.__class__ = cast("Any", _called_by_name(type(self), tuple(observation)))
        self._spec: dict[str, Any] = {
            "kind": "resnet",
            "observation": _plain(observation),
            "num_actions": num_actions,
            "channels": channels,
            "blocks": blocks,
            "policy_channels": policy_channels,
            "value_channels": value_channels,
            "value_hidden": value_hidden,
            "num_values": num_values,
            "is_folded": is_folded,
        }
        for name in ("num_actions", "channels", "policy_channels", "value_channels", "value_hidden", "num_values"):
            _check_count(name, self._spec[name], at_least=1)
        _check_count("blocks", blocks, at_least=0)
        self._boards, self._flats = _split(observation)
        self.is_folded = is_folded
        cells = prod(self._boards[0][1][1:]) if self._boards else 1
        num_planes = sum(shape[0] for _, shape in self._boards)
        num_flat = sum(prod(shape) for _, shape in self._flats)

        def layer(inputs: int, outputs: int, size: int) -> Layer:
            return Layer(inputs, outputs, size if self._boards else 0, is_folded=is_folded)

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.stem = layer(num_planes or num_flat, channels, 3)
            self.flat = nn.Linear(num_flat, channels, bias=False) if self._boards and self._flats else None
            self.blocks = nn.ModuleList(
                Block(layer(channels, channels, 3), layer(channels, channels, 3)) for _ in range(blocks)
            )
            if self._boards:
                self.policy_planes = layer(channels, policy_channels, 1)
                self.value_planes = layer(channels, value_channels, 1)
            policy_inputs = policy_channels * cells if self._boards else channels
            value_inputs = value_channels * cells if self._boards else channels
            self.policy = nn.Linear(policy_inputs, num_actions)
            self.value_hidden = nn.Linear(value_inputs, value_hidden)
            self.value = nn.Linear(value_hidden, num_values)
            for head in (self.policy, self.value):
                nn.init.normal_(head.weight, std=_SMALL / head.in_features**0.5)
                nn.init.zeros_(head.bias)

    @classmethod
    def for_game(cls, game: Any, *, channels: int = 64, blocks: int = 5, **settings: Any) -> ResNet:
        """A new network that takes what `game` shows, knows its actions and gives the values it needs."""
        settings.setdefault("num_values", as_core_game(game).num_values)
        return cls(game.observation, game.num_actions, channels=channels, blocks=blocks, **settings)

    @property
    def spec(self) -> dict[str, Any]:
        """All that `windrow.nets.from_spec` needs to make a network of this shape; fit for JSON."""
        return dict(self._spec)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The answer to one observation per row; by name if the game has several."""
        return self.answer({"": observations})

    def answer(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Both heads from one trunk."""
        x = self.stem.multiply(self._gather(self._boards or self._flats, parts, is_flat=not self._boards))
        if self.flat is not None:
            x = x + self.flat(self._gather(self._flats, parts, is_flat=True))[:, :, None, None]
        x = functional.relu(self.stem.normalize(x))
        for block in self.blocks:
            x = block(x)
        policy = value = x
        if self._boards:
            policy = functional.relu(self.policy_planes(x)).flatten(1)
            value = functional.relu(self.value_planes(x)).flatten(1)
        logits = self.policy(policy)
        values = torch.tanh(self.value(functional.relu(self.value_hidden(value))))
        return logits, values.squeeze(-1) if self._spec["num_values"] == 1 else values

    def _gather(self, wanted: list[tuple[str, Shape]], parts: Mapping[str, Tensor], *, is_flat: bool) -> Tensor:
        """The parts side by side."""
        found = [parts[name].flatten(1) if is_flat else parts[name] for name, _ in wanted]
        return found[0] if len(found) == 1 else torch.cat(found, 1)


@cache
def _called_by_name(base: type[ResNet], names: tuple[str, ...]) -> type[ResNet]:
    """The class of networks that are called as `net(board=..., flat=...)`.

    `**parts` alone would do but for torch.export, which needs the names in the signature to know the batch of each.
    """

    def forward(self: ResNet, **parts: Tensor) -> tuple[Tensor, Tensor]:
        return self.answer(parts)

    def reduce(self: ResNet) -> tuple[Any, ...]:
        return from_spec, (self.spec,), self.__dict__  # pickle finds no class that was made here by its name

    by_name = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    whole = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *by_name]
    forward.__signature__ = inspect.Signature(whole)  # pyright: ignore[reportFunctionMemberAccess]
    return type(base.__name__, (base,), {"forward": forward, "__reduce__": reduce, "__module__": base.__module__})


class Block(nn.Module):
    """Two layers and a way around them."""

    def __init__(self, first: Layer, second: Layer) -> None:
        super().__init__()
        self.first, self.second = first, second
        if second.norm is not None:
            # The block begins as the identity, so that a deep network learns from its first step.
            nn.init.zeros_(second.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[K, channels, ...] in and out."""
        return functional.relu(x + self.second(functional.relu(self.first(x))))


class Layer(nn.Module):
    """A convolution, or a linear layer if `size` is 0, and its batch norm; folded, a bias in its place."""

    def __init__(self, inputs: int, outputs: int, size: int, *, is_folded: bool) -> None:
        super().__init__()
        self.norm: nn.BatchNorm1d | nn.BatchNorm2d | None = None
        if size:
            self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=is_folded)
            self.norm = None if is_folded else nn.BatchNorm2d(outputs)
        else:
            self.conv = nn.Linear(inputs, outputs, bias=is_folded)
            self.norm = None if is_folded else nn.BatchNorm1d(outputs)
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Both, one after the other."""
        return self.normalize(self.multiply(x))

    def multiply(self, x: Tensor) -> Tensor:
        """The product alone."""
        return self.conv(x)

    def normalize(self, x: Tensor) -> Tensor:
        """The norm alone, if there is one."""
        return x if self.norm is None else self.norm(x)


def _split(observation: Observation) -> tuple[list[tuple[str, Shape]], list[tuple[str, Shape]]]:
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


def _plain(observation: Observation) -> Any:
    """As JSON would give it back."""
    if isinstance(observation, Mapping):
        return {name: [int(dim) for dim in shape] for name, shape in observation.items()}
    return [int(dim) for dim in observation]


def _check_count(name: str, value: Any, *, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{name} of a network must be a whole number from {at_least} up, not {value!r}")
