"""From the `--evaluator` option to an evaluator."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow.engine_registry import AUTO
from windrow.errors import ConfigError
from windrow.evaluators.rollout import RolloutEvaluator
from windrow.evaluators.uniform import UniformEvaluator
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_spec
from windrow.search.engines import find_engine
from windrow.spelling import explain_unknown


@dataclass(frozen=True, slots=True)
class NamedEvaluator:
    """An evaluator, and what it is in words."""

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
) -> NamedEvaluator:
    """The evaluator that `text` names.

    Args:
        game: what it will evaluate.
        text: `uniform`, `rollout`, `rollout:8`, the path of a checkpoint, or `resnet`.
        seed: of the random games.
        backend: what runs a network.
        batch: rows in a typical call.
        has_new_network: whether `resnet`, a network with random weights of which only the speed means something, is
            welcome; its size is written `resnet:64x5`, channels and blocks.
        engine: what will call it; one with its trees on a device takes a module, not a backend.
    """
    spec = parse_spec(text)
    if spec.name == "uniform" and not spec.words and not spec.settings:
        return NamedEvaluator(UniformEvaluator(), "uniform", is_network=False)
    if spec.name == "rollout" and not spec.settings and len(spec.words) <= 1:
        count = spec.words[0] if spec.words else "1"
        if not count.isdigit():
            raise ConfigError(f"rollout:{count}: the number of random games per position is a whole number")
        return NamedEvaluator(RolloutEvaluator(int(count), seed=seed), text, is_network=False)
    if spec.name == "resnet" and has_new_network and not spec.settings:
        network, label = new_network(game, spec.words[0] if spec.words else "64x5"), text
    elif os.path.exists(spec.name):
        from windrow.train import load_model

        network, label = load_model(Path(spec.name), game=game).net, text
    else:
        names = ["uniform", "rollout", *(["resnet"] if has_new_network else [])]
        known = explain_unknown(spec.name, names, what="evaluators")
        raise ConfigError(f"there is no evaluator {text!r}. {known} Or give the path of a checkpoint.")
    from windrow.nets import fold

    if find_engine(engine).capabilities.evaluator == "device":
        from windrow.evaluators.torch import TorchEvaluator

        module = TorchEvaluator(fold(network))
        return NamedEvaluator(module, f"{label} (torch, {module.device.type})", is_network=True)
    from windrow.evaluators.loading import load

    evaluator = load(fold(network), game=game, backend=backend, batch=batch)
    return NamedEvaluator(evaluator, f"{label} ({evaluator.backend})", is_network=True)


@dataclass(frozen=True, slots=True)
class EvaluatorMaker:
    """`make_evaluator`, to be called on an inference actor: a loaded network cannot go there."""

    game: CoreGame
    text: str
    seed: int
    backend: str
    batch: int
    has_new_network: bool

    def __call__(self) -> Any:
        """The evaluator."""
        return make_evaluator(
            self.game,
            self.text,
            seed=self.seed,
            backend=self.backend,
            batch=self.batch,
            has_new_network=self.has_new_network,
        ).evaluator


def new_network(game: CoreGame, size: str) -> Any:
    """An untrained ResNet of a size such as `64x5`, 64 channels and 5 blocks."""
    channels, times, blocks = size.partition("x")
    if not times or not channels.isdigit() or not blocks.isdigit():
        raise ConfigError(f"the size of a network is written channels x blocks, such as 64x5, not {size!r}")
    from windrow.nets import ResNet

    return ResNet.for_game(game, channels=int(channels), blocks=int(blocks)).eval()


def network_label(net: str) -> str:
    """The `--net` option as an evaluator: a checkpoint's path, or the size of a new network."""
    return f"resnet:{net}" if net.partition("x")[0].isdigit() else net


def folded_network(game: CoreGame, net: str) -> Any:
    """The network that `--net` names, batch norm folded in."""
    from windrow.nets import fold

    if net.partition("x")[0].isdigit():
        return fold(new_network(game, net))
    from windrow.train import load_model

    return fold(load_model(Path(net), game=game).net)
