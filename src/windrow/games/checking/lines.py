"""Checks of whole games: played again, played by copies and by another object, and seen in a mirror."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from windrow.games.checking.fault import Kind
from windrow.games.checking.positions import REMEDY, PositionChecker
from windrow.games.checking.subject import FAILED, Subject, View, ask, describe, short
from windrow.games.checking.values import snapshot
from windrow.games.protocol import CHANCE, TERMINAL, FloatArray, Symmetry

_NUM_COPIED = 4
"""Positions of a game that are copied and pickled."""
_NUM_READ_BACK = 8
"""Positions of a game that are written as text and read again."""
_NUM_IMAGES = 2
"""Symmetries by which one game is mapped."""
_NUM_OUTCOMES = 64
"""Outcomes of chance among which the image of one is looked for."""
_READ = "print(game.parse(game.to_text(state)))"


@dataclass
class Line:
    """A game as it was played: `states[k]` and `views[k]` are before `moves[k]`."""

    states: list[Any] = field(default_factory=list[Any])
    views: list[View] = field(default_factory=list[View])
    moves: list[int] = field(default_factory=list[int])

    def __len__(self) -> int:
        return len(self.states)


class LineChecker:
    """Looks at finished games, and reports where another way to play them leads elsewhere.

    Args:
        subject: the game.
        positions: looks at single positions.
        remake: makes the game once more, by its name; None if it has none.
    """

    def __init__(self, subject: Subject, positions: PositionChecker, remake: Callable[[], Any] | None) -> None:
        self._subject = subject
        self._positions = positions
        self._images = [Image(number, image) for number, image in enumerate(subject.symmetries(), start=1)]
        self._fixed: list[Image] | None = None  # those that map the first position to itself, once that is known
        self._twin = self._make_twin(remake)

    def check(self, line: Line, draw: Random) -> None:
        """All checks; the first that fails ends them, because what follows would fail for the same reason."""
        num_faults = self._subject.report.num_faults
        for check in (self._look_back, self._play_again, self._play_twin, self._copy, self._read_back):
            check(line, draw)
            if self._subject.report.num_faults > num_faults:
                return
        if not self._subject.unstable:
            if self._fixed is None:
                first = line.views[0]
                self._fixed = [image for image in self._images if image.difference(first, first) is None]
            for image in draw.sample(self._fixed, min(len(self._fixed), _NUM_IMAGES)):
                self._map(line, image)

    def finish(self) -> None:
        """Say what could not be checked."""
        missing = [] if self._fixed is None else [image for image in self._images if image not in self._fixed]
        if missing:
            numbers = ", ".join(str(image.number) for image in missing)
            seen = (
                f"could not be tried: {numbers}. The first position is not its own image there, and images of states "
                "cannot be made"
            )
            self._subject.note("symmetry", "symmetries", seen)

    # --- Once more --------------------------------------------------------------------------------------------

    def _look_back(self, line: Line, draw: Random) -> None:
        """Earlier positions must still be what they were when they were left."""
        for ply in sorted(draw.sample(range(len(line)), min(len(line), 32))):
            state, moves = line.states[ply], line.moves[:ply]
            now = self._positions.look(state, moves)
            difference = self._positions.difference(line.views[ply], now, (state, moves))
            if difference is not None:
                method, answers = difference
                later = line.moves[ply:]
                what = f"when {later} had been played after it, the state had changed"
                seen = f"{what}: {method} gave {answers}; {REMEDY}"
                code = (
                    f"print({ask(method)})\nlater = state\nfor move in {later}:\n"
                    f"    later = game.apply(later, move)\nprint({ask(method)})"
                )
                self._subject.fault("mutation", "apply", seen, line.moves[:ply], code)
                return

    def _play_again(self, line: Line, draw: Random) -> None:
        state = self._subject.call("initial_state", ())
        self._follow(line, state, self._subject, self._positions, "played again, the same moves led elsewhere")

    def _play_twin(self, line: Line, draw: Random) -> None:
        if self._twin is None:
            return
        subject, positions = self._twin
        state = subject.call("initial_state", ())
        self._follow(line, state, subject, positions, "in another object of the game the same moves led elsewhere")

    def _follow(self, line: Line, state: Any, subject: Subject, positions: PositionChecker, what: str) -> None:
        """Play the moves of a line from `state`, and compare all positions."""
        for ply, view in enumerate(line.views):
            moves = line.moves[:ply]
            now = None if state is FAILED else positions.look(state, moves)
            if now is None:
                return
            difference = positions.difference(view, now, (state, moves))
            if difference is not None:
                method, answers = difference
                source = method if method == "hash" else "apply" if ply else "initial_state"
                code = f"print({ask(method)})  # the same, whenever and wherever this runs"
                kind: Kind = "hash" if method == "hash" else "randomness"
                self._subject.fault(kind, source, f"{what}: {method} gave {answers}", moves, code)
                return
            if ply < len(line.moves):
                state = subject.apply(state, line.moves[ply], moves)

    def _make_twin(self, remake: Callable[[], Any] | None) -> tuple[Subject, PositionChecker] | None:
        """The same game as another object: by its name, or else by its pickle."""
        subject = self._subject
        try:
            other = pickle.loads(pickle.dumps(subject.rules)) if remake is None else remake()
        except Exception as error:  # any class may refuse to be pickled, in any way
            seen = f"the game cannot be pickled, which other processes need: {describe(error)}"
            subject.note("pickle", "__reduce__", seen, code="import pickle\npickle.dumps(game)")
            return None
        twin = Subject(other, subject.code, subject.report)
        return twin, PositionChecker(twin)

    # --- Copies -----------------------------------------------------------------------------------------------

    def _copy(self, line: Line, draw: Random) -> None:
        """A deep copy and a pickle of a state must be the same position, and go on alike."""
        for ply in sorted(draw.sample(range(len(line)), min(len(line), _NUM_COPIED))):
            state, moves = line.states[ply], line.moves[:ply]
            twins = {"a deep copy": snapshot(state, (self._subject.rules,))}
            try:
                twins["a pickle"] = pickle.loads(pickle.dumps(state))
            except Exception as error:  # any class may refuse to be pickled, in any way
                seen = f"states cannot be pickled, which other processes need: {describe(error)}"
                self._subject.note("pickle", "apply", seen, moves, "import pickle\npickle.dumps(state)")
            for what, twin in twins.items():
                if twin is not None and not self._goes_on_alike(line, ply, what, twin):
                    return

    def _goes_on_alike(self, line: Line, ply: int, what: str, twin: Any) -> bool:
        """Whether a copy of the state at `ply`, and what follows it, look like the original."""
        for later in range(ply, min(ply + 2, len(line))):
            moves = line.moves[:later]
            now = self._positions.look(twin, moves)
            difference = self._positions.difference(line.views[later], now, (twin, moves))
            if now is None or difference is not None:
                if difference is not None:
                    self._report_copy(what, difference, moves, is_child=later > ply)
                return False
            if later < len(line.moves):
                twin = self._subject.apply(twin, line.moves[later], moves)
                if twin is FAILED:
                    return False
        return True

    def _report_copy(self, what: str, difference: tuple[str, str], moves: list[int], *, is_child: bool) -> None:
        method, answers = difference
        where = f"a move in {what} of the state led elsewhere" if is_child else f"{what} of the state is not the same"
        copied = "copy.deepcopy(state)" if what == "a deep copy" else "pickle.loads(pickle.dumps(state))"
        code = f"import copy, pickle\nprint({ask(method)}, {ask(method, copied)})"
        kind: Kind = "hash" if method == "hash" else "randomness"
        self._subject.fault(kind, method, f"{where}: {method} gave {answers}", moves, code)

    # --- Text -------------------------------------------------------------------------------------------------

    def _read_back(self, line: Line, draw: Random) -> None:
        """The text of a position must be read as that position, and be written in the same way again."""
        subject = self._subject
        if not subject.has_notation:
            return
        for ply in sorted(draw.sample(range(len(line)), min(len(line), _NUM_READ_BACK))):
            state, moves = line.states[ply], line.moves[:ply]
            text = subject.call("to_text", moves, state)
            if text is FAILED:
                return
            if not isinstance(text, str):
                subject.fault("notation", "to_text", f"gave {short(text)}, which is no text", moves)
                return
            back = subject.call("parse", moves, text, code=_READ)
            if back is FAILED:
                return
            if back is None:
                subject.fault("notation", "parse", f"gave None for {short(text)}: is a return missing?", moves, _READ)
                return
            difference = self._positions.difference(line.views[ply], self._positions.look(back, moves), (back, moves))
            again = None if difference else subject.call("to_text", moves, back)
            if difference is not None:
                method, answers = difference
                seen = f"read {short(text)}, the text of this position, as another one: {method} gave {answers}"
                subject.fault("notation", "parse", seen, moves, _READ)
            elif again is not FAILED and again != text:
                subject.fault(
                    "notation", "to_text", f"gave {short(text)}, and when that was read {short(again)}", moves
                )

    # --- Images -----------------------------------------------------------------------------------------------

    def _map(self, line: Line, image: Image) -> None:
        """Play the image of a line, from a first position that is its own image; all positions must be images."""
        state = line.states[0]
        played: list[int] = []
        for ply, move in enumerate(line.moves):
            view, next_view = line.views[ply], line.views[ply + 1]
            if view.to_play == CHANCE:
                state, move = self._map_outcome(state, view, move, next_view, image, played)
                if state is None:
                    return
            else:
                move = image.action(move)
                state = self._subject.apply(state, move, played)
            played.append(move)
            seen = None if state is FAILED else self._positions.look(state, played)
            if seen is None:
                return
            wrong = image.difference(next_view, seen)
            if wrong is not None:
                # A game that is not the same every time has no symmetries; that is another fault.
                if not self._is_same_again(line.moves[: ply + 1], next_view) or not self._is_same_again(played, seen):
                    return
                text = f"symmetry {image.number} maps {line.moves[: ply + 1]} to {played}, but then {wrong}"
                code = (
                    f"image = game.symmetries()[{image.number}]\nmoves = {line.moves[: ply + 1]}\nmapped = {played}\n"
                    "# Play both: positions must be images, row[image.observation], and actions too."
                )
                self._subject.fault("symmetry", "symmetries", text, line.moves[: ply + 1], code)
                return

    def _is_same_again(self, moves: list[int], view: View) -> bool:
        """Whether moves lead to the same position once more; reports it if they do not."""
        state = self._subject.call("initial_state", ())
        for ply, move in enumerate(moves):
            if state is FAILED:
                return False
            state = self._subject.apply(state, move, moves[:ply])
        now = None if state is FAILED else self._positions.look(state, moves)
        difference = self._positions.difference(view, now, (state, moves))
        if difference is not None:
            seen = f"played again, the same moves led elsewhere: {difference[0]} gave {difference[1]}"
            self._subject.fault("randomness", "apply", seen, moves, f"print({ask(difference[0])})")
        return now is not None and difference is None

    def _map_outcome(
        self, state: Any, view: View, move: int, next_view: View, image: Image, played: list[int]
    ) -> tuple[Any, int]:
        """The state after the image of what chance did, and that image; (None, 0) if nobody can say which it is."""
        weights = dict(view.chance_outcomes or ())
        candidates = [move, *(o for o, p in weights.items() if o != move and abs(p - weights[move]) < 1e-9)]
        for outcome in candidates[:_NUM_OUTCOMES]:
            child = self._subject.apply(state, outcome, played)
            seen = None if child is FAILED else self._positions.look(child, [*played, outcome])
            if seen is not None and image.difference(next_view, seen) is None:
                return child, outcome
        return None, 0


class Image:
    """A symmetry that can map actions and views."""

    def __init__(self, number: int, symmetry: Symmetry) -> None:
        self.number = number
        self._observation = symmetry.observation
        self._image_of: list[int] = np.argsort(symmetry.actions).tolist()

    def action(self, action: int) -> int:
        """What `action` is in the image: a policy's image has `policy[actions[a]]` at a."""
        return self._image_of[action]

    def difference(self, view: View, other: View) -> str | None:
        """Why `other` is not the image of `view`; None if it is."""
        if other.to_play != view.to_play:
            return f"to_play gives {view.to_play} here and {other.to_play} there"
        if view.to_play == TERMINAL:
            same = view.returns == other.returns
            return None if same else f"returns gives {view.returns} here and {other.returns} there"
        expected = sorted([self._image_of[action] for action in view.legal_actions])
        if expected != list(other.legal_actions):
            return f"the legal actions should be {expected}, and are {list(other.legal_actions)}"
        if view.observe is not None and other.observe is not None:
            rows: list[FloatArray] = [np.frombuffer(row, np.float32) for row in (view.observe, other.observe)]
            if not np.array_equal(rows[0][self._observation], rows[1]):
                return "the observation is not the image"
        return None
