"""Programs that speak the Gomocup (Piskvork) protocol, called brains: Gomoku.

    gomocup:/path/pbrain-name,time_s=1

`memory` is the memory that the brain is told to keep within, such as 350MB.
"""

from __future__ import annotations

import re

from windrow.errors import ConfigError, ProgramError
from windrow.games.core_game import CoreGame
from windrow.play.following import GameSoFar
from windrow.play.programs.command import ProgramSpec
from windrow.play.programs.program import Budget, Program
from windrow.play.specs import parse_value

_DEFAULT_TIME_S = 1.0
_RULES = {"freestyle": 0, "standard": 1}
_UNLIMITED_MS = 2**31 - 1
_SQUARE = re.compile(r"(\d{1,3}),(\d{1,3})")
_NOISE = ("MESSAGE", "DEBUG", "SUGGEST")


class GomocupProgram(Program):
    """One brain. As long as a game goes on it is told only the opponent's moves."""

    def __init__(self, game: CoreGame, spec: ProgramSpec, *, seed: int = 0) -> None:
        if game.name != "gomoku" or game.options.get("rule") not in _RULES:
            raise ConfigError(f"{spec.text}: brains play gomoku, freestyle or standard, and not {game!r}")
        self._line: tuple[int, ...] | None = None
        """The moves on the brain's board; None: it has no board yet."""
        super().__init__(game, spec, seed=seed)

    @property
    def farewell(self) -> tuple[str, ...]:
        """The line after which a brain ends."""
        return ("END",)

    def start(self, deadline: float) -> None:
        """Start the brain and set up an empty board."""
        self.refuse_options(("memory",))
        self.launch(noise=_NOISE)
        settings = self.spec.settings
        self._size = int(self.game.options["size"])
        turn_ms = round(1000 * (settings.time_s or _DEFAULT_TIME_S))
        info = [f"rule {_RULES[str(self.game.options['rule'])]}", f"timeout_turn {turn_ms}"]
        if settings.clock_s is None:
            info += ["timeout_match 0", f"time_left {_UNLIMITED_MS}"]
        else:
            info[-1] = f"timeout_turn {round(1000 * settings.clock_s)}"
            info.append(f"timeout_match {round(1000 * settings.clock_s)}")
        if "memory" in self.spec.options:
            memory = parse_value(self.spec.options["memory"])
            if not isinstance(memory, int) or memory < 0:
                raise ConfigError(f"{self.spec.text!r}: memory must be a size such as 350MB, not {memory!r}")
            info.append(f"max_memory {memory}")
        self._info = [f"INFO {line}" for line in info]
        self._begin(deadline)

    def answer(self, game: GameSoFar, budget: Budget) -> list[int]:
        """Tell the brain what has been played, and take its move."""
        if budget.clock_s is not None:
            self.process.send(f"INFO time_left {max(round(1000 * budget.clock_s), 1)}")
        moves, line = game.moves, self._line
        if moves is not None and line is not None and len(moves) == len(line) + 1 and moves[:-1] == line and line:
            self.process.send(f"TURN {self._square(moves[-1])}")
        else:
            if line != ():
                self._begin(budget.deadline)
            stones = self._stones(game)
            self.process.send(*(["BOARD", *stones, "DONE"] if stones else ["BEGIN"]))
        self._line = None
        text = self._receive(budget.deadline)
        square = _SQUARE.fullmatch(text)
        if square is None or not (int(square[1]) < self._size and int(square[2]) < self._size):
            raise ProgramError(f"it answered {text!r:.80}, which is no square of the board")
        action = int(square[2]) * self._size + int(square[1])
        if moves is not None:
            self._line = (*moves, action)
        return [action]

    def _begin(self, deadline: float) -> None:
        """Set up an empty board."""
        self.process.send(*self._info, f"START {self._size}")
        answer = self._receive(deadline)
        if not answer.upper().startswith("OK"):
            raise ProgramError(f"it answered START {self._size} with {answer!r:.200}")
        self.process.send(*self._info)  # some brains forget them at START
        self._line = ()

    def _receive(self, deadline: float) -> str:
        while not (line := self.process.receive(deadline).strip()) or line.upper().startswith("UNKNOWN"):
            pass
        return line

    def _stones(self, game: GameSoFar) -> list[str]:
        """The stones as lines of BOARD: 1 is the brain's own, 2 the opponent's."""
        mover = self.game.to_play(game.state)
        if game.moves is not None:
            own = [(turn - len(game.moves)) % 2 == 0 for turn in range(len(game.moves))]
            return [f"{self._square(move)},{1 if is_own else 2}" for move, is_own in zip(game.moves, own, strict=True)]
        sign = 1 if mover == 0 else -1
        cells = self.game.board(game.state)
        return [
            f"{column},{row},{1 if cells[row, column] == sign else 2}"
            for row in range(self._size)
            for column in range(self._size)
            if cells[row, column]
        ]

    def _square(self, action: int) -> str:
        return f"{action % self._size},{action // self._size}"
