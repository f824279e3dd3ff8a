"""From the `--evaluator` option to an evaluator."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from windrow.engine_registry import AUTO
from windrow.errors import ConfigError
from windrow.evaluators.function import from_function
from windrow.evaluators.rollout import RolloutEvaluator
from windrow.evaluators.uniform import UniformEvaluator
from windrow.games.core_game import CoreGame
from windrow.games.targets import import_target
from windrow.nets.config import FACTS, KINDS, OwnNetwork
from windrow.play.pretrained import PRETRAINED, default_for, require_pretrained
from windrow.play.specs import parse_network, parse_spec
from windrow.search.engines import find_engine
from windrow.spelling import explain_unknown


@dataclass(frozen=True, slots=True)
class NamedEvaluator:
    """An evaluator and its description in words."""

    evaluator: Any
    label: str
    is_network: bool


def make_evaluator(
    game: CoreGame,
    text: str,
    *,
    seed: int = 0,
    backend: str = "auto",
    batch: int = 64,
    has_new_network: bool = False,
    engine: str = AUTO,
    network: Sequence[str] | None = None,
    num_threads: int | None = None,
) -> NamedEvaluator:
    """The evaluator that `text` names.

    Args:
        game: what it will evaluate.
        text: `uniform`, `rollout`, `rollout:8`, `pretrained`, `auto` (`pretrained` if there is one for the game, else
            `rollout`); a checkpoint, an ONNX file, or a .pt2 file as `net.pt2:trust_code=yes`; a network of your own
            with its first weights, `mynet.py:Net`, or a function, `mynet.py:evaluate`, that is called with a batch of
            observations; or a built-in network.
        seed: of the random games.
        backend: what runs a network.
        batch: rows in a typical call.
        has_new_network: whether a built-in network with random weights, of which only the speed means something, is
            welcome: `resnet:64x5`, `mlp:width=64`.
        engine: what will call it. With trees on a device it takes a module, not a backend; one that asks inference
            actors takes a function, which makes the evaluator in each of them.
        network: what `--network` names: the classes of checkpoints' networks.
        num_threads: threads of a network on the CPU; None: all cores.
    """
    text = default_for(game, "rollout") if text == "auto" else text
    where = find_engine(engine).capabilities.evaluator
    if where == "actors":
        options = {"seed": seed, "backend": backend, "batch": batch, "has_new_network": has_new_network}
        make = partial(_make_remotely, game, text, {**options, "network": network})
        return NamedEvaluator(make, text, is_network=True)
    spec = parse_spec(text)
    if spec.name == "uniform" and not spec.words and not spec.settings:
        return NamedEvaluator(UniformEvaluator(), "uniform", is_network=False)
    if spec.name == "rollout" and not spec.settings and len(spec.words) <= 1:
        count = spec.words[0] if spec.words else "1"
        if not count.isdigit():
            raise ConfigError(f"rollout:{count}: give a whole number of random games per position, such as rollout:8")
        return NamedEvaluator(RolloutEvaluator(int(count), seed=seed), text, is_network=False)
    if spec.name in KINDS and not has_new_network:
        raise ConfigError(
            f"{text} is a network with random weights: name a checkpoint, or train a network with windrow train"
        )
    found = open_network(game, text, network=network)
    if not _is_module(found) and not isinstance(found, Path):
        return NamedEvaluator(found, text, is_network=True)
    if where == "device":
        from windrow.evaluators.torch import TorchEvaluator

        module = TorchEvaluator(_require_module(found, f"the {engine} engine"))
        return NamedEvaluator(module, f"{text} (torch, {module.device.type})", is_network=True)
    from windrow.evaluators.loading import load

    trusts = spec.settings.get("trust_code") is True
    evaluator = load(found, game=game, backend=backend, batch=batch, trust_code=trusts, num_threads=num_threads)
    return NamedEvaluator(evaluator, f"{text} ({evaluator.backend})", is_network=True)


def open_network(game: CoreGame, text: str, *, network: Sequence[str] | None = None) -> Any:
    """Open what `text` names: a module ready for inference, the path of an exported file, or the user's own evaluator.

    A Python file is imported, since the user named it here.
    """
    spec = parse_spec(text)
    path = require_pretrained(game).path if text == PRETRAINED else Path(spec.name)
    if path.suffix == ".onnx" or path.suffix == ".pt2":
        if path.suffix == ".pt2" and spec.settings.get("trust_code") is not True:
            raise ConfigError(
                f"{path} holds pickles: loading it runs whatever code is in it. If it is yours, write "
                f"{path}:trust_code=yes, or export the network to ONNX"
            )
        return path
    from windrow.nets import fold, make_network

    if spec.name in KINDS:
        return fold(make_network(parse_network(text), game))
    if text.endswith(".py") and path.exists():
        raise ConfigError(f"{path} is a Python file: name the class or the function in it too, such as {path}:Net")
    if path.suffix != ".py" and path.exists():
        from windrow.train import load_model

        return fold(load_model(path, game=game, network=network).net)
    own = parse_network(text) if all(text.rpartition(":")) and ".py:" in text else None
    if not isinstance(own, OwnNetwork):
        known = explain_unknown(spec.name, ["uniform", "rollout", PRETRAINED, *KINDS], what="evaluators")
        raise ConfigError(f"there is no evaluator {text!r}. {known} A checkpoint or your own mynet.py:Net works too.")
    found = import_target(own.kind, what="network", error=ConfigError)
    if _is_module(found):
        return fold(found)
    if isinstance(found, type) and hasattr(found, "evaluate"):
        return found(**own.settings)
    if hasattr(found, "evaluate"):
        return found
    if isinstance(found, type) or _makes_network(found):
        return fold(make_network(own.replace(factory=found), game))
    if own.settings:
        raise ConfigError(f"{own.kind} is a function and takes no settings: remove {text.rpartition(':')[2]}")
    return from_function(found, batched=True)


def _is_module(found: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(found, torch.nn.Module)


def _makes_network(function: Any) -> bool:
    """Whether a function makes a network: it has parameters named after facts about the game."""
    return not set(FACTS).isdisjoint(inspect.signature(function).parameters)


def _require_module(found: Any, who: str) -> Any:
    if not _is_module(found):
        raise ConfigError(f"{who} runs only PyTorch modules: name a checkpoint, or your own mynet.py:Net")
    return found


def _make_remotely(game: CoreGame, text: str, options: Mapping[str, Any]) -> Any:
    """A call of `make_evaluator` that is sent to an inference actor, because a loaded network cannot be sent."""
    return make_evaluator(game, text, **options).evaluator


def network_label(net: str) -> str:
    """The `--net` option as an evaluator's name: `64x5` becomes a new ResNet of that size."""
    return f"resnet:{net}" if net.partition("x")[0].isdigit() else net


def folded_network(game: CoreGame, net: str, *, network: Sequence[str] | None = None) -> Any:
    """The network that `--net` or `--evaluator` names, as a module with its batch norm folded in."""
    return _require_module(open_network(game, network_label(net), network=network), "this command")
