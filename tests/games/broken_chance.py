"""Games with dice that are wrong."""

from __future__ import annotations

from typing import Any

from defects import Defects
from sound_games import Race, SampledRace

broken = Defects()


@broken("chance", "chance_outcomes")
class DescendingDice(Race):
    """Lists the sides from the end."""

    def chance_outcomes(self, state: Any) -> Any:
        return super().chance_outcomes(state)[::-1]


@broken("chance", "chance_outcomes")
class DoubleSide(Race):
    """Lists a side twice."""

    def chance_outcomes(self, state: Any) -> Any:
        return [(0, 1 / state[3]), *super().chance_outcomes(state)[:-1]]


@broken("chance", "chance_outcomes")
class ImpossibleSide(Race):
    """Lists a side that never comes up."""

    def chance_outcomes(self, state: Any) -> Any:
        return [*super().chance_outcomes(state), (6, 0.0)]


@broken("chance", "chance_outcomes")
class LoadedDice(Race):
    """Probabilities that sum to less than 1."""

    def chance_outcomes(self, state: Any) -> Any:
        return super().chance_outcomes(state)[:-1]


@broken("chance", "chance_outcomes")
class BareOutcomes(Race):
    """Outcomes without probabilities."""

    def chance_outcomes(self, state: Any) -> Any:
        return list(range(state[3]))


@broken("chance", "chance_outcomes")
class NoOutcome(Race):
    """Chance that can do nothing."""

    def chance_outcomes(self, state: Any) -> Any:
        return [] if state[0] > 3 else super().chance_outcomes(state)


@broken("exception", "apply")
class LostDie(Race):
    """Cannot play an outcome that it lists."""

    def apply(self, state: Any, move: int) -> Any:
        if state[3] == 6 and move == 5:
            raise IndexError("no such side")
        return super().apply(state, move)


@broken("chance", "sample_outcome")
class FractionalDice(SampledRace):
    """Draws what is no integer."""

    def sample_outcome(self, state: Any, seed: int) -> Any:
        return 0.5


class FixedDice(SampledRace):
    """Always draws a two: allowed, but strange."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        return 1
