"""Whole tunings of tiny games with real measurements: what is reported is consistent; how fast it was is not asked."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import windrow
from windrow import ConfigError, Search, SearchConfig
from windrow.capabilities import Capabilities
from windrow.engine_registry import ENGINES
from windrow.engines import EngineOptions, Tensor
from windrow.evaluators import HashEvaluator, RolloutEvaluator, TorchEvaluator
from windrow.games.targets import import_target
from windrow.nets import ResNet
from windrow.settings import read_file
from windrow.tensor.evaluators.network_call import DeviceNetwork
from windrow.train.config import TrainConfig
from windrow.tune import Price, Tuning, tune
from windrow.tune.measurement import Sampler, open_shortcut
from windrow.tune.network import NetworkCurve, different_positions, measure_curve
from windrow.tune.space import Candidate


@pytest.fixture
def price() -> Price:
    return Price.read(Path(__file__).parent / "price.json")


@pytest.fixture(scope="module")
def tictactoe() -> Any:
    return windrow.make_game("tictactoe")


@pytest.fixture(scope="module")
def network(tictactoe: Any) -> TorchEvaluator:
    return TorchEvaluator(ResNet.for_game(tictactoe, channels=4, blocks=0).eval(), "cpu")


def check(found: Tuning) -> None:
    """What holds for every tuning."""
    assert found.choice in found.rows and found.choice.is_finalist and not found.choice.is_reference
    assert [row.adjusted for row in found.rows] == sorted((row.adjusted for row in found.rows), reverse=True)
    finalists = [row for row in found.rows if row.is_finalist and not row.is_reference]
    assert found.choice.adjusted >= 0.97 * max(row.adjusted for row in finalists)
    for row in found.rows:
        assert row.simulations_per_second > 0 and 0 < row.efficiency <= 1 and 0 < row.batch_fill <= 1.001
        assert (row.efficiency == 1) == (row.candidate.leaves_per_tree == 1)
        assert 1 <= row.mean_rows <= max(row.candidate.num_trees, 1) * row.candidate.leaves_per_tree
    settings = found.choice.candidate.settings()
    chosen = {
        **found.config.values(),
        **found.config.options_for(EngineOptions).values(),
        "engine": found.config.engine_name,
    }
    assert {name: chosen[name] for name in settings} == settings


def test_many_positions(tictactoe: Any, network: Any, price: Price, tmp_path: Path) -> None:
    base = SearchConfig(num_simulations=16, c_puct=2.0)
    told: list[float] = []
    found = tune(
        *(tictactoe, network, base),
        seconds=6.0,
        max_trees=32,
        price=price,
        progress=lambda share, _: told.append(share),
    )
    check(found)
    # On a slow machine the time may be over before all were tried.
    assert {row.candidate.engine for row in found.rows} <= {"sequential", "vectorized", "multiprocess"}
    assert found.config.c_puct == 2.0 and found.config.num_simulations == 16
    assert told == sorted(told) and told[-1] <= 1.0
    assert all(row.network_share is not None for row in found.rows)
    # What is written is read again by all who read configs.
    for name in ("tuned.toml", "tuned.json"):
        path = tmp_path / name
        found.write(path, comment="two\nlines")
        assert read_file(path) == found.sections()
        assert SearchConfig.read(path, num_simulations=16, c_puct=2.0) == found.config
        trained = TrainConfig.read(path)
        assert trained.selfplay.num_slots == found.choice.candidate.num_trees
        assert trained.search.engine_name == found.choice.candidate.engine
    with Search(tictactoe, network, found.config) as search:
        assert search.run(tictactoe.initial_state()).visits.sum() == 16


def test_one_position(tictactoe: Any, network: Any, price: Price) -> None:
    found = tune(tictactoe, network, SearchConfig(num_simulations=40), num_positions=1, seconds=3.0, price=price)
    check(found)
    assert {row.candidate.engine for row in found.rows} <= {"sequential", "batched"}
    assert all(row.candidate.num_trees == 1 for row in found.rows)
    assert "selfplay" not in found.sections()


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized", "multiprocess"])
def test_every_engine_is_measured_however_little_time_there_is(
    tictactoe: Any, network: Any, price: Price, engine: str
) -> None:
    base = SearchConfig(num_simulations=8)
    found = tune(tictactoe, network, base, num_positions=4, engines=[engine], seconds=0.1, price=price)
    check(found)
    assert found.choice.candidate.engine == engine


def test_an_evaluator_without_a_network(tictactoe: Any, price: Price) -> None:
    base = SearchConfig(num_simulations=8)
    found = tune(tictactoe, RolloutEvaluator(), base, num_positions=8, engines=["vectorized"], seconds=2.0, price=price)
    check(found)
    assert found.curve is None and found.backend is None
    assert all(row.network_share is None for row in found.rows)


def test_tensors_are_measured_where_they_are_asked_for(tictactoe: Any, price: Price) -> None:
    module = ResNet.for_game(tictactoe, channels=4, blocks=0).eval()
    base = SearchConfig(num_simulations=4)
    options: dict[str, Any] = {"num_positions": 4, "engines": ["tensor"], "seconds": 2.0, "price": price}
    found = tune(tictactoe, module, base, backend="torch", **options)
    check(found)
    assert found.choice.candidate == Candidate(engine="tensor", num_trees=4)
    assert found.backend == "torch"
    with pytest.raises(ConfigError, match="takes a PyTorch module"):
        tune(tictactoe, HashEvaluator(), base, **options)


def test_a_tensor_sample_counts_whole_searches(tictactoe: Any) -> None:
    module = ResNet.for_game(tictactoe, channels=4, blocks=0).eval()
    network = DeviceNetwork(module, "cpu")
    candidate, states = Candidate(engine="tensor", num_trees=5), different_positions(tictactoe, 5)
    sampler = Sampler(tictactoe, network, SearchConfig(num_simulations=3), candidate, states)
    sample = sampler.sample(1e-9, begin=0.5)
    sampler.close()
    assert (sample.simulations, sample.nn_positions, sample.nn_batches) == (15, 20, 4)
    assert 0 < sample.seconds and network.rate(tictactoe, 5, seconds=1e-9) > 0 and network.backend


def test_a_game_of_ones_own_in_torch_ops(price: Price, tmp_path: Path) -> None:
    """Its rules are named in the file that is written, if they have a place; an object cannot be written."""
    nim = f"{Path(__file__).parent.parent / 'tensor' / 'nim_sibling.py'}:Nim"
    game = windrow.make_game(nim, sticks=40)
    module = ResNet.for_game(game, channels=4, blocks=0).eval()
    options: dict[str, Any] = {"num_positions": 3, "engines": ["tensor"], "seconds": 0.1, "price": price}
    for rules in (f"{nim}Tensors", import_target(f"{nim}Tensors", what="game", error=ConfigError)(sticks=40)):
        base = SearchConfig(num_simulations=4, engine=Tensor(game=rules))
        found = tune(game, module, base, backend="torch", **options)
        check(found)
        written = {"name": "tensor", "game": rules} if isinstance(rules, str) else "tensor"
        assert found.sections()["search"]["engine"] == written
        found.write(tmp_path / "tuned.json")


@pytest.fixture
def device_engine(monkeypatch: pytest.MonkeyPatch) -> str:
    """Somebody's engine that declares what the tensor engine does, and searches in its own way."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent.parent / "examples")
    monkeypatch.setattr("windrow.engine_registry.ENGINES", {**ENGINES, "theirs": "theirs:Theirs"})
    example = import_module("own_engine").HalvesEngine
    able = Capabilities(
        summary="of somebody else",
        is_compiled=True,
        batches_trees=True,
        knobs=("trees",),
        evaluator="device",
        has_time_limit=False,
    )
    theirs = type("Theirs", (example,), {"name": "theirs", "capabilities": able})
    monkeypatch.setitem(sys.modules, "theirs", SimpleNamespace(Theirs=theirs))
    return "theirs"


