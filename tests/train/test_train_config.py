"""Settings of a run: files, sections, overrides, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windrow import ConfigError, SearchConfig, UnknownKeyError, make_game
from windrow.games.registry import game_names
from windrow.settings import read_file
from windrow.train import SelfPlayConfig, TrainConfig, config_for, shipped_config

ROOT = Path(__file__).parents[2]
CONFIGS, EXAMPLES = ROOT / "src" / "windrow" / "train" / "configs", ROOT / "examples"
ON_A_DEVICE = {"search.engine": "tensor"}
SECTIONS = ("game_options", "network", "search", "selfplay", "replay", "learner", "device")


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


def test_settings_left_open_are_those_of_training():
    gumbel = SearchConfig(num_simulations=24, root="gumbel", gumbel_scale=1.0)
    assert TrainConfig().search == TrainConfig.from_dict({"search": {"root": "gumbel"}}).search == gumbel
    puct = TrainConfig.from_dict({"search": {"root": "puct"}}).search
    assert (puct.gumbel_scale, puct.dirichlet_fraction) == (0.0, 0.25)
    quiet = TrainConfig.from_dict({"search": {"root": "puct", "dirichlet_fraction": 0.0}}).search
    assert quiet.dirichlet_fraction == 0.0
    given = SearchConfig(num_simulations=10)
    assert TrainConfig(search=given).search == given
    assert TrainConfig.from_dict({"selfplay": {"num_slots": 8}}).selfplay.opening_plies == 4
    assert TrainConfig(selfplay=SelfPlayConfig()).selfplay.opening_plies == 0


STANDARD = {
    **{"games_per_iteration": 128, "min_positions": 1000, "early_simulations": 8},
    **{"network.channels": 32, "network.blocks": 3, "search.num_simulations": 24, "search.root": "gumbel"},
    **{"selfplay.num_slots": 128, "selfplay.opening_plies": 4, "replay.value_mix": 0.5},
    **{"learner.batch_size": 256, "learner.learning_rate": 0.008},
}
"""Settings that were chosen together, by what Hex 7x7 learns on two cores in five minutes (docs/train.md)."""


def setting(settings: dict[str, Any], key: str) -> Any:
    section, _, name = key.rpartition(".")
    return (settings[section] if section else settings)[name]


def test_a_game_without_a_config_has_the_standard_settings():
    game = make_game(f"{EXAMPLES / 'games' / 'hex.py'}:Hex", size=5)
    for config in (config_for(game), config_for(game, ON_A_DEVICE), TrainConfig.from_dict({"game": game.name})):
        assert {key: setting(config.to_dict(), key) for key in STANDARD} == STANDARD
    assert config_for(game, {"game_options.size": 4}).game_options == {"size": 4}


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.toml")), ids=lambda path: str(path.relative_to(CONFIGS)))
def test_shipped_configs_do_not_depend_on_the_standard_settings(path: Path):
    """Another standard must not change what they mean: they say for themselves what it would change."""
    given = read_file(path)
    assert all(setting(given, key) is not None for key in STANDARD)


def test_early_simulations_of_none_and_0_are_all_of_them():
    budgets_of = pytest.importorskip("windrow.train.device").budgets_of
    for early, budgets in ((None, [24]), (0, [24]), (100, [24]), (8, [8, 16, 24])):
        assert budgets_of(TrainConfig(early_simulations=early)) == budgets


@pytest.mark.parametrize("overrides", [ON_A_DEVICE, {"search": {"engine": "tensor"}}])
def test_an_engine_that_trains_in_a_way_of_its_own_has_its_own_shipped_configs(overrides: dict[str, Any]):
    pytest.importorskip("torch")
    game = make_game("connect4")
    config = config_for(game, {"device.weight_average": 0.5, **overrides})
    given = {} if "search" in overrides else read_file(CONFIGS / "device" / "connect4.toml")["search"]
    assert (config.search.engine_name, config.device.weight_average) == ("tensor", 0.5)
    assert config.games_per_iteration == read_file(CONFIGS / "device" / "connect4.toml")["games_per_iteration"]
    assert config.search.replace(**given) == config.search
    assert TrainConfig.read(CONFIGS / "device" / "connect4.toml").search.engine_name == "tensor"
    assert config_for(make_game("backgammon"), overrides).game == "backgammon"  # which has none


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"serach": {}}, "no setting 'serach'.*search"),
        ({"learner": {"learning_rte": 1}}, r"in \[learner\]: .*learning_rate"),
        ({"selfplay": {"num_slots": 0}}, r"in \[selfplay\]: num_slots must be from 1"),
        ({"selfplay": 3}, r"\[selfplay\] must be a table"),
        ({"network": {"channels": 1.5}}, r"in \[network\]: channels must be a whole number"),
        ({"search": {"time_limit_s": 1.0}}, "training needs a fixed number of simulations"),
        ({"deterministic": True, "time_limit_s": 5.0}, "cannot end by the clock"),
        ({"overlap": 1}, "overlap must be true or false"),
        ({"game": 3}, "game must be a string, not 3"),
        ({"backend": None}, "backend must be a string"),
        ({"game_options": "x"}, r"\[game_options\] must be a table of options, not 'x'"),
        ({"game_options": {3: 4}}, r"\[game_options\] must be a table"),
        ({"early_simulations": -1}, "early_simulations must be from 0"),
        ({"learner": {"learning_rate": float("nan")}}, "learning_rate must be a number"),
        ({"replay": {"max_positions": 10}}, "more than the replay holds"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_dict(settings)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        *(({section: "x"}, rf"\[{section}\] must be a table") for section in SECTIONS if section != "network"),
        ({"network": "x"}, r"in \[network\]: there is no network 'x'. The kinds are resnet"),
        *(
            ({section: 3, f"{section}.seed": 1}, f"{section}.seed cannot be set: {section} is 3")
            for section in SECTIONS
        ),
        ({"game.size": 9}, "game.size cannot be set: game is 'connect4', and not a table"),
        ({"search.a.b": 1}, "no setting 'a'"),
        ({"num_iterations.x": 1}, "num_iterations must be a whole number"),
    ],
)
def test_impossible_overrides(overrides: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        config_for(make_game("connect4"), overrides)


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
