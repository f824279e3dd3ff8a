"""The Gomocup brain as a manager meets it: in a process of its own, with the clock running."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep

import pytest
from protocol_cases import Talk

from windrow import make_game

MOVE = re.compile(r"(\d+),(\d+)")


@dataclass
class Board:
    """A referee of its own: stones by square, nothing from windrow."""

    size: int
    is_exact: bool = False
    stones: dict[tuple[int, int], int] = field(default_factory=dict)

    def place(self, square: tuple[int, int], player: int) -> bool:
        """Put a stone down, which must be legal; True if that is five in a row."""
        x, y = square
        assert 0 <= x < self.size and 0 <= y < self.size, f"{square} is not on the board"
        assert square not in self.stones, f"{square} is taken"
        self.stones[square] = player
        runs = [1 + self._run(square, step, player) + self._run(square, (-step[0], -step[1]), player) for step in STEPS]
        return any(run == 5 if self.is_exact else run >= 5 for run in runs)

    def _run(self, square: tuple[int, int], step: tuple[int, int], player: int) -> int:
        x, y = square[0] + step[0], square[1] + step[1]
        return 1 + self._run((x, y), step, player) if self.stones.get((x, y)) == player else 0

    @property
    def is_full(self) -> bool:
        return len(self.stones) == self.size**2


STEPS = ((1, 0), (0, 1), (1, 1), (1, -1))


class Canary:
    """How late this machine wakes a thread that has slept: what no program on it can be blamed for."""

    def __init__(self) -> None:
        self._worst, self._is_over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._sleep, daemon=True)
        self._thread.start()

    def _sleep(self) -> None:
        while not self._is_over.is_set():
            start = perf_counter()
            sleep(0.005)
            self._worst = max(self._worst, perf_counter() - start - 0.005)

    def take(self) -> float:
        """The worst since the last call, in seconds."""
        worst, self._worst = self._worst, 0.0
        return worst

    def __enter__(self) -> Canary:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


@dataclass(frozen=True)
class Timing:
    """How long a move took, and how late the machine was meanwhile."""

    seconds: float
    late: float

    def is_within(self, limit: float) -> bool:
        """Whether it kept the limit; two processes and two pipes may each be as late as the canary."""
        return self.seconds <= limit + 4 * self.late


def read_move(answer: str) -> tuple[int, int]:
    match = MOVE.fullmatch(answer)
    assert match is not None, answer
    return int(match[1]), int(match[2])


def play_games(
    brains: list[Talk], canary: Canary, size: int, *, limit_ms: int, num_moves: int, rule: int
) -> list[Timing]:
    """Whole games between two brains until that many moves are made, and the time of each."""
    times: list[Timing] = []
    while len(times) < num_moves:
        board = Board(size, is_exact=rule == 1)
        for brain in brains:
            assert brain.ask(f"START {size}") == "OK"
            brain.send(f"INFO timeout_turn {limit_ms}", "INFO timeout_match 0", "INFO max_memory 0", "INFO game_type 1")
            brain.send(f"INFO rule {rule}")
        command = "BEGIN"
        for turn in range(size**2):
            canary.take()
            answer, seconds = brains[turn % 2].ask_timed("INFO time_left 2147483647", command)
            times.append(Timing(seconds, canary.take()))
            square = read_move(answer)
            command = f"TURN {square[0]},{square[1]}"
            if board.place(square, turn % 2) or board.is_full or len(times) == num_moves:
                break
    return times


def test_a_game_within_its_time() -> None:
    with Talk("gomocup") as first, Talk("gomocup", "--seed", "1") as second, Canary() as canary:
        times = play_games([first, second], canary, 7, limit_ms=500, num_moves=12, rule=0)
        for brain in (first, second):
            brain.send("END")
            assert brain.leave() == (0, [], "")
    assert len(times) == 12
    assert all(time.is_within(0.5) for time in times), times  # that is what the protocol is about


@pytest.mark.slow
def test_200_moves_of_one_second() -> None:
    with Talk("gomocup") as first, Talk("gomocup", "--seed", "1") as second, Canary() as canary:
        times = play_games([first, second], canary, 15, limit_ms=1000, num_moves=100, rule=0)
        times += play_games([first, second], canary, 15, limit_ms=1000, num_moves=100, rule=1)
    seconds = sorted(time.seconds for time in times)
    print(f"\n{len(times)} moves: median {seconds[100]:.3f} s, longest {seconds[-1]:.3f} s")
    print(f"the machine itself was late by up to {max(time.late for time in times):.3f} s")
    assert len(times) == 200
    assert all(time.is_within(1.0) for time in times), [time for time in times if not time.is_within(1.0)]


def test_who_it_is_and_that_there_is_no_network() -> None:
    with Talk("gomocup") as brain:
        answer = brain.ask("ABOUT")
    assert re.fullmatch(r'(\w+="[^"]*"(, )?)+', answer)
    assert answer.startswith('name="windrow", version="') and "without a network" in answer


def test_end_in_the_middle_of_a_search() -> None:
    with Talk("gomocup") as brain:
        assert brain.ask("START 15", "INFO timeout_turn 600000", "ABOUT") == "OK"
        brain.hear()
        brain.send("BEGIN", "END")
        assert brain.leave() == (0, [], "")  # within PATIENCE_S, far below the time of the move


def test_the_end_of_input_ends_it_when_all_is_answered() -> None:
    with Talk("gomocup") as brain:
        brain.send("START 7", "INFO timeout_turn 0", "BEGIN", "TURN")
        code, answers, err = brain.leave()
    assert (code, err) == (0, "")
    assert answers[0] == "OK" and MOVE.fullmatch(answers[1]) and answers[2].startswith("ERROR")


def test_a_shorter_limit_is_heard_while_it_thinks() -> None:
    with Talk("gomocup") as brain:
        assert brain.ask("START 15", "INFO timeout_turn 600000", "ABOUT") == "OK"
        brain.hear()
        brain.send("BEGIN")
        brain.send("INFO timeout_turn 300")
        read_move(brain.hear())  # within PATIENCE_S, far below the first limit
        brain.send("END")
        assert brain.leave()[0] == 0


def test_no_time_is_answered_at_once() -> None:
    with Talk("gomocup") as brain:
        assert brain.ask("START 15") == "OK"
        answer, seconds = brain.ask_timed("INFO timeout_turn 0", "BEGIN")
    read_move(answer)
    assert seconds < 1.0  # "as fast as possible"; it takes some 20 ms


def test_crlf_and_case_and_spaces() -> None:
    with Talk("gomocup") as brain:
        assert brain.ask("start 9\r") == "OK"
        brain.send("info TIMEOUT_TURN 0\r", "")
        read_move(brain.ask("  Begin \r"))


def test_a_trained_network_plays_on_its_own_board(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from windrow.nets import ResNet
    from windrow.train import save_checkpoint

    game = make_game("gomoku", size=7)
    net = ResNet.for_game(game, channels=8, blocks=1)
    save_checkpoint(tmp_path / "run", 1, game=game, net=net, learner_state={}, counters={}, config={}, metrics={})
    with Talk("gomocup", "--checkpoint", str(tmp_path / "run"), "--backend", "torch") as brain:
        assert "the network of" in brain.ask("ABOUT")
        assert brain.ask("START 9").startswith("ERROR")
        assert brain.ask("START 7") == "OK"
        read_move(brain.ask("INFO timeout_turn 500", "BEGIN"))
        assert brain.ask("INFO rule 1", "RESTART").startswith("ERROR")


def test_both_say_what_they_are() -> None:
    code, out, err = run_json("gomocup")
    assert (code, err) == (0, "") and json.loads(out)["name"] == "windrow"
    code, out, err = run_json("analysis", "connect4", "--trees", "3")
    assert (code, err) == (0, "") and json.loads(out)["num_trees"] == 3


def test_what_a_network_said_is_kept_unless_it_shall_not() -> None:
    pytest.importorskip("torch")
    network = ("analysis", "connect4", "--evaluator", "resnet:4x1", "--backend", "torch")
    for more, kept in (
        ((), 256 << 20),
        (("--set", "cache_memory=none"), None),
        (("--set", "cache_memory=64MB"), 64 << 20),
    ):
        code, out, err = run_json(*network, *more)
        assert (code, err) == (0, "") and json.loads(out)["config"]["cache_memory"] == kept
    assert json.loads(run_json("analysis", "connect4", "-e", "rollout")[1])["config"]["cache_memory"] is None


def run_json(*arguments: str) -> tuple[int, str, str]:
    with Talk(*arguments, "--json") as talk:
        code, lines, err = talk.leave()
    return code, "\n".join(lines), err
