"""What the checker finds: faults, which make searches wrong, and notes, which are worth a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "exception",
    "facts",
    "player",
    "legality",
    "observation",
    "returns",
    "chance",
    "randomness",
    "mutation",
    "termination",
    "symmetry",
    "hash",
    "names",
    "notation",
    "pickle",
]
"""What is wrong: a method raised; num_actions and the like; to_play; legal_actions; observe; returns; outcomes of
chance; equal moves led to unequal positions; a state was changed in place; a game does not end; a symmetry is none;
hash; names of moves; positions as text; pickles."""

MAX_OF_A_KIND = 3
"""Faults of one kind in one method that are kept; the others are only counted."""
_MAX_MOVES_SHOWN = 60


def title_of(kind: str, method: str) -> str:
    """What is wrong and who is to blame, in a word where it is the same."""
    return kind if kind == method else f"{kind}, {method}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a game, and how to see it again.

    kind: what is wrong, in a word.
    method: the method of the game that is to blame.
    seen: what was seen, in a sentence.
    moves: the actions, and outcomes of chance, that lead there from the initial state.
    names: what the game calls them; their numbers if it has no names.
    snippet: Python that shows it.
    """

    kind: Kind
    method: str
    seen: str
    moves: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    snippet: str = ""

    def __str__(self) -> str:
        lines = [f"{title_of(self.kind, self.method)}: {self.seen}", f"  {self.where()}"]
        if self.snippet:
            lines += ["  to see it again:", *(f"    {line}" for line in self.snippet.splitlines())]
        return "\n".join(lines)

    def where(self) -> str:
        """The moves that lead there, by number and by name."""
        if not self.moves:
            return "before the first move"
        numbers, names = list(map(str, self.moves)), list(self.names)
        if len(numbers) > _MAX_MOVES_SHOWN:
            numbers, names = ["...", *numbers[-_MAX_MOVES_SHOWN:]], ["...", *names[-_MAX_MOVES_SHOWN:]]
        count = f"after {len(self.moves)} move{'s' if len(self.moves) > 1 else ''}"
        named = "" if numbers == names else f" ({' '.join(names)})"
        return f"{count}: {' '.join(numbers)}{named}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {**asdict(self), "moves": list(self.moves), "names": list(self.names)}


@dataclass
class Report:
    """What an examination found.

    faults: the first few of each kind and method, in the order in which they were found.
    notes: what is allowed but often a mistake.
    counts: how often each kind of fault was met in each method, those that were not kept included.
    num_games, num_positions: how much was played.
    num_endings: games that came to their end.
    """

    faults: list[Fault] = field(default_factory=list[Fault])
    notes: list[Fault] = field(default_factory=list[Fault])
    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    num_games: int = 0
    num_positions: int = 0
    num_endings: int = 0

    def add(self, fault: Fault) -> None:
        """Keep a fault, or count it if there are enough of its kind, or one after the same moves."""
        self.counts[fault.kind, fault.method] += 1
        alike = [kept.moves for kept in self.faults if (kept.kind, kept.method) == (fault.kind, fault.method)]
        if len(alike) < MAX_OF_A_KIND and fault.moves not in alike:
            self.faults.append(fault)

    def add_note(self, note: Fault) -> None:
        """Keep a note; one of a kind and method is enough."""
        if not any((note.kind, note.method) == (other.kind, other.method) for other in self.notes):
            self.notes.append(note)

    @property
    def num_faults(self) -> int:
        """How often a fault was met."""
        return sum(self.counts.values())


class GameFaultsError(AssertionError):
    """A game has faults; the message lists them.

    faults: the faults.
    """

    def __init__(self, label: str, faults: Sequence[Fault]) -> None:
        self.faults = list(faults)
        count = f"{len(self.faults)} fault{'s' if len(self.faults) > 1 else ''}"
        super().__init__("\n\n".join([f"{label} has {count}.", *map(str, self.faults)]))
