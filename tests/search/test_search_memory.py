"""Searches within a limit of memory: they end early with what they have, and the process takes no more."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from search_cases import in_flight, random_position

from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.engines import Batched
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator

GAME = make_game("connect4")


# --- Memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
@pytest.mark.parametrize("on_collision", ["share", "skip"])
def test_memory_that_is_used_up_ends_the_search_early(engine: str, on_collision: Any):
    game = make_game("gomoku", size=7)
    limit = 200_000
    leaves = 1 if engine == "sequential" else 8
    config = SearchConfig(
        engine=engine, max_memory=limit, num_simulations=5000, leaves_per_tree=leaves, on_collision=on_collision
    )
    search = Search(game, HashEvaluator(1), config)
    results = search.run([game.initial_state(), random_position(game, 6, 1)])
    stats = results[0].stats
    assert stats.stopped_by == "memory"
    assert limit / 2 < stats.bytes <= limit
    assert in_flight(search) == 0
    for result in results:
        assert 20 < result.visits.sum() < 5000
        assert result.policy.sum() == pytest.approx(1.0, abs=1e-5)
        assert result.best_action in game.legal_actions(result.state)
    # A move frees memory, and the search goes on with what was freed.
    before = [int(result.visits[result.best_action]) for result in results]
    search.advance([result.best_action for result in results])
    assert search.engine.forest.totals(np.arange(2, dtype=np.int32))["bytes"] < stats.bytes
    again = search.run(num_simulations=20)
    assert [int(result.visits.sum()) > visits for result, visits in zip(again, before, strict=True)] == [True, True]
    assert again[0].stats.bytes <= limit


def test_a_full_search_run_again_ends_at_once():
    search = Search(GAME, HashEvaluator(1), SearchConfig(max_memory=30_000, num_simulations=3000))
    first = search.run(GAME.initial_state())
    assert first.stats.stopped_by == "memory"
    second = search.run()
    assert second.stats.stopped_by == "memory"
    assert second.visits.sum() < first.visits.sum() + 3000
    assert in_flight(search) == 0


def test_trees_share_memory_equally():
    """A tree that is full does not stop the other, which has room: one is nearly over, one has just begun."""
    ending = random_position(GAME, 38, 4)
    search = Search(GAME, HashEvaluator(1), SearchConfig(max_memory=120_000, num_simulations=1500, engine="vectorized"))
    late, early = search.run([ending, GAME.initial_state()])
    assert late.visits.sum() == 1500
    assert early.visits.sum() < 1500
    assert late.stats.stopped_by == "memory"


@pytest.mark.parametrize(
    ("name", "options", "max_memory", "num_trees"),
    [
        ("connect4", {}, 100, 1),  # a root has 40 + 24 + 6 * 8 bytes
        ("gomoku", {"size": 19}, 2048, 1),  # 361 legal actions of 6 bytes each
        ("connect4", {}, 8_000, 64),  # enough for one tree, not for each of 64
    ],
)
def test_memory_too_small_for_one_node(name: str, options: dict[str, Any], max_memory: int, num_trees: int):
    game = make_game(name, **options)
    search = Search(game, UniformEvaluator(), SearchConfig(max_memory=max_memory, num_simulations=3))
    with pytest.raises(ConfigError, match="max_memory") as caught:
        search.run([game.initial_state()] * num_trees)
    assert "lower" not in str(caught.value), "the advice must be to raise it"


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *(["-S"] * sys.flags.no_site), "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_search_that_could_not_be_planted_stays_safe():
    """After the refusal above there is no tree; going on must be refused too, not touch memory that is not there."""
    program = (
        "import windrow\n"
        "game = windrow.make_game('gomoku', size=19)\n"
        "search = windrow.Search(game, windrow.evaluators.UniformEvaluator(), windrow.SearchConfig(max_memory=2048))\n"
        "for states in (game.initial_state(), None):\n"
        "    try:\n"
        "        search.run(states)\n"
        "    except ValueError as error:\n"
        "        print('refused')\n"
        "    except windrow.SearchError as error:\n"
        "        print('refused')\n"
    )
    done = run_python(program)
    assert (done.returncode, done.stdout.split()) == (0, ["refused", "refused"]), done.stderr


def test_the_process_takes_no_more_than_max_memory():
    """Resident memory grows by the limit, buffers aside; to be sure, the address space may grow by 32 MiB only."""
    program = (
        "import resource, windrow\n"
        "def resident():\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "def address_space():\n"
        "    return int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "limit = 48 << 20\n"
        "game = windrow.make_game('gomoku', size=9)\n"
        "config = windrow.SearchConfig(num_simulations=2**31 - 2, leaves_per_tree=32, max_memory=limit)\n"
        "search = windrow.Search(game, windrow.evaluators.UniformEvaluator(), config)\n"
        "search.run(game.initial_state(), num_simulations=100)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (address_space() + (32 << 20),) * 2)\n"
        "before = resident()\n"
        "result = search.run(game.initial_state())\n"
        "assert result.stats.stopped_by == 'memory', result.stats\n"
        "assert limit * 0.99 < result.stats.bytes <= limit, result.stats\n"
        "assert resident() - before < limit + (8 << 20), resident() - before\n"
        "print(int(result.visits.sum()) > 1000)\n"
    )
    done = run_python(program)
    assert done.stdout.strip() == "True", done.stderr


def test_rollouts_respect_max_batch():
    """`max_batch` is the most rows in one call, for evaluators of states too."""
    sizes: list[int] = []

    class Counting(RolloutEvaluator):
        def bind(self, game: Any) -> Any:
            bound = Counting(1, game=game)
            return bound

        def evaluate_states(self, states: Any) -> Any:
            sizes.append(len(states))
            return super().evaluate_states(states)

    config = SearchConfig(num_simulations=60, leaves_per_tree=8, in_flight="loss", engine=Batched(max_batch=3))
    Search(GAME, Counting(), config).run(GAME.initial_state())
    assert max(sizes) <= 3
