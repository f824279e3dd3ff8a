"""Real programs as players: windrow's own brain everywhere, Debian's programs where they are installed."""

from __future__ import annotations

import sys

import pytest

from windrow import ConfigError, make_game
from windrow.games.core_game import CoreGame
from windrow.games.registry import GAMES
from windrow.games.turns import turn_ends
from windrow.play import make_player, play_match
from windrow.play.following import GameSoFar
from windrow.play.programs.command import is_installed
from windrow.play.programs.player import ProgramPlayer
from windrow.train.config import StrengthConfig

OWN = f"'{sys.executable}' -m windrow protocol"


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_installed(program), reason=f"needs Debian's package {program}")


def game_of(name: str, **options: int) -> CoreGame:
    if name not in GAMES:
        pytest.skip(f"needs the game {name}")
    return make_game(name, **options)


def test_own_brain_against_itself() -> None:
    """Two processes of `windrow protocol gomocup`, one of which meets every game in its middle."""
    game = make_game("gomoku", size=7, rule="standard")
    spec = f"gomocup:{OWN} gomocup,processes=1,time_s=0.05,memory=1GB"
    result = play_match(game, spec, spec, num_games=2, openings_plies=3, stop_when_sure=False)
    assert [game.forfeit for game in result.games] == ["", ""]
    assert result.to_dict()["games"][0]["forfeit"] == ""


def test_a_brain_is_asked_about_positions_alone() -> None:
    """It completes its five; the stones on the board say whose they are."""
    game = make_game("gomoku", size=9)
    player = make_player(game, f"gomocup:{OWN} gomocup,processes=1,time_s=0.2,clock_s=none")
    try:
        for text in ("a1 a9 b1 b9 c1 c9 d1 d9", "a1 a9 b1 b9 c1 c9 d1 d9 h5"):
            state = game.state_from_moves(text)
            (action,) = player.choose([state])
            assert game.action_name(action) in ("e1", "e9")
            assert game.to_play(game.apply(state, action)) < 0 or len(text.split()) == 8
    finally:
        player.close()


@needs("gnubg")
def test_gnubg_plays_whole_turns() -> None:
    game = make_game("backgammon")
    result = play_match(game, "gnubg:0", "random", num_games=6, seed=2, openings_plies=3, stop_when_sure=False)
    assert not any(game.forfeit for game in result.games)
    assert result.gain is not None and result.gain.mean > 1.0


@needs("gnubg")
def test_gnubg_finishes_a_turn_as_it_would_have_played_it() -> None:
    """After its own first step, which its question for whole turns cannot express, it ends in the same position."""
    game = make_game("backgammon")
    player = ProgramPlayer(game, "gnubg:0,processes=1")
    other = ProgramPlayer(game, "gnubg:0,processes=1")
    seen = 0
    try:
        for text in ("x31", "x64", "x65", "x42", "x31 8/5 6/5 33", "x21 13/11 6/5 66"):
            state = start = game.state_from_moves(text)
            mover = game.to_play(start)
            while game.to_play(state) == mover:
                (action,) = player.choose([state])
                if state == start:
                    middle = game.apply(state, action)
                state = game.apply(state, action)
            if game.to_play(middle) != mover:
                continue
            assert state in turn_ends(game, start)
            again = middle
            while game.to_play(again) == mover:
                again = game.apply(again, other.choose([again])[0])
            seen += 1
            assert again == state, text
    finally:
        player.close()
        other.close()
    assert seen >= 4


@needs("stockfish")
def test_stockfish_plays_chess_alone() -> None:
    with pytest.raises(ConfigError, match="plays chess"):
        make_player(make_game("tictactoe"), "uci:stockfish")


@needs("stockfish")
def test_stockfish_plays_chess() -> None:
    game = game_of("chess")
    spec = "uci:stockfish,UCI_LimitStrength=true,UCI_Elo=1350,nodes=200,processes=1"
    result = play_match(game, spec, "random", num_games=4, seed=1, stop_when_sure=False)
    assert not any(game.forfeit for game in result.games) and result.score > 0.7


@needs("gnugo")
def test_gnugo_plays_go() -> None:
    game = game_of("go", size=9)
    result = play_match(game, "gtp:gnugo --level 1,processes=1", "random", num_games=2, seed=1, stop_when_sure=False)
    assert result.score == 1.0


@needs("gnugo")
def test_gnugo_answers_on_the_board_it_was_told() -> None:
    """GNU Go plays Go on any grid. Its move is legal on a board of Gomoku, and in the same corner as the vertex."""
    game = make_game("gomoku", size=9)
    player = ProgramPlayer(game, "gtp:gnugo --level 1,processes=1")
    try:
        moves = game.moves_from_text("e5 i9 c3")
        (answer,) = player.choose_in([GameSoFar(0, game.state_from_moves(moves), tuple(moves))])
        assert isinstance(answer, int) and answer in game.legal_actions(game.state_from_moves(moves))
    finally:
        player.close()


def test_programs_are_not_started_by_files() -> None:
    with pytest.raises(ConfigError, match="cannot be outside programs"):
        StrengthConfig(opponents=("random", "uci:touch canary"))
