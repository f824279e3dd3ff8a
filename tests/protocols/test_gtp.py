"""The Go Text Protocol: every command, right and wrong, on the boards that there are."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from protocol_cases import Talk
from test_uci import noise

from windrow import SearchConfig, make_game
from windrow.errors import GameError
from windrow.evaluators import HashEvaluator, RolloutEvaluator
from windrow.games.core_game import CoreGame
from windrow.games.registry import GAMES
from windrow.games.vertices import Vertices
from windrow.play import play_match
from windrow.protocols.gtp import Gtp
from windrow.protocols.sgf import read_sgf


def converse(*commands: str, game: CoreGame | None = None, resign_below: float = 0.0, sims: int = 8) -> list[str]:
    """The answers to commands, in order; each without the empty line at its end."""
    config = SearchConfig(num_simulations=sims, leaves_per_tree=1)
    rules = make_game("gomoku", size=9) if game is None else game
    engine = Gtp(rules, lambda _: HashEvaluator(), config, resign_below=resign_below)
    out = io.StringIO()
    engine.run(io.BytesIO("".join(f"{line}\n" for line in commands).encode()), out)
    text = out.getvalue()
    assert text.endswith("\n\n") and "\n\n\n" not in text
    return text[:-2].split("\n\n")


# --- Vertices -------------------------------------------------------------------------------------------------------


def test_columns_leave_out_i() -> None:
    """Gomoku's j5 is the tenth column, which the protocol calls K; names without i stay as they are."""
    game = make_game("gomoku", size=15)
    vertices = Vertices(game)
    state = game.initial_state()
    assert vertices.size == 15
    assert [vertices.from_name(name) for name in ("a1", "h8", "i8", "j5", "o15")] == ["A1", "H8", "J8", "K5", "P15"]
    for action in range(game.num_actions):
        assert vertices.to_action(vertices.from_name(game.action_name(action)), state) == action
    assert [vertices.to_action(text, state) for text in ("i8", "z1", "a16", "pass", "", "a0", "a1 ")] == [
        *[None] * 6,
        game.parse_action("a1"),
    ]


def test_games_without_squares_are_refused() -> None:
    for name in ("connect4", "azul", "backgammon"):
        with pytest.raises(GameError):
            Gtp(make_game(name), lambda _: HashEvaluator())


# --- Commands -------------------------------------------------------------------------------------------------------


def test_numbers_comments_and_names() -> None:
    said = converse("1 name", "2 protocol_version # two", "# nothing", "\x01 3\tknown_command\tplay", "known_command x")
    assert said == ["=1 windrow", "=2 2", "=3 true", "= false"]
    (listed,) = converse("list_commands")
    assert {"= boardsize", "genmove", "lz-analyze", "loadsgf", "final_score"} <= set(listed.split("\n"))


def test_a_game_is_played_and_taken_back() -> None:
    said = converse("play b E5", "genmove w", "showboard", "undo", "undo", "undo", "showboard")
    assert said[0] == "=" and re.fullmatch(r"= [A-HJ][1-9]", said[1])
    assert "5 . . . . x . . . ." in said[2] and said[2].endswith("x to move")
    assert said[3:6] == ["=", "=", "? cannot undo"]
    assert said[6].count(". ") >= 70 and "x " not in said[6].rpartition("\n")[0]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("play b z9", "? illegal move"),
        ("play b", "? invalid color or coordinate"),
        ("play green a1", "? invalid color or coordinate"),
        ("play w a1", "? it is the turn of black"),
        ("genmove", "? invalid color"),
        ("genmove w", "? it is the turn of black"),
        ("boardsize 7", "="),
        ("boardsize 30", "? unacceptable size.*"),
        ("boardsize x", "? boardsize: a number.*"),
        ("boardsize", "? boardsize: a number.*"),
        ("komi 6.5", "="),
        ("komi nan", "? komi: a number.*"),
        ("final_score", "? the game is not over"),
        ("time_settings 60 10", "? time_settings is followed by three values"),
        ("time_left b x 0", "? time_left: a number.*"),
        ("loadsgf /no/such/file", "? cannot load file: No such file or directory"),
        ("loadsgf /dev/zero", "? cannot load file: it is not a regular file"),
        ("loadsgf", "? loadsgf is followed by.*"),
        ("quack", "? unknown command"),
        ("17", r"\?17 unknown command"),
        ("x" * 5000, "? line too long"),
    ],
)
def test_what_is_wrong_is_answered(command: str, answer: str) -> None:
    said = converse(command, "genmove b")
    assert re.fullmatch(answer.replace("? ", r"\? "), said[0]) and re.fullmatch(r"= [A-J]\d", said[1])


def test_scores_and_the_end_of_a_game() -> None:
    moves = [f"play {'bw'[turn % 2]} {'ab'[turn % 2]}{turn // 2 + 1}" for turn in range(9)]
    said = converse(*moves, "final_score", "genmove w", "play w h8")
    assert said[-3:] == ["= B+", "? the game is over", "? the game is over"]


def test_a_hopeless_game_is_resigned() -> None:
    """White cannot stop two open fours; below a win rate of 100 % every game is given up."""
    moves = ["play b c3", "play w a9", "play b c4"]
    assert converse(*moves, "genmove w", resign_below=1.0)[-1] == "= resign"
    assert converse(*moves, "reg_genmove w", resign_below=1.0)[-1] != "= resign"


