"""The price of batching: its statistics on numbers worked out by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow.engines import Vectorized

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks are programs: they import each other by name."""
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])


def test_paired_difference() -> None:
    from price_statistics import paired_difference

    case = np.array([1, 1, 0, 1], bool)
    base = np.array([1, 0, 0, 0], bool)
    # Differences 0, 1, 0, 1: mean 1/2, variance (4 x 1/4) / 3 = 1/3, standard error sqrt(1/3 / 4) = 0.288675.
    assert paired_difference(case, base) == pytest.approx((0.5, 0.288675), abs=1e-6)


def test_positions_that_come_out_alike_have_no_error() -> None:
    from price_statistics import paired_difference

    kept = np.array([1, 0, 1, 1], bool)
    assert paired_difference(kept, kept) == (0.0, 0.0)


def test_never_falling_averages_what_falls() -> None:
    from price_statistics import never_falling

    assert never_falling([1, 2, 3]) == [1, 2, 3]
    assert never_falling([1, 3, 2, 4]) == [1, 2.5, 2.5, 4]
    # 5 pulls down nothing before it is joined with 2 and 2: their mean is 3.
    assert never_falling([5, 2, 2, 9]) == [3, 3, 3, 9]


@pytest.mark.parametrize(
    ("score", "simulations", "is_bound"),
    [
        (0.80, 200, False),  # a point of the curve
        (0.75, 2**7.5 / 1.28, False),  # half way between 100 and 200, in doublings: 141.42
        (0.85, 200 * 2**0.5, False),
        (0.60, 50, False),
        (0.59, 50, True),  # below all
        (0.91, 400, True),  # above all
    ],
)
def test_equal_simulations_lie_on_the_curve(score: float, simulations: float, is_bound: bool) -> None:
    from price_statistics import equal_simulations

    curve = {50: 0.60, 100: 0.70, 200: 0.80, 400: 0.90}
    found, bound = equal_simulations(score, curve)
    assert found == pytest.approx(simulations, rel=1e-6)
    assert bound is is_bound


def test_a_flat_curve_means_its_middle() -> None:
    from price_statistics import equal_simulations

    # 0.8 and 0.6 become 0.7 and 0.7, from 100 to 400: the middle is 200.
    curve = {50: 0.5, 100: 0.7, 200: 0.8, 400: 0.6, 800: 0.9}
    assert equal_simulations(0.7, curve) == (pytest.approx(200), False)


def test_equal_simulations_have_the_error_of_their_samples() -> None:
    from price_statistics import equal_with_error

    curve = {100: 0.0, 200: 1.0}
    scores = np.linspace(0.0, 1.0, 101)  # the 16th percentile is 0.16, the 84th 0.84
    curves = {100: np.zeros(101), 200: np.ones(101)}
    found = equal_with_error(0.5, curve, scores, curves)
    assert (found.simulations, found.low, found.high) == pytest.approx((100 * 2**0.5, 100 * 2**0.16, 100 * 2**0.84))
    assert not found.is_bound


def test_resampling_takes_the_same_positions_for_all_cases() -> None:
    from price_statistics import resampled_means

    rows = np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]], bool)
    means = resampled_means(rows, num_samples=50)
    assert means.shape == (50, 3)
    assert (means[:, 0] == means[:, 1]).all()
    assert means[:, 0] + means[:, 2] == pytest.approx(1.0)
    # The deviation of a mean of four coins is 1/4; of 50 samples it is off by a tenth or so.
    assert 0.15 < means[:, 0].std() < 0.35


def test_pairs_count_with_one_pair_of_doubt() -> None:
    from price_statistics import pair_score

    # Three pairs: 0, 1 and 2 points, and half a pair lost, half a pair won for the doubt. Shares of the points 0 (1 1/2
    # pairs), 1/2 (1) and 1 (1 1/2): mean 1/2, variance 3 x 1/4 / 4 = 3/16, standard error sqrt(3/64) = 0.216506.
    found = pair_score([0, 2, 4])
    assert (found.score, found.standard_error, found.elo) == pytest.approx((0.5, 0.216506, 0.0), abs=1e-6)
    # 400 / ln 10 / (1/2 x 1/2) = 694.87 Elo for a share of one near a half.
    assert found.elo_standard_error == pytest.approx(694.87 * 0.216506, rel=1e-4)


