"""What a game is, as facts that can be written down and compared: sizes, and a few games of random moves.

A checkpoint knows its game by these facts and not by the file that the game came from. A copy of the rules in another
folder has the same facts, and so have the same rules compiled or written in torch ops. Where facts differ,
`find_difference` says which one and, in random play, after which moves.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from math import isclose
from typing import Any, cast

import numpy as np

from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL

_GAMES, _PLIES = 8, 60
"""Random games that are played, and how many positions of each are looked at."""
_TOLERANCE = 1e-4
"""By how much observations may differ: compiled rules round otherwise than Python does."""


_NAMES = {
    "players": "the number of players",
    "actions": "the number of actions",
    "observation": "the shape of an observation",
    "values": "the number of values",
    "chance": "the kind of chance",
}


def describe_rules(game: CoreGame) -> dict[str, Any]:
    """The facts of a game, fit for JSON: the same for all games with the same rules, whatever they are written in."""
    return {**_sizes(game), "play": [list(_random_game(game, seed)) for seed in range(_GAMES)]}


def find_difference(saved: Mapping[str, Any], game: CoreGame) -> str | None:
    """The first fact in which `game` is not the game that was described, in words; None if there is none.

    Args:
        saved: what `describe_rules` gave for the other game. It may come from a stranger: it is only compared.
        game: the game at hand.
    """
    for name, found in _sizes(game).items():
        if (said := saved.get(name)) != found:
            return f"{_NAMES[name]} is {_shorten(said)} there and {_shorten(found)} here"
    facts = game.facts
    games = saved.get("play")
    for number, (there, here) in enumerate(zip_longest(_items(games), _items(facts["play"])), start=1):
        for ply, (said, found) in enumerate(zip_longest(_items(there), _items(here))):
            if (difference := _compare(_items(said), found)) is not None:
                moves = f"after {ply} random moves" if ply else "at the beginning"
                return f"{difference} {moves} of trial game {number}"
    return None


def _sizes(game: CoreGame) -> dict[str, Any]:
    shapes = game.observation
    observation = {part: list(shape) for part, shape in shapes.items()} if isinstance(shapes, Mapping) else list(shapes)
    return {
        "players": game.num_players,
        "actions": game.num_actions,
        "observation": observation,
        "values": game.num_values,
        "chance": game.chance,
    }


def _random_game(game: CoreGame, seed: int) -> Iterator[list[Any]]:
    """What is seen at each ply: the mover, the possible moves, and the observation or the result.

    It ends before the first draw of a chance that cannot be listed: equal rules may draw in different ways.
    """
    generator = random.Random(seed)
    state = game.initial_state()
    for _ in range(_PLIES):
        mover = game.to_play(state)
        if mover == TERMINAL:
            yield [mover, "", [round(float(value), 5) for value in game.returns(state)]]
            return
        if mover == CHANCE:
            if game.chance == "sampled":
                return
            likely = [(outcome, chance) for outcome, chance in game.chance_outcomes(state) if chance > 0]
            yield [mover, _digest([round(chance, 6) for _, chance in likely]), 0]
            moves = [outcome for outcome, _ in likely]
        else:
            moves = game.legal_actions(state)
            yield [mover, _digest(moves), _weigh(game, state)]
        state = game.apply(state, moves[int(generator.random() * len(moves))])


def _weigh(game: CoreGame, state: State) -> float:
    """One number for an observation: the sum of its numbers, each with a weight of its own in [0, 1)."""
    flat = game.observe_many(game.rows_of([state]))[0].astype(np.float64)
    weights = (np.arange(1, flat.size + 1, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(2**32)) / 2**32
    return float(f"{flat @ weights:.7g}")


def _digest(values: Sequence[float]) -> str:
    return sha256(repr([float(value) for value in values]).encode()).hexdigest()[:8]


def _compare(said: Sequence[Any], found: Sequence[Any] | None) -> str | None:
    """How a ply that was described differs from one that was played."""
    if found is None or len(said) != len(found):
        return "play goes on otherwise"
    if said[0] != found[0]:
        return f"{_name_mover(found[0])} is to move here, but not there,"
    if said[1] != found[1]:
        return "chance is different" if found[0] == CHANCE else "the legal moves are different"
    if found[0] == TERMINAL:
        return None if said[2] == found[2] else f"the result is {_shorten(said[2])} there and {found[2]} here"
    if not isinstance(said[2], int | float) or not isclose(said[2], found[2], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        return "the observation is different"
    return None


def _name_mover(mover: int) -> str:
    return {TERMINAL: "nobody", CHANCE: "chance"}.get(mover, f"player {mover}")


def _items(value: Any) -> Sequence[Any]:
    """A list from a file; nothing if it is something else."""
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _shorten(value: Any) -> str:
    return f"{value!r:.60}"
