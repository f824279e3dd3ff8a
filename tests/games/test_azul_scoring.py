"""Azul's points, worked out on paper: tiles, floor line, bonuses, ties and what a finished game is worth."""

from __future__ import annotations

import struct
import textwrap

import pytest
from azul_table import dealt, played, table
from plain_azul import BOARD_BYTES, PlainAzul, PlainBoard

from windrow.games import CHANCE, TERMINAL, State, make_game

EMPTY = """
        . | b y r k w
       .. | w b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
"""


def drawn(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def score_of(state: State, player: int) -> int:
    size = struct.calcsize("=" + BOARD_BYTES)
    return struct.unpack_from("=" + BOARD_BYTES, state.data, player * size)[1]


def scores(state: State) -> list[int]:
    return [score_of(state, player) for player in range(state.game.num_players)]


def last_move(*boards: PlainBoard, **options: int | str) -> State:
    """The end of a round: the last player has the marker, and takes a white tile that ends up on pattern line 5."""
    game = make_game("azul", players=len(boards), **options)
    plain = PlainAzul(players=len(boards))
    plain.boards = list(boards)
    boards[-1].floor.append("*")
    plain.centre = ["W"]
    plain.is_marker_in_centre = False
    plain.starter = plain.to_play = len(boards) - 1
    used = [tile for board in boards for tile in board.tiles()] + plain.centre
    for tile in used:
        plain.bag.remove(tile)
    state = State(game, plain.packed())
    return game.apply(state, game.parse_action("ZW5"))


def points_after(drawing: str, *, floor: str = "", score: int = 0) -> int:
    """What player 0 has when the round with that board is over."""
    return score_of(last_move(PlainBoard(drawing, floor=floor, score=score), PlainBoard(EMPTY)), 0)


# Tiles.


def test_a_tile_without_neighbours_is_worth_one():
    points = points_after("""
        B | b y r k w
       .. | w b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
    """)
    assert points == 1


def test_a_tile_joins_the_tiles_beside_it():
    """B Y (R) K: four in a row."""
    points = points_after("""
        R | B Y r K w
       .. | w b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
    """)
    assert points == 4


def test_a_gap_ends_a_row_of_tiles():
    """The tiles at both ends of the row do not touch the red one."""
    points = points_after("""
        R | B y r k W
       .. | w b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
    """)
    assert points == 1


def test_a_tile_joins_the_tiles_above_and_below():
    """First column: B, W and (K) make three; the R below is joined too: four."""
    points = points_after("""
        . | B y r k w
       .. | W b y r k
      KKK | k w b y r
     .... | R k w b y
    ..... | y r k w b
    """)
    assert points == 4


def test_a_tile_counts_in_both_directions():
    """Three across (W B Y) and three down (Y B W): six. The tile itself counts twice."""
    points = points_after("""
        . | b y r k w
       .. | w b Y r k
      BBB | k W b Y r
     .... | r k W b y
    ..... | y r k w b
    """)
    assert points == 6


def test_diagonal_neighbours_do_not_count():
    points = points_after("""
        . | b y r k w
       .. | w B y R k
      BBB | k w b y r
     .... | r K w B y
    ..... | y r k w b
    """)
    assert points == 1


def test_the_wall_does_not_wrap_around():
    """The yellow tile at the right end of row 4 and the one at the left end of row 5 are not neighbours."""
    points = points_after("""
        . | b y r k w
       .. | w b y r k
      ... | k w b y r
     .... | r k w b Y
    YYYYY | y r k w b
    """)
    assert points == 1


def test_lines_are_laid_from_top_to_bottom():
    """The first column grows: 1, then 2, then 3."""
    points = points_after("""
        B | b y r k w
       WW | w b y r k
      KKK | k w b y r
     .... | r k w b y
    ..... | y r k w b
    """)
    assert points == 1 + 2 + 3


def test_a_tile_feels_only_those_laid_before():
    """Y touches B on its left, and nothing below yet: 2. Then B touches W on its left and Y above: 2 + 2."""
    points = points_after("""
        Y | B y r k w
       BB | W b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
    """)
    assert points == 2 + 4


def test_lines_that_are_not_full_stay():
    state = last_move(
        PlainBoard("""
            . | b y r k w
           .R | w b y r k
          .WW | k w b y r
         BBBB | r k w b y
        .YYYY | y r k w b
        """),
        PlainBoard(EMPTY),
    )
    assert scores(state) == [1, 0]
    assert str(state) == drawn("""
        round 2
        A ----  B ----  C ----  D ----  E ----
        Z *
        bag B16 Y16 R19 K20 W17
        lid B3 Y0 R0 K0 W0

        player 0: 1 point        player 1: 0 points
            . | b y r k w            . | b y r k w
           .R | w b y r k           .. | w b y r k
          .WW | k w b y r          ... | k w b y r
         .... | r k w B y         .... | r k w b y
        .YYYY | y r k w b        ....W | y r k w b
        floor .......            floor .......
        tiles to be dealt, player 1 begins""")


# The floor line.


@pytest.mark.parametrize(
    ("floor", "left"),
    [
        ("", 20),
        ("B", 19),
        ("BY", 18),
        ("BYR", 16),
        ("BYRK", 14),
        ("BYRKW", 12),
        ("BYRKWB", 9),
        ("BYRKWBY", 6),
    ],
)
def test_the_floor_line_costs(floor, left):
    """-1 -1 -2 -2 -2 -3 -3 from 20 points."""
    assert points_after(EMPTY, floor=floor, score=20) == left


def test_the_marker_costs_a_place():
    """Player 1 has the marker and two tiles: 10 - 1 - 1 - 2."""
    state = last_move(PlainBoard(EMPTY), PlainBoard(EMPTY, floor="KK", score=10))
    assert scores(state) == [0, 6]


def test_points_do_not_fall_below_nothing():
    """3 points, 1 for the tile, 6 for four places of the floor: not -2 but 0."""
    board = """
        B | b y r k w
       .. | w b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
    """
    assert points_after(board, floor="WWWW", score=3) == 0
    assert points_after(board, floor="WWWW", score=6) == 1


# The end of the game.

ROW = """
        W | B Y R K w
       .. | w b y r k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
"""


def test_a_complete_row_ends_the_game():
    """5 for the tile, 2 for the row."""
    state = last_move(PlainBoard(ROW), PlainBoard(EMPTY))
    assert state.game.to_play(state) == TERMINAL
    assert state.game.legal_actions(state) == []
    assert scores(state) == [7, 0]
    assert state.game.returns(state) == [1.0, -1.0]
    assert str(state).splitlines()[0] == "after round 1"
    assert str(state).splitlines()[-1] == "player 0 wins"


def test_a_complete_column_does_not_end_the_game():
    """K is the fifth of the first column: 5 points, no bonus yet."""
    state = last_move(
        PlainBoard("""
            . | B y r k w
           .. | W b y r k
          KKK | k w b y r
         .... | R k w b y
        ..... | Y r k w b
        """),
        PlainBoard(EMPTY),
    )
    assert state.game.to_play(state) == CHANCE
    assert scores(state) == [5, 0]


def test_bonus_for_a_column():
    """5 for the tile, 2 for the row, 7 for the first column."""
    points = points_after("""
        W | B Y R K w
       .. | W b y r k
      ... | K w b y r
     .... | R k w b y
    ..... | Y r k w b
    """)
    assert points == 5 + 2 + 7


def test_bonus_for_a_colour():
    """5 for the tile, 2 for the row, 10 for five blue tiles."""
    points = points_after("""
        W | B Y R K w
       .. | w B y r k
      ... | k w B y r
     .... | r k w B y
    ..... | y r k w B
    """)
    assert points == 5 + 2 + 10


def test_every_bonus_at_once():
    """The last tile of a wall: 5 across and 5 down; 5 rows, 5 columns and 5 colours."""
    points = points_after("""
        W | B Y R K w
       .. | W B Y R K
      ... | K W B Y R
     .... | R K W B Y
    ..... | Y R K W B
    """)
    assert points == 10 + 5 * 2 + 5 * 7 + 5 * 10


def test_bonuses_come_after_the_floor_line():
    """Not 5 - 14 + 2: nobody has less than nothing, then come 2 for the row."""
    assert points_after(ROW, floor="BBBBBBB") == 2


TWO_ROWS = """
        W | B Y R K w
       KK | W B Y R k
      ... | k w b y r
     .... | r k w b y
    ..... | y r k w b
"""


def test_more_complete_rows_break_a_tie():
    """Player 1: W for 5, K for 5 across and 2 down, 1 lost to the marker, 2 rows for 4: 15. Player 0: 8 + 5 + 2."""
    state = last_move(PlainBoard(ROW, score=8), PlainBoard(TWO_ROWS))
    assert scores(state) == [15, 15]
    assert state.game.returns(state) == [-1.0, 1.0]
    assert str(state).splitlines()[-1] == "player 1 wins"


def test_a_shared_victory():
    """7 points and a row each; player 1 had one more, which the marker cost."""
    state = last_move(PlainBoard(ROW), PlainBoard(ROW, score=1))
    assert scores(state) == [7, 7]
    assert state.game.returns(state) == [0.0, 0.0]
    assert str(state).splitlines()[-1] == "players 0 and 1 share the victory"


@pytest.mark.parametrize(
    ("before", "after", "returns", "status"),
    [
        pytest.param([0, 8, 0], [7, 8, 0], [-1 / 2, 1, -1 / 2], "player 1 wins", id="three-one-winner"),
        pytest.param([1, 0, 9], [8, 0, 8], [1, -1 / 2, -1 / 2], "player 0 wins", id="three-rows-break-the-tie"),
        pytest.param(
            [0, 20, 21],
            [7, 20, 20],
            [-1 / 2, 1 / 4, 1 / 4],
            "players 1 and 2 share the victory",
            id="three-two-winners",
        ),
        pytest.param([0, 0, 0, 30], [7, 0, 0, 29], [-1 / 3, -1 / 3, -1 / 3, 1], "player 3 wins", id="four-one-winner"),
        pytest.param(
            [0, 20, 20, 0],
            [7, 20, 20, 0],
            [-1 / 3, 1 / 3, 1 / 3, -1 / 3],
            "players 1 and 2 share the victory",
            id="four-two-winners",
        ),
        pytest.param(
            [0, 20, 20, 21],
            [7, 20, 20, 20],
            [-1 / 3, 1 / 9, 1 / 9, 1 / 9],
            "players 1, 2 and 3 share the victory",
            id="four-three-winners",
        ),
    ],
)
def test_what_a_game_of_many_is_worth(before, after, returns, status):
    """Player 0 completes a row (7 points in all); the last player loses a point to the marker.

    The winner has 1 and the others share -1. Two winners of three share 1 and -1/2, two of four 1 and -1/3, three of
    four 1, -1/3 and -1/3.
    """
    state = last_move(*(PlainBoard(ROW if not player else EMPTY, score=score) for player, score in enumerate(before)))
    assert scores(state) == after
    assert state.game.returns(state) == pytest.approx(returns, abs=1e-7)
    assert sum(state.game.returns(state)) == pytest.approx(0.0, abs=1e-6)
    assert str(state).splitlines()[-1] == status


@pytest.mark.parametrize(
    ("before", "returns"),
    [
        pytest.param([0, 33], [-0.5, 0.5], id="25-points-are-a-half"),
        pytest.param([80, 1], [1.0, -1.0], id="50-points-and-more-are-one"),
        pytest.param([0, 8], [0.0, 0.0], id="rows-break-no-tie"),
        pytest.param([0, 20, 24], [-0.29, 0.1, 0.19], id="three-players"),
    ],
)
def test_margins(before, returns):
    """The lead over the mean of the others, in 50 points: of 7, 20 and 23 points 7 - 21.5, 20 - 15 and 23 - 13.5."""
    boards = [PlainBoard(ROW if not player else EMPTY, score=score) for player, score in enumerate(before)]
    state = last_move(*boards, scoring="margin")
    assert state.game.returns(state) == pytest.approx(returns, abs=1e-7)


# Whole rounds.


def test_a_round_on_paper():
    """Five displays, eleven moves.

    Player 0 lays R, B and Y, none of which touch (3), and has R and Y on the floor (-2): 1 point. Player 1 lays B, W
    and K in the first column (1 + 2 + 3), and has the marker and K on the floor (-2): 4 points, and begins next.
    Into the lid: B, Y Y, R, Y of player 0 and W, K K, K of player 1.
    """
    game = make_game("azul")
    state = dealt(game, "BBYR/BYKW/BKWW/YYRK/RRKW", game.initial_state())
    state = played(game, "AB2 CW2 DY3 ZK3", state)
    assert str(state) == drawn("""
        round 1
        A ----  B BYKW  C ----  D ----  E RRKW
        Z BYRR
        bag B16 Y16 R16 K16 W16
        lid B0 Y0 R0 K0 W0

        player 0: 0 points       player 1: 0 points
            . | b y r k w            . | b y r k w
           BB | w b y r k           WW | w b y r k
          .YY | k w b y r          .KK | k w b y r
         .... | r k w b y         .... | r k w b y
        ..... | y r k w b        ..... | y r k w b
        floor .......            floor *......
        player 0 to move""")
    state = played(game, "ER1 BB1 ZY3 ZK3 ZW4 ZR4 ZB5", state)
    assert str(state) == drawn("""
        round 2
        A ----  B ----  C ----  D ----  E ----
        Z *
        bag B16 Y16 R16 K16 W16
        lid B1 Y3 R1 K3 W1

        player 0: 1 point        player 1: 4 points
            . | b y R k w            . | B y r k w
           .. | w B y r k           .. | W b y r k
          ... | k w b Y r          ... | K w b y r
         ..WW | r k w b y         ..RR | r k w b y
        ....B | y r k w b        ..... | y r k w b
        floor .......            floor .......
        tiles to be dealt, player 1 begins""")


def test_overflow_goes_to_the_floor_and_then_to_the_lid():
    """Nine white tiles to line 1: one fits, seven fall to the floor, the ninth goes into the lid: 0 - 14 is 0."""
    game = make_game("azul")
    state = table(centre="W" * 9 + "B", bag="W" * 11 + "B" * 19, starter=1, is_marker_in_centre=False, to_play=0)
    state = played(game, "ZW1", state)
    lines = str(state).splitlines()
    assert "lid B0 Y0 R0 K0 W1" in lines
    assert lines[-2].startswith("floor WWWWWWW  ")
    assert lines[7].startswith("    W | b y r k w")
    assert "lid B0 Y0 R0 K0 W8" in str(played(game, "ZB2", state))


def test_the_plain_rules_score_the_same():
    """The drawing is read as it is meant: the plain rules agree on a board with everything at once."""
    drawing = """
        W | B Y R K w
       KK | W B Y R k
      BBB | k W b Y r
     .WWW | r k w B y
    YYYYY | y r k w b
    """
    plain = PlainBoard(drawing, floor="RRR", score=12)
    plain.tile_wall()
    # W 5; K 5 + 2; B 3 (W B Y) + 3 (R Y B); Y 1; floor -4.
    assert plain.score == 12 + 5 + 7 + 6 + 1 - 4
    assert points_after(drawing, floor="RRR", score=12) == 27 + 2 * 2
