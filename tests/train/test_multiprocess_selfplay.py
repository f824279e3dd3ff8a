"""Self-play in worker processes: the same games as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interrupts import Watchdog, alarms_are_interrupts, is_interrupted
from windrow import ConfigError, GameError, PredictionCache, SearchConfig, SearchError, make_game
from windrow.engines import Multiprocess
from windrow.errors import EvaluatorError
from windrow.evaluators import HashEvaluator, RolloutEvaluator, from_function
from windrow.train import SelfPlay, SelfPlayConfig
from windrow.train.multiprocess import MultiprocessSelfPlay

SEARCH = str(Path(__file__).parent.parent / "search")
SETTINGS = {"opening_plies": 2, "full_fraction": 0.5, "fast_simulations": 4}
CONFIG = SearchConfig(num_simulations=12, dirichlet_fraction=0.25, engine=Multiprocess(num_workers=2), seed=9)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The games of the search tests, where workers find them too."""
    monkeypatch.syspath_prepend(SEARCH)
    import multiprocess_games

    yield multiprocess_games


def player(config: SearchConfig = CONFIG, game: Any = None, evaluator: Any = None, **settings: Any) -> SelfPlay:
    return SelfPlay(
        make_game("connect4") if game is None else game,
        HashEvaluator(3) if evaluator is None else evaluator,
        config,
        SelfPlayConfig(**{"num_slots": 8, **settings}),
    )


def by_number(records: Any) -> dict[int, bytes]:
    games = {record.number: record.to_bytes() for record in records}
    return dict(sorted(games.items()))


@pytest.mark.parametrize("name", ["connect4", "pig"])
@pytest.mark.parametrize("num_workers", [1, 3])
def test_same_games_as_in_one_process(name: str, num_workers: int) -> None:
    game = make_game(name, **({"target": 15} if name == "pig" else {}))
    plain = player(CONFIG.replace(engine="vectorized"), game, **SETTINGS)
    want = by_number(plain.play(30, refill=False))
    selfplay = player(CONFIG.with_settings({"num_workers": num_workers}), game, **SETTINGS)
    assert isinstance(selfplay.backend, MultiprocessSelfPlay)
    assert by_number(selfplay.play(30, refill=False)) == want
    assert (selfplay.next_game, selfplay.num_in_progress) == (30, 0)
    for field in ("games", "moves", "recorded_moves", "first_player_wins", "draws", "simulations", "evaluations"):
        assert getattr(selfplay.stats, field) == getattr(plain.stats, field), field
    assert selfplay.stats.nn_positions == plain.stats.nn_positions
    # What goes on goes on with the next numbers.
    again = list(selfplay.play(10, refill=False))
    assert sorted(record.number for record in again) == list(range(30, 40))
    selfplay.close()
    selfplay.close()


def test_games_go_on_from_play_to_play() -> None:
    selfplay = player()
    first = list(selfplay.play(10))
    assert selfplay.num_in_progress >= 8
    with pytest.raises(ConfigError, match="in progress"):
        selfplay.play(1, refill=False)
    second = list(selfplay.play(20))
    numbers = [record.number for record in [*first, *second]]
    assert len(set(numbers)) == 30 and max(numbers) < selfplay.next_game
    plain = by_number(player(CONFIG.replace(engine="vectorized")).play(selfplay.next_game, refill=False))
    assert all(plain[record.number] == record.to_bytes() for record in [*first, *second])
    selfplay.drop_games()
    assert selfplay.num_in_progress == 0
    assert len(list(selfplay.play(5, refill=False))) == 5
    selfplay.close()


def test_settings_reach_the_workers() -> None:
    """Fewer simulations from now on, weights that change, evaluators in the workers, a cache for each."""

    class Versioned(HashEvaluator):
        version = 4

        def bind(self, game: Any) -> Any:
            self.bound = super().bind(game)
            return self

        def evaluate(self, observations: Any) -> Any:
            return self.bound.evaluate(observations)

    evaluator = Versioned(3)
    selfplay = SelfPlay(
        make_game("tictactoe"), evaluator, CONFIG, SelfPlayConfig(num_slots=4), first_version=10, next_game=100
    )
    first = list(selfplay.play(6, refill=False))
    assert {record.versions for record in first} == {(10, 10)}
    assert sorted(record.number for record in first) == list(range(100, 106))
    before = selfplay.stats.simulations, selfplay.stats.moves
    evaluator.version = 5
    selfplay.num_simulations = 3
    second = list(selfplay.play(20, refill=False))
    assert {record.versions[1] for record in second} == {11} and selfplay.version == 11
    assert (selfplay.stats.simulations - before[0]) / (selfplay.stats.moves - before[1]) < 12
    selfplay.close()
    for settings in ({"cache_memory": 1 << 20}, {"root": "gumbel", "gumbel_scale": 1.0, "dirichlet_fraction": 0.0}):
        config = CONFIG.replace(**settings)
        many, one = player(config), player(config.replace(engine="vectorized"))
        assert by_number(many.play(12, refill=False)) == by_number(one.play(12, refill=False))
        many.close()
    many = player(evaluator=RolloutEvaluator(1, seed=5))
    one = player(CONFIG.replace(engine="vectorized"), evaluator=RolloutEvaluator(1, seed=5))
    assert by_number(many.play(12, refill=False)) == by_number(one.play(12, refill=False))
    assert many.stats.nn_positions == one.stats.nn_positions
    many.close()


