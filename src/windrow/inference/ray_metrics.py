"""Metrics of an inference actor for the Ray dashboard and for tools that read Ray's metrics, such as Prometheus."""

from __future__ import annotations

from time import monotonic
from typing import Any

_INTERVAL_S = 0.5
"""Minimum seconds between two reports; Ray collects metrics only every few seconds."""


class ActorMetrics:
    """Reports windrow_queue_depth, windrow_batch_fill, windrow_positions_per_second and windrow_positions, by actor."""

    def __init__(self, actor: int) -> None:
        from ray.util import metrics

        tags = {"tag_keys": ("actor",)}
        self._tags = {"actor": str(actor)}
        self._queue: Any = metrics.Gauge("windrow_queue_depth", "Rows in the queue when a batch was started.", **tags)
        self._fill: Any = metrics.Gauge("windrow_batch_fill", "Rows of a batch divided by max_batch.", **tags)
        self._rate: Any = metrics.Gauge("windrow_positions_per_second", "Rows evaluated per second.", **tags)
        self._total: Any = metrics.Counter("windrow_positions", "Rows evaluated.", **tags)
        self._since = monotonic()
        self._num_batches = self._num_rows = self._num_places = self._queued = 0

    def note_queue(self, num_rows: int) -> None:
        """Count a batch that is started while `num_rows` rows wait, including its own."""
        self._queued += num_rows

    def note_batch(self, num_rows: int, max_batch: int | None) -> None:
        """Count a batch that has ended, and report the metrics if the last report was long enough ago."""
        self._num_batches += 1
        self._num_rows += num_rows
        self._num_places += max(num_rows, max_batch or num_rows)
        now = monotonic()
        if now - self._since < _INTERVAL_S:
            return
        self._queue.set(self._queued / self._num_batches, self._tags)
        self._fill.set(self._num_rows / max(self._num_places, 1), self._tags)
        self._rate.set(self._num_rows / (now - self._since), self._tags)
        self._total.inc(self._num_rows, self._tags)
        self._since = now
        self._num_batches = self._num_rows = self._num_places = self._queued = 0
