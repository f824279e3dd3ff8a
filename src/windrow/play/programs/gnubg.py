"""GNU Backgammon: cubeless money play, whole turns. Debian's package `gnubg` has the program and its data.

    gnubg:0                 the best move by the network alone
    gnubg:2,processes=8     looking two plies ahead

The program runs `_SCRIPT` in the Python that is built into it, which answers questions line by line. A process sleeps
up to 10 ms in every evaluation, which itself takes 0.05 ms, so several processes share the work.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.games.turns import parse_turn, turn_ends
from windrow.play.following import GameSoFar
from windrow.play.programs.command import ProgramSpec, find_program
from windrow.play.programs.process import ProgramProcess
from windrow.play.programs.program import Budget, Program

_MAX_PLIES = 4
_MARK = "windrow:"
"""Begins the lines of answers; the program prints boards as well."""

_SCRIPT = """
import json, os, sys
import gnubg

for command in ("automatic roll off", "player 0 human", "display off", "jacoby off"):
    gnubg.command("set " + command)
gnubg.command("set seed %(seed)d")
gnubg.command("new session")
cube = gnubg.cubeinfo()
questions = os.fdopen(os.dup(0), "rb")
sys.stdout.write("%(mark)s []\\n")
sys.stdout.flush()
while True:
    line = questions.readline()
    if not line:
        break
    question = json.loads(line.decode())
    how = {"cubeful": 0, "plies": question["plies"], "deterministic": 1, "prune": 0, "noise": 0.0}
    answer = []
    for text in question.get("positions", ()):
        board = gnubg.positionfromid(text)
        assert gnubg.positionid(board) == text, text
        answer.append(gnubg.evaluate(board, cube, how)[5])
    for text, (high, low) in question.get("rolls", ()):
        gnubg.command("set dice %%d %%d" %% (high, low))
        answer.append(gnubg.findbestmove(gnubg.positionfromid(text), cube, how))
    sys.stdout.write("%(mark)s " + json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""


class GnubgProcess:
    """One process of GNU Backgammon that answers questions.

    Args:
        program: name or path of the program.
        seed: seed of its random numbers.
        deadline: time of `perf_counter` until which it must have started.

    Raises:
        ProgramError: it is not installed, or it does not start.
    """

    def __init__(self, program: str = "gnubg", *, seed: int = 0, deadline: float) -> None:
        path = find_program(program)
        self._folder = Path(tempfile.mkdtemp(prefix="windrow-gnubg-"))
        try:
            script = _SCRIPT % {"mark": _MARK, "seed": seed}
            (self._folder / "script.py").write_text(script, encoding="utf-8")
            self._process = ProgramProcess(
                [path, "--tty", "--quiet", "--no-rc", "--prefsdir", str(self._folder), "--python", "script.py"],
                folder=self._folder,
                environment={"LC_ALL": "C"},
                is_noise=lambda line: False,
            )
            self._receive(deadline)
        except BaseException:
            self.close()
            raise

    def equities(self, positions: Sequence[str], *, plies: int, deadline: float) -> list[float]:
        """The equities of positions, in points for the player about to roll: without the cube, with gammons.

        Args:
            positions: position IDs, each as seen by the player who is about to roll.
            plies: plies to look ahead.
            deadline: time of `perf_counter` at which to give up.
        """
        return self._ask({"plies": plies, "positions": list(positions)}, deadline)

    def best_turns(self, rolls: Sequence[tuple[str, tuple[int, int]]], *, plies: int, deadline: float) -> list[str]:
        """The turns that leave the opponent with the lowest equity, such as "24/18 18/13"; empty if no step is legal.

        Args:
            rolls: position IDs as seen by the player on turn, with the two dice that this player has to play.
            plies: plies to look ahead.
            deadline: time of `perf_counter` at which to give up.
        """
        return [_turn_text(points) for points in self._ask({"plies": plies, "rolls": list(rolls)}, deadline)]

    def close(self) -> None:
        """End the process; may be called more than once."""
        if (process := getattr(self, "_process", None)) is not None:
            process.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(self, question: Mapping[str, Any], deadline: float) -> list[Any]:
        self._process.send(json.dumps(question))
        return self._receive(deadline)

    def _receive(self, deadline: float) -> list[Any]:
        while _MARK not in (line := self._process.receive(deadline)):
            pass
        return json.loads(line.partition(_MARK)[2])


class GnubgProgram(Program):
    """GNU Backgammon as a player. It needs only the position."""

    default_command = ("gnubg",)

    def __init__(self, game: CoreGame, spec: ProgramSpec, *, seed: int = 0) -> None:
        if game.name != "backgammon":
            raise ConfigError(f"{spec.text}: GNU Backgammon plays backgammon, and not {game!r}")
        plies = spec.command[0] if spec.command else "0"
        if len(spec.command) > 1 or not plies.isdecimal() or int(plies) > _MAX_PLIES:
            raise ConfigError(f"{spec.text!r}: write gnubg:PLIES, with 0 to {_MAX_PLIES} plies to look ahead")
        self._plies = int(plies)
        self._gnubg: GnubgProcess | None = None
        super().__init__(game, spec, seed=seed)

    def start(self, deadline: float) -> None:
        """Start the process."""
        self.refuse_options(("program",))
        self._gnubg = GnubgProcess(self.spec.options.get("program", "gnubg"), seed=self.seed, deadline=deadline)

    def close(self) -> None:
        """End the process."""
        if self._gnubg is not None:
            self._gnubg.close()

    def answer(self, game: GameSoFar, budget: Budget) -> list[int]:
        """The rest of the turn: the whole turn if no die is played yet."""
        assert self._gnubg is not None
        state = game.state
        legal = self.game.legal_actions(state)
        if len(legal) == 1:
            return legal
        dice: tuple[int, ...] = state.board.dice
        if len(dice) == 4 or (len(dice) == 2 and dice[0] != dice[1]):
            roll = (position_id(state), (dice[0], dice[1]))
            (turn,) = self._gnubg.best_turns([roll], plies=self._plies, deadline=budget.deadline)
            return parse_turn(self.game, state, turn)
        return self._best_end(state, budget.deadline)

    def _best_end(self, state: State, deadline: float) -> list[int]:
        """Finish a turn that has begun, for which the program has no question: compare all positions it can lead to."""
        assert self._gnubg is not None
        player = self.game.to_play(state)
        ends = turn_ends(self.game, state)
        open_ends = [end for end in ends if self.game.to_play(end) != TERMINAL]
        ids = [position_id(end) for end in open_ends]
        equities = self._gnubg.equities(ids, plies=self._plies, deadline=deadline)
        values = dict(zip(open_ends, (-equity for equity in equities), strict=True))  # the opponent is about to roll
        for end in ends:
            if end not in values:
                values[end] = (self.game.points or 1.0) * self.game.returns(end)[player]
        return ends[max(ends, key=values.__getitem__)]


def position_id(state: State) -> str:
    """GNU Backgammon's position ID of a state, as the player on turn sees it."""
    return state.to_text().split()[0]


def _turn_text(points: Sequence[int]) -> str:
    """A turn as people write it, from the points that its steps begin and end on; 25 is the bar, 0 is off."""
    names = [{25: "bar", 0: "off"}.get(point, str(point)) for point in points]
    return " ".join(f"{source}/{target}" for source, target in zip(names[::2], names[1::2], strict=True))
