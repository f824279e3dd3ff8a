"""Creates a forest of trees from a config, and describes where in a tree something went wrong."""

from __future__ import annotations

from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.config import SearchConfig
from windrow.errors import ConfigError, EvaluatorError, GameError
from windrow.evaluators.cache import PredictionCache
from windrow.games.core_game import CoreGame, State
from windrow.memory import spare_memory
from windrow.search.engine import Roots
from windrow.search.growth import Schedule
from windrow.search.proofs import Proofs

_SHARE_OF_SPARE_MEMORY = 0.75
_RANGE = "in [-1, 1]"
"""How the core's message about a value out of range ends."""


def make_forest(
    game: CoreGame, config: SearchConfig, schedule: Schedule, num_trees: int, cache: PredictionCache | None
) -> _core.Forest:
    """Create an empty forest of `num_trees` trees for this config and schedule."""
    root_first_play = config.first_play if config.root_first_play is None else config.root_first_play
    root_reduction = config.first_play_reduction if config.root_first_play is None else 0.0
    max_memory = memory_for_trees(config)
    try:
        return _core.Forest(
            game.native,
            num_trees,
            c_puct=config.c_puct,
            c_puct_growth=config.c_puct_growth,
            c_puct_base=config.c_puct_base,
            value_scale=config.value_scale,
            in_flight=config.in_flight,
            virtual_loss=config.virtual_loss,
            first_play=_first_play(config.first_play, config.first_play_reduction),
            root_first_play=_first_play(root_first_play, root_reduction),
            proves=config.prove,
            share_collisions=config.on_collision == "share",
            leaves_per_tree=schedule.leaves_per_tree,
            max_depth=config.max_depth or 0,
            dirichlet_alpha=config.dirichlet_alpha,
            dirichlet_fraction=config.dirichlet_fraction,
            root_policy_temperature=config.root_policy_temperature,
            gumbel_considered=config.gumbel_considered if config.root == "gumbel" else 0,
            gumbel_scale=config.gumbel_scale,
            gumbel_visit_offset=config.gumbel_visit_offset,
            gumbel_value_scale=config.gumbel_value_scale,
            improves_interior=config.interior == "gumbel",
            lcb_deviations=config.lcb_deviations if config.choose == "lcb" else 0.0,
            seed=config.seed,
            num_threads=schedule.num_threads,
            spin_us=schedule.spin_us,
            max_memory=max_memory,
            cache=cache.native if cache is not None else None,
        )
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"{num_trees} trees cannot be searched with max_memory={max_memory}: {error}") from None


def _first_play(value: float | Literal["parent"], reduction: float) -> tuple[bool, float]:
    """(whether it is the parent's value less a number, the number)."""
    return (True, reduction) if value == "parent" else (False, value)


def roots_of(forest: _core.Forest, trees: npt.NDArray[np.int32], game: CoreGame, config: SearchConfig) -> Roots:
    """The results at the roots of `trees` in a forest."""
    improved, chosen = forest.gumbel_roots(trees) if config.root == "gumbel" else (None, None)
    if config.choose == "lcb":
        chosen = forest.surest_actions(trees)
    by_player = forest.player_values(trees) if game.num_values > 1 else None
    proofs = read_proofs(forest, trees) if config.prove else None
    return Roots(*forest.roots(trees), by_player, forest.lines(trees), improved, chosen, proofs)


def read_proofs(forest: _core.Forest, trees: npt.NDArray[np.int32]) -> Proofs:
    """What is proven at the roots of `trees`."""
    values, distances, action_values, action_distances, playable = forest.proofs(trees)
    return Proofs(values, distances, action_values, action_distances, playable.astype(bool))


def memory_for_trees(config: SearchConfig) -> int:
    """Bytes available for all trees of a search."""
    return config.max_memory or int(_SHARE_OF_SPARE_MEMORY * spare_memory())


def raise_in_words(error: Exception, game: CoreGame, roots: list[State]) -> NoReturn:
    """Raise a `_core.BadEvaluation` or `_core.GameFault` again, with the position it is about.

    If a game in Python raised, its exception becomes the cause. An interrupt is raised again unchanged.
    """
    message: str
    tree: int
    moves: list[int]
    message, tree, moves = error.args
    is_evaluation = isinstance(error, _core.BadEvaluation)
    # What was raised in another process has come along; here it is the core that kept it.
    cause = error.__cause__ or (None if is_evaluation else _core.take_error(game.native))
    if cause is not None and not isinstance(cause, Exception):
        try:
            raise cause
        finally:
            del cause, error  # what they refer to must not wait for the cycle collector
    what = "the evaluator's answer cannot be used" if is_evaluation else f"{game!r} broke its own rules"
    if not is_evaluation:
        message = game.explain_fault(moves, roots[tree]) or message
    if is_evaluation and message.endswith(_RANGE) and "nan" not in message:
        message += ": end the network's value head with tanh"
    state, names, is_along = roots[tree], list[str](), True
    try:
        for move in moves:
            names.append(game.move_name(state, move))
            state = game.apply(state, move)
    except Exception:  # the very move that failed
        is_along = False
    names += [str(move) for move in moves[len(names) :]]
    where = f"tree {tree}" + (f" after {' '.join(names)}" if names else ", the root")
    text = f"{what}: {message} ({where})"
    text += _drawn(game, state, is_along=is_along)
    raise (EvaluatorError(text) if is_evaluation else GameError(text)) from cause


def _drawn(game: CoreGame, state: State, *, is_along: bool) -> str:
    """The position as text. A game that has just failed may fail here too."""
    try:
        text = game.render(state)
    except Exception:
        return ""
    return f"\n{text}" if is_along else f"\nbefore the last of these:\n{text}"
