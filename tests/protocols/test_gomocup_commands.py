"""Every command of the Gomocup protocol, right and wrong; the brain is in this process and has 8 simulations a move."""

from __future__ import annotations

import io
import re
import threading
from typing import Any, TextIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_cases import hang_up, play_script

from windrow import ConfigError, SearchConfig, SearchResult, make_game
from windrow.errors import GameError
from windrow.evaluators import HashEvaluator, RolloutEvaluator
from windrow.games.core_game import CoreGame
from windrow.games.protocol import TERMINAL
from windrow.protocols.clock import Lateness, Turn
from windrow.protocols.gomocup import Gomocup
from windrow.protocols.gomocup_board import OPPONENT, OWN, Stone, build_state, read_square, write_square
from windrow.protocols.gomocup_brain import Brain
from windrow.protocols.gomocup_limits import Limits

MOVE = r"\d+,\d+"


def answers(*commands: str) -> list[str]:
    return play_script("\n".join(commands), lambda _: RolloutEvaluator())


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (["START 15"], ["OK"]),
        (["START 21"], ["ERROR .*from 5 to 20.*"]),
        (["START 4"], ["ERROR .*from 5 to 20.*"]),
        (["START"], ["ERROR START is followed by.*"]),
        (["START x"], ["ERROR START is followed by.*"]),
        (["START 20", "BEGIN"], ["OK", MOVE]),
        (["START 15 15"], ["ERROR START is followed by.*"]),
        (["START -9"], ["ERROR .*from 5 to 20.*"]),
        (["START 99999999999999999999"], ["ERROR START is followed by.*"]),
        (["RECTSTART 20,15", "BEGIN"], ["ERROR rectangular.*", "ERROR there is no board yet.*"]),
        (["RECTSTART 20"], ["ERROR RECTSTART is followed by width,height.*"]),
        (["BEGIN"], ["ERROR there is no board yet.*"]),
        (["TURN 1,1"], ["ERROR there is no board yet.*"]),
        (["RESTART"], ["ERROR there is no board yet.*"]),
        (["START 7", "BEGIN", "BEGIN"], ["OK", MOVE, "ERROR BEGIN is for an empty board.*"]),
        (["START 7", "BEGIN", "RESTART", "BEGIN"], ["OK", MOVE, "OK", MOVE]),
        (["START 7", "START 21", "BEGIN"], ["OK", "ERROR .*", "ERROR there is no board.*"]),
        (["START 7", "TURN 7,0", "TURN 0,-1", "TURN 1,2,3"], ["OK", *["ERROR .*"] * 3]),
        (["START 7", "TURN 0,0", "TURN 0,0"], ["OK", MOVE, "ERROR there is a stone on 0,0 already"]),
        (["START 7", "TAKEBACK 3,3"], ["OK", "ERROR there is no stone on 3,3"]),
        (["START 7", "PLAY 3,3", "PLAY 3,4"], ["OK", "3,3", "ERROR .*do not come from turns"]),
        (["START 7", "PLAY 3,3", "TURN 2,2"], ["OK", "3,3", MOVE]),
        (["START 7", "DONE"], ["OK", "ERROR DONE ends BOARD.*"]),
        (["START 7", "BOARD", "DONE"], ["OK", MOVE]),
        (["START 7", "BOARD", "3,3,2", "DONE"], ["OK", MOVE]),
        (["START 7", "BOARD", "3,3,3", "DONE"], ["OK", "ERROR the owner in 3,3,3.*"]),
        (["START 7", "BOARD", "3,3", "4,4,1", "DONE"], ["OK", "ERROR a stone is written x,y,owner.*"]),
        (["START 7", "BOARD", "3,3,1", "3,3,2", "DONE"], ["OK", "ERROR there are two stones on .*"]),
        (["START 7", "BOARD", "3,3,1", "DONE"], ["OK", "ERROR 1 own stones and 0 of the opponent.*"]),
        (["START 7", "BOARD", "3,3,2", "ABOUT"], ["OK", "ERROR BOARD ends with DONE.*", "name=.*"]),
        (["START 7", "BOARD", "INFO timeout_turn 100", "3,3,2", "DONE"], ["OK", MOVE]),
        (["START 7", "FROBNICATE", "3,3", "\x00\x7f"], ["OK", *["UNKNOWN .*"] * 3]),
        (["START 7", "SUGGEST 3,3"], ["OK", "UNKNOWN .*"]),  # a brain's word
        (["ABOUT"], ['name="windrow", .*']),
        (["START 9", "SWAP2BOARD", "DONE"], ["OK", " ".join([MOVE] * 3)]),
        (["START 9", "SWAP2BOARD", "4,4", "5,4", "3,3", "DONE"], ["OK", f"SWAP|{MOVE}"]),
        (["START 9", "SWAP2BOARD", "4,4", "5,4", "3,3", "4,5", "2,2", "DONE"], ["OK", f"SWAP|{MOVE}"]),
        (["START 9", "SWAP2BOARD", "4,4", "DONE"], ["OK", "ERROR SWAP2BOARD has 0, 3 or 5.*"]),
    ],
)
def test_answers(commands: list[str], expected: list[str]) -> None:
    found = answers(*commands)
    assert len(found) == len(expected), found
    for answer, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, answer), (answer, pattern)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ("rule 0", MOVE),
        ("rule 1", MOVE),
        ("rule 2", "ERROR rule 2: continuous games cannot be played.*"),
        ("rule 4", "ERROR rule 4: renju cannot.*"),
        ("rule 5", "ERROR rule 5: renju cannot.*"),
        ("rule 8", "ERROR rule 8: caro cannot.*"),
        ("rule 16", "ERROR rule 16: this rule cannot.*"),
        ("max_memory 0", MOVE),
        ("max_memory 1000000", "ERROR max_memory is 1000000 bytes, but at least .*"),
        ("max_memory 4000000000", MOVE),
        ("game_type 2", MOVE),
        ("folder /nowhere", MOVE),
        ("evaluate 3,3", MOVE),
        ("time_left -5", MOVE),
        ("something else", MOVE),
    ],
)
def test_info_is_not_answered_and_what_cannot_be_is_told_with_the_move(info: str, expected: str) -> None:
    found = answers("START 7", f"INFO {info}", "BEGIN")
    assert len(found) == 2 and re.fullmatch(expected, found[1]), found


