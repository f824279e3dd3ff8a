"""Self-play on Ray: the same games as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ray_cases import ray_cluster
from windrow import ConfigError, GameError, PredictionCache, SearchConfig, SearchError, make_game
from windrow.engines import Ray
from windrow.errors import EvaluatorError
from windrow.evaluators import HashEvaluator, RolloutEvaluator, load
from windrow.inference import InferenceFleet
from windrow.train import PortableNetwork, SelfPlay, SelfPlayConfig
from windrow.train.ray_selfplay import RaySelfPlay
from windrow.train.ray_worker import PlayOrder

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

HERE = Path(__file__).parent
TOYS = [str(HERE), str(HERE.parent / "search")]
SETTINGS = {"opening_plies": 2, "full_fraction": 0.5, "fast_simulations": 4}
RAY = Ray(num_workers=2, num_actors=0, report_s=0.05)
CONFIG = SearchConfig(num_simulations=12, dirichlet_fraction=0.25, engine=RAY, seed=9)
PLAIN = CONFIG.replace(engine="vectorized")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A cluster for all tests of this file; its cores are only numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in TOYS:  # where workers find them too
            patch.syspath_prepend(folder)
        with ray_cluster(num_cpus=16):
            yield


@pytest.fixture
def make() -> Iterator[Callable[..., SelfPlay]]:
    made: list[SelfPlay] = []

    def fn(
        config: SearchConfig = CONFIG,
        game: Any = None,
        evaluator: Any = None,
        options: Ray = RAY,
        **settings: Any,
    ) -> SelfPlay:
        more = {key: settings.pop(key) for key in ("next_game", "first_version") if key in settings}
        selfplay = SelfPlay(
            make_game("connect4") if game is None else game,
            HashEvaluator(3) if evaluator is None else evaluator,
            config if options is RAY else config.replace(engine=options),
            SelfPlayConfig(**{"num_slots": 8, **settings}),
            **more,
        )
        if config.engine_name == "ray":
            assert isinstance(selfplay.backend, RaySelfPlay)
            made.append(selfplay)
        return selfplay

    yield fn
    for selfplay in made:
        selfplay.close()
        selfplay.close()


def by_number(records: Any) -> dict[int, bytes]:
    found = list(records)
    games = {record.number: record.to_bytes() for record in found}
    assert len(games) == len(found), "a game was given twice"
    return dict(sorted(games.items()))


@pytest.mark.parametrize(("name", "num_actors"), [("pig", 0), ("connect4", 2)])
def test_same_games_as_in_one_process(make: Any, name: str, num_actors: int) -> None:
    game = make_game(name, **({"target": 15} if name == "pig" else {}))
    plain = make(PLAIN, game, **SETTINGS, num_slots=24)
    want = by_number(plain.play(30, refill=False))
    options = RAY.replace(num_actors=num_actors)
    selfplay = make(game=game, options=options.replace(num_workers=3), **SETTINGS, num_slots=24)
    assert by_number(selfplay.play(30, refill=False)) == want
    assert (selfplay.next_game, selfplay.num_in_progress) == (30, 0) and selfplay.backend.nodes
    for field in ("games", "moves", "recorded_moves", "first_player_wins", "draws", "simulations", "evaluations"):
        assert getattr(selfplay.stats, field) == getattr(plain.stats, field), field
    assert selfplay.stats.nn_positions == plain.stats.nn_positions
    again = list(selfplay.play(10, refill=False))
    assert sorted(record.number for record in again) == list(range(30, 40))


def test_games_go_on_and_nobody_plays_ahead(make: Any) -> None:
    """What is in progress goes on at the next `play`; in between, two orders of each worker are done and no more."""
    selfplay = make()
    first = list(selfplay.play(10))
    assert selfplay.num_in_progress >= 8
    with pytest.raises(ConfigError, match="in progress"):
        selfplay.play(1, refill=False)
    members = [member for member in selfplay.backend.crew.members if member.hello is not None]
    questions = [question for member in members for question in member.waiting]
    assert len(questions) <= 2 * len(members)
    ray.wait(questions, num_returns=len(questions), timeout=30)

    def count_positions() -> int:
        look = PlayOrder(epoch=0, newest=0, numbers=[], margins=[], num_simulations=12, duration_s=0.0)
        return sum(report.counts["nn_positions"] for report in ray.get([m.actor.play.remote(look) for m in members]))

    positions = count_positions()
    time.sleep(0.3)
    assert positions == count_positions() > 0
    second = list(selfplay.play(200))
    played = [*first, *second]
    numbers = [record.number for record in played]
    assert len(set(numbers)) == 210 and max(numbers) < selfplay.next_game
    plain = by_number(make(PLAIN).play(selfplay.next_game, refill=False))
    assert all(plain[record.number] == record.to_bytes() for record in played)
    selfplay.drop_games()
    assert selfplay.num_in_progress == 0
    assert len(by_number(selfplay.play(5, refill=False))) == 5


def test_settings_reach_the_workers(make: Any) -> None:
    selfplay = make(game=make_game("tictactoe"), first_version=10, next_game=100, num_slots=4)
    first = list(selfplay.play(6, refill=False))
    assert {record.versions for record in first} == {(10, 10)}
    assert sorted(record.number for record in first) == list(range(100, 106))
    before = selfplay.stats.simulations, selfplay.stats.moves
    selfplay.num_simulations = 3
    list(selfplay.play(20, refill=False))
    assert (selfplay.stats.simulations - before[0]) / (selfplay.stats.moves - before[1]) < 12
    for settings in ({"cache_memory": 1 << 20}, {"root": "gumbel", "gumbel_scale": 1.0, "dirichlet_fraction": 0.0}):
        many, one = make(CONFIG.replace(**settings)), make(PLAIN.replace(**settings))
        assert by_number(many.play(12, refill=False)) == by_number(one.play(12, refill=False))
    # An evaluator that takes states works where the states are.
    many = make(evaluator=RolloutEvaluator(1, seed=5), options=RAY.replace(num_actors=1))
    one = make(PLAIN, evaluator=RolloutEvaluator(1, seed=5))
    assert by_number(many.play(12, refill=False)) == by_number(one.play(12, refill=False))
    assert many.stats.nn_positions == one.stats.nn_positions


def test_a_fleet_of_ones_own(make: Any) -> None:
    """Whoever brings inference actors needs no others, and has to end them."""
    game = make_game("connect4")
    want = by_number(make(PLAIN, num_slots=16).play(12, refill=False))
    with InferenceFleet(game, partial(HashEvaluator, 3)) as fleet:
        for evaluator in (fleet, fleet.client()):
            selfplay = make(game=game, evaluator=evaluator, options=RAY.replace(num_actors=1), num_slots=16)
            assert by_number(selfplay.play(12, refill=False)) == want
            assert selfplay.backend.crew.fleet is None
            selfplay.close()
        assert fleet.stats()[0].is_alive


def test_resignation_is_learned_together(make: Any) -> None:
    settings = {"resign_below": -0.2, "resign_check_fraction": 0.9, "resign_patience": 1, "resign_max_error": 0.9}
    selfplay = make(**settings)
    list(selfplay.play(60))
    assert len(selfplay.resignation.margins) >= 40 and selfplay.resignation.threshold is not None
    list(selfplay.play(200))
    assert selfplay.stats.resigned_games > 0


# --- Weights ------------------------------------------------------------------------------------------------------


def constant_net(game: Any, value: float) -> Any:
    """A network that knows nothing but one value: tanh of its last bias."""
    import torch

    from windrow.nets import ResNet, fold

    net = ResNet.for_game(game, seed=1, channels=4, blocks=0)
    state = {name: torch.zeros_like(tensor) for name, tensor in net.state_dict().items()}
    for name, tensor in state.items():
        if name.endswith("running_var"):
            tensor.fill_(1.0)
    *_, last = [name for name in state if name.startswith("value") and name.endswith("bias")]
    state[last].fill_(float(np.arctanh(value)))
    net.load_state_dict(state)
    return fold(net.eval())


@pytest.mark.parametrize(("num_actors", "max_lag"), [(0, 1), (2, 0)])
def test_new_weights_reach_everybody(make: Any, num_actors: int, max_lag: int) -> None:
    """The value of a root tells which weights gave it: without simulations it is the network's own."""
    game = make_game("tictactoe")
    network = PortableNetwork(constant_net(game, 0.1), game=game, backend="torch")
    network.update(constant_net(game, 0.2))  # workers begin with the present weights, not with the module's
    config = CONFIG.replace(num_simulations=0, dirichlet_fraction=0.0)
    options = RAY.replace(num_actors=num_actors, max_lag=max_lag)
    selfplay = make(config, game, network, options, first_version=7)
    values = {7: 0.2}
    check = partial(check_versions, values, max_lag)
    check(selfplay.play(12, refill=False))
    for version, value in ((8, 0.3), (9, 0.4), (10, 0.5)):
        network.update(constant_net(game, value))
        values[version] = value
        check(selfplay.play(20, refill=False))
    records = list(selfplay.play(40, refill=False))
    assert {record.versions for record in records} == {(10, 10)}
    assert {value for record in records for value in record.root_value.tolist()} == {0.5}
    assert selfplay.backend.max_lag <= max_lag
    # A worker that is started now has the newest at once.
    os.kill(selfplay.backend.pids[0], signal.SIGKILL)
    records = list(selfplay.play(40, refill=False))
    assert {value for record in records for value in record.root_value.tolist()} == {0.5}
    assert selfplay.backend.num_restarts == 1


