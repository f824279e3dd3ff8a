"""Positions to search: many different ones, so that no two trees grow alike."""

from __future__ import annotations

import random
from typing import Any

from windrow import TERMINAL


def openings(game: Any, count: int, *, max_plies: int = 8, seed: int = 0) -> list[Any]:
    """`count` unfinished positions after 0 to `max_plies` random moves; the same for the same seed."""
    draw = random.Random(seed)
    found: list[Any] = []
    while len(found) < count:
        state = game.initial_state()
        for _ in range(draw.randint(0, max_plies)):
            state = game.apply(state, draw.choice(game.legal_actions(state)))
            if game.to_play(state) == TERMINAL:
                break
        else:
            found.append(state)
    return found


def draw_games(game: Any, num_games: int, num_plies: int) -> list[list[int]]:
    """Random moves from the opening, none of which ends a game."""
    draw = random.Random(0)
    games: list[list[int]] = []
    while len(games) < num_games:
        state, moves = game.initial_state(), []
        while len(moves) < num_plies and game.to_play(state) != TERMINAL:
            moves.append(draw.choice(game.legal_actions(state)))
            state = game.apply(state, moves[-1])
        if game.to_play(state) != TERMINAL:
            games.append(moves)
    return games
