from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import pytest

import windrow
from windrow import ConfigError, SearchError
from windrow.games.native import State
from windrow.play import MatchProgress, MatchResult, SequentialTest, make_player, play_match
from windrow.play.elo import PairCounts, estimate
from windrow.play.match import random_openings

CONNECT4 = windrow.make_game("connect4")
TICTACTOE = windrow.make_game("tictactoe")


class Counting:
    """A player that notes how many games it was asked about at once."""

    def __init__(self, spec: str, *, seed: int) -> None:
        self._player = make_player(CONNECT4, spec, seed=seed)
        self.name, self.calls = spec, list[int]()

    def choose(self, states: Sequence[State]) -> list[int]:
        self.calls.append(len(states))
        return self._player.choose(states)

    def close(self) -> None:
        self._player.close()


def test_games_are_legal_and_counted_rightly() -> None:
    result = play_match(CONNECT4, "rollout:20", "random", num_games=20, seed=5, stop_when_sure=False)
    assert len(result.games) == result.wins + result.draws + result.losses == 20
    assert result.stopped_by == "games"
    for number, game in enumerate(result.games):
        state = CONNECT4.state_from_moves(game.moves)
        assert CONNECT4.to_play(state) == windrow.TERMINAL
        assert game.first == "AB"[number % 2]
        assert game.score == (CONNECT4.returns(state)[number % 2] + 1) / 2
    assert result.score == (result.wins + result.draws / 2) / 20 > 0.7
    points = [result.games[n].score + result.games[n + 1].score for n in range(0, 20, 2)]
    assert list(result.pairs) == PairCounts(points).counts
    found = estimate(PairCounts(points))
    assert (result.elo, result.elo_error, result.los) == (found.elo, found.elo_error, found.los)


def test_pairs_share_an_opening_and_openings_differ() -> None:
    result = play_match(CONNECT4, "random", "random", num_games=60, seed=1, openings_plies=3, stop_when_sure=False)
    starts = [game.moves[:3] for game in result.games]
    assert starts[::2] == starts[1::2]
    positions = {CONNECT4.state_from_moves(start) for start in starts}
    assert len(positions) == 30


def test_a_match_is_the_same_again_and_with_any_number_of_games_at_once() -> None:
    def play(max_concurrent: int, seed: int = 3) -> MatchResult:
        return play_match(CONNECT4, "rollout:12", "rollout:6", num_games=40, seed=seed, max_concurrent=max_concurrent)

    many = play(128)
    assert play(128) == many
    assert play(6) == many
    assert play(128, seed=4).games != many.games


def test_many_games_run_at_once_and_one_that_ends_is_replaced() -> None:
    a, b = Counting("rollout:4", seed=1), Counting("random", seed=2)
    play_match(CONNECT4, a, b, num_games=60, max_concurrent=20, stop_when_sure=False)
    # After its first move a player is asked about all games at once; those that end make way for others.
    assert max(a.calls) == max(b.calls) == 20
    assert sum(a.calls[:20]) > 20 * 15


def test_equal_players_split_every_pair() -> None:
    """The same player with the same seed on both sides plays every game of a pair alike."""
    a, b = make_player(CONNECT4, "rollout:20", seed=8), make_player(CONNECT4, "rollout:20", seed=8)
    result = play_match(CONNECT4, a, b, num_games=40, stop_when_sure=False)
    assert result.score == 0.5 and result.pairs == (0, 0, 20, 0, 0)
    assert all(first.moves == second.moves for first, second in zip(result.games[::2], result.games[1::2], strict=True))


def test_a_player_against_itself_scores_one_half_within_its_error_bars() -> None:
    result = play_match(CONNECT4, "rollout:32", "rollout:32", num_games=300, seed=1, stop_when_sure=False)
    assert abs(result.elo) <= result.elo_error < 60
    assert 0.4 < result.score < 0.6


