"""The analysis protocol: every answer is what a search of that position alone gives, whatever runs beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_cases import Talk, analyse, hang_up

from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.engine_registry import ENGINES
from windrow.engines import Auto, Vectorized
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator, from_function
from windrow.games.core_game import CoreGame, State
from windrow.games.python_game import as_core_game
from windrow.play.specs import parse_game
from windrow.protocols.analysis import AnalysisServer
from windrow.protocols.scheduler import Job, Scheduler

LINE = 15
CONNECT4 = make_game("connect4")


def check_answer(answer: dict[str, Any], game: CoreGame, evaluator: object, config: SearchConfig, state: State) -> None:
    """The answer is that of a search alone, to the last digit."""
    with Search(game, evaluator, config) as search:
        result = search.run(state)
        root = answer["root_info"]
        assert answer["is_during_search"] is False and answer["stopped_by"] == "budget"
        assert (root["visits"], root["to_play"]) == (int(result.visits.sum()), game.to_play(state))
        assert root["value"] == result.value and root["win_rate"] == (result.value + 1) / 2
        assert root["values"] == [float(value) for value in result.values]
        assert root["best_move"] == game.action_name(result.best_action)
        names = [game.action_name(action) for action in result.principal_variation]
        assert root["principal_variation"] == names[:LINE]
        infos = answer["move_infos"]
        assert [info["order"] for info in infos] == list(range(len(infos)))
        assert {info["action"] for info in infos} == set(np.flatnonzero(result.visits).tolist())
        if infos:
            assert infos[0]["move"] == root["best_move"]
        for info in infos:
            action = info["action"]
            assert info["move"] == game.action_name(action)
            assert info["visits"] == int(result.visits[action])
            assert info["q"] == float(result.q[action]) and info["win_rate"] == (info["q"] + 1) / 2
            assert info["prior"] == float(result.prior[action])
            assert info["line"] == [game.action_name(step) for step in search.line_after(action)][:LINE]


# --- The same as alone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_trees", [1, 3, 64])
def test_many_at_once_are_each_as_alone(num_trees: int) -> None:
    """Budgets from 0 to 500: by themselves they have 1 to 5 leaves in flight, so several forests share the batches."""
    budgets = [0, 1, 2, 17, 100, 199, 200, 300, 301, 500]
    queries = [
        {"id": number, "moves": list("4453")[: number % 5], "num_simulations": budget}
        for number, budget in enumerate(budgets)
    ]
    answers = {answer["id"]: answer for answer in analyse(CONNECT4, HashEvaluator(), *queries, num_trees=num_trees)}
    assert len(answers) == len(queries)
    for query in queries:
        config = SearchConfig(num_simulations=query["num_simulations"])
        assert answers[query["id"]]["turn"] == len(query["moves"])
        state = CONNECT4.state_from_moves(query["moves"])
        check_answer(answers[query["id"]], CONNECT4, HashEvaluator(), config, state)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"leaves_per_tree": 1},
        {"leaves_per_tree": 8, "in_flight": "loss", "virtual_loss": 2.0},
        {"c_puct": 3.0, "first_play": "parent", "first_play_reduction": 0.2},
        {"dirichlet_fraction": 0.25, "seed": 7},
        {"dirichlet_fraction": 0.25, "seed": 7, "random_key": "position"},
        {"root": "gumbel", "gumbel_scale": 1.0, "seed": 3},
        {"on_collision": "skip", "leaves_per_tree": 6},
        {"max_depth": 3},
        {"choose": "lcb", "value_scale": "node"},
        {"prove": True},
    ],
    ids=str,
)
def test_settings_of_one_query_are_no_others_business(setting: dict[str, Any]) -> None:
    plain = [{"id": f"plain {turn}", "moves": [4] * turn, "num_simulations": 120} for turn in range(4)]
    special = [{**query, "id": f"special {turn}", "settings": setting} for turn, query in enumerate(plain)]
    mixed = [query for pair in zip(plain, special, strict=True) for query in pair]
    answers = {answer["id"]: answer for answer in analyse(CONNECT4, HashEvaluator(), *mixed, num_trees=8)}
    for turn in range(4):
        state = CONNECT4.state_from_moves([4] * turn)
        for name, changes in (("plain", {}), ("special", setting)):
            config = SearchConfig(num_simulations=120, **changes)
            check_answer(answers[f"{name} {turn}"], CONNECT4, HashEvaluator(), config, state)


def test_a_proven_win_is_the_best_move_and_named() -> None:
    """X has three in column 1 and is to move."""
    query = {"id": 1, "position": "121213", "num_simulations": 300, "settings": {"prove": True}}
    (answer,) = analyse(CONNECT4, UniformEvaluator(), query)
    assert answer["stopped_by"] == "proven" and answer["root_info"]["proven"] == "win in 1"
    assert answer["root_info"]["best_move"] == "1" == answer["move_infos"][0]["move"]
    assert answer["move_infos"][0]["proven"] == "win in 1"


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("tictactoe", ["b2", "a1"]),
        ("othello", ["d3", "c5"]),
        ("gomoku:size=9", ["e5", "d5"]),
        ("backgammon", ["x31", "8/5", "6/5"]),
        ("pig", []),
    ],
)
def test_any_game(name: str, moves: list[str]) -> None:
    game = parse_game(name)
    query = {"id": "all", "moves": moves, "turns": "all", "num_simulations": 60}
    found = {answer["turn"]: answer for answer in analyse(game, HashEvaluator(), query)}
    states = [game.state_from_moves(moves[:turn]) for turn in range(len(moves) + 1)]
    expected = [turn for turn, state in enumerate(states) if game.to_play(state) >= 0]
    assert sorted(found) == expected
    for turn in expected:
        check_answer(found[turn], game, HashEvaluator(), SearchConfig(num_simulations=60), states[turn])


def test_more_than_two_players_have_a_value_each() -> None:
    game = make_game("azul", players=3)
    state = game.initial_state()
    moves: list[int] = []
    while game.to_play(state) < 0:
        moves.append(game.sample_outcome(state, 5))
        state = game.apply(state, moves[-1])
    (answer,) = analyse(game, HashEvaluator(), {"id": 1, "moves": moves, "num_simulations": 50})
    assert len(answer["root_info"]["values"]) == 3
    check_answer(answer, game, HashEvaluator(), SearchConfig(num_simulations=50), state)


def test_a_real_process_gives_what_a_search_gives() -> None:
    evaluator = RolloutEvaluator(1, seed=0)
    with Talk("analysis", "connect4", "--evaluator", "rollout", "--sims", "150") as talk:
        talk.send(*(json.dumps({"id": turn, "moves": ["4"] * turn}) for turn in range(5)))
        answers = {answer["id"]: answer for answer in (talk.hear_json() for _ in range(5))}
        assert talk.leave() == (0, [], "")
    for turn in range(5):
        state = CONNECT4.state_from_moves([3] * turn)
        check_answer(answers[turn], CONNECT4, evaluator, SearchConfig(num_simulations=150), state)


def test_a_cache_changes_nothing_but_the_number_of_evaluations() -> None:
    queries = [{"id": number, "moves": ["4"], "num_simulations": 200} for number in range(6)]
    stats = {"id": "stats", "action": "query_stats"}
    without = analyse(CONNECT4, HashEvaluator(), *queries)
    config = SearchConfig(cache_memory=1 << 22)
    cached = analyse(CONNECT4, HashEvaluator(), *queries, config=config)
    assert sorted(map(str, without)) == sorted(map(str, cached))
    again = analyse(CONNECT4, HashEvaluator(), {"id": 0, "action": "clear_cache"}, stats, config=config)
    assert again[0] == {"id": 0, "action": "clear_cache"} and again[1]["nn_batches"] == 0


# --- Together -----------------------------------------------------------------------------------------------------


def count_batches(*queries: dict[str, Any], num_trees: int = 64) -> tuple[int, int]:
    """Calls of the evaluator, and rows, for queries that are all there at once."""
    sizes: list[int] = []

    def evaluate(observations: Any) -> Any:
        sizes.append(len(observations))
        return inner.evaluate(observations)

    inner = HashEvaluator().bind(CONNECT4)
    analyse(CONNECT4, from_function(evaluate, batched=True), *queries, num_trees=num_trees)
    return len(sizes), sum(sizes)


def test_overlapping_queries_share_the_calls_of_the_network() -> None:
    """40 queries of 100 simulations, 2 leaves a round: about 51 rounds each, and hardly more calls for all together."""
    pairs = {"leaves_per_tree": 2, "on_collision": "share"}
    queries = [{"id": n, "moves": [n % 7, n // 7], "num_simulations": 100, "settings": pairs} for n in range(40)]
    together, rows = count_batches(*queries)
    alone, alone_rows = count_batches(*queries, num_trees=1)
    assert rows == alone_rows
    assert alone >= 40 * 50
    assert together <= 60
    # Different budgets and settings have forests of their own, and share the calls all the same.
    mixed = [
        {**query, "num_simulations": 100 + query["id"] % 2 * 300, "settings": {"seed": query["id"]}}
        for query in queries[:8]
    ]
    assert count_batches(*mixed)[0] <= 120


def test_who_comes_late_joins_at_once() -> None:
    with Talk("analysis", "connect4") as talk:
        talk.send(json.dumps({"id": "long", "time_limit_s": 3600}))
        for number in range(3):
            assert talk.ask_json({"id": number, "moves": [number], "num_simulations": 50})["id"] == number
        stats = talk.ask_json({"id": "s", "action": "query_stats"})
        assert (stats["running"], stats["waiting"], stats["answered"]) == (1, 0, 3)
        ended = [talk.ask_json({"id": "t", "action": "terminate", "terminate_id": "long"}), talk.hear_json()]
        assert ended[0] == {"id": "t", "action": "terminate", "terminate_id": "long", "num_terminated": 1}
        assert ended[1]["id"] == "long" and ended[1]["stopped_by"] == "stop"
        assert ended[1]["root_info"]["visits"] > 0 and ended[1]["is_during_search"] is False
        assert talk.leave() == (0, [], "")


def test_reports_while_it_runs_and_an_end_of_its_own() -> None:
    with Talk("analysis", "connect4") as talk:
        talk.send(json.dumps({"id": 1, "time_limit_s": 3600, "report_every_s": 0.05, "max_moves": 2, "max_line": 3}))
        visits = [0]
        for _ in range(3):
            answer = talk.hear_json()
            assert answer["is_during_search"] is True and answer["stopped_by"] == "running"
            assert len(answer["move_infos"]) <= 2 and all(len(info["line"]) <= 3 for info in answer["move_infos"])
            visits.append(answer["root_info"]["visits"])
        assert visits == sorted(set(visits))
        talk.send(json.dumps({"id": "all", "action": "terminate_all"}))
        code, rest, err = talk.leave()
    last = [json.loads(line) for line in rest]
    assert (code, err) == (0, "")
    assert [answer["is_during_search"] for answer in last if answer["id"] == 1].count(False) == 1
    assert last[-1]["stopped_by"] == "stop"


def test_a_time_limit_ends_a_search_with_what_it_has() -> None:
    (answer,) = analyse(CONNECT4, HashEvaluator(), {"id": 1, "time_limit_s": 0.0})
    assert answer["stopped_by"] == "time" and answer["root_info"]["best_move"]
    (answer,) = analyse(CONNECT4, HashEvaluator(), {"id": 1, "time_limit_s": 3600, "num_simulations": 30})
    assert answer["stopped_by"] == "budget" and answer["root_info"]["visits"] == 30


def test_priority_decides_who_is_next() -> None:
    queries = [{"id": n, "priority": n % 3, "num_simulations": 10} for n in range(6)]
    answers = analyse(CONNECT4, HashEvaluator(), *queries, num_trees=1)
    assert [answer["id"] for answer in answers] == [2, 5, 1, 4, 0, 3]


def test_what_waits_can_be_terminated_and_has_no_results() -> None:
    queries = [{"id": "a", "moves": [3, 3], "turns": [0, 1, 2]}, {"id": "b"}]
    end = {"id": "t", "action": "terminate", "terminate_id": "a", "turns": [0, 2]}
    answers = analyse(CONNECT4, HashEvaluator(), *queries, end)
    assert answers[0] == {**end, "num_terminated": 2}
    assert answers[1] == {"id": "a", "turn": 0, "is_during_search": False, "stopped_by": "stop", "no_results": True}
    assert (answers[2]["id"], answers[2]["turn"]) == ("a", 2)
    # What was searched comes as it is done, in either order.
    assert sorted((answer["id"], answer["turn"]) for answer in answers[3:]) == [("a", 1), ("b", 0)]
    nothing = {"id": "t", "action": "terminate", "terminate_id": "nobody"}
    assert analyse(CONNECT4, HashEvaluator(), nothing) == [{**nothing, "num_terminated": 0}]


def test_memory_is_shared_and_a_full_tree_answers_with_what_it_has() -> None:
    """Kinds of searches in turn, each with a forest of its own, never hold more trees than there are."""
    config = SearchConfig(max_memory=1 << 20, num_simulations=100_000)
    queries = [{"id": n, "settings": {"seed": n % 3}, "moves": [n % 7]} for n in range(9)]
    answers = analyse(CONNECT4, HashEvaluator(), *queries, config=config, num_trees=4)
    assert sorted(answer["id"] for answer in answers) == list(range(9))
    assert all(answer["stopped_by"] == "memory" and answer["root_info"]["visits"] > 100 for answer in answers)


# --- What is asked ------------------------------------------------------------------------------------------------


def test_moves_as_text_and_from_a_position() -> None:
    state = CONNECT4.state_from_moves("4453")
    forms = [
        {"moves": "4453"},
        {"moves": "4 4, 5 3"},
        {"position": "44", "moves": "53"},
        {"position": "44", "moves": ["5", "3"]},
        {"position": "4453"},
        {"moves": ["4", 3, "5", 2]},
    ]
    answers = analyse(CONNECT4, HashEvaluator(), *({"id": n, **form} for n, form in enumerate(forms)))
    assert [answer["turn"] for answer in answers] == [None, None, None, 2, 0, 4]
    for answer in answers:
        check_answer(answer, CONNECT4, HashEvaluator(), SearchConfig(), state)


def test_moves_that_were_not_tried_are_told_if_asked_for() -> None:
    query = {"id": 1, "num_simulations": 0}
    assert analyse(CONNECT4, HashEvaluator(), query)[0]["move_infos"] == []
    (answer,) = analyse(CONNECT4, HashEvaluator(), {**query, "include_untried": True})
    priors = [info["prior"] for info in answer["move_infos"]]
    assert len(priors) == 7 and priors == sorted(priors, reverse=True)
    assert answer["root_info"]["best_move"] == answer["move_infos"][0]["move"]


def test_version_and_models() -> None:
    with Talk("analysis", "gomoku:size=9", "--evaluator", "uniform") as talk:
        answer = talk.ask_json({"id": "v", "action": "query_version"})
        assert set(answer) == {"id", "action", "version"}
        answer = talk.ask_json({"id": "m", "action": "query_models"})
    assert answer["models"] == [{"name": "uniform", "is_network": False}]
    assert (answer["game"], answer["game_options"]["size"]) == ("gomoku", 9)


@pytest.mark.parametrize(
    ("line", "field", "words"),
    [
        (b"not json", None, "not JSON"),
        (b"[1, 2]", None, "a query is a JSON object, not list"),
        (b"[" * 100_000, None, "not JSON"),
        (b"{}", "id", "needs an id"),
        (b'{"id": null}', "id", "needs an id"),
        (b'{"id": NaN}', "id", "needs an id"),
        (b'{"id": 1, "move": []}', "move", "Did you mean 'moves'"),
        (b'{"id": 1, "maxVisits": 5}', "maxVisits", "windrow says num_simulations"),
        (b'{"id": 1, "analyzeTurns": [0]}', "analyzeTurns", "windrow says turns"),
        (b'{"id": 1, "moves": 4}', "moves", "a list of moves"),
        (b'{"id": 1, "moves": [[4]]}', "moves", "move 1 is not a name or a number"),
        (b'{"id": 1, "moves": [true]}', "moves", "move 1 is not"),
        (b'{"id": 1, "moves": ["x"]}', "moves", "move 1, 'x'"),
        (b'{"id": 1, "moves": ["4", "4", "4", "4", "4", "4", "4"]}', "moves", "move 7, '4'"),
        (b'{"id": 1, "moves": [1e3]}', "moves", "move 1 is not"),
        (b'{"id": 1, "moves": [99999999999999999999999]}', "moves", "does not exist"),
        (b'{"id": 1, "moves": "44444444"}', "moves", "is not legal"),
        (b'{"id": 1, "position": "8"}', "position", "'8'"),
        (b'{"id": 1, "position": 8}', "position", "string"),
        (b'{"id": 1, "moves": "4142434"}', "moves", "the game is over"),
        (b'{"id": 1, "moves": "44", "turns": [0]}', "turns", "as a list"),
        (b'{"id": 1, "turns": [1]}', "turns", "turn 1 does not exist"),
        (b'{"id": 1, "turns": 0}', "turns", "a list of whole numbers"),
        (b'{"id": 1, "num_simulations": -1}', "num_simulations", "from 0 to"),
        (b'{"id": 1, "num_simulations": 1.5}', "num_simulations", "whole number"),
        (b'{"id": 1, "num_simulations": "many"}', "num_simulations", "whole number"),
        (b'{"id": 1, "time_limit_s": Infinity}', "time_limit_s", "must be a number"),
        (b'{"id": 1, "settings": []}', "settings", "by name"),
        (b'{"id": 1, "settings": {"cpuct": 1}}', "settings", "Did you mean 'c_puct'"),
        (b'{"id": 1, "settings": {"cls": 1}}', "settings", "there is no setting 'cls'"),
        (b'{"id": 1, "settings": {"c_puct": NaN}}', "settings", "must be a number"),
        (b'{"id": 1, "settings": {"engine": "ray"}}', "settings", "when the program is started"),
        (b'{"id": 1, "settings": {"num_simulations": 5}}', "settings", "field of the query itself"),
        (b'{"id": 1, "time_limit_s": 1, "settings": {"root": "gumbel"}}', "num_simulations", "Gumbel"),
        (b'{"id": 1, "report_every_s": 0}', "report_every_s", "at least"),
        (b'{"id": 1, "priority": "high"}', "priority", "whole number"),
        (b'{"id": 1, "max_moves": 0}', "max_moves", "from 1"),
        (b'{"id": 1, "include_untried": 1}', "include_untried", "true or false"),
        (b'{"id": 1, "action": "terminat"}', "action", "Did you mean 'terminate'"),
        (b'{"id": 1, "action": ["x"]}', "action", "no action"),
        (b'{"id": 1, "action": "terminate"}', "terminate_id", "the id of the query"),
        (b'{"id": 1, "action": "query_version", "moves": []}', "moves", "there is no field"),
        (b'\xff\xfe{"id": 1}', None, "not JSON"),
    ],
)
def test_errors_name_the_field_and_the_next_query_is_answered(line: bytes, field: str | None, words: str) -> None:
    error, answer = analyse(CONNECT4, HashEvaluator(), line, {"id": "next", "num_simulations": 5})
    assert words in error["error"] and error.get("field") == field
    assert error.get("id") == (1 if line.startswith(b'{"id": 1') else None)
    assert answer["id"] == "next" and answer["root_info"]["visits"] == 5


def test_chance_is_told_apart_from_players() -> None:
    backgammon = make_game("backgammon")
    (error,) = analyse(backgammon, HashEvaluator(), {"id": 1})
    assert error["field"] == "moves" and "chance is to move" in error["error"]
    (error,) = analyse(backgammon, HashEvaluator(), {"id": 1, "moves": ["8/5"]})
    assert error["field"] == "moves" and "outcome" in error["error"]


def test_an_evaluator_that_fails_fails_its_queries_only() -> None:
    calls: list[int] = []

    def evaluate(observations: Any) -> Any:
        calls.append(len(observations))
        if len(calls) == 3:
            raise ValueError("out of order")
        return inner.evaluate(observations)

    inner = HashEvaluator().bind(CONNECT4)
    first, second = ({"id": n, "num_simulations": 20} for n in "ab")
    answers = analyse(CONNECT4, from_function(evaluate, batched=True), first, second, num_trees=1)
    assert answers[0]["id"] == "a" and "out of order" in answers[0]["error"]
    assert answers[1]["id"] == "b" and answers[1]["root_info"]["visits"] == 20


def test_an_answer_that_cannot_be_used_fails_the_query_it_is_about() -> None:
    """A value that is no number wherever the first column has three stones."""

    def evaluate(observations: Any) -> Any:
        logits, values = inner.evaluate(observations)
        is_bad = observations[:, :, :, 0].sum(axis=(1, 2)) >= 3
        return logits, np.where(is_bad, np.nan, values).astype(np.float32)

    inner = HashEvaluator().bind(CONNECT4)
    queries = [{"id": "bad", "moves": "111"}, {"id": "good", "moves": "4", "num_simulations": 3}]
    answers = {a["id"]: a for a in analyse(CONNECT4, from_function(evaluate, batched=True), *queries)}
    assert "the value is nan" in answers["bad"]["error"] and answers["bad"]["turn"] is None
    assert answers["good"]["root_info"]["visits"] == 3


class Fragile:
    """Count from 0 to 9 by one or two; breaks at 7."""

    num_players, num_actions, observation = 2, 2, (1,)

    def initial_state(self) -> int:
        return 0

    def to_play(self, state: int) -> int:
        return -2 if state >= 9 else state % 2

    def legal_actions(self, state: int) -> list[int]:
        if state == 7:
            raise RuntimeError("seven")
        return [0, 1]

    def apply(self, state: int, action: int) -> int:
        return state + 1 + action

    def returns(self, state: int) -> list[float]:
        return [1.0, -1.0]

    def observe(self, state: int) -> Any:
        return np.array([state], np.float32)


def test_a_game_that_breaks_fails_the_query_it_is_about() -> None:
    game = as_core_game(Fragile())
    queries = [
        {"id": "bad", "moves": [1, 1], "num_simulations": 50},
        {"id": "good", "moves": [1, 1, 1, 1], "num_simulations": 5},
        {"id": "worse", "moves": [1, 1, 1, 0, 0]},
    ]
    answers = {a["id"]: a for a in analyse(game, HashEvaluator(), *queries)}
    assert "seven" in answers["bad"]["error"] and "seven" in answers["worse"]["error"]
    assert answers["good"]["root_info"]["visits"] == 5


# --- Nonsense -----------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
MOVES = st.lists(st.one_of(st.sampled_from("12345678x"), st.integers(-1, 8)), max_size=12)
QUERY = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(st.text(max_size=3), st.integers(), JSON),
        "moves": st.one_of(MOVES, st.text("1234567 ,x", max_size=8), JSON),
        "position": st.one_of(st.text("1234567", max_size=4), JSON),
        "turns": st.one_of(st.just("all"), st.lists(st.integers(-1, 5), max_size=3), JSON),
        "num_simulations": st.one_of(st.integers(-1, 20), JSON),
        "settings": st.one_of(st.dictionaries(st.sampled_from(SearchConfig.setting_names()), JSON, max_size=2), JSON),
        "priority": st.one_of(st.integers(-3, 3), JSON),
        "max_moves": JSON,
        "include_untried": JSON,
        "action": st.one_of(st.sampled_from(["terminate", "terminate_all", "query_stats", "clear_cache"]), JSON),
        "terminate_id": JSON,
    },
)


@settings(max_examples=100)
@given(st.lists(st.one_of(QUERY, JSON, st.binary(max_size=20)), max_size=8))
def test_nothing_breaks_it(queries: list[Any]) -> None:
    """Whatever comes, every line of output is JSON, what is answered is answered once, and it goes on."""
    config = SearchConfig(num_simulations=4, max_memory=1 << 24)
    answers = analyse(CONNECT4, HashEvaluator(), *queries, {"id": "last one"}, config=config, num_trees=3)
    assert all("error" in answer or "id" in answer for answer in answers)
    last = next(answer for answer in answers if answer.get("id") == "last one")
    assert last["root_info"]["visits"] == 4


# --- Clients that hang up -----------------------------------------------------------------------------------------


def test_searches_end_when_nobody_reads_the_answers() -> None:
    """With an hour to go, and the input still open."""
    queries = [{"id": "long", "time_limit_s": 3600}, {"id": "stats", "action": "query_stats"}]
    lines = [json.dumps(query) for query in queries]
    answer, code, said = hang_up("analysis", "gomoku", "--trees", "1", lines=lines)
    assert json.loads(answer)["running"] + json.loads(answer)["waiting"] == 1
    assert code in (0, 1) and said == ""


def test_an_engine_is_refused_and_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries share trees and network calls, so no other engine can have a part in it, whatever it declares."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent.parent / "examples")
    monkeypatch.setattr("windrow.engine_registry.ENGINES", {**ENGINES, "halves": "own_engine:HalvesEngine"})
    game, message = CONNECT4, "queries are searched together, in one way only: leave engine="
    for engine in ("halves", "batched", Vectorized(num_threads=2)):
        with pytest.raises(ConfigError, match=message):
            AnalysisServer(game, HashEvaluator(), SearchConfig(engine=engine))
    scheduler = Scheduler(game, HashEvaluator(), num_trees=1, config=SearchConfig(engine=Auto(max_batch=8)))
    with pytest.raises(ConfigError, match=message):
        scheduler.add(Job(game.initial_state(), SearchConfig(engine="halves")))
    assert not scheduler.has_work
