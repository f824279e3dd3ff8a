"""Engines by name: what they declare, what is refused because of it, the table of the docs, and engines of others."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import windrow
from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.capabilities import Capabilities
from windrow.engine_registry import ENGINES, engine_names, register_engine
from windrow.engines import Vectorized
from windrow.evaluators import HashEvaluator
from windrow.search.engine import Engine
from windrow.search.engines import engines_that, find_engine
from windrow.testing import EngineFaultError, check_engine
from windrow.train import SelfPlay

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PAGE = Path(__file__).parent.parent.parent / "docs" / "engines.md"
ONES = [name for name in ENGINES if name != "auto"]
GAME = make_game("tictactoe")


def load(name: str) -> type[Engine]:
    if name == "tensor":
        pytest.importorskip("torch")
    return find_engine(name)


@pytest.mark.parametrize("name", ENGINES)
def test_every_entry_is_an_engine_of_that_name(name: str) -> None:
    engine = load(name)
    assert issubclass(engine, Engine) and engine.name == name and engine.capabilities.summary
    assert engine.capabilities.is_choice == (name == "auto")


def test_unknown_names_are_refused_with_a_hint() -> None:
    for make in (find_engine, lambda name: SearchConfig(engine=name)):
        with pytest.raises(ConfigError, match=r"vectorised.*[Dd]id you mean 'vectorized'"):
            make("vectorised")


@pytest.mark.parametrize("name", ["auto", "sequential", "batched", "vectorized"])
def test_engines_of_this_process_do_what_every_engine_must(name: str) -> None:
    check_engine(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multiprocess", "tensor"])
def test_the_others_do_too(name: str) -> None:
    load(name)
    check_engine(name)


@pytest.mark.slow  # every search starts actors of its own
@pytest.mark.ray
def test_the_ray_engine_does_too() -> None:
    from ray_cases import ray_cluster

    with ray_cluster():
        check_engine("ray")


def test_an_engine_is_checked_with_its_options() -> None:
    check_engine(Vectorized(num_threads=2, max_batch=3))


def test_an_engine_that_cannot_be_imported() -> None:
    for place in ("nowhere:Broken", "windrow.search:Broken"):
        register_engine("broken", place)
        with pytest.raises(ConfigError, match=f"the broken engine cannot be imported from '{place}'"):
            SearchConfig(engine="broken")
        assert "vectorized" in engines_that(lambda engine: engine.capabilities.batches_trees)
        with pytest.raises(ConfigError, match=r"no self-play backend\. Set engine to"):
            SelfPlay(GAME, HashEvaluator(1), SearchConfig(engine="sequential"))
    with pytest.raises(ConfigError, match="an engine is registered by its place"):
        register_engine("broken", Engine)  # pyright: ignore[reportArgumentType]


# --- An engine of one's own ------------------------------------------------------------------------------------------


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The engine of the example."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.delitem(sys.modules, "own_engine", raising=False)
    register_engine("halves", "own_engine:HalvesEngine")
    return "halves"


def test_an_engine_of_ones_own(halves: str) -> None:
    check_engine(halves)
    assert halves in engine_names() and halves in engines_that(lambda engine: engine.capabilities.is_private)
    search = Search(GAME, HashEvaluator(1), SearchConfig(engine=halves, num_simulations=20))
    assert search.run([GAME.initial_state()] * 3)[0].stats.engine == halves


def test_an_engine_of_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    found = EntryPoint(name="theirs", value="own_engine:HalvesEngine", group="windrow.engines")
    replaced = EntryPoint(name="sequential", value="own_engine:HalvesEngine", group="windrow.engines")
    monkeypatch.setattr("windrow.engine_registry.entry_points", lambda group: [found, replaced])
    windrow.engine_registry._installed.cache_clear()
    try:
        assert engine_names()[-1] == "theirs" and find_engine("theirs").name == "halves"
        assert find_engine("sequential").name == "sequential", "nobody replaces one of windrow's own"
    finally:
        windrow.engine_registry._installed.cache_clear()


def test_an_engine_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "own_engine", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = f"{EXAMPLES / 'own_engine.py'}:HalvesEngine"
    config = SearchConfig(engine=place, num_simulations=20).with_settings({"max_batch": 3})
    assert "own_engine" not in sys.modules, "a config may be a stranger's"
    assert SearchConfig(**config.to_dict()) == config and config.engine_name == place
    stats = Search(GAME, HashEvaluator(1), config).run([GAME.initial_state()] * 12)[0].stats
    assert stats.engine == find_engine(stats.engine).name == "halves" and stats.nn_positions / stats.nn_batches > 1
    assert config.options_for(Vectorized).name == place, "its own class of options, with what it was given"
    check_engine(place)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_engine.py", r"Also name the class in the file, such as own_engine\.py:Greedy"),
        ("nowhere.py:Greedy", "there is no file nowhere.py"),
        ("nowhere.engines:Greedy", "cannot be imported from 'nowhere.engines:Greedy'"),
        ("os:getcwd", "name the class of an engine"),
        (f"{Path(__file__)}:Greedy", "has no 'Greedy'"),
    ],
)
def test_places_without_an_engine(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Search(GAME, HashEvaluator(1), SearchConfig(engine=name))


@pytest.mark.slow  # its trees are in plain Python, and so are those it is compared with
def test_the_engine_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (PAGE.parent / "your-own-engine.md").read_text(encoding="utf-8")
    found = re.search(r'^```python title="plain.py"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "plain.py").write_text(found[1], encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "plain", raising=False)
    check_engine(f"{tmp_path / 'plain.py'}:PlainEngine")


def broken(change: Callable[[Any], None]) -> type[Engine]:
    """A sequential engine with one mistake."""
    from windrow.search.engines.sequential import SequentialEngine

    class Broken(SequentialEngine):
        name = "broken"

    change(Broken)
    return Broken


def forget_moves(engine: Any) -> None:
    engine.advance = lambda self, moves: None


def spend_less(engine: Any) -> None:
    begin = engine.begin
    engine.begin = lambda self, order: begin(self, order._replace(budgets=order.budgets - 1))


def change_keys(engine: Any) -> None:
    begin = engine.begin
    engine.begin = lambda self, order: begin(self, order._replace(keys=order.keys + 1))


def never_stop(engine: Any) -> None:
    grow = engine.grow
    engine.grow = lambda self, should_stop: grow(self, lambda: False)


def forget_children(engine: Any) -> None:
    node = engine.node
    engine.node = lambda self, tree, moves: None if moves else node(self, tree, moves)


@pytest.mark.parametrize("change", [forget_moves, spend_less, change_keys, never_stop, forget_children])
def test_mistakes_are_found(change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.engine_registry.ENGINES", {**ENGINES, "broken": "nowhere:Broken"})
    monkeypatch.setitem(sys.modules, "nowhere", SimpleNamespace(Broken=broken(change)))
    with pytest.raises(EngineFaultError):
        check_engine("broken")


# --- The table of the docs -------------------------------------------------------------------------------------------


def yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


ROWS: dict[str, Callable[[Capabilities], str]] = {
    "leaves of a tree in flight": lambda able: "any number" if able.max_leaves is None else str(able.max_leaves),
    "a network call has leaves of": lambda able: "many trees" if able.batches_trees else "one tree",
    "evaluator": lambda able: {"here": "in this process", "actors": "on inference actors", "device": "on the device"}[
        able.evaluator
    ],
    "games": lambda able: {"any": "any", "torch": "those in torch ops"}[able.games],
    "chance": lambda able: "yes" if "sampled" in able.chance else "listed outcomes",
    "more than two players": lambda able: yes(able.max_values > 2),
    "time limit, `stream`, `stop`": lambda able: yes(able.has_time_limit and able.streams),
    "prediction cache": lambda able: {"shared": "yes", "own": "one per worker", "none": "no"}[able.cache],
    "Gumbel root": lambda able: "yes" if able.max_gumbel_leaves is None else "with one leaf in flight",
    "[settings of the selection](search.md#settings-of-the-selection)": lambda able: (
        f"all but {', '.join(f'`{name}`' for name in able.fixed)}" if able.fixed else "yes"
    ),
    "skipped collisions": lambda able: yes("skip" in able.collisions),
    "`trees_per_root`": lambda able: yes(able.has_copies),
    "same visits for the same seed": lambda able: yes(able.is_deterministic),
}


def make_table() -> str:
    able = {name: load(name).capabilities for name in ONES}
    lines = [["", *able], ["---"] * (1 + len(able))]
    lines += [[what, *(say(one) for one in able.values())] for what, say in ROWS.items()]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def test_the_table_of_engines_is_what_they_declare(update_golden: bool) -> None:
    pattern = re.compile(r"(?<=<!-- capabilities -->\n)\|.*?(?=\n\n)", re.DOTALL)
    page = PAGE.read_text()
    if update_golden:
        PAGE.write_text(pattern.sub(make_table().replace("\\", "\\\\"), page))
    found = pattern.search(PAGE.read_text())
    assert found is not None and found[0] == make_table(), "make golden writes it anew"
