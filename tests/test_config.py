from __future__ import annotations

import copy
import dataclasses
import itertools
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow
from windrow import ConfigError, SearchConfig, UnknownKeyError
from windrow.engine_registry import ENGINES
from windrow.engines import BUILT_IN, Auto, EngineOptions, Multiprocess, Ray, Vectorized
from windrow.evaluators import UniformEvaluator
from windrow.search.engines import find_engine


def test_the_defaults_are_possible():
    config = SearchConfig()
    assert config.num_simulations == 400
    assert config.engine == Auto() and config.engine_name == "auto"
    assert SearchConfig(**config.to_dict()) == config


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("num_simulation", "num_simulations"),
        ("cpuct", "c_puct"),
        ("leaves_per_trees", "leaves_per_tree"),
        ("virtual_losses", "virtual_loss"),
        ("Temperature", "temperature"),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(key: str, hint: str):
    with pytest.raises(UnknownKeyError, match=f"no setting '{key}'. Did you mean '{hint}'") as caught:
        SearchConfig(**{key: 1})
    # A TypeError too, as Python itself would raise, and a ValueError, as every bad setting.
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ConfigError)


def test_an_unknown_key_without_a_likeness_lists_them_all():
    with pytest.raises(UnknownKeyError) as caught:
        SearchConfig(zzz=1)  # pyright: ignore
    assert "Did you mean" not in str(caught.value)
    for field in dataclasses.fields(SearchConfig):
        assert field.name in str(caught.value)


def test_an_unknown_key_in_a_copy():
    with pytest.raises(UnknownKeyError, match="c_putc"):
        SearchConfig().replace(c_putc=1.0)


def test_settings_have_names():
    with pytest.raises(TypeError):
        SearchConfig(400)  # pyright: ignore


IMPOSSIBLE: list[tuple[str, Any]] = [
    ("num_simulations", -1),
    ("num_simulations", True),
    ("num_simulations", 10.0),
    ("num_simulations", "400"),
    ("num_simulations", 2**31),
    ("time_limit_s", -0.1),
    ("time_limit_s", float("nan")),
    ("time_limit_s", float("inf")),
    ("time_limit_s", "1"),
    ("max_depth", 0),
    ("max_depth", -3),
    ("max_memory", 0),
    ("max_memory", 1e9),
    ("c_puct", float("nan")),
    ("c_puct", float("inf")),
    ("c_puct", -0.5),
    ("c_puct", None),
    ("c_puct", True),
    ("c_puct", "1.5"),
    ("first_play", 1.5),
    ("first_play", -1.01),
    ("first_play", "Parent"),
    ("first_play", None),
    ("first_play", float("nan")),
    ("first_play_reduction", -0.1),
    ("first_play_reduction", 0.2),  # without first_play="parent" it would do nothing
    ("dirichlet_fraction", -0.01),
    ("dirichlet_fraction", 1.01),
    ("dirichlet_alpha", 0.0),
    ("dirichlet_alpha", -1.0),
    ("dirichlet_alpha", float("nan")),
    ("temperature", -1.0),
    ("temperature", float("nan")),
    ("leaves_per_tree", 0),
    ("leaves_per_tree", -2),
    ("leaves_per_tree", False),
    ("leaves_per_tree", 40_000),
    ("leaves_per_tree", 1.5),
    ("in_flight", "virtual"),
    ("in_flight", None),
    ("in_flight", ["visits"]),
    ("virtual_loss", -1.0),
    ("virtual_loss", float("inf")),
    ("on_collision", "drop"),
    ("engine", "batch"),
    ("engine", 3),
    ("seed", -1),
    ("seed", 2**64),
    ("seed", None),
    ("seed", 1.0),
]


@pytest.mark.parametrize(("key", "value"), IMPOSSIBLE, ids=[f"{key}={value!r}" for key, value in IMPOSSIBLE])
def test_an_impossible_value_is_refused_by_name(key: str, value: Any):
    with pytest.raises(ConfigError, match=key):
        SearchConfig(**{key: value})
    with pytest.raises(ConfigError, match=key):
        SearchConfig().replace(**{key: value})


@pytest.mark.parametrize(("value", "hint"), [("virtual_loss", "visits, loss, dilute"), ("visit", "'visits'")])
def test_a_wrong_choice_lists_the_choices(value: str, hint: str):
    with pytest.raises(ConfigError, match=hint):
        SearchConfig(in_flight=value)  # pyright: ignore


def test_every_setting_but_none_is_checked():
    """A setting somebody adds without a check fails here: each refuses an object that is nothing at all."""
    for field in dataclasses.fields(SearchConfig):
        with pytest.raises(ConfigError, match=field.name):
            SearchConfig(**{field.name: object()})


# --- Options of the engine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_options_of_its_name(name: str):
    """The classes that need no import of an engine are those that the engines declare."""
    if name == "tensor":
        pytest.importorskip("torch")
    assert find_engine(name).Options is BUILT_IN[name]
    config = SearchConfig(engine=name)
    assert config.engine == BUILT_IN[name]() and config.engine_name == name
    assert config.to_dict()["engine"] == name and SearchConfig(**config.to_dict()) == config


