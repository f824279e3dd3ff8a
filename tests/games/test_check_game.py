"""The checker finds every defect, blames the right method, and finds nothing in games that are right."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import broken_chance
import broken_moves
import broken_states
import broken_views
import numpy as np
import pytest
from sound_games import CORRECT, Race, SampledRace, Tictactoe

import windrow
from windrow.games.checking.fault import MAX_OF_A_KIND
from windrow.games.checking.values import compare, snapshot
from windrow.testing import Fault, GameFaultsError, check_game, examine

FOLDER = Path(__file__).parent
BROKEN = broken_states.broken | broken_moves.broken | broken_views.broken | broken_chance.broken


def kinds(faults: list[Fault]) -> list[tuple[str, str]]:
    return [(fault.kind, fault.method) for fault in faults]


# --- Games that are right -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [*CORRECT, broken_moves.CommonGood], ids=lambda game: game.__name__)
def test_correct_games_are_clean(game: type) -> None:
    report = examine(game(), num_games=40)
    assert (report.faults, report.notes) == ([], [])
    assert report.num_games == report.num_endings == 40
    check_game(game(), num_games=5)


@pytest.mark.parametrize("name", windrow.game_names())
def test_games_that_come_with_windrow_are_clean(name: str) -> None:
    assert examine(name, num_games=4).faults == []
    assert examine(windrow.make_game(name), num_games=1, seed=1).faults == []


@pytest.mark.slow
@pytest.mark.parametrize("name", windrow.game_names())
def test_games_that_come_with_windrow_are_clean_in_many_games(name: str) -> None:
    assert examine(name, num_games=60).faults == []


@pytest.mark.parametrize("name", ["connect_four", "pig(players=3,winscore=15)", "catch", "backgammon"])
def test_games_of_openspiel_are_clean(name: str) -> None:
    pytest.importorskip("pyspiel")
    assert examine(f"openspiel:{name}", num_games=4).faults == []


def test_environments_of_pettingzoo_are_clean() -> None:
    pytest.importorskip("pettingzoo")
    pytest.importorskip("pygame")
    assert examine("pettingzoo:tictactoe_v3", num_games=3).faults == []


# --- Games that are wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", BROKEN, ids=lambda game: game.__name__)
def test_every_defect_is_found_and_blamed_on_the_right_method(game: type) -> None:
    random.seed(1)  # some of them draw from the global generator, on purpose
    faults = examine(game(), num_games=30, max_plies=100).faults
    assert faults, "nothing was found"
    assert kinds(faults)[0] == BROKEN[game]
    assert set(kinds(faults)) == {BROKEN[game]}


def test_a_player_without_moves_may_be_an_end_that_to_play_does_not_know() -> None:
    fault = examine(broken_moves.Stuck(), num_games=1).faults[0]
    assert "if the game is over here, to_play must return TERMINAL" in fault.seen


class Raising(Tictactoe):
    """Raises in one of its methods, somewhere."""

    def __init__(self, method: str) -> None:
        right = getattr(self, method)

        def wrong(*arguments: Any) -> Any:
            if method in ("initial_state", "symmetries", "returns") or None not in [*arguments[0], None][2:5]:
                raise KeyError("square 7\nis missing")
            return right(*arguments)

        if method in ("action_name", "parse_action"):

            def wrong(*arguments: Any) -> Any:
                raise KeyError("square 7\nis missing")

        setattr(self, method, wrong)


@pytest.mark.parametrize(
    "method",
    [
        *("initial_state", "to_play", "legal_actions", "apply", "returns", "observe"),
        *("hash", "render", "symmetries", "action_name", "parse_action"),
    ],
)
def test_whatever_a_game_raises_is_a_fault(method: str) -> None:
    faults = examine(Raising(method), num_games=10).faults
    assert ("exception", method) in kinds(faults)
    fault = faults[kinds(faults).index(("exception", method))]
    assert fault.seen.startswith("raised KeyError: ") and "\n" not in fault.seen


@pytest.mark.parametrize("method", ["chance_outcomes", "sample_outcome"])
def test_whatever_chance_raises_is_a_fault(method: str) -> None:
    class RaisingChance(Race if method == "chance_outcomes" else SampledRace):
        def fail(self, *_: Any) -> Any:
            raise RuntimeError("no dice")

    setattr(RaisingChance, method, RaisingChance.fail)
    faults = examine(RaisingChance(), num_games=3).faults
    assert set(kinds(faults)) == {("exception", method)}


def test_another_object_of_the_game_must_be_the_same_game() -> None:
    """A hash with a salt of the object's own: found if the game is known by name, so that it can be made again."""
    target = f"{FOLDER / 'broken_views.py'}:SaltedHash"
    assert set(kinds(examine(target, num_games=2).faults)) == {("hash", "hash")}
    assert examine(broken_views.SaltedHash(), num_games=2).faults == []