def check_versions(values: dict[int, float], max_lag: int, records: Any) -> None:
    """Every move was searched with weights that its record admits to, and no older than allowed."""
    newest = max(values)
    for record in records:
        first, last = record.versions
        assert newest - max_lag <= first <= last <= newest
        allowed = [value for version, value in values.items() if newest - max_lag <= version]
        for root_value in record.root_value.tolist():
            assert any(abs(root_value - value) < 0.01 for value in allowed), (root_value, record.versions, values)


# --- Faults -------------------------------------------------------------------------------------------------------


def test_dead_workers_are_replaced(make: Any) -> None:
    """Their games are begun again by whoever has room, and are the same."""
    want = by_number(make(PLAIN).play(60, refill=False))
    selfplay = make(CONFIG.with_settings({"max_restarts": 9}))
    got: dict[int, bytes] = {}
    killed: set[int] = set()
    for record in selfplay.play(60, refill=False):
        assert record.number not in got
        got[record.number] = record.to_bytes()
        for worker, pid in selfplay.backend.pids.items():
            if len(got) in (3, 20, 40) and worker == len(got) % 2 and pid not in killed:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
    assert dict(sorted(got.items())) == want
    assert 1 <= selfplay.backend.num_restarts <= 3


def test_an_inference_actor_dies(make: Any) -> None:
    want = by_number(make(PLAIN).play(40, refill=False))
    selfplay = make(options=RAY.replace(num_actors=2), num_slots=32)
    got: dict[int, bytes] = {}
    for record in selfplay.play(40, refill=False):
        got[record.number] = record.to_bytes()
        if len(got) == 5:
            os.kill(selfplay.backend.crew.fleet.stats()[0].pid, signal.SIGKILL)
    assert dict(sorted(got.items())) == want


