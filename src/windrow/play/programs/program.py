"""The contract of a protocol: a program that answers with a move.

A class derived from `Program` starts the process, says hello, and answers one position at a time. The player that uses
it (`windrow.play.programs.player`) checks every move, keeps the clocks, starts a new process after a failure, and
spreads games over processes. To add a protocol, write such a class and add it to `PROTOCOLS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from windrow.errors import ConfigError, ProgramError
from windrow.games.core_game import CoreGame
from windrow.games.protocol import CHANCE
from windrow.play.following import GameSoFar
from windrow.play.programs.command import ProgramSpec, find_program
from windrow.play.programs.process import ProgramProcess
from windrow.spelling import explain_unknown

_START_S = 60.0
"""Time that a program has to start and to answer its first questions."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The time of one answer.

    deadline: time of `perf_counter` at which the program has lost.
    time_s: seconds that the program is told to use for this move; None: it is told nothing.
    clock_s: seconds left on its clock; None: there is no clock.
    increment_s: seconds that the clock gains after the move.
    """

    deadline: float
    time_s: float | None = None
    clock_s: float | None = None
    increment_s: float = 0.0


class Resigned(Exception):
    """The program gave up its game."""


class Program(ABC):
    """One process of a program that plays one game.

    Args:
        game: the game; a ConfigError if the protocol cannot play it.
        spec: the program and its settings.
        seed: seed of the program's random numbers, where the protocol has one.
    """

    default_command: tuple[str, ...] = ()
    """Command of a spec that names none."""

    def __init__(self, game: CoreGame, spec: ProgramSpec, *, seed: int = 0) -> None:
        self.game, self.spec, self.seed = game, spec, seed
        if not (spec.command or self.default_command):
            raise ConfigError(
                f"{spec.text!r} names no program: write {spec.protocol}:PROGRAM, such as {spec.protocol}:/path/program"
            )
        self.process: ProgramProcess
        try:
            self.start(perf_counter() + _START_S)
        except ProgramError as error:
            self.close()
            raise type(error)(f"{spec.text} did not start: {error}") from None
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def start(self, deadline: float) -> None:
        """Start the process with `launch`, and say hello."""

    @abstractmethod
    def answer(self, game: GameSoFar, budget: Budget) -> list[int]:
        """Return the moves of the player to move, to the end of its turn or at least one.

        They are checked by the caller.

        Raises:
            ProgramError: the program broke its protocol or did not answer in time; it is not used any more.
            Resigned: the program gave up.
        """

    @property
    def farewell(self) -> Sequence[str]:
        """Lines after which the program ends."""
        return ("quit",)

    def launch(self, *, noise: tuple[str, ...] = (), extra: Sequence[str] = ()) -> None:
        """Start the process.

        Args:
            noise: beginnings of lines of output that are of no interest.
            extra: arguments besides those of the spec.
        """
        program, *arguments = self.spec.command or self.default_command
        self.process = ProgramProcess(
            [find_program(program), *extra, *arguments],
            is_noise=(lambda line: line.startswith(noise)) if noise else None,
        )

    def close(self) -> None:
        """End the process; may be called more than once."""
        if (process := getattr(self, "process", None)) is not None:
            process.close(*self.farewell)

    def refuse_options(self, known: Sequence[str]) -> None:
        """Raise ConfigError for the first option of the spec that is not `known`."""
        for key in self.spec.options:
            if key not in known:
                words = explain_unknown(key, (*known, *type(self.spec.settings).setting_names()), what="settings")
                raise ConfigError(f"{self.spec.text!r} has no setting {key!r}. {words}")


def named_moves(game: CoreGame, so_far: GameSoFar) -> list[tuple[int, str]]:
    """The player and the name of every move so far.

    Raises:
        ProgramError: the moves are not known, or there is chance in the game.
    """
    if so_far.moves is None:
        raise ProgramError("this protocol needs the moves of a game, and only the position is known")
    state = game.initial_state()
    moves: list[tuple[int, str]] = []
    for move in so_far.moves:
        player = game.to_play(state)
        if player == CHANCE:
            raise ProgramError(f"this protocol has no dice, and {game!r} has")
        moves.append((player, game.move_name(state, move)))
        state = game.apply(state, move)
    return moves
