"""UCI, which chess programs speak, and UGI, which is UCI with other greetings for any game of two players.

    uci                                  id name windrow ... uciok
    position startpos moves e2e4
    go movetime 500                      info depth 7 ... pv e7e5 g1f3
                                         bestmove e7e5

A thread of its own reads the commands (`LineReader`), the main thread carries them out in order. `stop`, `ponderhit`,
`isready` and `quit` are heard while a search runs. What a line has wrong is told in an `info string`; the next line is
read in any case.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import IO, TextIO

from windrow.config import SearchConfig
from windrow.distribution import installed_version
from windrow.errors import GameError, WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.games.move_names import legal_by_name
from windrow.games.protocol import TERMINAL
from windrow.games.registry import make_game
from windrow.protocols.clock import Clock
from windrow.protocols.move_infos import move_infos
from windrow.protocols.thinker import INTERVAL_S, Thinker
from windrow.search import SearchResult
from windrow.text_lines import Line, LineReader, LineWriter

_MAX_LINE = 1 << 20
_END_S = 2.0
"""After quit a search has this long to stop by itself."""
_INFO_S = 0.25
"""How often a search reports."""
_NO_MOVE = "0000"
_MAX_MULTIPV = 500
_MAX_HASH_MB = 1 << 20
_COMMANDS = ("go", "isready", "ponderhit", "position", "query", "quit", "setoption", "stop", "ucinewgame", "uginewgame")
_TIMES = (("wtime", "p1time"), ("btime", "p2time"))
"""Names of each player's time, in UCI and UGI."""
_INCREMENTS = (("winc", "p1inc"), ("binc", "p2inc"))


@dataclass(eq=False, slots=True)
class _Go:
    """A `go` from the moment it is heard; the reading thread writes it."""

    is_stopped: bool = False
    hit_at: float | None = None
    """When `ponderhit` came, of `perf_counter`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What `go` asks for.

    clock: the limits of time.
    num_simulations: simulations at most; None: no limit.
    is_infinite: whether the answer waits for `stop`.
    is_ponder: whether the clock starts at `ponderhit`, for which the answer waits.
    """

    clock: Clock = field(default_factory=Clock)
    num_simulations: int | None = None
    is_infinite: bool = False
    is_ponder: bool = False


