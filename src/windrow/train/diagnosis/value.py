"""Checks of the value head on recorded positions, player by player.

A network can only be as good for a player as what that player is shown. An `observe` that is right for player 0 alone,
or that shows the board from one side without saying who is to move, passes every check of the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from windrow.games.core_game import CoreGame, Rows
from windrow.train.diagnosis.evidence import Evidence
from windrow.train.diagnosis.finding import Finding
from windrow.train.records import GameRecord
from windrow.train.replay import split_observations

_MIN_STEPS = 400
"""Steps before the value is judged."""
_MAX_GAMES = 256
"""Games that positions are taken from, at most one for each player: positions of one game have the same result. Their
correlations are then known within 0.06."""
_MIN_POSITIONS = 100
"""Positions of a player from which that player's values are judged."""
_GOOD = 0.25
"""Correlation of values and results from which on a value is right for a player. A minute of Hex has 0.33, of Pig
0.5."""
_BAD_SHARE = 0.25
"""Share of that correlation below which the value is wrong for another player. Healthy runs have 0.89 or more."""
_STEADY = 0.75
"""Change of the observation over one move against that over two, below which it does not turn with the mover. A board
from the mover's side, or a plane that names the mover, changes more over one move than over two."""
_TELLTALE = 0.9
"""Correlation with the mover from which on one number of the observation tells who is to move."""


def value_by_mover(run: Evidence) -> Finding | None:
    """The value is right for one player and wrong for another, or for nobody since the mover cannot be seen."""
    judged = _judge(run)
    if judged is None:
        return None
    fits = judged.fits
    best, worst = max(fits, key=lambda mover: fits[mover]), min(fits, key=lambda mover: fits[mover])
    if fits[best] >= _GOOD:
        return _one_sided(fits, best, worst) if fits[worst] <= _BAD_SHARE * fits[best] else None
    return _fixed_view(fits) if judged.turn < _STEADY and judged.telltale < _TELLTALE else None


def _one_sided(fits: dict[int, float], best: int, worst: int) -> Finding:
    return Finding(
        "one_sided_value",
        f"The value is right for one side only: where player {best} moves it correlates with the result by "
        f"{fits[best]:.2f}, where player {worst} moves by {fits[worst]:.2f}.",
        f"Check observe() of the game where player {worst} is to move: it must show the whole position, as that player "
        "sees it. Also check that returns() gives each player their own result.",
    )


def _fixed_view(fits: dict[int, float]) -> Finding:
    shown = " and ".join(f"{fit:.2f} (player {mover} moves)" for mover, fit in fits.items())
    return Finding(
        "fixed_view",
        "The observation seems to be for a fixed player: it does not change sides with the player to move, no number "
        f"in it tells who that is, and the value correlates with the result by only {shown}.",
        "Let observe() show the position as the player to move sees it, with the own stones first, or add a plane "
        "that is 1 where player 1 is to move.",
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """fits: by mover, the correlation of value and result. turn, telltale: what `_STEADY`, `_TELLTALE` are about."""

    fits: dict[int, float]
    turn: float
    telltale: float


def _judge(run: Evidence) -> _Judged | None:
    """None if there is too little to judge by, or the games have one result."""
    if run.game is None or run.net is None or run.num_steps < _MIN_STEPS or run.game.num_players < 2:
        return None
    rng = np.random.default_rng(0)
    rows, movers, results, turns = list[Rows](), list[int](), list[float](), list[tuple[float, float]]()
    for record in run.games[-_MAX_GAMES:]:
        states, to_play = _positions(run.game, record)
        for mover in range(run.game.num_players):
            places = np.flatnonzero(to_play == mover)
            if len(places):
                place = int(rng.choice(places))
                rows.append(states[place : place + 1])
                movers.append(mover)
                results.append(float(record.returns[mover]))
        turns += _changes(run.game, states, to_play, rng)
    if not rows:
        return None
    seen, who, result = run.game.observe_many(np.concatenate(rows)), np.array(movers), np.array(results)
    values = _values(run.net, run.game, seen)
    fits = {
        mover: _correlation(values[who == mover], result[who == mover])
        for mover in range(run.game.num_players)
        if np.count_nonzero(who == mover) >= _MIN_POSITIONS and result[who == mover].var() > 0.05
    }
    if len(fits) < 2:
        return None
    one, two = np.array(turns).sum(0) if turns else (1.0, 1.0)
    telltale = max(abs(_correlation(seen[:, place], who)) for place in range(seen.shape[1]))
    return _Judged(fits, float(one / max(two, 1e-9)), telltale)


def _positions(game: CoreGame, record: GameRecord) -> tuple[Rows, npt.NDArray[np.int8]]:
    """The positions of a game in which players move, and who does."""
    moves, is_action = record.all_moves()
    states = game.play_many(game.unpack_start(record.initial), moves)[:-1][is_action]
    return states, game.to_play_many(states)


def _changes(
    game: CoreGame, states: Rows, to_play: npt.NDArray[np.int8], rng: np.random.Generator
) -> list[tuple[float, float]]:
    """How much the observation changes over one move and over two, where players take turns; from one random place."""
    places = np.flatnonzero((to_play[:-2] != to_play[1:-1]) & (to_play[:-2] == to_play[2:]))
    if not len(places):
        return []
    place = int(rng.choice(places))
    seen = game.observe_many(states[place : place + 3])
    return [(float(np.abs(seen[1] - seen[0]).sum()), float(np.abs(seen[2] - seen[0]).sum()))]


def _values(net: Any, game: CoreGame, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """[n] what the network thinks of some observations, for the player to move."""
    from windrow.evaluators.torch import TorchEvaluator

    device = next(net.parameters()).device
    _, values = TorchEvaluator(net, device).evaluate(cast("Any", split_observations(game, rows)))
    return np.asarray(values, np.float32).reshape(len(rows), -1)[:, 0]


def _correlation(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """From -1 to 1; 0 where one of both is constant."""
    spread = float(one.std() * other.std())
    return float(((one - one.mean()) * (other - other.mean())).mean()) / spread if spread > 1e-9 else 0.0
