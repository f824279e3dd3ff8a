"""Checks before a search begins: combinations of config, game, evaluator and cache that cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.config import SearchConfig
from windrow.errors import ConfigError, FinishedGameError, GameError, SearchError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.games.python_game import PythonGame


def check_roots(config: SearchConfig, game: CoreGame) -> None:
    """Refuse several trees per root that would all be equal."""
    has_noise = config.dirichlet_fraction > 0 or game.chance != "none"
    if config.trees_per_root > 1 and not has_noise:
        raise ConfigError(
            "without noise all trees of a root are equal: with trees_per_root, also set dirichlet_fraction"
        )


def check_apply(game: CoreGame, state: State) -> None:
    """Refuse a class that changes its states in place."""
    if isinstance(game, PythonGame):
        game.check_apply(state)


def check_many(game: CoreGame, states: list[Any]) -> None:
    """Refuse one state that is itself a list, because it would be taken for many states."""
    are_lists = all(isinstance(state, list | State) for state in states)
    if not are_lists and isinstance(game.initial_state().data, list):
        raise GameError(
            f"a list means many states, and the states of {game!r} are themselves lists: write run([state])"
        )


def check_searchable(game: CoreGame, states: Sequence[State]) -> None:
    """Refuse positions where no player is to move."""
    for tree, state in enumerate(states):
        player = game.to_play(state)
        if player >= 0:
            continue
        which = "the position" if len(states) == 1 else f"position {tree}"
        if player == TERMINAL:
            raise FinishedGameError(f"{which} cannot be searched because the game is over.\n{state}")
        if player == CHANCE:
            raise SearchError(
                f"{which} cannot be searched because chance is to move. Play its outcome: search.advance(outcome), or "
                f"game.apply(state, outcome), where game.sample_outcome(state, seed) draws one.\n{state}"
            )
