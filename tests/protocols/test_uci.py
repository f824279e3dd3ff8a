"""UCI and UGI: every command, right and wrong, and searches that are stopped."""

from __future__ import annotations

import io
import random
import re
import sys
from time import perf_counter

import pytest
from protocol_cases import Talk

from windrow import SearchConfig, make_game
from windrow.errors import GameError
from windrow.evaluators import HashEvaluator, RolloutEvaluator
from windrow.play import play_match
from windrow.protocols.uci import Uci

CONNECT4 = make_game("connect4")


def answers(*commands: str, dialect: str = "uci", game: str = "connect4", **settings: object) -> list[str]:
    """What an engine with 8 simulations a move answers; `go` alone is not stopped by the end of its input."""
    config = SearchConfig(num_simulations=8, leaves_per_tree=1, **settings)  # pyright: ignore[reportArgumentType]
    engine = Uci(make_game(game), lambda _: HashEvaluator(), config, dialect=dialect)
    out = io.StringIO()
    engine.run(io.BytesIO("".join(f"{line}\n" for line in commands).encode()), out)
    return out.getvalue().splitlines()


def moves_of(lines: list[str]) -> list[str]:
    return [line.split()[1] for line in lines if line.startswith("bestmove")]


def test_it_introduces_itself() -> None:
    lines = answers("uci", "isready")
    assert lines[0].startswith("id name windrow") and lines[-2:] == ["uciok", "readyok"]
    assert "option name MultiPV type spin default 1 min 1 max 500" in lines
    assert answers("ugi", dialect="ugi")[-1] == "ugiok" and answers("uci", dialect="ugi") == []


def test_a_search_reports_a_line_that_can_be_played() -> None:
    lines = answers("position startpos moves 4 4", "go nodes 50", "setoption name MultiPV value 3", "go nodes 50")
    first, second = (index for index, line in enumerate(lines) if line.startswith("bestmove"))
    form = (
        r"info depth \d+ seldepth \d+ multipv (\d+) score (?:cp -?\d+|mate -?\d+) nodes (\d+) nps \d+ time \d+ pv (.+)"
    )
    infos = [re.fullmatch(form, line) for line in lines if line.startswith("info")]
    assert all(infos) and second > first
    assert [match[1] for match in infos[-3:] if match] == ["1", "2", "3"]
    for match in infos:
        assert match is not None
        CONNECT4.state_from_moves("44" + match[3].replace(" ", ""))
    last = infos[-3]
    assert last is not None and lines[second] == f"bestmove {last[3].split()[0]}"


def test_scores_by_hand() -> None:
    """X wins at once with 1. Against three of x's with both ends free, o has lost, and it is o who moves."""
    lines = answers("position startpos moves 1 2 1 2 1 2", "go nodes 2000", prove=True)
    assert any(" score mate 1 " in line for line in lines) and moves_of(lines) == ["1"]
    lines = answers("position startpos moves 3 3 4 4 5", "go nodes 4000", prove=True)
    assert any(" score mate -" in line for line in lines[-2:])


@pytest.mark.parametrize(
    ("commands", "note", "moves"),
    [
        (["position fen nonsense", "go nodes 8"], "position", ["0000"]),
        (["position startpos moves 4 9", "go nodes 8"], "move 2, '9', is not legal", ["0000"]),
        (["position", "go nodes 8"], "followed by startpos or fen", ["0000"]),
        (["position startpos moves 1 2 1 2 1 2 1", "go nodes 8"], "", ["0000"]),
        (["setoption name Nothing value 3"], "no option 'Nothing'", []),
        (["setoption name MultiPV value many"], "MultiPV is a whole number", []),
        (["setoption name Hash value -1"], "Hash is a whole number", []),
        (["setoption"], "no option", []),
        (["query gameover"], "", []),
        (["query what"], "query is followed by", []),
        (["xyzzy", "stop", "ponderhit", "debug on", "register later"], "", []),
    ],
)
def test_what_is_wrong_is_told_and_ends_nothing(commands: list[str], note: str, moves: list[str]) -> None:
    lines = answers(*commands, "isready", "position startpos", "go nodes 8")
    assert lines.count("readyok") == 1 and len(moves_of(lines)) == len(moves) + 1
    assert moves_of(lines)[:-1] == moves and moves_of(lines)[-1] in "1234567"
    if note:
        assert any(line.startswith("info string") and note in line for line in lines), lines


def test_ugi_answers_questions() -> None:
    lines = answers(
        "query p1turn", "query gameover", "query result", "position startpos moves 1 2 1 2 1 2 1",
        "query gameover", "query result", "position startpos moves 4", "query p1turn", dialect="ugi",
    )  # fmt: skip
    assert lines == [f"response {word}" for word in ("true", "false", "none", "true", "p1win", "false")]


def test_words_before_a_command_are_skipped() -> None:
    assert answers("joho isready") == ["readyok"]


def test_games_with_dice_are_refused() -> None:
    with pytest.raises(GameError, match="without chance"):
        Uci(make_game("backgammon"), lambda _: HashEvaluator())