@pytest.mark.slow
def test_what_fells_every_worker_is_said(make: Any) -> None:
    selfplay = make()
    with pytest.raises(SearchError, match=r"max_restarts=2"):
        for _ in selfplay.play(2**31):
            for pid in selfplay.backend.pids.values():
                with_pid = Path(f"/proc/{pid}")
                if with_pid.exists():
                    os.kill(pid, signal.SIGKILL)
    assert len(by_number(selfplay.play(5))) == 5


def test_errors_come_out_and_play_goes_on(make: Any) -> None:
    import multiprocess_games as toys
    from ray_toys import Failing

    selfplay = make(game=toys.Raising())
    with pytest.raises(GameError, match="the middle is mine"):
        list(selfplay.play(50))
    assert selfplay.num_in_progress == 0
    selfplay = make(evaluator=Failing(), options=RAY.replace(num_actors=1))
    with pytest.raises(EvaluatorError, match="no answer"):
        list(selfplay.play(50))
    selfplay = make(CONFIG.with_settings({"worker_timeout_s": 0.5, "max_restarts": 0}), toys.Hanging())
    with pytest.raises(SearchError, match=r"no sign .*worker_timeout_s"):
        list(selfplay.play(50))


def test_an_interrupt_loses_nothing(make: Any) -> None:
    want = by_number(make(PLAIN).play(60, refill=False))
    selfplay = make()
    got: dict[int, bytes] = {}

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        play, num_interrupts = selfplay.play(60, refill=False), 0
        while len(got) < 60:
            signal.setitimer(signal.ITIMER_REAL, 0.05 if num_interrupts < 8 else 0.0)
            try:
                for record in play:
                    got[record.number] = record.to_bytes()
                    if len(got) == 60:
                        break
            except KeyboardInterrupt:
                num_interrupts += 1
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            play = selfplay._play(60 - len(got)) if len(got) < 60 else play
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert dict(sorted(got.items())) == want
    assert num_interrupts >= 1


def test_what_cannot_be_is_refused(make: Any) -> None:
    game = make_game("tictactoe")
    with pytest.raises(ConfigError, match="works only within one process"):
        SelfPlay(game, HashEvaluator(1), CONFIG, cache=PredictionCache(1 << 20))
    with pytest.raises(ConfigError, match="trees_per_root"):
        make(CONFIG.replace(trees_per_root=2))
    with pytest.raises(ConfigError, match="PortableNetwork"):
        make(game=game, evaluator=load(constant_net(game, 0.1), game=game, backend="torch"))
    selfplay = make()
    selfplay.close()
    with pytest.raises(ConfigError, match="closed"):
        list(selfplay.play(1))
    from ray_toys import Unpicklable

    selfplay = make(evaluator=Unpicklable(3))
    with pytest.raises(ConfigError, match="pickling raised"):
        list(selfplay.play(1))


def test_no_room_is_said(make: Any) -> None:
    selfplay = make(options=RAY.replace(cpus_per_worker=99.0, start_timeout_s=1.0))
    with pytest.raises(SearchError, match=r"2 workers of 99 CPU.*has 16 CPU"):
        list(selfplay.play(1))
    selfplay = make(options=RAY.replace(cpus_per_worker=99.0, start_timeout_s=1.0, placement="pack"))
    with pytest.raises(SearchError, match=r"no room for all at once"):
        list(selfplay.play(1))


@pytest.mark.slow
def test_packed_together(make: Any) -> None:
    for options in (RAY, RAY.replace(num_actors=2), RAY.replace(num_actors=1, cpus_per_actor=2.0)):
        selfplay = make(options=options.replace(placement="pack"))
        assert len(by_number(selfplay.play(8, refill=False))) == 8
        selfplay.close()
