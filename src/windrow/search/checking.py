"""`check_engine`: tests whether an engine keeps the contract of engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.engines import EngineOptions, as_options
from windrow.errors import ConfigError, SearchError
from windrow.evaluators.hashing import HashEvaluator
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame, State
from windrow.games.registry import make_game
from windrow.reference import ReferenceSearch, surest_edge
from windrow.search.engines import find_engine
from windrow.search.search import Search

_GAMES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tictactoe", {}),
    ("connect4", {}),
    ("othello", {}),
    ("pig", {}),
    ("azul", {"players": 3}),
)
_BUDGET = 48
_SELECTION: list[dict[str, Any]] = [
    {"c_puct_growth": 1.0, "c_puct_base": 10.0, "value_scale": "tree"},
    {"value_scale": "node", "root_first_play": 1.0},
    {"interior": "gumbel"},
    {"choose": "lcb", "lcb_deviations": 1.0, "root_policy_temperature": 1.3},
]


class EngineFaultError(AssertionError):
    """An engine breaks the contract of engines."""


def check_engine(engine: str | EngineOptions) -> None:
    """Test an engine on many positions and compare its results with the reference search.

    A deterministic engine must give the visits and values of `windrow.reference` for every setting that its
    capabilities declare. Any other engine must spend its budget exactly and leave nothing in flight. Every engine must
    keep subtrees, stop when asked, and refuse what it cannot do.

    Args:
        engine: the engine's name or options, as in `SearchConfig(engine=...)`.

    Raises:
        EngineFaultError: the engine fails a test.
    """
    options = as_options(engine)
    able = find_engine(options.name).capabilities
    for game in _games(able):
        for config in _configs(options, able, game):
            _check_search(game, config, able)
    _check_edges(options, able)


def _games(able: Capabilities) -> Iterator[CoreGame]:
    for game_name, options in _GAMES:
        game = make_game(game_name, **options)
        if able.games == "torch":
            from windrow.tensor.games import GAMES

            if game_name not in GAMES:
                continue
        if game.chance in able.chance and game.num_values <= able.max_values:
            yield game


def _configs(options: EngineOptions, able: Capabilities, game: CoreGame) -> Iterator[SearchConfig]:
    """Every setting that the engine declares, one after another."""
    base = SearchConfig(engine=options, num_simulations=_BUDGET, leaves_per_tree=1, seed=3)
    yield base
    yield base.replace(c_puct=2.5, first_play="parent", first_play_reduction=0.25, max_depth=3)
    yield base.replace(dirichlet_fraction=0.25)
    for settings in _SELECTION:
        if not settings.keys() & set(able.fixed):
            yield base.replace(**settings)
    if able.proves:
        yield base.replace(prove=True)
    if "gumbel" in able.roots:
        yield base.replace(root="gumbel", gumbel_scale=1.0)
    if able.max_leaves == 1:
        return
    for rule in able.in_flight:
        for mode in able.collisions:
            yield base.replace(leaves_per_tree=4, in_flight=rule, on_collision=mode)
    if "gumbel" in able.roots and able.max_gumbel_leaves != 1:
        yield base.replace(root="gumbel", leaves_per_tree=4, on_collision=able.collisions[0])


def _check_search(game: CoreGame, config: SearchConfig, able: Capabilities) -> None:
    """One tree and several, each searched, advanced and searched again."""
    start, _ = pass_chance(game, game.initial_state(), lambda draw: draw)
    later, _ = pass_chance(game, game.apply(start, game.legal_actions(start)[-1]), lambda draw: draw + 7)
    for roots in ([start], [start, later, start]):
        with Search(game, HashEvaluator(7), config) as search:
            laws = [ReferenceSearch(game, HashEvaluator(7), config, tree=tree) for tree in range(len(roots))]
            _compare(search, laws, roots, search.run(roots), able)
            actions = [int(result.visits.argmax()) for result in search.run()]
            if able.is_deterministic:
                for law, action in zip(laws, actions, strict=True):
                    law.run()
                    law.advance(action)
            before = [search.node([action], tree=tree) for tree, action in enumerate(actions)]
            _require(None not in before, "node() gives None for a move that was searched", search)
            search.advance(actions)
            if any(game.to_play(state) < 0 for state in search.states):
                continue
            kept = [max(node.visits - 1, 0) for node in before]
            for tree, result in enumerate(results := search.run()):
                is_open = result.proven is None or result.proven.value is None
                least = kept[tree] + (_BUDGET if is_open else 0)
                _require(int(result.visits.sum()) >= least, "a subtree was not kept", search)
            _compare(search, laws, None, results, able)


def _compare(
    search: Search, laws: list[ReferenceSearch], roots: list[State] | None, results: list[Any], able: Capabilities
) -> None:
    for tree, (law, result) in enumerate(zip(laws, results, strict=True)):
        _require(search.engine.num_in_flight(tree) == 0, "leaves are still in flight after the search", search)
        root = search.node(tree=tree)
        _require(
            root is not None and root.visits == 1 + int(result.visits.sum()), "a root's visits do not add up", search
        )
        if not able.is_deterministic:
            continue
        wanted = law.run(None if roots is None else roots[tree])
        visits = np.zeros(search.game.num_actions, np.int64)
        visits[wanted.actions] = wanted.edge_visits
        _require(result.visits.tolist() == visits.tolist(), f"visits differ from the reference's {visits}", search)
        if search.config.choose == "lcb":
            action = wanted.actions[surest_edge(search.config, wanted)]
            _require(result.best_action == action, f"best_action differs from the reference's {action}", search)
        mean = wanted.value if wanted.is_proven else wanted.value_sum / wanted.visits
        _require(abs(result.value - mean) < 1e-5, f"value {result.value} differs from the reference's {mean}", search)


def _check_edges(options: EngineOptions, able: Capabilities) -> None:
    """Test stopping, closing, and refusing what the engine cannot do."""
    game = next(_games(able))
    search = Search(game, HashEvaluator(1), SearchConfig(engine=options, num_simulations=10_000))
    if able.streams:
        for _ in search.stream(game.initial_state(), interval_s=0.0):
            search.stop()
        stats = search.stats
        _require(
            stats is not None and stats.stopped_by == "stop", "the search does not stop when `stop` is called", search
        )
    search.close()
    search.close()
    for use in (lambda: search.run(game.initial_state()), lambda: search.advance(0)):
        try:
            use()
        except SearchError:
            continue
        raise EngineFaultError(f"the {options.name} engine can be used after it was closed")
    if able.max_leaves is not None:
        try:
            Search(game, HashEvaluator(1), SearchConfig(engine=options, leaves_per_tree=able.max_leaves + 1))
        except ConfigError:
            return
        raise EngineFaultError(f"the {options.name} engine takes more leaves than its capabilities say")


def _require(is_so: bool, what: str, search: Search) -> None:
    if not is_so:
        raise EngineFaultError(f"{search.config.engine_name}: {what} ({search.game!r}, {search.config!r})")
