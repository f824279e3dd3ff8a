"""How a run rates its checkpoints: the section `[strength]` of a `TrainConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from windrow.errors import ConfigError
from windrow.play.specs import parse_spec
from windrow.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class StrengthConfig(Settings):
    """How a run rates its checkpoints by games against each other and against fixed players."""

    share: float = 0.05
    """Largest share of the run's time that rating games may take. 0 turns them off."""
    opponents: tuple[str, ...] = ("random", "rollout:50")
    """Fixed players, the weakest first, named as for `windrow match`: "random", "rollout:400", "solver", the folder of
    another run. Each joins once a checkpoint leads the one before it by 100 Elo. May be empty: checkpoints then play
    only each other."""
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
                raise ConfigError(f"opponents cannot choose an engine: leave engine= out of {name!r:.100}")
        object.__setattr__(self, "opponents", tuple(dict.fromkeys(cast("Sequence[str]", names))))
        self._check_integer("num_simulations", 0, 2**31 - 2)
