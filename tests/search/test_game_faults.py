"""A game that breaks its own rules: an error in words, a tree that can be used, other trees that noticed nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from search_cases import Recorder, check_invariants, in_flight, snapshot
from toy_games import Dice, HashedDice, Moves, SampledDice

from windrow import GameError, Search, SearchConfig
from windrow.engines import Vectorized
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator
from windrow.games.python_game import as_core_game
from windrow.train import SelfPlay, SelfPlayConfig


class Trouble(Exception):
    """What a game raises here."""


# Three games of which three moves are left. The second goes wrong, from the second of these moves on.
ROOTS: list[Moves] = [(0, 1, 0, 1, 0, 1), (1, 2, 0, 1, 0, 1), (2, 2, 0, 1, 0, 1)]


def is_deep(moves: Moves) -> bool:
    return moves[0] == 1 and len(moves) >= 9


NAN = float("nan")
NO_SUM = r"chance_outcomes gave probabilities that are not above 0 or do not sum to 1"
BAD_ANSWERS: dict[str, list[tuple[Any, str]]] = {
    "to_play": [
        (2, r"to_play gave 2; there are players 0 to 1"),
        (-3, r"to_play gave -3; there are players 0 to 1"),
        (300, r"to_play gave 300"),
        (2**40, r"to_play: 1099511627776 is out of range"),
        ("me", r"to_play: TypeError: 'str' object cannot be interpreted as an integer"),
        (None, r"to_play: TypeError"),
        (0.0, r"to_play: TypeError"),
    ],
    "legal_actions": [
        ([], r"the position is not finished but has no legal action"),
        ([0, 3], r"legal_actions are not ascending numbers below 3"),
        ([-1, 0], r"legal_actions are not ascending numbers below 3"),
        ([2, 1], r"legal_actions are not ascending numbers below 3"),
        ([1, 1], r"legal_actions are not ascending numbers below 3"),
        ([0, 1, 2, 3], r"legal_actions: 4 actions, but max_legal_actions is 3"),
        (None, r"legal_actions: TypeError"),
        ([0, 1.5], r"legal_actions: TypeError"),
        ([2**70], r"legal_actions: OverflowError"),
    ],
    "apply": [(None, r"apply: it returned None, not a state")],
    "chance_outcomes": [
        ([], r"chance_outcomes gave 0, not 1 to 1024"),
        ([1, 2], r"chance_outcomes: TypeError"),
        ([(1, 0.5, 0)], r"chance_outcomes: pairs of an outcome and its probability are needed"),
        ([(2, 0.5), (1, 0.5)], r"chance_outcomes are not ascending numbers below 65536"),
        ([(1, 0.5), (1, 0.5)], r"chance_outcomes are not ascending numbers below 65536"),
        ([(-1, 1.0)], r"chance_outcomes are not ascending numbers below 65536"),
        ([(65536, 1.0)], r"chance_outcomes are not ascending numbers below 65536"),
        ([(1, 0.5), (2, 0.4)], NO_SUM),
        ([(1, 1.0), (2, 0.0)], NO_SUM),
        ([(1, 1.5), (2, -0.5)], NO_SUM),
        ([(1, NAN)], NO_SUM),
        ([(number, 1 / 1025) for number in range(1025)], r"1025 outcomes, but max_outcomes is 1024"),
        (None, r"chance_outcomes: TypeError"),
    ],
    "sample_outcome": [("six", r"sample_outcome: TypeError"), (2**64, r"sample_outcome: OverflowError")],
    "returns": [
        ([NAN, 0.0], r"returns gave -?nan, not a number in \[-1, 1\]"),
        ([1.5, -1.5], r"returns gave 1\.5\d*, not a number in \[-1, 1\]"),
        ([float("inf"), 0.0], r"returns gave inf"),
        ([1.0], r"returns: 1 values for 2 players"),
        ([1.0, 0.0, -1.0], r"returns: 3 values for 2 players"),
        ([0.5, 0.5], r"returns of 0\.5\d* and 0\.5\d* do not sum to zero"),
        (None, r"returns: TypeError"),
        (["win", "loss"], r"returns: TypeError"),
    ],
    "observe": [
        (np.zeros(3, np.float32), r"observe: ValueError: the observation has shape \(3,\), but \(2,\) was declared"),
        (np.zeros(1, np.float32), r"observe: ValueError: the observation has shape \(1,\), but \(2,\) was declared"),
        (np.zeros((1, 2)), r"observe: ValueError: the observation has shape \(1, 2\), but \(2,\) was declared"),
        (None, r"observe: ValueError: the observation"),
        (["far", "near"], r"observe: ValueError: the observation is not an array of numbers"),
        ([[1], [1, 2]], r"observe: ValueError: the observation is not an array of numbers"),
        ({"board": [1, 2]}, r"observe: ValueError: the observation"),
    ],
    "hash": [("here", r"hash: TypeError"), (None, r"hash: TypeError"), (1.5, r"hash: TypeError")],
}

METHODS = tuple(BAD_ANSWERS)


def game_for(method: str) -> Any:
    return SampledDice() if method == "sample_outcome" else HashedDice() if method == "hash" else Dice()


def fault_search(game: Any, method: str, engine: str) -> Search:
    leaves = 1 if engine == "sequential" else 3
    memory = 1 << 20 if method == "hash" else None
    # Shared, so that rounds are of the same length whatever the budget leaves of the last one.
    settings = {"leaves_per_tree": leaves, "on_collision": "share", "cache_memory": memory}
    config = SearchConfig(num_simulations=400, engine=engine, seed=4, **settings)
    return Search(game, HashEvaluator(1), config)


def check_fault(method: str, fault: Any, message: str, engine: str) -> GameError:
    """Search three trees, the second of which meets the fault; mend the game; go on."""
    game = game_for(method)
    game.faults[method], game.is_bad = fault, is_deep
    search = fault_search(game, method, engine)
    with pytest.raises(GameError, match=message + r".*\(tree 1 after [abc12 ]+\)") as caught:
        search.run(ROOTS)
    assert str(caught.value).startswith(f"{type(game).__name__}() broke its own rules: ")
    assert in_flight(search) == 0
    assert search.states == ROOTS
    # Whatever was completed before is what an undisturbed search has after as many simulations.
    for tree in range(3):
        check_invariants(search, tree)
        undisturbed = fault_search(game_for(method), method, engine)
        undisturbed.run(ROOTS, num_simulations=max(search.node(tree=tree).visits - 1, 0))
        if search.node(tree=tree).visits:
            assert_same_counts(search, undisturbed, tree)
    game.faults.clear()
    results = search.run()
    assert in_flight(search) == 0
    for tree in range(3):
        check_invariants(search, tree)
        assert results[tree].visits.sum() >= 400
    return caught.value


def assert_same_counts(search: Search, other: Search, tree: int) -> None:
    """The same visits and values everywhere; positions that were reached and never evaluated may be left over."""
    got, want = snapshot(search, tree), snapshot(other, tree)

    def counted(nodes: Any) -> Any:
        return {
            path: fields[1:5] + fields[6:] for path, fields in nodes.items() if fields[1] > 0 or fields[0] == "over"
        }

    if search.game.chance == "listed":
        assert counted(got) == counted(want)
    else:  # of drawn outcomes those that counted nothing are listed too
        assert {path: fields[:3] for path, fields in counted(got).items()} == {
            path: fields[:3] for path, fields in counted(want).items()
        }


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
@pytest.mark.parametrize("method", METHODS)
def test_an_exception_in_a_method(method: str, engine: str):
    """The error names game, method, tree and moves; its cause is the exception itself."""
    trouble = Trouble("the board is on fire")
    error = check_fault(method, trouble, f"{method}: Trouble: the board is on fire", engine)
    assert error.__cause__ is trouble


@pytest.mark.parametrize("engine", ["batched", "vectorized"])
@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_answer(method: str, engine: str):
    for answer, message in BAD_ANSWERS[method]:
        check_fault(method, answer, message, engine)


def test_the_moves_are_in_the_games_words():
    """`b` is action 1; where chance is to move stands what it did. `apply` fails at the last of them."""
    game = Dice()
    game.faults["apply"], game.is_bad = Trouble("no"), lambda moves: moves == (1, 2, 1, 1)
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=400))
    with pytest.raises(GameError) as caught:
        search.run([(0, 1), ()])
    assert str(caught.value) == (
        "Dice() broke its own rules: apply: Trouble: no (tree 1 after b 2 b 1)\nbefore the last of these:\n(1, 2, 1)"
    )
    game.faults, game.is_bad = {"legal_actions": [7]}, lambda moves: moves == (1, 2, 1, 1)
    with pytest.raises(GameError) as caught:
        search.run((1, 2))
    assert str(caught.value).endswith("numbers below 3 (tree 0 after b 1)\n(1, 2, 1, 1)")


def test_named_parts_of_an_observation():
    class Named(Dice):
        observation = {"board": (2,), "flat": (1, 1)}  # noqa: RUF012

        def observe(self, state: Moves) -> Any:
            return self._do("observe", state, lambda: {"board": [0, 1], "flat": [[1]]})

    for answer, message in (
        ({"board": [0, 1]}, r"the parts are board, flat, not board"),
        ({"board": [0, 1], "flat": [[1]], "more": [1]}, r"the parts are board, flat, not board, flat, more"),
        ({"board": [0, 1], "flat": [1]}, r"flat has shape \(1,\), but \(1, 1\) was declared"),
        ({"board": [0, 1], "flat": [["x"]]}, r"flat is not an array of numbers"),
        (np.zeros(3, np.float32), r"the parts board, flat are needed by name, not ndarray"),
        (None, r"the parts board, flat are needed by name, not NoneType"),
    ):
        game = Named()
        game.faults["observe"], game.is_bad = answer, is_deep
        search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=400))
        with pytest.raises(GameError, match=r"observe: ValueError: " + message):
            search.run(ROOTS)
        assert in_flight(search) == 0
        game.faults.clear()
        search.run()


# --- At the root -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["to_play", "legal_actions"])
@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_a_fault_at_the_root(method: str, engine: str):
    """Nothing is planted where one of the roots is bad; with a mended game it is."""
    trouble = Trouble("lost")
    game = Dice()
    game.faults[method], game.is_bad = trouble, lambda moves: moves == ROOTS[1]
    search = fault_search(game, method, engine)
    with pytest.raises(GameError, match=rf"Dice\(\).*{method}.*Trouble: lost") as caught:
        search.run(ROOTS)
    assert caught.value.__cause__ is trouble
    game.faults.clear()
    assert [int(result.visits.sum()) for result in search.run(ROOTS)] == [400] * 3


def test_a_fault_in_what_comes_before_a_search():
    game = Dice()
    game.initial_state = lambda: None  # type: ignore[method-assign]
    search = Search(game, HashEvaluator(1))
    with pytest.raises(GameError, match="a state of Dice is None: check that apply and initial_state return"):
        search.run([None])
    core = as_core_game(game)
    with pytest.raises(GameError, match="is None"):
        core.initial_state()
    game.faults["apply"], game.is_bad = None, lambda moves: True
    with pytest.raises(GameError, match="is None"):
        core.apply(core.state_of(()), 0)


@pytest.mark.parametrize("method", ["apply", "to_play", "legal_actions", "chance_outcomes"])
def test_a_fault_while_advancing_changes_no_tree(method: str):
    """The second of three trees cannot be moved: all stay where they are, and move when the game is mended.

    Without simulations no child is known, so that all of the new root is asked for.
    """
    game, trouble = Dice(), Trouble("stuck")
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=0, engine="batched"))
    search.run([(), (), ()])
    if method == "legal_actions":  # of what comes after a roll
        search.advance([0, 1, 0])
    states = search.states
    before = [snapshot(search, tree) for tree in range(3)]
    game.faults[method], game.is_bad = trouble, lambda moves: len(moves) > len(states[1]) and moves[0] == 1
    with pytest.raises(GameError, match=rf"Dice\(\).*{method}.*Trouble: stuck") as caught:
        search.advance([2, 1, 1])
    assert caught.value.__cause__ is trouble
    assert search.states == states
    assert [snapshot(search, tree) for tree in range(3)] == before
    game.faults.clear()
    search.advance([2, 1, 1])
    assert search.states == [(*state, move) for state, move in zip(states, (2, 1, 1), strict=True)]
    assert in_flight(search) == 0


# --- Words that are hard to say ----------------------------------------------------------------------------------


class Mute(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [
        ValueError(""),
        ValueError("a\0b"),
        ValueError("é" * 5000),
        ValueError("x" + "é" * 5000),
        ValueError("\N{SNOWMAN}" * 3000),
        ValueError("\N{GRINNING FACE}" * 3000),
        ValueError("two\nlines"),
        Mute(),
    ],
    ids=["empty", "nul", "long", "long and odd", "three bytes", "four bytes", "lines", "mute"],
)
@pytest.mark.parametrize("method", ["apply", "to_play", "observe"])
def test_any_exception_is_told(method: str, error: Exception):
    game = Dice()
    game.faults[method], game.is_bad = error, is_deep
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=400))
    with pytest.raises(GameError, match=f"{method}: {type(error).__name__}: ") as caught:
        search.run(ROOTS[1])
    assert caught.value.__cause__ is error
    assert in_flight(search) == 0
    game.faults.clear()
    assert search.run().visits.sum() >= 400


def run_alone(program: str) -> str:
    """What a program prints that has this file's names; in a process of its own, for such games have ended some."""
    start = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_game_faults import *\n"
    done = subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_exception_that_no_encoding_can_write():
    """A lone surrogate, as in the name of a file that is not UTF-8."""
    printed = run_alone(r"""
game = Dice()
game.faults["apply"], game.is_bad = ValueError("file \udcff"), lambda moves: len(moves) > 2
try:
    Search(game, HashEvaluator(1), SearchConfig(num_simulations=400)).run(())
except GameError as error:
    print(ascii(str(error)), error.__cause__ is game.faults["apply"])
""")
    assert "apply: ValueError: file" in printed and printed.endswith("True")


