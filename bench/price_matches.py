"""The price of batching in matches: K leaves at a time against one, at the same number of simulations.

Games come in pairs, the same opening with the sides changed. Openings are random moves after which the network thinks
neither side much ahead: where one side wins anyway a pair says nothing. All games of a panel are played at once, a move
in each, and positions that several games share are searched once for all of them: a player answers a position always
alike.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

from price_cases import Case, Panel, one_leaf
from price_players import Counts, Trained

from windrow import TERMINAL, Search
from windrow.play.match import random_openings

OPENING_PLIES = {"othello": 8, "gomoku": 6}
CANDIDATES = 6
"""Openings drawn for each that is used."""
JUDGE = 200
"""Simulations, one leaf at a time, to judge them."""
_SMALLEST_SHARE = 384
"""Positions for which another search of the opponent's is worth a thread."""


@dataclass(slots=True)
class Seat:
    """A game in progress.

    challenger: which of the panel's.
    pair: number of its opening.
    side: which player the challenger is.
    """

    challenger: int
    pair: int
    side: int
    state: Any


def balanced_openings(trained: Trained, count: int, *, seed: int) -> list[Any]:
    """The most balanced of random openings, in the order they were drawn."""
    game = trained.game
    drawn = random_openings(game, OPENING_PLIES.get(game.name, 4), seed=seed)
    states = [state for _, state in islice(drawn, CANDIDATES * count)]
    with trained.search(one_leaf(JUDGE)) as search:
        values = [abs(result.value) for result in search.run(states)]
        trained.count(search)
    chosen = sorted(range(len(states)), key=lambda number: values[number])[:count]
    print(f"openings: |value| up to {values[chosen[-1]]:.2f}, {sum(values[n] for n in chosen) / count:.2f} on average")
    return [states[number] for number in sorted(chosen)]


def measure_matches(
    trained: Trained,
    openings: Sequence[Any],
    panels: Iterable[Panel],
    part: dict[str, Any],
    *,
    seconds: float,
    save: Callable[[], None],
) -> None:
    """Play all panels that `part` does not have, until all are done or the time is over.

    part: what is known: by budget, then by the challenger's case, a digit for each pair, the half points it made.
    save: called after every panel.
    """
    start, per_simulation = perf_counter(), 0.0
    points = part.setdefault("points", {})
    for panel in panels:
        if panel.pairs.stop > len(openings):
            break
        known = points.setdefault(str(panel.simulations), {})
        # Pairs are played in order, so that the length says which are there.
        challengers = [case for case in panel.challengers if len(known.get(case.key, "")) == panel.pairs.start]
        work = _work(panel, challengers)
        now = perf_counter()
        if not challengers or now - start + 0.7 * per_simulation * work > seconds:
            continue
        trained.counts = Counts()
        made = play_panel(trained, panel.simulations, challengers, [openings[pair] for pair in panel.pairs])
        for case, digits in zip(challengers, made, strict=True):
            known[case.key] = known.get(case.key, "") + digits
        save()
        spent = perf_counter() - now
        per_simulation = spent / work
        scores = " ".join(f"{sum(map(int, digits)) / (4 * len(digits)):.3f}" for digits in made)
        erase = "\r" if sys.stdout.isatty() else ""
        done = f"{perf_counter() - start:6.1f} s  {panel.title}, pairs {panel.pairs.start} to {panel.pairs.stop - 1}"
        print(f"{erase}{done}")
        print(f"          {scores}   {spent:.1f} s, {trained.counts.rates(spent)}, {trained.cache_use()}", flush=True)


def play_panel(trained: Trained, simulations: int, challengers: Sequence[Case], openings: Sequence[Any]) -> list[str]:
    """For each challenger a digit per opening: the half points, 0 to 4, it made in the two games."""
    game = trained.game
    seats = [
        Seat(challenger, pair, side, state)
        for challenger in range(len(challengers))
        for pair, state in enumerate(openings)
        for side in (0, 1)
    ]
    half_points = [[0] * len(openings) for _ in challengers]
    num_seats, num_moves = len(seats), 0
    with ExitStack() as open_searches:
        players, opponents = (
            [open_searches.enter_context(trained.search(case, is_one_of_many=True)) for case in cases]
            for cases in (challengers, [one_leaf(simulations)] * trained.num_at_once)
        )
        workers = open_searches.enter_context(ThreadPoolExecutor(trained.num_at_once))
        while seats:
            is_own = [game.to_play(seat.state) == seat.side for seat in seats]
            against = [seat for seat, own in zip(seats, is_own, strict=True) if not own]
            turns = list(_shared_out(opponents, against))  # one leaf at a time takes longest: first
            for number, player in enumerate(players):
                own = [seat for seat, own in zip(seats, is_own, strict=True) if own and seat.challenger == number]
                turns.append((player, own))
            list(workers.map(lambda turn: _move(trained, *turn), turns))
            seats = _finish(game, seats, half_points)
            num_moves += 1
            if sys.stdout.isatty():
                print(f"\r    move {num_moves}, {len(seats)} of {num_seats} games go on ", end="", flush=True)
    return ["".join(map(str, made)) for made in half_points]


def _shared_out(opponents: Sequence[Search], seats: Sequence[Seat]) -> Iterator[tuple[Search, list[Seat]]]:
    """The opponent's games, spread over its searches: those with the same position go to the same one."""
    by_position: dict[bytes, list[Seat]] = {}
    for seat in seats:
        by_position.setdefault(seat.state.data, []).append(seat)
    groups = list(by_position.values())
    num_shares = min(len(opponents), -(-len(groups) // _SMALLEST_SHARE))
    for number, opponent in enumerate(opponents[:num_shares]):
        yield opponent, [seat for group in groups[number::num_shares] for seat in group]


def _move(trained: Trained, search: Search, turns: Sequence[Seat]) -> None:
    """Play the search's move in all these games."""
    different = {seat.state.data: seat.state for seat in turns}
    if not different:
        return
    chosen = dict(zip(different, trained.choose(search, list(different.values())), strict=True))
    for seat in turns:
        seat.state = trained.game.apply(seat.state, chosen[seat.state.data])


def _finish(game: Any, seats: list[Seat], half_points: list[list[int]]) -> list[Seat]:
    """Count the games that are over; those that are not."""
    going: list[Seat] = []
    for seat in seats:
        if game.to_play(seat.state) != TERMINAL:
            going.append(seat)
            continue
        returns = game.returns(seat.state)
        lead = returns[seat.side] - returns[1 - seat.side]
        half_points[seat.challenger][seat.pair] += 2 if lead > 0 else 0 if lead < 0 else 1
    return going


def _work(panel: Panel, challengers: Sequence[Case]) -> int:
    """Simulations of one move in every game, for both sides."""
    return len(panel.pairs) * sum(case.simulations + panel.simulations for case in challengers)