@pytest.mark.parametrize(
    ("game", "kind", "method", "words"),
    [
        (broken_moves.WinnerFirst, "returns", "returns", "player 0 won all"),
        (broken_moves.LastMoverLoses, "returns", "returns", "whoever made the last move lost all"),
        (broken_views.OneBuffer, "observation", "observe", "new array"),
        (broken_views.ShortHash, "hash", "hash", "bits at most"),
        (broken_chance.FixedDice, "chance", "sample_outcome", "same outcome for all seeds"),
    ],
)
def test_what_is_only_strange_is_a_note(game: type, kind: str, method: str, words: str) -> None:
    report = examine(game(), num_games=40)
    assert report.faults == []
    assert kinds(report.notes) == [(kind, method)]
    assert words in report.notes[0].seen
    with pytest.warns(UserWarning, match=rf"{game.__name__}\(\): {kind}"):
        check_game(game(), num_games=40)  # does not raise
    if kind == "returns":
        assert report.notes[0].moves  # those of a game that somebody won


def test_truth_values_are_not_taken_for_actions() -> None:
    class Masked(Tictactoe):
        def legal_actions(self, state: Any) -> Any:
            return [action in super(Masked, self).legal_actions(state) for action in range(9)]

    (fault, *_) = examine(Masked(), num_games=1).faults
    assert (fault.kind, fault.method) == ("legality", "legal_actions") and "np.flatnonzero" in fault.seen


def test_states_that_cannot_be_pickled_are_a_note() -> None:
    class Local(Tictactoe):
        def initial_state(self) -> Any:
            return (*super().initial_state(), lambda: None)

        def to_play(self, state: Any) -> int:
            return super().to_play(state[:9])

        def legal_actions(self, state: Any) -> Any:
            return super().legal_actions(state[:9])

        def observe(self, state: Any) -> Any:
            return super().observe(state[:9])

        def returns(self, state: Any) -> Any:
            return super().returns(state[:9])

        def apply(self, state: Any, action: int) -> Any:
            return (*super().apply(state[:9], action), state[9])

        hash = render = None

    report = examine(Local(), num_games=5)
    assert report.faults == []
    assert set(kinds(report.notes)) == {("pickle", "__reduce__"), ("pickle", "apply")}


def test_symmetries_that_cannot_be_tried_are_a_note() -> None:
    report = examine("othello", num_games=2)
    assert kinds(report.notes) == [("symmetry", "symmetries")]
    assert "1, 2, 5, 6" in report.notes[0].seen


# --- What is said about them --------------------------------------------------------------------------------------


def test_a_fault_shows_how_to_see_it_again() -> None:
    """Square 4 after square 0: the moves by number and name, and code that raises the same."""
    faults = examine(broken_moves.ForbiddenMove(), num_games=20).faults
    fault = faults[0]
    assert fault.seen == "raised ValueError: the centre is taken"
    assert fault.moves[0] == 0 or 0 in fault.moves[::2]
    assert fault.names == tuple(Tictactoe().action_name(move) for move in fault.moves)
    assert f"{' '.join(map(str, fault.moves))} ({' '.join(fault.names)})" in str(fault)
    with pytest.raises(ValueError, match="the centre is taken"):
        exec(fault.snippet, {})


