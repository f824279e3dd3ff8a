"""A training run: play, learn, save, again and again, in a folder that survives a kill at any moment.

    run = TrainingRun.create("runs/c4", TrainConfig.read("configs/connect4.toml"))
    for report in run.iterations():
        print(report.metrics)

The folder holds

    config.json      the settings
    rules.json       the facts of the game, to recognise it by: sizes and a few random games
    games/000001.games ...   the games of each iteration, written as they finish (not in a run on a device)
    checkpoints/000001/ ...  weights, optimizer and counters after an iteration
    metrics.jsonl    one line per iteration
    strength/        rating games and ratings of checkpoints
    findings.jsonl   problems that the diagnosis found, if any
    tensorboard/     the metrics for TensorBoard
    run.lock         names the process that trains here; a second process is refused

The strategy (`windrow.train.strategy`), which the engine names, decides how positions are made and learned from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from windrow.engines import EngineOptions
from windrow.errors import CheckpointError, ConfigError, GameError, TrainingError
from windrow.games.core_game import CoreGame
from windrow.games.registry import make_game
from windrow.nets.specs import own_network
from windrow.play.specs import parse_networks
from windrow.search.engines import engine_class, engines_that
from windrow.train.checkpoint import latest_checkpoint, load_training, save_checkpoint
from windrow.train.config import RULES, STRATEGY_SECTIONS, TrainConfig, game_of_run
from windrow.train.diagnosis import Diagnosis, Finding
from windrow.train.disk import replace_file, writing
from windrow.train.metrics import MetricsLog
from windrow.train.progress import Counters, Progress
from windrow.train.rating_games import RunRatings
from windrow.train.rating_log import CheckpointRating
from windrow.train.run_lock import RunLock
from windrow.train.strategy import Event, Strategy, strategy_of

_OLD_OPTIONS = "tensor.json"
"""Options file of tensor-engine runs before their options became a section of config.json."""


@dataclass(frozen=True, slots=True)
class IterationReport:
    """Report on one iteration."""

    iteration: int
    """Number of the iteration, counted from 1."""
    metrics: dict[str, float]
    """Metrics of the iteration, as in `metrics.jsonl`: games, losses, speed and strength."""
    checkpoint: Path | None
    """Folder of the checkpoint that was saved; None if none was saved."""
    findings: tuple[Finding, ...] = ()
    """Problems that the diagnosis found after this iteration and had not reported before."""
    rating: CheckpointRating | None = None
    """Latest rating of a checkpoint; None if no rating games ended after this iteration."""


class TrainingRun:
    """A training run in its folder, made by `create` or `resume`.

    folder: folder of the run.
    config: settings of the run.
    game: game that is learned.
    counters: progress of the run in counts.
    strategy: the `windrow.train.Strategy` that plays and learns. A strategy may have attributes beyond that contract:
        the default, `windrow.train.host.HostTraining`, has `evaluator`, `selfplay`, `replay` and `learner`.
    """

    def __init__(
        self,
        folder: Path,
        strategy: Strategy,
        ratings: RunRatings,
        counters: Counters,
        learner_state: Mapping[str, Any] | None,
        held: ExitStack,
    ) -> None:
        self.folder, self.config, self.game, self.counters = folder, strategy.config, strategy.game, counters
        self.strategy: Any = strategy
        self._progress = Progress(self.config, counters)
        self._ratings = ratings
        held.callback(ratings.close)
        held.callback(strategy.close)
        strategy.open(folder, self._progress, learner_state)
        ratings.open(folder, self._progress)
        self.metrics = MetricsLog(folder, first_iteration=counters.iteration + 1)
        self._diagnosis = Diagnosis(folder, self.config, self.game, first_iteration=counters.iteration + 1)
        self._last: dict[str, float] = {}
        self._is_prepared = self._stop_requested = False
        self._held = held.pop_all()

    # --- Beginning --------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: str | Path, config: TrainConfig, *, strategy: type[Strategy] | None = None) -> TrainingRun:
        """Create a new run in `folder`, which must not hold a run already.

        Args:
            folder: folder of the run; it is created if it does not exist.
            config: settings of the run.
            strategy: the strategy that plays and learns. None: the one that the engine `config.search.engine` names.
        """
        folder = Path(folder)
        kind = strategy or strategy_of(engine_class(config.search))
        _check_sections(kind, _changed_options(config))
        game = make_game(config.game, **config.game_options)
        made, ratings = kind(game, config), RunRatings(game, config)  # before anything is written
        with ExitStack() as held:
            held.callback(RunLock.for_new_run(folder).release)
            with writing(folder):
                (folder / "checkpoints").mkdir(exist_ok=True)
            _write_config(folder, config, game)
            return cls(folder, made, ratings, Counters(), None, held)

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        overrides: dict[str, Any] | None = None,
        *,
        game: CoreGame | None = None,
        network: object = None,
        strategy: type[Strategy] | None = None,
    ) -> TrainingRun:
        """Continue the run in `folder` from its latest checkpoint.

        Args:
            folder: folder of the run.
            overrides: settings to change, such as `{"search.num_simulations": 32}`.
            game: the game of the run. It is needed unless the game is built in, because code that a file names is not
                imported.
            network: the class of the network, or its place, if it is your own; needed for the same reason. Its
                arguments come from the run.
            strategy: as for `create`.
        """
        folder, overrides = Path(folder), overrides or {}
        if not (folder / "config.json").exists():
            raise ConfigError(f"{folder} is not a run: it has no config.json. Name the folder of a run")
        with ExitStack() as held:
            held.callback(RunLock(folder).release)
            config, game = _read_settings(folder, overrides, game, network)
            kind = strategy or strategy_of(engine_class(config.search))
            _check_sections(kind, overrides)
            path = _find_checkpoint(folder)
            made, ratings = kind(game, config), RunRatings(game, config)
            if overrides:
                _write_config(folder, config, game)
            if path is None:
                return cls(folder, made, ratings, Counters(), None, held)
            training = load_training(path, game=game, network=config.network)
            counters = Counters.restore(training.counters, path)
            return cls(folder, made, ratings, counters, training.learner_state, held)

    # --- Going on ---------------------------------------------------------------------------------------------

    @property
    def net(self) -> Any:
        """The network that is saved in checkpoints."""
        return self.strategy.net

    @property
    def is_over(self) -> bool:
        """Whether the run has reached a limit of its config."""
        return self._progress.is_over

    @property
    def progress(self) -> float:
        """Share of the run that is done, from 0 to 1; 0 for a run without limits."""
        return self._progress.share

    def stop(self) -> None:
        """End the run after the present iteration; callable from any thread."""
        self._stop_requested = True

    def prepare(self) -> None:
        """Do the work before the first iteration, such as compiling for a device. `iterations` also does it."""
        if not self._is_prepared:
            self.strategy.prepare()
            self._is_prepared = True

    def iterations(self, on_event: Event | None = None) -> Iterator[IterationReport]:
        """Run iterations until a limit is reached or `stop` is called, and yield a report after each.

        Args:
            on_event: called during an iteration with a kind and its numbers. After games: ("games", {"done": games of
                this iteration so far, "of": games wanted}). After each step of a learner on the CPU: ("steps", {"done":
                steps so far, "of": steps to take, "loss": loss of the step}). With `overlap`, the second kind is called
                from another thread.
        """
        self.prepare()
        while not self.is_over and not self._stop_requested:
            self.counters.iteration += 1
            try:
                report = self._iterate(on_event or (lambda kind, numbers: None))
            except BaseException:
                self.counters.iteration -= 1  # whoever goes on does this one again, with the games it has
                raise
            yield report

    def _iterate(self, on_event: Event) -> IterationReport:
        counters, config, strategy = self.counters, self.config, self.strategy
        self._progress.begin_iteration()
        try:
            metrics: dict[str, float] = strategy.iterate(on_event)
        except TrainingError as error:
            last = latest_checkpoint(self.folder)
            raise TrainingError(f"{error}. The last good checkpoint is {last}") from error
        if config.evaluate_every and counters.iteration % config.evaluate_every == 0:
            metrics |= strategy.measure_strength()
        self._progress.update()
        rating = self._ratings.measure(self.net, is_last=self.is_over, is_wanted=lambda: not self._stop_requested)
        self._progress.update()
        metrics |= {} if rating is None else rating.metrics()
        metrics |= {"strength_share": counters.strength_s / counters.total_s, "total_s": counters.total_s}
        metrics |= {name: getattr(counters, name) for name in ("games", "positions", "steps")}
        # Before the checkpoint: a line too many is dropped by a resume, one that is missing stays so.
        self.metrics.write(counters.iteration, metrics)
        self._last |= metrics
        is_last = self.is_over or self._stop_requested
        is_saved = counters.iteration % config.checkpoint_every == 0 or is_last
        findings = self._diagnosis.look(counters.iteration, metrics, self.net, is_over=is_last)
        saved = self.save(metrics) if is_saved else None
        return IterationReport(counters.iteration, metrics, saved, tuple(findings), rating)

    def save(self, metrics: Mapping[str, float] | None = None) -> Path:
        """Write a checkpoint now, with these metrics or else the latest ones; return its folder."""
        path = save_checkpoint(
            self.folder,
            self.counters.iteration,
            game=self.game,
            net=self.net,
            learner_state=self.strategy.learner_state(),
            counters=asdict(self.counters),
            config=self.config.to_dict(),
            metrics=dict(metrics or self._last),
            keep=self.config.keep_checkpoints,
        )
        # The oldest checkpoint can still be gone back to.
        self.strategy.forget_before(min(int(place.name) for place in path.parent.iterdir() if place.name.isdigit()))
        return path

    def summary(self) -> dict[str, Any]:
        """Summary of the whole run so far."""
        return {
            "run": str(self.folder),
            "game": self.game.name,
            **self.counters.summary(),
            "backend": self.strategy.backend,
            **{name: self._last.get(name) for name in ("loss", "policy_loss", "value_loss", "solved_policy")},
            **{name: self._last.get(name) for name in ("elo", "elo_error", "elo_iteration")},
        }

    def close(self) -> None:
        """Free everything that the run holds, including workers and its lock. May be called more than once."""
        self._held.close()


def _write_config(folder: Path, config: TrainConfig, game: CoreGame) -> None:
    replace_file(folder / RULES, json.dumps(game.facts) + "\n")
    replace_file(folder / "config.json", json.dumps(config.to_dict(), indent=2) + "\n")


def _read_settings(
    folder: Path, overrides: Mapping[str, Any], game: CoreGame | None, network: object
) -> tuple[TrainConfig, CoreGame]:
    """Read the settings and the game of the run in `folder`, which a stranger may have made.

    Nothing that its config.json names is imported or connected to. The caller also has to name a game or a network that
    is not built in, the game's rules in torch ops, and a Ray cluster elsewhere.
    """
    path = folder / "config.json"
    if (folder / _OLD_OPTIONS).exists():
        raise ConfigError(
            f"{folder / _OLD_OPTIONS} is from a windrow before 0.2. Move its game and device to search.engine in "
            f"{path}, beside the engine's name, and the rest to a section device. Then delete {_OLD_OPTIONS}"
        )
    config = TrainConfig.read(path, overrides)
    try:
        found = game_of_run(folder, config.game, config.game_options, game)
        own = own_network(config.network.to_dict(), parse_networks(network))
    except (ConfigError, GameError) as error:
        raise ConfigError(f"{path} cannot be used: {error}") from error
    if game is not None:  # by the name that it has from here
        config = config.replace(game=game.name, game_options=dict(game.options))
    if own is not None:
        config = config.replace(network=own)
    elif network is not None:
        raise ConfigError(f"{path} says that this run trains {config.network.in_words()}: remove --network")
    for name, value in config.search.options_for(EngineOptions).foreign_code().items():
        if (key := f"search.engine.{name}") not in overrides:
            raise ConfigError(
                f"{path} sets {key} to {value}, which can run code in this process. windrow does not do that because "
                f"a file says so. If you trust it, repeat it yourself: --set {key}={value}"
            )
    return config, found


def _changed_options(config: TrainConfig) -> list[str]:
    """Settings that differ from their defaults in sections that only some strategies read, such as "device.compile"."""
    options = {section: getattr(config, section) for section in STRATEGY_SECTIONS}
    return [
        f"{section}.{name}"
        for section, given in options.items()
        for name, usual in type(given)().to_dict().items()
        if getattr(given, name) != usual
    ]


def _check_sections(kind: type[Strategy], given: Iterable[str]) -> None:
    """Raise `ConfigError` if a setting was given that only other strategies read."""
    for key in given:
        section = key.partition(".")[0]
        if section in STRATEGY_SECTIONS and section != kind.section:
            raise ConfigError(
                f"{key} is a setting of --engine {_engines_with(section)}: add that option, or remove the setting"
            )


def _engines_with(section: str) -> str:
    return " or ".join(engines_that(lambda engine: strategy_of(engine).section == section))


def _find_checkpoint(folder: Path) -> Path | None:
    """Find the newest undamaged checkpoint of a run; None if the run has saved none.

    Raises:
        CheckpointError: there are checkpoints, but all of them are damaged.
    """
    path = latest_checkpoint(folder)
    places = sorted((folder / "checkpoints").glob("[0-9]*")) if path is None else []
    if places:
        names = ", ".join(map(str, places))
        raise CheckpointError(
            f"all checkpoints of {folder} are damaged, and without one the run would start over: {names}. The warnings "
            "above say what is wrong with each. Restore one from a backup, or start a new run in another folder"
        )
    return path
