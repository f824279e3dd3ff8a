"""Games written as plain Python classes: any states, any threads, and nothing that outlives its search."""

from __future__ import annotations

import gc
import itertools
import pickle
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import windrow
from windrow import CHANCE, TERMINAL, GameError, IllegalMoveError, PredictionCache, Search, SearchConfig, SearchError
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator
from windrow.games import State, Symmetry
from windrow.games.python_game import PythonGame, as_core_game


class Sticks:
    """Take one or two sticks; who takes the last one wins. States are (sticks, player)."""

    num_players, num_actions, observation = 2, 2, (2,)

    def initial_state(self) -> Any:
        return self._state(9, 0)

    def _state(self, sticks: int, player: int) -> Any:
        return sticks, player

    def _read(self, state: Any) -> tuple[int, int]:
        return state

    def to_play(self, state: Any) -> int:
        sticks, player = self._read(state)
        return player if sticks else TERMINAL

    def legal_actions(self, state: Any) -> Any:
        return [action for action in (0, 1) if action < self._read(state)[0]]

    def apply(self, state: Any, action: int) -> Any:
        sticks, player = self._read(state)
        return self._state(sticks - action - 1, 1 - player)

    def returns(self, state: Any) -> Any:
        return [-1, 1] if self._read(state)[1] == 0 else [1, -1]

    def observe(self, state: Any) -> Any:
        return np.array(self._read(state), np.float32) / 9


# --- States of every kind ----------------------------------------------------------------------------------------


@dataclass
class Table:
    """A state that can be changed and so has no hash."""

    sticks: int
    player: int


class TableSticks(Sticks):
    """The same with states of a dataclass."""

    def _state(self, sticks: int, player: int) -> Any:
        return Table(sticks, player)

    def _read(self, state: Any) -> tuple[int, int]:
        return state.sticks, state.player


class ArraySticks(Sticks):
    """The same with NumPy arrays, which have no hash and whose `==` gives no answer."""

    def _state(self, sticks: int, player: int) -> Any:
        return np.array([sticks, player])

    def _read(self, state: Any) -> tuple[int, int]:
        return int(state[0]), int(state[1])


class ListSticks(Sticks):
    """The same with lists: a list given to `run` is many states."""

    def _state(self, sticks: int, player: int) -> Any:
        return [sticks, player]


class NumberSticks(Sticks):
    """The same with one number, and NumPy's own numbers in every answer."""

    def _state(self, sticks: int, player: int) -> Any:
        return 2 * sticks + player

    def _read(self, state: Any) -> tuple[int, int]:
        return state // 2, state % 2

    def to_play(self, state: Any) -> Any:
        return np.int64(super().to_play(state))

    def legal_actions(self, state: Any) -> Any:
        return np.array(super().legal_actions(state), np.int16)

    def returns(self, state: Any) -> Any:
        return np.array(super().returns(state), np.float16)


class NamedSticks(Sticks):
    """The same, shown in two named parts."""

    observation = {"sticks": (1, 1), "player": (1,)}  # noqa: RUF012

    def observe(self, state: Any) -> Any:
        sticks, player = self._read(state)
        # As lists, in another order, of another type: all of that is put right.
        return {"player": [player / 9], "sticks": np.array([[sticks / 9]], np.float64)}


class LazySticks(Sticks):
    """The same with iterators where sequences are expected, and views of larger arrays as observations."""

    def legal_actions(self, state: Any) -> Any:
        return iter(super().legal_actions(state))

    def observe(self, state: Any) -> Any:
        return np.repeat(super().observe(state), 2)[::2]


KINDS = (Sticks, TableSticks, ArraySticks, ListSticks, NumberSticks, NamedSticks, LazySticks)


