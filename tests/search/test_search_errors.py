"""Bad input: a typed error that names the thing, and a search that can still be used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from search_cases import Recorder, in_flight

import windrow
from windrow import (
    ConfigError,
    EvaluatorError,
    FinishedGameError,
    GameError,
    IllegalMoveError,
    Search,
    SearchConfig,
    SearchError,
    make_game,
)
from windrow.engines import Vectorized
from windrow.evaluators import HashEvaluator, Synchronous, UniformEvaluator, from_function

GAME = make_game("connect4")


def search_with(fn: Any, **settings: Any) -> Search:
    """A Connect-4 search with a batched function as its evaluator."""
    settings = {"num_simulations": 20, "leaves_per_tree": 4, "engine": "batched", **settings}
    return Search(GAME, from_function(fn, batched=True), SearchConfig().with_settings(settings))


def zeros(observations: Any) -> tuple[Any, Any]:
    return np.zeros((len(observations), 7), np.float32), np.zeros(len(observations), np.float32)


# --- Positions ---------------------------------------------------------------------------------------------------


def test_an_illegal_move_string_names_the_move():
    with pytest.raises(IllegalMoveError, match=r"'4' at character 7 of '4444444'.*not legal"):
        GAME.state_from_moves("4444444")


def test_a_finished_root():
    """Four on top of each other: x has won."""
    over = GAME.state_from_moves("1212121")
    with pytest.raises(FinishedGameError, match="the game is over") as caught:
        Search(GAME, UniformEvaluator()).run(over)
    assert str(over) in str(caught.value)


def test_a_finished_root_among_others_is_numbered():
    over = GAME.state_from_moves("1212121")
    search = Search(GAME, UniformEvaluator())
    with pytest.raises(FinishedGameError, match="position 2"):
        search.run([GAME.initial_state(), GAME.initial_state(), over])
    assert isinstance(search.run(GAME.initial_state(), num_simulations=3), windrow.SearchResult)


def test_a_move_into_the_end_of_the_game():
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=5))
    search.run(GAME.state_from_moves("121212"))
    search.advance(0)
    with pytest.raises(FinishedGameError, match="the game is over"):
        search.run()
    with pytest.raises(IllegalMoveError, match="the game is over"):
        search.advance(0)
    assert search.run(GAME.initial_state()).visits.sum() == 5


@pytest.mark.parametrize(
    "stranger",
    [make_game("connect4", rows=5).initial_state(), make_game("tictactoe").initial_state()],
    ids=["other options", "other game"],
)
def test_a_state_of_another_game(stranger: Any):
    search = Search(GAME, UniformEvaluator())
    with pytest.raises(GameError, match="is not a state of connect4"):
        search.run(stranger)
    with pytest.raises(GameError, match="state 1 is not a state of connect4"):
        search.run([GAME.initial_state(), stranger])


@pytest.mark.parametrize("thing", ["4453", b"4453", [3, 4], [None]])
def test_something_that_is_not_a_state(thing: Any):
    with pytest.raises(GameError, match="is not a state"):
        Search(GAME, UniformEvaluator()).run(thing)


def test_a_number_instead_of_a_state():
    with pytest.raises(windrow.WindrowError, match="5"):
        Search(GAME, UniformEvaluator()).run(5)  # pyright: ignore


def test_no_state_at_all():
    with pytest.raises(SearchError, match="empty"):
        Search(GAME, UniformEvaluator()).run([])
    with pytest.raises(SearchError, match="no position yet"):
        Search(GAME, UniformEvaluator()).run()
    with pytest.raises(SearchError, match="no position yet"):
        Search(GAME, UniformEvaluator()).advance(3)


def test_a_game_that_is_none():
    with pytest.raises(GameError, match="make_game"):
        Search("connect4", UniformEvaluator())  # pyright: ignore


# --- Moves -------------------------------------------------------------------------------------------------------


def test_advance_with_the_wrong_number_of_actions():
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=2))
    search.run([GAME.initial_state()] * 3)
    with pytest.raises(SearchError, match="one action per tree: 3, not 2"):
        search.advance([1, 2])


def test_an_illegal_action_changes_no_tree():
    """All actions are tried before any tree moves: the legal one of the first tree is not played either."""
    full = GAME.state_from_moves("111111")
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=12))
    search.run([GAME.initial_state(), full])
    before = [search.node(tree=tree).actions.tolist() for tree in range(2)], search.states
    for actions in ([3, 0], [3, 7], [3, -1]):
        with pytest.raises(IllegalMoveError, match=f"action {actions[1]}"):
            search.advance(actions)
    assert ([search.node(tree=tree).actions.tolist() for tree in range(2)], search.states) == before
    assert [int(result.visits.sum()) for result in search.run(num_simulations=3)] == [15, 15]


# --- What an evaluator returns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda k: (np.zeros((k, 6)), np.zeros(k)), r"logits have shape \(1, 6\), not \(1, 7\)"),
        (lambda k: (np.zeros((k + 1, 7)), np.zeros(k)), r"logits have shape \(2, 7\), not \(1, 7\)"),
        (lambda k: (np.zeros(7), np.zeros(k)), r"logits have shape \(7,\), not \(1, 7\) .*batched=False"),
        (lambda k: (np.zeros((1, 1, 7)), np.zeros(k)), r"logits have shape \(1, 1, 7\), .*batched=True"),
        (lambda k: {"policy": np.zeros((k, 7)), "value": np.zeros(k)}, r"must return \(logits, values\), not dict"),
        (lambda k: (np.zeros((k, 7)), np.zeros((k, 3))), r"values have shape \(1, 3\), not \(1,\)"),
        (lambda k: (np.zeros((k, 7)), np.zeros(k + 1)), r"values have shape \(2,\), not \(1,\)"),
        (lambda k: (np.zeros((k, 7)), 0.0), r"values have shape \(\), not \(1,\)"),
        (lambda k: (np.zeros(k), np.zeros((k, 7))), r"logits have shape \(1,\), not \(1, 7\)"),
        (lambda k: np.zeros((k, 7)), r"must return \(logits, values\), not ndarray"),
        (lambda k: None, r"must return \(logits, values\), not NoneType"),
        (lambda k: (np.zeros((k, 7)), np.zeros(k), np.zeros(k)), r"must return \(logits, values\), not tuple"),
        (lambda k: ([["a"] * 7] * k, np.zeros(k)), "logits are not numbers"),
        (lambda k: (np.zeros((k, 7)), [None] * k), "value"),
    ],
)
@pytest.mark.parametrize("max_batch", [None, 2])
def test_answers_of_the_wrong_kind(answer: Any, message: str, max_batch: int | None):
    search = search_with(lambda observations: answer(len(observations)), max_batch=max_batch)
    with pytest.raises(EvaluatorError, match=message):
        search.run(GAME.initial_state())
    assert in_flight(search) == 0


def test_a_wrong_shape_in_a_batch_cut_into_pieces():
    """K = 4 and max_batch = 3: pieces of 3 and 1. The larger one comes back a row short."""

    def fn(observations: Any) -> tuple[Any, Any]:
        rows = {1: 1, 3: 2}[len(observations)]
        return np.zeros((rows, 7), np.float32), np.zeros(rows, np.float32)

    search = search_with(fn, max_batch=3)
    with pytest.raises(EvaluatorError, match="logits have shape"):
        search.run(GAME.initial_state())
    assert in_flight(search) == 0


def test_pieces_whose_errors_cancel_out():
    """Pieces of 3 and 1 answered with 2 and 2 rows: four in all, yet two of them belong to nobody."""
    sizes = iter([1, 2, 2])

    def fn(observations: Any) -> tuple[Any, Any]:
        rows = next(sizes)
        return np.zeros((rows, 7), np.float32), np.zeros(rows, np.float32)

    search = search_with(fn, max_batch=3, on_collision="skip", in_flight="loss")
    with pytest.raises(EvaluatorError, match="shape"):
        search.run(GAME.initial_state(), num_simulations=4)
    assert in_flight(search) == 0


@pytest.mark.parametrize(
    ("values_shape", "dtype"),
    [((), np.float64), ((1,), np.float32), ((), np.float16), ((1,), np.int32)],
)
def test_answers_that_are_welcome(values_shape: tuple[int, ...], dtype: Any):
    """[K] and [K, 1], any number type, lists."""

    def fn(observations: Any) -> tuple[Any, Any]:
        logits = [[0.0] * 7] * len(observations)
        return logits, np.zeros((len(observations), *values_shape), dtype)

    assert search_with(fn).run(GAME.initial_state()).visits.sum() == 20


def test_answers_that_are_not_contiguous():
    """Columns reversed in memory: the logit of action 6 is the largest."""

    def fn(observations: Any) -> tuple[Any, Any]:
        logits = np.tile(np.arange(7, dtype=np.float32)[::-1], (len(observations), 1))
        return logits[:, ::-1], np.zeros((len(observations), 2), np.float32)[:, 0]

    prior = search_with(fn).run(GAME.initial_state()).prior
    assert np.argsort(prior).tolist() == list(range(7))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("engine", ["batched", "vectorized"])
def test_a_logit_that_is_not_finite_says_where(bad: float, engine: str):
    """The message has the row, the tree, the moves that lead there, the action, and the position as text."""
    target = GAME.state_from_moves("43")
    row_of_target = GAME.observe(target).tobytes()

    def fn(observations: Any) -> tuple[Any, Any]:
        logits, values = zeros(observations)
        logits[:, 3] = 3.0  # so that the search looks at 4 first
        for row, observation in enumerate(observations):
            if observation.tobytes() == row_of_target:
                logits[row, 5] = bad
        return logits, values

    search = search_with(fn, engine=engine)
    with pytest.raises(EvaluatorError) as caught:
        search.run([GAME.state_from_moves("1122"), GAME.state_from_moves("4")], num_simulations=200)
    message = str(caught.value)
    assert "row " in message and "tree 1 after 3" in message and "legal action 5" in message
    assert str(bad) in message
    assert str(target) in message
    assert in_flight(search) == 0


def test_a_bad_logit_at_the_root():
    search = search_with(lambda observations: (np.full((1, 7), np.nan, np.float32), np.zeros(1, np.float32)))
    with pytest.raises(EvaluatorError, match=r"row 0: .*legal action 0 is -?nan \(tree 0, the root\)") as caught:
        search.run(GAME.initial_state())
    assert str(GAME.initial_state()) in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_of_illegal_actions_may_be_anything(bad: float):
    """People mask with -inf; column 1 is full in the position searched and in all that follow."""

    def fn(observations: Any) -> tuple[Any, Any]:
        logits, values = zeros(observations)
        logits[:, 0] = bad
        return logits, values

    result = search_with(fn).run(GAME.state_from_moves("111111"))
    assert result.prior[0] == 0.0 == result.visits[0]
    assert result.prior[1:].tolist() == pytest.approx([1 / 6] * 6)
    assert result.visits.sum() == 20


JUST_ABOVE_1 = float(np.nextafter(np.float32(1.0), np.float32(2.0)))


@pytest.mark.parametrize("bad", [1.5, -2.0, np.nan, np.inf, 1.0078, 1.005, JUST_ABOVE_1, -JUST_ABOVE_1])
def test_a_value_out_of_range_says_where(bad: float):
    def fn(observations: Any) -> tuple[Any, Any]:
        logits, values = zeros(observations)
        if len(observations) > 1:
            values[1] = bad
        return logits, values

    search = search_with(fn)
    with pytest.raises(
        EvaluatorError, match=r"row 1: the value is .* not a number in \[-1, 1\](: end .* tanh)? \(tree 0 after 2\)"
    ) as caught:
        search.run(GAME.initial_state())
    assert ("tanh" in str(caught.value)) == (not np.isnan(bad))
    assert str(GAME.state_from_moves("2")) in str(caught.value)
    assert in_flight(search) == 0


def test_a_value_just_above_1_is_spelled_out():
    """The message must not say that 1.000000 is not a number in [-1, 1]."""
    search = search_with(lambda observations: (zeros(observations)[0], np.full(len(observations), JUST_ABOVE_1)))
    with pytest.raises(EvaluatorError, match=r"the value is 1\.00000012, not a number in \[-1, 1\]"):
        search.run(GAME.initial_state())


@pytest.mark.parametrize("bound", [1.0, -1.0])
def test_the_bounds_themselves_are_values(bound: float):
    search = search_with(lambda observations: (zeros(observations)[0], np.full(len(observations), bound)))
    assert search.run(GAME.initial_state()).visits.sum() == 20


def test_an_error_of_our_own_kind_is_not_its_own_cause():
    """An EvaluatorError raised by the evaluator goes through as it is; a loop of causes would hang a log writer."""
    error = EvaluatorError("no weights yet")

    def fn(observations: Any) -> tuple[Any, Any]:
        raise error

    with pytest.raises(EvaluatorError, match="no weights yet") as caught:
        search_with(fn).run(GAME.initial_state())
    assert caught.value.__cause__ is not caught.value


def test_the_length_of_named_observations():
    azul = make_game("azul")
    state = azul.apply(azul.initial_state(), azul.sample_outcome(azul.initial_state(), seed=1))

    def fn(observations: Any) -> tuple[Any, Any]:
        return np.zeros((len(observations), azul.num_actions)), np.zeros(len(observations))

    with pytest.raises(EvaluatorError, match=r"a mapping of board, flat to arrays"):
        Search(azul, from_function(fn, batched=True)).run(state)


def test_probabilities_instead_of_logits_are_suspected_once():
    def fn(observations: Any) -> tuple[Any, Any]:
        return np.tile(np.float32([0.4, *[0.1] * 6]), (len(observations), 1)), np.zeros(len(observations))

    search = search_with(fn)
    with pytest.warns(UserWarning, match="look like probabilities"):
        search.run(GAME.initial_state())
    search.run(GAME.initial_state())


def test_a_row_that_looks_like_probabilities_by_chance_is_not_suspected():
    """The root's may: with two actions, one in a thousand of what `HashEvaluator` says does."""
    num_rows = 0

    def fn(observations: Any) -> tuple[Any, Any]:
        nonlocal num_rows
        rows = np.tile(np.float32([0.4, *[0.1] * 6]), (len(observations), 1))
        rows[max(0, 3 - num_rows) :, 0] = 2.0
        num_rows += len(rows)
        return rows, np.zeros(len(rows))

    search_with(fn).run(GAME.initial_state())
    assert num_rows > 9


