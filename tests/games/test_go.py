"""Go: rules and scores by positions drawn by hand, and random games in lock-step with the plain rules and OpenSpiel."""

from __future__ import annotations

import random
import textwrap
from typing import Any

import pytest
from plain_go import PlainGo

from windrow.errors import IllegalMoveError
from windrow.games import TERMINAL, State, make_game
from windrow.games.board_positions import write_rows


def position(board: str, mover: str = "x", **options: int | float | str) -> State:
    """The position drawn, with that side to move."""
    rows = ["".join(line.split()) for line in textwrap.dedent(board).strip().splitlines()]
    game = make_game("go", size=len(rows), **options)
    return game.parse(f"{write_rows(rows)} {mover}")


def play(state: State, moves: str) -> State:
    for name in moves.split():
        state = state.game.apply(state, state.game.parse_action(name))
    return state


def board_of(state: State) -> str:
    """The rows as drawn."""
    return "\n".join("".join(".xo"[cell] for cell in row) for row in state.board.tolist())


def drawn(board: str) -> str:
    return "\n".join("".join(line.split()) for line in textwrap.dedent(board).strip().splitlines())


def is_legal(state: State, name: str) -> bool:
    return state.game.parse_action(name) in state.game.legal_actions(state)


# --- Captures and suicide ---------------------------------------------------------------------------------------------

KO = """
    . . . . .
    . x o . .
    x . x o .
    . x o . .
    . . . . .
"""


def test_a_chain_without_liberties_is_taken() -> None:
    """The white chain in the corner has its last liberty on c5; Black's move there takes all three."""
    state = position("""
        o o . . .
        o x x . .
        x . . . .
        . . . . .
        . . . . o
    """)
    after = play(state, "c5")
    assert board_of(after) == drawn("""
        . . x . .
        . x x . .
        x . . . .
        . . . . .
        . . . . o
    """)
    assert board_of(play(after, "a5 b5 pass a4")).splitlines()[0] == ".xx.."  # White may play there, and is taken again


def test_two_chains_are_taken_at_once() -> None:
    state = position("""
        . . . . .
        x x . x x
        o o . o o
        x x . x x
        . . . . .
    """)
    assert board_of(play(state, "c3")).splitlines()[2] == "..x.."


def test_suicide_is_forbidden_unless_it_takes() -> None:
    """Black's a1 has no liberty. On the second board the same move takes a2 and b1, whose last liberty it is."""
    eye = """
        . . . . .
        . . . . .
        . . . . .
        o . . . .
        . o . . .
    """
    assert not is_legal(position(eye), "a1") and is_legal(position(eye, "o"), "a1")
    takes = position("""
        . . . . .
        . . . . .
        x . . . .
        o x . . .
        . o x . .
    """)
    assert board_of(play(takes, "a1")) == drawn("""
        . . . . .
        . . . . .
        x . . . .
        . x . . .
        x . x . .
    """)


def test_suicide_of_several_stones_if_it_is_allowed() -> None:
    board = """
        . . . . .
        . . . . .
        o o . . .
        x x o . .
        . x o . .
    """
    assert not is_legal(position(board), "a1")
    state = position(board, suicide="allowed")
    after = play(state, "a1")
    assert board_of(after) == drawn("""
        . . . . .
        . . . . .
        o o . . .
        . . o . .
        . . o . .
    """)
    assert state.game.to_play(after) == 1
    planes = state.game.observe(after)
    assert planes[3].sum() == 3 and planes[1].sum() == 0  # a move ago the three stones were there, now they are not


def test_suicide_of_one_stone_repeats_the_position() -> None:
    """Allowed or not: the board is what it was."""
    state = position(
        """
        . . . . .
        . . . . .
        . . . . .
        o . . . .
        . o . . .
    """,
        suicide="allowed",
    )
    assert not is_legal(state, "a1")


