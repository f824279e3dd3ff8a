"""The solver against plain negamax, against what is known about the game, and where it must refuse."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import sys
import threading
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from windrow import TERMINAL, ConfigError, FinishedGameError, GameError, SearchError, _core, make_game
from windrow.games.native import NativeGame, State
from windrow.play.solver import Connect4Solver, SolverPlayer
from windrow.play.solver_book import DEPTH, book_results, mirror_key, num_stones

GAME = NativeGame("connect4")
SOLVER = Connect4Solver(GAME)
MIB = 1 << 20
DRAWN_GAME = "163246261471734445624356165511553337222777"


def plain_scores(game: NativeGame, state: State) -> dict[int, int]:
    """Score of every legal action by trying everything, as the definition of a score says."""
    num_cells = int(game.options["rows"]) * int(game.options["columns"])

    @cache
    def score(position: State, stones: int) -> int:
        """For the player who made the last move, if the game is over; otherwise for the one to move."""
        if game.to_play(position) == TERMINAL:
            return (num_cells + 2 - stones) // 2 if any(game.returns(position)) else 0
        return max(rated(position, action, stones) for action in game.legal_actions(position))

    def rated(position: State, action: int, stones: int) -> int:
        after = game.apply(position, action)
        found = score(after, stones + 1)
        return found if game.to_play(after) == TERMINAL else -found

    return {action: rated(state, action, num_stones(state)) for action in game.legal_actions(state)}


def signs(scores: dict[int, int]) -> dict[int, int]:
    return {action: (score > 0) - (score < 0) for action, score in scores.items()}


def play_at_random(game: NativeGame, draw: random.Random, stones: int) -> State:
    """An unfinished position with that many stones."""
    while True:
        state = game.initial_state()
        while num_stones(state) < stones and game.to_play(state) != TERMINAL:
            state = game.apply(state, draw.choice(game.legal_actions(state)))
        if game.to_play(state) != TERMINAL:
            return state


@pytest.mark.parametrize(
    ("rows", "columns", "stones"),
    [
        *((4, 4, 5), (5, 4, 9), (4, 5, 9), (5, 5, 15), (4, 6, 14), (6, 4, 13)),
        *((3, 6, 8), (2, 7, 5), (2, 9, 8), (7, 3, 10), (9, 2, 6)),
        *((31, 2, 52), (7, 7, 39), (7, 8, 47), (6, 9, 45), (8, 7, 47), (2, 21, 34)),
    ],
)
def test_plain_search_agrees(rows: int, columns: int, stones: int) -> None:
    """Boards of all shapes: narrower than a line, lower than a line, up to all 64 bits.

    tests/cpp/test_connect4_solver.cpp does the same with many more positions.
    """
    game = NativeGame("connect4", rows=rows, columns=columns, connect=4)
    solver = Connect4Solver(game, 16 * MIB)
    draw = random.Random(rows * 100 + columns)
    for _ in range(4):
        state = play_at_random(game, draw, stones)
        want = plain_scores(game, state)
        assert solver.rate(state) == want, str(state)
        assert solver.results(state) == signs(want), str(state)
        assert solver.value(state) == max(want.values()), str(state)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), stones=st.integers(31, 41))
def test_plain_search_agrees_late_in_the_game(seed: int, stones: int) -> None:
    state = play_at_random(GAME, random.Random(seed), stones)
    want = plain_scores(GAME, state)
    assert SOLVER.rate(state) == want
    assert SOLVER.results(state) == signs(want)
    assert SOLVER.best_actions(state) == [action for action in want if want[action] == max(want.values())]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(4, 5), (5, 4), (4, 6)])
def test_plain_search_agrees_from_the_start(rows: int, columns: int) -> None:
    game = NativeGame("connect4", rows=rows, columns=columns)
    state = play_at_random(game, random.Random(1), 2)
    assert Connect4Solver(game, 4 * MIB).rate(state) == plain_scores(game, state)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), stones=st.integers(18, 40))
def test_positions_agree_with_their_successors(seed: int, stones: int) -> None:
    """What a move is worth is what the position after it is worth to the other side, table or no table."""
    state = play_at_random(GAME, random.Random(seed), stones)
    scores = SOLVER.rate(state)
    fresh = Connect4Solver(GAME, MIB)
    assert signs(scores) == fresh.results(state)
    for action, score in scores.items():
        after = GAME.apply(state, action)
        if GAME.to_play(after) != TERMINAL:
            assert score == -fresh.value(after)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), stones=st.integers(16, 40))
def test_mirror_image_scores_alike(seed: int, stones: int) -> None:
    draw = random.Random(seed)
    moves: list[int] = []
    state = image = GAME.initial_state()
    while len(moves) < stones:
        action = draw.choice(GAME.legal_actions(state))
        after = GAME.apply(state, action)
        if GAME.to_play(after) == TERMINAL:
            break
        moves.append(action)
        state, image = after, GAME.apply(image, 6 - action)
    assume(len(moves) >= 16)
    assert mirror_key(state) == mirror_key(image)
    assert SOLVER.rate(image) == {6 - action: score for action, score in reversed(SOLVER.rate(state).items())}


# Known facts about the usual board, derived by hand.


def test_win_at_once() -> None:
    """X has three in a row at the bottom and both ends open: the fourth stone of x, 17 left."""
    state = GAME.state_from_moves("334455")
    assert SOLVER.results(state)[1] == 1
    assert {action: score for action, score in SOLVER.rate(state).items() if action in (1, 5)} == {1: 18, 5: 18}
    assert SOLVER.best_actions(state) == [1, 5]
    assert SOLVER.value(state) == 18


def test_only_move_that_does_not_lose_at_once() -> None:
    """O must stop three upright stones of x; all else loses to the next stone of x, the 19th of the game.

    o . . . . . o
    x . . . . . x
    o . . . . . o
    x . . x . . x
    o . . x . . o
    x o . x . o x
    """
    scores = SOLVER.rate(GAME.state_from_moves("111111 777777 42464"))
    assert {scores[action] for action in (1, 2, 4, 5)} == {-12}
    assert scores[3] > -12


def test_last_cell_is_a_draw() -> None:
    state = GAME.state_from_moves(DRAWN_GAME[:41])
    assert SOLVER.rate(state) == {6: 0}
    assert SOLVER.value(state) == 0


def test_drawn_position() -> None:
    """Four stones before the end every move draws; a move earlier column 7 lets x win with the next stone, the 39th."""
    assert SOLVER.rate(GAME.state_from_moves(DRAWN_GAME[:38])) == {1: 0, 6: 0}
    assert SOLVER.rate(GAME.state_from_moves(DRAWN_GAME[:37])) == {1: 0, 6: -2}


def test_first_move_in_the_middle_wins() -> None:
    """What James Allen and Victor Allis found in 1988: from the middle outwards a win, a draw, two losses."""
    assert SOLVER.results(GAME.initial_state()) == {0: -1, 1: -1, 2: 0, 3: 1, 4: 0, 5: -1, 6: -1}


# The book.


def test_book_knows_the_first_moves_only() -> None:
    draw = random.Random(3)
    for stones in range(DEPTH):
        results = book_results(play_at_random(GAME, draw, stones))
        assert results is not None and list(results) == list(range(7))
    assert book_results(play_at_random(GAME, draw, DEPTH)) is None
    assert book_results(make_game("connect4", rows=5).initial_state()) is None
    assert book_results(make_game("tictactoe").initial_state()) is None


@pytest.mark.parametrize("moves", ["2644", "2733", "4345", "4143"])
def test_book_agrees_with_the_solver(moves: str) -> None:
    """On positions that are soon solved."""
    results = book_results(GAME.state_from_moves(moves[:-1]))
    assert results is not None
    assert results[GAME.parse_action(moves[-1])] == -solved_without_book(moves)


@pytest.mark.slow
def test_sample_of_the_book_agrees_with_the_solver() -> None:
    draw = random.Random(19)
    for _ in range(12):
        moves = "".join(draw.choices("1234567", k=DEPTH))
        results = book_results(GAME.state_from_moves(moves[:-1]))
        assert results is not None
        assert results[GAME.parse_action(moves[-1])] == -solved_without_book(moves), moves


def solved_without_book(moves: str) -> int:
    """The result for the player to move."""
    return _core.Connect4Solver(GAME.native, 64 * MIB).solve(GAME.state_from_moves(moves).data, is_score=False)


# Limits and refusals.


def test_limits_end_a_question_and_leave_the_solver_fit() -> None:
    solver = Connect4Solver(GAME, MIB)
    hard = GAME.state_from_moves("4444")
    with pytest.raises(SearchError, match="1000 nodes"):
        solver.rate(hard, max_nodes=1000)
    assert solver.num_nodes <= 1001
    with pytest.raises(SearchError, match=r"0\.05"):
        solver.results(hard, timeout_s=0.05)
    with pytest.raises(SearchError):
        solver.value(hard, max_nodes=1)
    easy = play_at_random(GAME, random.Random(5), 30)
    assert solver.rate(easy, max_nodes=10**6, timeout_s=60.0) == SOLVER.rate(easy)
    for bad in ({"max_nodes": 0}, {"timeout_s": 0.0}, {"timeout_s": float("nan")}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            solver.rate(easy, **bad)


def test_ctrl_c_ends_a_question() -> None:
    code = (
        "import signal, windrow, windrow.play.solver as s\n"
        "game = windrow.make_game('connect4')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        "    print('started', flush=True)\n"
        "    s.Connect4Solver(game).rate(game.initial_state())\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "stopped\n"


def test_threads_share_a_solver() -> None:
    draw = random.Random(11)
    states = [play_at_random(GAME, draw, 22) for _ in range(40)]
    want = [SOLVER.rate(state) for state in states]
    solver = Connect4Solver(GAME, MIB)
    got: list[list[dict[int, int]]] = [[], []]

    def work(index: int) -> None:
        got[index] = [solver.rate(state) for state in states]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [want, want]


def test_finished_game_is_refused() -> None:
    won = GAME.state_from_moves("1212121")
    for question in (SOLVER.rate, SOLVER.results, SOLVER.value, SOLVER.best_actions):
        with pytest.raises(FinishedGameError, match="over"):
            question(won)


def test_other_games_are_refused() -> None:
    with pytest.raises(ConfigError, match="connect4"):
        Connect4Solver(make_game("tictactoe"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="connect=4"):
        Connect4Solver(NativeGame("connect4", connect=5))
    with pytest.raises(GameError, match="rows=5"):
        SOLVER.rate(NativeGame("connect4", rows=5).initial_state())


@pytest.mark.parametrize("max_memory", [0, 8, -1, 2**70, 1.5])
def test_impossible_memory_is_refused(max_memory: object) -> None:
    with pytest.raises(ConfigError):
        Connect4Solver(GAME, max_memory)  # pyright: ignore[reportArgumentType]


def test_small_memory_gives_the_same_answers() -> None:
    """With 8 buckets entries are thrown out all the time."""
    solver = Connect4Solver(GAME, 512)
    draw = random.Random(13)
    for _ in range(10):
        state = play_at_random(GAME, draw, 26)
        assert solver.rate(state) == SOLVER.rate(state)


def test_large_boards_need_more_memory() -> None:
    game = NativeGame("connect4", rows=7, columns=8)
    with pytest.raises(ConfigError, match="at least 16777216 bytes"):
        Connect4Solver(game, 8 * MIB)


def test_bytes_that_are_no_position_are_refused() -> None:
    """A stone that hangs in the air; stones of which one side has too many; one above the board."""
    for mine, occupied in ((0, 2), (0, 3), (3, 3), (1 << 6, 3 << 6)):
        with pytest.raises(GameError, match="not a position"):
            SOLVER.rate(State(GAME, struct.pack("<QQii", mine, occupied, 0, -1)))


# The player.


def test_player_plays_best_moves() -> None:
    draw = random.Random(17)
    states = [play_at_random(GAME, draw, stones) for stones in (12, 17, 25, 32, 38)]
    player = SolverPlayer(GAME, seed=3)
    actions = player.choose(states)
    assert player.name == "solver"
    for state, action in zip(states, actions, strict=True):
        assert action in SOLVER.best_actions(state)
    assert SolverPlayer(GAME, seed=3, max_memory=MIB).choose(states[::-1]) == actions[::-1]
    player.close()


def test_player_opens_in_the_middle() -> None:
    assert SolverPlayer(GAME).choose([GAME.initial_state()]) == [3]


def test_ties_depend_on_the_seed() -> None:
    """In a position with many equal moves not every seed takes the same one."""
    state = GAME.state_from_moves("334455")
    assert {SolverPlayer(GAME, seed=seed, max_memory=MIB).choose([state])[0] for seed in range(20)} == {1, 5}
