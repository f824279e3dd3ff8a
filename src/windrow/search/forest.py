"""Making a forest from a config, and saying in words where in it something went wrong."""

from __future__ import annotations

from windrow import _core
from windrow.config import SearchConfig
from windrow.errors import ConfigError, EvaluatorError, GameError, IllegalMoveError
from windrow.evaluators.cache import PredictionCache
from windrow.games.native import NativeGame, State
from windrow.search.memory import spare_memory
from windrow.search.plan import Plan

_SHARE_OF_SPARE_MEMORY = 0.75


def make_forest(
    game: NativeGame, config: SearchConfig, plan: Plan, num_trees: int, cache: PredictionCache | None
) -> _core.Forest:
    """An empty forest of `num_trees` trees that searches as `config` and `plan` say."""
    parent = config.first_play == "parent"
    max_memory = config.max_memory or int(_SHARE_OF_SPARE_MEMORY * spare_memory())
    try:
        return _core.Forest(
            game.native,
            num_trees,
            c_puct=config.c_puct,
            in_flight=config.in_flight,
            virtual_loss=config.virtual_loss,
            first_play_parent=parent,
            first_play_value=config.first_play_reduction if parent else float(config.first_play),
            share_collisions=config.on_collision == "share",
            leaves_per_tree=plan.leaves_per_tree,
            max_depth=config.max_depth or 0,
            dirichlet_alpha=config.dirichlet_alpha,
            dirichlet_fraction=config.dirichlet_fraction,
            gumbel_considered=config.gumbel_considered if config.root == "gumbel" else 0,
            gumbel_scale=config.gumbel_scale,
            gumbel_visit_offset=config.gumbel_visit_offset,
            gumbel_value_scale=config.gumbel_value_scale,
            seed=config.seed,
            num_threads=plan.num_threads,
            max_memory=max_memory,
            cache=cache.native if cache is not None else None,
        )
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"cannot search {num_trees} trees with max_memory={max_memory}: {error}") from None


def in_words(error: Exception, game: NativeGame, roots: list[State]) -> EvaluatorError | GameError:
    """A `_core.BadEvaluation` or `_core.GameFault` with the position it is about."""
    message: str
    tree: int
    actions: list[int]
    message, tree, actions = error.args
    is_evaluation = isinstance(error, _core.BadEvaluation)
    what = "the evaluator's answer cannot be used" if is_evaluation else f"{game!r} broke its own rules"
    moves = game.moves_to_text(actions)
    where = f"tree {tree}" + (f" after {moves}" if moves else ", the root")
    text = f"{what}: {message} ({where})"
    try:
        state = roots[tree]
        for action in actions:
            state = game.apply(state, action)
        text += f"\n{state}"
    except (IllegalMoveError, GameError):
        pass
    return EvaluatorError(text) if is_evaluation else GameError(text)
