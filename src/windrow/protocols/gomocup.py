"""The Gomocup protocol, which Piskvork and other Gomoku managers speak: commands on stdin, answers on stdout.

    START 15            OK
    TURN 7,7            8,7
    BOARD, lines, DONE  6,8
    END

A thread of its own reads the commands (`LineReader`), the main thread carries them out in order. So a search hears END
at once, and time limits that change while it runs. INFO is never answered, because no manager reads an answer to it:
what it asked for and cannot be had is told when the next move is asked for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter, sleep
from typing import IO, TextIO

from windrow.config import SearchConfig
from windrow.distribution import installed_version
from windrow.errors import GameError, WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.protocols.clock import Lateness, Turn
from windrow.protocols.gomocup_board import (
    OPPONENT,
    OWN,
    Stone,
    build_state,
    read_numbers,
    read_square,
    write_square,
)
from windrow.protocols.gomocup_brain import RULES, Brain, EvaluatorMaker
from windrow.protocols.gomocup_limits import Limits
from windrow.search import SearchResult
from windrow.text_lines import Line, LineReader, LineWriter

_MAX_LINE = 4096
_END_S = 0.5
"""After END a search has this long to stop by itself; a manager waits for about a second."""

_TELL_AGAIN_S = 0.01

_OTHER_RULES = {2: "continuous games", 4: "renju", 8: "caro"}
_TIMES = {"timeout_turn": "turn_ms", "timeout_match": "match_ms", "time_left": "time_left_ms"}
_SWAP_OPENING = ((0, 0), (1, -1), (-2, 1))
"""Three stones (right and down of the centre); the two of the first player are not in one line."""


class Gomocup:
    """One brain at the end of a manager's pipes.

    Args:
        make_evaluator: the evaluator for a board, when its size is known.
        about: what evaluates positions, in words, for ABOUT.
        config: how to search; the manager's limits come on top.
    """

    def __init__(self, make_evaluator: EvaluatorMaker, about: str, config: SearchConfig | None = None) -> None:
        self._brain = Brain(make_evaluator, config or SearchConfig(num_simulations=None, time_limit_s=1e6))
        self._about = about
        self._limits = Limits()
        self._heard = Limits()  # as the last lines read say, which may still wait to be carried out
        self._rule: int | None = None  # as INFO said
        self._size: int | None = None  # None: no board yet
        self._stones: list[Stone] = []
        self._block: str | None = None  # BOARD or SWAP2BOARD, whose lines are coming in
        self._lines: list[str] = []
        self._notes: list[str] = []  # about INFO lines, for the next answer
        self._used_s = 0.0
        self._lateness = Lateness()
        self._answered = 0.0  # when the last answer was given
        self._thinking_since: float | None = None
        self._is_ending = threading.Event()
        self._guard: threading.Timer | None = None
        self._writer: LineWriter | None = None
        self._commands: dict[str, Callable[[str, float], None]] = {
            "START": self._start,
            "RECTSTART": self._rectstart,
            "RESTART": self._restart,
            "BEGIN": self._begin,
            "TURN": self._turn,
            "BOARD": self._open_board,
            "SWAP2BOARD": self._open_swap,
            "DONE": self._done,
            "PLAY": self._play,
            "TAKEBACK": self._takeback,
            "INFO": self._info,
            "ABOUT": self._tell_about,
        }

    def run(self, commands: IO[bytes], answers: TextIO) -> None:
        """Carry out commands until END, or until there are no more."""
        self._writer = LineWriter(answers)
        reader = LineReader(commands, max_length=_MAX_LINE, on_line=self._hear)
        try:
            while (line := reader.take()) is not None and not self._is_ending.is_set():
                self._handle(line)
        finally:
            if self._guard is not None:
                self._guard.cancel()
            self._brain.close()

    # --- In the reading thread --------------------------------------------------------------------------------

    def _hear(self, line: Line) -> bool:
        """Do what cannot wait until the present command is done."""
        words = line.text.split()
        command = words[0].upper() if words else ""
        if command == "END":
            # An evaluator in the middle of a large batch is not waited for.
            self._guard = threading.Timer(_END_S, os._exit, (0,))
            self._guard.daemon = True
            self._guard.start()
            self._is_ending.set()
            self._stop_at(0.0, self._thinking_since)
        elif command == "INFO" and len(words) == 3:
            self._hurry(words[1].lower(), words[2])
        return True

    def _hurry(self, key: str, value: str) -> None:
        """Shorten the present search if a new limit says so."""
        if key not in _TIMES:
            return
        try:
            self._heard = replace(self._heard, **{_TIMES[key]: _number(value)})
        except WindrowError:
            return
        since = self._thinking_since
        if since is not None:
            self._stop_at(since + self._seconds(self._heard), since)

    def _stop_at(self, deadline: float, since: float | None) -> None:
        """Stop the search that is on since `since` when its time has come, in a thread of its own."""

        def stop() -> None:
            # A search that is just about to begin does not hear it: so it is told again until it is over.
            while since is not None and self._thinking_since == since:
                self._brain.stop()
                sleep(_TELL_AGAIN_S)

        timer = threading.Timer(max(deadline - perf_counter(), 0.0), stop)
        timer.daemon = True
        timer.start()

    # --- In the main thread -----------------------------------------------------------------------------------

    def _handle(self, line: Line) -> None:
        """Carry out one line, or answer what is wrong with it."""
        text = line.text.strip()
        command, _, rest = text.replace("\t", " ").partition(" ")
        command = command.upper()
        if not command:
            return
        try:
            if self._block is not None and command not in ("DONE", "INFO"):
                if command not in self._commands:
                    self._lines.append(text)
                    return
                # Whoever forgot DONE is not kept waiting for ever.
                self._say(f"ERROR {self._block} ends with DONE, and {command} came first")
                self._block = None
            if command in self._commands:
                # A manager's clock starts with its command, which a real one sends when it has the answer to the last.
                self._commands[command](rest.strip(), max(line.arrived, self._answered))
            else:
                self._say(f"UNKNOWN {command[:40]!a} is no command of this brain")
        except WindrowError as error:
            self._say(f"ERROR {str(error).splitlines()[0]}")
        except Exception as error:
            # A manager is told, and may go on: a brain that ends here would have lost.
            self._brain.forget()
            self._say(f"ERROR {type(error).__name__}: {error}")

    def _start(self, rest: str, _: float) -> None:
        self._new_game()
        self._size = None
        (size,) = read_numbers(rest, 1, "START is followed by the size of the board")
        self._brain.prepare(size, None if self._rule not in (0, 1) else RULES[self._rule])
        self._size = size
        self._say("OK")

    def _rectstart(self, rest: str, _: float) -> None:
        read_numbers(rest, 2, "RECTSTART is followed by width,height")
        self._new_game()
        self._size = None
        raise GameError("rectangular boards are not supported, only square ones: START size")

    def _restart(self, rest: str, _: float) -> None:
        size = self._checked_size()
        _check_alone("RESTART", rest)
        self._new_game()
        self._brain.forget()
        self._brain.prepare(size, None if self._rule not in (0, 1) else RULES[self._rule])
        self._say("OK")

    def _begin(self, rest: str, arrived: float) -> None:
        self._checked_size()
        _check_alone("BEGIN", rest)
        if self._stones:
            raise GameError("BEGIN is for an empty board: RESTART first")
        self._move([], arrived)

    def _turn(self, rest: str, arrived: float) -> None:
        self._move([*self._stones, Stone(self._free_square(rest), OPPONENT)], arrived)

    def _play(self, rest: str, _: float) -> None:
        square = self._free_square(rest)
        build_state(self._game(), self._stones)  # raises if it is not this brain's turn
        self._stones.append(Stone(square, OWN))
        self._say(write_square(square, self._checked_size()))

    def _takeback(self, rest: str, _: float) -> None:
        square = read_square(rest, self._checked_size())
        left = [stone for stone in self._stones if stone.action != square]
        if len(left) == len(self._stones):
            raise GameError(f"there is no stone on {rest}")
        self._stones = left
        self._say("OK")

    def _info(self, rest: str, _: float) -> None:
        key, value = rest.partition(" ")[0].lower(), rest.partition(" ")[2].strip()
        try:
            if key in _TIMES:
                setattr(self._limits, _TIMES[key], _number(value))
            elif key == "rule":
                self._rule = _number(value)
            elif key == "max_memory":
                self._brain.set_max_memory(max(_number(value), 0))
            # Nothing here depends on game_type, folder (no files are kept) and evaluate, nor on what is not known.
        except WindrowError as error:
            self._notes.append(f"INFO {key} is left out: {error}")

    def _tell_about(self, rest: str, _: float) -> None:
        _check_alone("ABOUT", rest)
        facts = {key: value.replace('"', "'") for key, value in about_brain(self._about).items()}
        self._say(", ".join(f'{key}="{value}"' for key, value in facts.items()))

    # --- Many lines -------------------------------------------------------------------------------------------

    def _open_board(self, rest: str, _: float) -> None:
        self._open("BOARD", rest)

    def _open_swap(self, rest: str, _: float) -> None:
        self._open("SWAP2BOARD", rest)

    def _open(self, block: str, rest: str) -> None:
        # The lines are taken even if something is wrong, and the answer waits for DONE: there is one answer to all.
        self._block, self._lines = block, [rest] if rest else []

    def _done(self, rest: str, arrived: float) -> None:
        block, self._block = self._block, None
        _check_alone("DONE", rest)
        if block is None:
            raise GameError("DONE ends BOARD, which was not there")
        if block == "BOARD":
            self._move(self._read_board(), arrived)
        else:
            self._swap(arrived)

    def _read_board(self) -> list[Stone]:
        size, stones = self._checked_size(), list[Stone]()
        for line in self._lines:
            x, y, owner = read_numbers(line, 3, "a stone is written x,y,owner")
            if owner not in (OWN, OPPONENT):
                raise GameError(f"the owner in {line} is not 1 (own) or 2 (the opponent's); others are not supported")
            stones.append(Stone(read_square(f"{x},{y}", size), owner))
        return stones

    def _swap(self, arrived: float) -> None:
        """The opening of swap2: put three stones down, or take a colour."""
        size = self._checked_size()
        squares = [read_square(line, size) for line in self._lines]
        if len(squares) not in (0, 3, 5):
            raise GameError(f"SWAP2BOARD has 0, 3 or 5 stones, not {len(squares)}")
        if not squares:
            centre = size // 2
            opening = [(centre + down) * size + centre + right for right, down in _SWAP_OPENING]
            self._say(" ".join(write_square(square, size) for square in opening))
            return
        # The second player is to move, and would be this brain. It takes the better side.
        stones = [Stone(square, OPPONENT if turn % 2 == 0 else OWN) for turn, square in enumerate(squares)]
        result = self._think(self._brain.position(self._game(), stones), stones, arrived)
        self._say("SWAP" if result.value < 0 else write_square(result.best_action, size))

    # --- Moving -----------------------------------------------------------------------------------------------

    def _move(self, stones: list[Stone], arrived: float) -> None:
        """Answer `stones` with a move."""
        size, game = self._checked_size(), self._game()
        state = self._brain.position(game, stones)
        # Until something is known about this position, the free square nearest to the centre has to do.
        turn = Turn(
            lambda action: self._say(write_square(action, size)),
            _most_central(game.legal_actions(state), size),
            self._lateness,
            lambda: self._stop_at(0.0, self._thinking_since),  # nobody waits for the search any more
        )
        limits, used_s = replace(self._limits), self._used_s

        def latest() -> float:
            seconds = limits.seconds_to_alarm(used_s=used_s, late_s=self._lateness.seconds)
            return float("inf") if seconds is None else arrived + seconds

        turn.set_alarm(latest)
        try:
            action = turn.answer(self._think(state, stones, arrived, turn.tell).best_action)
        except WindrowError:
            if turn.action is None:
                raise
            action = turn.action
        finally:
            turn.end()
            self._lateness.fade()
        self._stones = [*stones, Stone(action, OWN)]
        self._used_s += turn.answered - arrived
        self._brain.follow(self._stones)  # in the opponent's time

    def _think(
        self, state: State, stones: list[Stone], arrived: float, tell: Callable[[int], None] | None = None
    ) -> SearchResult:
        """Search for as long as the limits allow, and a manager is there to hear the answer."""

        def hear(action: int) -> None:
            if self._writer is not None:
                self._writer.check_reader()
            if tell is not None:
                tell(action)

        self._thinking_since = arrived
        try:
            seconds = min(self._seconds(self._limits), self._seconds(self._heard)) - (perf_counter() - arrived)
            if self._is_ending.is_set():  # heard before the search could be told
                seconds = 0.0
            return self._brain.think(state, stones, seconds, hear)
        finally:
            self._thinking_since = None

    def _seconds(self, limits: Limits) -> float:
        return limits.seconds_for_move(
            num_own_moves=sum(stone.owner == OWN for stone in self._stones),
            used_s=self._used_s,
            delay_s=self._brain.delay_s + self._lateness.reserve_s,
        )

    def _game(self) -> CoreGame:
        """The rules in force."""
        size, rule = self._checked_size(), self._rule or 0
        refused = [name for bit, name in _OTHER_RULES.items() if rule & bit]
        if refused or rule not in (0, 1):
            what = " and ".join(refused) or "this rule"
            raise GameError(f"rule {rule}: {what} cannot be played; 0 (freestyle) and 1 (exactly five) can")
        return self._brain.game(size, RULES[rule])

    def _checked_size(self) -> int:
        if self._size is None:
            raise GameError("there is no board yet: START size")
        return self._size

    def _free_square(self, text: str) -> int:
        square = read_square(text, self._checked_size())
        if any(stone.action == square for stone in self._stones):
            raise GameError(f"there is a stone on {text} already")
        return square

    def _new_game(self) -> None:
        self._stones, self._used_s = [], 0.0
        self._limits.time_left_ms = None
        self._heard = replace(self._heard, time_left_ms=None)

    def _say(self, text: str) -> None:
        """Answer; after END nothing is said any more."""
        if self._is_ending.is_set() or self._writer is None:
            return
        for note in self._notes:
            self._writer.write(f"MESSAGE {note}")
        self._notes.clear()
        self._writer.write(text)
        self._answered = perf_counter()


def about_brain(evaluator: str) -> dict[str, str]:
    """Who plays, by the protocol's keywords.

    Args:
        evaluator: what evaluates positions, in words.
    """
    return {
        "name": "windrow",
        "version": installed_version(),
        "author": "windrow contributors",
        "description": f"Monte-Carlo tree search; positions are evaluated by {evaluator}",
    }


def _number(text: str) -> int:
    """A whole number, as INFO has them."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise GameError(f"a whole number is needed, not {text[:40]!a}")
    return int(text)


def _most_central(squares: list[int], size: int) -> int:
    centre = (size - 1) / 2
    return min(squares, key=lambda square: (square // size - centre) ** 2 + (square % size - centre) ** 2)


def _check_alone(command: str, rest: str) -> None:
    if rest:
        raise GameError(f"{command} stands alone on its line, not with {rest[:40]!a}")
