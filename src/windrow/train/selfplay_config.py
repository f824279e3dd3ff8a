"""Settings and statistics of self-play."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from windrow.errors import ConfigError
from windrow.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class SelfPlayConfig(Settings):
    """Settings of self-play. Settings of its searches are in the `SearchConfig`."""

    num_slots: int = 128
    """Number of games played at the same time. With one leaf per tree, this is the network's batch size."""
    full_fraction: float = 1.0
    """Share of moves searched with the whole budget (playout-cap randomization). Only these moves are recorded for
    learning. The other moves are searched with `fast_simulations` and without noise."""
    fast_simulations: int = 16
    """Simulations per move for the moves that are not searched with the whole budget."""
    temperature_plies: int = 15
    """Number of moves at the start of a game that are drawn at the `SearchConfig`'s temperature. Later moves are drawn
    at `late_temperature`."""
    late_temperature: float = 0.0
    """Temperature of the later moves; 0 plays the best move. A Gumbel root draws moves in its own way and ignores both
    temperatures."""
    opening_plies: int = 0
    """Maximum number of random moves at the start of a game. The number is drawn evenly from 0 to this maximum. Random
    moves are not recorded."""
    max_plies: int | None = None
    """Maximum length of a game in moves; a longer game is called a draw. None: no limit."""
    reuse_tree: bool = True
    """Whether to keep the subtree below the move that is played."""
    resign_below: float | None = None
    """Value below which a player resigns, such as -0.9. None: every game is played to its end. The threshold is lowered
    automatically if the games played to the end show that more than `resign_max_error` of the resignations would be
    wrong."""
    resign_patience: int = 2
    """Number of a player's moves in a row that must be below `resign_below` before the player resigns."""
    resign_check_fraction: float = 0.1
    """Share of games that are played to the end without resignation, to measure wrong resignations."""
    resign_max_error: float = 0.05
    """Maximum share of the players who did not lose that would have resigned."""

    def __post_init__(self) -> None:
        self._check_integer("num_slots", 1, 1 << 24)
        self._check_number("full_fraction", 0.0, 1.0)
        self._check_integer("fast_simulations", 0, 2**31 - 2)
        self._check_integer("temperature_plies", 0, 2**31 - 1)
        self._check_number("late_temperature", 0.0, 1e6)
        self._check_integer("opening_plies", 0, 10_000)
        self._check_integer("max_plies", 1, 2**31 - 1, is_optional=True)
        self._check_flag("reuse_tree")
        self._check_number("resign_below", -1.0, 0.0, is_optional=True)
        self._check_integer("resign_patience", 1, 1000)
        self._check_number("resign_check_fraction", 0.0, 1.0)
        self._check_number("resign_max_error", 0.0, 1.0)
        if self.resign_below is not None and self.resign_check_fraction == 0.0:
            raise ConfigError(
                "resign_below needs some games that are played to the end: set resign_check_fraction above 0"
            )


@dataclass(slots=True)
class SelfPlayStats:
    """Statistics of self-play since it was created; all counts only grow."""

    games: int = 0
    """Games that ended."""
    moves: int = 0
    """Moves in all games, including games in progress."""
    recorded_moves: int = 0
    """Moves that were searched with the whole budget and recorded for learning."""
    repeated_games: int = 0
    """Games that repeated an earlier game move for move."""
    resigned_games: int = 0
    """Games that ended by resignation."""
    first_player_wins: int = 0
    """Games that player 0 won."""
    draws: int = 0
    """Games that ended in a draw."""
    simulations: int = 0
    """Simulations over all searches."""
    evaluations: int = 0
    """Nodes expanded, including those served from the cache."""
    nn_batches: int = 0
    """Number of calls of the evaluator."""
    nn_positions: int = 0
    """Rows (positions) evaluated."""
    nn_places: int = 0
    """Room for rows in the batches."""
    select_s: float = 0.0
    """Seconds spent on walking down trees."""
    encode_s: float = 0.0
    """Seconds spent on writing observations."""
    evaluate_s: float = 0.0
    """Seconds spent in the evaluator or waiting for it."""
    complete_s: float = 0.0
    """Seconds spent on expanding nodes and backing up values."""
    total_s: float = 0.0
    """Seconds spent inside `play`."""

    def add_up(self, counts: Collection[Mapping[str, float]], *, without: Collection[str] = ()) -> None:
        """Set all numbers, except those in `without`, to the sums of what several workers counted."""
        for number in fields(self):
            if number.name not in without:
                total = sum(counted.get(number.name, 0) for counted in counts)
                setattr(self, number.name, total if number.type == "float" else int(total))

    @property
    def batch_fill(self) -> float:
        """Rows evaluated, as a share of the room in the batches."""
        return self.nn_positions / self.nn_places if self.nn_places else 0.0
