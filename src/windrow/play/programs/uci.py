"""Programs that speak UCI (chess), and UGI, which is UCI with other greetings for any game of two players.

    uci:stockfish,UCI_LimitStrength=true,UCI_Elo=1500,movetime=100

`depth`, `nodes` and `movetime` (in milliseconds) limit every search; all other settings are options of the program. An
option's name may be written with underscores in place of spaces: `Skill_Level=3`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from windrow.errors import ConfigError, ProgramError
from windrow.games.core_game import CoreGame
from windrow.games.move_names import legal_by_name
from windrow.play.following import GameSoFar
from windrow.play.programs.command import ProgramSpec
from windrow.play.programs.program import Budget, Program, named_moves
from windrow.spelling import explain_unknown

_LIMITS = ("depth", "nodes", "movetime")
_DEFAULT_TIME_S = 1.0
_OPTION = re.compile(r"option name (.+?) type (\w+)")
_NOISE = ("info ", "id ")


class UciProgram(Program):
    """One process that speaks UCI."""

    hello, ready, new_game = "uci", "uciok", "ucinewgame"
    clock_form = "wtime {0} btime {0} winc {1} binc {1}"

    def __init__(self, game: CoreGame, spec: ProgramSpec, *, seed: int = 0) -> None:
        if game.chance != "none":
            raise ConfigError(f"{spec.text}: {spec.protocol.upper()} has no dice, and {game!r} has")
        self._limits = {key: value for key, value in spec.options.items() if key in _LIMITS}
        for key, value in self._limits.items():
            if not value.isdecimal() or int(value) < 1:
                raise ConfigError(f"{spec.text!r}: {key} must be a whole number of 1 or more, not {value!r}")
        self._number: int | None = None
        super().__init__(game, spec, seed=seed)

    def start(self, deadline: float) -> None:
        """Start the process, set its options, and wait until it is ready."""
        self.launch(noise=_NOISE)
        self.process.send(self.hello)
        names: dict[str, str] = {}
        while (line := self.process.receive(deadline)) != self.ready:
            if found := _OPTION.match(line):
                names[_plain(found[1])] = found[1]
        self._check_game(names)
        for key, value in self.spec.options.items():
            if key in _LIMITS:
                continue
            if _plain(key) not in names:
                words = explain_unknown(key, (*names.values(), *_LIMITS), what="settings")
                raise ConfigError(f"{self.spec.text!r} has no setting {key!r}. {words}")
            self.process.send(f"setoption name {names[_plain(key)]} value {value}")
        if self.game.options.get("variant") == "chess960" and "uci_chess960" in names:
            self.process.send(f"setoption name {names['uci_chess960']} value true")
        self._wait(deadline)

    def answer(self, game: GameSoFar, budget: Budget) -> list[int]:
        """Ask for the best move."""
        if self._number != game.number or not game.moves:
            self.process.send(self.new_game)
            self._wait(budget.deadline)
            self._number = game.number
        self.process.drain()
        self.process.send(self._position(game), self._go(game, budget))
        while True:
            words = self.process.receive(budget.deadline).split()
            if words[:1] == ["bestmove"]:
                break
        move = words[1] if len(words) > 1 else ""
        legal = legal_by_name(self.game, game.state)
        if move not in legal:
            raise ProgramError(f"it answered {' '.join(words)!r:.60}, which is not legal")
        return [legal[move]]

    def _check_game(self, names: Mapping[str, str]) -> None:
        """Refuse a program that has chess alone for a game that is not chess, before it loses every game."""
        if self.game.name != "chess" and not {"uci_variant", "game"} & names.keys():
            raise ConfigError(f"{self.spec.text} plays chess, and not {self.game!r}")

    def _wait(self, deadline: float) -> None:
        self.process.send("isready")
        while self.process.receive(deadline) != "readyok":
            pass

    def _position(self, game: GameSoFar) -> str:
        if game.moves is None:
            return f"position fen {self.game.to_text(game.state)}"
        names = " ".join(name for _, name in named_moves(self.game, game))
        is_usual = self.game.name != "chess" or self.game.options.get("variant", "standard") == "standard"
        start = "startpos" if is_usual else f"fen {self.game.to_text(self.game.initial_state())}"
        return f"position {start} moves {names}" if names else f"position {start}"

    def _go(self, game: GameSoFar, budget: Budget) -> str:
        words = [f"{key} {value}" for key, value in self._limits.items()]
        if budget.clock_s is not None:
            # The other side's clock is not known; an equal one misleads the program least.
            left, gain = max(round(1000 * budget.clock_s), 1), round(1000 * budget.increment_s)
            words.append(self.clock_form.format(left, gain))
        elif budget.time_s is not None or not words:
            words.append(f"movetime {round(1000 * (budget.time_s or _DEFAULT_TIME_S))}")
        return "go " + " ".join(words)


class UgiProgram(UciProgram):
    """One process that speaks UGI."""

    hello, ready, new_game = "ugi", "ugiok", "uginewgame"
    clock_form = "p1time {0} p2time {0} p1inc {1} p2inc {1}"

    def _check_game(self, names: Mapping[str, str]) -> None:
        """Accept every game: UGI does not say which one a program plays."""


def _plain(name: str) -> str:
    """An option's name without the differences that people do not see."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())