def test_more_simulations_beat_fewer_and_the_test_is_sure_early() -> None:
    result = play_match(CONNECT4, "rollout:800", "rollout:50", num_games=400, seed=1)
    assert result.stopped_by == "a_stronger"
    assert result.score > 0.7 and result.los > 0.99
    assert len(result.games) < 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_calibration_holds_for_other_seeds(seed: int) -> None:
    """95 % of intervals hold the truth; six of six would fail one time in four, 1.6 times the width one in 100."""
    same = play_match(CONNECT4, "rollout:100", "rollout:100", num_games=1000, seed=seed, stop_when_sure=False)
    assert abs(same.elo) <= 1.6 * same.elo_error
    other = play_match(CONNECT4, "rollout:50", "rollout:800", num_games=400, seed=seed)
    assert other.stopped_by == "b_stronger"


@pytest.mark.slow
def test_the_sequential_test_seldom_errs_on_real_matches() -> None:
    """One of two equals is called stronger in 5 % of matches: 6 or more of 30 would happen 2 times in 1000."""
    verdicts = Counter(
        play_match(CONNECT4, "rollout:16", "rollout:16", num_games=1000, seed=seed).stopped_by for seed in range(30)
    )
    assert verdicts["a_stronger"] + verdicts["b_stronger"] <= 5
    assert verdicts["equal"] >= 20


def test_progress_is_told() -> None:
    seen: list[MatchProgress] = []
    result = play_match(
        CONNECT4, "random", "random", num_games=20, max_concurrent=6, stop_when_sure=False, on_progress=seen.append
    )
    finished = [progress.num_finished for progress in seen]
    assert finished == sorted(finished) and finished[-1] == 20
    assert seen[-1].result == result
    assert seen[0].result.stopped_by == "running"
    assert all(progress.result.games == result.games[: len(progress.result.games)] for progress in seen)


def test_a_result_is_text_and_json() -> None:
    result = play_match(TICTACTOE, "uniform:200", "random", num_games=10, seed=2, test=SequentialTest(elo1=200))
    text = result.table()
    assert "uniform:200" in text and "Elo (95 %)" in text and "200 Elo" in text
    document = json.loads(json.dumps(result.to_dict()))
    assert document["wins"] == result.wins and document["elo"] == result.elo
    assert len(document["games"]) == document["num_games"]
    unsure = play_match(TICTACTOE, "random", "random", num_games=4, stop_when_sure=False)
    assert unsure.test == "" and "test" not in unsure.table()


def test_openings_grow_when_there_are_too_few() -> None:
    """Tic-tac-toe has 9 positions after one move, 72 after two."""
    openings = list(islice(random_openings(TICTACTOE, 1), 60))
    lengths = [len(actions) for actions, _ in openings]
    assert lengths == sorted(lengths) and lengths.count(1) == 9
    assert len({state for _, state in openings}) == 60
    assert [state for _, state in islice(random_openings(TICTACTOE, 0), 1)] == [TICTACTOE.initial_state()]


def test_openings_begin_again_when_there_are_no_more() -> None:
    """On a small board there are not many openings of nine plies, and hardly longer ones."""
    small = windrow.make_game("connect4", rows=4, columns=4, connect=3)
    openings = [state for _, state in islice(random_openings(small, 9), 3000)]
    assert len(openings) == 3000
    assert all(small.to_play(state) != windrow.TERMINAL for state in openings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_games": 5}, "num_games must be even"),
        ({"num_games": 0}, "num_games must be even"),
        ({"max_concurrent": 1}, "max_concurrent"),
        ({"openings_plies": -1}, "openings_plies"),
    ],
)
def test_impossible_matches_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        play_match(CONNECT4, "random", "random", **settings)


def test_a_player_that_does_not_answer_is_named() -> None:
    class Silent:
        name = "silent"

        def choose(self, states: Sequence[State]) -> list[int]:
            return []

        def close(self) -> None:
            pass

    with pytest.raises(SearchError, match="silent returned 0 moves for 5 positions"):
        play_match(CONNECT4, Silent(), "random", num_games=10)
