"""Games written as plain Python classes: nothing outlives its search, and interrupts come out as they are."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from sticks import Sticks

import windrow
from windrow import CHANCE, TERMINAL, PredictionCache, Search, SearchConfig
from windrow.evaluators import HashEvaluator, RolloutEvaluator

# --- What is kept alive ------------------------------------------------------------------------------------------


class Counted:
    """A state that is counted while it lives."""

    alive = 0

    def __init__(self, moves: tuple[int, ...]) -> None:
        self.moves = moves
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


class CountedGame:
    """Four moves of two players with chance between them; fails at call number `fail_at` of any of its methods."""

    num_players, num_actions, observation = 2, 2, (2,)

    def __init__(self, *, fail_at: int = 0, error: type[BaseException] = KeyError) -> None:
        self.fail_at, self.error, self.num_calls = fail_at, error, 0

    def _called(self) -> None:
        self.num_calls += 1
        if self.num_calls == self.fail_at:
            raise self.error

    def initial_state(self) -> Counted:
        return Counted(())

    def to_play(self, state: Counted) -> int:
        self._called()
        if len(state.moves) == 8:
            return TERMINAL
        return CHANCE if len(state.moves) % 2 else len(state.moves) // 2 % 2

    def legal_actions(self, state: Counted) -> list[int]:
        self._called()
        return [0, 1]

    def apply(self, state: Counted, move: int) -> Counted:
        self._called()
        return Counted((*state.moves, move))

    def returns(self, state: Counted) -> list[float]:
        self._called()
        return [1.0, -1.0] if sum(state.moves) % 2 else [-1.0, 1.0]

    def observe(self, state: Counted) -> Any:
        self._called()
        return np.array([len(state.moves), sum(state.moves)], np.float32)


class ListedGame(CountedGame):
    """With chance that is listed."""

    def chance_outcomes(self, state: Counted) -> list[tuple[int, float]]:
        self._called()
        return [(1, 0.5), (2, 0.5)]


class SampledGame(CountedGame):
    """With chance that is drawn."""

    def sample_outcome(self, state: Counted, seed: int) -> int:
        self._called()
        return seed % 100


def use(game: CountedGame, evaluator: Any, *, is_closed: bool, **settings: Any) -> None:
    """Search, advance, and search again; a step that fails is taken again when the game is mended."""
    number = game.fail_at
    search = Search(game, evaluator, SearchConfig(num_simulations=60, leaves_per_tree=4, **settings))
    for step in (
        lambda: search.run([game.initial_state() for _ in range(3)]),
        lambda: search.advance([0, 1, 0]),
        lambda: search.advance([1, 1, 2]),
        lambda: search.run(num_simulations=20),
    ):
        try:
            step()
        except (windrow.WindrowError, KeyboardInterrupt):  # noqa: PERF203 - that is what this is about
            game.fail_at = 0
            step()
    if game.num_calls >= number > 0:
        gc.collect()  # what was raised may refer to itself by its traceback
    assert Counted.alive > 3
    if is_closed:
        search.close()
        assert Counted.alive == 3, "the roots themselves, which `search.states` still has"


EVALUATORS = {"hash": HashEvaluator(1), "rollout": RolloutEvaluator(seed=1)}


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("kind", [ListedGame, SampledGame])
def test_every_state_is_released_once(kind: type[CountedGame], evaluator: str):
    """Whether a search succeeds or fails anywhere, with or without cache, closed or only forgotten.

    Released twice, a state would be freed under the feet of whoever has it, and Python would crash sooner or later;
    never released, it would still be counted here.
    """
    gc.collect()
    gc.freeze()  # so that collecting is quick: what is there now is not looked at
    for number in [0, *range(1, 40), *range(40, 1200, 61)]:
        for is_closed in (True, False):
            error = KeyboardInterrupt if number % 3 == 0 else KeyError
            game = kind(fail_at=number, error=error)
            settings = {"cache_memory": 1 << 18} if number % 2 else {}
            assert Counted.alive == 0
            use(game, EVALUATORS[evaluator], is_closed=is_closed, **settings)
            reference = weakref.ref(game)
            del game
            assert Counted.alive == 0, f"call {number} failed"
            assert reference() is None, f"call {number} failed"
    gc.unfreeze()


def test_a_search_that_is_planted_anew_forgets_the_old_states():
    game = ListedGame()
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=100))
    for _ in range(5):
        search.run(game.initial_state())
        alive = Counted.alive
        search.run([game.initial_state()] * 2, num_simulations=1)
        assert alive > 50 > Counted.alive
    search.stream(game.initial_state())
    del search
    assert Counted.alive == 0


def test_no_search_keeps_its_game():
    """Nothing refers back from the core to the search: without the cycle collector, `del` is enough."""
    gc.collect()
    gc.disable()
    try:
        game = Sticks()
        reference = weakref.ref(game)
        cache = PredictionCache(1 << 18)
        search = Search(game, RolloutEvaluator(), SearchConfig(num_simulations=50))
        cached = Search(game, HashEvaluator(1), SearchConfig(num_simulations=50), cache=cache)
        result = search.run(game.initial_state())
        cached.run([game.initial_state()] * 2)
        stream = search.stream(game.initial_state(), interval_s=0.0)
        next(stream)
        del stream, search, cached, cache
        assert reference() is game and result.game is game
        del game, result
        assert reference() is None
    finally:
        gc.enable()


def test_a_result_may_be_kept_when_the_search_is_gone():
    game = Sticks()
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=50))
    result = search.run(game.initial_state())
    del search, game
    assert result.table() and result.state == (9, 0)


# --- Interrupts --------------------------------------------------------------------------------------------------

METHODS = ("apply", "to_play", "legal_actions", "returns", "observe", "chance_outcomes", "hash", "sample_outcome")


def interrupting(method: str, at: int, error: type[BaseException]) -> CountedGame:
    """A game that raises in one of its methods, once, when that is called for the `at`-th time."""
    game: Any = SampledGame() if method == "sample_outcome" else ListedGame()
    if method == "hash":
        game.hash = lambda state: hash(state.moves)
    inner, calls = getattr(game, method), itertools.count(1)

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == at:
            raise error
        return inner(*arguments)

    setattr(game, method, interrupted)
    return game


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_comes_out_as_it_is_and_the_search_goes_on(method: str, error: type[BaseException]):
    for at in (2, 9):
        game = interrupting(method, at, error)
        settings = {"cache_memory": 1 << 18} if method == "hash" else {}
        search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=80, **settings))
        roots = [game.initial_state() for _ in range(2)]
        with pytest.raises(error):
            search.run(roots)
        if search.node() is None:  # it came while the roots were looked at
            search.run(roots)
        else:
            assert search.engine.forest.num_batches_out == 0
            assert [search.engine.num_in_flight(tree) for tree in range(2)] == [0, 0]
            search.run()
        assert all(result.visits.sum() >= 80 for result in search.run())


def test_an_interrupt_from_the_keyboard():
    """The signal itself, sent while a search without end is in Python code; then the search goes on."""
    program = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from sticks import Sticks
from windrow import Search, SearchConfig
from windrow.evaluators import HashEvaluator

class Pressed(Sticks):
    num_calls = 0

    def apply(self, state, action):
        self.num_calls += 1
        if self.num_calls == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return super().apply(state, action)

search = Search(Pressed(), HashEvaluator(1), SearchConfig(num_simulations=None, time_limit_s=60))
try:
    search.run((60, 0))
except KeyboardInterrupt:
    print("interrupted", search.engine.num_in_flight(0), int(search.run(num_simulations=50).visits.sum() >= 50))
"""
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", program.format(folder=folder)], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.stdout.split() == ["interrupted", "0", "1"], done.stderr
