"""Networks from their settings, and from the descriptions that checkpoints hold.

A description ("spec") is the network's kind and the keywords that its class is called with; fit for JSON:

    {"kind": "resnet", "observation": [2, 6, 7], "num_actions": 7, "num_values": 1, "channels": 32, ...}
    {"kind": "mynet.py:Transformer", "observation": [2, 6, 7], "num_actions": 7, "num_values": 1, "layers": 3}

The kind of a class of the user's can lead to any code. So a description from a file is never enough to make one: the
user names the class, and the file only says whether it is the right one (`windrow.games.provenance` does so for games).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from windrow.errors import ConfigError, WindrowError
from windrow.games.provenance import place_of
from windrow.games.python_game import as_core_game
from windrow.games.targets import import_target
from windrow.nets.config import FACTS, KINDS, NetworkConfig, OwnNetwork, describe_network
from windrow.spelling import explain_unknown

if TYPE_CHECKING:
    from torch import Tensor

_SPEC = "_windrow_spec"
"""Attribute in which a module of the user's keeps its description."""


def make_network(network: NetworkConfig, game: Any, *, seed: int = 0) -> Any:
    """A new network for a game, in training mode on the CPU.

    A class of the user's is imported here, and its answers to a few positions of the game are checked.

    Args:
        network: which one.
        game: what it is to play.
        seed: key of its first weights.

    Raises:
        ConfigError: it cannot be made.
        EvaluatorError: it does not take what the game gives, or does not give what a search needs.
    """
    from windrow.nets.checking import check_network

    game = as_core_game(game)
    factory = find_factory(network)
    net = from_spec({**game_facts(game), **network.to_dict()}, factory=factory, seed=seed)
    if isinstance(network, OwnNetwork):
        check_network(net, game, name=network.kind)
    return net.train()


def find_factory(network: NetworkConfig) -> Callable[..., Any] | None:
    """The class of the user's that a network is made by, imported if need be; None for a built-in kind."""
    if not isinstance(network, OwnNetwork):
        return None
    factory = network.factory or import_target(network.kind, what="network", error=ConfigError)
    if not callable(factory) or _is_module(factory):
        raise ConfigError(
            f"{network.kind} is {factory!r:.100}: name the class of the network, or a function that makes it"
        )
    return factory


def game_facts(game: Any) -> dict[str, Any]:
    """What a network is told of a game; fit for JSON."""
    return {
        "observation": plain_shapes(game.observation),
        "num_actions": game.num_actions,
        "num_values": game.num_values,
    }


def from_spec(spec: Mapping[str, Any], *, factory: Callable[..., Any] | None = None, seed: int = 0) -> Any:
    """A new network of the shape that `spec_of(net)` described.

    Args:
        spec: the description.
        factory: the class of the user's that it names; nothing is imported for it. None: only built-in kinds are made.
        seed: key of its first weights.

    Raises:
        ConfigError: this is not the description of a network, or it is one of the user's and no `factory` was given.
    """
    import torch

    kind, settings = spec.get("kind"), {name: value for name, value in spec.items() if name != "kind"}
    is_own = factory is not None
    if factory is None:
        if not isinstance(kind, str) or kind not in KINDS:
            known = explain_unknown(f"{kind!s:.100}", KINDS, what="kinds")
            raise ConfigError(f"unknown kind of network {kind!r:.100}. {known}")
        module, _, attribute = KINDS[kind][1].partition(":")
        factory = getattr(import_module(module), attribute)
    assert factory is not None
    keywords = _fitting(factory, {**settings, "seed": seed})
    if is_own and "observation" in keywords:
        keywords["observation"] = _as_tuples(keywords["observation"])
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net: Any = factory(**keywords)
    except WindrowError:
        raise
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason, _, _ = str(error).partition("\n")  # the rest of PyTorch's is where in its own code it happened
        if not is_own:
            raise ConfigError(f"this is not the description of a network: {reason}") from error
        given = ", ".join(f"{name}={value!r:.60}" for name, value in keywords.items())
        raise ConfigError(f"{kind} cannot be made: {kind}({given}) raised {type(error).__name__}: {reason}") from error
    if is_own:
        if not isinstance(net, torch.nn.Module):
            raise ConfigError(f"{kind} gives {net!r:.100}, but a network is a torch.nn.Module")
        setattr(net, _SPEC, dict(spec))
    return net


def spec_of(net: Any) -> dict[str, Any]:
    """The description of a network that windrow made; fit for JSON.

    Raises:
        ConfigError: the module was made by hand, so that nobody could make it again.
    """
    spec = getattr(net, _SPEC, None) or getattr(net, "spec", None)
    if not isinstance(spec, Mapping):
        raise ConfigError(
            f"{type(net).__name__} does not say how it was made, and a checkpoint must: make it by windrow.nets."
            f"make_network, or train with network={type(net).__name__}"
        )
    return dict(cast("Mapping[str, Any]", spec))