def test_snapback() -> None:
    """Black throws in at b1, White takes that stone, and Black takes five with the next one on the same point."""
    state = position("""
        . . . . . .
        . . . . . .
        . . . . . .
        x x x x . .
        o o o x . .
        . . o x . .
    """)
    after = play(state, "b1 a1")
    assert board_of(after).splitlines()[-2:] == ["ooox..", "o.ox.."]
    assert board_of(play(after, "b1")).splitlines()[-2:] == ["...x..", ".x.x.."]


# --- Ko and superko ---------------------------------------------------------------------------------------------------


def test_ko_may_not_be_taken_back_at_once() -> None:
    """White's b3 takes c3; Black may take back only after the board has changed elsewhere."""
    state = position(KO, "o")
    taken = play(state, "b3")
    assert board_of(taken).splitlines()[2] == "xo.o."
    assert not is_legal(taken, "c3")
    with pytest.raises(IllegalMoveError, match="not legal here"):
        play(taken, "c3")
    assert is_legal(play(taken, "e1 e5"), "c3")
    three = play(position(KO, "o", passes=3), "b3 pass pass")
    assert not is_legal(three, "c3")  # passing changes nothing on the board


def test_the_first_position_counts() -> None:
    """Black's first move takes the ko; the position drawn is the one that White may not make again."""
    state = position("""
        . . . . .
        . x o . .
        x o . o .
        . x o . .
        . . . . .
    """)
    assert not is_legal(play(state, "c3"), "b3")


def test_sending_two_returning_one() -> None:
    """White sends a1, Black takes two with c1, and White's b1 would take one back: the board would be the first one."""
    state = position(
        """
        . . . . .
        . . . . .
        . x o . .
        x x o . .
        . o . o .
        """,
        "o",
    )
    after = play(state, "a1 c1")
    assert board_of(after).splitlines()[-1] == "..xo."
    assert not is_legal(after, "b1") and is_legal(after, "a1")
    assert is_legal(play(after, "e5 e3"), "b1")  # with the board changed, he may


def triple_ko(**options: int | float | str) -> State:
    """White holds the kos at the top and in the middle, Black the one at the bottom."""
    return position(
        """
        . x o . . . . . .
        x o . o . . . . .
        . x o . . . . . .
        . x o . . . . . .
        x o . o . . . . .
        . x o . . . . . .
        . x o . . . . . .
        x . x o . . . . .
        . x o . . . . . .
        """,
        **options,
    )


def test_triple_ko() -> None:
    """Five moves go round the three kos; the sixth would make the first board again. No move takes back at once."""
    state = play(triple_ko(), "c8 b2 c5 b8 c2")
    assert not is_legal(state, "b5") and is_legal(state, "j9")
    assert is_legal(play(state, "j9 a9"), "b5")


def test_triple_ko_from_long_ago() -> None:
    """Passes in between make the cycle longer than the positions that a state has at hand."""
    state = play(triple_ko(passes=3), "c8 pass pass b2 c5 pass pass b8 c2")
    assert not is_legal(state, "b5") and is_legal(state, "j9")
    fresh = play(triple_ko(passes=3), "j9 pass c8 pass pass b2 c5 pass pass b8 c2")
    assert not is_legal(fresh, "b5")  # the board after j9 is the one that would be made again


# --- The end and the score --------------------------------------------------------------------------------------------


def test_scores() -> None:
    empty = make_game("go", size=5).initial_state()
    assert empty.game.score(empty) == -7.5  # pyright: ignore[reportAttributeAccessIssue]
    assert score(play(empty, "c3")) == 25 - 7.5
    assert score(play(empty, "c3 a1")) == 1 - 1 - 7.5
    assert score(make_game("go", size=5, komi=0).initial_state()) == 0
    walls = """
        . x . o .
        . x . o .
        . x . o .
        . x . o .
        . x . o .
    """
    assert score(position(walls, komi=-0.5)) == 10 - 10 + 0.5


