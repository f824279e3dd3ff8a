"""Azul against the plain rules and by hand: moves, the marker, the end, observations. Deals and points: other files."""

from __future__ import annotations

import random
from collections import Counter
from math import prod

import numpy as np
import pytest
from azul_table import FULL_DEAL, PLAYERS, dealt, legal_names, pile, played, random_game, table
from plain_azul import COLOURS, DEAL, HEAPS, OVER, PlainAzul, PlainBoard

from windrow.errors import GameError
from windrow.games import CHANCE, TERMINAL, make_game


def tiles_in(data: bytes) -> list[int]:
    """All tiles of a state by colour, counted in its bytes."""
    total = [sum(column) for column in zip(*(pile(data, name) for name in ("centre", "bag", "lid")), strict=True)]
    for heap in data[64:73]:
        total = [have + more for have, more in zip(total, HEAPS[heap], strict=True)]
    for board in (data[start : start + 16] for start in range(0, 64, 16)):
        wall = int.from_bytes(board[:4], "little")
        for place in range(25):
            total[(place % 5 - place // 5) % 5] += wall >> place & 1
        for line in board[6:11]:
            total[line // 8] += line % 8
        for colour, count in enumerate(board[11:16]):
            total[colour] += count
    return total


# Facts, and random games.


def test_facts():
    for players, num_actions, floats in [(2, 180, 59), (3, 240, 77), (4, 300, 95)]:
        game = make_game("azul", players=players)
        assert game.num_players == players
        assert game.num_actions == num_actions
        assert game.observation == {"board": (3 * players, 5, 5), "flat": (floats,)}
        assert game.native.chance == "sampled"
        assert game.native.state_bytes == 96
        assert len(game.symmetries()) == 1
        assert game.to_play(game.initial_state()) == CHANCE
        assert game.legal_actions(game.initial_state()) == []
    assert repr(make_game("azul")) == "azul(players=2, max_rounds=30, scoring='wins')"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"players": 5}, r"azul: players must be an integer from 2 to 4, not 5"),
        ({"max_rounds": 0}, r"azul: max_rounds must be an integer from 1 to 1000, not 0"),
        ({"scoring": "points"}, r"azul: scoring must be 'wins' or 'margin', not 'points'"),
    ],
)
def test_impossible_options(options, message):
    with pytest.raises(GameError, match=message):
        make_game("azul", **options)


def lock_step(players: int, num_games: int) -> Counter[str]:
    """Plays games by both rules with the same deals; counts what came up in them."""
    game = make_game("azul", players=players)
    rng = random.Random(f"azul lock-step {players}")
    seen: Counter[str] = Counter()
    for number in range(num_games):
        plain = PlainAzul(players=players)
        for state, move in random_game(game, rng):
            assert game.to_play(state) == plain.to_play
            assert state.data == plain.packed()
            assert legal_names(state) == plain.legal()
            if number % 5 == 0:
                board, flat = plain.observation()
                assert game.observe(state)["board"].tolist() == np.array(board, dtype=np.float32).tolist()
                assert game.observe(state)["flat"] == pytest.approx(flat, abs=1e-6)
            if move is None:
                assert plain.to_play == OVER
                assert game.returns(state) == pytest.approx(plain.returns(), abs=1e-7)
                seen["shared victories"] += len(plain.winners()) > 1
                seen["games cut off"] += plain.round == plain.max_rounds
            elif plain.to_play == DEAL:
                seen["lid used"] += len(plain.bag) < 4 * plain.num_displays
                seen["short deals"] += len(plain.bag + plain.lid) < 4 * plain.num_displays
                plain.deal(game.outcome_name(move))
            else:
                assert game.action_name(move) == legal_names(state)[game.legal_actions(state).index(move)]
                assert plain.number(game.action_name(move)) == move
                plain.play(game.action_name(move))
    return seen


@pytest.mark.parametrize("players", PLAYERS)
def test_plays_like_the_plain_rules(players):
    """Player, bytes (so boards, scores, bag and lid), legal moves, observation at every step; returns at the end."""
    seen = lock_step(players, 100)
    assert seen["lid used"] > 0
    assert seen["shared victories"] > 0
    assert seen["short deals"] > 0 or players < 4


@pytest.mark.slow
@pytest.mark.parametrize("players", PLAYERS)
def test_plays_like_the_plain_rules_for_long(players):
    lock_step(players, 1000)


