"""The multiprocess engine gives what the vectorized one gives, for any number of workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from multiprocess_games import Unpicklable, num_open_files, workers_of
from search_cases import check_invariants, in_flight, linear_evaluator, random_position, snapshot
from toy_games import PlainTicTacToe, Reroll, TakeAway

from windrow import ConfigError, GameError, PredictionCache, Search, SearchConfig, SearchError, evaluators, make_game
from windrow.engines import Multiprocess, Vectorized
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator
from windrow.games.python_game import as_core_game

NOISE = {"dirichlet_fraction": 0.25, "dirichlet_alpha": 0.5}


def compare(got: list[Any], want: list[Any]) -> None:
    """Fail unless all results are the same, bit for bit."""
    assert len(got) == len(want)
    for tree, (one, other) in enumerate(zip(got, want, strict=True)):
        for name in ("visits", "prior", "q", "player_values", "improved_policy"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert (mine is None) == (theirs is None)
            assert mine is None or mine.tobytes() == theirs.tobytes(), (tree, name)
        for name in ("value", "principal_variation", "chosen_action", "random_key", "best_action"):
            assert getattr(one, name) == getattr(other, name), (tree, name)
        assert one.sample_action() == other.sample_action()
    for name in ("simulations", "evaluations", "collisions", "terminal_hits", "max_depth", "nodes", "stopped_by"):
        assert getattr(got[0].stats, name) == getattr(want[0].stats, name), name


GAMES = {
    "connect4": lambda: make_game("connect4"),
    "pig": lambda: make_game("pig", target=20),
    "backgammon": lambda: make_game("backgammon"),
    "azul": lambda: make_game("azul"),
    "plain tictactoe": lambda: as_core_game(PlainTicTacToe()),
    "three players": lambda: as_core_game(TakeAway(9)),
    "sampled chance": lambda: as_core_game(Reroll()),
}


def test_closing_a_search_that_runs() -> None:
    """It ends soon, with what it has found so far; then the workers go."""
    game = make_game("connect4")
    inner = HashEvaluator(1).bind(game)
    num_calls = 0

    def close_later(observations: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        if num_calls == 3:
            search.close()
        return inner.evaluate(observations)

    config = SearchConfig(num_simulations=100_000, engine=Multiprocess(num_workers=2))
    search = Search(game, evaluators.from_function(close_later, batched=True), config)
    results = search.run([game.initial_state()] * 4)
    assert results[0].stats.stopped_by == "stop"
    assert len(results[0].stats.workers) == 2
    assert workers_of(os.getpid()) == []
    with pytest.raises(SearchError, match="closed"):
        search.run()


def test_a_round_much_larger_than_a_call() -> None:
    """The evaluator is called with one row at a time, but a worker asks about its round of a hundred at once."""
    game = make_game("gomoku", size=12)
    config = SearchConfig(num_simulations=300, leaves_per_tree=100, engine=Vectorized(max_batch=1))
    with Search(game, UniformEvaluator(), config) as plain:
        want = plain.run([game.initial_state()] * 2)
    with Search(game, UniformEvaluator(), config.replace(engine=Multiprocess(num_workers=1, max_batch=1))) as search:
        got = search.run([game.initial_state()] * 2)
        compare(got, want)
        assert got[0].stats.nn_batches == got[0].stats.nn_positions == want[0].stats.nn_positions


@pytest.mark.parametrize(
    ("name", "num_leaves"), [*((name, 4) for name in GAMES), ("connect4", 1), ("plain tictactoe", 1), ("pig", 1)]
)
def test_workers_change_nothing(name: str, num_leaves: int) -> None:
    """1, 2 and 4 workers; noise; and a second search that uses what is below a move."""
    game = GAMES[name]()
    states = [random_position(game, tree % 3, seed=tree) for tree in range(6)]
    config = SearchConfig(num_simulations=60, engine="vectorized", leaves_per_tree=num_leaves, seed=5).with_settings(
        NOISE
    )
    evaluator = HashEvaluator(3)
    with Search(game, evaluator, config) as plain:
        first = plain.run(states)
        trees = [snapshot(plain, tree) for tree in (0, 5)]
        moves = [result.best_action for result in first]
        after = [game.apply(state, move) for state, move in zip(states, moves, strict=True)]
        goes_on = all(game.to_play(state) >= 0 for state in after)
        if goes_on:
            plain.advance(moves)
            second = plain.run(num_simulations=40)
    for num_workers in (1, 2, 4):
        with Search(game, evaluator, config.replace(engine=Multiprocess(num_workers=num_workers))) as search:
            compare(search.run(states), first)
            assert search.stats is not None and search.stats.num_workers == num_workers
            if num_workers == 2:
                assert [snapshot(search, tree) for tree in (0, 5)] == trees
                check_invariants(search, 3)
            if goes_on:
                search.advance(moves)
                compare(search.run(num_simulations=40), second)
            assert in_flight(search) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"root": "gumbel", "gumbel_scale": 1.0},
        {"cache_memory": 1 << 20, **NOISE},
        {"random_key": "position", **NOISE},
        {"pipeline": 1, "max_batch": 3, **NOISE},
        {"pipeline": 3, "max_wait_ms": 0.0, "in_flight": "loss", "on_collision": "skip", "leaves_per_tree": 3, **NOISE},
        {"max_wait_ms": 50.0, "max_depth": 3, "first_play": "parent", **NOISE},
    ],
    ids=str,
)
def test_settings_mean_the_same(settings: dict[str, Any]) -> None:
    game = make_game("connect4")
    states = [random_position(game, 2 * tree, seed=tree) for tree in range(7)]
    config = SearchConfig(num_simulations=50, engine=Multiprocess(num_workers=3)).with_settings(settings)
    with Search(game, HashEvaluator(1), config.replace(engine="vectorized")) as plain:
        want = plain.run(states)
    with Search(game, HashEvaluator(1), config) as search:
        compare(search.run(states), want)


def test_evaluators_of_other_kinds() -> None:
    """One that takes states works in the workers; one that reads nothing is shown nothing; floats are not rounded."""
    game = make_game("connect4")
    states = [random_position(game, tree, seed=tree) for tree in range(4)]
    config = SearchConfig(num_simulations=40, engine="vectorized").with_settings(NOISE)
    for evaluator in (RolloutEvaluator(2, seed=7), UniformEvaluator(), linear_evaluator(game)):
        with (
            Search(game, evaluator, config) as plain,
            Search(game, evaluator, config.replace(engine=Multiprocess(num_workers=2))) as search,
        ):
            compare(search.run(states), plain.run(states))
            assert search.stats is not None and search.stats.nn_positions == search.stats.evaluations


def test_workers_stay_and_take_other_trees() -> None:
    """The same processes search one position, then many, then fewer than there are workers."""
    game = make_game("tictactoe")
    plain = Search(game, HashEvaluator(2), SearchConfig(num_simulations=30, engine="vectorized").with_settings(NOISE))
    config = SearchConfig(num_simulations=30, engine=Multiprocess(num_workers=2)).with_settings(NOISE)
    with plain, Search(game, HashEvaluator(2), config) as search:
        compare([search.run(game.initial_state())], [plain.run(game.initial_state())])
        pids: set[int] = set()
        for count in (5, 2, 40, 1):
            states = [game.initial_state()] * count
            compare(search.run(states), plain.run(states))
            assert search.stats is not None
            pids |= {worker.pid for worker in search.stats.workers}
        assert len(pids) == 2
        assert search.line_after(search.run(states)[0].best_action) == plain.line_after(
            plain.run(states)[0].best_action
        )


def test_stream_stop_and_time() -> None:
    game = make_game("connect4")
    states = [game.initial_state()] * 4
    config = SearchConfig(num_simulations=None, time_limit_s=60.0, engine=Multiprocess(num_workers=2))
    with Search(game, HashEvaluator(2), config) as search:
        num_partial = 0
        for results in search.stream(states, interval_s=0.02):
            stats = results[0].stats
            if stats.stopped_by == "running":
                num_partial += 1
                assert sum(int(result.visits.sum()) for result in results) == stats.simulations
                if num_partial == 3:
                    search.stop()
        assert num_partial >= 3 and stats.stopped_by == "stop"
        assert in_flight(search) == 0
        assert search.run(states, time_limit_s=0.05)[0].stats.stopped_by == "time"
        # Leaving a stream ends it; the search goes on from there.
        results = next(iter(search.stream(states, interval_s=0.0)))
        before = int(results[0].visits.sum())
        after = search.run(num_simulations=10, time_limit_s=60.0)
        assert int(after[0].visits.sum()) >= before + 10
        assert in_flight(search) == 0


def test_one_root_on_many_trees() -> None:
    """Root-parallel: the budget is divided, the noise differs, visits are added, and workers change nothing."""
    game = make_game("connect4")
    config = SearchConfig(num_simulations=101, engine="vectorized", trees_per_root=4).with_settings(NOISE)
    states = [game.initial_state(), game.state_from_moves("44")]
    with Search(game, HashEvaluator(1), config) as plain:
        want = plain.run(states)
        assert [int(result.visits.sum()) for result in want] == [101, 101]
        assert want[0].stats.num_trees == 8
        roots = plain.engine.roots()
        visits, qs = roots.visits, roots.qs
        assert (want[1].visits == visits[4:].sum(axis=0)).all()
        assert len({row.tobytes() for row in visits[:4]}) > 1  # noise of their own
        total = (qs[:4].astype(np.float64) * visits[:4]).sum(axis=0)
        np.testing.assert_allclose(want[0].q * want[0].visits, total, atol=1e-4)
        plain.advance([want[0].best_action, want[1].best_action])
        again = plain.run()
    with Search(game, HashEvaluator(1), config.replace(engine=Multiprocess(num_workers=3))) as search:
        compare(search.run(states), want)
        assert search.line_after(want[0].best_action)[:1] == [want[0].best_action]
        search.advance([want[0].best_action, want[1].best_action])
        compare(search.run(), again)
    with pytest.raises(ConfigError, match="without noise all trees of a root are equal"):
        Search(game, HashEvaluator(1), SearchConfig(trees_per_root=2))
    with pytest.raises(ConfigError, match="trees_per_root=1"):
        SearchConfig(trees_per_root=2, root="gumbel")


def test_stats_say_what_workers_waited_for() -> None:
    game = make_game("connect4")
    config = SearchConfig(num_simulations=50, engine=Multiprocess(num_workers=2))
    with Search(game, HashEvaluator(1), config) as search:
        for _ in range(2):  # the second has counts of its own
            stats = search.run([game.initial_state()] * 6)[0].stats
            assert len(stats.workers) == 2 and stats.restarts == 0
            assert [worker.simulations for worker in stats.workers] == [150, 150]
            assert sum(worker.rows for worker in stats.workers) == stats.nn_positions == stats.evaluations
            assert 0 < stats.batch_fill <= 1 and 0 < stats.queue_depth <= stats.max_queue_depth <= 6
            for worker in stats.workers:
                assert worker.requests > 0 and worker.inference_s > 0 and worker.wait_s > 0 and worker.transport_s > 0


def test_what_cannot_be_is_refused() -> None:
    game = make_game("tictactoe")
    config = SearchConfig(engine=Multiprocess(num_workers=1))
    with pytest.raises(ConfigError, match="does not support a cache that other searches share: set cache_memory"):
        Search(game, HashEvaluator(1), config, cache=PredictionCache(1 << 20))

    class Local:
        def evaluate_states(self, states: Any) -> Any:
            return states

    with pytest.raises(ConfigError, match="takes states, which do not leave the workers"):
        Search(game, Local(), config)
    before = num_open_files()
    with (
        Search(Unpicklable(), HashEvaluator(1), config) as search,
        pytest.raises(GameError, match="cannot be sent to worker processes"),
    ):
        search.run("." * 9)
    assert num_open_files() == before
    with Search(game, HashEvaluator(1), config) as search:
        search.run(game.initial_state(), num_simulations=5)
    search.close()
    with pytest.raises(SearchError, match="closed"):
        search.run(game.initial_state())


def test_forgotten_search_leaves_no_worker() -> None:
    game = make_game("tictactoe")
    search = Search(game, HashEvaluator(1), SearchConfig(engine=Multiprocess(num_workers=2), num_simulations=5))
    result = search.run([game.initial_state()] * 2)
    pids = {worker.pid for worker in result[0].stats.workers}
    del search, result
    assert not pids & set(workers_of(os.getpid()))


SCRIPT = """
import sys
from windrow import Search, SearchConfig
from windrow.engines import Multiprocess
from windrow.evaluators import HashEvaluator
from toy_games import PlainTicTacToe

