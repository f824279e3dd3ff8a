"""Makes networks from their settings, and from the descriptions in checkpoints.

A description ("spec") holds the network's kind and the keyword arguments of its class. JSON can hold it:

    {"kind": "resnet", "observation": [2, 6, 7], "num_actions": 7, "num_values": 1, "channels": 32, ...}
    {"kind": "mynet.py:Transformer", "observation": [2, 6, 7], "num_actions": 7, "num_values": 1, "layers": 3}

The kind of a user's own network names arbitrary code. A description from a file therefore never leads to an import: the
user names the class, and the file only tells whether it is the right one (`windrow.games.provenance` does the same for
games).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from windrow.errors import ConfigError, WindrowError
from windrow.games.provenance import place_of, plain
from windrow.games.python_game import as_core_game
from windrow.games.targets import import_target
from windrow.nets.config import FACTS, KINDS, NetworkConfig, OwnNetwork, describe_network
from windrow.spelling import explain_unknown

if TYPE_CHECKING:
    from torch import Tensor

_SPEC = "_windrow_spec"
"""Attribute of a user's own module that holds its description."""


def make_network(network: NetworkConfig, game: Any, *, seed: int = 0) -> Any:
    """Make a new network for a game, in training mode on the CPU.

    Your own class is imported here, and its outputs for a few positions of the game are checked.

    Args:
        network: settings of the network.
        game: the game that the network is made for.
        seed: seed of the initial weights.

    Raises:
        ConfigError: the network cannot be made.
        EvaluatorError: the network does not accept the game's observations, or does not return logits and values.
    """
    from windrow.nets.checking import check_network

    game = as_core_game(game)
    factory = find_factory(network)
    net = from_spec({**game_facts(game), **network.to_dict()}, factory=factory, seed=seed)
    if isinstance(network, OwnNetwork):
        check_network(net, game, name=network.kind)
    return net.train()


def find_factory(network: NetworkConfig) -> Callable[..., Any] | None:
    """Return the user's own class for these settings, imported if necessary; None for a built-in kind."""
    if not isinstance(network, OwnNetwork):
        return None
    factory = network.factory or import_target(network.kind, what="network", error=ConfigError)
    if not callable(factory) or _is_module(factory):
        raise ConfigError(
            f"{network.kind} is {factory!r:.100}: name a class of networks, or a function that makes the network"
        )
    return factory


def game_facts(game: Any) -> dict[str, Any]:
    """Return the arguments of a network that depend on the game, in a form that JSON can hold."""
    return {
        "observation": plain_shapes(game.observation),
        "num_actions": game.num_actions,
        "num_values": game.num_values,
    }