def score(state: State) -> float:
    found = state.game.score(state)  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(found, float)
    return found


def test_seki_is_scored_by_area() -> None:
    """Whoever plays c4 or c2 is taken. The stones of both count, the two points between them for nobody: 13 - 10."""
    state = position("""
        x x x o o
        x x . o o
        x x x o o
        x x . o o
        x x x o o
    """)
    assert board_of(play(state, "c4 c2")).count("x") == 0
    assert score(state) == 13 - 10 - 7.5
    after = play(state, "pass pass")
    assert state.game.to_play(after) == TERMINAL and score(after) == -4.5
    assert state.game.returns(after) == [-1.0, 1.0] and str(after).endswith("o wins")


def test_an_integer_komi_makes_draws_possible() -> None:
    state = play(make_game("go", size=5, komi=0).initial_state(), "pass pass")
    assert state.game.returns(state) == [0.0, 0.0] and str(state).endswith("draw")
    state = play(make_game("go", size=5, komi=25).initial_state(), "c3 pass pass")
    assert score(state) == 0 and state.game.returns(state) == [0.0, 0.0]


def test_passes_in_a_row_end_the_game() -> None:
    """Two, or as many as the option says; a stone in between starts the count again."""
    game = make_game("go", size=5)
    assert game.to_play(game.state_from_moves("pass c3 pass")) == 1
    assert game.to_play(game.state_from_moves("pass c3 pass pass")) == TERMINAL
    four = make_game("go", size=5, passes=4)
    state = four.state_from_moves("pass pass pass")
    assert four.to_play(state) == 1 and four.observe(state)[-2].tolist() == [[1.0] * 5] * 5
    assert four.observe(four.state_from_moves("pass"))[-2, 0, 0] == pytest.approx(1 / 3)
    assert four.to_play(four.state_from_moves("pass pass pass pass")) == TERMINAL


def test_a_game_ends_after_two_moves_a_point() -> None:
    """Random games without passes, on 5x5: the last one after move 50."""
    game, lengths = make_game("go", size=5), set[int]()
    for seed in range(20):
        rng, state, length = random.Random(seed), game.initial_state(), 0
        while game.to_play(state) != TERMINAL:
            legal = game.legal_actions(state)
            state = game.apply(state, rng.choice(legal[:-1] or legal))
            length += 1
        lengths.add(length)
    assert max(lengths) == 50


def test_names_leave_out_i() -> None:
    game = make_game("go", size=19)
    assert [game.action_name(action) for action in (0, 7, 8, 18, 360, 361)] == [
        "a19",
        "h19",
        "j19",
        "t19",
        "t1",
        "pass",
    ]
    assert game.parse_action("Pass") == 361 and game.parse_action("J19") == 8
    with pytest.raises(IllegalMoveError, match="not the name of a move"):
        game.parse_action("i19")
    assert make_game("go").moves_to_text([40, 81, 0]) == "e5 pass a9"


def test_only_go_counts_points() -> None:
    game = make_game("othello")
    assert game.score(game.initial_state()) is None  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("size", "num_bytes"), [(5, 392), (9, 392), (10, 680), (13, 680), (14, 2120), (19, 2120)])
def test_states_are_small(size: int, num_bytes: int) -> None:
    """What docs/games.md says: every node of a tree holds a state."""
    assert make_game("go", size=size).native.state_bytes == num_bytes


# --- Random games -----------------------------------------------------------------------------------------------------


