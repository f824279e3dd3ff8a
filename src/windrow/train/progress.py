"""How far a training run is: what it counts, its limits, and what follows from both."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from windrow.errors import CheckpointError

if TYPE_CHECKING:
    from windrow.train.config import TrainConfig

FULL_SIMULATIONS_AT = 0.7
"""Share of a run after which `early_simulations` have risen to the whole budget."""
ITERATION_SHARE = 0.05
"""Longest iteration, as a share of the run's time limit: a short run has about twenty iterations too, and learns from
the first one's games long before its end."""


@dataclass(slots=True)
class Counters:
    """What a run has counted; saved with every checkpoint."""

    iteration: int = 0
    games: int = 0
    positions: int = 0
    """Recorded moves."""
    moves: int = 0
    simulations: int = 0
    nn_positions: int = 0
    steps: int = 0
    """Of the learner."""
    samples_owed: float = 0.0
    """Samples that the games so far allow and the learner has not taken."""
    next_game: int = 0
    selfplay_s: float = 0.0
    learn_s: float = 0.0
    strength_s: float = 0.0
    """Seconds of rating games."""
    total_s: float = 0.0
    resign_margins: list[float] = field(default_factory=list[float])

    @classmethod
    def restore(cls, saved: dict[str, Any], path: Path) -> Counters:
        """Counters from the checkpoint in `path`; what other versions of windrow have counted is left out."""
        counters = cls(**{key: value for key, value in saved.items() if key in cls.__dataclass_fields__})
        for name, usual in asdict(cls()).items():
            value = getattr(counters, name)
            numbers = cast("list[Any]", value if isinstance(value, list) else [value])
            is_sound = all(isinstance(number, int if isinstance(usual, int) else int | float) for number in numbers)
            if not is_sound or isinstance(value, list) != isinstance(usual, list):
                raise CheckpointError(f"{path} is damaged: its counter {name} is {value!r:.100}")
        return counters

    def summary(self) -> dict[str, float]:
        """Counts, seconds, and speeds over the seconds of self-play."""
        playing_s = max(self.selfplay_s, 1e-9)
        return {
            "iterations": self.iteration,
            "games": self.games,
            "positions": self.positions,
            "steps": self.steps,
            "simulations": self.simulations,
            "simulations_per_s": self.simulations / playing_s,
            "nn_positions_per_s": self.nn_positions / playing_s,
            "selfplay_s": self.selfplay_s,
            "learn_s": self.learn_s,
            "strength_s": self.strength_s,
            "total_s": self.total_s,
        }


class Progress:
    """The counters of a run, its clock, and how far that is on the way to its limits.

    Args:
        counters: where the run is. The run itself counts iterations and seconds, a strategy everything else.
    """

    def __init__(self, config: TrainConfig, counters: Counters) -> None:
        self._config, self.counters = config, counters
        self._start, self._before = perf_counter(), counters.total_s

    def begin_iteration(self) -> None:
        """The clock of an iteration starts."""
        self._start, self._before = perf_counter(), self.counters.total_s

    @property
    def iteration_s(self) -> float:
        """Seconds since the present iteration began."""
        return perf_counter() - self._start

    def update(self) -> None:
        """Count the seconds up to now. Within an iteration, `share` only moves when this is called."""
        self.counters.total_s = self._before + self.iteration_s

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached, as far as counted."""
        config, counters = self._config, self.counters
        if config.num_iterations is not None and counters.iteration >= config.num_iterations:
            return True
        return config.time_limit_s is not None and counters.total_s >= config.time_limit_s

    @property
    def is_late(self) -> bool:
        """Whether the time limit has passed by the clock: an iteration ends early then."""
        limit_s = self._config.time_limit_s
        return limit_s is not None and self._before + self.iteration_s >= limit_s

    def is_long(self, share: float = 1.0) -> bool:
        """Whether the present iteration has used up its part of the time limit, or `share` of that part.

        An iteration ends then with whatever it has. Without a time limit it never does.
        """
        limit_s = self._config.time_limit_s
        return limit_s is not None and self.iteration_s >= share * ITERATION_SHARE * limit_s

    @property
    def share(self) -> float:
        """How much of the run is done, from 0 to 1, the present iteration included; 0 where it has no end."""
        config, counters = self._config, self.counters
        shares = [0.0]
        if config.num_iterations:
            shares.append(counters.iteration / config.num_iterations)
        if config.time_limit_s:
            shares.append(counters.total_s / config.time_limit_s)
        return min(max(shares), 1.0)

    @property
    def num_simulations(self) -> float:
        """Simulations of a full search that are due now: from `early_simulations` on they rise evenly."""
        config = self._config
        first, last = simulation_range(config)
        # An iteration's own number is not known to the clock: it counts as begun.
        begun = max(self.share - (1.0 / config.num_iterations if config.num_iterations else 0.0), 0.0)
        return first + (last - first) * min(begun / FULL_SIMULATIONS_AT, 1.0)


def simulation_range(config: TrainConfig) -> tuple[int, int]:
    """Simulations of a full search at the beginning of a run and at its end."""
    last = config.search.num_simulations or 0
    return min(config.early_simulations or last, last), last
