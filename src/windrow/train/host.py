"""Training on the host: games are played by `SelfPlay`, here, in processes or on a cluster; the learner is here.

    SelfPlay ──► games/000001.games ──► Replay ──► Learner ──► new weights for the evaluator

Games are written as they finish, and the replay is read back from them, so a checkpoint is small. After a kill the
games in progress are lost, and what was learned since the last checkpoint; the games that ended since are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from windrow.evaluators.loading import load
from windrow.games.core_game import CoreGame
from windrow.nets import fold, make_network
from windrow.search.engines import engine_class
from windrow.train.archive import GameArchive, count_positions
from windrow.train.background import Background, share_threads
from windrow.train.config import TrainConfig
from windrow.train.disk import writing
from windrow.train.learner import Learner, step_rng
from windrow.train.progress import Progress
from windrow.train.records import GameRecord
from windrow.train.replay import Replay
from windrow.train.selfplay import SelfPlay, backend_of
from windrow.train.strategy import Event, Strategy
from windrow.train.strength import StrengthTest, is_solved

_MAX_UPDATE_S = 0.05
"""Longest that new weights may take to reach self-play."""


class HostTraining(Strategy):
    """Self-play wherever the engine has it, and a learner in this process."""

    def __init__(self, game: CoreGame, config: TrainConfig) -> None:
        super().__init__(game, config)
        backend_of(config.search.engine_name)  # which refuses engines without self-play
        self._held = ExitStack()
        self._net = make_network(config.network, game, seed=config.seed)

    def open(self, folder: Path, progress: Progress, learner_state: Mapping[str, Any] | None) -> None:
        """Make network, learner, replay and self-play; fill the replay from the games of the run."""
        config, game, counters = self.config, self.game, progress.counters
        self._progress = progress
        self._overlaps = config.overlap and not config.deterministic
        evaluator_threads: int | None
        evaluator_threads, learner_threads = share_threads(config.num_threads, overlap=self._overlaps)
        if config.num_threads is None and not self._overlaps and not config.deterministic:
            evaluator_threads = None  # as many as pay, beside what else runs on this machine
        self.learner = Learner(
            self._net, config.learner, deterministic=config.deterministic, num_threads=learner_threads
        )
        if learner_state is not None:
            self.learner.load_state(learner_state)
        self.replay = Replay(
            game,
            config.replay.max_positions,
            value_mix=config.replay.value_mix,
            use_symmetries=config.replay.use_symmetries,
        )
        with writing(folder):
            (folder / "games").mkdir(exist_ok=True)
        self._archive = GameArchive(folder, config.replay.max_positions)
        is_elsewhere = engine_class(config.search).capabilities.evaluator == "actors"
        self.evaluator = self._make_evaluator(evaluator_threads, is_elsewhere=is_elsewhere)
        self._held.callback(self.evaluator.close)
        self.backend, self.choice = self.evaluator.backend, self.evaluator.choice
        self._recovered = self._restore_games()
        self.selfplay = SelfPlay(
            game,
            self.evaluator,
            config.search.replace(seed=config.seed),
            config.selfplay,
            next_game=counters.next_game,
            first_version=counters.iteration,
            resign_margins=counters.resign_margins,
        )
        self._held.callback(self.selfplay.close)
        has_test = config.evaluate_every and is_solved(game)
        self._strength = StrengthTest(game, self.evaluator) if has_test else None

    def _make_evaluator(self, num_threads: int | None, *, is_elsewhere: bool) -> Any:
        config = self.config
        backend = "torch" if config.deterministic and config.backend == "auto" else config.backend
        make: Any = load
        if is_elsewhere:
            from windrow.train.ray_network import PortableNetwork as make
        return make(
            fold(self._net),
            game=self.game,
            backend=backend,
            batch=config.selfplay.num_slots * (config.search.leaves_per_tree or 1),
            num_threads=num_threads,
            max_update_s=_MAX_UPDATE_S if backend == "auto" else None,
        )

    @property
    def net(self) -> Any:
        return self._net

    def learner_state(self) -> Mapping[str, Any]:
        return self.learner.state()

    def measure_strength(self) -> dict[str, float]:
        return {} if self._strength is None else self._strength.measure()

    def close(self) -> None:
        self._held.close()

    # --- One iteration ----------------------------------------------------------------------------------------

    def iterate(self, on_event: Event) -> dict[str, float]:
        """Play games and learn: side by side from the games of the iteration before, or in turn."""
        if self._overlaps:
            with Background(lambda is_wanted: self._learn(on_event, is_wanted)) as learning:
                records, played = self._play(on_event, learning)
            learned = learning.result()
            self._take_in(records)
        else:
            records, played = self._play(on_event, None)
            self._take_in(records)
            learned = self._learn(on_event, lambda: not (self._progress.is_late or self._progress.is_long()))
        self.evaluator.update(fold(self._net))
        return {**played, **learned, "replay_positions": len(self.replay)}

    def _play(self, on_event: Event, learning: Background | None) -> tuple[list[GameRecord], dict[str, float]]:
        """Games for one iteration, and for as long as the learner works beside it or until the iteration is long."""
        config, progress, selfplay = self.config, self._progress, self.selfplay
        counters = progress.counters
        selfplay.num_simulations = round(progress.num_simulations)
        records = self._recovered  # until all is well: after an interrupt they are still there
        num_recovered, num_wanted = len(records), config.games_per_iteration

        def is_enough() -> bool:
            if learning is None:  # half of the time is for learning, which comes next
                return progress.is_late or len(records) >= (1 if progress.is_long(0.5) else num_wanted)
            if progress.is_late or (progress.is_long() and records):
                learning.stop()
                return True
            return len(records) >= num_wanted and not learning.is_running

        before = asdict(selfplay.stats)
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
        stats = {name: value - before[name] for name, value in asdict(selfplay.stats).items()}
        counters.moves += int(stats["moves"])
        counters.simulations += int(stats["simulations"])
        counters.nn_positions += int(stats["nn_positions"])
        counters.next_game = selfplay.next_game
        counters.resign_margins = selfplay.resignation.margins
        counters.selfplay_s += seconds
        return records, self._describe_games(records, stats, seconds, num_played=len(records) - num_recovered)

    def _take_in(self, records: list[GameRecord]) -> None:
        """Let the learner have these games."""
        config, counters = self.config, self._progress.counters
        positions = count_positions(records)
        self._remember(records)
        counters.games += len(records)
        counters.positions += positions
        # Games beyond those asked for were played while a slow learner was waited for. They are welcome, but if they
        # gave it more to do, every iteration would be longer than the one before.
        share = min(1.0, config.games_per_iteration / max(len(records), 1))
        counters.samples_owed += share * positions * config.samples_per_position
        # An iteration that the clock has ended does not wait for `min_positions`: a batch is enough to learn from.
        is_short = self._progress.is_long(1.0 if self._overlaps else 0.5)
        if len(self.replay) < (
            min(config.min_positions, config.learner.batch_size) if is_short else config.min_positions
        ):
            counters.samples_owed = 0.0

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
        config, progress = self.config, self._progress
        counters = progress.counters
        start = perf_counter()
        batch_size = config.learner.batch_size
        num_wanted = int(counters.samples_owed // batch_size)
        num_steps = 0
        sums: dict[str, float] = {}
        while num_steps < num_wanted and is_wanted():
            batch = self.replay.sample(batch_size, step_rng(config.seed, counters.steps))
            measured = self.learner.step(batch, progress=progress.share)
            counters.steps += 1
            counters.samples_owed -= batch_size
            num_steps += 1
            for name, value in measured.items():
                sums[name] = sums.get(name, 0.0) + value
            on_event("steps", {"done": num_steps, "of": num_wanted, "loss": measured["loss"]})
        counters.learn_s += (seconds := perf_counter() - start)
        means = {name: value / num_steps for name, value in sums.items()}
        return {"learn_s": seconds, "samples_per_s": num_steps * batch_size / seconds if seconds else 0.0, **means}

    # --- Games on disk ----------------------------------------------------------------------------------------

    def forget_before(self, iteration: int) -> None:
        if not self.config.keep_games:
            self._archive.forget_before(iteration)

    def _restore_games(self) -> list[GameRecord]:
        """Fill the replay as it was at the checkpoint; the games that finished after it are returned."""
        counters = self._progress.counters
        for records in self._archive.read_back(counters.iteration):
            self._remember(records)
        if self.config.deterministic:
            self._archive.drop_after(counters.iteration)  # they are played again, to the same end
            return []
        recovered = self._archive.carry_over(counters.iteration)
        newest = max((record.number for record in recovered), default=-1)
        counters.next_game = max(counters.next_game, newest + 1)
        return recovered

    def _remember(self, records: list[GameRecord]) -> None:
        if self.config.deterministic:
            records.sort(key=lambda record: record.number)  # they finish in another order than they began
        for record in records:
            self.replay.add(record)
