"""A search's moves, the best first, with their lines of play: what protocols report about a search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from windrow.search import Search, SearchResult
from windrow.search.lines import most_visited_line

_MAX_LINE = 32
_CP_SCALE, _CP_SLOPE = 90.0, 1.5637541897
"""Leela Chess Zero's translation of a value into centipawns: 90 tan(1.5637541897 Q)."""
_MAX_CP = 10_000


@dataclass(frozen=True, slots=True)
class MoveInfo:
    """One move of a search.

    action: the move.
    visits: simulations through it.
    q: its mean value for the player to move; the position's if it was never tried.
    prior: the evaluator's policy.
    mate: moves of the player to move until the game is won (negative: lost), if that is proven; otherwise None.
    line: the line of play that begins with it.
    """

    action: int
    visits: int
    q: float
    prior: float
    mate: int | None
    line: tuple[int, ...]

    @property
    def score(self) -> str:
        """The value as UCI writes it: "cp 35" or "mate 3"."""
        if self.mate is not None:
            return f"mate {self.mate}"
        bounded = min(max(self.q, -1.0), 1.0)
        return f"cp {round(min(max(_CP_SCALE * math.tan(_CP_SLOPE * bounded), -_MAX_CP), _MAX_CP))}"


def move_infos(search: Search, result: SearchResult, count: int) -> list[MoveInfo]:
    """The best `count` moves of a search with one root; also callable while the search runs.

    The move that would be played is first, then come the others by visits.
    """
    best = result.best_action
    legal: list[int] = search.game.legal_actions(result.state)
    visits, prior = result.visits, result.prior
    order = sorted(legal, key=lambda action: (action != best, -int(visits[action]), -float(prior[action]), action))
    return [
        MoveInfo(
            action=action,
            visits=int(visits[action]),
            q=float(result.q[action]) if visits[action] else result.value,
            prior=float(prior[action]),
            mate=_mate(result, action),
            line=tuple(most_visited_line(action, lambda line: [search.node(line)], max_length=_MAX_LINE)),
        )
        for action in order[:count]
        if action == best or visits[action]
    ]


def _mate(result: SearchResult, action: int) -> int | None:
    proven = result.proven
    if proven is None or abs(float(proven.action_values[action])) != 1.0:
        return None
    distance = int(proven.action_distances[action])
    moves = (distance + 1) // 2
    return moves if proven.action_values[action] > 0 else -moves