def check_conservation(players: int, num_games: int) -> None:
    game = make_game("azul", players=players)
    native = game.native
    rng = random.Random(f"azul tiles {players}")
    for _ in range(num_games):
        data = native.initial_state()
        for _ in range(30 * (4 * (2 * players + 1) + 1) + 1):
            assert tiles_in(data) == [20] * 5
            player = native.to_play(data)
            if player == TERMINAL:
                break
            if player == CHANCE:
                data = native.apply(data, native.sample_outcome(data, rng.getrandbits(64)))
            else:
                data = native.apply(data, int(rng.choice(native.legal_actions(data))))
        assert native.to_play(data) == TERMINAL


@pytest.mark.parametrize("players", PLAYERS)
def test_tiles_are_conserved_and_games_end(players):
    check_conservation(players, 100)


@pytest.mark.slow
@pytest.mark.parametrize("players", PLAYERS)
def test_tiles_are_conserved_in_thousands_of_games(players):
    check_conservation(players, 3400)


@pytest.mark.parametrize("players", PLAYERS)
def test_a_recorded_game_replays_exactly(players):
    """From numbers, and from text in which deals and moves stand one after another, with spaces between or without."""
    game = make_game("azul", players=players)
    record = list(random_game(game, random.Random(f"azul record {players}")))
    moves = [move for _, move in record[:-1]]
    again = game.initial_state()
    for state, move in record[:-1]:
        assert again == state
        again = game.apply(again, move)
    last, _ = record[-1]
    assert again == last
    assert game.returns(again) == game.returns(last)
    text = game.moves_to_text(moves)
    assert game.state_from_moves(text) == game.state_from_moves(text.replace(" ", "")) == last


@pytest.mark.parametrize("players", PLAYERS)
def test_players_who_complete_nothing(players):
    """Everything to the floor: the tiles go round for ever, and the game is cut off as it stands."""
    game = make_game("azul", players=players, max_rounds=7)
    state = game.initial_state()
    num_deals = 0
    while game.to_play(state) != TERMINAL:
        if game.to_play(state) == CHANCE:
            num_deals += 1
            state = game.apply(state, game.sample_outcome(state, num_deals))
        else:
            state = game.apply(state, next(a for a in game.legal_actions(state) if game.action_name(a)[2] == "F"))
    assert num_deals == 7
    assert game.returns(state) == [0.0] * players


# Moves.


def test_where_tiles_may_go():
    """Line 1 is full; line 2 holds red and line 3 blue; the wall has blue in row 4 and yellow in row 5."""
    board = PlainBoard("""
        K | b y r k w
       .R | w b y r k
      .BB | k w b y r
     .... | r k w B y
    ..... | Y r k w b
    """)
    state = table(boards=[board, PlainBoard()], centre="BYR", to_play=0, is_marker_in_centre=False)
    assert legal_names(state) == "ZB3 ZB5 ZBF ZY4 ZYF ZR2 ZR4 ZR5 ZRF".split()


def test_taking_from_a_display():
    """The blue tiles go to line 3, the others to the centre; all displays keep their letters."""
    game = make_game("azul")
    state = dealt(game, FULL_DEAL, game.initial_state())
    lines = str(played(game, "AB3", state)).splitlines()
    assert lines[1:3] == ["A ----  B BYKW  C BKWW  D YYRK  E RRKW", "Z YR*"]
    assert lines[9].startswith("  .BB | k w b y r")


def test_of_equal_displays_only_the_first_may_be_chosen():
    game = make_game("azul")
    state = dealt(game, "BBBB/YYYY/BBBB/YYYY/BBBB", game.initial_state())
    assert legal_names(state) == [
        *(f"AB{place}" for place in "12345F"),
        *(f"DY{place}" for place in "12345F"),
    ]
    state = played(game, "AB4", state)
    assert str(state).splitlines()[1] == "A ----  B BBBB  C BBBB  D YYYY  E YYYY"
    assert {name[0] for name in legal_names(state)} == {"B", "D"}
    state = played(game, "DY4", state)
    assert {name[0] for name in legal_names(state)} == {"B", "E"}


def test_the_order_of_moves_does_not_matter():
    """Player 0 takes from two displays, in either order: the same bytes."""
    game = make_game("azul")
    state = dealt(game, FULL_DEAL, game.initial_state())
    one = played(game, "AB2 ER2 CW3", state)
    other = played(game, "CW3 ER2 AB2", state)
    assert one == other
    assert one.data == other.data
    assert game.hash(one) == game.hash(other)


