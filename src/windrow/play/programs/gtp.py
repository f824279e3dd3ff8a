"""Programs that speak the Go Text Protocol, version 2: Go, Hex, and other games of stones on a grid.

    gtp:gnugo --level 1
    gtp:mohex,time_s=5

Player 0 has the colour that the protocol calls black. Columns are letters without I, except in Hex, whose programs use
all letters.
"""

from __future__ import annotations

from windrow.errors import ProgramError
from windrow.games.core_game import CoreGame
from windrow.games.vertices import Vertices
from windrow.play.following import GameSoFar
from windrow.play.programs.command import ProgramSpec
from windrow.play.programs.program import Budget, Program, Resigned, named_moves

_COLOURS = ("black", "white")
_KNOWN_ARGUMENTS = {"gnugo": ("--mode", "gtp", "--quiet", "--chinese-rules", "--capture-all-dead")}
"""Arguments without which a program does not speak GTP, or passes before it has taken dead stones, which count as alive
in windrow's Go."""


class GtpProgram(Program):
    """One process that speaks GTP. It plays on its own board as long as a game goes on."""

    def __init__(self, game: CoreGame, spec: ProgramSpec, *, seed: int = 0) -> None:
        self._vertices = Vertices(game)
        self._line: list[tuple[int, str]] = []
        """The moves on the program's board."""
        super().__init__(game, spec, seed=seed)

    def start(self, deadline: float) -> None:
        """Start the process and set up an empty board."""
        self.refuse_options(())
        program, *arguments = self.spec.command
        extra = [word for word in _KNOWN_ARGUMENTS.get(program.rpartition("/")[2], ()) if "--mode" not in arguments]
        self.launch(extra=extra)
        self._size = self._vertices.size
        self._ask(f"boardsize {self._size}", deadline)
        if (komi := self.game.options.get("komi")) is not None:
            self._ask(f"komi {komi}", deadline)
        self._ask("clear_board", deadline)
        self._has_time = "time_settings" in self._ask("list_commands", deadline).split()
        if self.spec.settings.time_s is not None:
            self._ask(f"time_settings 0 {max(round(self.spec.settings.time_s), 1)} 1", deadline)
        elif self.spec.settings.clock_s is not None:
            self._ask(f"time_settings {round(self.spec.settings.clock_s)} 0 0", deadline)

    def answer(self, game: GameSoFar, budget: Budget) -> list[int]:
        """Bring the program's board up to date, and ask for a move."""
        moves = [(player, self._vertices.from_name(name)) for player, name in named_moves(self.game, game)]
        if moves[: len(self._line)] != self._line:
            self._ask("clear_board", budget.deadline)
            self._line = []
        for player, vertex in moves[len(self._line) :]:
            self._ask(f"play {_COLOURS[player]} {vertex}", budget.deadline)
            self._line.append((player, vertex))
        mover = self.game.to_play(game.state)
        if budget.clock_s is not None:
            self._ask(f"time_left {_COLOURS[mover]} {int(budget.clock_s)} 0", budget.deadline)
        text = self._ask(f"genmove {_COLOURS[mover]}", budget.deadline).strip()
        if text.lower() == "resign":
            self._line = [(-1, "")]  # no game goes on from here
            raise Resigned
        action = self._vertices.to_action(text, game.state)
        if action is None:
            raise ProgramError(f"it answered {text!r:.40}, which is not legal")
        self._line.append((mover, self._vertices.from_name(self.game.move_name(game.state, action))))
        return [action]

    def _ask(self, command: str, deadline: float) -> str:
        """Send a command; return the text of its answer."""
        self.process.send(command)
        while not (line := self.process.receive(deadline)).startswith(("=", "?")):
            pass
        lines = [line]
        while last := self.process.receive(deadline):
            lines.append(last)
        text = "\n".join([lines[0][1:].lstrip("0123456789").strip(), *lines[1:]])
        if line.startswith("?"):
            raise ProgramError(f"{self.process.name} refused {command!r}: {text or 'without a reason'}")
        return text
