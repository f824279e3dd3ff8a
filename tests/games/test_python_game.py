"""Games written as plain Python classes: any states, any threads, and nothing that outlives its search."""

from __future__ import annotations

import pickle
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sticks import Sticks

import windrow
from windrow import GameError, IllegalMoveError, PredictionCache, Search, SearchConfig, SearchError
from windrow.evaluators import HashEvaluator, UniformEvaluator
from windrow.games import State, Symmetry
from windrow.games.python_game import PythonGame, as_core_game
from windrow.train import SelfPlay

# --- States of every kind ----------------------------------------------------------------------------------------


@dataclass
class Table:
    """A state that can be changed and so has no hash."""

    sticks: int
    player: int


class ChangingSticks(Sticks):
    """Its `apply` changes the state that it is given."""

    def _state(self, sticks: int, player: int) -> Any:
        return [sticks, player]

    def apply(self, state: Any, action: int) -> Any:
        state[:] = state[0] - action - 1, 1 - state[1]
        return state


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


def test_states_that_are_changed_in_place_are_refused():
    game = ChangingSticks()
    with pytest.raises(GameError, match=r"apply changes the state that it is given\. It must return a new state"):
        Search(game, UniformEvaluator()).run([game.initial_state()])
    with pytest.raises(GameError, match=r"apply changes the state that it is given"):
        SelfPlay(game, UniformEvaluator(), SearchConfig(num_simulations=4))


def test_one_state_that_is_a_list():
    game = ChangingSticks()
    with pytest.raises(GameError, match=r"are themselves lists: write run\(\[state\]\)"):
        Search(game, UniformEvaluator()).run(game.initial_state())


def test_the_name_of_a_game_is_not_a_game():
    with pytest.raises(GameError, match=r"write windrow\.make_game\('connect4'\)"):
        Search("connect4", UniformEvaluator())


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
            r"has both chance_outcomes and sample_outcome: keep only one of them",
        ),
        (
            {"symmetries": lambda: [Symmetry(np.zeros(2, np.int32), np.arange(2, dtype=np.int32))]},
            r"symmetry 0 has .* no permutation of 0 to 1",
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
    with pytest.raises(GameError, match=r"a game must be an object, not a class: write Sticks\(\)"):
        Search(Sticks, UniformEvaluator())
    with pytest.raises(GameError, match=r"7 is not a game: it has no initial_state, to_play"):
        Search(7, UniformEvaluator())


# --- Threads -----------------------------------------------------------------------------------------------------


def run_together(threads: list[threading.Thread], *, switch_s: float) -> None:
    """Run threads that hand over the interpreter that often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(switch_s)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)


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

    run_together([threading.Thread(target=work, args=(number,)) for number in range(5)], switch_s=1e-5)
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

    run_together([threading.Thread(target=work, name=f"worker-{number}-") for number in range(4)], switch_s=1e-6)
    assert wrong == []
    assert len(told) == 240


def test_python_goes_on_beside_a_search():
    """A search in a thread leaves the interpreter to others, and `stop` from the main thread ends it."""
    num_moves, is_searching = 0, threading.Event()

    class Counting(Sticks):
        def apply(self, state: Any, action: int) -> Any:
            nonlocal num_moves
            num_moves += 1
            if num_moves == 1000:
                is_searching.set()
            return super().apply(state, action)

    search = Search(Counting(), UniformEvaluator(), SearchConfig(num_simulations=50_000_000))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(search.run((60, 0))))
    thread.start()
    assert is_searching.wait(60)
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
