"""`load`: makes an evaluator from a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from windrow.cores import num_cores
from windrow.errors import ConfigError
from windrow.evaluators.backends.catalog import find_backend, select_backends
from windrow.evaluators.backends.choice import choose
from windrow.evaluators.backends.source import Input, check_inputs, game_inputs, open_source
from windrow.evaluators.network import NetworkEvaluator
from windrow.evaluators.positions import given_positions, random_positions
from windrow.evaluators.protocol import Observations
from windrow.games.python_game import as_core_game

NUM_POSITIONS = 256
"""Number of positions for calibration, and also for comparison."""

CHECKPOINT_LOADER = "windrow.train:load_model"
FOLDING = "windrow.nets:fold"
"""The functions that read checkpoints and fold batch norm. They are imported by name when they are called, because both
modules import this package."""


def load(
    source: object,
    *,
    game: Any = None,
    backend: str = "auto",
    precision: str | None = None,
    batch: int = 64,
    num_threads: int | None = None,
    device: str | None = None,
    candidates: Sequence[str] | None = None,
    max_update_s: float | None = None,
    positions: Observations | None = None,
    use_cache: bool = True,
    trust_code: bool = False,
    network: object = None,
) -> NetworkEvaluator:
    """Make an evaluator that runs a network in the fastest backend on this machine, or in a chosen one.

    The network takes observations [K, ...] and gives logits [K, A] and values [K] or [K, 1], in [-1, 1], for the player
    to move. If the game has one value per player, values are [K, players]: the player to move first, then the others in
    their order of play.

    Args:
        source: a `torch.nn.Module`, which is called as `TorchEvaluator` calls it, or a path: of an ONNX file (which
            needs no PyTorch), of a program saved by `torch.export.save` (.pt2, see `trust_code`), or of a windrow
            checkpoint, which is a model.safetensors file, its folder, or a run's folder (its latest checkpoint). The
            weights are copied: give later ones to the evaluator's `update` (those of a checkpoint's network through
            `windrow.nets.fold`).
        game: the game to evaluate. Modules need it, because they do not declare their inputs; a file is checked against
            it. A checkpoint for a built-in game names that game itself.
        backend: "auto" measures the installed backends and takes the fastest whose answers agree with float32 (see
            `windrow.evaluators.backends.agreement`); `evaluator.choice` explains the choice. Otherwise a name from
            `windrow.evaluators.backends.catalog`.
        precision: only "f32", "bf16" or "int8". None: the backend's own; for "auto", any that agrees.
        batch: rows in a typical call, for which "auto" measures: games times leaves per game.
        num_threads: number of CPU threads. None: one per core that this process may use; PyTorch uses only one while
            other programs occupy the cores.
        device: for "auto", only "cpu" or "cuda".
        candidates: backends among which "auto" chooses. None: all that are built in about a second, which excludes the
            compiled ones.
        max_update_s: "auto" takes only a backend whose weights can be updated in this many seconds. For self-play
            during training, 0.05 is a good limit.
        positions: observations for calibration and comparison. None: from random play of `game`.
        use_cache: whether "auto" may store its measurements on disk and reuse them.
        trust_code: also load a .pt2 file. Such a file holds pickles, and loading it runs whatever code is in it. ONNX
            files and checkpoints are data and need no trust.
        network: for a checkpoint of your own network, its class or the place of the class, such as "mynet.py:Net".
            windrow imports no code that a file names.

    Raises:
        MissingExtraError: a package is not installed; the message names the extra.
        EvaluatorError: the network cannot be read, exported or run, or does not fit the game.
        CheckpointError: a checkpoint is damaged, or was trained for another game.
        ConfigError: there is no such backend or precision.
    """
    threads, is_exact = _checked_threads(num_threads), num_threads is not None
    game = None if game is None else as_core_game(game)
    if isinstance(batch, bool) or batch < 1:
        raise ConfigError(f"batch must be at least 1, not {batch!r}")
    wanted = None if backend == "auto" else find_backend(backend, precision)
    if wanted is not None:
        wanted.require()  # before a module is exported for nothing
    label = ""
    if _is_checkpoint(source):
        label = str(source)
        source, game = _open_checkpoint(label, game, network)
    found = open_source(source, inputs=_given_inputs(game, positions), trust_code=trust_code)
    found.label = label or found.label
    if positions is not None:
        given = given_positions(positions)
        # Half to calibrate on, half to compare on.
        found.calibration, found.held_out = (
            given.part(slice(0, None, 2)),
            given.part(slice(len(given) > 1, None, 2)),
        )
    elif game is not None:
        found.calibration = random_positions(game, NUM_POSITIONS, seed=0)
        found.held_out = random_positions(game, NUM_POSITIONS, seed=1)
    if wanted is not None:
        runner = wanted.make(found, num_threads=threads, is_exact_count=is_exact)
        chosen, choice = wanted, f"{wanted.name}: as asked for"
    else:
        chosen, runner, choice = choose(
            found,
            select_backends(precision=precision, device=device, names=candidates),
            batch=batch,
            num_threads=threads,
            is_exact_count=is_exact,
            max_update_s=max_update_s,
            use_cache=use_cache,
        )
    evaluator = NetworkEvaluator(found, runner, chosen, num_threads=threads, choice=choice)
    return evaluator if game is None else evaluator.bind(game)


def _is_checkpoint(source: object) -> bool:
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(cast("str | os.PathLike[str]", source))
    return path.is_dir() or (path.is_file() and path.suffix.lower() == ".safetensors")


def _open_checkpoint(path: str, game: Any, network: object) -> tuple[Any, Any]:
    """Load the network of a checkpoint, with batch norm folded in, and its game."""
    model = load_checkpoint(path, game=game, network=network)
    return _find(FOLDING)(model.net), model.game


def load_checkpoint(path: str | Path, *, game: Any, network: object) -> Any:
    """Call `windrow.train.load_model`."""
    return _find(CHECKPOINT_LOADER)(path, game=game, network=network)


def _find(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _given_inputs(game: Any, positions: Observations | None) -> tuple[Input, ...] | None:
    """Shapes of the network's inputs, if they are known."""
    from_positions: tuple[Input, ...] | None = None
    if isinstance(positions, Mapping):
        from_positions = tuple(Input(name, part.shape[1:]) for name, part in positions.items())
    elif positions is not None:
        from_positions = (Input("", positions.shape[1:]),)
    if game is None:
        return from_positions
    from_game = game_inputs(game.observation)
    if from_positions is not None:
        check_inputs(from_positions, from_game, label="positions", giver=repr(game))
    return from_game


def _checked_threads(num_threads: int | None) -> int:
    if num_threads is None:
        return num_cores()
    if isinstance(num_threads, bool) or num_threads < 1:
        raise ConfigError(f"num_threads must be at least 1, not {num_threads!r}")
    return num_threads