def test_twice_the_budget_mirrors_half_of_it() -> None:
    from price_statistics import match_curve

    assert match_curve(400, {200: -50.0, 100: -120.0}) == {100: -120.0, 200: -50.0, 400: 0.0, 800: 50.0}
    assert match_curve(400, {}) == {400: 0.0}


def test_cases_come_by_worth() -> None:
    from price_cases import LEAVES, RULES, SIMULATIONS, match_panels, solver_cases

    cases = solver_cases(SIMULATIONS, LEAVES, (25, 400))
    assert [case.key for case in cases[:2]] == ["400/visits/share/1", "25/visits/share/1"]
    assert len({case.key for case in cases}) == len(cases) == 4 + len(SIMULATIONS) * len(RULES) * len(LEAVES)
    panels = list(match_panels(SIMULATIONS, LEAVES, 10, num_passes=2))
    played = {
        (case.key, panel.simulations, pair) for panel in panels for case in panel.challengers for pair in panel.pairs
    }
    # One leaf with four smaller budgets plays beside all rules and numbers of leaves.
    assert len(played) == (20 + 20 + 10) * (len(RULES) * len(LEAVES) + 4)
    assert panels[0].title == "400 simulations, visits skip, 2,4,8,16,32,64 leaves"
    assert panels[0].pairs == range(10)


@pytest.mark.parametrize("num_at_once", [1, 3])
def test_matches_at_once_are_those_one_by_one(num_at_once: int) -> None:
    """What an exact evaluator says does not depend on its batch, so neither do the games."""
    from itertools import islice

    from price_cases import Case, one_leaf
    from price_matches import play_panel

    from windrow import Search, SearchConfig, make_game
    from windrow.evaluators import HashEvaluator
    from windrow.play.match import random_openings

    class Exact:
        game = make_game("tictactoe")

        def __init__(self) -> None:
            self.num_at_once = num_at_once

        def search(self, case: Case, *, is_one_of_many: bool) -> Search:
            assert is_one_of_many
            names = ("in_flight", "on_collision")
            rule = {name: getattr(case, name) for name in names}
            config = SearchConfig(
                num_simulations=case.simulations, leaves_per_tree=case.leaves, engine=Vectorized(num_threads=1)
            ).with_settings(rule)
            return Search(self.game, HashEvaluator(), config)

        def choose(self, search: Search, states: list[Any]) -> list[int]:
            return [result.best_action for result in search.run(states)]

    trained: Any = Exact()
    openings = [state for _, state in islice(random_openings(trained.game, 2, seed=1), 40)]
    challengers = [one_leaf(16), Case(16, "visits", "share", 8), one_leaf(4)]
    found = play_panel(trained, 16, challengers, openings)
    assert found[0] == "2" * 40  # against itself: what one side wins the other loses
    assert found == [_play_pairs(trained, case, openings) for case in challengers]
    assert len(set(found)) == 3


def _play_pairs(trained: Any, case: Any, openings: list[Any]) -> str:
    """Half points of every pair, one game after another."""
    from price_cases import one_leaf

    game, digits = trained.game, ""
    with (
        trained.search(case, is_one_of_many=True) as challenger,
        trained.search(one_leaf(16), is_one_of_many=True) as opponent,
    ):
        for opening in openings:
            half_points = 0
            for side in (0, 1):
                state = opening
                while game.to_play(state) >= 0:
                    player = challenger if game.to_play(state) == side else opponent
                    state = game.apply(state, trained.choose(player, [state])[0])
                returns = game.returns(state)
                half_points += 1 + int(np.sign(returns[side] - returns[1 - side]))
            digits += str(half_points)
    return digits


def test_packed_answers_come_back() -> None:
    from price_solver import pack, unpack

    kept = [True, False, False, True, True, False, True, True, True]
    assert unpack(pack(kept), len(kept)).tolist() == kept


def test_hard_positions_are_what_they_say() -> None:
    """A sample, solved once more; those with few stones take long."""
    from price_positions import PHASES, read_positions

    from windrow import make_game
    from windrow.play.solver import Connect4Solver

    positions = read_positions()
    assert len(positions) == sum(PHASES.values())
    solver = Connect4Solver(make_game("connect4"))
    late = [position for position in positions if position.num_stones >= 16][:20]
    for position in late:
        results = solver.results(position.state)
        best = {action for action, result in results.items() if result == max(results.values())}
        assert best == position.best_actions
        assert len(best) < len(results)


