"""Checkpoints: folders of safetensors and JSON files, written whole or not at all.

    RUN/checkpoints/000120/
        model.safetensors      the weights; the header names their game, network, settings and version,
                               so that a copy of this one file is enough to play with
        training.safetensors   the state of the optimizer
        training.json          counters, settings, metrics, and the hashes of the other two files

A checkpoint is written beside its place, flushed to the disk and renamed. Whatever stops the program, the checkpoints
before it stay intact. Nothing in these files is executed when they are loaded.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import Tensor

from windrow.distribution import installed_version
from windrow.errors import CheckpointError, ConfigError, GameError
from windrow.games.core_game import CoreGame
from windrow.games.provenance import game_from_file
from windrow.nets.config import KINDS
from windrow.nets.specs import find_factory, from_weights, game_facts, own_network, spec_of
from windrow.play.specs import parse_networks
from windrow.train.disk import explain_write, read_whole, sync_folder, write_file
from windrow.train.tensor_file import damaged, pack_tensors, parse_object, read_tensors, to_json

FORMAT = 1
MODEL, TENSORS, TRAINING = "model.safetensors", "training.safetensors", "training.json"
_FOLDER = "checkpoints"
_EXPORTED = {".onnx", ".pt2"}
_NUMBER = re.compile(r"[0-9]+")
_OF_NET = "net."
"""Names in a learner's state that are weights, which are in the model's file already."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A network and the facts of its checkpoint.

    game: game that the network plays.
    net: the network, in evaluation mode, on the CPU.
    spec: description from which the network is made, as from `windrow.nets.spec_of`.
    metadata: everything in the file's header: step, metrics, config, search, versions.
    path: path of the file.
    """

    game: CoreGame
    net: Any
    spec: dict[str, Any]
    metadata: dict[str, Any]
    path: Path


class ModelFacts(NamedTuple):
    """Facts in the header of a checkpoint.

    game: game that the network plays.
    metadata: as in `LoadedModel`.
    num_weights: number of weights.
    """

    game: CoreGame
    metadata: dict[str, Any]
    num_weights: int


class SavedTraining(NamedTuple):
    """Everything that a run needs to continue.

    learner_state: tensors for `Learner.load_state`, with the shape of the weights they belong to.
    counters: counters of the run, as saved.
    config: settings of the run, as saved.
    metrics: metrics of the run, as saved.
    model: the network.
    """

    learner_state: dict[str, Tensor]
    counters: dict[str, Any]
    config: dict[str, Any]
    metrics: dict[str, Any]
    model: LoadedModel


def save_checkpoint(
    run_folder: str | Path,
    step: int,
    *,
    game: CoreGame,
    net: Any,
    learner_state: Mapping[str, Tensor],
    counters: Mapping[str, Any],
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    keep: int = 5,
    keep_every: int | None = None,
) -> Path:
    """Write a checkpoint and delete the oldest ones; return its folder.

    Args:
        run_folder: folder of the run.
        step: number of the checkpoint; checkpoints are ordered by it.
        game: game that the network plays.
        net: the network, made by `windrow.nets.make_network`.
        learner_state: the tensors from `Learner.state`.
        counters: counters to save; fit for JSON, like `config` and `metrics`.
        config: settings of the run; those under "search" are used when the network plays.
        metrics: metrics of the network.
        keep: number of checkpoints to keep.
        keep_every: checkpoints whose step is divisible by this are kept as well.

    Raises:
        CheckpointError: the checkpoint cannot be written. Earlier checkpoints are intact.
    """
    folder = Path(run_folder) / _FOLDER
    place = folder / f"{step:06d}"
    new, old = folder / f".{place.name}.new", folder / f".{place.name}.old"
    description = _describe(step, game=game, net=net, config=config, metrics=metrics)
    optimizer = {name: tensor for name, tensor in learner_state.items() if not name.startswith(_OF_NET)}
    files = {
        MODEL: pack_tensors(net.state_dict(), description),
        TENSORS: pack_tensors(optimizer, {"format": FORMAT, "step": step}),
    }
    training = {"format": FORMAT, "step": step, "counters": counters, "config": config, "metrics": metrics}
    files[TRAINING] = _pack_training(training, files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _delete_leftovers(folder)
        new.mkdir()
        for name, data in files.items():
            write_file(new / name, data)
        sync_folder(new)
        if place.exists():  # of a run that went back: a damaged one, say
            place.rename(old)
        new.rename(place)
        sync_folder(folder)
    except OSError as error:
        with suppress(OSError):
            shutil.rmtree(new, ignore_errors=True)
            if old.exists() and not place.exists():
                old.rename(place)
        raise CheckpointError(f"{explain_write(place, error)}. Earlier checkpoints are intact") from error
    try:
        _delete_old(folder, place, keep=keep, keep_every=keep_every)
    except OSError as error:  # the new one is there, which is what counts
        warnings.warn(f"old checkpoints in {folder} cannot be deleted: {error}", RuntimeWarning, stacklevel=2)
    return place


def load_model(path: str | Path, *, game: CoreGame | None = None, network: object = None) -> LoadedModel:
    """Load the network of a model.safetensors file, of a checkpoint's folder, or of a run's folder (its latest one).

    Args:
        path: the file or the folder.
        game: the game. Without it, only networks for built-in games are loaded: code that a file names is not imported.
        network: for a checkpoint of your own network, its class or the place of the class, such as "mynet.py:Net".
            Several may be given; the checkpoint's is used. Arguments that are numbers may be left out.

    Raises:
        CheckpointError: there is no checkpoint, it is damaged, or it is for another game or network.
    """
    file = _find_model(Path(path))
    tensors, metadata, found, spec = _read_model(file, game)
    try:
        own = own_network(spec, parse_networks(network))
        factory = None if own is None else find_factory(own)
        net = from_weights(spec if own is None else {**game_facts(found), **own.to_dict()}, tensors, factory=factory)
    except (ConfigError, GameError) as error:
        raise CheckpointError(f"{file} cannot be used: {error}") from error
    return LoadedModel(found, net, spec_of(net), metadata, file)


def describe_model(path: str | Path, *, game: CoreGame | None = None) -> ModelFacts:
    """Read the facts in a checkpoint's header. The network is not made, so your own need not be named.

    Raises:
        CheckpointError: as for `load_model`.
    """
    file = _find_model(Path(path))
    tensors, metadata, found, spec = _read_model(file, game)
    if spec.get("kind") in KINDS:
        parameters = dict(load_model(file, game=game).net.named_parameters())
        tensors = {name: tensor for name, tensor in tensors.items() if name in parameters}
    return ModelFacts(found, metadata, sum(tensor.numel() for tensor in tensors.values()))


def load_training(path: str | Path, *, game: CoreGame | None = None, network: object = None) -> SavedTraining:
    """Load all of a checkpoint, from its folder or from a run's folder (its latest one); see `load_model`.

    Raises:
        CheckpointError: there is no checkpoint, it is damaged, or it is for another game.
    """
    file = _find_model(Path(path))
    folder = file.parent
    training = _check_folder(folder)
    for part in ("counters", "config", "metrics"):
        if not isinstance(training.get(part), dict):
            raise damaged(folder / TRAINING, f"it has no {part}")
    model = load_model(file, game=game, network=network)
    optimizer, _ = read_tensors(folder / TENSORS)
    weights: dict[str, Tensor] = model.net.state_dict()
    state = {**optimizer, **{_OF_NET + name: tensor for name, tensor in weights.items()}}
    return SavedTraining(state, training["counters"], training["config"], training["metrics"], model)


def latest_checkpoint(run_folder: str | Path) -> Path | None:
    """The folder of the newest undamaged checkpoint; None if there is none. Damaged checkpoints cause a warning."""
    for place in reversed(_places(Path(run_folder) / _FOLDER)):
        if (problem := _find_damage(place)) is None:
            return place
        warnings.warn(f"checkpoint {place} is skipped: {problem}", RuntimeWarning, stacklevel=2)
    return None


# --- What is written ---------------------------------------------------------------------------------------------


def _describe(
    step: int, *, game: CoreGame, net: Any, config: Mapping[str, Any], metrics: Mapping[str, Any]
) -> dict[str, Any]:
    if not isinstance(game, CoreGame):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(
            "a checkpoint saves the name of its game, so that it can be created again: give "
            f"windrow.make_game('FILE.py:{type(game).__name__}'), not the object itself"
        )
    return {
        "format": FORMAT,
        "game": game.name,
        "game_options": dict(game.options),
        "rules": game.facts,
        "net": spec_of(net),
        "search": config.get("search"),
        "config": config,
        "windrow": installed_version(),
        "commit": _commit(),
        "step": step,
        "metrics": metrics,
    }


@cache
def _commit() -> str | None:
    """The commit of windrow's own source, if it is a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # not that of a project windrow is installed within
        return git("rev-parse", "HEAD") + (" with changes" if git("status", "--porcelain", "--", "..") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _pack_training(training: dict[str, Any], files: Mapping[str, bytes]) -> bytes:
    hashes = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    content = json.loads(to_json({**training, "files": hashes}))
    return to_json({**content, "sha256": _hash_json(content)}, indent=2).encode()


def _hash_json(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _delete_old(folder: Path, newest: Path, *, keep: int, keep_every: int | None) -> None:
    older = [place for place in _places(folder) if int(place.name) < int(newest.name)]
    for place in older[: max(0, len(older) - max(keep, 1) + 1)]:
        if keep_every is None or int(place.name) % keep_every != 0:
            place.rename(folder / f".{place.name}.old")  # a kill while it is deleted leaves no half of a checkpoint
    _delete_leftovers(folder)


def _delete_leftovers(folder: Path) -> None:
    """Delete what a killed program did not finish writing or deleting."""
    for place in folder.glob(".*"):
        if place.suffix in (".new", ".old") and place.is_dir():
            shutil.rmtree(place)


# --- What is read ------------------------------------------------------------------------------------------------


def _places(folder: Path) -> list[Path]:
    """The folders of all checkpoints, oldest first."""
    try:
        names = [place for place in folder.iterdir() if _NUMBER.fullmatch(place.name) and place.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be read: {error.strerror}") from error
    return sorted(names, key=lambda place: int(place.name))


def _find_model(path: Path) -> Path:
    """The model file that `path` names."""
    if path.suffix in _EXPORTED and path.is_file():
        raise CheckpointError(
            f"{path} is an exported network, not a checkpoint: players and training take a run's folder, a "
            f"checkpoint's folder or a {MODEL} file. It is an evaluator: windrow search GAME --evaluator {path}"
        )
    if path.is_file():
        return path.parent / MODEL if path.name in (TENSORS, TRAINING) else path
    if (path / MODEL).exists():
        return path / MODEL
    run = path.parent if path.name == _FOLDER else path
    latest = latest_checkpoint(run)
    if latest is not None:
        return latest / MODEL
    if _places(run / _FOLDER):
        raise CheckpointError(f"all checkpoints of {run} are damaged: restore one from a backup, or start another run")
    what = "has no checkpoint in it" if path.is_dir() else "does not exist"
    raise CheckpointError(f"{path} {what}: name a {MODEL} file, a checkpoint's folder or a run's folder")


def _find_damage(folder: Path) -> CheckpointError | None:
    try:
        _check_folder(folder)
    except CheckpointError as error:
        return error
    return None


def _check_folder(folder: Path) -> dict[str, Any]:
    """The contents of training.json, if it and the files beside it are undamaged.

    Raises:
        CheckpointError: one of them is damaged.
    """
    path = folder / TRAINING
    data = read_whole(path)
    try:
        training = parse_object(data)
        is_whole = training.pop("sha256", None) == _hash_json(training)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON: {error}") from error
    if not is_whole:
        raise damaged(path, "its contents do not match their hash")
    _check_format(training, path)
    files: Any = training.get("files")
    if not isinstance(files, dict) or set(cast("dict[str, Any]", files)) != {MODEL, TENSORS}:
        raise damaged(path, f"it does not have the hashes of {MODEL} and {TENSORS}")
    for name, facts in cast("dict[str, Any]", files).items():
        _check_file(folder / name, facts)
    return training


def _check_file(path: Path, facts: Any) -> None:
    data = read_whole(path)
    found = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if not isinstance(facts, dict) or found != facts:
        raise damaged(path, f"its {len(data)} bytes do not match its saved size and hash")


def _read_model(
    file: Path, game: CoreGame | None
) -> tuple[dict[str, Tensor], dict[str, Any], CoreGame, dict[str, Any]]:
    """The weights in a file, its header, its game, and the network's description if it fits the game."""
    tensors, metadata = read_tensors(file)
    _check_format(metadata, file)
    try:
        found = game_from_file(metadata.get("game"), metadata.get("game_options"), game, metadata.get("rules"))
        if not isinstance(spec := metadata.get("net"), dict):
            raise ConfigError("it does not describe its network")
        described, facts = cast("dict[str, Any]", spec), game_facts(found)
        for name in ("observation", "num_actions"):
            if (said := described.get(name)) != facts[name]:
                raise ConfigError(f"its network is for {name} = {said!r:.100}, but {found!r} has {facts[name]!r}")
    except (ConfigError, GameError) as error:
        raise CheckpointError(f"{file} cannot be used: {error}") from error
    return tensors, metadata, found, described


def _check_format(content: Mapping[str, Any], path: Path) -> None:
    if content.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {content.get('format')!r:.100}, but this windrow reads format {FORMAT}: use the "
            "version of windrow that wrote it"
        )