def test_an_info_that_makes_no_sense_is_left_out_with_a_message() -> None:
    found = answers("START 7", "INFO timeout_turn soon", "INFO", "BEGIN")
    assert found[1].startswith("MESSAGE INFO timeout_turn is left out") and re.fullmatch(MOVE, found[2])
    assert len(found) == 3


def test_rules_may_come_before_or_after_the_start() -> None:
    """Six in a row win with rule 0, not with rule 1: there the game goes on, and is asked for a move."""
    six = [f"{x},0,2" for x in range(6)] + [f"{x},2,1" for x in (0, 1, 3, 5, 7)]
    board = ["BOARD", *six, "DONE"]
    assert answers("START 9", "INFO rule 1", *board)[1:] != answers("START 9", "INFO rule 0", *board)[1:]
    assert re.fullmatch(MOVE, answers("INFO rule 1", "START 9", *board)[1])
    assert answers("INFO rule 0", "START 9", *board)[1] == "ERROR the game is over"


def test_takeback_frees_the_square() -> None:
    found = answers("START 5", "TURN 2,2", "TAKEBACK 2,2", "TURN 2,2")
    assert found[2] == "OK" and re.fullmatch(MOVE, found[3])
    own = found[1]
    found = answers("START 5", "TURN 2,2", f"TAKEBACK {own}", "TAKEBACK 2,2", "BEGIN")
    assert found[2:4] == ["OK", "OK"] and re.fullmatch(MOVE, found[4])


