"""Outside programs as players. The referee is windrow's game: it checks every move and keeps the clock.

A program that answers with an illegal move, crashes, or takes too long loses the game, and the next game begins with a
new process. A program that cannot be started is an error, not a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from time import perf_counter

from windrow.cores import num_cores
from windrow.errors import ConfigError, ProgramError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.games.python_game import as_core_game
from windrow.play.following import Forfeit, GameSoFar
from windrow.play.programs.command import PROTOCOLS, ProgramSettings, ProgramSpec, parse_program
from windrow.play.programs.program import Budget, Program, Resigned

_MAX_PROCESSES = 4
_CLOCK_SLACK_S = 0.05
"""Time on the way between windrow and a program, which does not count on its clock."""
_MAX_TURNS = 4096
"""Positions within turns that are remembered."""


class ProgramPlayer:
    """Lets a program choose moves.

    Args:
        game: the game.
        spec: description of the program, such as "uci:stockfish,UCI_Elo=1500".
        seed: seed of the program's random numbers, where its protocol has one.

    Raises:
        ConfigError: the spec is malformed, or the protocol cannot play this game.
        ProgramError: the program is not installed, or it does not start.
    """

    def __init__(self, game: CoreGame, spec: str, *, seed: int = 0) -> None:
        self.game = as_core_game(game)
        if self.game.num_players != 2:
            raise ConfigError(f"{spec}: outside programs play games for two players, not {game!r}")
        self._spec: ProgramSpec = parse_program(spec)
        self.name = self._spec.text
        self._seed, self._is_closed = seed, False
        self._kind = load_protocol(self._spec.protocol)
        settings: ProgramSettings = self._spec.settings
        count = settings.processes or min(num_cores(), _MAX_PROCESSES)
        self._slots = [_Slot(self) for _ in range(count)]
        self._slots[0].program()  # so that errors are seen at the start

    def choose(self, states: Sequence[State]) -> list[int]:
        """Return one legal action per state.

        Raises:
            ProgramError: the program failed, or its protocol needs the moves of the game (`choose_in`).
        """
        answers = self.choose_in([GameSoFar(number, state, None) for number, state in enumerate(states)])
        for answer in answers:
            if isinstance(answer, Forfeit):
                raise ProgramError(answer.reason)
        return [answer for answer in answers if not isinstance(answer, Forfeit)]

    def choose_in(self, games: Sequence[GameSoFar]) -> list[int | Forfeit]:
        """Return one legal action per game, or a forfeit if the program failed or resigned."""
        shares = [games[first :: len(self._slots)] for first in range(len(self._slots))]
        if games and games[0].moves is not None:  # a game stays with its process, which knows it
            shares = [[game for game in games if game.number % len(self._slots) == n] for n in range(len(self._slots))]
        work = [(slot, share) for slot, share in zip(self._slots, shares, strict=True) if share]
        answers: dict[int, int | Forfeit] = {}
        try:
            if len(work) == 1:
                answers = work[0][0].play(work[0][1])
            else:
                with ThreadPoolExecutor(max(len(work), 1)) as pool:
                    futures = [pool.submit(slot.play, share) for slot, share in work]
                    try:
                        for future in futures:
                            answers |= future.result()
                    except BaseException:
                        self.close()  # so that the other threads do not wait for their programs
                        raise
        except BaseException:
            self.close()
            raise
        return [answers[game.number] for game in games]

    def close(self) -> None:
        """End all processes; may be called more than once."""
        self._is_closed = True
        for slot in self._slots:
            slot.close()

    def new_program(self) -> Program:
        """Start a process.

        Raises:
            ProgramError: it does not start, or the player is closed.
        """
        if self._is_closed:
            raise ProgramError(f"{self.name} is closed")
        return self._kind(self.game, self._spec, seed=self._seed)

    @property
    def settings(self) -> ProgramSettings:
        """The settings of the program's processes."""
        return self._spec.settings


class _Slot:
    """One process of a player, and what is known of the games that it plays."""

    def __init__(self, player: ProgramPlayer) -> None:
        self._player = player
        self._program: Program | None = None
        self._clocks: dict[int, tuple[tuple[int, ...], float]] = {}
        """By game: its moves when the program moved last, and the time left on its clock."""
        self._rest_of_turn: dict[State, int] = {}

    def program(self) -> Program:
        """The running process, which is started if there is none."""
        if self._program is None:
            self._program = self._player.new_program()
        return self._program

    def close(self) -> None:
        """End the process."""
        program, self._program = self._program, None
        if program is not None:
            program.close()

    def play(self, games: Sequence[GameSoFar]) -> dict[int, int | Forfeit]:
        """Answer one game after another; answers by the number of the game."""
        return {game.number: self._answer(game) for game in games}

    def _answer(self, game: GameSoFar) -> int | Forfeit:
        if game.state in self._rest_of_turn:
            return self._rest_of_turn[game.state]
        program = self.program()
        settings = self._player.settings
        clock_s = self._time_left(game)
        start = perf_counter()
        limit_s = settings.timeout_s if clock_s is None else clock_s + _CLOCK_SLACK_S
        budget = Budget(start + limit_s, settings.time_s, clock_s, settings.increment_s)
        try:
            actions = program.answer(game, budget)
            self._check(game, actions)
        except Resigned:
            return Forfeit(f"{self._player.name} resigned {_where(game)}", is_resignation=True)
        except ProgramError as error:
            self.close()
            return Forfeit(f"{self._player.name} lost {_where(game)}: {error}")
        used_s = perf_counter() - start
        if clock_s is not None:
            if used_s > limit_s:
                return Forfeit(f"{self._player.name} lost on time {_where(game)}: it had {clock_s:.2f} s")
            left_s = clock_s - max(used_s - _CLOCK_SLACK_S, 0.0) + settings.increment_s
            self._clocks[game.number] = (game.moves or (), left_s)
        return actions[0]

    def _time_left(self, game: GameSoFar) -> float | None:
        """Seconds on the clock; None without one. A game that does not go on from where it was has a full clock."""
        if self._player.settings.clock_s is None:
            return None
        before, left_s = self._clocks.get(game.number, ((), 0.0))
        moves = game.moves or ()
        if before and len(moves) > len(before) and moves[: len(before)] == before:
            return left_s
        return self._player.settings.clock_s

    def _check(self, game: GameSoFar, actions: Sequence[int]) -> None:
        """Play the moves of a turn, and remember all but the first of them.

        Raises:
            ProgramError: a move is not legal.
        """
        rules = self._player.game
        mover = rules.to_play(game.state)
        state = game.state
        if not actions:
            raise ProgramError("it answered without a move")
        if len(self._rest_of_turn) > _MAX_TURNS:
            self._rest_of_turn.clear()
        for place, action in enumerate(actions):
            if rules.to_play(state) != mover or action not in rules.legal_actions(state):
                name = rules.move_name(state, action) if 0 <= action < rules.num_actions else str(action)
                raise ProgramError(f"it answered {name}, which is not legal")
            if place:
                self._rest_of_turn[state] = action
            state = rules.apply(state, action)
            if rules.to_play(state) in (CHANCE, TERMINAL) and place + 1 < len(actions):
                raise ProgramError("it went on after the end of its turn")


def load_protocol(name: str) -> type[Program]:
    """Import the class of a protocol by its name."""
    module, _, attribute = PROTOCOLS[name].partition(":")
    return getattr(import_module(module), attribute)


def _where(game: GameSoFar) -> str:
    """The place in a game, for messages."""
    return "in this position" if game.moves is None else f"at move {len(game.moves) + 1}"
