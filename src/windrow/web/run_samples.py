"""Games of a run that are worth looking at, each with the reason; and a game gone through move by move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.spelling import counted
from windrow.web.run_data import PlayedGame
from windrow.web.run_metrics import is_number

_NUM_SAMPLED = 100
"""Newest games that the samples are chosen from; all their moves are made again for the values."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A game to look at.

    title: what it is among the newest games.
    reason: why it was chosen, with the figures.
    game: the game.
    frame: after how many moves, those of chance included, to look at it first; None for its end.
    """

    title: str
    reason: str
    game: PlayedGame
    frame: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One move of a game.

    move: of a player or of chance.
    mover: who made it; negative for chance.
    value: the search's value of the position before it, for the first player; None if it has none.
    before: the position before it.
    after: the position after it.
    """

    move: int
    mover: int
    value: float | None
    before: Any
    after: Any


def steps(game: CoreGame, played: PlayedGame) -> Iterator[Step]:
    """The moves of a game in order.

    Raises:
        GameError, ValueError, IndexError: the rules do not allow them.
    """
    state, values = game.unpack_start(played.initial), iter(played.values)
    for move, is_action in zip(played.all_moves, played.is_action, strict=True):
        mover, value = game.to_play(state), next(values, None) if is_action else None
        if not is_number(value) or (game.num_values > 1 and mover != 0):
            value = None  # with several values, the value of one player says nothing of the others'
        elif mover != 0:
            value = -value
        before, state = state, game.apply(state, move)
        yield Step(move, mover, value, before, state)


def choose_games(game: CoreGame, games: Sequence[PlayedGame]) -> list[Sample]:
    """Of `games`, newest first: the newest, that with the largest swing, the longest and a drawn one; none twice."""
    games = [played for played in games[:_NUM_SAMPLED] if played.actions]
    if not games:
        return []
    among = f"the newest {counted(len(games), 'game')}"
    samples = [Sample("Newest", "ended last", games[0])]

    def add(sample: Sample) -> None:
        if all(sample.game is not other.game for other in samples):
            samples.append(sample)

    # A game that does not fit the rules has no swing; someone has changed the run's settings.
    swings = [(found, played) for played in games[1:] if (found := _swing(game, played)) is not None]
    if swings:
        (_, frame, before, after), played = max(swings, key=lambda item: item[0][0])
        change = f"{_percent(before)} to {_percent(after)} after move {frame}"
        add(Sample("Largest swing", f"expected result of player 1 from {change}", played, frame))
    longest = max(games, key=lambda played: len(played.actions))
    middle = median(len(played.actions) for played in games)
    add(Sample("Longest", f"the median of {among} is {middle:g} moves", longest))
    drawn = [played for played in games if is_drawn(played)]
    for played in drawn[:1]:
        add(Sample("Draw", f"{len(drawn)} of {among} {'was' if len(drawn) == 1 else 'were'} drawn", played))
    return samples


def is_drawn(played: PlayedGame) -> bool:
    """Whether all players have the same result."""
    return len(played.returns) > 1 and len(set(played.returns)) == 1


def _swing(game: CoreGame, played: PlayedGame) -> tuple[float, int, float, float] | None:
    """The largest change of the value between two searches: its size, after how many moves, and both values."""
    found: tuple[float, int, float, float] | None = None
    last: float | None = None
    with suppress(GameError, ValueError, IndexError):
        for num_moves, step in enumerate(steps(game, played)):
            if step.value is None:
                continue
            if last is not None and (found is None or abs(step.value - last) > found[0]):
                found = abs(step.value - last), num_moves, last, step.value
            last = step.value
    return found


def _percent(value: float) -> str:
    return f"{(value + 1) / 2:.0%}"
