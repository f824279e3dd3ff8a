"""The Go Text Protocol, version 2: Go, Hex, and other games of stones on a square grid.

    boardsize 9          =
    play black E5        =
    genmove white        = C3

Every command has exactly one answer, which begins with = or ? and ends with an empty line. Commands are carried out in
order; while a position is analysed (`lz-analyze`, `kata-analyze`), the next line ends the analysis.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import IO, Any, TextIO

from windrow.config import SearchConfig
from windrow.distribution import installed_version
from windrow.errors import GameError, WindrowError
from windrow.files import open_regular
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.games.registry import make_game
from windrow.games.vertices import Vertices
from windrow.protocols.clock import Clock
from windrow.protocols.move_infos import MoveInfo, move_infos
from windrow.protocols.sgf import read_sgf
from windrow.protocols.thinker import Thinker
from windrow.search import SearchResult
from windrow.text_lines import Line, LineReader, LineWriter

DEFAULT_TURN_S = 5.0
"""Seconds of a move if neither the program nor the settings say."""

_MAX_LINE = 4096
_MAX_SGF = 1 << 20
_MIN_INTERVAL_S = 0.02
_COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}
_LETTERS = "BW"


class Gtp:
    """One engine at the end of a program's pipes.

    Args:
        game: the game; `boardsize` and `komi` make others of its kind.
        make_evaluator: makes the evaluator of a game.
        config: settings of the search; None: time alone ends a search.
        resign_below: a win rate from 0 to 1, below which a move is searched but the game given up; 0: never.

    Raises:
        GameError: the moves of the game are not the squares of a square board.
    """

    def __init__(
        self,
        game: CoreGame,
        make_evaluator: Callable[[CoreGame], object],
        config: SearchConfig | None = None,
        *,
        resign_below: float = 0.0,
    ) -> None:
        if game.num_players != 2 or game.chance != "none":
            raise GameError(f"GTP is for games of two players without chance, and not for {game!r}")
        self._make_evaluator = make_evaluator
        self._config = config or SearchConfig(num_simulations=None, time_limit_s=1e6)
        self._has_budget = self._config.num_simulations is not None
        self._resign_below = resign_below
        self._evaluator: object = None
        self._thinker: Thinker | None = None
        self._set_game(game)
        self._main_s, self._byoyomi_s, self._byoyomi_stones = 0.0, 0.0, 0
        self._has_time = False
        self._left: dict[int, tuple[float, int]] = {}
        """By player: seconds left, and the stones for which they are."""
        self._prefix = ""
        self._is_analysing = False
        self._is_interrupted = threading.Event()
        self._writer: LineWriter | None = None
        self._reader: LineReader | None = None
        self._commands: dict[str, Callable[[list[str], float], str | None]] = {
            "boardsize": self._boardsize,
            "clear_board": lambda words, _: self._clear(),
            "final_score": lambda words, _: self._final_score(),
            "genmove": self._genmove,
            "kata-analyze": self._kata_analyze,
            "known_command": lambda words, _: str(words[:1] != [] and words[0] in self._commands).lower(),
            "komi": self._komi,
            "list_commands": lambda words, _: "\n".join(self._commands),
            "loadsgf": self._load_sgf,
            "lz-analyze": self._lz_analyze,
            "name": lambda words, _: "windrow",
            "play": self._play,
            "protocol_version": lambda words, _: "2",
            "quit": lambda words, _: "",
            "reg_genmove": self._reg_genmove,
            "showboard": lambda words, _: f"\n{self._game.render(self._state)}",
            "time_left": self._time_left,
            "time_settings": self._time_settings,
            "undo": lambda words, _: self._undo(),
            "version": lambda words, _: installed_version(),
        }

    def run(self, commands: IO[bytes], answers: TextIO) -> None:
        """Carry out commands until quit, or until there are no more."""
        self._writer = LineWriter(answers)
        self._reader = LineReader(commands, max_length=_MAX_LINE, on_line=self._hear)
        try:
            while (line := self._reader.take()) is not None:
                if self._handle(line):
                    break
        finally:
            self._close()

    # --- In the reading thread --------------------------------------------------------------------------------

    def _hear(self, line: Line) -> bool:
        """End the analysis, if there is one; whether there is a command in the line."""
        if not _words(line.text):
            return False
        self._is_interrupted.set()
        if self._is_analysing and (thinker := self._thinker) is not None:
            thinker.stop()
        return True

    # --- In the main thread -----------------------------------------------------------------------------------

    def _handle(self, line: Line) -> bool:
        """Carry out one line, or answer what is wrong with it; returns whether it was quit."""
        words = _words(line.text)
        self._prefix = ""
        if words[0].isdecimal() and words[0].isascii() and len(words[0]) <= 9:
            self._prefix = words.pop(0)
        command = words[0] if words else ""
        try:
            if line.is_cut:
                raise GameError("line too long")
            if command not in self._commands:
                raise GameError("unknown command")
            answer = self._commands[command](words[1:], line.arrived)
            if answer is not None:
                self._say(f"={self._prefix} {answer}")
        except WindrowError as error:
            self._say(f"?{self._prefix} {str(error).splitlines()[0]}")
        except BrokenPipeError:
            raise
        except Exception as error:
            # The program is told, and may go on: an engine that ends here would have lost.
            self._forget()
            self._say(f"?{self._prefix} {type(error).__name__}: {' '.join(str(error).split())}")
        return command == "quit"

    # --- The board --------------------------------------------------------------------------------------------

    def _boardsize(self, words: list[str], _: float) -> str:
        size = int(_number(words, "boardsize", 1, 99))
        if size != self._vertices.size:
            if "size" not in self._game.options:
                raise GameError("unacceptable size")
            try:
                game = make_game(self._game.name, **{**self._game.options, "size": size})
                evaluator = self._make_evaluator(game)
            except WindrowError as error:
                raise GameError(f"unacceptable size: {str(error).splitlines()[0]}") from None
            self._close()
            self._set_game(game)
            self._evaluator = evaluator
        return self._clear()

    def _komi(self, words: list[str], _: float) -> str:
        komi = _number(words, "komi", -1000, 1000)
        if "komi" not in self._game.options:
            return ""  # a game without komi has nothing to set
        if float(self._game.options["komi"]) != komi:
            game = make_game(self._game.name, **{**self._game.options, "komi": komi})
            moves = self._moves
            self._close()
            self._set_game(game)
            self._moves = moves
            self._state = game.state_from_moves(moves)
        return ""

    def _clear(self) -> str:
        self._moves: list[int] = []
        self._state = self._game.initial_state()
        self._left.clear()
        return ""

    def _play(self, words: list[str], _: float) -> str:
        if len(words) != 2 or words[0].lower() not in _COLOURS:
            raise GameError("invalid color or coordinate")
        self._place(_COLOURS[words[0].lower()], words[1])
        return ""

    def _place(self, player: int, vertex: str) -> None:
        state, moves = self._turned_to(player)
        action = self._vertices.to_action(vertex, state)
        if action is None:
            raise GameError("illegal move")
        self._state, self._moves = self._game.apply(state, action), [*moves, action]

    def _turned_to(self, player: int) -> tuple[State, list[int]]:
        """The position in which `player` is to move: the other one passes, if the game has passes."""
        state, moves = self._state, self._moves
        mover = self._game.to_play(state)
        if mover == TERMINAL:
            raise GameError("the game is over")
        if mover != player:
            action = self._vertices.to_action("pass", state)
            if action is None:
                raise GameError(f"it is the turn of {'black' if mover == 0 else 'white'}")
            state, moves = self._game.apply(state, action), [*moves, action]
            if self._game.to_play(state) != player:
                raise GameError("the game is over")
        return state, moves

    def _undo(self) -> str:
        if not self._moves:
            raise GameError("cannot undo")
        self._moves = self._moves[:-1]
        self._state = self._game.state_from_moves(self._moves)
        return ""

    def _final_score(self) -> str:
        lead = self._lead()
        if lead is not None:
            return f"{_LETTERS[lead < 0]}+{abs(lead):g}" if lead else "0"
        if self._game.to_play(self._state) != TERMINAL:
            raise GameError("the game is not over")
        first, second = self._game.returns(self._state)
        return "0" if first == second else f"{_LETTERS[first < second]}+"

    def _lead(self) -> float | None:
        """By how many points black leads, in a game that counts points (Go); otherwise None."""
        score: Any = getattr(self._game, "score", None)  # only built-in games have it
        return None if score is None else score(self._state)

    def _load_sgf(self, words: list[str], _: float) -> str:
        if not words or (len(words) > 1 and not words[1].isdecimal()):
            raise GameError("loadsgf is followed by a file, and the number of a move")
        try:
            with open_regular(words[0]) as file:
                record = read_sgf(file.read(_MAX_SGF).decode("utf-8", errors="replace"))
        except OSError as error:
            raise GameError(f"cannot load file: {error.strerror}") from None
        count = int(words[1][:9]) - 1 if len(words) > 1 else len(record.moves)
        if record.size is not None:
            self._boardsize([str(record.size)], 0.0)
        if record.komi is not None:
            self._komi([str(record.komi)], 0.0)
        self._clear()
        try:
            for player, text in record.moves[: max(count, 0)]:
                self._place(player, self._vertices.from_sgf(text))
        except GameError as error:
            number = len(self._moves) + 1
            self._clear()
            raise GameError(f"cannot load file: move {number}: {error}") from None
        mover = self._game.to_play(self._state)
        return "white" if mover == 1 else "black"

    # --- Time -------------------------------------------------------------------------------------------------

    def _time_settings(self, words: list[str], _: float) -> str:
        main, byoyomi, stones = (_number([word], "time_settings", 0, 1e7) for word in _three(words, "time_settings"))
        self._main_s, self._byoyomi_s, self._byoyomi_stones = main, byoyomi, int(stones)
        self._has_time = not (byoyomi > 0 and stones == 0)  # that means no limit
        self._left.clear()
        return ""

    def _time_left(self, words: list[str], _: float) -> str:
        colour, seconds, stones = _three(words, "time_left")
        if colour.lower() not in _COLOURS:
            raise GameError("invalid color")
        left = _number([seconds], "time_left", -1e7, 1e7)
        self._left[_COLOURS[colour.lower()]] = (left, int(_number([stones], "time_left", 0, 1e6)))
        return ""

    def _clock(self, player: int) -> Clock:
        per_stone_s = self._byoyomi_s / self._byoyomi_stones if self._byoyomi_stones else 0.0
        if player in self._left:
            left_s, stones = self._left[player]
            if stones:
                return Clock(left_s=left_s, moves_to_go=stones)
            return Clock(left_s=left_s + per_stone_s, increment_s=per_stone_s)
        if not self._has_time:
            return Clock() if self._has_budget else Clock(turn_s=DEFAULT_TURN_S)
        if self._main_s > 0:
            return Clock(left_s=self._main_s + per_stone_s, increment_s=per_stone_s)
        return Clock(left_s=self._byoyomi_s, moves_to_go=max(self._byoyomi_stones, 1))

    # --- Searching --------------------------------------------------------------------------------------------

    def _genmove(self, words: list[str], arrived: float) -> None:
        self._generate(words, arrived, is_played=True)

    def _reg_genmove(self, words: list[str], arrived: float) -> None:
        self._generate(words, arrived, is_played=False)

    def _generate(self, words: list[str], arrived: float, *, is_played: bool) -> None:
        """Search a move, answer with it, and play it."""
        if len(words) != 1 or words[0].lower() not in _COLOURS:
            raise GameError("invalid color")
        player = _COLOURS[words[0].lower()]
        state, moves = self._turned_to(player)
        latest: list[SearchResult] = []
        gave_up = False

        def tell(result: SearchResult) -> None:
            assert self._writer is not None
            self._writer.check_reader()
            latest[:] = [result]

        def write(action: int) -> None:
            nonlocal gave_up
            gave_up = is_played and bool(latest) and (latest[0].value + 1) / 2 < self._resign_below
            self._say(f"={self._prefix} {'resign' if gave_up else self._vertex(state, action)}")

        thinker = self._ready_thinker()
        action = thinker.answer(
            state, moves, self._clock(player), num_own_moves=len(moves) // 2, arrived=arrived, write=write, tell=tell
        )
        self._left.pop(player, None)
        if is_played and not gave_up:
            self._state, self._moves = self._game.apply(state, action), [*moves, action]

    def _lz_analyze(self, words: list[str], _: float) -> None:
        def describe(info: MoveInfo, order: int, state: State) -> str:
            share = round(5000 * (info.q + 1))
            return (
                f"info move {self._vertex(state, info.action)} visits {info.visits} winrate {share} "
                f"prior {round(10000 * info.prior)} lcb {share} order {order} pv {self._line(state, info)}"
            )

        self._analyse(words, describe)

    def _kata_analyze(self, words: list[str], _: float) -> None:
        def describe(info: MoveInfo, order: int, state: State) -> str:
            return (
                f"info move {self._vertex(state, info.action)} visits {info.visits} utility {info.q:.6f} "
                f"winrate {(info.q + 1) / 2:.6f} scoreMean 0 scoreStdev 0 scoreLead 0 scoreSelfplay 0 "
                f"prior {info.prior:.6f} lcb {(info.q + 1) / 2:.6f} utilityLcb {info.q:.6f} order {order} "
                f"pv {self._line(state, info)}"
            )

        self._analyse(words, describe)

    def _analyse(self, words: list[str], describe: Callable[[MoveInfo, int, State], str]) -> None:
        """Search until the next line comes, and report every so often."""
        assert self._reader is not None and self._writer is not None
        player = self._game.to_play(self._state)
        if words and words[0].lower() in _COLOURS:
            player = _COLOURS[words.pop(0).lower()]
        centiseconds = next((word for word in words if word.isdecimal() and word.isascii()), "100")
        interval_s = max(int(centiseconds[:9]) / 100, _MIN_INTERVAL_S)
        state, moves = self._turned_to(player)
        thinker, reader, writer = self._ready_thinker(), self._reader, self._writer
        self._is_interrupted.clear()
        self._is_analysing = True
        writer.write_block(f"={self._prefix}")
        reported = perf_counter()

        def is_over() -> bool:
            return self._is_interrupted.is_set() or reader.has_lines or reader.is_exhausted

        def report(result: SearchResult) -> None:
            infos = move_infos(thinker.search, result, len(result.visits))
            writer.write(" ".join(describe(info, order, state) for order, info in enumerate(infos)))

        def tell(result: SearchResult) -> None:
            nonlocal reported
            writer.check_reader()
            if is_over():
                thinker.stop()
            if perf_counter() - reported >= interval_s:
                report(result)
                reported = perf_counter()

        try:
            result = thinker.think(state, moves, tell=tell)
            report(result)
            while not is_over():  # the search is out of memory or proven
                self._is_interrupted.wait(_MIN_INTERVAL_S)
        finally:
            self._is_analysing = False
            writer.write_block("")

    def _vertex(self, state: State, action: int) -> str:
        return self._vertices.from_name(self._game.move_name(state, action))

    def _line(self, state: State, info: MoveInfo) -> str:
        return " ".join(map(self._vertices.from_name, self._game.line_names(state, info.line)))

    # --- Inside -----------------------------------------------------------------------------------------------

    def _set_game(self, game: CoreGame) -> None:
        self._vertices = Vertices(game)
        self._game = game
        self._state = game.initial_state()
        self._moves = []

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
        evaluator: Any = self._evaluator
        self._evaluator = None
        close = getattr(evaluator, "close", None)
        if callable(close):
            close()

    def _say(self, text: str) -> None:
        """Write one answer, and the empty line after it."""
        if self._writer is not None:
            self._writer.write_block("\n".join(line.rstrip() for line in text.split("\n") if line.strip()) + "\n")


def _words(text: str) -> list[str]:
    """The words of a line, without comments and control characters."""
    plain = "".join(" " if letter == "\t" else letter for letter in text if letter >= " " or letter == "\t")
    return plain.partition("#")[0].split()


def _three(words: list[str], command: str) -> list[str]:
    if len(words) != 3:
        raise GameError(f"{command} is followed by three values")
    return words


def _number(words: list[str], command: str, low: float, high: float) -> float:
    """The one number after a command, within bounds."""
    try:
        (text,) = words
        value = float(text) if len(text) <= 20 and text.isascii() and "_" not in text else low - 1
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise GameError(f"{command}: a number from {low:g} to {high:g} is needed")
    return value