@pytest.mark.parametrize("cache_memory", [None, 1 << 20])
@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.__name__)
def test_what_a_state_is_does_not_matter(kind: type[Sticks], cache_memory: int | None):
    """The same rules with other states: the same search, through advance and back to the start."""
    config = SearchConfig(num_simulations=60, leaves_per_tree=3, dirichlet_fraction=0.25, cache_memory=cache_memory)
    searches = [(made, Search(made, HashEvaluator(1), config)) for made in (Sticks(), kind())]
    for turn in range(4):
        results = [search.run([game.initial_state()] if turn == 0 else None)[0] for game, search in searches]
        assert results[0].visits.tolist() == results[1].visits.tolist()
        assert results[0].q.tolist() == results[1].q.tolist()
        for _, search in searches:
            search.advance([results[0].best_action])
        states = [game._read(search.states[0]) for game, search in searches]
        assert tuple(states[0]) == tuple(states[1])


def test_a_list_is_many_and_anything_else_is_one():
    game = Sticks()
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=10))
    assert search.run((9, 0)).visits.sum() == 10
    results = search.run([(9, 0), (4, 1), (1, 0)])
    assert [result.state for result in results] == [(9, 0), (4, 1), (1, 0)]
    assert search.states == [(9, 0), (4, 1), (1, 0)]
    with pytest.raises(SearchError, match="empty"):
        search.run([])
    lists = ListSticks()
    search = Search(lists, UniformEvaluator(), SearchConfig(num_simulations=10))
    assert [result.state for result in search.run([[9, 0], [4, 1]])] == [[9, 0], [4, 1]]
    arrays = ArraySticks()
    search = Search(arrays, UniformEvaluator(), SearchConfig(num_simulations=10))
    assert search.run(np.array([9, 0])).visits.sum() == 10
    assert len(search.run([np.array([9, 0]), np.array([8, 1])])) == 2


def test_results_speak_the_games_own_language():
    game = Sticks()
    result = Search(game, UniformEvaluator(), SearchConfig(num_simulations=200)).run((4, 1))
    assert result.game is game and result.state == (4, 1)
    assert result.best_action == 0, "three are left, and whoever must move from a multiple of three loses"
    assert result.table().startswith("move   visits")
    assert repr(result).startswith("<SearchResult: best 0, value")


def test_states_of_the_core_and_of_the_class_may_both_be_given():
    game = Sticks()
    core = as_core_game(game)
    assert as_core_game(core) is core
    assert isinstance(core, PythonGame) and core.rules is game
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=10))
    assert search.run(core.initial_state()).state == (9, 0), "the same rules, wrapped twice"
    wrapped = Search(core, UniformEvaluator(), SearchConfig(num_simulations=10))
    assert wrapped.run(core.initial_state()).state == core.initial_state()
    assert wrapped.states == [core.initial_state()]
    with pytest.raises(GameError, match="not a state"):
        wrapped.run([(9, 0)])
    with pytest.raises(GameError, match="is not a state of Sticks"):
        search.run([windrow.make_game("connect4").initial_state()])


# --- The wrapped game --------------------------------------------------------------------------------------------


class Spoken(Sticks):
    """With everything that is optional."""

    name = "spoken sticks"
    max_legal_actions = 2

    def hash(self, state: Any) -> int:
        return hash(state) * 3**90 - 5

    def render(self, state: Any) -> str:
        return f"{'|' * state[0]}\n{state[1]} to move"

    def action_name(self, action: int) -> str:
        return ("one", "two")[action]

    def symmetries(self) -> list[Symmetry]:
        same = np.arange(2, dtype=np.int32)
        return [Symmetry(same, same), Symmetry(same, same[::-1])]