class Uci:
    """One engine at the end of a program's pipes.

    Args:
        game: the game.
        make_evaluator: makes the evaluator when it is first needed.
        config: settings of the search; the program's limits come on top.
        dialect: "uci" or "ugi".

    Raises:
        GameError: the game has chance, or other than two players.
    """

    def __init__(
        self,
        game: CoreGame,
        make_evaluator: Callable[[CoreGame], object],
        config: SearchConfig | None = None,
        *,
        dialect: str = "uci",
    ) -> None:
        if game.num_players != 2 or game.chance != "none":
            raise GameError(f"{dialect.upper()} is for games of two players without chance, and not for {game!r}")
        self._game, self._make_evaluator, self._dialect = game, make_evaluator, dialect
        self._config = config or SearchConfig(num_simulations=None, time_limit_s=1e6)
        self._thinker: Thinker | None = None
        self._evaluator: object = None
        self._start = game.initial_state()
        self._moves: list[int] = []
        self._state: State | None = self._start
        """The position; None: the last one was malformed."""
        self._multipv, self._overhead_s = 1, 0.0
        self._gos: deque[_Go] = deque()
        """The searches that are heard of and not over."""
        self._woken = threading.Event()
        self._guard: threading.Timer | None = None
        self._reader: LineReader | None = None
        self._writer: LineWriter | None = None

    def run(self, commands: IO[bytes], answers: TextIO) -> None:
        """Carry out commands until quit, or until there are no more."""
        self._writer = LineWriter(answers)
        self._reader = LineReader(commands, max_length=_MAX_LINE, on_line=self._hear)
        try:
            while (line := self._reader.take()) is not None and self._words(line.text)[:1] != ["quit"]:
                self._handle(line)
        finally:
            if self._guard is not None:
                self._guard.cancel()
            self._close()

    # --- In the reading thread --------------------------------------------------------------------------------

    def _hear(self, line: Line) -> bool:
        """Do what cannot wait until the present command is done; whether the main thread shall have the line."""
        command = (self._words(line.text) or [""])[0]
        if command == "go":
            self._gos.append(_Go())
        elif command in ("stop", "quit"):
            if command == "quit":
                # An evaluator in the middle of a large batch is not waited for.
                self._guard = threading.Timer(_END_S, os._exit, (0,))
                self._guard.daemon = True
                self._guard.start()
            for go in list(self._gos):
                go.is_stopped = True
            if self._gos and (thinker := self._thinker) is not None:
                thinker.stop()  # told again while the search runs, in case it is about to begin
            self._woken.set()
        elif command == "ponderhit":
            for go in list(self._gos):
                go.hit_at = line.arrived
            self._woken.set()
        elif command == "isready" and self._gos:
            self._say("readyok")
            return False
        return command not in ("stop", "ponderhit")

    def _words(self, text: str) -> list[str]:
        """The words of a line from its command on: the protocol skips unknown words before it."""
        words = text.split()
        known = (*_COMMANDS, self._dialect)
        places = [place for place, word in enumerate(words) if word in known]
        return words[places[0] :] if places else []

    # --- In the main thread -----------------------------------------------------------------------------------

    def _handle(self, line: Line) -> None:
        """Carry out one line, or tell what is wrong with it."""
        words = self._words(line.text)
        if not words:
            return
        command, *rest = words
        try:
            if command == self._dialect:
                self._introduce()
            elif command == "isready":
                self._get_ready()
            elif command in ("ucinewgame", "uginewgame"):
                self._forget()
            elif command == "setoption":
                self._set_option(rest)
            elif command == "position":
                self._set_position(rest)
            elif command == "query":
                self._answer_query(rest)
            elif command == "go":
                self._search(rest, line.arrived)
        except WindrowError as error:
            self._note(str(error).splitlines()[0])
        except BrokenPipeError:
            raise
        except Exception as error:
            # The program is told, and may go on: an engine that ends here would have lost.
            self._forget()
            self._note(f"{type(error).__name__}: {error}")

    def _introduce(self) -> None:
        chess = self._game.name == "chess"
        is_960 = str(self._game.options.get("variant") == "chess960").lower()
        for text in (
            f"id name windrow {installed_version()}",
            "id author windrow contributors",
            f"option name MultiPV type spin default 1 min 1 max {_MAX_MULTIPV}",
            f"option name Hash type spin default 0 min 0 max {_MAX_HASH_MB}",
            "option name Move Overhead type spin default 0 min 0 max 60000",
            "option name Ponder type check default false",
            f"option name UCI_Chess960 type check default {is_960}"
            if chess
            else f"option name Game type string default {self._game.name}",
            f"{self._dialect}ok",
        ):
            self._say(text)

    def _get_ready(self) -> None:
        try:
            self._ready_thinker()
        finally:
            self._say("readyok")

    def _set_option(self, words: list[str]) -> None:
        name, _, value = " ".join(words).removeprefix("name ").partition(" value ")
        key = name.strip().lower()
        if key == "multipv":
            self._multipv = _number(value, "MultiPV", 1, _MAX_MULTIPV)
        elif key == "hash":
            num_bytes = _number(value, "Hash", 0, _MAX_HASH_MB) << 20
            self._forget()
            self._config = self._config.replace(max_memory=num_bytes or None)
        elif key == "move overhead":
            self._overhead_s = _number(value, "Move Overhead", 0, 60_000) / 1000
        elif key == "uci_chess960" and self._game.name == "chess":
            variant = "chess960" if value.strip().lower() == "true" else "standard"
            if self._game.options.get("variant") != variant:
                self._close()
                self._game = make_game("chess", variant=variant)
                self._start = self._state = self._game.initial_state()
                self._moves = []
        elif key not in ("ponder", "game"):
            raise GameError(f"there is no option {name[:60]!a}")

    def _set_position(self, words: list[str]) -> None:
        self._state = None
        place = words.index("moves") if "moves" in words else len(words)
        kind, text, names = words[:1], " ".join(words[1:place]), words[place + 1 :]
        if kind == ["startpos"]:
            start = self._game.initial_state()
        elif kind == ["fen"]:
            start = self._game.parse(text)
        else:
            raise GameError("position is followed by startpos or fen")
        state, moves = start, list[int]()
        for number, name in enumerate(names, start=1):
            legal = legal_by_name(self._game, state)
            if name not in legal:
                raise GameError(f"move {number}, {name[:20]!a}, is not legal")
            moves.append(legal[name])
            state = self._game.apply(state, legal[name])
        if start != self._start:
            self._forget()
        self._start, self._moves, self._state = start, moves, state

    def _answer_query(self, words: list[str]) -> None:
        """Answer a question of UGI about the position."""
        if self._state is None:
            raise GameError("there is no position")
        mover = self._game.to_play(self._state)
        if words == ["gameover"]:
            answer = str(mover == TERMINAL).lower()
        elif words == ["p1turn"]:
            answer = str(mover == 0).lower()
        elif words == ["result"]:
            answer = "none"
            if mover == TERMINAL:
                first, second = self._game.returns(self._state)
                answer = "p1win" if first > second else "p2win" if second > first else "draw"
        else:
            raise GameError(f"query is followed by gameover, p1turn or result, not {' '.join(words)[:40]!a}")
        self._say(f"response {answer}")

    # --- Searching --------------------------------------------------------------------------------------------

    def _search(self, words: list[str], arrived: float) -> None:
        """Answer `go`: with a move in any case, if there is one."""
        go, state = self._gos[0], self._state
        answered = False

        def write(action: int) -> None:
            nonlocal answered
            answered = True
            assert state is not None
            self._say(f"bestmove {self._game.move_name(state, action)}")

        try:
            if state is None or self._game.to_play(state) == TERMINAL:
                return
            order = self._read_order(words, self._game.to_play(state))
            self._find_move(go, order, state, arrived, write)
        finally:
            self._gos.popleft()
            if not answered and state is not None and self._game.to_play(state) != TERMINAL:
                write(self._game.legal_actions(state)[0])
            elif not answered:
                self._say(f"bestmove {_NO_MOVE}")

    def _find_move(self, go: _Go, order: _Order, state: State, arrived: float, write: Callable[[int], None]) -> None:
        assert self._reader is not None and self._writer is not None
        reader, writer, thinker = self._reader, self._writer, self._ready_thinker()
        num_own_moves = len(self._moves) // 2
        is_open = order.is_infinite or order.is_ponder
        reported = arrived

        def is_over() -> bool:
            if go.is_stopped or (is_open and reader.is_exhausted):
                return True
            if order.is_infinite or go.hit_at is None:
                return False
            delay_s = thinker.delay_s + thinker.lateness.reserve_s
            seconds = order.clock.seconds_for_move(num_own_moves=num_own_moves, delay_s=delay_s)
            return seconds is not None and perf_counter() >= go.hit_at + seconds

        def tell(result: SearchResult) -> None:
            nonlocal reported
            writer.check_reader()
            if is_over():
                thinker.stop()
            is_last = result.stats.stopped_by != "running"
            if is_last or perf_counter() - reported >= _INFO_S:
                self._report(thinker, result, arrived)
                reported = perf_counter()

        if not is_open:
            thinker.answer(
                state,
                self._moves,
                order.clock,
                num_own_moves=num_own_moves,
                arrived=arrived,
                write=write,
                num_simulations=order.num_simulations,
                tell=tell,
            )
            return
        result = thinker.think(state, self._moves, num_simulations=order.num_simulations, tell=tell)
        # A search may end by itself, because it is proven or out of memory; the answer waits all the same.
        while not is_over() and (order.is_infinite or go.hit_at is None):
            self._woken.wait(INTERVAL_S)
            self._woken.clear()
        write(result.best_action)

    def _read_order(self, words: list[str], mover: int) -> _Order:
        """Read the words after `go`; unknown ones are left out."""
        numbers: dict[str, int] = {}
        for name, value in pairwise(words):
            if not name.isdecimal() and value.removeprefix("-").isdecimal() and value.isascii() and len(value) <= 15:
                numbers[name] = max(int(value), 0)
        time, increment = (next((key for key in keys[mover] if key in numbers), "") for keys in (_TIMES, _INCREMENTS))
        turn_s = numbers["movetime"] / 1000 if "movetime" in numbers else None
        left_s = numbers[time] / 1000 if time in numbers else None
        num_simulations = numbers.get("nodes")
        has_limit = not (turn_s is left_s is num_simulations is None)
        clock = Clock(
            turn_s=None if turn_s is None else max(turn_s - self._overhead_s, 0.0),
            left_s=None if left_s is None else max(left_s - self._overhead_s, 0.0),
            increment_s=numbers.get(increment, 0) / 1000,
            moves_to_go=numbers.get("movestogo") or None,
        )
        return _Order(
            clock=clock,
            num_simulations=None if num_simulations is None else max(num_simulations, 1),
            is_infinite="infinite" in words or not (has_limit or "ponder" in words),
            is_ponder="ponder" in words,
        )

    def _report(self, thinker: Thinker, result: SearchResult, arrived: float) -> None:
        """Say what the search has found so far."""
        stats = result.stats
        milliseconds = max(round(1000 * (perf_counter() - arrived)), 1)
        nodes, per_second = int(result.visits.sum()), round(1000 * stats.simulations / milliseconds)
        for place, info in enumerate(move_infos(thinker.search, result, self._multipv), start=1):
            names = " ".join(self._game.line_names(result.state, info.line))
            self._say(
                f"info depth {max(len(info.line), 1)} seldepth {max(stats.max_depth, len(info.line), 1)} "
                f"multipv {place} score {info.score} nodes {nodes} nps {per_second} "
                f"time {milliseconds} pv {names}"
            )

    def _ready_thinker(self) -> Thinker:
        if self._thinker is None:
            if self._evaluator is None:
                self._evaluator = self._make_evaluator(self._game)
            self._thinker = Thinker(self._game, self._evaluator, self._config)
        return self._thinker

    def _forget(self) -> None:
        """Free the tree."""
        thinker, self._thinker = self._thinker, None
        if thinker is not None:
            thinker.close()

    def _close(self) -> None:
        """Free the tree and the evaluator."""
        self._forget()
        close = getattr(self._evaluator, "close", None)
        self._evaluator = None
        if callable(close):
            close()

    def _note(self, text: str) -> None:
        self._say(f"info string {text}")

    def _say(self, text: str) -> None:
        if self._writer is not None:
            self._writer.write(text)


def _number(text: str, name: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 12 and low <= int(digits) <= high):
        raise GameError(f"{name} is a whole number from {low} to {high}, not {text[:40]!a}")
    return int(digits)