def test_an_engine_of_somebody_else_is_measured_itself(tictactoe: Any, price: Price, device_engine: str) -> None:
    """Whatever it declares: no engine of windrow's runs in its place."""
    module = ResNet.for_game(tictactoe, channels=4, blocks=0).eval()
    network = DeviceNetwork(module, "cpu")
    candidate, states = Candidate(engine=device_engine, num_trees=4), different_positions(tictactoe, 4)
    sampler = Sampler(tictactoe, network, SearchConfig(num_simulations=6), candidate, states)
    assert type(sampler.search.engine).__name__ == "Theirs"
    assert sampler.sample(1e-9, begin=0.5).simulations == 24
    sampler.close()
    options: dict[str, Any] = {"num_positions": 4, "engines": [device_engine], "seconds": 0.1, "price": price}
    found = tune(tictactoe, module, SearchConfig(num_simulations=6), backend="torch", **options)
    check(found)
    assert found.choice.candidate == candidate and found.choice.network_share is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": SearchConfig(num_simulations=None, time_limit_s=1.0)}, "tuning counts simulations"),
        ({"num_positions": 0}, "num_positions must be at least 1"),
        ({"max_trees": 0}, "max_trees must be at least 1"),
        ({"engines": ["vectorised"]}, "vectorized"),
        ({"engines": ["multiprocess"], "num_positions": 1}, "nothing to choose from"),
    ],
)
def test_what_cannot_be_tuned_is_refused(tictactoe: Any, price: Price, changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tune(tictactoe, HashEvaluator(), price=price, seconds=1.0, **changes)


# --- Samples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_a_sample_is_a_part_of_a_search(tictactoe: Any, engine: str) -> None:
    """From half of the budget on, the other half is what is counted."""
    evaluator = open_shortcut(tictactoe, HashEvaluator(3))
    states = different_positions(tictactoe, 6)
    candidate = Candidate(engine=engine, num_trees=6, leaves_per_tree=1 if engine == "sequential" else 2)
    sampler = Sampler(tictactoe, evaluator, SearchConfig(num_simulations=20), candidate, states)
    sample = sampler.sample(1e-9, begin=0.5)
    sampler.close()
    assert 0 < sample.simulations <= 60
    assert 0 < sample.nn_positions <= sample.simulations and sample.seconds > 0
    assert sample.nn_positions <= sample.places * 1.001


def test_a_sample_has_a_batch_however_late_the_machine_is(tictactoe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first searches find their time over before they begin."""
    states = different_positions(tictactoe, 2)
    candidate = Candidate(engine="vectorized", num_trees=2)
    sampler = Sampler(tictactoe, HashEvaluator(3).bind(tictactoe), SearchConfig(num_simulations=8), candidate, states)
    given: list[float] = []
    run = Search.run

    def late(search: Search, *states: Any, time_limit_s: float | None = None, **options: Any) -> Any:
        if time_limit_s is not None:
            given.append(time_limit_s)
            time_limit_s = 0.0 if len(given) < 4 else time_limit_s
        return run(search, *states, time_limit_s=time_limit_s, **options)

    monkeypatch.setattr(Search, "run", late)
    sample = sampler.sample(1e-9, begin=0.0)
    sampler.close()
    assert sample.simulations > 0
    assert given == sorted(given) and given[-1] > given[0]


def test_a_sample_goes_on_with_new_searches(tictactoe: Any) -> None:
    evaluator = open_shortcut(tictactoe, HashEvaluator(3))
    candidate = Candidate(engine="vectorized", num_trees=2)
    states = different_positions(tictactoe, 2)
    sampler = Sampler(tictactoe, evaluator, SearchConfig(num_simulations=4), candidate, states)
    sample = sampler.sample(0.05, begin=0.0)
    sampler.close()
    assert sample.simulations > 8 and sample.seconds >= 0.05


def test_the_shortcut_answers_as_the_network_does(tictactoe: Any, network: Any) -> None:
    shortcut = open_shortcut(tictactoe, network)
    assert shortcut is not None
    rows = np.stack([tictactoe.observe(state) for state in different_positions(tictactoe, 5)])
    for one, other in zip(shortcut.evaluate(rows), network.evaluate(rows), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    with shortcut.short():
        logits, values = shortcut.evaluate(rows)
        assert logits.shape == (5, 9) and len(values) == 5
        assert not np.array_equal(logits, np.asarray(network.evaluate(rows)[0]))
    np.testing.assert_array_equal(np.asarray(shortcut.submit(rows).result()[0]), np.asarray(network.evaluate(rows)[0]))
    assert open_shortcut(tictactoe, RolloutEvaluator()) is None


def test_the_network_alone(tictactoe: Any, network: Any) -> None:
    curve = measure_curve(tictactoe, network, seconds=0.002, max_batch=8)
    assert [rows for rows, _ in curve.rates][:3] == [1, 2, 4] and all(rate > 0 for _, rate in curve.rates)
    drawn = NetworkCurve(((1, 100.0), (4, 300.0), (16, 400.0), (64, 390.0)))
    assert (drawn.best, drawn.full_batch) == (400.0, 16)
    assert [drawn.rate(rows) for rows in (0.5, 2, 8, 16, 1000)] == pytest.approx([100.0, 200.0, 350.0, 400.0, 390.0])
