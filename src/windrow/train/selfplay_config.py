"""Every knob of self-play, explained once; and what it has done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from windrow.errors import ConfigError
from windrow.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class SelfPlayConfig(Settings):
    """How games are played; how their moves are searched is the `SearchConfig`'s."""

    num_slots: int = 128
    """Games played at once: with one leaf per tree, the rows of the network's batch."""
    full_fraction: float = 1.0
    """Share of the moves searched with the whole budget, and recorded to be learned from. The others only carry the
    game on: they are searched with `fast_simulations`, without noise, and not recorded (playout-cap randomization)."""
    fast_simulations: int = 16
    """Budget of those others."""
    temperature_plies: int = 15
    """Moves from the start of the game drawn at the `SearchConfig`'s temperature; later ones at `late_temperature`."""
    late_temperature: float = 0.0
    """0 plays the best move. A Gumbel root draws in its own way, and both temperatures are left out."""
    opening_plies: int = 0
    """Most random moves at the start of a game; how many is drawn evenly from 0 to this. They are not recorded."""
    max_plies: int | None = None
    """A game of so many moves is called a draw. None: no limit."""
    reuse_tree: bool = True
    """Keep what was found below the move that is played."""
    resign_below: float | None = None
    """Give a game up whose value stays below this, e.g. -0.9. None: play every game to its end. The threshold in force
    is lower where the games that are played on show that more than `resign_max_error` would be given up wrongly."""
    resign_patience: int = 2
    """Moves in a row that must look lost."""
    resign_check_fraction: float = 0.1
    """Share of games played to the end to see who would have resigned wrongly."""
    resign_max_error: float = 0.05
    """Most players who did not lose that would have resigned."""

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
            raise ConfigError("resign_below needs some games played to the end: set resign_check_fraction above 0")


@dataclass(slots=True)
class SelfPlayStats:
    """What self-play has done since it was made; all counts only grow."""

    games: int = 0
    """Games that ended."""
    moves: int = 0
    """Moves of all games, those in progress included."""
    recorded_moves: int = 0
    """Moves that were searched with the whole budget and are learned from."""
    repeated_games: int = 0
    """Games that were move for move an earlier one."""
    resigned_games: int = 0
    """Games that were given up."""
    first_player_wins: int = 0
    """Games that player 0 won."""
    draws: int = 0
    """Games that nobody won."""
    simulations: int = 0
    """Over all searches."""
    evaluations: int = 0
    """Nodes expanded, less is evaluated if a cache knew some."""
    nn_batches: int = 0
    """Calls of the evaluator."""
    nn_positions: int = 0
    """Rows evaluated."""
    nn_places: int = 0
    """Rows that the batches had room for."""
    select_s: float = 0.0
    """Seconds that went into walking down trees."""
    encode_s: float = 0.0
    """Seconds that went into writing observations."""
    evaluate_s: float = 0.0
    """Seconds in the evaluator, or waiting for it."""
    complete_s: float = 0.0
    """Seconds that went into expanding and backing up."""
    total_s: float = 0.0
    """Seconds inside `play`."""

    def add_up(self, counts: Collection[Mapping[str, float]], *, without: Collection[str] = ()) -> None:
        """Set all numbers but those `without` to the sums of what several workers have counted, by name."""
        for number in fields(self):
            if number.name not in without:
                total = sum(counted.get(number.name, 0) for counted in counts)
                setattr(self, number.name, total if number.type == "float" else int(total))

    @property
    def batch_fill(self) -> float:
        """Rows evaluated as a share of the rows that the batches had room for."""
        return self.nn_positions / self.nn_places if self.nn_places else 0.0
