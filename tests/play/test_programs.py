"""Outside programs as players, with a program of the tests that misbehaves on demand."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import windrow
from windrow import ConfigError, ProgramError
from windrow.play import make_player, play_match, play_tournament
from windrow.play.following import Forfeit, GameSoFar, forfeited_returns
from windrow.play.players import Player
from windrow.play.programs import PROTOCOLS, ProgramPlayer, is_program
from windrow.play.programs.command import parse_program
from windrow.play.programs.player import load_protocol
from windrow.play.programs.program import Program

FAKE = Path(__file__).parent / "fake_program.py"
TICTACTOE = windrow.make_game("tictactoe")
KINDS = {"uci": "", "ugi": "", "gtp": " --gtp"}


def fake(mode: str, kind: str = "uci", settings: str = "", pid_file: Path | None = None) -> str:
    """The spec of the fake program."""
    pids = "" if pid_file is None else f" --pid '{pid_file}'"
    return f"{kind}:'{sys.executable}' -I '{FAKE}' {mode}{KINDS[kind]}{pids},processes=1{settings}"


def so_far(moves: str, number: int = 0) -> GameSoFar:
    actions = tuple(TICTACTOE.moves_from_text(moves))
    return GameSoFar(number, TICTACTOE.state_from_moves(moves), actions)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


# --- Specs ----------------------------------------------------------------------------------------------------------


def test_parts_of_a_spec() -> None:
    spec = parse_program("uci:stockfish,UCI_LimitStrength=true,UCI_Elo=1350,time_s=0.1,processes=2")
    assert spec.protocol == "uci" and spec.command == ("stockfish",)
    assert spec.options == {"UCI_LimitStrength": "true", "UCI_Elo": "1350"}
    assert (spec.settings.time_s, spec.settings.processes) == (0.1, 2)
    spec = parse_program("gtp:/opt/my go/x --level 1 'a, b' --c=d,Skill Level=3")
    assert spec.command == ("/opt/my", "go/x", "--level", "1", "a, b", "--c=d")
    assert spec.options == {"Skill Level": "3"}
    assert parse_program("gnubg:2").command == ("2",)
    assert parse_program("gomocup:'/with space/pbrain, x'").command == ("/with space/pbrain, x",)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("uci:stockfish,fast", "is not a setting key=value"),
        ("uci:stockfish,time_s=0", "time_s must be from"),
        ("uci:stockfish,time_s=1,clock_s=5", "give one of them"),
        ("uci:stockfish,processes=x", "processes must be a whole number"),
        ("gtp:'gnugo", "cannot be read"),
        ("uci:", "names no program"),
        ("gtp:no-such-program", "no-such-program was not found"),
        ("gnubg:0", "plays backgammon"),
        ("gnubg:9", "plays backgammon"),
        ("gomocup:x", "brains play gomoku"),
        ("gtpp:gnugo", "Did you mean 'gtp:'?"),
    ],
)
def test_wrong_specs(spec: str, message: str) -> None:
    with pytest.raises((ConfigError, ProgramError), match=message):
        make_player(TICTACTOE, spec)


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.play.programs.command._GAMES", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ProgramError, match=r"gtp:gnugo did not start: .* apt install gnugo"):
        make_player(windrow.make_game("gomoku", size=9), "gtp:gnugo")


def test_unknown_options_of_a_program_are_named() -> None:
    with pytest.raises(ConfigError, match=r"has no setting 'Skil_Level'. Did you mean 'Skill Level'\?"):
        make_player(TICTACTOE, fake("good", settings=",Skil_Level=3"))
    player = make_player(TICTACTOE, fake("crash", settings=",Skill_Level=7"))
    try:
        (answer,) = player.choose_in([so_far("a3 b3 c3 a2")])  # pyright: ignore[reportAttributeAccessIssue]
        assert answer == TICTACTOE.parse_action("b2")
    finally:
        player.close()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_loads(name: str) -> None:
    assert issubclass(load_protocol(name), Program) and is_program(f"{name}:x")


def test_a_path_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_program("uci:run")
    (tmp_path / "uci:run").mkdir()
    assert not is_program("uci:run")


# --- Games ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_match_is_played_to_its_end(kind: str) -> None:
    """The first free square each time: the program's moves can be told from the record of every game."""
    result = play_match(TICTACTOE, fake("good", kind), "random", num_games=8, openings_plies=1, stop_when_sure=False)
    assert not any(game.forfeit for game in result.games)
    for game in result.games:
        moves = TICTACTOE.moves_from_text(game.moves)
        for turn in range(1, len(moves)):
            if (turn % 2 == 0) == (game.first == "A"):
                assert moves[turn] == min(set(range(9)) - set(moves[:turn]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("illegal", r"at move \d: it answered .*, which is not legal"),
        ("crash", r"at move \d: python.* has ended with exit status 3; it wrote to stderr:\nout of cheese error"),
        ("hang", r"at move \d: python.* did not answer in time"),
        ("resign", "resigned at move|which is not legal"),
    ],
)
def test_who_misbehaves_loses_the_game(kind: str, mode: str, reason: str) -> None:
    spec = fake(mode, kind, settings=",timeout_s=1")
    # Against a player that leaves the square a3 alone, no game is over before the program's second move.
    result = play_match(TICTACTOE, spec, LastSquare(), num_games=2, openings_plies=0, stop_when_sure=False)
    assert [game.score for game in result.games] == [0.0, 0.0]
    for game in result.games:
        assert re.search(reason, game.forfeit), game.forfeit
        assert game.forfeit.startswith(spec) and game.gain == -1.0
    assert "2 games ended early; the first one because" in result.table()


