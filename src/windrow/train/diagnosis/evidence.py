"""What a diagnosis looks at: the settings and metrics of a run, its newest games and its network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow.games.core_game import CoreGame
from windrow.train.config import TrainConfig
from windrow.train.records import GameLog, GameRecord

_MAX_GAMES = 512
"""Newest games that are looked at: shares of them are known within two or three percent."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run as far as it is known; without games or a network the checks that need them are left out."""

    config: TrainConfig
    """The settings."""
    metrics: Sequence[Mapping[str, float]]
    """The lines of metrics.jsonl, oldest first."""
    is_over: bool = False
    """Whether the run has ended."""
    games: Sequence[GameRecord] = ()
    """The newest games."""
    game: CoreGame | None = None
    """What is played; None if it is not known."""
    net: Any = None
    """The network after the last iteration, a torch module; None to leave it out."""

    @property
    def num_steps(self) -> int:
        """Steps that the learner has taken."""
        return int(self.metrics[-1].get("steps", 0)) if self.metrics else 0

    def progress_at(self, row: Mapping[str, float]) -> float | None:
        """Share of the run that was done at a line of the metrics, from 0 to 1; None for a run without an end."""
        limits = (("iteration", self.config.num_iterations), ("total_s", self.config.time_limit_s))
        shares = [row.get(name, 0.0) / limit for name, limit in limits if limit]
        return min(max(shares), 1.0) if shares else None

    def mean(self, *names: str, over: str, amount: float) -> dict[str, float] | None:
        """Means of some metrics over the newest iterations that have them.

        Args:
            names: the metrics.
            over: the counter that weighs iterations, "steps" or "games".
            amount: how much of it the iterations must have together; with less the answer is None.
        """
        totals, weight = dict.fromkeys(names, 0.0), 0.0
        for index in range(len(self.metrics) - 1, -1, -1):
            row = self.metrics[index]
            if weight >= amount:
                break
            gained = row.get(over, 0.0) - (self.metrics[index - 1].get(over, 0.0) if index else 0.0)
            if gained > 0 and all(name in row for name in names):
                weight += gained
                for name in names:
                    totals[name] += gained * row[name]
        return {name: total / weight for name, total in totals.items()} if weight and weight >= amount else None


def newest_games(folder: Path) -> list[GameRecord]:
    """The newest games in a run's folder, `_MAX_GAMES` of them at most; none of a run that keeps no games.

    Raises:
        CheckpointError: a log is damaged.
    """
    logs = sorted(
        (path for path in (folder / "games").glob("*.games") if path.stem.isdigit()), key=lambda path: int(path.stem)
    )
    games: list[GameRecord] = []
    while logs and len(games) < _MAX_GAMES:
        games = GameLog.read(logs.pop())[-(_MAX_GAMES - len(games)) :] + games
    return games