def test_a_checkpoint_for_another_board_is_refused() -> None:
    def make(game: CoreGame) -> object:
        if dict(game.options) != {"size": 7, "rule": "standard"}:
            raise ConfigError(f"the network is not for {game!r}")
        return HashEvaluator()

    commands = "START 8\nSTART 7\nBEGIN\nINFO rule 1\nBEGIN"
    found = play_script(commands, make)
    assert found[0].startswith("ERROR the network is not for") and found[1] == "OK"  # whatever the rule will be
    assert found[2].startswith("ERROR the network is not for") and re.fullmatch(MOVE, found[3])


# --- The parts ----------------------------------------------------------------------------------------------------


def test_squares_are_x_then_y() -> None:
    """The first is the column from the left, the second the row from the top, as windrow counts rows too."""
    assert read_square("2,1", 15) == 17 and write_square(17, 15) == "2,1"


def test_stones_in_any_order() -> None:
    game = make_game("gomoku", size=7, rule="standard")
    # Six in a row, filled in the middle last: 0 1 2 4 5, then 3. In the order given, 4 would make five.
    others = [Stone(x, OPPONENT) for x in range(6)]
    own = [Stone(14 + x, OWN) for x in (0, 1, 3, 4, 6)]
    state = build_state(game, [*others, *own])
    assert game.to_play(state) == 1
    freestyle = make_game("gomoku", size=7)
    assert freestyle.to_play(build_state(freestyle, [*others, *own])) == TERMINAL
    both = [Stone(x, OWN) for x in range(5)] + [Stone(14 + x, OPPONENT) for x in range(5)]
    with pytest.raises(GameError, match="over on this board"):
        build_state(freestyle, both)


def test_a_finished_board_is_a_position_if_the_last_stone_finished_it() -> None:
    game = make_game("gomoku", size=7)
    stones = [Stone(x, OPPONENT) for x in range(5)] + [Stone(14 + x, OWN) for x in (0, 1, 3, 4)]
    assert game.to_play(build_state(game, stones)) == TERMINAL


def think(brain: Brain, stones: list[Stone]) -> SearchResult:
    return brain.think(brain.position(brain.game(7, "freestyle"), stones), stones, 1e6)


def test_the_tree_is_kept_from_move_to_move() -> None:
    brain = Brain(lambda _: HashEvaluator(), SearchConfig(num_simulations=400, leaves_per_tree=1))
    brain.prepare(7, "freestyle")
    first = think(brain, [])
    stones = [Stone(first.best_action, OWN)]
    brain.follow(stones)
    answer = int(next(action for action in range(49) if action != first.best_action))
    second = think(brain, [*stones, Stone(answer, OPPONENT)])
    assert second.stats.simulations == 400
    # 32 of the warming up and 400 came before; some of them went on below these two moves, or the search begins anew.
    assert second.visits.sum() >= 400
    best = [*stones, Stone(int(first.principal_variation[1]), OPPONENT)]
    brain = Brain(lambda _: HashEvaluator(), SearchConfig(num_simulations=400, leaves_per_tree=1))
    brain.prepare(7, "freestyle")
    assert think(brain, []).principal_variation == first.principal_variation
    brain.follow(stones)
    assert think(brain, best).visits.sum() > 400
    # Another board has nothing to do with it.
    assert think(brain, []).visits.sum() == 400
    brain.close()


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(turn_ms=1000), 0.9),  # a tenth is kept
        (Limits(turn_ms=30000), 29.5),  # but no more than half a second
        (Limits(turn_ms=200), 0.12),  # and no less than 80 ms
        (Limits(turn_ms=100), 0.05),  # but no more than half
        (Limits(turn_ms=0), 0.02),
        (Limits(turn_ms=1000, match_ms=0, time_left_ms=2**31 - 1), 0.9),
        (Limits(turn_ms=10000, time_left_ms=35500), 1.0),  # (35.5 - 0.5) / 35 moves
        (Limits(turn_ms=10000, match_ms=45500), 1.0),  # the same, 10 s are used
        (Limits(turn_ms=1000, time_left_ms=-100), 0.02),
    ],
)
def test_time_for_a_move(limits: Limits, expected: float) -> None:
    assert limits.seconds_for_move(num_own_moves=0, used_s=10.0) == pytest.approx(expected)


