"""Positions as pages get them: pictures, moves as text, the moves of a game."""

from __future__ import annotations

import random

import pytest

from windrow import make_game
from windrow.errors import GameError, IllegalMoveError
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.web.limits import RequestError
from windrow.web.pictures import draw
from windrow.web.positions import Line, read_moves


def test_connect4_places_are_where_the_stone_falls() -> None:
    game = make_game("connect4")
    before, after = game.state_from_moves("44"), game.state_from_moves("443")
    picture = draw(game, after, before)
    rows = ["".join(row) for row in picture["cells"]]
    assert rows == [".......", ".......", ".......", ".......", "...o...", "..xx..."]
    assert picture["fresh"] == [[2, 5]]
    assert picture["places"]["3"] == [3, 3] and picture["places"]["0"] == [0, 5]


@pytest.mark.parametrize(
    ("name", "moves", "cell"),
    [("gomoku", "a15 h8", [0, 0]), ("othello", "d3", [3, 2]), ("go", "j9", [8, 0]), ("hex", "b3", [1, 2])],
)
def test_cells_have_the_names_of_their_rows_and_columns(name: str, moves: str, cell: list[int]) -> None:
    game = make_game(name)
    line = Line(game)
    line.replace(read_moves(game, moves, 100))
    picture = draw(game, line.states[1], line.states[0])
    assert picture["fresh"] == [cell]
    for action in game.legal_actions(line.states[0])[:64]:  # a pass has no cell
        x, y = draw(game, line.states[0])["places"][str(action)]
        assert f"{picture['columns'][x]}{picture['rows'][y]}" == game.action_name(action)


def test_tictactoe_has_its_first_row_at_the_bottom() -> None:
    game = make_game("tictactoe")
    assert draw(game, game.state_from_moves("a1"))["cells"] == [[*"..."], [*"..."], [*"x.."]]


def test_backgammon_points_are_numbered_for_the_mover() -> None:
    """The opening position; x has rolled 4 and 2."""
    game = make_game("backgammon")
    picture = draw(game, game.state_from_moves("x42"))
    assert (picture["mover"], picture["dice"]) == ("x", [4, 2])
    points = {point["name"]: (point["count"], point["owner"]) for point in picture["top"] + picture["bottom"]}
    assert len(points) == 24
    assert points["24"] == (2, "x") and points["13"] == (5, "x") and points["8"] == (3, "x") and points["6"] == (5, "x")
    assert points["1"] == (2, "o") and points["12"] == (5, "o") and points["19"] == (5, "o") and points["7"] == (0, "")
    turned = draw(game, game.state_from_moves("o42"))
    assert turned["mover"] == "o" and turned["top"][0]["name"] == "12"
    assert {point["name"]: point["owner"] for point in turned["top"] + turned["bottom"]}["24"] == "o"


def test_azul_displays_and_boards() -> None:
    game = make_game("azul")
    picture = draw(game, game.state_from_moves("BBKW/BYYY/BYWW/BRRR/YRKW AK3"))
    # What is left of display A has gone to the centre, and the other displays keep their letters.
    assert [(display["name"], display["tiles"]) for display in picture["displays"]] == [
        ("A", ""),
        ("B", "BYYY"),
        ("C", "BYWW"),
        ("D", "BRRR"),
        ("E", "YRKW"),
    ]
    assert sorted(picture["centre"]) == sorted("BBW*")
    first, second = picture["boards"]
    assert first["lines"] == [".", "..", "..K", "....", "....."] and second["lines"][2] == "..."
    assert (first["score"], first["floor"], first["wall"][0]) == (0, ".......", "byrkw")


@pytest.mark.parametrize(
    "name", ["connect4", "go", "gomoku", "hex", "othello", "tictactoe", "backgammon", "azul", "pig"]
)
def test_every_position_of_a_game_can_be_drawn(name: str) -> None:
    game, dice = make_game(name), random.Random(5)
    state = before = game.initial_state()
    kinds: set[str] = set()
    for _ in range(400):
        picture = draw(game, state, before)
        kinds.add(picture["kind"])
        if picture["kind"] == "grid":
            placed = {str(action) for action in game.legal_actions(state) if game.action_name(action) != "pass"}
            assert set(picture["places"]) == placed
        if picture["kind"] == "backgammon":
            counts = {"x": picture["bar"]["x"] + picture["off"]["x"], "o": picture["bar"]["o"] + picture["off"]["o"]}
            for point in picture["top"] + picture["bottom"]:
                counts[point["owner"] or "x"] += point["count"]
            assert counts == {"x": 15, "o": 15}
        turn = game.to_play(state)
        if turn == TERMINAL:
            break
        chosen = (
            game.sample_outcome(state, dice.getrandbits(64))
            if turn == CHANCE
            else dice.choice(game.legal_actions(state))
        )
        before, state = state, game.apply(state, chosen)
    assert len(kinds) == 1 and (kinds == {"text"}) == (name == "pig")