def test_logits_that_sum_to_one_are_not_suspected():
    one_hot = np.eye(7, dtype=np.float32)[:1]
    search_with(lambda observations: (one_hot.repeat(len(observations), 0), np.zeros(len(observations)))).run(
        GAME.initial_state()
    )


@pytest.mark.parametrize("thing", [None, 42, lambda observations: None, "uniform", UniformEvaluator, HashEvaluator])
def test_something_that_is_not_an_evaluator(thing: Any):
    """A function, a number, a class instead of an instance: said at once, not in the first batch."""
    with pytest.raises(ConfigError, match="evaluator"):
        Search(GAME, thing)


def test_a_base_without_evaluate():
    with pytest.raises(EvaluatorError, match="must define the method evaluate"):
        Search(GAME, Synchronous()).run(GAME.initial_state())


def test_a_config_that_is_none():
    with pytest.raises(windrow.WindrowError, match="SearchConfig"):
        Search(GAME, UniformEvaluator(), {"num_simulations": 5})  # pyright: ignore


# --- Use at the wrong time ---------------------------------------------------------------------------------------


def test_use_after_close():
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=2))
    search.run(GAME.initial_state())
    search.close()
    search.close()
    for use in (
        search.run,
        lambda: search.run(GAME.initial_state()),
        lambda: search.advance(1),
        lambda: next(search.stream()),
    ):
        with pytest.raises(SearchError, match="closed"):
            use()