class LastSquare:
    """Plays the last free square."""

    name = "last"

    def choose(self, states: list[windrow.games.core_game.State]) -> list[int]:
        return [TICTACTOE.legal_actions(state)[-1] for state in states]

    def close(self) -> None:
        pass


def test_a_tournament_counts_forfeits() -> None:
    players = [fake("illegal"), LastSquare(), "random"]
    result = play_tournament(TICTACTOE, players, num_games=6, openings_plies=0)
    lost = [game for game in result.games if game.forfeit]
    assert lost
    for game in lost:
        assert game.returns[game.players.index("A")] == -1.0 and sum(game.returns) == 0.0


def test_forfeits_by_hand() -> None:
    backgammon = windrow.make_game("backgammon")
    assert forfeited_returns(backgammon, 0) == pytest.approx([-1 / 3, 1 / 3])  # one point of three
    assert forfeited_returns(windrow.make_game("azul", players=3), 1) == [0.5, -1.0, 0.5]


def test_a_clock_runs_out() -> None:
    """Each answer from the second on takes 0.4 s of a clock of 0.6 s: the third one is too late."""
    player = ProgramPlayer(TICTACTOE, fake("slow", settings=",clock_s=0.6"))
    try:
        assert player.choose_in([so_far("")]) == [0]
        assert player.choose_in([so_far("a3 c1")]) == [1]
        (late,) = player.choose_in([so_far("a3 c1 b3 b1")])
        assert isinstance(late, Forfeit) and "did not answer in time" in late.reason
        # Another game has a clock of its own.
        assert player.choose_in([so_far("", number=1)]) == [0]
        assert player.choose_in([so_far("a3 c1", number=1)]) == [1]
    finally:
        player.close()


def test_after_a_failure_the_next_game_has_a_new_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    player = ProgramPlayer(TICTACTOE, fake("crash", pid_file=pids))
    try:
        assert player.choose_in([so_far("")]) == [0]
        assert isinstance(player.choose_in([so_far("a3 c1")])[0], Forfeit)
        assert player.choose_in([so_far("", number=1)]) == [0]
        assert len(set(pids.read_text().split())) == 2
    finally:
        player.close()


def test_a_position_without_moves() -> None:
    """UCI programs take positions; GTP programs need the moves."""
    player = make_player(TICTACTOE, fake("good"))
    assert player.choose([TICTACTOE.initial_state()]) == [0]
    player.close()
    player = make_player(TICTACTOE, fake("good", "gtp"))
    with pytest.raises(ProgramError, match="needs the moves of a game"):
        player.choose([TICTACTOE.initial_state()])
    player.close()


# --- Ends -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("mode", ["good", "deaf"])
def test_closing_a_player_ends_its_process(mode: str, tmp_path: Path) -> None:
    player: Player = make_player(TICTACTOE, fake(mode, pid_file=tmp_path / "pid"))
    (pid,) = map(int, (tmp_path / "pid").read_text().split())
    assert is_alive(pid)
    player.close()
    player.close()
    assert not is_alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the processes of a killed process on Linux only")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_windrow(how: signal.Signals, tmp_path: Path) -> None:
    """Killed, or interrupted while the program hangs; the program ignores the end of its input."""
    mode = "deaf" if how == signal.SIGKILL else "hang"
    spec = fake(mode, pid_file=tmp_path / "pid")
    code = f"""
import time, windrow
from windrow.play import make_player, play_match
game = windrow.make_game("tictactoe")
if {mode!r} == "hang":
    play_match(game, {spec!r}, "random", num_games=2, openings_plies=0)
player = make_player(game, {spec!r})
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        assert wait_for(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text().strip()))
        (pid,) = map(int, (tmp_path / "pid").read_text().split())
        time.sleep(0.5)
        assert is_alive(pid)
        os.kill(process.pid, how)
        assert process.wait(20) != 0
        assert wait_for(lambda: not is_alive(pid))
    finally:
        process.kill()
        process.wait()