def test_what_a_file_lacks_comes_from_the_others() -> None:
    from price_rows import merge

    measured = {"source": {}, "networks": {"othello": {"points": {"400": {"400/visits/skip/2": "2"}}, "calls": {}}}}
    counted = {
        "source": {},
        "networks": {"othello": {"points": {}, "calls": {"400/visits/skip/2": {"calls": 1, "rows": 2}}}},
    }
    # Calls that were begun and never counted are no reason to leave out those of the second file.
    part = merge([measured, counted])["networks"]["othello"]
    assert part["calls"] == counted["networks"]["othello"]["calls"]
    assert part["points"] == {"400": {"400/visits/skip/2": "2"}}


def test_pairs_of_a_second_network_are_counted_with_those_of_the_first() -> None:
    from price_rows import make_results

    def raw(name: str, network: str, **points: str) -> dict[str, Any]:
        source = {"command": network, "networks": {name: network}}
        digits = {f"400/visits/skip/{leaves[1:]}": pairs for leaves, pairs in points.items()}
        return {"source": source, "networks": {name: {"points": {"400": {"200/visits/share/1": "1122", **digits}}}}}

    first = make_results(raw("othello", "first", k8="2222", k16="0000"))
    second = make_results(raw("gomoku9", "other", k8="1111"), first)
    third = make_results(raw("othello", "second", k8="4444", k32="33"), second)
    networks = {name: [source["network"] for source in found] for name, found in third["sources"].items()}
    assert networks == {"othello": ["first", "second"], "gomoku9": ["other"]}
    scores = {(row["game"], row["leaves"]): row["score"] for row in third["rows"] if "score" in row}
    # 8 leaves: four pairs of 1 point and four of 2, of 2 each: 12/16. What one network has not played, the other says.
    assert scores == {("othello", 8): 0.75, ("othello", 16): 0.0, ("othello", 32): 0.75, ("gomoku9", 8): 0.25}
    (calibration,) = [row for row in third["one_leaf"] if row["game"] == "othello"]
    assert calibration["pairs"] == [0, 4, 4, 0, 0]


def test_rows_of_calls_stay_known() -> None:
    from price_rows import make_results

    points = {"400": {"200/visits/share/1": "1122", "400/visits/skip/8": "2222"}}
    calls = {"400/visits/skip/8": {"calls": 10, "rows": 50, "simulations": 60}}
    first = make_results({"source": {}, "networks": {"othello": {"points": points, "calls": calls}}})
    second = make_results({"source": {}, "networks": {"othello": {"points": points}}}, first)
    assert [row["rows_per_call"] for row in second["rows"]] == [1.0, 5.0]
    assert second["rows"][1]["simulations_per_call"] == 6.0


def test_only_what_was_played_has_a_score() -> None:
    from price_rows import make_results

    points = {"200/visits/share/1": "1122", "400/visits/skip/8": "2222"}
    raw = {"source": {}, "networks": {"othello": {"points": {"400": points}}}}
    rows = make_results(raw)["rows"]
    # The one rule that was played, and what it is compared with, which needed no games.
    assert [(row["in_flight"], row["on_collision"], row["leaves"]) for row in rows] == [
        ("visits", "skip", 1),
        ("visits", "skip", 8),
    ]
    assert ["score" in row for row in rows] == [False, True]
    assert rows[1]["score"] == 0.5


def test_the_page_says_what_was_measured() -> None:
    from price_plot import draw
    from price_report import PAGE, PICTURES, RESULTS, TITLES, fill_page, page_parts

    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert fill_page(text, page_parts(results)) == text, "run bench/price_report.py"
    for name, measure in PICTURES.items():
        assert (PAGE.parent / name).read_text(encoding="utf-8") == draw(results, measure, TITLES), name


def test_scales() -> None:
    from price_plot import nice_ticks

    assert nice_ticks(0, 1) == [0, 0.25, 0.5, 0.75, 1]
    assert nice_ticks(0, 97) == [0, 25, 50, 75, 100]
    for low, high in ((0.7221, 0.7534), (-3, 8), (1e-9, 2e-9), (123456, 654321)):
        ticks = nice_ticks(low, high)
        assert ticks[0] <= low * (1 + 1e-9) and ticks[-1] >= high * (1 - 1e-9) and 3 <= len(ticks) <= 8
