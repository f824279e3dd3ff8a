"""A training run: play, learn, save, again and again, in a folder that survives a kill at any moment.

    run = TrainingRun.create("runs/c4", TrainConfig.read("configs/connect4.toml"))
    for report in run.iterations():
        print(report.metrics)

The folder holds

    config.json      the settings
    games/000001.games ...   the games of each iteration, written as they finish
    checkpoints/000001/ ...  weights, optimizer and counters after an iteration
    metrics.jsonl    one line per iteration
    tensorboard/     the same for TensorBoard
    run.lock         names the process that trains here; a second one is refused

What was learned from is read back from the games, so a checkpoint is small. After a kill the games in progress are
lost, and what was learned since the last checkpoint; the games that ended since are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from windrow.errors import CheckpointError, ConfigError, GameError, TrainingError
from windrow.evaluators.loading import load
from windrow.games.core_game import CoreGame
from windrow.games.provenance import game_from_file
from windrow.games.registry import make_game
from windrow.nets import ResNet, fold
from windrow.train.archive import GameArchive, count_positions
from windrow.train.background import Background, share_threads
from windrow.train.checkpoint import latest_checkpoint, load_training, save_checkpoint
from windrow.train.config import TrainConfig
from windrow.train.disk import explain_write, replace_file
from windrow.train.learner import Learner, step_rng
from windrow.train.metrics import MetricsLog
from windrow.train.records import GameRecord
from windrow.train.replay import Replay
from windrow.train.run_lock import RunLock
from windrow.train.selfplay import SelfPlay
from windrow.train.strength import make_strength_test

_FULL_SIMULATIONS_AT = 0.7
"""Share of a run after which `early_simulations` have risen to the whole budget."""
_ITERATION_SHARE = 0.05
"""Share of a run's time limit after which an iteration ends with fewer games than it wanted, so that a short run learns
from what it has instead of ending in its first iteration."""
_MAX_UPDATE_S = 0.05
"""Longest that new weights may take to reach self-play."""


@dataclass(slots=True)
class Counters:
    """How far a run is; saved with every checkpoint."""

    iteration: int = 0
    games: int = 0
    positions: int = 0
    """Recorded moves."""
    moves: int = 0
    simulations: int = 0
    nn_positions: int = 0
    steps: int = 0
    """Of the learner."""
    samples_owed: float = 0.0
    """Samples that the games so far allow and the learner has not taken."""
    next_game: int = 0
    selfplay_s: float = 0.0
    learn_s: float = 0.0
    total_s: float = 0.0
    resign_margins: list[float] = field(default_factory=list[float])

    @classmethod
    def restore(cls, saved: dict[str, Any], path: Path) -> Counters:
        """Counters from the checkpoint in `path`; what other versions of windrow have counted is left out."""
        counters = cls(**{key: value for key, value in saved.items() if key in cls.__dataclass_fields__})
        for name, usual in _numbers(cls()).items():
            value = getattr(counters, name)
            numbers = cast("list[Any]", value if isinstance(value, list) else [value])
            is_sound = all(isinstance(number, int if isinstance(usual, int) else int | float) for number in numbers)
            if not is_sound or isinstance(value, list) != isinstance(usual, list):
                raise CheckpointError(f"{path} is damaged: its counter {name} is {value!r:.100}")
        return counters

    def summary(self, playing_s: float) -> dict[str, float]:
        """Counts, seconds, and speeds over the `playing_s` seconds in which games were played."""
        playing_s = max(playing_s, 1e-9)
        return {
            "iterations": self.iteration,
            "games": self.games,
            "positions": self.positions,
            "steps": self.steps,
            "simulations": self.simulations,
            "simulations_per_s": self.simulations / playing_s,
            "nn_positions_per_s": self.nn_positions / playing_s,
            "selfplay_s": self.selfplay_s,
            "learn_s": self.learn_s,
            "total_s": self.total_s,
        }


@dataclass(frozen=True, slots=True)
class IterationReport:
    """One iteration."""

    iteration: int
    """Its number, from 1 on."""
    metrics: dict[str, float]
    """What `metrics.jsonl` says of it: games, losses, speed, strength."""
    checkpoint: Path | None
    """The folder of the checkpoint that was saved, if one was."""


Event = Callable[[str, dict[str, float]], None]
"""Called often during an iteration: ("games", ...) after each game, ("steps", ...) after each step of the learner. See
`TrainingRun.iterations`."""


class TrainingRun:
    """A run in its folder; made by `create` or `resume`."""

    def __init__(
        self, folder: Path, config: TrainConfig, game: CoreGame, counters: Counters, learner_state: Any = None
    ) -> None:
        self.folder, self.config, self.game, self.counters = folder, config, game, counters
        self.net = ResNet.for_game(self.game, seed=config.seed, **config.network.to_dict())
        self._overlaps = config.overlap and not config.deterministic
        self._evaluator_threads, learner_threads = share_threads(config.num_threads, overlap=self._overlaps)
        self.learner = Learner(
            self.net, config.learner, deterministic=config.deterministic, num_threads=learner_threads
        )
        if learner_state is not None:
            self.learner.load_state(learner_state)
        self.replay = Replay(
            self.game,
            config.replay.max_positions,
            value_mix=config.replay.value_mix,
            use_symmetries=config.replay.use_symmetries,
        )
        self._archive = GameArchive(folder, config.replay.max_positions)
        self._last: dict[str, float] = {}
        self.metrics = MetricsLog(folder, first_iteration=counters.iteration + 1)
        self.evaluator = self._make_evaluator()
        self._recovered = self._restore_games()
        self.selfplay = SelfPlay(
            self.game,
            self.evaluator,
            config.search.replace(seed=config.seed),
            config.selfplay,
            next_game=counters.next_game,
            first_version=counters.iteration,
            resign_margins=counters.resign_margins,
            ray=config.ray if config.search.engine == "ray" else None,
        )
        self._strength = make_strength_test(self.game, self.evaluator) if config.evaluate_every else None
        self._stop_requested = False
        self._held = ExitStack()

    # --- Beginning --------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: str | Path, config: TrainConfig) -> TrainingRun:
        """Begin a new run in `folder`, which must not hold one."""
        folder = Path(folder)
        game = make_game(config.game, **config.game_options)  # before anything is written
        with ExitStack() as held:
            held.callback(RunLock.for_new_run(folder).release)
            try:
                (folder / "games").mkdir(exist_ok=True)
                (folder / "checkpoints").mkdir(exist_ok=True)
            except OSError as error:
                raise explain_write(folder, error) from error
            replace_file(folder / "config.json", json.dumps(config.to_dict(), indent=2) + "\n")
            run = cls(folder, config, game, Counters())
            run._held = held.pop_all()
            return run

    @classmethod
    def resume(
        cls, folder: str | Path, overrides: dict[str, Any] | None = None, *, game: CoreGame | None = None
    ) -> TrainingRun:
        """Go on with the run in `folder` from its latest checkpoint.

        Args:
            folder: the run's.
            overrides: settings to change, such as `{"search.num_simulations": 32}`.
            game: what is played. A game that does not come with windrow must be given: code that a file names is not
                imported.
        """
        folder = Path(folder)
        if not (folder / "config.json").exists():
            raise ConfigError(f"{folder} holds no run: there is no config.json in it. Name the folder of one")
        with ExitStack() as held:
            held.callback(RunLock(folder).release)
            config, game = read_settings(folder, overrides or {}, game)
            path = find_checkpoint(folder)
            if overrides:
                replace_file(folder / "config.json", json.dumps(config.to_dict(), indent=2) + "\n")
            if path is None:
                run = cls(folder, config, game, Counters())
            else:
                training = load_training(path, game=game)
                run = cls(folder, config, game, Counters.restore(training.counters, path), training.learner_state)
            run._held = held.pop_all()
            return run

    # --- Going on ---------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether a limit of the config is reached."""
        config, counters = self.config, self.counters
        if config.num_iterations is not None and counters.iteration >= config.num_iterations:
            return True
        return config.time_limit_s is not None and counters.total_s >= config.time_limit_s

    def stop(self) -> None:
        """End after the present iteration; callable from any thread."""
        self._stop_requested = True

    def iterations(self, on_event: Event | None = None) -> Iterator[IterationReport]:
        """Iterate until a limit is reached or `stop` is called; yields a report after each iteration.

        Args:
            on_event: called during an iteration, after each game with ("games", {"done": games of this iteration so
                far, "of": games wanted}), and after each step of the learner with ("steps", {"done": steps so far,
                "of": steps to take, "loss": the step's}). With `overlap` the second kind comes from another thread.
        """
        while not self.is_over and not self._stop_requested:
            self.counters.iteration += 1
            try:
                report = self._iterate(on_event or _ignore)
            except BaseException:
                self.counters.iteration -= 1  # whoever goes on does this one again, with the games it has
                raise
            yield report

    @property
    def progress(self) -> float:
        """How much of the run is done, from 0 to 1; 0 where it has no end."""
        config, counters = self.config, self.counters
        shares = [0.0]
        if config.num_iterations:
            shares.append(counters.iteration / config.num_iterations)
        if config.time_limit_s:
            shares.append(counters.total_s / config.time_limit_s)
        return min(max(shares), 1.0)

    def summary(self) -> dict[str, Any]:
        """The whole run so far."""
        return {
            "run": str(self.folder),
            "game": self.game.name,
            **self.counters.summary(self.counters.selfplay_s),
            "backend": self.evaluator.backend,
            **{name: self._last.get(name) for name in ("loss", "policy_loss", "value_loss", "solved_policy")},
        }

    def close(self) -> None:
        """Free what the run holds, its folder included; may be called more than once."""
        self.evaluator.close()
        self._held.close()

    # --- One iteration ----------------------------------------------------------------------------------------

    def _iterate(self, on_event: Event) -> IterationReport:
        counters = self.counters
        start = perf_counter()
        learned: dict[str, float] = {}
        if self._overlaps:
            with Background(lambda is_wanted: self._learn(on_event, is_wanted)) as learning:
                records, played = self._play(on_event, start, learning)
            learned = learning.result()
            self._take_in(records)
        else:
            records, played = self._play(on_event, start, None)
            self._take_in(records)
            learned = self._learn(on_event, lambda: not self._is_late(start))
        self.evaluator.update(fold(self.net))
        metrics = {**played, **learned, "replay_positions": len(self.replay)}
        if self._strength is not None and counters.iteration % self.config.evaluate_every == 0:
            metrics |= self._strength.measure()
        counters.total_s += perf_counter() - start
        metrics |= {"total_s": counters.total_s, "games": counters.games, "steps": counters.steps}
        # Before the checkpoint: a line too many is dropped by a resume, one that is missing stays so.
        self.metrics.write(counters.iteration, metrics)
        self._last |= metrics
        checkpoint = None
        is_last = self.is_over or self._stop_requested
        if counters.iteration % self.config.checkpoint_every == 0 or is_last:
            checkpoint = self._save(metrics)
        return IterationReport(counters.iteration, metrics, checkpoint)

    def _play(
        self, on_event: Event, iteration_start: float, learning: Background | None
    ) -> tuple[list[GameRecord], dict[str, float]]:
        """Games for one iteration, and for as long as the learner works beside it."""
        config, counters, selfplay = self.config, self.counters, self.selfplay
        selfplay.num_simulations = self._num_simulations()
        records = self._recovered  # until all is well: after an interrupt they are still there
        num_recovered, num_wanted = len(records), config.games_per_iteration

        def is_enough() -> bool:
            if self._is_late(iteration_start):
                if learning is not None:
                    learning.stop()
                return True
            limit_s, spent_s = config.time_limit_s, perf_counter() - iteration_start
            is_long = limit_s is not None and spent_s >= _ITERATION_SHARE * limit_s
            has_all = len(records) >= (1 if is_long else num_wanted)
            return has_all and (learning is None or not learning.is_running)

        before = _numbers(selfplay.stats)
        start = perf_counter()
        with self._archive.open(counters.iteration) as log:
            if len(records) < num_wanted:
                # With a learner to wait for, more games than asked for may come.
                most = num_wanted - len(records) if learning is None else 2**31 - 1
                for record in selfplay.play(most, refill=not config.deterministic, until=is_enough):
                    log.append(record)
                    records.append(record)
                    on_event("games", {"done": len(records), "of": num_wanted})
        self._archive.note(counters.iteration, records)
        self._recovered = []
        seconds = perf_counter() - start
        stats = {name: value - before[name] for name, value in _numbers(selfplay.stats).items()}
        counters.moves += int(stats["moves"])
        counters.simulations += int(stats["simulations"])
        counters.nn_positions += int(stats["nn_positions"])
        counters.next_game = selfplay.next_game
        counters.resign_margins = selfplay.resignation.margins
        counters.selfplay_s += seconds
        return records, self._describe_games(records, stats, seconds, num_played=len(records) - num_recovered)

    def _is_late(self, iteration_start: float) -> bool:
        """Whether the time limit has come, in an iteration that began then."""
        limit_s = self.config.time_limit_s
        return limit_s is not None and self.counters.total_s + perf_counter() - iteration_start >= limit_s

    def _num_simulations(self) -> int:
        """Of a full search, as far as the run is."""
        last = self.config.search.num_simulations or 0
        first = min(self.config.early_simulations or last, last)
        # An iteration's own number is not known to the clock: it counts as begun.
        begun = max(self.progress - (1.0 / self.config.num_iterations if self.config.num_iterations else 0.0), 0.0)
        return round(first + (last - first) * min(begun / _FULL_SIMULATIONS_AT, 1.0))

    def _take_in(self, records: list[GameRecord]) -> None:
        """Let the learner have these games."""
        config = self.config
        positions = count_positions(records)
        self._remember(records)
        self.counters.games += len(records)
        self.counters.positions += positions
        # Games beyond those asked for were played while a slow learner was waited for. They are welcome, but if they
        # gave it more to do, every iteration would be longer than the one before.
        share = min(1.0, config.games_per_iteration / max(len(records), 1))
        self.counters.samples_owed += share * positions * config.samples_per_position
        if len(self.replay) < self.config.min_positions:
            self.counters.samples_owed = 0.0

    def _describe_games(
        self, records: list[GameRecord], stats: dict[str, float], seconds: float, *, num_played: int
    ) -> dict[str, float]:
        """Metrics of some games, of which `num_played` were played by this process within `seconds`."""
        num_games = max(len(records), 1)
        version = self.selfplay.version
        return {
            "selfplay_s": seconds,
            "games_per_s": num_played / seconds,
            "moves_per_s": stats["moves"] / seconds,
            "simulations_per_s": stats["simulations"] / seconds,
            "nn_positions_per_s": stats["nn_positions"] / seconds,
            "batch_fill": stats["nn_positions"] / max(stats["nn_places"], 1),
            "game_length": sum(len(record.actions) for record in records) / num_games,
            "first_player_wins": sum(float(record.returns[0]) > 0 for record in records) / num_games,
            "draws": sum(not record.returns.any() for record in records) / num_games,
            "repeated_games": stats["repeated_games"] / max(num_played, 1),
            "resigned_games": sum(record.resigned_by >= 0 for record in records) / num_games,
            "policy_lag": max((version - record.versions[0] for record in records), default=0),
        }

    def _learn(self, on_event: Event, is_wanted: Callable[[], bool]) -> dict[str, float]:
        """Take the samples that are owed, as long as that is wanted."""
        config, counters = self.config, self.counters
        start = perf_counter()
        batch_size = config.learner.batch_size
        num_wanted = int(counters.samples_owed // batch_size)
        num_steps = 0
        sums: dict[str, float] = {}
        while num_steps < num_wanted and is_wanted():
            batch = self.replay.sample(batch_size, step_rng(config.seed, counters.steps))
            try:
                measured = self.learner.step(batch, progress=self.progress)
            except TrainingError as error:
                last = latest_checkpoint(self.folder)
                raise TrainingError(f"{error}. The last good checkpoint is {last}") from error
            counters.steps += 1
            counters.samples_owed -= batch_size
            num_steps += 1
            for name, value in measured.items():
                sums[name] = sums.get(name, 0.0) + value
            on_event("steps", {"done": num_steps, "of": num_wanted, "loss": measured["loss"]})
        counters.learn_s += (seconds := perf_counter() - start)
        means = {name: value / num_steps for name, value in sums.items()}
        return {"learn_s": seconds, "samples_per_s": num_steps * batch_size / seconds if seconds else 0.0, **means}

    # --- Keeping ----------------------------------------------------------------------------------------------

    def _save(self, metrics: dict[str, float]) -> Path:
        path = save_checkpoint(
            self.folder,
            self.counters.iteration,
            game=self.game,
            net=self.net,
            learner_state=self.learner.state(),
            counters=_numbers(self.counters),
            config=self.config.to_dict(),
            metrics=metrics,
            keep=self.config.keep_checkpoints,
        )
        if not self.config.keep_games:
            numbers = [int(place.name) for place in path.parent.iterdir() if place.name.isdigit()]
            self._archive.forget_before(min(numbers))  # the oldest checkpoint can still be gone back to
        return path

    def _restore_games(self) -> list[GameRecord]:
        """Fill the replay as it was at the checkpoint; the games that finished after it are returned."""
        iteration = self.counters.iteration
        for records in self._archive.read_back(iteration):
            self._remember(records)
        if self.config.deterministic:
            self._archive.drop_after(iteration)  # they are played again, to the same end
            return []
        recovered = self._archive.carry_over(iteration)
        newest = max((record.number for record in recovered), default=-1)
        self.counters.next_game = max(self.counters.next_game, newest + 1)
        return recovered

    def _remember(self, records: list[GameRecord]) -> None:
        if self.config.deterministic:
            records.sort(key=lambda record: record.number)  # they finish in another order than they began
        for record in records:
            self.replay.add(record)

    def _make_evaluator(self) -> Any:
        config = self.config
        backend = "torch" if config.deterministic and config.backend == "auto" else config.backend
        make: Any = load
        if config.search.engine == "ray":
            from windrow.train.ray_network import PortableNetwork as make  # it is evaluated elsewhere
        return make(
            fold(self.net),
            game=self.game,
            backend=backend,
            batch=config.selfplay.num_slots * (config.search.leaves_per_tree or 1),
            num_threads=self._evaluator_threads,
            max_update_s=_MAX_UPDATE_S if backend == "auto" else None,
        )


def read_settings(folder: Path, overrides: Mapping[str, Any], game: CoreGame | None) -> tuple[TrainConfig, CoreGame]:
    """The settings and the game of the run in `folder`, which a stranger may have made.

    Nothing that its config.json names is imported or connected to: a game that does not come with windrow and a Ray
    cluster elsewhere have to be named by the caller too.

    Args:
        folder: the run's.
        overrides: settings that the user changes.
        game: the game that the user named.
    """
    path = folder / "config.json"
    config = TrainConfig.read(path, overrides)
    try:
        found = game_from_file(config.game, config.game_options, game)
    except GameError as error:
        raise ConfigError(f"{path} cannot be used: {error}") from error
    if game is not None:  # by the name that it has from here
        config = config.replace(game=game.name, game_options=dict(game.options))
    address = config.ray.address or config.search.ray_address
    if address not in (None, "auto", "local") and not {"ray.address", "search.ray_address"} & set(overrides):
        raise ConfigError(
            f"{path} names the Ray cluster {address}. A cluster can run code in this process, so name it yourself: "
            f"--address {address}"
        )
    return config, found


def find_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint of a run; None if the run has saved none.

    Raises:
        CheckpointError: there are checkpoints, but all of them are damaged.
    """
    path = latest_checkpoint(folder)
    places = sorted((folder / "checkpoints").glob("[0-9]*")) if path is None else []
    if places:
        names = ", ".join(map(str, places))
        raise CheckpointError(
            f"no checkpoint of {folder} can be used, and going on without one would start over: {names}. The warnings "
            "say what is wrong with each. Restore one from a copy, or begin a new run in another folder"
        )
    return path


def _ignore(kind: str, numbers: dict[str, float]) -> None:
    """No one listens."""


def _numbers(counts: Any) -> dict[str, Any]:
    return {field.name: getattr(counts, field.name) for field in fields(counts)}
