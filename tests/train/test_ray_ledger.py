"""Who plays which game: none counts twice, none is forgotten, whatever happens to workers."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from windrow.train.ray_ledger import GameLedger


def test_numbers_are_handed_out_once_and_back_first() -> None:
    ledger = GameLedger(10)
    assert ledger.take(0, 3) == []  # nothing is allowed yet
    ledger.num_allowed = 5
    assert ledger.take(0, 3) == [10, 11, 12]
    assert ledger.take(1, 3) == [13, 14]
    assert (ledger.next_game, ledger.num_open, ledger.num_held(0), ledger.num_held(1)) == (15, 5, 3, 2)
    assert ledger.hand_in(11) and not ledger.hand_in(11)
    assert ledger.lose(0) == (10, 1)
    assert ledger.num_held(0) == 0 and ledger.num_open == 4
    assert ledger.take(1, 9) == [10, 12]
    assert ledger.lose(1) == (10, 2)  # 10 and 12 were lost twice, 13 and 14 once
    assert ledger.lose(1) == (-1, 0)
    assert ledger.take(2, 1) == [10]
    assert ledger.hand_in(14)  # by the worker that was thought to be lost: it counts, and is not played again
    assert ledger.take(2, 9) == [12, 13]
    assert not ledger.hand_in(99)
    ledger.drop()
    assert ledger.num_open == 0 and not ledger.hand_in(12) and ledger.next_game == 15


STEP = st.tuples(st.sampled_from(["take", "finish", "again", "lose"]), st.integers(0, 3), st.integers(1, 6))


@given(st.integers(1, 30), st.lists(STEP, max_size=60))
def test_every_game_counts_exactly_once(num_games: int, steps: list[tuple[str, int, int]]) -> None:
    """Workers take, finish, hand in twice and vanish; in the end each game has counted once, and no other has."""
    ledger = GameLedger(0)
    ledger.num_allowed = num_games
    held: dict[int, list[int]] = {worker: [] for worker in range(4)}
    counted: list[int] = []
    for what, worker, count in steps:
        if what == "take":
            held[worker] += ledger.take(worker, count)
        elif what == "lose":
            ledger.lose(worker)
            held[worker] = []
        else:
            done, rest = held[worker][:count], held[worker][count:]
            counted += [number for number in done if ledger.hand_in(number)]
            held[worker] = rest if what == "finish" else done + rest
        assert ledger.num_open + len(counted) == ledger.next_game
    for worker in range(4):
        ledger.lose(worker)
    while numbers := ledger.take(7, 3):
        counted += [number for number in numbers if ledger.hand_in(number)]
    assert sorted(counted) == list(range(num_games))
    assert ledger.num_open == 0
