"""Checks of the games: whether they differ, who wins them, and how they end."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from windrow.train.diagnosis.evidence import Evidence
from windrow.train.diagnosis.finding import Finding
from windrow.train.records import NOBODY, GameRecord

_MIN_GAMES = 100
"""Games from which shares are taken."""
_MIN_DISTINCT = 0.1
"""Share of different games. A minute of tic-tac-toe, which has few games worth playing, has 0.47, other games 1."""
_OPENING = 4
"""Moves that make an opening."""
_MAX_AGREEMENT = 0.3
"""How often two games of one network from one position may have the same opening: at most 0.1 in healthy runs. Without
noise about 0.5, not 1, because weights change during games and small differences of a batch decide ties."""
_MAX_OTHER = 0.4
"""Moves other than the search's first choice, against those that its policies call for. Healthy runs have 0.8 to 1.2.
Without noise a PUCT root has 0; a Gumbel root has 0.3, since its survivor need not be the first of its policy."""
_MIN_OTHER = 50.0
"""Such moves that the policies must call for before that is judged; a mastered game has few."""
_MIN_PAIRS = 200
"""Pairs of such games from which that is judged."""
_ONE_SIDED = 0.99
"""Share of the games with the same result. Healthy runs have 0.81 (draws in tic-tac-toe) and less."""
_MIN_RESULTS = 200
"""Games from which that is judged."""
_MAX_CUT = 0.25
"""Share of the games that may reach the length limit: they teach the value a draw that may be none."""
_LONG = 0.95
"""Mean length of the games against the limit from which on most of them reach it."""


def repeated_games(run: Evidence) -> Finding | None:
    """The games are all alike."""
    num_games = len(run.games)
    num_distinct = len({record.moves_key for record in run.games})
    if num_games < _MIN_GAMES or num_distinct >= _MIN_DISTINCT * num_games:
        return None
    return Finding(
        "repeated_games",
        f"The games repeat: only {num_distinct:,} of the newest {num_games:,} are different.",
        f"{_more_variety(run)}.",
    )


def no_exploration(run: Evidence) -> Finding | None:
    """Self-play always plays the move that the search likes best: noise and temperature are missing or too small.

    Games that begin in one position then go on alike. That alone is no fault, since a mastered game has few good
    openings; so the moves are compared with how often the search's own policies would choose another one.
    """
    openings: defaultdict[tuple[bytes, int], Counter[bytes]] = defaultdict(Counter)
    expected, num_other = 0.0, 0
    for record in run.games:
        if len(record) > _OPENING and not len(record.outcomes):  # dice make games differ on their own
            openings[record.initial, record.versions[0]][record.actions[:_OPENING].tobytes()] += 1
        places = np.flatnonzero(record.is_recorded[:_OPENING])
        policy = record.policy[: len(places)].astype(np.float32)
        best = policy.max(1, initial=0.0)
        expected += float((1.0 - best).sum())
        num_other += int(np.count_nonzero(policy[np.arange(len(places)), record.actions[places]] < best))
    num_pairs = sum(_pairs(group.total()) for group in openings.values())
    num_alike = sum(_pairs(count) for group in openings.values() for count in group.values())
    if num_pairs < _MIN_PAIRS or num_alike < _MAX_AGREEMENT * num_pairs:
        return None
    if expected < _MIN_OTHER or num_other > _MAX_OTHER * expected:
        return None
    return Finding(
        "no_exploration",
        f"Self-play does not explore: of two games from the same position, {num_alike / num_pairs:.0%} begin with the "
        f"same {_OPENING} moves. {num_other:,} of these moves were not the search's first choice; its policies would "
        f"choose another {expected:,.0f} times.",
        f"{_more_noise(run)}.",
    )


def one_result(run: Evidence) -> Finding | None:
    """All games end alike, so that the value has nothing to learn."""
    shares = _results(run)
    if not shares:
        return None
    what, share = max(shares.items(), key=lambda item: item[1])
    if share < _ONE_SIDED:
        return None
    return Finding(
        "one_result",
        f"Almost all games end alike: {share:.1%} of the newest {what}.",
        f"Check returns() of the game. If it is right, {_more_openings(run)}, so that other results occur. Or the "
        "game is mastered.",
    )


def _results(run: Evidence) -> dict[str, float]:
    """Shares of the games by who won them, in words; empty if too few are known."""
    if len(run.games) >= _MIN_RESULTS:
        if len(run.games[0].returns) == 1:
            return {}
        counts = Counter(_winners(record) for record in run.games)
        return {what: count / len(run.games) for what, count in counts.items()}
    # Without records, as on a device, only two-player games with one winner are counted in full.
    seen = run.mean("first_player_wins", "draws", over="games", amount=_MIN_RESULTS)
    if seen is None or (run.game is not None and (run.game.num_players != 2 or run.game.num_values != 1)):
        return {}
    first, drawn = seen["first_player_wins"], seen["draws"]
    return {"are won by player 0": first, "are drawn": drawn, "are won by player 1": 1.0 - first - drawn}


def _winners(record: GameRecord) -> str:
    """Who has the highest return of a game, in words."""
    best = np.flatnonzero(record.returns == record.returns.max())
    if len(best) == len(record.returns):
        return "are drawn"
    seats = " and ".join(map(str, best))
    return f"are won by player{'s' if len(best) > 1 else ''} {seats}"


def cut_games(run: Evidence) -> Finding | None:
    """Many games are cut at the length limit."""
    limit = run.config.selfplay.max_plies
    if limit is None:
        return None
    if len(run.games) >= _MIN_GAMES:
        is_cut = [len(game) >= limit and game.resigned_by == NOBODY and not game.returns.any() for game in run.games]
        share = sum(is_cut) / len(is_cut)
        is_bad, said = share >= _MAX_CUT, f"{share:.0%} of the newest {len(is_cut):,} games reach"
    else:  # a run on a device tells how long its games are, and no more
        seen = run.mean("game_length", over="games", amount=_MIN_GAMES) or {"game_length": 0.0}
        is_bad, said = seen["game_length"] >= _LONG * limit, f"they average {seen['game_length']:.1f} moves, near"
    if not is_bad:
        return None
    return Finding(
        "cut_games",
        f"Games are cut and called drawn: {said} the limit of {limit:,} moves.",
        "Raise selfplay.max_plies, or remove it if every game ends by its rules.",
    )


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _more_noise(run: Evidence) -> str:
    """Which noise to raise: that of the root which the run has."""
    search, selfplay = run.config.search, run.config.selfplay
    if search.root == "gumbel":
        return f"Set search.gumbel_scale ({search.gumbel_scale:g}) to 1"
    return (
        f"Set search.dirichlet_fraction ({search.dirichlet_fraction:g}) to 0.25, search.temperature "
        f"({search.temperature:g}) to 1 and selfplay.temperature_plies ({selfplay.temperature_plies}) to 15"
    )


def _more_openings(run: Evidence) -> str:
    return f"raise selfplay.opening_plies ({run.config.selfplay.opening_plies})"


def _more_variety(run: Evidence) -> str:
    return f"{_more_noise(run)}, and {_more_openings(run)}"