def test_time_for_a_move_later_in_the_game_and_with_a_slow_network() -> None:
    limits = Limits(turn_ms=10000, time_left_ms=12500)
    assert limits.seconds_for_move(num_own_moves=40, used_s=0.0) == pytest.approx(1.0)  # (12.5 - 0.5) / 12 moves
    assert Limits(turn_ms=1000).seconds_for_move(num_own_moves=0, used_s=0, delay_s=0.1) == pytest.approx(0.8)


def test_the_last_moment() -> None:
    """A third of the reserve before the limit, whichever limit comes first, and 30 ms at least."""
    assert Limits(turn_ms=30000).seconds_to_alarm(used_s=0.0) == pytest.approx(30 - 0.5 / 3)
    assert Limits(turn_ms=1000).seconds_to_alarm(used_s=0.0) == pytest.approx(1 - 0.1 / 3)
    assert Limits(turn_ms=30000, time_left_ms=500).seconds_to_alarm(used_s=0.0) == pytest.approx(0.5 - 0.03)
    assert Limits(turn_ms=0).seconds_to_alarm(used_s=0.0) is None


class Slow(HashEvaluator):
    """Every call but the first `num_free` waits until the test lets it go."""

    def __init__(self, num_free: int) -> None:
        super().__init__(num_actions=49)
        self.num_free, self.gate = num_free, threading.Event()

    def bind(self, game: object) -> Slow:
        return self

    def evaluate(self, observations: Any) -> Any:
        self.num_free -= 1
        if self.num_free < 0:
            assert self.gate.wait(60)
        return super().evaluate(observations)


def test_an_alarm_answers_for_an_evaluator_that_does_not() -> None:
    """The first move is the centre, where nothing is known; and it is the move that counts from then on."""
    evaluator, answers = Slow(num_free=33), io.StringIO()  # the root and 32 simulations of the warming up

    class Watched(io.StringIO):
        def write(self, text: str) -> int:
            if re.fullmatch(MOVE, text.strip()):
                evaluator.gate.set()
            return answers.write(text)

    brain = Gomocup(lambda _: evaluator, "a test", SearchConfig(num_simulations=50, leaves_per_tree=1))
    commands = "INFO timeout_turn 300\nSTART 7\nBOARD\n0,0,2\nDONE\nTURN 3,3\n"
    brain.run(io.BytesIO(commands.encode()), cast("TextIO", Watched()))
    found = answers.getvalue().splitlines()
    assert found == ["OK", "3,3", "ERROR there is a stone on 3,3 already"]


def test_an_alarm_knows_nothing_of_the_move_before() -> None:
    """It may ring before the search of its own turn has begun."""
    said: list[int] = []
    turn = Turn(said.append, best=24)
    turn.tell(7)
    assert (turn.answer(3), turn.answer(5), turn.action) == (3, 3, 3)
    late = Turn(said.append, best=24)
    late.set_alarm(lambda: 0.0).join(60)
    assert said == [3, 24] and late.answer(1) == 24


def test_an_alarm_is_off_when_the_turn_is_over() -> None:
    said: list[int] = []
    turn = Turn(said.append, best=24)
    alarm = turn.set_alarm(lambda: float("inf"))
    turn.end()
    alarm.join(60)
    assert said == [] and not alarm.is_alive()