def test_words_of_a_game():
    game = as_core_game(Spoken())
    state = game.state_from_moves("one two, one")
    assert state.data == (5, 1)
    assert game.moves_to_text([0, 1, 0]) == "one two one"
    assert str(state) == "|||||\n1 to move"
    assert repr(game) == "spoken sticks()" and repr(state) == "<State of spoken sticks(): 1 to move>"
    assert game.parse_action("two") == 1
    for word in ("three", "on", ""):
        with pytest.raises(IllegalMoveError, match="names run from one to two"):
            game.parse_action(word)
    with pytest.raises(IllegalMoveError, match=r"move 3, 'three' at character 9 of 'one two three'"):
        game.state_from_moves("one two three")
    plain = as_core_game(Sticks())
    assert plain.state_from_moves("0 1").data == plain.state_from_moves([0, 1]).data == (6, 0)
    assert str(plain.initial_state()) == "(9, 0)"
    with pytest.raises(IllegalMoveError, match=r"action 1 is not legal here\.\nLegal moves: 0"):
        plain.apply(State(plain, (1, 0)), 1)
    with pytest.raises(IllegalMoveError, match="the game is over"):
        plain.apply(State(plain, (0, 0)), 0)


def test_facts_of_a_game():
    game = as_core_game(Spoken())
    assert (game.num_players, game.num_actions, game.num_values, game.chance) == (2, 2, 1, "none")
    assert game.observation == (2,) and game.observation_shapes == {"observation": (2,)}
    assert as_core_game(NamedSticks()).observation == {"sticks": (1, 1), "player": (1,)}
    assert len(game.symmetries()) == 2 and len(as_core_game(Sticks()).symmetries()) == 1
    # Positive and negative numbers of any length are cut to 128 bits, by Python and by the core alike.
    assert 0 <= game.hash(game.initial_state()) < 2**128
    named = as_core_game(NamedSticks())
    parts = named.observe(named.initial_state())
    assert {part: array.dtype for part, array in parts.items()} == {"sticks": np.float32, "player": np.float32}


def test_games_are_equal_if_their_rules_are():
    game = Sticks()
    assert as_core_game(game) == as_core_game(game)
    assert hash(as_core_game(game)) == hash(as_core_game(Sticks()))
    assert as_core_game(game) != as_core_game(Sticks()), "nobody can tell whether two objects have the same rules"
    assert as_core_game(game) != windrow.make_game("connect4")
    copy = pickle.loads(pickle.dumps(as_core_game(Sticks())))
    assert copy.initial_state().data == (9, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"apply": None}, r"is not a game: it has no apply\. docs/your-own-game\.md shows"),
        ({"num_players": 0}, r"Sticks\.num_players must be from 1 to 16, not 0"),
        ({"num_actions": 2.0}, r"Sticks\.num_actions must be an integer, not 2\.0"),
        ({"num_actions": 70_000}, r"Sticks\.num_actions must be from 1 to 65535, not 70000"),
        ({"max_legal_actions": 3}, r"Sticks\.max_legal_actions must be from 1 to 2, not 3"),
        ({"observation": 4}, r"Sticks\.observation must be a shape such as \(2, 6, 7\), or named shapes, not 4"),
        ({"observation": ()}, r"observation must have sizes of 1 and more, not \(\)"),
        ({"observation": (2, 0)}, r"observation must have sizes of 1 and more, not \(2, 0\)"),
        ({"observation": {}}, r"observation has no parts"),
        ({"observation": {"board": 3}}, r"observation must be a shape"),
        (
            {"chance_outcomes": lambda state: [], "sample_outcome": lambda state, seed: 0},
            r"has chance_outcomes and sample_outcome: one of them is enough",
        ),
        (
            {"symmetries": lambda: [Symmetry(np.zeros(2, np.int32), np.arange(2, dtype=np.int32))]},
            r"symmetry 0 has .* no permutation of 2 numbers",
        ),
        (
            {"symmetries": lambda: [Symmetry(np.array([1, 0], np.int32), np.arange(2, dtype=np.int32))]},
            r"the first symmetry must be the identity",
        ),
    ],
)
def test_what_is_no_game(changes: dict[str, Any], message: str):
    game = Sticks()
    for name, value in changes.items():
        setattr(game, name, value)
    with pytest.raises(GameError, match=message):
        Search(game, UniformEvaluator())