class Mine(PlainTicTacToe):
    pass

def main():
    config = SearchConfig(engine=Multiprocess(num_workers=2), num_simulations=20, dirichlet_fraction=0.25)
    with Search(Mine(), HashEvaluator(1), config) as search:
        print([result.visits.tolist() for result in search.run(["........."] * 2)])

"""


@pytest.mark.parametrize("is_guarded", [True, False])
def test_game_of_the_main_program(tmp_path: Path, is_guarded: bool) -> None:
    """A class in the program itself is found by workers; without the guard an error says what to do."""
    program = tmp_path / "program.py"
    program.write_text(SCRIPT + ('if __name__ == "__main__":\n    main()\n' if is_guarded else "main()\n"))
    run = _python([str(program)])
    if is_guarded:
        with Search(
            PlainTicTacToe(),
            HashEvaluator(1),
            SearchConfig(num_simulations=20, engine="vectorized").with_settings(NOISE),
        ) as search:
            want = [result.visits.tolist() for result in search.run(["." * 9] * 2)]
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip() != "" and len(eval(run.stdout)) == len(want)
        assert [sum(row) for row in eval(run.stdout)] == [20, 20]
    else:
        assert run.returncode == 1
        assert 'if __name__ == "__main__"' in run.stderr


def test_game_of_an_interactive_session() -> None:
    run = _python(["-c", SCRIPT + "main()"])
    assert run.returncode == 1
    assert "defined in an interactive session" in run.stderr


def _python(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
