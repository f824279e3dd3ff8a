"""What commands look like in a terminal: tables and help at 80 columns, error bars, names, times."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from cli_cases import run, run_json

from windrow import CheckpointError, ConfigError, make_game
from windrow.cli.app import app
from windrow.cli.duration import parse_duration
from windrow.cli.output import counted, print_table, share_of_network, stdout
from windrow.cli.training_display import describe_forecast
from windrow.games.turns import parse_turn
from windrow.play.match import MatchGame, MatchResult
from windrow.play.seating import gain_of, lettered
from windrow.train.checkpoint import load_model
from windrow.train.fit import Forecast

HEADER = ("engine", "<trees", "sims/s", "positions/s", "network alone/s", "share", "against the first")
TUNED = ("", "<candidate", "sims/s", "worth", "adjusted/s", "rows per call", "fill", "network", "samples")
CANDIDATE = (">", "multiprocess, 1024 x 16, 4 workers", "999,999", "0.95", "949,999", "4096.0", "100%", "100%", "12")
ROW = (
    "multiprocess",
    "CPU, 4 processes, openvino-bf16, 2 batches of 64 out",
    "123,456",
    "98,765",
    "99,999",
    "9%",
    "2x",
)


def test_headers_and_cells_are_whole_at_any_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Headers wrap between words; where even that is too wide, every row becomes a block of lines."""
    for width in (40, 60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(HEADER, [ROW, ROW], title="measured")
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= width
        words = " ".join([name.lstrip("<") for name in HEADER] + [*ROW]).split()
        assert set(words) <= set(out.split()), width
        assert "…" not in out


def test_the_table_of_tune_is_one_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_table(TUNED, [CANDIDATE])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and any({"999,999", "949,999", "12"} <= set(line.split()) for line in lines)


@pytest.mark.parametrize("name", ["short", "runs/a-very-long-name-of-a-run:sims=200,c_puct=2.5,temperature=1"])
def test_names_of_players_fit_the_width(name: str) -> None:
    rows = [("A", name, "   10    20"), ("B", "random", "   30    40")]
    lines = lettered("  wins  lost", rows, 60)
    assert max(map(len, lines)) <= max(60, 3 + len(name))
    assert any(name in line for line in lines)
    assert [line.split()[-2:] for line in lines if line.startswith("B")][-1] == ["30", "40"]
    assert lettered("  wins  lost", rows, None)[0].startswith(" " * (3 + len(name)))


def test_the_tables_of_matches_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "rollout:2,c_puct=2.25,first_play=parent,virtual_loss=1,temperature=0.5,rollouts=1"
    for players in ((long, "random"), (long, "random", "rollout:1")):
        code, out, err = run("match", "tictactoe", *players, "--games", "6", "--no-stop")
        assert code == 0, err
        assert max(map(len, out.splitlines())) <= 80
        assert any(line.startswith("A  ") and "%" in line for line in out.splitlines())


@pytest.mark.parametrize(
    "command", ["check", "play", "match", "train", "tune", "protocol gomocup", "protocol analysis"]
)
def test_paragraphs_of_the_help_fill_their_lines(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is only left where the first word of the next one would not have fitted."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.strip() for line in run(*command.split(), "--help")[1].partition("╭")[0].splitlines()][3:]
    for line, after in pairwise(lines):
        if line and after:
            assert len(line) + 1 + len(after.split()[0]) > 76, line


def test_ports_are_checked_and_leave_room_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "65535" not in run("watch", "--help")[1]
    code, _, err = run("watch", "runs/none", "--port", "65536")
    assert code == 2 and "a port is a number from 0 to 65535" in err


def test_shares_and_counts() -> None:
    assert (share_of_network(1.675), share_of_network(0.9371)) == ("100.0%", "93.7%")
    assert (counted(1, "iteration"), counted(0, "game"), counted(2000, "leaf", "leaves")) == (
        "1 iteration",
        "0 games",
        "2,000 leaves",
    )


def test_results_that_are_all_alike_have_no_error_bar() -> None:
    """Their spread is 0, but that says nothing of how far the mean may be off."""
    game = make_game("backgammon")
    for rounds in ([(0.5, 0.5)], [(0.5, 0.5)] * 2):
        gain = gain_of(game, rounds)
        assert gain is not None and gain.error is None
        assert "±" not in str(gain) and "no error bar" in str(gain)
    gain = gain_of(game, [(0.5, 0.5), (-1.0, 1.0)])
    assert gain is not None and gain.error is not None and "±" in str(gain)
    one = MatchGame("", "A", 1.0, 0.5)
    result = MatchResult(
        game=game,
        player_a="a",
        player_b="b",
        games=(one, one),
        pairs=(0, 0, 0, 0, 1),
        elo=0.0,
        elo_error=0.0,
        los=0.5,
        stopped_by="games",
        test="",
        seed=0,
    )
    assert "no error bar" in result.table() and result.to_dict()["gain"]["error"] is None


def test_an_illegal_move_is_called_by_its_name() -> None:
    game = make_game("pig")
    state = game.initial_state()
    with pytest.raises(Exception, match=r"^'hold' is not legal here\.\nLegal moves: roll"):
        parse_turn(game, state, "hold")
    code, out, _ = run("play", "pig", "random", "--seed", "1", stdin="hold\nquit\n")
    assert code == 0 and "'hold' is not legal here" in out and "action 1" not in out


def test_times_have_units() -> None:
    assert [parse_duration(text) for text in ("500ms", "90s", "3m", "1.5h", "2d")] == [0.5, 90, 180, 5400, 172800]
    for text in ("soon", "", "nan", "inf", "-1s", "3x", "1sm"):
        with pytest.raises(ConfigError, match="not a duration; write"):
            parse_duration(text)
    with pytest.raises(ConfigError, match="more than zero"):
        parse_duration("0s")
    code, _, err = run("search", "tictactoe", "--time", "2")
    assert code == 1 and "--time 2 has no unit: write 2s, 2m or 2h" in err
    code, out, err = run("search", "tictactoe", "--time", "20ms")
    assert code == 0 and "stopped by time" in out, err


def test_names_between_colons_are_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    """The class of a game is followed by a colon in many lines, and the words for emoji are common class names."""
    stdout().print("three.py:Three: ResNet 32x3 on torch", markup=False)
    print_table(("game", "board"), [("snake.py:Snake:size=5", ":o: :x:")])
    out = capsys.readouterr().out
    assert "three.py:Three: ResNet" in out and "snake.py:Snake:size=5" in out and ":o: :x:" in out


def test_an_evaluator_is_not_a_damaged_checkpoint(tmp_path: Path) -> None:
    """Commands that take players say what a player is, and which command takes the file."""
    network = tmp_path / "net.onnx"
    network.write_bytes(b"\x08\x08")
    with pytest.raises(CheckpointError, match=r"not a checkpoint.*--evaluator"):
        load_model(network)
    (tmp_path / "mynet.py").write_text("def f(observations):\n    return None\n")
    function = f"{tmp_path}/mynet.py:f"
    for arguments in (
        ("match", str(network), "random", "tictactoe"),
        ("play", "tictactoe", str(network)),
        ("match", function, "random", "tictactoe"),
        ("match", "tictactoe", "random", function),
        ("play", "tictactoe", function),
    ):
        code, _, err = run(*arguments)
        assert code == 1 and "damaged" not in err and "--evaluator" in " ".join(err.split()), err


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[str]:
    """Every command that can be typed, groups included."""
    group = typer.main.get_command(app) if group is None else group
    found = [" ".join(path)] if path else []
    for name, command in getattr(group, "commands", {}).items():
        found += commands(command, (*path, name))
    return found


def test_no_option_is_cut_off_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in commands():
        assert "…" not in run(*command.split(), "--help")[1], command


def test_selfplay_reports_the_games_that_were_asked_for() -> None:
    """Others were in progress, some of them finished at the same move."""
    document = run_json("selfplay", "tictactoe", "-e", "uniform", "--games", "1", "--slots", "8", "--sims", "4")
    assert document["games"] == 1 and 5 <= document["moves"] <= 9 and document["unfinished_moves"] > 0
    assert document["first_player_wins"] + document["draws"] <= 1 and document["repeated_games"] == 0
    code, out, _ = run("selfplay", "tictactoe", "-e", "uniform", "--games", "1", "--slots", "2", "--sims", "4")
    assert code == 0 and "games        1 in " in out and "0 games" not in out


@pytest.mark.parametrize("is_python", [False, True])
@pytest.mark.parametrize(("rules_share", "learning_ratio"), [(0.1, 0.5), (0.9, 0.5), (0.9, 2.5)])
def test_the_forecast_is_two_lines(is_python: bool, rules_share: float, learning_ratio: float) -> None:
    expected = Forecast(
        iterations=1_000,
        games=999_999,
        positions=99_999_999,
        steps=9_999,
        learning_begins_s=3_599.0,
        rules_share=rules_share,
        learning_ratio=learning_ratio,
    )
    measured = cast("Any", SimpleNamespace(is_endless=False, is_python=is_python))
    config = cast("Any", SimpleNamespace(time_limit_s=86_400.0))
    for num_changed in (0, 12):
        lines = describe_forecast(expected, measured, config, num_changed=num_changed)
        assert len(lines) == 2 and max(map(len, lines)) <= 80
        assert ("12 settings adapted to --time" in lines[1]) == (num_changed == 12)


def test_the_end_of_a_run_suggests_the_pages_first_and_going_on_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ("--games", "4", "--slots", "4", "--sims", "2", "--set", "min_positions=4", "--batch-size", "4")
    code, out, err = run("train", "tictactoe", "--iterations", "0", "--run", "none", *few)
    assert code == 3 and "--iterations 10" in out and "--iterations 0" not in out, err
    code, out, err = run("train", "tictactoe", "--iterations", "2", "--run", "run", *few, "--set", "network.channels=4")
    assert code == 0 and " in 2 iterations" in out, err
    order = [out.index(f"windrow {name}") for name in ("play", "watch", "report", "match", "train")]
    assert order == sorted(order) and "windrow match tictactoe run rollout:400" in out


def test_a_terminal_shows_what_a_command_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing backends takes many seconds, in which nothing else is printed; pipes get no such line."""
    words = ("search", "tictactoe", "--evaluator", "uniform", "--sims", "5")
    assert run(*words)[::2] == (0, "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, stderr is a terminal then
    monkeypatch.setenv("COLUMNS", "120")
    assert "loading uniform, comparing backends on this machine (--backend torch skips this)" in run(*words)[2]
    assert "comparing backends" not in run(*words, "--backend", "torch")[2]