def test_a_with_block_closes():
    with Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=2)) as search:
        search.run(GAME.initial_state())
    with pytest.raises(SearchError, match="closed"):
        search.run()


def test_closing_ends_the_threads():
    def num_threads() -> int:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))

    before = num_threads()
    search = Search(GAME, UniformEvaluator(), SearchConfig(engine=Vectorized(num_threads=5), num_simulations=2))
    search.run([GAME.initial_state()] * 20)
    assert num_threads() == before + 4
    search.close()
    assert num_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("is_used", [True, False])
def test_a_fork_has_the_search_without_its_threads(is_used: bool):
    """In a process of its own, where nothing else has threads; the child would wait for ever for those it has not."""
    script = f"""
import os, signal, time, windrow
game = windrow.make_game("connect4")
config = windrow.SearchConfig(num_simulations=50, engine=windrow.engines.Vectorized(num_threads=3))
search = windrow.Search(game, windrow.evaluators.UniformEvaluator(), config)
states = [game.initial_state()] * 40
search.run(states)
time.sleep(0.01)  # the threads have gone to sleep
child = os.fork()
if child == 0:
    signal.alarm(20)
    is_right = not {is_used} or search.run(states)[39].visits.sum() == 50
    search.close()
    os._exit(0 if is_right else 1)
assert os.waitpid(child, 0)[1] == 0
assert search.run(states)[39].visits.sum() == 50
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)


def test_running_twice_at_once():
    """A second run from another thread is refused while the first one waits for its evaluator."""
    entered, leave = threading.Event(), threading.Event()

    def wait(call: int) -> None:
        entered.set()
        leave.wait(30)

    search = Search(GAME, Recorder(UniformEvaluator(), wait), SearchConfig(num_simulations=3))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(search.run(GAME.initial_state())))
    thread.start()
    assert entered.wait(30)
    try:
        for use in (search.run, lambda: search.run(GAME.initial_state()), lambda: search.advance(0)):
            with pytest.raises(SearchError, match="running"):
                use()
    finally:
        leave.set()
        thread.join()
    assert results[0].visits.sum() == 3


def test_running_while_a_stream_is_open():
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=50))
    stream = search.stream(GAME.initial_state(), interval_s=0.0)
    next(stream)
    with pytest.raises(SearchError, match="running"):
        search.run(GAME.initial_state())
    stream.close()
    assert search.run(GAME.initial_state()).visits.sum() == 50


def test_a_run_from_inside_the_evaluator():
    search: Search

    def fn(observations: Any) -> tuple[Any, Any]:
        search.run(GAME.initial_state())
        return zeros(observations)

    search = search_with(fn)
    with pytest.raises(EvaluatorError, match="SearchError") as caught:
        search.run(GAME.initial_state())
    assert isinstance(caught.value.__cause__, SearchError)
    assert in_flight(search) == 0


@pytest.mark.parametrize(
    "changes", [{"num_simulations": -1}, {"num_simulations": True}, {"time_limit_s": float("nan")}]
)
def test_a_run_with_impossible_limits(changes: dict[str, Any]):
    search = Search(GAME, UniformEvaluator())
    with pytest.raises(ConfigError, match=next(iter(changes))):
        search.run(GAME.initial_state(), **changes)
    assert search.run(GAME.initial_state(), num_simulations=4).visits.sum() == 4


@pytest.mark.parametrize("interval_s", [-1.0, float("nan")])
def test_a_stream_with_an_impossible_interval(interval_s: float):
    search = Search(GAME, UniformEvaluator())
    with pytest.raises(ConfigError, match="interval_s"):
        search.stream(GAME.initial_state(), interval_s=interval_s)
    assert search.run(GAME.initial_state(), num_simulations=4).visits.sum() == 4
