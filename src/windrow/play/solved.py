"""How well a player knows Connect-4: the share of its moves that keep what a position is worth.

The positions are a fixed set, 150 of each phase of a game, in which a wrong move is possible: some legal moves win
where others draw or lose, or draw where others lose. They come from games between players of all strengths, from those
who move at random to those who seldom make a mistake. A file beside this one holds them: a line of moves, and for each
column `+`, `=` or `-` if dropping a stone there wins, draws or loses, `.` if it is full.
`bench/solver_data.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any

from windrow.errors import GameError, IllegalMoveError
from windrow.games.core_game import CoreGame, State
from windrow.play.players import Player
from windrow.play.solver_book import usual_game

PHASES = ((8, 13), (14, 19), (20, 25), (26, 33))
"""First and last number of stones on the board."""
PER_PHASE = 150
FILE = "connect4_solved.txt"
MARKS = {1: "+", 0: "=", -1: "-"}
"""How the file writes results."""

_RESULTS = {mark: result for result, mark in MARKS.items()}
_BATCH = 64


@dataclass(frozen=True, slots=True)
class SolvedPosition:
    """A position, and what every move leads to if both sides play on without a mistake.

    phase: how many stones are on the board, "8-13" or so.
    results: 1 (win), 0 or -1 by legal action, for the player who moves; not all alike.
    """

    state: State
    """The position."""
    phase: str
    results: dict[int, int]

    @property
    def value(self) -> int:
        """What the position is worth to the player to move: the best of the results."""
        return max(self.results.values())

    @property
    def best_actions(self) -> list[int]:
        """The actions that keep it."""
        return [action for action, result in self.results.items() if result == self.value]


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many moves kept the result."""

    num_kept: int
    num_positions: int

    @property
    def share(self) -> float:
        """As a number from 0 to 1."""
        return self.num_kept / self.num_positions

    @property
    def standard_error(self) -> float:
        """How far, in the root mean square, the share is off what it would be over all such positions."""
        return sqrt(self.share * (1.0 - self.share) / self.num_positions)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"positions": self.num_positions, "share": self.share, "standard_error": self.standard_error}


@dataclass(frozen=True, slots=True)
class SolvedScore:
    """How many of a player's moves kept the theoretical result, by phase and overall."""

    player: str
    """Its name."""
    phases: dict[str, Share]
    """By how many stones were on the board."""

    @property
    def overall(self) -> Share:
        """All phases together."""
        return Share(
            sum(phase.num_kept for phase in self.phases.values()),
            sum(phase.num_positions for phase in self.phases.values()),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        phases = {name: phase.to_dict() for name, phase in self.phases.items()}
        return {"player": self.player, **self.overall.to_dict(), "phases": phases}

    def table(self) -> str:
        """For people."""
        rows = [f"{'stones':8}  positions  keeps the result"]
        for name, share in {**self.phases, "all": self.overall}.items():
            # Where all moves are alike the estimate is 0, which is no error bar.
            error = f" ± {100 * share.standard_error:.1f}" if share.standard_error else ""
            kept = f"{100 * share.share:.1f} %"
            rows.append(f"{name:8}  {share.num_positions:9}  {kept:>10}{error}")
        return "\n".join(rows)


def phase_of(stones: int) -> str:
    """What a phase with so many stones on the board is called; some phase has them."""
    return next(f"{first}-{last}" for first, last in PHASES if first <= stones <= last)


def solved_positions(game: CoreGame) -> list[SolvedPosition]:
    """The fixed set, by phase; for Connect-4 with 6 rows and 7 columns only.

    Raises:
        GameError: there is no set for this game.
    """
    if game != usual_game():
        raise GameError(
            f"there are solved positions of {usual_game()!r} only, not of {game!r}: compare by matches instead."
        )
    return list(_read_positions())


def score_player(
    player: Player, positions: Sequence[SolvedPosition], *, progress: Callable[[int, int], object] | None = None
) -> SolvedScore:
    """Ask a player for its move in every position.

    progress: called with the number of positions asked so far and in all.

    Raises:
        IllegalMoveError: the player chose a move that is not legal.
    """
    counts: dict[str, list[bool]] = {}
    for first in range(0, len(positions), _BATCH):
        batch = positions[first : first + _BATCH]
        for position, action in zip(batch, player.choose([each.state for each in batch]), strict=True):
            if action not in position.results:
                raise IllegalMoveError(f"{player.name} chose {action}, which is not legal here:\n{position.state}")
            counts.setdefault(position.phase, []).append(position.results[action] == position.value)
        if progress is not None:
            progress(min(first + _BATCH, len(positions)), len(positions))
    return SolvedScore(player.name, {phase: Share(sum(kept), len(kept)) for phase, kept in counts.items()})


@cache
def _read_positions() -> tuple[SolvedPosition, ...]:
    text = (files("windrow.play") / "data" / FILE).read_text(encoding="utf-8")
    return tuple(_from_line(line) for line in text.splitlines())


def _from_line(line: str) -> SolvedPosition:
    moves, marks = line.split()
    state = usual_game().state_from_moves(moves)
    results = {action: _RESULTS[mark] for action, mark in enumerate(marks) if mark != "."}
    return SolvedPosition(state, phase_of(len(moves)), results)