def test_resignation_is_learned_together() -> None:
    """What one worker sees of games played to their end, all know, and it can be saved."""
    settings = {"resign_below": -0.2, "resign_check_fraction": 0.9, "resign_patience": 1, "resign_max_error": 0.9}
    selfplay = player(**settings)
    list(selfplay.play(60))
    assert len(selfplay.resignation.margins) >= 40 and selfplay.resignation.threshold is not None
    list(selfplay.play(60))
    assert selfplay.stats.resigned_games > 0
    selfplay.close()


# --- Faults ------------------------------------------------------------------------------------------------------


def test_a_dead_worker_is_replaced() -> None:
    """Its games are begun again, and are the same."""
    want = by_number(player(CONFIG.replace(engine="vectorized")).play(40, refill=False))
    selfplay = player(CONFIG)
    assert isinstance(selfplay.backend, MultiprocessSelfPlay)
    got = {}
    for record in selfplay.play(40, refill=False):
        got[record.number] = record.to_bytes()
        if len(got) in (5, 15):
            os.kill(selfplay.backend.pool.workers[len(got) % 2].process.pid, signal.SIGKILL)
    assert dict(sorted(got.items())) == want
    assert selfplay.backend.num_restarts == 2
    with pytest.raises(SearchError, match="SIGKILL"):
        for _ in selfplay.play(1000):
            os.kill(selfplay.backend.pool.workers[0].process.pid, signal.SIGKILL)
    assert len(list(selfplay.play(5))) == 5
    selfplay.close()


def test_errors_come_out_and_play_goes_on(toys: Any) -> None:
    selfplay = player(game=toys.Raising())
    with pytest.raises(GameError, match="the middle is mine"):
        list(selfplay.play(50))
    selfplay.close()
    selfplay = player(CONFIG.with_settings({"worker_timeout_s": 0.3}), game=toys.Hanging())
    with pytest.raises(SearchError, match=r"worker_timeout_s\): .*was in `apply`"):
        list(selfplay.play(50))
    selfplay.close()
    calls: list[int] = []

    def fn(observations: Any) -> Any:
        calls.append(len(observations))
        if len(calls) == 30:
            raise ZeroDivisionError("no answer")
        if len(calls) == 60:
            raise KeyboardInterrupt
        return np.zeros((len(observations), 7), np.float32), np.zeros(len(observations), np.float32)

    selfplay = player(evaluator=from_function(fn, batched=True))
    with pytest.raises(EvaluatorError, match="no answer"):
        list(selfplay.play(50))
    assert selfplay.num_in_progress == 0
    with pytest.raises(KeyboardInterrupt):
        list(selfplay.play(50))
    assert len(list(selfplay.play(50))) == 50
    selfplay.close()


@pytest.mark.signals
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # while an object is freed
@pytest.mark.parametrize("num_interrupts", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_interrupts_at_random_moments_lose_no_game(num_interrupts: int) -> None:
    """Ctrl-C during `play`, again and again: no hang, no game that is missing, played differently or given twice."""
    rng, records, count = random.Random(num_interrupts), list[Any](), 0
    selfplay = player(num_slots=6, **SETTINGS)
    with Watchdog(60.0) as watchdog, alarms_are_interrupts():

        def play() -> None:
            for record in selfplay.play(3):
                records.append(record)

        play()
        while count < num_interrupts:
            watchdog.step()
            count += is_interrupted(play, rng.uniform(0.0, 0.05))
        for _ in range(20):
            watchdog.step()
            play()
    got = by_number(records)
    assert len(got) == len(records)
    # All but the last: those that are still being played.
    assert set(range(max(got) - 60)) <= got.keys()
    selfplay.close()
    plain = by_number(player(CONFIG.replace(engine="vectorized"), **SETTINGS).play(max(got) + 1, refill=False))
    assert got == {number: plain[number] for number in got}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="works only within one process"):
        SelfPlay(make_game("connect4"), HashEvaluator(1), CONFIG, cache=PredictionCache(1 << 20))
    with pytest.raises(ConfigError, match="trees_per_root"):
        player(CONFIG.replace(trees_per_root=2))


@pytest.mark.slow
def test_soak() -> None:
    """Minutes of self-play: memory and open files stay flat. WINDROW_SOAK_S seconds, half a minute by default."""
    import time

    def resident(pid: int) -> int:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    selfplay = player(game=make_game("tictactoe"), num_slots=64)
    assert isinstance(selfplay.backend, MultiprocessSelfPlay)
    end = time.monotonic() + float(os.environ.get("WINDROW_SOAK_S", "30"))
    seen: list[tuple[int, int]] = []
    for number, _ in enumerate(selfplay.play(2**31 - 1)):
        if number % 2000 == 1999:
            pids = [os.getpid(), *(worker.process.pid for worker in selfplay.backend.pool.workers)]
            files = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
            seen.append((files, sum(map(resident, pids))))
            print(number + 1, *seen[-1], file=sys.stderr)
            if time.monotonic() > end:
                break
    selfplay.close()
    # What a worker opens when it first needs it is there by half time; then nothing is added.
    half = len(seen) // 2
    assert len({files for files, _ in seen[half:]}) == 1
    # The games seen before are remembered, and there are few of tic-tac-toe.
    assert max(bytes_ for _, bytes_ in seen[half:]) < 1.05 * max(bytes_ for _, bytes_ in seen[: half + 1])