@pytest.mark.parametrize("method", ["legal_actions", "returns", "chance_outcomes"])
def test_a_list_that_changes_while_it_is_read(method: str):
    """Whatever comes of it, an answer or an error, the process lives."""
    printed = run_alone(f"""
class Vanishing:
    def __init__(self, owner): self.owner = owner
    def __index__(self): self.owner.clear(); return 0
    def __float__(self): self.owner.clear(); return 0.0

class Shrinking(Dice):
    def _do(self, asked, moves, answer):
        if asked != {method!r} or len(moves) < 2:
            return super()._do(asked, moves, answer)
        owner = []
        items = [Vanishing(owner) for _ in range(3 if asked == "legal_actions" else 2)]
        owner.extend([(item, item) for item in items] if asked == "chance_outcomes" else items)
        return owner

try:
    Search(Shrinking(), HashEvaluator(1), SearchConfig(num_simulations=400)).run(())
except GameError as error:
    print("refused")
print("lives")
""")
    assert printed.endswith("lives")


def test_an_error_without_an_exception_has_no_cause():
    """What was raised and told before is not told again."""
    game = Dice()
    game.faults["apply"], game.is_bad = Trouble("first"), is_deep
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=400))
    with pytest.raises(GameError, match="first"):
        search.run(ROOTS[1])
    game.faults = {"to_play": 9}
    with pytest.raises(GameError, match="to_play gave 9") as caught:
        search.run(ROOTS[1])
    assert caught.value.__cause__ is None