@pytest.mark.parametrize("game", BROKEN, ids=lambda game: game.__name__)
def test_snippets_run(game: type) -> None:
    """To their end, or to an exception of the game's."""
    random.seed(1)
    for fault in examine(game(), num_games=10, max_plies=40).faults:
        try:
            exec(fault.snippet, {"print": lambda *_: None})
        except (ValueError, IndexError, AttributeError, TypeError) as error:  # noqa: PERF203
            assert fault.kind in ("exception", "facts", "legality", "player"), (fault, error)


def test_only_the_first_few_of_a_kind_are_kept() -> None:
    report = examine(broken_moves.Descending(), num_games=10)
    assert len(report.faults) == MAX_OF_A_KIND
    assert report.counts["legality", "legal_actions"] == report.num_faults > 50


def test_equal_seeds_find_equal_faults() -> None:
    game = broken_views.Collisions()
    assert examine(game, num_games=20, seed=3).faults == examine(game, num_games=20, seed=3).faults
    assert examine(game, num_games=20, seed=3).faults != examine(game, num_games=20, seed=4).faults


def test_check_game_raises_with_all_faults() -> None:
    with pytest.raises(GameFaultsError, match="do not sum to zero") as caught:
        check_game(broken_moves.BothWin(), num_games=5)
    assert isinstance(caught.value, AssertionError)
    assert len(caught.value.faults) == 3
    assert "has 3 faults" in str(caught.value) and "to see it again" in str(caught.value)


def test_progress_and_the_end_of_endless_games() -> None:
    calls: list[tuple[int, int]] = []
    examine(Tictactoe(), num_games=4, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    report = examine(broken_moves.Endless(), num_games=100, max_plies=50)
    assert report.num_games == 3  # no point in more
    assert len(report.faults[0].moves) == 50


def test_three_players_and_their_values() -> None:
    """Three players count to ten by ones and twos; who says ten gets 1, the others -0.5 and -0.5."""

    class Count:
        num_actions, num_players, observation = 2, 3, (1,)

        def initial_state(self) -> Any:
            return (0, 0)

        def to_play(self, state: Any) -> int:
            return state[1] if state[0] < 10 else windrow.TERMINAL

        def legal_actions(self, state: Any) -> Any:
            return [0, 1] if state[0] < 10 else []

        def apply(self, state: Any, action: int) -> Any:
            return state[0] + action + 1, (state[1] + 1) % 3

        def returns(self, state: Any) -> Any:
            return [1.0 if (state[1] + 2) % 3 == player else -0.5 for player in range(3)]

        def observe(self, state: Any) -> Any:
            return np.float32([state[0]])

    assert examine(Count(), num_games=20).faults == []


# --- The tools ----------------------------------------------------------------------------------------------------


class Plain:
    """An object without equality."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


@pytest.mark.parametrize(
    ("state", "change", "expected"),
    [
        ([1, [2, 3]], lambda state: state[1].append(4), "value"),
        ([1, [2, 3]], lambda state: None, "none"),
        ({"a": np.zeros(3)}, lambda state: state["a"].fill(1), "value"),
        ({"a": np.zeros(3)}, lambda state: state["a"].fill(0), "none"),
        ((np.array([np.nan]),), lambda state: None, "none"),
        ([float("nan")], lambda state: None, "none"),
        ([{1, 2}], lambda state: state[0].add(3), "value"),
        ([1], lambda state: state.__setitem__(0, True), "value"),
        (Plain(a=[1]), lambda state: state.a.append(2), "inside"),
        (Plain(a=[1], found=None), lambda state: setattr(state, "found", 7), "none"),
        ([Plain(a=1)], lambda state: setattr(state[0], "a", 2), "inside"),
    ],
)
def test_changes_are_seen(state: Any, change: Any, expected: str) -> None:
    before = snapshot(state, ())
    change(state)
    assert compare(before, state) == expected


def test_windrow_testing_is_light() -> None:
    code = "import sys, windrow.testing; print([n for n in ('torch', 'pyspiel', 'pettingzoo') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
