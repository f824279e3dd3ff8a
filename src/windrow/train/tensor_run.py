"""A training run whose games, positions and learning never leave the device.

    run = TensorTraining.create("runs/c4", tensor_config_for(make_game("connect4"), {"time_limit_s": 120.0}))
    for report in run.iterations():
        print(report.metrics)

All games move in lock-step: search, play, write to the replay, learn a few steps, refresh the weights that are searched
with, again. The host only starts these, and looks at the device every few moves for the numbers that people want to
see. The folder is that of a `TrainingRun` without the games: `windrow play`, `evaluate` and `match` take its
checkpoints. What was played is not saved, so a resumed run plays for a while before it learns again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import torch

from windrow.errors import ConfigError, TrainingError
from windrow.games.core_game import CoreGame
from windrow.games.native import NativeGame
from windrow.games.registry import make_game
from windrow.nets.resnet import ResNet
from windrow.tensor import games as tensor_games
from windrow.tensor.backend import find_device
from windrow.tensor.game import TensorGame
from windrow.tensor.replay import TensorReplay
from windrow.tensor.selfplay import TensorSelfPlay
from windrow.tensor.siblings import check_siblings
from windrow.train.checkpoint import latest_checkpoint, load_training, save_checkpoint
from windrow.train.config import TrainConfig
from windrow.train.disk import explain_write, replace_file
from windrow.train.inference_copy import InferenceCopy
from windrow.train.metrics import MetricsLog
from windrow.train.run import Counters, IterationReport, find_checkpoint, read_settings
from windrow.train.run_lock import RunLock
from windrow.train.tensor_config import (
    OPTIONS,
    TensorOptions,
    budgets_of,
    check_settings,
    is_tensor_run,
)
from windrow.train.tensor_learner import TensorLearner
from windrow.train.tensor_solved import TensorSolvedTest

Event: TypeAlias = Callable[[str, dict[str, float]], None]

_FULL_SIMULATIONS_AT = 0.7
"""Share of a run after which `early_simulations` have risen to the whole budget, as in `TrainingRun`."""
_MOVES_PER_LOOK = 8
"""Moves of all games from one look at a GPU to the next: at each one it runs empty for a moment."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What evaluates, in words."""

    choice: str
    backend: str