def from_spec(spec: Mapping[str, Any], *, factory: Callable[..., Any] | None = None, seed: int = 0) -> Any:
    """Make a new network from a description that `spec_of(net)` returned.

    Args:
        spec: the description.
        factory: the user's own class that the description names; nothing is imported. None: only built-in kinds are
            made.
        seed: seed of the initial weights.

    Raises:
        ConfigError: `spec` is not the description of a network, or it names a user's own class and `factory` is None.
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
        reason, _, _ = str(error).partition("\n")  # the other lines of PyTorch's errors are its own stack
        if not is_own:
            raise ConfigError(f"the description of the network is invalid: {reason}") from error
        given = ", ".join(f"{name}={value!r:.60}" for name, value in keywords.items())
        raise ConfigError(f"{kind} cannot be made: {kind}({given}) raised {type(error).__name__}: {reason}") from error
    if is_own:
        if not isinstance(net, torch.nn.Module):
            raise ConfigError(f"{kind} must return a torch.nn.Module, not {net!r:.100}")
        setattr(net, _SPEC, dict(spec))
    return net


def spec_of(net: Any) -> dict[str, Any]:
    """Return the description of a network that windrow made, in a form that JSON can hold.

    Raises:
        ConfigError: windrow did not make the module, so a checkpoint could not restore it.
    """
    spec = getattr(net, _SPEC, None) or getattr(net, "spec", None)
    if not isinstance(spec, Mapping):
        raise ConfigError(
            f"{type(net).__name__} has no description, which a checkpoint needs to make the network again: make it by "
            f"windrow.nets.make_network, or train with network={type(net).__name__}"
        )
    return dict(cast("Mapping[str, Any]", spec))


def own_network(spec: Mapping[str, Any], named: Sequence[NetworkConfig]) -> NetworkConfig | None:
    """Return which of the networks in `named` a file was trained with; None if the file has a built-in kind.

    Args:
        spec: the file's description, which is not trusted: nothing that it names is imported.
        named: the networks that the user named; one of them must be the file's. Numbers that the user leaves out are
            taken from the file. Text is not, because it could be a path or name code: the user must repeat it.

    Raises:
        ConfigError: the file's network is not in `named`, or has other arguments there.
    """
    kind = spec.get("kind")
    if not isinstance(kind, str):
        raise ConfigError("it does not name the network that it was trained with")
    if kind in KINDS:
        return None
    shown = describe_network(spec)
    found = [one for one in named if isinstance(one, OwnNetwork) and place_of(one.kind) == place_of(kind)]
    if not found:
        others = f", not with {', '.join(one.kind for one in named)}" if named else ""
        raise ConfigError(
            f"it was trained with the network {shown:.200}{others}. windrow never imports code that a file names: "
            f"name the network yourself, by --network {kind:.100} in a command or "
            f"network={kind.rpartition(':')[2]:.100} in Python"
        )
    saved = {name: value for name, value in spec.items() if name not in ("kind", *FACTS)}
    for one in found:
        missing = {name: value for name, value in saved.items() if name not in one.settings}
        if plain({**missing, **one.settings}) == plain(saved):
            for name, value in missing.items():
                if not _is_number(value):
                    raise ConfigError(
                        f"it was trained with the network {shown:.200}. windrow does not pass text from a file to your "
                        f"class: repeat it yourself, by --network {one.kind}:{name}={value!s:.100}"
                    )
            return one.replace(settings={**missing, **one.settings})
    raise ConfigError(
        f"it was trained with the network {shown:.200}, not with {found[0].in_words()}: leave out the arguments"
    )


def from_weights(
    spec: Mapping[str, Any], weights: Mapping[str, Tensor], *, factory: Callable[..., Any] | None = None
) -> Any:
    """Make the network of a description, with these weights and in evaluation mode.

    An untrusted file can combine its weights with any description. The shapes are therefore compared before the network
    is made, on PyTorch's meta device, where tensors take no memory.

    Raises:
        ConfigError: `spec` is not the description of a network, or `weights` do not fit it.
    """
    import torch

    for name in ("blocks", "layers"):
        count = spec.get(name)
        # Every block and layer has at least one tensor. A false count would take long even on the meta device.
        if isinstance(count, int) and count > len(weights):
            raise ConfigError(f"a network with {count} {name} has more than {len(weights)} tensors")
    try:
        with torch.device("meta"):
            wanted: dict[str, Tensor] = from_spec(spec, factory=factory).state_dict()
    except ConfigError:
        if factory is None:
            raise
        wanted = from_spec(spec, factory=factory).state_dict()  # the class computes with its initial weights
    for name in sorted({*wanted, *weights}):
        if name not in weights or name not in wanted:
            raise ConfigError(f"{name!r:.100} is {'missing' if name in wanted else 'not a weight of this network'}")
        there, here = weights[name], wanted[name]
        if there.shape != here.shape or there.dtype != here.dtype:
            raise ConfigError(
                f"{name!r} is {list(there.shape)} in {there.dtype}, but this network needs {list(here.shape)} in "
                f"{here.dtype}"
            )
    net = from_spec(spec, factory=factory)
    net.load_state_dict(weights)
    return net.eval()


def plain_shapes(observation: Any) -> Any:
    """Return the shapes of a game's observation as lists, as JSON would return them."""
    if isinstance(observation, Mapping):
        parts = cast("Mapping[str, Sequence[int]]", observation)
        return {name: [int(dim) for dim in shape] for name, shape in parts.items()}
    return [int(dim) for dim in observation]


def _fitting(factory: Callable[..., Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Drop the arguments in `FACTS` that the class has no parameters for, such as `num_values`."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return keywords
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return {name: value for name, value in keywords.items() if name != "seed" or name in parameters}
    return {name: value for name, value in keywords.items() if name not in FACTS or name in parameters}


def _as_tuples(shapes: Any) -> Any:
    """Return the shapes of an observation as tuples, as a game has them."""
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
