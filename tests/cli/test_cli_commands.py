"""Each command: what it prints and what its JSON holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import run, run_json

import windrow
from windrow.cli.measure import Recorder, profile_search
from windrow.cli.output import ProgressBar
from windrow.evaluators import RolloutEvaluator, UniformEvaluator
from windrow.tune.network import different_positions


def test_games() -> None:
    document = run_json("games")
    assert [game["name"] for game in document["games"]] == list(windrow.game_names())
    connect4 = next(game for game in document["games"] if game["name"] == "connect4")
    assert connect4["options"] == {"rows": 6, "columns": 7, "connect": 4}
    assert (connect4["observation"], connect4["num_actions"], connect4["moves"]) == ([2, 6, 7], 7, ["1", "7"])
    code, out, _ = run("games")
    assert code == 0 and all(name in out for name in windrow.game_names())


def test_search_takes_a_position() -> None:
    by_moves = run_json("search", "connect4", "--moves", "44", "--sims", "50")
    by_text = run_json("search", "connect4", "--position", "7/7/7/7/3o3/3x3 x", "--sims", "50")
    assert by_text["moves"] == by_moves["moves"] and by_text["position"] == "7/7/7/7/3o3/3x3 x"
    code, _, err = run("search", "connect4", "--position", "7 x")
    assert code == 1 and "has 6 rows, not 1" in err
    code, _, err = run("search", "connect4", "--moves", "4", "--position", "7 x")
    assert code != 0 and "give only one of them" in err


def test_search_prints_what_is_proven() -> None:
    """The player to move has three in column 1."""
    found = run_json("search", "connect4", "--moves", "121213", "--set", "prove=true", "--sims", "300")
    assert found["proven"] == "win in 1" == found["moves"][0]["proven"] and found["best_move"] == "1"
    assert found["stats"]["stopped_by"] == "proven" and found["stats"]["simulations"] < 300
    code, out, _ = run("search", "connect4", "--moves", "121213", "--set", "prove=true", "--sims", "300")
    assert code == 0 and "(proven: win in 1)" in out
    code, out, _ = run("search", "connect4", "--moves", "121213", "--sims", "300")
    assert code == 0 and "proven" not in out


def test_search_takes_a_position_of_ones_own_game() -> None:
    """O has a3, x has b2; x to move."""
    game = f"{Path(__file__).parents[1] / 'games' / 'sound_games.py'}:NotatedTictactoe"
    by_moves = run_json("search", game, "--moves", "b2 a3", "--sims", "50")
    assert run_json("search", game, "--position", "o...x....", "--sims", "50")["moves"] == by_moves["moves"]
    code, _, err = run("search", game, "--position", "x")
    assert code == 1 and "write nine of x, o and ." in err


def test_tables_fit_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """No word is cut off at 80 columns; more columns need fewer lines."""
    pages: dict[int, list[str]] = {}
    for width in (80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        pages[width] = run("games")[1].splitlines()
        words = " ".join(pages[width]).split()
        assert max(map(len, pages[width])) <= width
        assert {*windrow.game_names(), "rule=freestyle", "5/off(6)", "symmetries"} <= set(words)
    assert len(pages[80]) > len(pages[120]) > len(pages[200]) == len(windrow.game_names()) + 1


def test_one_thing_is_singular() -> None:
    assert "\n1 more move not shown (--top)\n" in run("search", "connect4", "--sims", "5", "--top", "6")[1]
    assert "1 leaf per tree, 1 thread" in run("profile", "tictactoe", "--evaluator", "uniform", "--threads", "1")[1]


def test_search_is_what_the_library_finds() -> None:
    document = run_json("search", "connect4", "--moves", "4453", "--sims", "300", "--seed", "4", "--top", "3")
    game = windrow.make_game("connect4")
    config = windrow.SearchConfig(num_simulations=300, seed=4)
    result = windrow.Search(game, RolloutEvaluator(seed=4), config).run(game.state_from_moves("4453"))
    assert document["best_move"] == game.action_name(result.best_action)
    assert document["value"] == pytest.approx(result.value)
    rows = document["moves"]
    assert len(rows) == 3 and rows[0]["visits"] >= rows[1]["visits"] >= rows[2]["visits"]
    for row in rows:
        assert row["visits"] == result.visits[row["action"]]
        assert row["q"] == pytest.approx(float(result.q[row["action"]]))
        assert row["line"][0] == row["move"]
    assert rows[0]["line"] == [game.action_name(action) for action in result.principal_variation]
    game.state_from_moves("4453" + "".join(rows[1]["line"]))  # legal to its end


def test_search_prints_the_board_and_a_table() -> None:
    code, out, _ = run("search", "connect4", "--moves", "4453", "--sims", "50", "--top", "2")
    assert code == 0
    assert ". . o x x . ." in out and "x to move" in out
    assert "line of play" in out and "5 more moves not shown (--top)" in out and "50 simulations" in out


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["--sims", "20", "--engine", "sequential"], "engine", "sequential"),
        (["--sims", "20", "--leaves", "4", "--max-batch", "2"], "leaves_per_tree", 4),
        (["--sims", "20", "--set", "max_depth=2"], "max_depth", 2),
        (["--time", "50ms"], "stopped_by", "time"),
        (["--sims", "20", "--evaluator", "uniform"], "nn_batches", 10),
        (["--sims", "0"], "simulations", 0),
    ],
)
def test_search_options(arguments: list[str], key: str, value: object) -> None:
    stats = run_json("search", "gomoku:size=9", *arguments)["stats"]
    if key == "nn_batches":
        assert stats[key] >= value  # at most two leaves in flight
    else:
        assert stats[key] == value


def test_match() -> None:
    arguments = ("match", "rollout:30", "random", "connect4", "--games", "40", "--seed", "2")
    document = run_json(*arguments)
    game = windrow.make_game("connect4")
    result = windrow.play.play_match(game, "rollout:30", "random", num_games=40, seed=2)
    assert document == json.loads(json.dumps(result.to_dict()))
    assert document["stopped_by"] == "a_stronger"
    code, out, err = run(*arguments, "--show", "1")
    assert code == 0 and err == ""
    assert "A is stronger" in out and "Elo (95 %)" in out and f"A wins: {result.games[0].moves}" in out


def test_match_of_three_players() -> None:
    players = ("uniform:8", "random", "random")
    arguments = ("match", "azul:players=3", *players, "--games", "6", "--seed", "1")
    document = run_json(*arguments)
    game = windrow.make_game("azul", players=3)
    result = windrow.play.play_tournament(game, players, num_games=6, seed=1)
    assert document == json.loads(json.dumps(result.to_dict())) and document["num_games"] == 6
    code, out, err = run(*arguments)
    assert code == 0 and err == "" and out.rstrip("\n") == result.table()
    # Three players in a game of two play each other; the game may stand last.
    document = run_json("match", "random", "rollout:20", "random", "tictactoe", "--games", "12")
    assert document["game"] == "tictactoe" and document["standings"][0]["name"] == "rollout:20"
    code, _, err = run("match", "connect4", "random")
    assert code == 1 and "name two or more players" in err


def test_match_prints_what_it_has_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def interrupt(self: ProgressBar, done: int, total: int | None = None, *, note: str | None = None) -> None:
        calls.append(done)
        if done >= 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "update", interrupt)
    arguments = ("match", "random", "random", "--games", "200", "--no-stop", "--concurrent", "8", "--json")
    code, out, err = run(*arguments)
    document = json.loads(out)
    assert code == 130 and "interrupted" in err
    assert document["stopped_by"] == "running"
    assert 0 < document["num_games"] <= calls[-1] < 40


def test_memory_of_trees_on_a_gpu() -> None:
    pytest.importorskip("torch")
    few, many = (run_json("info", "--memory", "gomoku:size=9", "--sims", "50", "--trees", trees) for trees in "12")
    assert many["bytes"] == 2 * few["bytes"] > 0
    code, out, _ = run("info", "--memory", "connect4")
    assert code == 0 and "1,024 of connect4" in out and "GiB on the GPU" in out
    code, _, err = run("info", "--memory", "azul")
    assert code == 1 and "the tensor engine has no game 'azul'" in err


def test_info() -> None:
    document = run_json("info")
    assert document["system"]["windrow"] == windrow.__version__
    assert document["extras"]["cli"]["missing"] == []
    assert document["backends"].keys() >= {"torch", "onnxruntime", "openvino", "cuda"}
    code, out, _ = run("info")
    assert code == 0 and "cache folder" in out and "typer" in out


def test_profile_adds_up() -> None:
    document = run_json("profile", "connect4", "--evaluator", "rollout", "--trees", "16", "--sims", "32")
    seconds = document["seconds"]
    parts = sum(seconds[name] for name in ("select", "encode", "evaluate", "complete", "other"))
    assert parts == pytest.approx(seconds["total"], rel=0.05)
    assert sum(document["batch_fill_histogram"]) == document["stats"]["nn_batches"]
    assert document["network_idle"] is None and "no network" in document["advice"]
    code, out, _ = run("profile", "connect4", "--evaluator", "uniform", "--trees", "4", "--sims", "8")
    assert code == 0 and "batch fill" in out and "Advice" in out


def test_profile_of_a_network(one_core: None) -> None:
    pytest.importorskip("torch")
    network = ("--evaluator", "resnet:8x1", "--backend", "torch", "--sims", "16")
    document = run_json("profile", "connect4", "--trees", "8", *network)
    assert 0 <= document["network_idle"] <= 1
    assert document["network_share"] > 0 and document["network_positions_per_second"] > 0
    assert "no network" not in document["advice"]
    one = run_json("profile", "connect4", "--trees", "1", *network)
    assert one["advice"].startswith("A network call has")


def test_fill_histogram_worked_by_hand() -> None:
    game = windrow.make_game("connect4")
    found = profile_search(
        game,
        UniformEvaluator(),
        windrow.SearchConfig(num_simulations=4),
        different_positions(game, 20),
        is_network=False,
    )
    assert found.places == 20
    other = type(found)(found.stats, (1, 2, 3, 10, 11, 19, 20), 20, None, None)
    #                      5 %, 10 % | 15 % | 50 % | 55 % | 95 %, 100 %
    assert other.fill_histogram() == [2, 1, 0, 0, 1, 1, 0, 0, 0, 2]


def test_a_recorder_changes_nothing() -> None:
    game = windrow.make_game("connect4")
    states = different_positions(game, 6)
    config = windrow.SearchConfig(num_simulations=30)
    recorder = Recorder(RolloutEvaluator(seed=3))
    plain = windrow.Search(game, RolloutEvaluator(seed=3), config).run(states)
    recorded = windrow.Search(game, recorder, config).run(states)
    assert [result.visits.tolist() for result in plain] == [result.visits.tolist() for result in recorded]
    assert sum(recorder.rows) == recorded[0].stats.nn_positions
    assert len(recorder.rows) == recorded[0].stats.nn_batches


def test_bench_search(one_core: None) -> None:
    pytest.importorskip("torch")
    arguments = (
        "bench",
        "search",
        "connect4",
        "--net",
        "8x1",
        "--backend",
        "torch",
        "--trees",
        "8",
        "--sims",
        "8",
        "--repeats",
        "1",
    )
    document = run_json(*arguments)
    assert document["network_share"] > 0
    assert document["tree_simulations_per_second"] > document["search_simulations_per_second"] > 0
    code, out, _ = run(*arguments)
    assert code == 0 and "of its standalone throughput" in out


def test_analysis_has_one_way_to_search() -> None:
    code, out, err = run("protocol", "analysis", "connect4", "--set", "engine=batched")
    assert (code, out) == (1, "") and "in one way only: leave engine=batched out" in " ".join(err.split())


def test_bench_engines(one_core: None) -> None:
    """Trees on the CPU and trees as tensors, measured alike."""
    pytest.importorskip("torch")
    common = ("bench", "engines", "tictactoe", "--net", "8x1", "--backend", "torch")
    arguments = (*common, "--trees", "4", "--sims", "6", "--repeats", "1")
    document = run_json(*arguments)
    assert [figures["engine"] for figures in document["engines"]] == ["vectorized", "tensor"]
    for figures in document["engines"]:
        assert figures["simulations"] > 0 and figures["network"] > 0
        assert figures["share"] == pytest.approx(figures["positions"] / figures["network"])
        # The root is evaluated too; finished games are not.
        assert 0 < figures["positions"] <= figures["simulations"] * 7 / 6 * (1 + 1e-9)
    code, out, _ = run(*arguments, "--engine", "batched", "--leaves", "2")
    assert code == 0 and "Fastest here: batched" in out
    code, _, err = run(*arguments, "--engine", "tenser")
    assert code == 1 and "tenser" in err
    code, _, err = run("bench", "engines", "azul", "--net", "8x1", "--trees", "2", "--sims", "2", "--engine", "tensor")
    assert code == 1 and "the tensor engine has no azul in torch ops" in err


@pytest.mark.slow
def test_bench_backends() -> None:
    pytest.importorskip("torch")
    arguments = ("bench", "backends", "--net", "8x1", "--batch", "1", "--batch", "16", "--seconds", "0.02")
    document = run_json(*arguments)
    torch = document["backends"]["torch"]
    assert torch["agrees"] and torch["problem"] is None and torch["rates"]["16"] > 0
    assert document["fastest"]["16"] in document["backends"]
    code, out, _ = run(*arguments)
    assert code == 0 and "Fastest" in out


# --- Playing ------------------------------------------------------------------------------------------------------


def test_play_to_the_end() -> None:
    """X takes the first column: o, who plays at random from 1212 on, hardly stops it."""
    code, out, _ = run("play", "connect4", "random", "--seed", "1", "--moves", "121314", stdin="1\n")
    assert code == 0 and "You win." in out


def test_play_as_the_second() -> None:
    code, out, _ = run("play", "connect4", "rollout:200", "--second", "--moves", "121212", "--seed", "1", stdin="7\n")
    assert code == 0
    assert "rollout:200 plays 1" in out and "rollout:200 wins." in out


def test_play_understands_words() -> None:
    words = "help\nmoves\nhint\nx\n9\nundo\n4\nundo\nQuit\n"
    code, out, _ = run("play", "connect4", "random", "--seed", "1", stdin=words)
    assert code == 0
    assert "1 2 3 4 5 6 7" in out and "random would play" in out
    assert "'x' is not the name of a move" in out and "'9' is not the name" in out
    assert "nothing to take back" in out and "Left the game." in out


def test_play_ends_with_its_input_and_tells_the_game_as_json() -> None:
    code, out, err = run("play", "connect4", "random", "--seed", "1", "--json", stdin="4\n")
    document = json.loads(out)
    assert code == 0 and "Left the game." in err
    assert document["moves"].startswith("4") and len(document["moves"]) == 2
    assert (document["finished"], document["score"], document["you"]) == (False, None, "first")


def test_play_says_who_you_are_and_what_is_legal() -> None:
    code, out, _ = run("play", "connect4", "random", "--second", "--moves", "1", "--seed", "1", stdin="9\nquit\n")
    assert code == 0 and "You are o (the second player), against random." in out
    assert "Legal moves: 1 2 3 4 5 6 7" in out
    assert "and 165 more (type moves)" in run("play", "gomoku", "random", stdin="zz\n")[1]


def test_play_takes_whole_turns_and_keeps_the_numbers() -> None:
    """X is at the bottom right throughout: its point 1 stays the last of the bottom row."""
    start = ("play", "backgammon", "random", "--seed", "1", "--position", "4HPwATDgc/ABMA x 31")
    code, out, _ = run(*start, stdin="8/4\n24/23/2\n8/5 6/5\nquit\n")
    assert code == 0 and "'24/23/2' is not legal here" in out and "can be played in different ways" not in out
    bottom = [line for line in out.splitlines() if line.split()[:1] in (["12"], ["13"])]
    assert {line.split()[0] + line.split()[-1] for line in bottom} == {"1324", "121"}
    assert len(json.loads(run(*start, "--json", stdin="8/5 6/5\n")[1])["moves"].split()) > 3


def test_play_takes_a_position() -> None:
    """What is wrong with it is said before a page opens, and in the terminal."""
    code, _, err = run("play", "connect4", "--position", "7 x")
    assert code == 1 and "has 6 rows, not 1" in err
    code, out, _ = run("play", "connect4", "random", "--position", "7/7/7/7/3o3/3x3 x", stdin="4\nundo\n")
    assert code == 0 and "You are x" in out