def play_plainly(seed: int, start: State, *, only_takes: bool) -> tuple[int, int]:
    """One random game from `start`, beside the plain rules. Players like to take stones, or else pass.

    Returns how many moves repeated a position, and how many of them one of more than seven moves ago.
    """
    rng = random.Random(seed)
    game, state, size = start.game, start, len(start.board)
    options: dict[str, Any] = {**game.options, "komi": float(game.options["komi"])}
    plain, repeated, far = PlainGo(**options), 0, 0
    plain.boards = [{divmod(a, size): ".xo"[cell] for a, cell in enumerate(start.board.ravel()) if cell}]
    while not plain.is_over():
        legal = plain.legal()
        assert game.legal_actions(state) == legal, state.to_text()
        boards = plain.boards
        for action in set(range(size * size)) - set(legal):
            plain.boards = [boards[-1]]  # without a past
            board = plain.after(divmod(action, size))
            plain.boards = boards
            if board is not None:
                repeated += 1
                far += board not in boards[-8:]
        takes = [a for a in legal[:-1] if len(plain.after(divmod(a, size)) or ()) <= len(plain.board)]
        choice = takes if only_takes or (takes and rng.random() < 0.8) else legal[:-1]
        action = rng.choice(choice) if choice and rng.random() < 0.9 else size * size
        plain.play(action)
        state = game.apply(state, action)
    assert game.to_play(state) == TERMINAL and game.legal_actions(state) == []
    assert score(state) == plain.score() and game.returns(state) == plain.returns()
    assert game.observe(state).tolist() == plain.observation()
    return repeated, far


@pytest.mark.parametrize("num_games", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_superko_like_the_plain_rules(num_games: int) -> None:
    """Small boards, where positions repeat."""
    repeated = 0
    for seed in range(num_games):
        options = {"suicide": ("forbidden", "allowed")[seed % 2], "passes": 4, "komi": seed % 5 - 2.5}
        repeated += play_plainly(seed, make_game("go", size=5, **options).initial_state(), only_takes=False)[0]
    assert repeated >= num_games // 4


@pytest.mark.parametrize("num_games", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_superko_over_long_cycles(num_games: int) -> None:
    """Three kos and passes, so that positions come again of which a state no longer has the stones."""
    start = triple_ko(passes=4)
    far = sum(play_plainly(seed, start, only_takes=True)[1] for seed in range(num_games))
    assert far >= 1


def play_beside_openspiel(size: int, num_games: int) -> int:
    """Random games in lock-step. Returns how many moves OpenSpiel would let repeat a position.

    There such a move ends the game as one without a result; here it is not legal.
    """
    pyspiel = pytest.importorskip("pyspiel")
    game = make_game("go", size=size)
    theirs = pyspiel.load_game("go", {"board_size": size, "komi": 7.5})
    # OpenSpiel counts points from the lower left corner.
    to_theirs = [(size - 1 - a // size) * size + a % size for a in range(size * size)] + [size * size]
    rng, num_repeated = random.Random(f"go {size}"), 0
    for _ in range(num_games):
        state, other = game.initial_state(), theirs.new_initial_state()
        while not other.is_terminal():
            assert game.to_play(state) == other.current_player()
            legal = game.legal_actions(state)
            repeated = set(other.legal_actions()) - {to_theirs[action] for action in legal}
            assert len(other.legal_actions()) - len(repeated) == len(legal)
            for action in repeated:
                child = other.child(action)
                assert child.is_terminal() and child.returns() == [0.0, 0.0]
            num_repeated += len(repeated)
            action = rng.choice(legal)
            state = game.apply(state, action)
            other.apply_action(to_theirs[action])
        assert game.to_play(state) == TERMINAL and game.returns(state) == other.returns()
    return num_repeated


def test_plays_like_openspiel() -> None:
    for size, num_games in ((5, 60), (6, 20), (7, 20), (9, 20), (13, 5), (19, 2)):
        play_beside_openspiel(size, num_games)


@pytest.mark.slow
def test_plays_like_openspiel_in_five_thousand_games() -> None:
    """Most of them small, where positions repeat."""
    found = [
        play_beside_openspiel(size, number) for size, number in ((5, 2000), (7, 1200), (9, 1600), (13, 150), (19, 50))
    ]
    assert sum(found) > 50