def test_an_exception_that_is_raised_once_is_not_overlooked():
    """Every method, at each of its first hundred calls: the search ends there, and not as if nothing had been."""
    for method in METHODS:
        for number in (1, 2, 3, 10, 33, 100):
            game = game_for(method)
            game.faults[method] = Trouble("once")
            calls = iter(range(1, 10**9))
            game.is_bad = lambda moves, calls=calls, number=number: next(calls) == number
            search = fault_search(game, method, "batched")
            with pytest.raises(GameError, match="once"):
                search.run([(), (1, 2)])
                raise AssertionError(f"{method}, call {number}")


# --- Rollouts, self-play and streams -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["apply", "to_play", "legal_actions", "chance_outcomes", "sample_outcome", "returns"]
)
def test_a_fault_in_a_random_game(method: str):
    trouble = Trouble("rolled off the table")
    game = game_for(method)
    game.faults[method], game.is_bad = trouble, lambda moves: len(moves) >= (12 if method == "returns" else 9)
    search = Search(game, RolloutEvaluator(2, seed=1), SearchConfig(num_simulations=50))
    with pytest.raises(GameError, match=rf"{type(game).__name__}\(\).*{method}: Trouble: rolled off") as caught:
        search.run([(), (1, 2)])
    assert caught.value.__cause__ is trouble
    assert in_flight(search) == 0
    game.faults.clear()
    assert [int(result.visits.sum()) >= 50 for result in search.run()] == [True, True]


