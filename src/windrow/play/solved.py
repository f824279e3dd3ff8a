"""A strength test on solved Connect-4 positions: the share of a player's moves that keep the theoretical result.

The positions are a fixed set, 150 for each phase of a game. In each of them a mistake is possible: the legal moves do
not all have the same result. The positions come from games between players of all strengths, from random players to
ones that seldom make a mistake. A text file in `data` holds them. Each line has the moves to a position, and one
character per column: `+`, `=` or `-` if a stone in that column wins, draws or loses, `.` if the column is full.
`bench/solver_data.py` writes the file.
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
"""The phases of a game: smallest and largest number of stones on the board."""
PER_PHASE = 150
"""Number of positions per phase."""
FILE = "connect4_solved.txt"
"""Name of the file, in the folder `data`."""
MARKS = {1: "+", 0: "=", -1: "-"}
"""The file's characters for results."""

_RESULTS = {mark: result for result, mark in MARKS.items()}
_BATCH = 64


@dataclass(frozen=True, slots=True)
class SolvedPosition:
    """A position, with the result of every move if both sides play perfectly from then on.

    phase: the range of the number of stones on the board, such as "8-13".
    results: 1 (win), 0 (draw) or -1 (loss) by legal action, for the player who moves. They are not all equal.
    """

    state: State
    """The position."""
    phase: str
    results: dict[int, int]

    @property
    def value(self) -> int:
        """Value of the position for the player to move: the best of the results."""
        return max(self.results.values())

    @property
    def best_actions(self) -> list[int]:
        """Actions that keep the value."""
        return [action for action, result in self.results.items() if result == self.value]


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a player's moves that kept the result.

    num_kept: number of moves that kept the result.
    num_positions: number of positions.
    """

    num_kept: int
    num_positions: int

    @property
    def share(self) -> float:
        """The share as a number from 0 to 1."""
        return self.num_kept / self.num_positions

    @property
    def standard_error(self) -> float:
        """Standard error of the share, as an estimate of the share over all such positions."""
        return sqrt(self.share * (1.0 - self.share) / self.num_positions)

    def to_dict(self) -> dict[str, Any]:
        """Return the share as plain values for JSON."""
        return {"positions": self.num_positions, "share": self.share, "standard_error": self.standard_error}


@dataclass(frozen=True, slots=True)
class SolvedScore:
    """The shares of a player's moves that kept the theoretical result, by phase and overall."""

    player: str
    """Name of the player."""
    phases: dict[str, Share]
    """Share for each phase, by the phase's range of stones on the board, such as "8-13"."""

    @property
    def overall(self) -> Share:
        """Share over all phases together."""
        return Share(
            sum(phase.num_kept for phase in self.phases.values()),
            sum(phase.num_positions for phase in self.phases.values()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain values for JSON."""
        phases = {name: phase.to_dict() for name, phase in self.phases.items()}
        return {"player": self.player, **self.overall.to_dict(), "phases": phases}

    def table(self) -> str:
        """Format the score as a table."""
        rows = [f"{'stones':8}  positions  keeps the result"]
        for name, share in {**self.phases, "all": self.overall}.items():
            # If all moves keep the result, or none does, the estimate is 0, which is no error bar.
            error = f" ± {100 * share.standard_error:.1f}" if share.standard_error else ""
            kept = f"{100 * share.share:.1f} %"
            rows.append(f"{name:8}  {share.num_positions:9}  {kept:>10}{error}")
        return "\n".join(rows)


def phase_of(stones: int) -> str:
    """Name of the phase with so many stones on the board. `stones` must be within one of the phases."""
    return next(f"{first}-{last}" for first, last in PHASES if first <= stones <= last)


def solved_positions(game: CoreGame) -> list[SolvedPosition]:
    """Return the fixed set of positions, ordered by phase. There is one only for Connect-4 with 6 rows and 7 columns.

    Raises:
        GameError: there is no set for this game.
    """
    if game != usual_game():
        raise GameError(
            f"there are solved positions of {usual_game()!r} only, not of {game!r}: compare players by matches instead"
        )
    return list(_read_positions())


def score_player(
    player: Player, positions: Sequence[SolvedPosition], *, progress: Callable[[int, int], object] | None = None
) -> SolvedScore:
    """Let a player move in every position, and count the moves that keep the result.

    Args:
        player: the player.
        positions: the positions, as from `solved_positions`.
        progress: called with the number of positions played so far and the number of all positions.

    Raises:
        IllegalMoveError: the player chose an illegal move.
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
