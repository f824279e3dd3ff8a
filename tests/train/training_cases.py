"""What the tests of training share: records of random games, batches, small networks, their comparison, small runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from windrow import make_game
from windrow.games.native import NativeGame
from windrow.train import Batch, GameRecord, Replay, TrainConfig, TrainingRun, step_rng

CONNECT4 = make_game("connect4")


def random_record(game: NativeGame, number: int, *, share: float = 1.0, opening: int = 0) -> GameRecord:
    """A game of random moves with random targets; the same for the same number.

    share: of the moves that are recorded.
    opening: moves played before the record begins.
    """
    rng = np.random.default_rng([number, 77])
    state = game.initial_state()
    dealt: list[int] = []
    for _ in range(opening):
        dealt.append(int(rng.choice(game.legal_actions(state))))
        state = game.apply(state, dealt[-1])
    actions: list[int] = []
    policy: list[Any] = []
    while game.to_play(state) >= 0:
        legal = game.legal_actions(state)
        weights = np.zeros(game.num_actions)
        weights[legal] = rng.dirichlet(np.ones(len(legal)))
        policy.append(weights)
        actions.append(int(rng.choice(legal)))
        state = game.apply(state, actions[-1])
    is_recorded = rng.random(len(actions)) < share
    return GameRecord(
        number=number,
        actions=np.array(actions, np.uint16),
        initial=game.pack_start(dealt),
        is_recorded=is_recorded,
        policy=np.array(policy, np.float16).reshape(-1, game.num_actions)[is_recorded],
        root_value=rng.uniform(-1, 1, len(actions)).astype(np.float16),
        returns=np.array(game.returns(state), np.float32),
        versions=(number, number + 2),
    )


def filled_replay(game: NativeGame = CONNECT4, *, num_games: int = 12, **settings: Any) -> Replay:
    replay = Replay(game, 10_000, **settings)
    for number in range(num_games):
        replay.add(random_record(game, number))
    return replay


def batch_of(step: int = 0, batch_size: int = 32, **settings: Any) -> Batch:
    return filled_replay(**settings).sample(batch_size, step_rng(5, step))


def same_bits(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two dicts of tensors are equal to the last bit."""
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and one[name].numpy().tobytes() == other[name].numpy().tobytes()
        for name in one
    )


def small_run(**changes: Any) -> TrainConfig:
    """A run of tic-tac-toe that takes a second or two."""
    settings: dict[str, Any] = {
        "game": "tictactoe",
        "num_iterations": 3,
        "games_per_iteration": 24,
        "min_positions": 60,
        "samples_per_position": 3.0,
        "backend": "torch",
        "num_threads": 1,
        "overlap": False,
        "network": {"channels": 8, "blocks": 1},
        "search": {"num_simulations": 12, "root": "puct"},
        "selfplay": {"num_slots": 16},
        "learner": {"batch_size": 32, "warmup_steps": 2},
        "replay": {"max_positions": 200},
    }
    return TrainConfig.from_dict({**settings, **changes})


def finish(run: TrainingRun) -> Path:
    """Run it to its end; its folder."""
    for _ in run.iterations():
        pass
    run.close()
    return run.folder