@pytest.mark.parametrize("method", METHODS)
def test_a_fault_in_self_play(method: str):
    """A game of its own among eight: named with its moves, and the others go on when it is mended."""
    trouble = Trouble("out of the box")
    game = game_for(method)
    game.faults[method], game.is_bad = trouble, lambda moves: len(moves) >= (12 if method == "returns" else 7)
    config = SearchConfig(num_simulations=16, cache_memory=1 << 20 if method == "hash" else None)
    selfplay = SelfPlay(game, HashEvaluator(1), config, SelfPlayConfig(num_slots=8))
    with pytest.raises(GameError, match=rf"{type(game).__name__}\(\).*{method}.*Trouble: out of the box") as caught:
        list(selfplay.play(8, refill=False))
    assert caught.value.__cause__ is trouble
    game.faults.clear()
    assert len(list(selfplay.play(8))) == 8


def test_a_fault_while_a_stream_is_read():
    game = Dice()
    game.faults["apply"], game.is_bad = Trouble("late"), lambda moves: len(moves) > 8
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=3000, leaves_per_tree=1))
    seen = 0
    with pytest.raises(GameError, match="late"):
        for _ in search.stream((), interval_s=0.0):
            seen += 1
    assert seen > 5 and in_flight(search) == 0
    game.faults.clear()
    assert search.run(num_simulations=10).visits.sum() > 10


def test_a_fault_with_batches_out():
    """The fault is met while other batches are with the evaluator: all of them are undone."""
    game = Dice()
    game.faults["apply"], game.is_bad = Trouble("meanwhile"), lambda moves: moves[0] == 1 and len(moves) > 5
    config = SearchConfig(engine=Vectorized(pipeline=3), num_simulations=300, leaves_per_tree=2)
    recorder = Recorder(HashEvaluator(1))
    search = Search(game, recorder, config)
    with pytest.raises(GameError, match="meanwhile"):
        search.run([(number % 3, 2) for number in range(9)])
    assert in_flight(search) == 0
    game.faults.clear()
    assert all(result.visits.sum() >= 300 for result in search.run())
    for tree in range(9):
        check_invariants(search, tree)
