"""Settings of the checkpoint ratings: the section `[strength]` of a `TrainConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from windrow.errors import ConfigError
from windrow.play.specs import parse_spec
from windrow.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class StrengthConfig(Settings):
    """Settings of the ratings of a run's checkpoints, by games against each other and against fixed players."""

    share: float = 0.05
    """Maximum share of the run's time that rating games may take. 0: no rating games."""
    opponents: tuple[str, ...] = ("random", "rollout:50")
    """Fixed players, the weakest first, named as for `windrow match`: "random", "rollout:400", "solver", or the folder
    of another run. A player joins once a checkpoint leads the player before it by 100 Elo. With an empty list,
    checkpoints play only each other."""
    num_simulations: int = 16
    """Simulations per move of the checkpoints in rating games."""

    def __post_init__(self) -> None:
        self._check_number("share", 0.0, 0.5)
        given: Any = self.opponents
        names = cast("Sequence[Any]", given.split() if isinstance(given, str) else given)
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(f"opponents must be a list of players such as 'random', not {given!r:.100}")
        for name in cast("Sequence[str]", names):
            if "engine" in parse_spec(name).settings:
                # A run's folder may come from a stranger, and some engines connect elsewhere or import what they name.
                raise ConfigError(f"opponents cannot choose an engine: remove engine= from {name!r:.100}")
        object.__setattr__(self, "opponents", tuple(dict.fromkeys(cast("Sequence[str]", names))))
        self._check_integer("num_simulations", 0, 2**31 - 2)
