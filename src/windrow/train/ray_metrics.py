"""What self-play tells the Ray dashboard, by way of Prometheus."""

from __future__ import annotations

from time import monotonic
from typing import Any

_EVERY_S = 1.0


class RayMetrics:
    """Counters and gauges of one self-play; `update` may be called as often as one likes."""

    def __init__(self, game: str) -> None:
        from ray.util import metrics

        tags = {"tag_keys": ("game",)}
        made: dict[str, Any] = {
            "games_total": metrics.Counter("windrow_selfplay_games", "Games finished", **tags),
            "positions_total": metrics.Counter("windrow_selfplay_positions", "Positions evaluated", **tags),
            "games_per_s": metrics.Gauge("windrow_selfplay_games_per_second", "Games per second", **tags),
            "positions_per_s": metrics.Gauge("windrow_selfplay_positions_per_second", "Positions per second", **tags),
            "policy_lag": metrics.Gauge("windrow_selfplay_lag", "Most versions behind the newest weights", **tags),
            "workers": metrics.Gauge("windrow_selfplay_workers", "Workers that are up", **tags),
            "games_open": metrics.Gauge("windrow_selfplay_games_open", "Games in progress", **tags),
        }
        for metric in made.values():
            metric.set_default_tags({"game": game})
        self._metrics = made
        self._since = monotonic()
        self._games = self._positions = self._lag = 0

    def update(self, *, games: int, positions: int, lag: int, workers: int, games_open: int) -> None:
        """Say how things are; `games` and `positions` are counts since the beginning."""
        self._lag = max(self._lag, lag)
        elapsed = monotonic() - self._since
        if elapsed < _EVERY_S:
            return
        metrics = self._metrics
        for name, count in (("games", games - self._games), ("positions", positions - self._positions)):
            metrics[f"{name}_per_s"].set(count / elapsed)
            if count > 0:
                metrics[f"{name}_total"].inc(count)
        metrics["policy_lag"].set(self._lag)
        metrics["workers"].set(workers)
        metrics["games_open"].set(games_open)
        self._since, self._games, self._positions, self._lag = monotonic(), games, positions, 0
