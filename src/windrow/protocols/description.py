"""A tree of the scheduler as JSON has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.games.core_game import CoreGame
from windrow.protocols.scheduler import Job
from windrow.search.forest import roots_of
from windrow.search.lines import most_visited_line
from windrow.search.result import weights_to_play


def describe_tree(
    game: CoreGame, job: Job, *, max_moves: int | None, max_line: int | None, include_untried: bool
) -> dict[str, Any] | None:
    """What the search of a running job has found; None if its root has no evaluation yet.

    Args:
        game: the rules.
        job: the search.
        max_moves: moves to tell about, the best ones; None: all.
        max_line: moves of a line of play; None: all.
        include_untried: whether moves without a visit are told too.
    """
    assert job.pool is not None
    forest, tree = job.pool.forest, job.tree
    root = forest.node(tree, [])
    if root is None or root.kind != "expanded":
        return None
    trees = np.array([tree], np.int32)
    roots = roots_of(forest, trees, game, job.config)
    visits, priors, qs = roots.visits[0], roots.priors[0], roots.qs[0]
    proven = None if roots.proofs is None else roots.proofs.at(0)
    chosen = roots.chosen_actions
    best = int(np.argmax(weights_to_play(visits, priors, proven)) if chosen is None else chosen[0])
    # The best move first, whatever made it so; then as `windrow search` has them.
    order = sorted(
        root.actions.tolist(),
        key=lambda action: (action != best, -int(visits[action]), -float(priors[action]), action),
    )
    if not include_untried:
        order = [action for action in order if visits[action]]

    def line_of(action: int) -> list[int]:
        return most_visited_line(action, lambda line: [forest.node(tree, line)], max_length=max_line)

    total = max(int(visits.sum()), 1)
    value = float(roots.values[0])
    if roots.player_values is not None:
        by_player = [float(mean) for mean in roots.player_values[0]]
    else:
        by_player = [value if player == root.to_play else 0.0 - value for player in range(game.num_players)]
    return {
        "root_info": {
            "to_play": root.to_play,
            "visits": int(visits.sum()),
            "value": value,
            "win_rate": (value + 1) / 2,
            "values": by_player,
            "best_move": game.move_name(job.state, best),
            "principal_variation": game.line_names(job.state, roots.lines[0][:max_line]),
            **({} if proven is None else {"proven": proven.describe()}),
        },
        "move_infos": [
            {
                "move": game.move_name(job.state, action),
                "action": action,
                "order": place,
                "visits": int(visits[action]),
                "share": int(visits[action]) / total,
                "q": float(qs[action]),
                "win_rate": (float(qs[action]) + 1) / 2,
                "prior": float(priors[action]),
                **({} if proven is None else {"proven": proven.describe(action)}),
                "line": game.line_names(job.state, line_of(action)),
            }
            for place, action in enumerate(order[:max_moves])
        ],
    }