@pytest.mark.parametrize("kind", BUILT_IN.values(), ids=BUILT_IN)
def test_every_option_is_checked(kind: Any):
    for field in dataclasses.fields(kind):
        if field.name not in ("name", "game"):  # the registry and the tensor engine check these
            with pytest.raises(ConfigError, match=field.name):
                kind(**{field.name: object()})


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [
        (Multiprocess(num_workers=3), Multiprocess(num_workers=3)),
        ({"name": "multiprocess", "num_workers": 3}, Multiprocess(num_workers=3)),
        ({"max_batch": 8}, Auto(max_batch=8)),
        ("ray", Ray()),
    ],
)
def test_an_engine_is_a_name_a_table_or_options(engine: Any, wanted: EngineOptions):
    config = SearchConfig(engine=engine)
    assert config.engine == wanted
    assert SearchConfig(**config.to_dict()) == config == config.replace(seed=0)
    assert eval(repr(config)) == config


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("rey", "Did you mean 'ray'"),
        ({"name": "ray", "num_actor": 2}, "Did you mean 'num_actors'"),
        ({"name": "vectorized", "num_workers": 2}, r"an option of the multiprocess and ray engines, not of vectorized"),
        (Multiprocess(name="ray"), "the ray engine takes Ray, not Multiprocess"),
        ({"name": "vectorized", "num_threads": 0}, "num_threads must be from 1"),
        (3, "engine cannot be 3"),
        (Vectorized, r"engine takes an options object, not the class: write Vectorized\(\)"),
    ],
)
def test_a_wrong_engine_is_refused(engine: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        SearchConfig(engine=engine)


def test_an_option_given_as_a_setting_is_explained():
    with pytest.raises(UnknownKeyError, match=r"num_workers is an option .* engine=Multiprocess\(num_workers=...\)"):
        SearchConfig(engine="multiprocess", num_workers=2)  # pyright: ignore[reportCallIssue]


def test_an_option_of_another_engine_is_explained_by_the_options_too():
    with pytest.raises(
        UnknownKeyError, match="num_workers is an option of the multiprocess and ray engines, not of vec"
    ):
        Vectorized(num_workers=2)  # pyright: ignore[reportCallIssue]
    with pytest.raises(UnknownKeyError, match=r"not of multiprocess. Write engine=Vectorized\(num_threads=...\)"):
        SearchConfig(engine=Multiprocess()).with_settings({"num_threads": 2})


def test_settings_and_options_side_by_side():
    """As a command line has them."""
    config = SearchConfig(engine=Multiprocess(num_workers=3))
    assert config.with_settings({"seed": 4, "max_batch": 9}) == SearchConfig(
        engine=Multiprocess(num_workers=3, max_batch=9), seed=4
    )
    # The same engine by its name keeps its options, another one begins with its own.
    assert config.with_settings({"engine": "multiprocess", "pipeline": 2}).engine == Multiprocess(
        num_workers=3, pipeline=2
    )
    assert config.with_settings({"engine": "vectorized", "pipeline": 2}).engine == Vectorized(pipeline=2)
    with pytest.raises(UnknownKeyError, match="num_actors is an option of the ray engine, not of multiprocess"):
        config.with_settings({"num_actors": 2})


def test_a_search_needs_an_end():
    with pytest.raises(ConfigError, match="num_simulations, time_limit_s"):
        SearchConfig(num_simulations=None)
    assert SearchConfig(num_simulations=None, time_limit_s=1).num_simulations is None


def test_the_sequential_engine_has_one_leaf():
    game, evaluator = windrow.make_game("tictactoe"), UniformEvaluator()
    refusal = "the sequential engine does not support leaves_per_tree=2: set leaves_per_tree=1"
    for leaves, match in ((2, refusal), (1, None)):
        config = SearchConfig(engine="sequential", leaves_per_tree=leaves)
        if match is None:
            assert windrow.Search(game, evaluator, config).engine.name == "sequential"
            continue
        with pytest.raises(ConfigError, match=match):
            windrow.Search(game, evaluator, config)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_simulations": 0},
        {"num_simulations": np.int64(7)},
        {"c_puct": 2},
        {"c_puct": np.float64(1.5)},
        {"c_puct": np.float32(1.5)},  # what comes out of a float32 array is a number as well
        {"temperature": np.int64(1)},
        {"time_limit_s": 0},
        {"first_play": "parent", "first_play_reduction": 0.25},
        {"first_play": -1},
        {"seed": 2**64 - 1},
        {"leaves_per_tree": 32767},
        {"temperature": 0},
    ],
    ids=repr,
)
def test_possible_values(settings: dict[str, Any]):
    config = SearchConfig(**settings)
    for key, value in settings.items():
        assert getattr(config, key) == value


def test_a_config_is_frozen():
    config = SearchConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.c_puct = 2.0  # pyright: ignore
    with pytest.raises((AttributeError, TypeError)):
        config.new_knob = 2.0  # pyright: ignore


def test_a_config_is_a_value():
    config = SearchConfig(c_puct=2.0, seed=3)
    for same in (
        config.replace(),
        copy.deepcopy(config),
        pickle.loads(pickle.dumps(config)),
        dataclasses.replace(config),
    ):
        assert same == config and hash(same) == hash(config)
    assert config.replace(seed=4) != config
    assert config.seed == 3


def test_a_config_shows_what_was_changed():
    assert repr(SearchConfig()) == "SearchConfig()"
    config = SearchConfig(num_simulations=20, first_play="parent", max_memory=None)
    assert repr(config) == "SearchConfig(num_simulations=20, first_play='parent')"
    assert eval(repr(config)) == config


def test_every_knob_of_the_law_is_explained():
    """The source has a docstring under every setting: "every knob explained once"."""
    import ast
    import inspect

    (definition,) = ast.parse(inspect.getsource(windrow.SearchConfig)).body
    assert isinstance(definition, ast.ClassDef)
    body = definition.body
    for statement, following in itertools.pairwise(body):
        if isinstance(statement, ast.AnnAssign):
            assert isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant), ast.unparse(statement)


@pytest.mark.parametrize("name", ["config.json", "config.toml"])
def test_a_file_of_settings_that_is_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("[" * 100_000 if name.endswith("json") else "a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match=r"cannot be read|nested too deeply"):
        SearchConfig.read(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="not a regular file"):
        SearchConfig.read(path)
