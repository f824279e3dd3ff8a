"""Training on a device: games, positions and learning never leave it.

All games move in lock-step: search, play, write to the replay, learn a few steps, refresh the weights that are searched
with, again. The host only starts these, and looks at the device every few moves for the numbers that people want to
see. What was played is not saved, so a resumed run plays for a while before it learns again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from windrow.engines import Tensor
from windrow.errors import ConfigError, TrainingError
from windrow.games.core_game import CoreGame
from windrow.nets import make_network
from windrow.tensor.device import find_device
from windrow.tensor.evaluators.tower import fuse
from windrow.tensor.games.tensor_version import tensor_version
from windrow.tensor.play.replay import TensorReplay
from windrow.tensor.play.selfplay import TensorSelfPlay
from windrow.train.config import TrainConfig
from windrow.train.inference_copy import InferenceCopy
from windrow.train.progress import Progress
from windrow.train.strategy import Event, Strategy
from windrow.train.strength import is_solved
from windrow.train.tensor_learner import TensorLearner
from windrow.train.tensor_solved import TensorSolvedTest

_MOVES_PER_LOOK = 8
"""Moves of all games from one look at a GPU to the next: at each one it runs empty for a moment."""


class DeviceTraining(Strategy):
    """Self-play, replay and learner as tensors; its settings are the section `[device]` of the config."""

    configs = section = "device"

    def __init__(self, game: CoreGame, config: TrainConfig) -> None:
        super().__init__(game, config)
        for is_asked, name in (
            (config.selfplay.full_fraction < 1.0, "[selfplay] full_fraction"),
            (config.selfplay.resign_below is not None, "[selfplay] resign_below"),
            (config.deterministic, "deterministic"),
            (config.keep_games, "keep_games"),
        ):
            if is_asked:
                engine = config.search.engine_name
                raise ConfigError(f"training with the {engine} engine does not know {name} yet: leave it out")
        options = config.search.options_for(Tensor)
        self.tensor_game: Any = tensor_version(game, options.game)
        self.device = find_device(options.device)
        self._made = make_network(config.network, game, seed=config.seed)
        self.solved: TensorSolvedTest | None = None
        """The test of strength, where there is one."""

    def open(self, folder: Path, progress: Progress, learner_state: Mapping[str, Any] | None) -> None:
        """Make network, replay, learner and self-play on the device; nothing is compiled yet."""
        config, options, device, counters = self.config, self.config.device, self.device, progress.counters
        self._progress = progress
        is_gpu = device.type == "cuda"
        if is_gpu:
            torch.backends.cudnn.benchmark = True
        generator = torch.Generator(device).manual_seed(config.seed + (counters.iteration << 32))
        trained = self._made.to(device)
        self.replay = TensorReplay(
            self.tensor_game,
            config.selfplay.num_slots,
            config.replay.max_positions,
            device=device,
            generator=generator,
            value_mix=config.replay.value_mix,
            prove=config.search.prove,
            symmetries=self.game.symmetries() if config.replay.use_symmetries else (),
        )
        self.learner = TensorLearner(
            trained,
            config.learner,
            self.replay,
            device=device,
            generator=generator,
            is_compiled=is_gpu if options.compile_learner is None else options.compile_learner,
        )
        if learner_state is not None:
            self.learner.load_state(learner_state)
        dtype = torch.bfloat16 if is_gpu else torch.float32
        self.copy = InferenceCopy(trained, dtype=dtype, average=options.weight_average)
        network, how = self._choose_network()
        self.backend = device.type
        self.choice = f"{device.type}, {str(dtype).removeprefix('torch.')}, {how}"
        self._budgets = budgets_of(config)
        self.selfplay = TensorSelfPlay(
            self.tensor_game,
            network,
            config.search.replace(seed=config.seed + counters.iteration),
            self.replay,
            device=device,
            generator=generator,
            budgets=self._budgets,
            opening_plies=config.selfplay.opening_plies,
            max_plies=config.selfplay.max_plies,
            temperature_plies=config.selfplay.temperature_plies,
            late_temperature=config.selfplay.late_temperature,
            is_fused=False,  # that has been decided
        )
        if config.evaluate_every and is_solved(self.game):
            self.solved = TensorSolvedTest(
                self.game, self.tensor_game, network, num_trees=config.selfplay.num_slots, device=device
            )

    def _choose_network(self) -> tuple[Any, str]:
        """(what is searched with, how it is evaluated): one kernel, or compiled where that is not possible."""
        mode, folded = self.config.device.compile, self.copy.folded
        if mode == "auto" and self.device.type == "cuda":
            fused, reason = fuse(folded, self.tensor_game, self.device)
            if fused is not None:
                return fused, "one kernel"
            return _compile(folded, "max-autotune"), f"compile: max-autotune (not one kernel: {reason})"
        mode = "none" if mode == "auto" else mode
        return _compile(folded, mode), f"compile: {mode}"

    def prepare(self) -> None:
        """Compile and capture everything, which takes a minute or two on a GPU."""
        self.copy.prepare()
        self.selfplay.prepare()
        if self.solved is not None:
            self.solved.prepare()
        self.learner.prepare()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    @property
    def net(self) -> Any:
        return self.copy.averaged

    def learner_state(self) -> Mapping[str, Any]:
        return self.learner.state()

    def measure_strength(self) -> dict[str, float]:
        return {} if self.solved is None else {"solved_policy": self.solved.score(0).overall.share}

    def close(self) -> None:
        """Nothing is held beyond memory, which goes with the last reference."""

    # --- One iteration ----------------------------------------------------------------------------------------

    def iterate(self, on_event: Event) -> dict[str, float]:
        """Move all games until enough of them have ended, and learn after every move."""
        config, progress = self.config, self._progress
        counters, num_slots = progress.counters, self.selfplay.num_slots
        steps_before, clock = counters.steps, _Clock(self.device)
        sums: dict[str, float] = dict.fromkeys(("games", "game_moves", "first_player_wins", "draws"), 0.0)
        num_moves = simulations = 0
        is_ended = False
        while sums["games"] < config.games_per_iteration and not is_ended:
            for _ in range(_MOVES_PER_LOOK if self.device.type == "cuda" else 1):
                budget = self._budget()
                clock.start("selfplay_s")
                self.selfplay.step(budget)
                clock.start("learn_s")
                self._learn()
                clock.stop()
                num_moves += 1
                simulations += budget * num_slots
            self._look(sums)  # waits for the device
            progress.update()
            is_ended = progress.is_late or progress.is_long()
            on_event("games", {"done": sums["games"], "of": config.games_per_iteration})
        num_positions = num_moves * num_slots
        spent = clock.read()
        counters.games += int(sums["games"])
        counters.positions += num_positions
        counters.moves += num_positions
        counters.simulations += simulations
        counters.nn_positions += simulations + num_positions
        counters.selfplay_s += spent["selfplay_s"]
        counters.learn_s += spent["learn_s"]
        return self._describe(sums, num_positions, simulations, counters.steps - steps_before, spent)

    def _look(self, sums: dict[str, float]) -> None:
        """Add what games have ended; find out if the network gave what cannot be used."""
        stats = self.selfplay.read_stats()
        if stats.pop("bad_trees"):
            raise TrainingError(
                "the network gave a NaN, an infinity or a value outside [-1, 1] in iteration "
                f"{self._progress.counters.iteration}: lower learning_rate"
            )
        for name, value in stats.items():
            sums[name] += value

    def _learn(self) -> None:
        """Take the steps that one move of all games allows, and let self-play see the new weights."""
        config, counters = self.config, self._progress.counters
        if len(self.replay) < config.min_positions:
            return
        counters.samples_owed += self.selfplay.num_slots * config.samples_per_position
        num_steps = int(counters.samples_owed // config.learner.batch_size)
        for _ in range(num_steps):
            self.learner.learn(progress=self._progress.share)
        counters.samples_owed -= num_steps * config.learner.batch_size
        counters.steps += num_steps
        if num_steps:
            self.copy.update(num_steps=num_steps, steps_done=counters.steps)

    def _budget(self) -> int:
        """Simulations of the next move: of those there are, the most that are due."""
        due = self._progress.num_simulations
        return max(budget for budget in self._budgets if budget <= due)

    def _describe(
        self, sums: dict[str, float], positions: int, simulations: int, num_steps: int, spent: dict[str, float]
    ) -> dict[str, float]:
        num_games = max(sums["games"], 1.0)
        seconds = max(sum(spent.values()), 1e-9)
        learned = self.learner.read_metrics()
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


def budgets_of(config: TrainConfig) -> list[int]:
    """The numbers of simulations of a run: from `early_simulations` on, twice as many each time, up to the whole."""
    last = config.search.num_simulations or 0
    budgets, next_one = [last], config.early_simulations or last
    while next_one < last:
        budgets.insert(-1, next_one)
        next_one *= 2
    return budgets


def _compile(network: Any, mode: str) -> Any:
    if mode == "none":
        return network
    name = "max-autotune-no-cudagraphs" if mode == "max-autotune" else mode
    return torch.compile(network, mode=name, dynamic=False)