def own_network(spec: Mapping[str, Any], named: Sequence[NetworkConfig]) -> NetworkConfig | None:
    """The network that the user named and that a file was trained with; None if the file has a built-in kind.

    Args:
        spec: the file's description, which a stranger may have written. Nothing that it names is imported.
        named: the networks that the user named, of which one has to be the file's. Arguments that the user leaves out
            are the file's where they are numbers; text could be a path or a name of code, so the user repeats it.

    Raises:
        ConfigError: the user named no such network, or other arguments.
    """
    kind = spec.get("kind")
    if not isinstance(kind, str):
        raise ConfigError("it does not say which network it was trained with")
    if kind in KINDS:
        return None
    shown = describe_network(spec)
    found = [one for one in named if isinstance(one, OwnNetwork) and place_of(one.kind) == place_of(kind)]
    if not found:
        others = f", not with {', '.join(one.kind for one in named)}" if named else ""
        raise ConfigError(
            f"it was trained with the network {shown:.200}{others}. windrow imports no code that a file names, so "
            f"name the network yourself: --network {kind:.100} in a command, network={kind.rpartition(':')[2]:.100} in "
            "Python"
        )
    saved = {name: value for name, value in spec.items() if name not in ("kind", *FACTS)}
    for one in found:
        missing = {name: value for name, value in saved.items() if name not in one.settings}
        if _plain({**missing, **one.settings}) == _plain(saved):
            for name, value in missing.items():
                if not _is_number(value):
                    raise ConfigError(
                        f"it was trained with the network {shown:.200}. Text in a file is not passed to your class: "
                        f"repeat it, --network {one.kind}:{name}={value!s:.100}"
                    )
            return one.replace(settings={**missing, **one.settings})
    raise ConfigError(
        f"it was trained with the network {shown:.200}, not with {found[0].in_words()}: leave the arguments out"
    )


def from_weights(
    spec: Mapping[str, Any], weights: Mapping[str, Tensor], *, factory: Callable[..., Any] | None = None
) -> Any:
    """The network of a description with these weights, in evaluation mode.

    The weights of a stranger may come with any description. So they are compared with it before a network of that size
    is made: first on PyTorch's meta device, where tensors have shapes and take no memory.

    Raises:
        ConfigError: this is not the description of a network, or not of one with such weights.
    """
    import torch

    for name in ("blocks", "layers"):
        count = spec.get(name)
        if isinstance(count, int) and count > len(weights):  # each of them has weights of its own
            raise ConfigError(f"a network with {count} {name} has more than {len(weights)} tensors")
    try:
        with torch.device("meta"):
            wanted: dict[str, Tensor] = from_spec(spec, factory=factory).state_dict()
    except ConfigError:
        if factory is None:
            raise
        wanted = from_spec(spec, factory=factory).state_dict()  # a class that computes with its first weights
    for name in sorted({*wanted, *weights}):
        if name not in weights or name not in wanted:
            raise ConfigError(f"{name!r:.100} is {'missing' if name in wanted else 'no weight of such a network'}")
        there, here = weights[name], wanted[name]
        if there.shape != here.shape or there.dtype != here.dtype:
            raise ConfigError(
                f"{name!r} is {list(there.shape)} of {there.dtype}, where such a network has {list(here.shape)} of "
                f"{here.dtype}"
            )
    net = from_spec(spec, factory=factory)
    net.load_state_dict(weights)
    return net.eval()


def plain_shapes(observation: Any) -> Any:
    """The shapes of a game's observation, as JSON would give them back."""
    if isinstance(observation, Mapping):
        parts = cast("Mapping[str, Sequence[int]]", observation)
        return {name: [int(dim) for dim in shape] for name, shape in parts.items()}
    return [int(dim) for dim in observation]


def _fitting(factory: Callable[..., Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords without the facts that a class has no parameters for: a two-player one needs no num_values."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return keywords
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return {name: value for name, value in keywords.items() if name != "seed" or name in parameters}
    return {name: value for name, value in keywords.items() if name not in FACTS or name in parameters}


def _as_tuples(shapes: Any) -> Any:
    """The shapes as a game has them."""
    if isinstance(shapes, Mapping):
        return {name: tuple(shape) for name, shape in cast("Mapping[str, Sequence[int]]", shapes).items()}
    return tuple(shapes)


def _is_module(thing: object) -> bool:
    import torch

    return isinstance(thing, torch.nn.Module)


def _is_number(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_number, cast("list[object]", value)))
    return value is None or isinstance(value, bool | int | float)


def _plain(settings: Mapping[str, Any]) -> str:
    return json.dumps(dict(settings), sort_keys=True, default=str)