def test_analysis_goes_on_until_the_next_line() -> None:
    with Talk("gtp", "gomoku:size=9", "--threads", "1") as talk:
        for command, form in (
            ("lz-analyze 5", r"info move [A-J]\d visits \d+ winrate \d+ prior \d+ lcb \d+ order 0 pv [A-J]\d.*"),
            ("kata-analyze b 5", r"info move [A-J]\d visits \d+ utility \S+ winrate 0\.\d+ .* order 0 pv [A-J]\d.*"),
        ):
            assert talk.ask(command) == "="
            for _ in range(2):
                assert re.fullmatch(form, talk.hear())
            talk.send("name")
            while (line := talk.hear()).startswith("info"):
                pass
            assert line == "" and talk.hear() == "= windrow" and talk.hear() == ""
        assert talk.ask("quit").strip() == "="
        assert talk.process.wait(30) == 0


def test_time_is_kept() -> None:
    """Without a limit a move takes 5 seconds; with little time left it takes little, also in Canadian overtime."""
    with Talk("gtp", "gomoku:size=7", "--threads", "1") as talk:
        for commands in (["time_settings 0 2 10"], ["time_settings 60 0 0", "time_left b 1 0"], ["time_left b 3 5"]):
            for command in commands:
                assert talk.ask(command) == "=" and talk.hear() == ""
            answer, seconds = talk.ask_timed("reg_genmove b")
            assert answer.startswith("= ") and seconds < 2.5 and talk.hear() == ""


def test_records_are_loaded(tmp_path: Path) -> None:
    record = tmp_path / "game.sgf"
    record.write_text("(;GM[4]SZ[7]KM[6.5]C[a \\] comment (;B\\[aa\\])]\n;B[dd];W[cc]\n(;B[ee];W[])(;B[ff]))", "utf-8")
    assert read_sgf(record.read_text()).moves == ((0, "dd"), (1, "cc"), (0, "ee"), (1, ""))
    said = converse(f"loadsgf {record} 4", "showboard", f"loadsgf {record}", "showboard", "genmove b")
    assert said[0] == "= white" and "4 . . . x . . ." in said[1] and "3 . . . . x . ." in said[1]
    assert said[2] == "? cannot load file: move 4: illegal move" and "x . " not in said[3]
    record.write_text("(;SZ[7]AB[aa];W[bb])")
    assert converse(f"loadsgf {record}")[0].startswith("? records that begin with stones")
    record.write_bytes(b"\xff\x00 no record")
    assert converse(f"loadsgf {record}")[0] == "? this is no SGF record"


def test_a_broken_evaluator_ends_nothing() -> None:
    def fail(_: object) -> object:
        raise ValueError("no\nweights")

    engine = Gtp(make_game("tictactoe"), fail)
    out = io.StringIO()
    engine.run(io.BytesIO(b"genmove b\nname\n"), out)
    assert out.getvalue() == "? ValueError: no weights\n\n= windrow\n\n"


@pytest.mark.parametrize("name", ["othello", "tictactoe", "gomoku:size=7", "hex:size=5", "go:size=5"])
def test_an_engine_plays_a_match_as_a_player(name: str) -> None:
    stem, _, size = name.partition(":size=")
    if stem not in GAMES:
        pytest.skip(f"needs the game {stem}")
    game = make_game(stem, **({"size": int(size)} if size else {}))
    spec = f"gtp:'{sys.executable}' -m windrow protocol gtp {name} --threads 1 --sims 20,processes=1"
    result = play_match(game, spec, "random", num_games=2, openings_plies=1, stop_when_sure=False)
    assert [game.forfeit for game in result.games] == ["", ""] and result.score > 0


_FRAGMENTS = (
    *("boardsize", "clear_board", "komi", "play", "genmove", "reg_genmove", "undo", "time_settings", "time_left", "b"),
    *("w", "black", "white", "A1", "J9", "pass", "resign", "7", "9", "19", "6.5", "-1", "1e9", "99999999999", "nan"),
    *(
        "loadsgf",
        "/dev/null",
        "showboard",
        "final_score",
        "known_command",
        "list_commands",
        "lz-analyze",
        "kata-analyze",
    ),
    *("é", "\x00", "#", "\t", "", "x" * 300, "12", "name", "0", "1"),
)


def test_10_000_random_lines() -> None:
    """Nothing ends it, every command has one answer, and afterwards it plays on."""
    lines = noise(11, 10_000, _FRAGMENTS)
    lines = [line.encode("utf-8", errors="replace").decode() for line in lines]
    engine = Gtp(
        make_game("tictactoe"), lambda _: RolloutEvaluator(), SearchConfig(num_simulations=2, leaves_per_tree=1)
    )
    out = io.StringIO()
    end = ["time_settings 0 1 0", "clear_board", "999 genmove b"]
    engine.run(io.BytesIO("\n".join([*lines, *end]).encode()), out)
    text = out.getvalue()
    assert re.search(r"=999 [A-C][1-3]\n\n$", text)
    commands = [line for line in lines if re.sub(r"[\x00-\x08\x0b-\x1f]", "", line).partition("#")[0].split()]
    assert sum(line.startswith(("=", "?")) for line in text.split("\n")) == len(commands) + len(end)