def test_a_busy_machine_makes_searches_and_alarms_earlier() -> None:
    """Late by 20 ms three times: the command, the alarm, the manager; and it is forgotten by a tenth in a move."""
    lateness, limits = Lateness(), Limits(turn_ms=1000)
    lateness.note(0.02)
    lateness.note(0.01)
    assert lateness.seconds == 0.02 and lateness.reserve_s == pytest.approx(0.06)
    alarm = limits.seconds_to_alarm(used_s=0.0, late_s=lateness.seconds)
    assert alarm == pytest.approx(1 - 0.1 / 3 - 0.06)
    search = limits.seconds_for_move(num_own_moves=0, used_s=0.0, delay_s=lateness.reserve_s)
    assert search == pytest.approx(1 - 0.1 - 0.06)
    lateness.fade()
    assert lateness.seconds == 0.02  # seen in this move
    lateness.fade()
    assert lateness.seconds == pytest.approx(0.018)
    assert limits.seconds_to_alarm(used_s=0.0, late_s=10.0) == pytest.approx(0.4)  # something must be left


def test_a_turn_learns_how_late_it_wakes() -> None:
    """An alarm that is asked for when it is past has been late by that."""
    lateness, rung = Lateness(), threading.Event()
    times = iter([float("inf"), 0.0])
    turn = Turn(lambda _: None, 3, lateness, rung.set)
    turn.set_alarm(lambda: next(times)).join(60)
    assert rung.is_set() and turn.action == 3
    assert lateness.seconds >= 0.0  # one nap lies between


# --- Nonsense -----------------------------------------------------------------------------------------------------

NUMBER = st.one_of(st.integers(-2, 8).map(str), st.text("0123456789,- x", max_size=6))
WORDS = ["START", "TURN", "BEGIN", "BOARD", "DONE", "INFO", "TAKEBACK", "RESTART", "ABOUT", "PLAY", "SWAP2BOARD", "X"]
KEYS = ["timeout_turn", "timeout_match", "time_left", "max_memory", "rule", "game_type", "folder", "evaluate", "?"]
LINE = st.one_of(
    st.tuples(st.sampled_from(WORDS), NUMBER).map(" ".join),
    st.sampled_from(WORDS),
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)).map(lambda stone: "{},{},{}".format(*stone)),
    st.tuples(st.just("TURN"), st.integers(0, 5).map(str), st.just(","), st.integers(0, 5).map(str)).map(
        lambda parts: f"{parts[0]} {parts[1]},{parts[3]}"
    ),
    st.tuples(st.just("INFO"), st.sampled_from(KEYS), NUMBER).map(" ".join),
    st.text(max_size=12),
)
GRAMMAR = re.compile(r'OK|ERROR .+|UNKNOWN .+|MESSAGE .+|SWAP|name=".*"|\d+,\d+( \d+,\d+)*')


@settings(max_examples=60)
@given(st.lists(LINE, max_size=25))
def test_nothing_breaks_it(lines: list[str]) -> None:
    """Whatever comes, the brain answers in the protocol's words, and in the end it still plays."""
    commands = [line for line in lines if line.strip()[:3].upper() != "END"]
    script = "\n".join(["START 6", "INFO timeout_turn 0", *commands, "DONE", "INFO rule 0", "INFO max_memory 0"])
    found = play_script(
        (script + "\nSTART 6\nINFO timeout_turn 0\nBEGIN").encode("utf-8", "replace"), lambda _: HashEvaluator()
    )
    assert all(GRAMMAR.fullmatch(answer) for answer in found), found
    assert found[-2] == "OK" and re.fullmatch(MOVE, found[-1])


def test_a_move_is_not_searched_for_a_manager_that_is_gone() -> None:
    """With an hour for the move, and the input still open."""
    lines = ["START 15", "INFO timeout_turn 3600000", "BEGIN"]
    answer, code, said = hang_up("gomocup", "--evaluator", "uniform", lines=lines)
    assert (answer, said) == ("OK", "") and code in (0, 1)