@pytest.mark.parametrize("players", PLAYERS)
def test_names_of_moves(players):
    game = make_game("azul", players=players)
    names = [game.action_name(action) for action in range(game.num_actions)]
    letters = "ABCDEFGHI"[: 2 * players + 1] + "Z"
    assert names == [a + b + c for a in letters for b in COLOURS for c in "12345F"]
    assert [game.parse_action(name) for name in names] == list(range(game.num_actions))
    assert game.parse_action("zkf") == game.parse_action("ZKF")
    for text in ["", "A", "AB", "AB0", "AB6", "AX1", "JB1", "1BA", "@B1", "\xffB1"]:
        assert game.native.parse_action(text)[1] == 0
    assert game.native.parse_action(letters[-2] + "B1")[1] == 3
    assert game.native.parse_action(chr(ord(letters[-2]) + 1) + "B1")[1] == 0


# The marker.


def test_who_takes_from_the_centre_first_takes_the_marker():
    game = make_game("azul")
    state = played(game, "AB2 ZR1", dealt(game, FULL_DEAL, game.initial_state()))
    lines = str(state).splitlines()
    assert lines[2] == "Z Y"
    assert lines[-2] == "floor .......            floor *......"
    state = played(game, "ZY1", state)  # the marker is gone: nothing but a tile
    assert str(state).splitlines()[-2] == "floor .......            floor *......"


def test_the_marker_takes_its_place_before_the_tiles():
    """Seven black tiles to the floor: the marker and six of them fit, one goes into the lid."""
    state = played(make_game("azul"), "ZKF", table(centre="KKKKKKKB", to_play=0))
    assert str(state).splitlines()[-2].startswith("floor *KKKKKK  ")
    assert pile(state.data, "lid") == [0, 0, 0, 1, 0]


def test_a_marker_that_finds_the_floor_full_costs_nothing_more():
    """Player 0 loses 14 for seven tiles, and begins the next round all the same."""
    board = PlainBoard(floor="YYYYYYY", score=20)
    game = make_game("azul")
    state = table(boards=[PlainBoard(), board], centre="K", to_play=1, bag="B" * 20, starter=0)
    state = played(game, "ZK1", state)
    assert str(state).splitlines()[-1] == "tiles to be dealt, player 1 begins"
    assert "player 1: 7 points" in str(state)  # 20 + 1 - 14
    assert pile(state.data, "lid") == [0, 7, 0, 0, 0]


def test_a_full_floor_line_shows_the_marker_and_every_tile():
    board = PlainBoard(floor="BYYRKWW")
    state = played(make_game("azul"), "ZK1", table(boards=[board, PlainBoard()], centre="KY", to_play=0))
    assert str(state).splitlines()[-2] == "floor *BYYRKWW           floor ......."


def test_a_marker_that_nobody_takes():
    """Displays of one colour leave nothing in the centre: who began begins again."""
    game = make_game("azul")
    state = dealt(game, "BBBB/YYYY/RRRR/KKKK/WWWW", game.initial_state())
    state = played(game, "AB4 BY4 CR5 DK5 EW3", state)
    assert str(state).splitlines()[-1] == "tiles to be dealt, player 0 begins"


def test_players_take_turns_and_the_marker_decides_who_begins():
    game = make_game("azul", players=3)
    state = table(boards=[PlainBoard(), PlainBoard(), PlainBoard()], centre="BYRK", to_play=1)
    turns = []
    for move in "ZB1 ZY1 ZR1 ZK2".split():
        turns.append(game.to_play(state))
        state = played(game, move, state)
    assert turns == [1, 2, 0, 1]
    assert game.to_play(state) == CHANCE
    assert game.to_play(game.apply(state, game.sample_outcome(state, 5))) == 1


# Observations, hashes, and bytes from elsewhere.


