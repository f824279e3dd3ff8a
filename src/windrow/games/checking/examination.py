"""The checker as a whole: random games, and everything that is looked at on the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

from windrow.games.checking.fault import GameFaultsError, Report
from windrow.games.checking.identities import IdentityChecker
from windrow.games.checking.lines import Line, LineChecker
from windrow.games.checking.positions import PositionChecker, possible_moves
from windrow.games.checking.subject import FAILED, Subject, View
from windrow.games.core_game import CoreGame
from windrow.games.protocol import TERMINAL
from windrow.games.python_game import PythonGame, label_of
from windrow.games.registry import GAMES, make_game

_NUM_CLOSE_PLIES = 400
"""Moves of a game that are looked at closely; later ones are only played."""
_MAX_ENDLESS = 3
"""Games without an end after which there is no point in more."""
_NUM_SWAPS = 4


def check_game(game: Any, *, num_games: int = 100, max_plies: int = 10_000, seed: int = 0) -> None:
    """Raise if a game has faults, for tests; the arguments are those of `examine`.

    What is allowed but often a mistake, such as results that look turned round, is warned of.

    Raises:
        GameFaultsError: an AssertionError that lists the faults, each with the moves and the code that show it.
    """
    report = examine(game, num_games=num_games, max_plies=max_plies, seed=seed)
    label = game if isinstance(game, str) else label_of(game)
    if report.faults:
        raise GameFaultsError(label, report.faults)
    for note in report.notes:
        if note.kind not in ("symmetry", "pickle"):  # limits, which are no mistakes
            warnings.warn(f"{label}: {note}", stacklevel=2)


def examine(
    game: Any,
    *,
    num_games: int = 100,
    max_plies: int = 10_000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Play random games and look for everything that would make a search wrong.

    Args:
        game: a game of any kind: an object with the methods of `windrow.games.Game`, a game of `make_game`, or the
            text from which `make_game` makes one.
        num_games: how many games to play.
        max_plies: a game that is longer counts as one that does not end.
        seed: of the random moves; equal seeds find equal faults.
        progress: called after every game with the number of games so far and in all.

    Returns:
        The first few faults of each kind, none if the game is sound; notes; and counts.
    """
    report = Report()
    rules, code, remake = _unwrap(game)
    subject = Subject(rules, code, report)
    if not subject.is_whole:
        return report
    examination = _Examination(subject, remake, max_plies)
    for number in range(num_games):
        report.num_games += 1
        examination.play(Random(f"windrow check {seed} {number}"))
        if progress is not None:
            progress(number + 1, num_games)
        if report.counts["termination", "apply"] >= _MAX_ENDLESS:
            break
    examination.finish()
    return report


def _unwrap(game: Any) -> tuple[Any, str, Callable[[], Any] | None]:
    """The rules as they were written, Python that makes them, and a function that makes them once more."""
    name, options = "", {}
    if isinstance(game, str):
        name = game
        game = make_game(name)
    elif isinstance(game, CoreGame):
        name, options = game.name, dict(game.options)
    is_wrapped = isinstance(game, PythonGame)
    rules = game.rules if is_wrapped else game
    if name not in GAMES and ":" not in name:  # not one that make_game could make again
        kind = cast("type[Any]", type(rules))
        return rules, f"from {kind.__module__} import {kind.__qualname__}\ngame = {kind.__qualname__}()", None
    arguments = ", ".join([repr(name), *(f"{key}={value!r}" for key, value in options.items())])
    ending = ".rules" if is_wrapped else ""

    def remake() -> Any:
        again: Any = make_game(name, **options)
        return again.rules if is_wrapped else again

    return rules, f"import windrow\ngame = windrow.make_game({arguments}){ending}", remake


class _Examination:
    """One subject, and all that looks at it."""

    def __init__(self, subject: Subject, remake: Callable[[], Any] | None, max_plies: int) -> None:
        self._subject = subject
        self._max_plies = max_plies
        self._positions = PositionChecker(subject)
        self._lines = LineChecker(subject, self._positions, remake)
        self._identities = IdentityChecker(subject)

    def play(self, draw: Random) -> None:
        """One random game."""
        report = self._subject.report
        num_faults = report.num_faults
        line = self._play_line(draw)
        if not line.views:
            return
        self._identities.add(line)
        if report.num_faults == num_faults:
            self._lines.check(line, draw)
        if report.num_faults == num_faults:
            self._swap_moves(line, draw)

    def finish(self) -> None:
        """What can only be said about all games together."""
        self._lines.finish()
        self._identities.finish()

    def _play_line(self, draw: Random) -> Line:
        """Play to the end, or to a fault after which the game cannot go on."""
        subject, line = self._subject, Line()
        state = subject.call("initial_state", ())
        if state is None:
            subject.fault("legality", "initial_state", "gave None: is a return missing?")
            return line
        while state is not FAILED:
            is_close = len(line) < _NUM_CLOSE_PLIES
            view = self._look(state, line.moves, is_close=is_close)
            if view is None:
                break
            subject.report.num_positions += 1
            line.states.append(state)
            line.views.append(view)
            if view.to_play == TERMINAL:
                subject.report.num_endings += 1
                return line
            if len(line.moves) >= self._max_plies:
                seen = f"a game of random moves was not over after {self._max_plies} moves"
                subject.fault("termination", "apply", seen, line.moves)
                return line
            move = _choose(view, draw)
            state = self._positions.play(state, view, move, line.moves, draw, is_close=is_close)
            if state is not FAILED:
                line.moves.append(move)
        del line.moves[max(0, len(line.states) - 1) :]
        return line

    def _look(self, state: Any, moves: Sequence[int], *, is_close: bool) -> View | None:
        if is_close:
            return self._positions.examine(state, moves)
        return self._positions.look(state, moves, is_first=True)

    def _swap_moves(self, line: Line, draw: Random) -> None:
        """Exchange two moves of a game: the same position by another way, in many games, must have the same hash."""
        if not self._subject.has_hash or len(line.moves) < 3:
            return
        for first in draw.sample(range(len(line.moves) - 2), min(len(line.moves) - 2, _NUM_SWAPS)):
            moves = line.moves[: first + 3]
            moves[first], moves[first + 2] = moves[first + 2], moves[first]
            state, view = line.states[first], line.views[first]
            for ply in range(first, first + 3):
                if view.to_play < 0 or moves[ply] not in view.legal_actions:
                    break
                state = self._subject.apply(state, moves[ply], moves[:ply])
                now = None if state is FAILED else self._positions.look(state, moves[: ply + 1])
                if now is None:
                    return
                view = now
            else:
                self._identities.add_hash(state, view, moves)


def _choose(view: View, draw: Random) -> int:
    if view.chance_outcomes is not None:
        weights = [probability for _, probability in view.chance_outcomes]
        return draw.choices([outcome for outcome, _ in view.chance_outcomes], weights)[0]
    return draw.choice(possible_moves(view))
