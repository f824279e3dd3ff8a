"""The game under examination: calls of its methods that never fail, and what can be seen of a position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields
from math import prod
from operator import index
from typing import Any, cast

import numpy as np

from windrow.errors import first_line
from windrow.games.checking.fault import Fault, Kind, Report
from windrow.games.core_game import CoreGame
from windrow.games.own_class import MAX_ACTIONS, MAX_OUTCOMES, MAX_PLAYERS
from windrow.games.protocol import CHANCE, FloatArray, Shape, Symmetry

METHODS = ("initial_state", "to_play", "legal_actions", "apply", "returns", "observe")
FACTS = ("num_actions", "num_players", "observation")

FAILED: Any = object()
"""What a call gives if the method raised, or answered something of a wrong kind; the fault is reported then."""


@dataclass(frozen=True, slots=True)
class View:
    """All that a game says about a position, made comparable. None: it does not say that, or not in such a position.

    Fields have the names of methods.
    """

    to_play: int
    legal_actions: tuple[int, ...]
    observe: bytes | None = None
    returns: tuple[float, ...] | None = None
    chance_outcomes: tuple[tuple[int, float], ...] | None = None
    sample_outcome: tuple[int, ...] | None = None
    hash: int | None = None

    def difference(self, other: View, ignored: Set[str]) -> tuple[str, str] | None:
        """The first method that answers differently, and both answers; None if there is none."""
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if one != two and field.name not in ignored:
                if field.name == "observe":
                    return field.name, "other numbers"
                return field.name, f"{short(one)}, then {short(two)}"
        return None


class Subject:
    """A game, its facts, and the report about it.

    Args:
        rules: the game, as whoever wrote it wrote it: a wrapper of windrow's is taken off.
        code: Python that makes it, for snippets.
        report: where faults go.

    unstable: methods that were found to answer at random; they are not compared any more.
    """

    def __init__(self, rules: Any, code: str, report: Report) -> None:
        self.rules = rules
        self.code = code
        self.report = report
        self.unstable: set[str] = set()
        self.num_players = self._count("num_players", MAX_PLAYERS)
        self.num_actions = self._count("num_actions", MAX_ACTIONS)
        self.shapes = self._find_shapes()
        self.is_whole = self._has_all_methods() and not report.faults
        self.num_floats = sum(prod(shape) for shape in self.shapes.values())
        self.is_zero_sum = self.num_players == 2 and self._says_zero_sum()
        self.chance = self._find_chance()
        self.has_hash = self._has("hash")
        self.has_render = self._has("render")
        self.has_names = self._has("action_name") and self._has("parse_action")
        self.has_notation = self._finds_notation()
        self.max_legal_actions: int | None = getattr(rules, "max_legal_actions", None)
        is_core = isinstance(rules, CoreGame)
        self.max_outcomes: int | None = None if is_core else getattr(rules, "max_outcomes", MAX_OUTCOMES)

    # --- Reporting --------------------------------------------------------------------------------------------

    def fault(self, kind: Kind, method: str, seen: str, moves: Sequence[int] = (), code: str | None = None) -> None:
        """Report a fault.

        Args:
            kind: what is wrong.
            method: who is to blame.
            seen: what was seen, in a sentence.
            moves: what leads there.
            code: the end of a snippet, in which `game` and `state` are known; None: a call of the method.
        """
        self.report.add(self._make(kind, method, seen, moves, code))

    def note(self, kind: Kind, method: str, seen: str, moves: Sequence[int] = (), code: str | None = None) -> None:
        """Report what is allowed but often a mistake."""
        self.report.add_note(self._make(kind, method, seen, moves, code))

    def _make(self, kind: Kind, method: str, seen: str, moves: Sequence[int], code: str | None) -> Fault:
        lines = [self.code]
        if method not in FACTS and method != "symmetries":
            lines.append("state = game.initial_state()")
            if moves:
                lines += [f"for move in {list(moves)}:", "    state = game.apply(state, move)"]
        if code is not None:
            lines.append(code)
        elif method in FACTS:
            lines.append(f"print(game.{method})")
        elif method == "symmetries":
            lines.append("print(game.symmetries())")
        elif method not in ("initial_state", "apply"):
            lines.append(f"print({ask(method)})")
        return Fault(kind, method, seen, tuple(moves), self._names_of(moves), "\n".join(lines))

    def _names_of(self, moves: Sequence[int]) -> tuple[str, ...]:
        """The names of a line of play, by number where there are none; never fails."""
        if not moves:
            return ()
        names = [str(move) for move in moves]
        try:
            state = self.rules.initial_state()
            for ply, move in enumerate(moves):
                method = "outcome_name" if self.rules.to_play(state) == CHANCE else "action_name"
                if self._has(method):
                    names[ply] = str(getattr(self.rules, method)(move))
                if ply + 1 < len(moves):
                    state = self.rules.apply(state, move)
        except Exception:  # the game is at fault, and that is being reported
            pass
        return tuple(names)

    # --- Calls ------------------------------------------------------------------------------------------------

    def call(self, method: str, moves: Sequence[int], *arguments: Any, code: str | None = None) -> Any:
        """What a method answers; `FAILED`, with a fault, if it raises."""
        try:
            return getattr(self.rules, method)(*arguments)
        except Exception as error:  # whatever it is, it is the game's
            self.fault("exception", method, f"raised {describe(error)}", moves, code)
            return FAILED

    def apply(self, state: Any, move: int, moves: Sequence[int]) -> Any:
        """The state after a move that the game itself calls possible."""
        child = self.call("apply", moves, state, move, code=f"game.apply(state, {move})")
        if child is None:
            self.fault("legality", "apply", f"gave None after {move}: is a return missing?", moves, _apply_code(move))
            return FAILED
        return child

    def call_number(
        self, method: str, moves: Sequence[int], *arguments: Any, kind: Kind, code: str | None = None
    ) -> Any:
        """What a method answers that must give an integer; `FAILED`, with a fault, if it does not."""
        answer = self.call(method, moves, *arguments, code=code)
        return answer if answer is FAILED else self.number(method, moves, answer, kind)

    def number(self, method: str, moves: Sequence[int], answer: Any, kind: Kind) -> Any:
        """An answer that must be an integer."""
        try:
            return index(answer)
        except TypeError:
            self.fault(kind, method, f"gave {short(answer)}, which is no integer", moves)
            return FAILED

    def flatten(self, answer: Any) -> FloatArray | str:
        """An observation as one row; what is wrong with it, in words, if it cannot be one."""
        if len(self.shapes) == 1 and not isinstance(answer, Mapping):
            parts: Mapping[str, Any] = dict.fromkeys(self.shapes, answer)
        elif isinstance(answer, Mapping):
            parts = cast("Mapping[str, Any]", answer)
            if set(parts) != set(self.shapes):
                return f"gave the parts {', '.join(map(str, parts))}; declared are {', '.join(self.shapes)}"
        else:
            return f"gave {type(answer).__name__}; declared are named parts: {', '.join(self.shapes)}"
        rows: list[FloatArray] = []
        for name, shape in self.shapes.items():
            label = f"part {name!r}" if len(self.shapes) > 1 else "an array"
            try:
                with np.errstate(over="ignore"):
                    array = np.asarray(parts[name], np.float32)
            except (TypeError, ValueError):
                return f"gave {short(parts[name])}, which is no array of numbers"
            if array.shape != shape:
                return f"gave {label} of shape {array.shape}; declared is {shape}"
            if not np.isfinite(array).all():
                return f"gave {label} with a number that is not finite: {array[~np.isfinite(array)][0]}"
            rows.append(array.reshape(-1))
        return np.concatenate(rows)

    # --- Facts ------------------------------------------------------------------------------------------------

    def _has(self, method: str) -> bool:
        return callable(getattr(self.rules, method, None))

    def _has_all_methods(self) -> bool:
        missing = [method for method in METHODS if not self._has(method)]
        for method in missing:
            self.fault("facts", method, "there is no such method; every game needs it", code="")
        return not missing

    def _count(self, fact: str, most: int) -> int:
        value = getattr(self.rules, fact, None)
        try:
            count = index(cast("Any", value))
        except TypeError:
            count = -1
        if not 1 <= count <= most:
            self.fault("facts", fact, f"is {short(value)}; it must be a number from 1 to {most}")
        return count

    def _find_shapes(self) -> dict[str, Shape]:
        declared = getattr(self.rules, "observation", None)
        parts: dict[Any, Any] = (
            dict(cast("Mapping[Any, Any]", declared)) if isinstance(declared, Mapping) else {"observation": declared}
        )
        shapes: dict[str, Shape] = {}
        for name, shape in parts.items():
            try:
                sizes = tuple(index(size) for size in shape)
            except TypeError:
                sizes = ()
            if not sizes or min(sizes) < 1:
                self.fault("facts", "observation", f"is {short(declared)}; shapes are tuples of numbers from 1 on")
                return {}
            shapes[str(name)] = sizes
        return shapes

    def _says_zero_sum(self) -> bool:
        num_values = getattr(self.rules, "num_values", None)
        if num_values is not None:
            if num_values not in (1, self.num_players):
                seen = f"is {short(num_values)}; with {self.num_players} players it is 1 or {self.num_players}"
                self.fault("facts", "num_values", seen)
            return num_values == 1
        return bool(getattr(self.rules, "zero_sum", True))

    def _finds_notation(self) -> bool:
        if isinstance(self.rules, CoreGame):
            return self.rules.has_notation
        found = [method for method in ("parse", "to_text") if self._has(method)]
        if found == ["to_text"]:
            self.note(
                "notation", "to_text", "there is no parse: text of positions that cannot be read is not used", code=""
            )
        return len(found) == 2

    def _find_chance(self) -> str:
        """none, listed or sampled."""
        declared = getattr(self.rules, "chance", None)
        if declared in ("none", "listed", "sampled"):
            return cast("str", declared)
        lists, samples = self._has("chance_outcomes"), self._has("sample_outcome")
        if lists and samples:
            self.fault("facts", "sample_outcome", "there is chance_outcomes too; a game has one of them", code="")
        return "listed" if lists else "sampled" if samples else "none"

    def symmetries(self) -> list[Symmetry]:
        """The symmetries but for the identity; empty, with a fault, if something is wrong with one of them."""
        if not self._has("symmetries"):
            return []
        answer = self.call("symmetries", ())
        if answer is FAILED:
            return []
        found: list[Symmetry] = []
        sizes = {"actions": self.num_actions, "observation": self.num_floats}
        for number, image in enumerate(answer):
            tables: dict[str, Any] = {}
            for name, size in sizes.items():
                table = np.asarray(getattr(image, name, None))
                if table.dtype.kind not in "iu" or sorted(table.reshape(-1).tolist()) != list(range(size)):
                    seen = f"symmetry {number} has {name} that are no permutation of 0 to {size - 1}"
                    self.fault("symmetry", "symmetries", seen)
                    return []
                tables[name] = table.astype(np.int32)
                if number == 0 and table.tolist() != list(range(size)):
                    self.fault("symmetry", "symmetries", f"the first one is not the identity: its {name} move")
                    return []
            found.append(Symmetry(**tables))
        if not found:
            self.fault("symmetry", "symmetries", "there are none; the identity must be the first")
        return found[1:]


def describe(error: BaseException) -> str:
    """An exception in one line, as it stands at the end of a traceback."""
    name, line = type(error).__name__, first_line(error)
    return name if line == name else f"{name}: {line}"


def ask(method: str, state: str = "state") -> str:
    """Python that asks a method about a state."""
    return f"game.{method}({state}{', 0' if method == 'sample_outcome' else ''})"


def _apply_code(move: int) -> str:
    return f"print(game.apply(state, {move}))"


def short(value: Any) -> str:
    """What Python prints of a value, cut off if it is long."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