@pytest.mark.parametrize("players", [3, 4])
def test_azul_of_more_players_has_a_board_for_each(players: int) -> None:
    game = make_game("azul", players=players)
    displays = "/".join(["BBKW", "BYYY"] + ["YRKW"] * (2 * players - 1))
    picture = draw(game, game.state_from_moves(f"{displays} AK3 BYF"))
    assert [display["name"] for display in picture["displays"]] == list("ABCDEFGHI")[: 2 * players + 1]
    assert [board["player"] for board in picture["boards"]] == list(range(players))
    assert picture["boards"][0]["lines"][2] == "..K" and picture["boards"][1]["floor"] == "YYY...."


def test_a_full_floor_of_azul_keeps_its_tiles_beside_the_marker() -> None:
    game = make_game("azul")
    state = game.state_from_moves("BBBB/BBYY/YYYY/RRRR/KKKK AB1 CYF DRF BY1 ZBF")
    assert [board["floor"] for board in draw(game, state)["boards"]] == ["*BBBRRRR", "YYYYY.."]


# --- Games --------------------------------------------------------------------------------------------------------


def test_moves_are_read_as_the_game_reads_them() -> None:
    connect4, backgammon = make_game("connect4"), make_game("backgammon")
    assert read_moves(connect4, "4, 4 3", 10) == [3, 3, 2] and read_moves(connect4, "", 10) == []
    text = "x42 8/4 6/4 65"
    moves = read_moves(backgammon, text, 10)
    assert backgammon.moves_to_text(moves) == text
    with pytest.raises(IllegalMoveError, match="move 2"):
        read_moves(connect4, "4x", 10)
    with pytest.raises(RequestError, match="at most 2"):
        read_moves(connect4, "444", 2)


def test_a_line_keeps_what_is_common_and_changes_nothing_on_an_error() -> None:
    line = Line(make_game("connect4"))
    line.replace([3, 3, 2])
    kept = line.states[1]
    line.replace([3, 4])
    assert line.states[1] is kept and line.names == ["4", "5"]
    with pytest.raises(IllegalMoveError):
        line.replace([3, 99])
    assert line.moves == (3, 4) and len(line.states) == 3
    described = line.describe()
    assert (described["text"], described["turn"], described["movers"]) == ("45", 0, [0, 1])
    line.replace(read_moves(line.game, "1213141", 100))
    assert line.describe()["turn"] == "over" and line.describe()["returns"] == [1.0, -1.0]


def test_where_chance_is_to_move_its_outcomes_are_listed() -> None:
    line = Line(make_game("backgammon"))
    described = line.describe()
    assert described["turn"] == "chance" and described["legal"] == [] and len(described["outcomes"]) == 30
    assert sum(outcome[2] for outcome in described["outcomes"]) == pytest.approx(1)
    assert Line(make_game("azul")).describe()["outcomes"] is None


def test_a_game_from_a_position_has_its_moves_and_its_text() -> None:
    """What is wrong changes nothing, and the first position of a game is its beginning."""
    line = Line(make_game("othello"))
    start = "--XXXXX--OOOOOX-OOOXXOXX-OXOOXXX-OXOXXOXOOOOXOX--OOOOO----X-X---"
    line.replace([], f"{start.lower()} x")
    described = line.describe()
    assert described["start"] == described["here"] == f"{start} X" and described["text"] == ""
    move = described["legal"][0][0]
    line.replace([move], described["start"])
    assert line.describe()["text"] == line.names[0] and line.describe()["here"] != described["here"]
    with pytest.raises(GameError, match="must be a board and the side to move"):
        line.replace([], "X")
    assert line.moves == (move,) and line.position == f"{start} X"
    line.replace([], make_game("othello").initial_state().to_text())
    assert line.position == ""
