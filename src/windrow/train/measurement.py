"""What a game and a network cost on this machine: a few seconds of random games, self-play and learning.

Self-play and learner are those of a `HostTraining` in a temporary folder. They work side by side if they will do so in
the run, so that each is measured with what the other takes from it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from windrow.evaluators.positions import random_positions
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame
from windrow.games.protocol import TERMINAL
from windrow.games.python_game import PythonGame
from windrow.search.engines import engine_class
from windrow.train.background import Background
from windrow.train.config import TrainConfig
from windrow.train.fit import Measurement, network_size
from windrow.train.host import HostTraining
from windrow.train.learner import step_rng
from windrow.train.progress import Counters, Progress, simulation_range
from windrow.train.records import GameRecord
from windrow.train.strategy import strategy_of

_MAX_PLIES = 2000
"""A random game of so many moves is broken off."""
_SMALL_BATCH = 8
_OBJECT_BYTES = 1000
"""Memory that a state in Python is taken to have."""


def can_measure(config: TrainConfig) -> bool:
    """Whether a run with `config` plays and learns in a way that can be measured: on the host, and not by actors."""
    engine = engine_class(config.search)
    return strategy_of(engine) is HostTraining and engine.capabilities.evaluator == "here"


def measure(game: CoreGame, config: TrainConfig, *, seconds: float = 3.0) -> Measurement:
    """Measure self-play and learning with the settings of `config` for about so many seconds.

    Finding the fastest backend for the network comes on top, the first time.
    """
    records, legal, move_s = _random_games(game, seconds / 6)
    plies = sum(len(record) for record in records) / len(records)
    # Slow rules would take the whole time to begin so many games.
    slots = min(config.selfplay.num_slots, max(_SMALL_BATCH, int(seconds / 6 / move_s)))
    small = config.replace(
        selfplay=config.selfplay.replace(num_slots=slots), evaluate_every=0, num_iterations=None, time_limit_s=None
    )
    with tempfile.TemporaryDirectory() as folder:
        strategy = HostTraining(game, small)
        try:
            strategy.open(Path(folder), Progress(small, Counters()), None)
            for record in records:
                strategy.replay.add(record)
            spent, sample_s = _play_and_learn(strategy, small, seconds / 2)
            overhead_rows = _overhead_rows(strategy.evaluator, game, slots, seconds / 12)
            position_bytes = strategy.replay.bytes // config.replay.max_positions
        finally:
            strategy.close()
    # A search counts its simulations when it ends, and in games that are nearly over some need no evaluation.
    simulation_s = spent["total_s"] / max(spent["simulations"], spent["nn_positions"], 1)
    stages = [spent[name] for name in ("select_s", "encode_s", "complete_s", "evaluate_s")]
    # What is none of the four is Python between them.
    idle_s = (
        max(spent["total_s"] - sum(stages), 0.0) if engine_class(config.search).capabilities.asks_game_here else 0.0
    )
    network_share = spent["evaluate_s"] / max(sum(stages) + idle_s, 1e-9)
    shapes = game.observation
    is_flat = all(len(shape) < 3 for shape in (shapes.values() if isinstance(shapes, Mapping) else [shapes]))
    is_python = isinstance(game, PythonGame)
    return Measurement(
        plies=plies,
        legal=legal,
        move_s=move_s,
        rules_s=(1 - network_share) * simulation_s,
        row_s=network_share * simulation_s / (1 + overhead_rows / slots),
        overhead_rows=overhead_rows,
        sample_s=sample_s,
        position_bytes=position_bytes + (_OBJECT_BYTES if is_python else 0),
        network=network_size(config),
        is_python=is_python,
        is_flat=is_flat,
        is_endless=any(len(record) >= _MAX_PLIES for record in records),
    )


def _random_games(game: CoreGame, seconds: float) -> tuple[list[GameRecord], float, float]:
    """Random games for about so many seconds, legal actions of their positions on average, and seconds of a move."""
    rng, start = np.random.default_rng(0), perf_counter()

    def bits(_: int) -> int:
        return int(rng.integers(2**63))

    records: list[GameRecord] = []
    num_legal = num_moves = 0
    while not records or perf_counter() - start < seconds:
        state, dealt = pass_chance(game, game.initial_state(), bits)
        initial = game.pack_start(dealt)
        actions: list[int] = []
        outcomes: list[int] = []
        outcome_plies: list[int] = []
        policies: list[Any] = []
        while game.to_play(state) != TERMINAL and len(actions) < _MAX_PLIES:
            legal = list(game.legal_actions(state))
            policy = np.zeros(game.num_actions, np.float16)
            policy[legal] = 1 / len(legal)
            policies.append(policy)
            actions.append(legal[int(rng.integers(len(legal)))])
            state, drawn = pass_chance(game, game.apply(state, actions[-1]), bits)
            outcomes += drawn
            outcome_plies += [len(actions)] * len(drawn)
            num_legal += len(legal)
        num_moves += len(actions)
        is_over = game.to_play(state) == TERMINAL
        records.append(
            GameRecord(
                number=len(records),
                actions=np.array(actions, np.uint16),
                initial=initial,
                is_recorded=np.ones(len(actions), bool),
                policy=np.array(policies, np.float16).reshape(-1, game.num_actions),
                root_value=np.zeros(len(actions), np.float16),
                returns=np.array(game.returns(state) if is_over else [0.0] * game.num_players, np.float32),
                versions=(0, 0),
                outcomes=np.array(outcomes, np.int64),
                outcome_plies=np.array(outcome_plies, np.uint32),
            )
        )
    elapsed = perf_counter() - start
    return records, num_legal / max(num_moves, 1), elapsed / max(num_moves, 1)


def _play_and_learn(strategy: HostTraining, config: TrainConfig, seconds: float) -> tuple[dict[str, float], float]:
    """What self-play counts in so many seconds, and the learner's seconds per position, both warmed up."""
    selfplay, batch_size = strategy.selfplay, config.learner.batch_size
    selfplay.num_simulations = simulation_range(config)[0]

    def learn(is_wanted: Callable[[], bool]) -> dict[str, float]:
        steps, start = -1, 0.0
        while steps < 1 or is_wanted():
            strategy.learner.step(strategy.replay.sample(batch_size, step_rng(config.seed, steps + 1)), progress=0.0)
            steps += 1
            if steps == 0:  # the first step makes what the others find
                start = perf_counter()
        return {"sample_s": (perf_counter() - start) / (steps * batch_size)}

    def play(limit_s: float) -> None:
        end = perf_counter() + limit_s
        for _ in selfplay.play(2**31 - 1, until=lambda: perf_counter() >= end):
            pass

    play(seconds / 4)
    before = asdict(selfplay.stats)
    if config.overlap and not config.deterministic:
        with Background(learn) as learning:
            play(seconds)
            learning.stop()
        learned = learning.result()
    else:
        play(seconds)
        end = perf_counter() + seconds / 4
        learned = learn(lambda: perf_counter() < end)
    return {name: value - before[name] for name, value in asdict(selfplay.stats).items()}, learned["sample_s"]


def _overhead_rows(evaluator: Any, game: CoreGame, num_rows: int, seconds: float) -> float:
    """Rows that take as long as the fixed cost of a call, from calls of few rows and of many."""
    if num_rows <= _SMALL_BATCH:
        return 0.0
    positions = random_positions(game, _SMALL_BATCH)
    few, many = (_seconds_of(evaluator.evaluate, positions.repeat(rows), seconds) for rows in (_SMALL_BATCH, num_rows))
    row_s = max((many - few) / (num_rows - _SMALL_BATCH), 1e-3 * many / num_rows)
    return max(few / row_s - _SMALL_BATCH, 0.0)


def _seconds_of(fn: Callable[[Any], Any], argument: Any, seconds: float) -> float:
    """Seconds of a call: the shortest of those made in so many seconds, since others only make it longer."""
    fn(argument)
    best, end = float("inf"), perf_counter() + seconds
    while best == float("inf") or perf_counter() < end:
        start = perf_counter()
        fn(argument)
        best = min(best, perf_counter() - start)
    return best
