"""Who plays which game: none counts twice, none is forgotten, whatever happens to workers."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from interrupts import is_interrupted_at
from windrow.train.game_ledger import GameLedger


def test_numbers_are_handed_out_once_and_back_first() -> None:
    ledger = GameLedger(10)
    assert ledger.take(0, 3) == []  # nothing is allowed yet
    ledger.num_allowed = 5
    assert ledger.take(0, 3) == [10, 11, 12]
    assert ledger.take(1, 3) == [13, 14]
    assert ledger.is_held(13, 1) and not ledger.is_held(13, 0) and ledger.next_number() is None
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
    assert ledger.num_open == 0 and not ledger.hand_in(12) and not ledger.is_held(12, 2) and ledger.next_game == 15
    ledger.num_allowed = 1
    assert (ledger.next_number(), ledger.next_number(), ledger.num_open) == (15, None, 0)


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


def test_an_interrupt_loses_no_game() -> None:
    """Whenever it comes: every number that was given out is open or handed in, and can be played to its end."""
    number = 1
    while True:
        ledger, handed_in = GameLedger(), list[int]()
        ledger.num_allowed = 6
        ledger.take(0, 2)
        ledger.take(1, 2)
        ledger.lose(0)

        def play(ledger: GameLedger = ledger, handed_in: list[int] = handed_in) -> None:
            ledger.take(1, 3)
            for game in (0, 2):
                if ledger.is_open(game):
                    handed_in += [game]
                ledger.hand_in(game)
            ledger.lose(1)
            ledger.take(2, 1)

        was_interrupted = is_interrupted_at(play, number)
        assert all(
            ledger.is_open(game) != (game in handed_in) for game in range(ledger.next_game) if game not in (0, 2)
        )
        for game in handed_in:
            ledger.hand_in(game)  # as is done with the game that was being handed in when the interrupt came
        for worker in (0, 1, 2):
            ledger.lose(worker)  # as is done with workers that were being told something when the interrupt came
        assert set(ledger.take(3, 99)) | set(handed_in) == set(range(6))
        assert ledger.num_open == ledger.num_held(3)
        if not was_interrupted:
            break
        number += 1
    assert number > 10
