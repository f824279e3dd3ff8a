"""Settings of a run: files, sections, overrides, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windrow import ConfigError, SearchConfig, UnknownKeyError, make_game
from windrow.games.registry import game_names
from windrow.train import SelfPlayConfig, TrainConfig, shipped_config


@pytest.mark.parametrize("game", game_names())
def test_every_game_has_a_config_that_reads(game: str):
    config = TrainConfig.read(shipped_config(game))
    assert config.game == game
    make_game(config.game, **config.game_options)


def test_configs_are_linked_into_the_root_of_the_repository():
    folder = Path(__file__).parents[2] / "configs"
    assert {path.stem for path in folder.glob("*.toml")} == set(game_names())


def test_round_trip(tmp_path: Path):
    config = TrainConfig.read(shipped_config("connect4"), {"search.c_puct": 3.0, "num_iterations": 7})
    assert (config.search.c_puct, config.num_iterations) == (3.0, 7)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict()))
    assert TrainConfig.read(path) == config == TrainConfig.from_dict(config.to_dict())


def test_search_settings_left_open_are_those_of_training():
    assert TrainConfig().search == SearchConfig(num_simulations=64, dirichlet_fraction=0.25)
    gumbel = TrainConfig.from_dict({"search": {"root": "gumbel"}}).search
    assert (gumbel.gumbel_scale, gumbel.dirichlet_fraction) == (1.0, 0.0)
    quiet = TrainConfig.from_dict({"search": {"dirichlet_fraction": 0.0}}).search
    assert quiet.dirichlet_fraction == 0.0
    given = SearchConfig(num_simulations=10)
    assert TrainConfig(search=given).search == given


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"serach": {}}, "no setting 'serach'.*search"),
        ({"learner": {"learning_rte": 1}}, r"in \[learner\]: .*learning_rate"),
        ({"selfplay": {"num_slots": 0}}, r"in \[selfplay\]: num_slots must be from 1"),
        ({"selfplay": 3}, r"\[selfplay\] must be a table"),
        ({"network": {"channels": 1.5}}, r"in \[network\]: channels must be a whole number"),
        ({"search": {"time_limit_s": 1.0}}, "training counts simulations"),
        ({"deterministic": True, "time_limit_s": 5.0}, "cannot end by the clock"),
        ({"overlap": 1}, "overlap must be true or false"),
        ({"replay": {"max_positions": 10}}, "more than the replay holds"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_dict(settings)


def test_a_file_is_named_in_its_errors(tmp_path: Path):
    path = tmp_path / "bad.toml"
    path.write_text("[search]\nc_put = 1\n")
    with pytest.raises(UnknownKeyError, match=r"bad\.toml: in \[search\]: there is no setting 'c_put'.*c_puct"):
        TrainConfig.read(path)
    with pytest.raises(ConfigError, match="must end in"):
        TrainConfig.read(tmp_path / "config.yaml")
    with pytest.raises(ConfigError, match=r"no config for 'conect4'.*connect4"):
        shipped_config("conect4")


def test_a_file_is_not_blamed_for_what_was_given_on_top_of_it(tmp_path: Path):
    (tmp_path / "good.toml").write_text('game = "tictactoe"\n[learner]\nbatch_size = 16\n')
    with pytest.raises(UnknownKeyError, match=r"^in \[learner\]: there is no setting 'lr'"):
        TrainConfig.read(tmp_path / "good.toml", {"learner.lr": 1})
    with pytest.raises(ConfigError, match=r"^in \[learner\]: batch_size"):
        TrainConfig.read(tmp_path / "good.toml", {"learner.batch_size": 0})


def test_every_knob_is_explained():
    """A docstring below every field, as the house has it."""
    for kind in (TrainConfig, SelfPlayConfig):
        source = Path(__import__(kind.__module__, fromlist=["x"]).__file__).read_text()
        body = source[source.index(f"class {kind.__name__}") :]
        for name in kind.setting_names():
            if kind is TrainConfig and name in ("network", "search", "selfplay", "replay", "learner"):
                continue
            start = body.index(f"    {name}: ")
            assert '"""' in body[start:].split("\n")[1], f"{kind.__name__}.{name} has no docstring"