def test_an_observation_by_hand():
    """Player 1 is to move, and so comes first; player 0 has the marker and two tiles on the floor."""
    boards = [
        PlainBoard(
            """
            . | b y r k w
           .. | w b y r k
          .RR | k w b y r
         .... | r k w b Y
        ..... | y r k w b
        """,
            floor="*BW",
            score=25,
        ),
        PlainBoard(
            """
            K | B y r k w
           .. | w B y r k
          ... | k w b y r
         ...K | r k w b y
        ..... | y r k w b
        """,
            floor="Y",
            score=50,
        ),
    ]
    state = table(
        boards=boards,
        displays=[list("BBYW"), list("RRRR"), [], [], []],
        centre="YKKKK",
        bag="B" * 10 + "W" * 5,
        lid="R",
        to_play=1,
        starter=0,
        is_marker_in_centre=False,
        round=3,
    )
    board, flat = state.game.observe(state).values()
    zeros = [[0.0] * 5] * 5
    one = [
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], *zeros[2:]],
        [[0, 0, 0, 1, 0], *zeros[1:3], [0, 0.25, 0, 0, 0], zeros[4]],  # K is the fourth of row 1, the second of row 4
        [[1] * 5, *zeros[1:3], [0.25] * 5, zeros[4]],
    ]
    zero = [
        [*zeros[:3], [0, 0, 0, 0, 1], zeros[4]],
        [*zeros[:2], [0, 0, 0, 0, 2 / 3], *zeros[3:]],
        [*zeros[:2], [2 / 3] * 5, *zeros[3:]],
    ]
    assert board.dtype == flat.dtype == np.float32
    assert board.ravel() == pytest.approx(np.ravel(one + zero))
    assert flat == pytest.approx(
        [
            *(0.5, 0.25, 0, 0, 0.25),  # BBYW
            *(0, 0, 1, 0, 0),  # RRRR
            *[0] * 15,
            *(0, 0.1, 0, 0.4, 0),  # centre
            *(0.5, 0, 0, 0, 0.25),  # bag
            *(0, 0, 0.05, 0, 0),  # lid
            0,  # the marker is not in the centre
            *(0, 1 / 7, 0, 0, 0),
            *(1 / 14, 0.5, 0),
            *(1 / 7, 0, 0, 0, 1 / 7),
            *(4 / 14, 0.25, 1),  # three places: 1 + 1 + 2
            *(0.3, 0.1),  # three rounds of at most 30
        ]
    )


@pytest.mark.parametrize("players", PLAYERS)
def test_observations_are_small_numbers(players):
    game = make_game("azul", players=players)
    rng = random.Random(f"azul observations {players}")
    for _ in range(10):
        for state, _move in random_game(game, rng):
            for part, shape in game.observation.items():
                values = game.observe(state)[part]
                assert values.shape == shape
                assert np.isfinite(values).all()
                assert values.min() >= 0
                assert values.max() <= 1.5


@pytest.mark.parametrize("players", PLAYERS)
def test_hashes_tell_positions_apart(players):
    game = make_game("azul", players=players)
    rng = random.Random(f"azul hashes {players}")
    states = {state for _ in range(20) for state, _move in random_game(game, rng)}
    hashes = {game.hash(state) for state in states}
    assert len(hashes) == len(states)
    assert len({value & (2**64 - 1) for value in hashes}) == len(states)
    assert len({value >> 64 for value in hashes}) == len(states)


def test_everything_that_matters_is_hashed():
    """One position and its neighbours, each different in one thing."""
    parts = {"centre": "BYR", "to_play": 0, "bag": "KKK", "lid": "WW", "round": 2}
    states = [
        table(**parts),
        table(**{**parts, "to_play": 1}),
        table(**{**parts, "starter": 1}),
        table(**{**parts, "is_marker_in_centre": False}),
        table(**{**parts, "round": 3}),
        table(**{**parts, "centre": "BYY"}),
        table(**{**parts, "bag": "KK", "lid": "KWW"}),
        table(**{**parts, "displays": [["R"], [], [], [], []]}),
        table(**parts, boards=[PlainBoard(score=1), PlainBoard()]),
        table(**parts, boards=[PlainBoard(), PlainBoard(score=1)]),
        table(**parts, boards=[PlainBoard(floor="B"), PlainBoard()]),
    ]
    assert len({state.game.hash(state) for state in states}) == len(states)


@pytest.mark.parametrize("players", PLAYERS)
def test_no_bytes_whatever_break_the_rules(players):
    """Nonsense in gives nonsense out, but never an access outside the arrays, and never too many moves."""
    game = make_game("azul", players=players)
    native, num_floats = game.native, sum(prod(shape) for shape in game.observation.values())
    rng = random.Random(f"azul nonsense {players}")
    for number in range(600):
        data = bytearray(rng.randbytes(96))
        data[88] = [rng.randrange(256), 255, 0, players - 1][number % 4]  # to_play
        state = bytes(data)
        native.hash(state)
        native.render(state)
        assert native.observe(state).size == num_floats
        legal = native.legal_actions(state).tolist()
        assert set(legal) <= set(range(native.num_actions))
        if native.to_play(state) == CHANCE:
            native.apply(state, native.sample_outcome(state, number))
        elif legal:
            native.apply(state, rng.choice(legal))