class TensorTraining:
    """A run in its folder; made by `create` or `resume`. It has the methods of a `TrainingRun`."""

    def __init__(
        self,
        folder: Path,
        config: TrainConfig,
        options: TensorOptions,
        game: CoreGame,
        counters: Counters,
        tensor_game: TensorGame,
        learner_state: Mapping[str, Any] | None = None,
    ) -> None:
        check_settings(config)
        self.folder, self.config, self.options, self.counters = folder, config, options, counters
        self.game = game
        self.tensor_game: Any = tensor_game
        self.device = device = find_device(options.device)
        is_gpu = device.type == "cuda"
        if is_gpu:
            torch.backends.cudnn.benchmark = True
        self._generator = torch.Generator(device).manual_seed(config.seed + (counters.iteration << 32))
        self.net = ResNet.for_game(self.game, seed=config.seed, **config.network.to_dict()).to(device)
        self.replay = TensorReplay(
            self.tensor_game,
            config.selfplay.num_slots,
            config.replay.max_positions,
            device=device,
            generator=self._generator,
            value_mix=config.replay.value_mix,
            symmetries=self.game.symmetries() if config.replay.use_symmetries else (),
        )
        self.learner = TensorLearner(
            self.net,
            config.learner,
            self.replay,
            device=device,
            generator=self._generator,
            is_compiled=is_gpu if options.compile_learner is None else options.compile_learner,
        )
        if learner_state is not None:
            self.learner.load_state(learner_state)
        dtype = torch.bfloat16 if is_gpu else torch.float32
        self.copy = InferenceCopy(self.net, dtype=dtype, average=options.weight_average)
        mode = options.compile if options.compile != "auto" else "max-autotune" if is_gpu else "none"
        self._network: Any = _compile(self.copy.folded, mode)
        self.evaluator = _Choice(f"{device.type}, {str(dtype).removeprefix('torch.')}, compile: {mode}", device.type)
        search = config.search.replace(seed=config.seed + counters.iteration)
        self._budgets = budgets_of(config)
        self.selfplay = TensorSelfPlay(
            self.tensor_game,
            self._network,
            search,
            self.replay,
            device=device,
            generator=self._generator,
            budgets=self._budgets,
            opening_plies=config.selfplay.opening_plies,
            max_plies=config.selfplay.max_plies,
            temperature_plies=config.selfplay.temperature_plies,
            late_temperature=config.selfplay.late_temperature,
        )
        self.solved = self._make_solved_test()
        """The test of strength, where there is one."""
        self.metrics = MetricsLog(folder, first_iteration=counters.iteration + 1)
        self._last: dict[str, float] = {}
        self._is_prepared = self._stop_requested = False
        self._held = ExitStack()

    # --- Beginning --------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: str | Path, config: TrainConfig, options: TensorOptions | None = None) -> TensorTraining:
        """Begin a new run in `folder`, which must not hold one."""
        folder, options = Path(folder), options or TensorOptions()
        check_settings(config)
        game = make_game(config.game, **config.game_options)
        sibling = _make_sibling(game, options)  # before anything is written
        find_device(options.device)
        with ExitStack() as held:
            held.callback(RunLock.for_new_run(folder).release)
            try:
                (folder / "checkpoints").mkdir(exist_ok=True)
            except OSError as error:
                raise explain_write(folder, error) from error
            replace_file(folder / OPTIONS, json.dumps(options.to_dict(), indent=2) + "\n")
            replace_file(folder / "config.json", json.dumps(config.to_dict(), indent=2) + "\n")
            run = cls(folder, config, options, game, Counters(), sibling)
            run._held = held.pop_all()
            return run

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        overrides: dict[str, Any] | None = None,
        option_overrides: Mapping[str, Any] | None = None,
        *,
        game: CoreGame | None = None,
    ) -> TensorTraining:
        """Go on with the run in `folder` from its latest checkpoint.

        Args:
            folder: the run's.
            overrides: settings to change.
            option_overrides: `TensorOptions` to change.
            game: what is played; see `TrainingRun.resume`. For such a game the name of its sibling in torch ops has to
                be given too, in `option_overrides`.
        """
        folder = Path(folder)
        if not is_tensor_run(folder):
            raise ConfigError(f"{folder} holds no run of the tensor engine: there is no {OPTIONS} in it")
        with ExitStack() as held:
            held.callback(RunLock(folder).release)
            config, game = read_settings(folder, overrides or {}, game)
            options = TensorOptions.read(folder, option_overrides or {})
            path = find_checkpoint(folder)
            sibling = _make_sibling(game, options)
            if option_overrides:
                replace_file(folder / OPTIONS, json.dumps(options.to_dict(), indent=2) + "\n")
            if overrides:
                replace_file(folder / "config.json", json.dumps(config.to_dict(), indent=2) + "\n")
            if path is None:
                run = cls(folder, config, options, game, Counters(), sibling)
            else:
                training = load_training(path, game=game)
                counters = Counters.restore(training.counters, path)
                run = cls(folder, config, options, game, counters, sibling, training.learner_state)
            run._held = held.pop_all()
            return run

    def prepare(self) -> None:
        """Compile and capture everything; `iterations` does so too, before its clock begins. Takes a minute or two."""
        if self._is_prepared:
            return
        self.copy.prepare()
        self.selfplay.prepare()
        if self.solved is not None:
            self.solved.prepare()
        self.learner.prepare()
        self._wait()
        self._is_prepared = True

    # --- Going on ---------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether a limit of the config is reached."""
        config, counters = self.config, self.counters
        if config.num_iterations is not None and counters.iteration >= config.num_iterations:
            return True
        return config.time_limit_s is not None and counters.total_s >= config.time_limit_s

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

    def stop(self) -> None:
        """End after the present iteration; callable from any thread."""
        self._stop_requested = True

    def iterations(self, on_event: Event | None = None) -> Iterator[IterationReport]:
        """Iterate until a limit is reached or `stop` is called. `total_s` counts what happens in here alone."""
        self.prepare()
        while not self.is_over and not self._stop_requested:
            self.counters.iteration += 1
            try:
                report = self._iterate(on_event)
            except BaseException:
                self.counters.iteration -= 1
                raise
            yield report

    def summary(self) -> dict[str, Any]:
        """The whole run so far."""
        return {
            "run": str(self.folder),
            "game": self.game.name,
            **self.counters.summary(self.counters.total_s),
            "backend": self.evaluator.backend,
            **{name: self._last.get(name) for name in ("loss", "policy_loss", "value_loss", "solved_policy")},
        }

    def close(self) -> None:
        """Leave the folder to others; may be called more than once."""
        self._held.close()

    def save(self, metrics: Mapping[str, float] | None = None) -> Path:
        """Write a checkpoint of the averaged weights now; returns its folder."""
        counted = {field.name: getattr(self.counters, field.name) for field in fields(self.counters)}
        return save_checkpoint(
            self.folder,
            self.counters.iteration,
            game=self.game,
            net=self.copy.averaged,
            learner_state=self.learner.state(),
            counters=counted,
            config=self.config.to_dict(),
            metrics=dict(metrics or self._last),
            keep=self.config.keep_checkpoints,
        )

    # --- One iteration ----------------------------------------------------------------------------------------------

    def _iterate(self, on_event: Event | None) -> IterationReport:
        config, counters = self.config, self.counters
        start, before = perf_counter(), counters.total_s
        steps_before, clock = counters.steps, _Clock(self.device)
        sums: dict[str, float] = dict.fromkeys(("games", "game_moves", "first_player_wins", "draws"), 0.0)
        num_moves = simulations = 0
        is_late = False
        while sums["games"] < config.games_per_iteration and not is_late:
            for _ in range(_MOVES_PER_LOOK if self.device.type == "cuda" else 1):
                budget = self._budget()
                clock.start("selfplay_s")
                self.selfplay.step(budget)
                clock.start("learn_s")
                self._learn()
                clock.stop()
                num_moves += 1
                simulations += budget * self.selfplay.num_slots
                counters.nn_positions += (budget + 1) * self.selfplay.num_slots
            self._look(sums)  # waits for the device
            counters.total_s = before + perf_counter() - start
            is_late = config.time_limit_s is not None and counters.total_s >= config.time_limit_s
            if on_event is not None:
                on_event("games", {"done": sums["games"], "of": config.games_per_iteration})
        num_positions = num_moves * self.selfplay.num_slots
        spent = clock.read()
        counters.games += int(sums["games"])
        counters.positions += num_positions
        counters.moves += num_positions
        counters.simulations += simulations
        counters.selfplay_s += spent["selfplay_s"]
        counters.learn_s += spent["learn_s"]
        metrics = self._describe(sums, num_positions, simulations, counters.steps - steps_before, spent)
        if self.solved is not None and counters.iteration % config.evaluate_every == 0:
            metrics["solved_policy"] = self.solved.score(0).overall.share
        counters.total_s = before + perf_counter() - start
        metrics |= {"total_s": counters.total_s, "games": counters.games, "steps": counters.steps}
        self.metrics.write(counters.iteration, metrics)
        self._last |= metrics
        is_last = self.is_over or self._stop_requested
        is_saved = counters.iteration % config.checkpoint_every == 0 or is_last
        checkpoint = self.save(metrics) if is_saved else None
        counters.total_s = before + perf_counter() - start
        return IterationReport(counters.iteration, metrics, checkpoint)

    def _look(self, sums: dict[str, float]) -> None:
        """Add what games have ended; find out if the network gave what cannot be used."""
        stats = self.selfplay.read_stats()
        if stats.pop("bad_trees"):
            raise TrainingError(
                "the network gave a NaN, an infinity or a value outside [-1, 1] in iteration "
                f"{self.counters.iteration}: lower learning_rate. "
                f"The last good checkpoint is {latest_checkpoint(self.folder)}"
            )
        for name, value in stats.items():
            sums[name] += value

    def _learn(self) -> None:
        """Take the steps that one move of all games allows, and let self-play see the new weights."""
        config, counters = self.config, self.counters
        if len(self.replay) < config.min_positions:
            return
        counters.samples_owed += self.selfplay.num_slots * config.samples_per_position
        num_steps = int(counters.samples_owed // config.learner.batch_size)
        for _ in range(num_steps):
            self.learner.learn(progress=self.progress)
        counters.samples_owed -= num_steps * config.learner.batch_size
        counters.steps += num_steps
        if num_steps:
            self.copy.update(num_steps=num_steps, steps_done=counters.steps)

    def _budget(self) -> int:
        """Simulations of the next move: of those there are, the most that are due."""
        first, last = self._budgets[0], self._budgets[-1]
        due = first + (last - first) * min(self.progress / _FULL_SIMULATIONS_AT, 1.0)
        return max(budget for budget in self._budgets if budget <= due)

    def _describe(
        self, sums: dict[str, float], positions: int, simulations: int, num_steps: int, spent: dict[str, float]
    ) -> dict[str, float]:
        num_games = max(sums["games"], 1.0)
        seconds = max(sum(spent.values()), 1e-9)
        try:
            learned = self.learner.read_metrics()
        except TrainingError as error:
            raise TrainingError(f"{error}. The last good checkpoint is {latest_checkpoint(self.folder)}") from error
        return {
            **spent,
            "games_per_s": sums["games"] / seconds,
            "moves_per_s": positions / seconds,
            "simulations_per_s": simulations / seconds,
            "nn_positions_per_s": (simulations + positions) / seconds,
            "samples_per_s": num_steps * self.config.learner.batch_size / max(spent["learn_s"], 1e-9),
            "num_simulations": simulations / positions,
            "game_length": sums["game_moves"] / num_games,
            "first_player_wins": sums["first_player_wins"] / num_games,
            "draws": sums["draws"] / num_games,
            "replay_positions": len(self.replay),
            **learned,
        }

    def _make_solved_test(self) -> TensorSolvedTest | None:
        is_solved = self.game.name == "connect4" and dict(self.game.options) == dict(NativeGame("connect4").options)
        if not self.config.evaluate_every or not is_solved:
            return None
        return TensorSolvedTest(
            self.game, self.tensor_game, self._network, num_trees=self.config.selfplay.num_slots, device=self.device
        )

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class _Clock:
    """Seconds of the device by phase; on a GPU by events, which nobody waits for until `read`."""

    def __init__(self, device: torch.device) -> None:
        self._is_gpu = device.type == "cuda"
        self._marks: list[tuple[str, Any]] = []

    def start(self, phase: str) -> None:
        mark: Any = perf_counter()
        if self._is_gpu:
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
        self._marks.append((phase, mark))

    def stop(self) -> None:
        self.start("")

    def read(self) -> dict[str, float]:
        """After the device was waited for."""
        spent = {"selfplay_s": 0.0, "learn_s": 0.0}
        if self._is_gpu:
            torch.cuda.synchronize()
        for (phase, begin), (_, end) in zip(self._marks, self._marks[1:], strict=False):
            if phase:
                spent[phase] += begin.elapsed_time(end) / 1e3 if self._is_gpu else end - begin
        return spent


def _make_sibling(game: CoreGame, options: TensorOptions) -> TensorGame:
    """The game in torch ops."""
    if options.game is None:
        if game.name not in tensor_games.GAMES:
            raise ConfigError(
                f"the tensor engine needs {game.name} in torch ops too: write a class with the functions of a "
                "windrow.tensor.TensorGame (docs/tensor.md), and name it by --set tensor.game=nim.py:NimTensors or "
                f"TensorOptions(game=...). Built in are {', '.join(tensor_games.GAMES)}"
            )
        return tensor_games.make_game(game.name, **game.options)
    sibling = tensor_games.make_game(options.game, **game.options)
    check_siblings(game, sibling)
    return sibling


def _compile(network: Any, mode: str) -> Any:
    if mode == "none":
        return network
    name = "max-autotune-no-cudagraphs" if mode == "max-autotune" else mode
    return torch.compile(network, mode=name, dynamic=False)