def test_a_broken_evaluator_ends_nothing() -> None:
    def fail(_: object) -> object:
        raise ValueError("no weights")

    engine = Uci(CONNECT4, fail)
    out = io.StringIO()
    engine.run(io.BytesIO(b"isready\nposition startpos moves 4\ngo movetime 50\nisready\n"), out)
    lines = out.getvalue().splitlines()
    assert lines.count("readyok") == 2 and lines.count("bestmove 1") == 1
    assert sum("ValueError: no weights" in line for line in lines) >= 2


# --- A process ------------------------------------------------------------------------------------------------------


def until(talk: Talk, word: str) -> str:
    while not (line := talk.hear()).startswith(word):
        pass
    return line


def test_searches_end_when_they_shall() -> None:
    with Talk("uci", "connect4", "--threads", "1") as talk:
        talk.send("uci", "isready", "position startpos", "go nodes 10")
        until(talk, "bestmove")
        talk.send("go infinite", "isready")
        until(talk, "readyok")  # while it thinks
        assert until(talk, "info").startswith("info depth")
        start = perf_counter()
        talk.send("stop")
        until(talk, "bestmove")
        assert perf_counter() - start < 5
        talk.send("go infinite", "stop", "go infinite", "stop")  # a stop ends what came before it, no more
        until(talk, "bestmove")
        until(talk, "bestmove")
        talk.send("go ponder wtime 100 btime 100")
        until(talk, "info")
        talk.send("ponderhit")
        until(talk, "bestmove")
        talk.send("position startpos moves 4", "go wtime 1 btime 400 movestogo 1")
        start = perf_counter()
        until(talk, "bestmove")
        assert perf_counter() - start < 5
        talk.send("go infinite")
        until(talk, "info")
        talk.send("quit")
        code, lines, errors = talk.leave()
        assert code == 0 and not errors and len(moves_of(lines)) == 1


@pytest.mark.parametrize("dialect", ["uci", "ugi"])
def test_an_engine_plays_a_match_as_a_player(dialect: str) -> None:
    """It keeps its tree, and with a clock it does not lose on time."""
    game = make_game("tictactoe")
    spec = f"{dialect}:'{sys.executable}' -m windrow protocol {dialect} tictactoe --threads 1,processes=1"
    settings = "nodes=50,MultiPV=2" if dialect == "uci" else "clock_s=5,increment_s=0.05"
    result = play_match(game, f"{spec},{settings}", "random", num_games=4, openings_plies=1, stop_when_sure=False)
    assert [game.forfeit for game in result.games] == [""] * 4 and result.score > 0.5


# --- Noise ----------------------------------------------------------------------------------------------------------

_FRAGMENTS = (
    *(
        "uci",
        "isready",
        "ucinewgame",
        "position",
        "startpos",
        "fen",
        "moves",
        "go",
        "stop",
        "setoption",
        "name",
        "value",
    ),
    *("1", "4", "7", "-1", "99999999999999999999", "0.5", "nan", "MultiPV", "Hash", "nodes", "wtime", "btime", "winc"),
    *(
        "movestogo",
        "depth",
        "infinite",
        "ponder",
        "ponderhit",
        "query",
        "result",
        "7/7/7/7/7/7 x",
        "\x00",
        "é",
        "\t",
        "",
    ),
    *("0000", "e2e4", "x" * 300, "movetime", "mate", "searchmoves"),
)


def noise(seed: int, count: int, fragments: tuple[str, ...] = _FRAGMENTS) -> list[str]:
    """Random lines of words that mean something, and of bytes that do not."""
    draw = random.Random(seed)
    lines = [" ".join(draw.choices(fragments, k=draw.randint(1, 7))) for _ in range(count)]
    return [line if draw.random() < 0.9 else line[::-1] for line in lines]


@pytest.mark.parametrize("dialect", ["uci", "ugi"])
def test_10_000_random_lines(dialect: str) -> None:
    """Nothing ends it, every search has one answer, and afterwards it plays on."""
    lines = [line.replace("movetime", "nodes") for line in noise(7, 10_000)]
    lines = [re.sub(r"\bquit\b", "", line) for line in lines]
    config = SearchConfig(num_simulations=2, leaves_per_tree=1)
    engine = Uci(CONNECT4, lambda _: RolloutEvaluator(), config, dialect=dialect)
    out = io.StringIO()
    text = "\n".join([*lines, "stop", "setoption name Hash value 0", "position startpos", "go nodes 2", "isready"])
    engine.run(io.BytesIO(text.encode()), out)
    heard = out.getvalue().splitlines()
    assert heard[-1].startswith("bestmove") and heard[-1] != "bestmove 0000"
    assert all(re.match(r"(id|option|uciok|ugiok|readyok|info|bestmove|response)\b", line) for line in heard)
    assert len(moves_of(heard)) == sum(command_of(line, dialect) == "go" for line in text.splitlines())


def command_of(line: str, dialect: str) -> str:
    """The first word that is a command."""
    known = (
        *("go", "isready", "ponderhit", "position", "query", "setoption", "stop", "ucinewgame", "uginewgame"),
        dialect,
    )
    return next((word for word in line.split() if word in known), "")