def test_a_class_is_no_game():
    with pytest.raises(GameError, match=r"a game is needed, not a class: write Sticks\(\)"):
        Search(Sticks, UniformEvaluator())
    with pytest.raises(GameError, match=r"7 is not a game: it has no initial_state, to_play"):
        Search(7, UniformEvaluator())


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
        if search._forest is None:  # it came while the roots were looked at
            search.run(roots)
        else:
            assert search._forest.num_batches_out == 0
            assert [search._forest.num_in_flight(tree) for tree in range(2)] == [0, 0]
            search.run()
        assert all(result.visits.sum() >= 80 for result in search.run())


def test_an_interrupt_from_the_keyboard():
    """The signal itself, sent while a search without end is in Python code; then the search goes on."""
    program = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from test_python_game import Sticks
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
    print("interrupted", search._forest.num_in_flight(0), int(search.run(num_simulations=50).visits.sum() >= 50))
"""
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", program.format(folder=folder)], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.stdout.split() == ["interrupted", "0", "1"], done.stderr


# --- Threads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False], ids=["one game", "a game each"])
def test_searches_in_several_threads(shared: bool):
    """Each thread has its own search; games, evaluators and caches may be the same. All find what one alone finds."""
    config = SearchConfig(num_simulations=150, leaves_per_tree=2, dirichlet_fraction=0.25)
    positions = [(sticks, 0) for sticks in range(20, 32)]
    alone = [result.visits.tolist() for result in Search(Sticks(), HashEvaluator(1), config).run(positions)]
    game = as_core_game(Sticks())
    cache, evaluator = PredictionCache(1 << 20), HashEvaluator(1)
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        if shared:
            search = Search(game, evaluator, config, cache=cache)
            states = [State(game, position) for position in positions]
        else:
            search, states = Search(Sticks(), HashEvaluator(1), config), positions
        found[number] = [result.visits.tolist() for result in search.run(states)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert found == dict.fromkeys(range(5), alone)


def test_errors_in_several_threads_are_not_mixed_up():
    """One game, four threads, four different mistakes: each thread is told of its own."""

    class Mistaken(Sticks):
        def apply(self, state: Any, action: int) -> Any:
            if state[0] == 6:
                raise ValueError(threading.current_thread().name)
            return super().apply(state, action)

    game = as_core_game(Mistaken())
    wrong: list[Any] = []
    told: list[str] = []

    def fail(name: str) -> None:
        try:
            Search(game, HashEvaluator(1), SearchConfig(num_simulations=100)).run(game.initial_state())
        except GameError as error:
            told.append(name)
            if str(error.__cause__) != name or name not in str(error):
                wrong.append((name, str(error), error.__cause__))

    def work() -> None:
        for _ in range(60):
            fail(threading.current_thread().name)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, name=f"worker-{number}-") for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert wrong == []
    assert len(told) == 240


def test_python_goes_on_beside_a_search():
    """A search in a thread leaves the interpreter to others, and `stop` from the main thread ends it."""
    game = Sticks()
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=50_000_000))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(search.run((60, 0))))
    thread.start()
    while not search._is_running:
        pass
    counted = sum(1 for _ in range(200_000))  # ordinary Python, many switches long
    with pytest.raises(SearchError, match="running"):
        search.run((60, 0))
    search.stop()
    thread.join(60)
    assert not thread.is_alive() and counted == 200_000
    assert results[0].stats.stopped_by == "stop"
    assert results[0].visits.sum() > 0


def test_a_game_may_stop_its_own_search_but_not_start_it():
    class Meddling(Sticks):
        search: Any = None
        caught: Any = None

        def apply(self, state: Any, action: int) -> Any:
            if self.search is not None and state[0] == 6 and self.caught is None:
                try:
                    self.search.run((9, 0))
                except SearchError as error:
                    self.caught = error
                self.search.stop()
            return super().apply(state, action)

    game = Meddling()
    game.search = search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=100_000))
    result = search.run((9, 0))
    assert result.stats.stopped_by == "stop"
    assert "running" in str(game.caught)
    game.search = None  # or the two would keep each other alive
