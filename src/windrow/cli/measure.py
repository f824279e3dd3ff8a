"""Measures where the time of a search goes, and how fast the network is on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from windrow.config import SearchConfig
from windrow.cores import num_cores
from windrow.engines import HostOptions
from windrow.evaluators.positions import random_positions
from windrow.evaluators.protocol import GameAware, StateEvaluator, count_rows, version_of
from windrow.games.core_game import CoreGame, State
from windrow.search import Search, SearchStats
from windrow.search.engines import find_engine
from windrow.tune.network import network_rate

_NUM_BARS = 10


@dataclass
class Recorder:
    """An evaluator that records the batch size of every call to another evaluator.

    Args:
        rows: list to which each call's batch size is appended.
    """

    evaluator: Any
    rows: list[int] = field(default_factory=list[int])

    def bind(self, game: Any) -> Any:
        """A recorder around the evaluator that is bound to `game`."""
        bound = self.evaluator.bind(game) if isinstance(self.evaluator, GameAware) else self.evaluator
        return (_StateRecorder if isinstance(bound, StateEvaluator) else _NetworkRecorder)(bound, self.rows)


class _StateRecorder:
    def __init__(self, evaluator: Any, rows: list[int]) -> None:
        self._evaluator, self._rows = evaluator, rows

    def evaluate_states(self, states: Any) -> Any:
        self._rows.append(len(states))
        return self._evaluator.evaluate_states(states)


class _NetworkRecorder:
    def __init__(self, evaluator: Any, rows: list[int]) -> None:
        self._evaluator, self._rows = evaluator, rows

    @property
    def pipeline(self) -> int:
        return getattr(self._evaluator, "pipeline", 1)

    @property
    def version(self) -> int:
        return version_of(self._evaluator)

    def allocate(self, shape: tuple[int, ...]) -> Any:
        allocate = getattr(self._evaluator, "allocate", None)
        return np.empty(shape, np.float32) if allocate is None else allocate(shape)

    def evaluate(self, observations: Any) -> Any:
        self._rows.append(count_rows(observations))
        return self._evaluator.evaluate(observations)

    def submit(self, observations: Any) -> Any:
        self._rows.append(count_rows(observations))
        return self._evaluator.submit(observations)


@dataclass(frozen=True, slots=True)
class Profile:
    """Breakdown of the time of a search.

    stats: statistics of the search.
    batch_rows: rows in every call of the evaluator.
    places: rows in a full call.
    network_rate: positions per second of the network alone, at full batches; None without a network.
    network_idle: share of the time, 0 to 1, in which the network was idle; None without a network.
    """

    stats: SearchStats
    batch_rows: tuple[int, ...]
    places: int
    network_rate: float | None
    network_idle: float | None

    def stages(self) -> dict[str, float]:
        """Seconds by stage; "other" is the Python code between the stages."""
        stats = self.stats
        seconds = {
            "select": stats.select_s,
            "encode": stats.encode_s,
            "evaluate": stats.evaluate_s,
            "complete": stats.complete_s,
        }
        return {**seconds, "other": max(0.0, stats.total_s - sum(seconds.values()))}

    def fill_histogram(self) -> list[int]:
        """Number of calls whose batch was up to 10 % full, up to 20 % full, and so on up to 100 %."""
        bars = [0] * _NUM_BARS
        for rows in self.batch_rows:
            bars[min(_NUM_BARS - 1, max(0, -(-rows * _NUM_BARS // self.places) - 1))] += 1
        return bars

    @property
    def network_share(self) -> float | None:
        """Positions per second of the search, as a share of the network's own rate."""
        if self.network_rate is None or self.stats.total_s <= 0:
            return None
        return self.stats.nn_positions / self.stats.total_s / self.network_rate

    def advice(self) -> str:
        """The first thing to change, in one sentence."""
        stats, stages = self.stats, self.stages()
        evaluate = stages["evaluate"] / max(stats.total_s, 1e-9)
        mean_rows = stats.nn_positions / max(stats.nn_batches, 1)
        if self.network_rate is None:
            return (
                f"This search has no network; its evaluator takes {evaluate:.0%} of the time. "
                "Profile with --evaluator resnet or a checkpoint to see how busy a network is."
            )
        if stats.num_trees == 1 and mean_rows < 8:
            return (
                f"A network call has only {mean_rows:.1f} positions. Search more positions at once (--trees), or "
                "allow more leaves in flight (--leaves) if you search a single position."
            )
        if mean_rows < 0.6 * self.places:
            return (
                f"Network calls are only {mean_rows / self.places:.0%} full, because some trees finish before others. "
                "Replace finished positions at once, as self-play does, or search more of them together (--trees)."
            )
        if self.network_idle is not None and self.network_idle > 0.15:
            slowest = max(("select", "encode", "complete", "other"), key=lambda name: stages[name])
            can_thread = stats.num_threads < num_cores() and slowest in ("select", "encode", "complete")
            what = "grow trees on more threads (--threads)" if can_thread else "evaluate larger batches (--trees)"
            return f"The network is idle for {self.network_idle:.0%} of the time, mostly during {slowest}: {what}."
        return (
            f"The network is the bottleneck ({evaluate:.0%} of the time). Only a faster backend (windrow bench "
            "backends), a prediction cache (--set cache_memory=64MB) or a smaller network can speed this up."
        )

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain values, for JSON."""
        return {
            "seconds": {**self.stages(), "total": self.stats.total_s},
            "simulations_per_second": self.stats.simulations_per_second,
            "positions_per_second": self.stats.nn_positions / max(self.stats.total_s, 1e-9),
            "batch_fill": self.stats.batch_fill,
            "batch_fill_histogram": self.fill_histogram(),
            "network_positions_per_second": self.network_rate,
            "network_share": self.network_share,
            "network_idle": self.network_idle,
            "advice": self.advice(),
            "stats": asdict(self.stats),
        }


def profile_search(
    game: CoreGame, evaluator: Any, config: SearchConfig, states: Sequence[State], *, is_network: bool
) -> Profile:
    """Search `states` once to warm up, then once more to measure."""
    recorder = Recorder(evaluator)
    with Search(game, recorder, config) as search:
        stats = search.run(list(states), num_simulations=min(8, config.num_simulations or 8))[0].stats
        recorder.rows.clear()
        has_all_trees = find_engine(stats.engine).capabilities.batches_trees
        places = stats.num_trees * stats.leaves_per_tree if has_all_trees else stats.leaves_per_tree
        places = max(1, -(-places // stats.pipeline))
        places = min(places, config.options_for(HostOptions).max_batch or places)
        if not is_network:
            return Profile(search.run(list(states))[0].stats, tuple(recorder.rows), places, None, None)
        # The network alone right before and right after, so that what slows the machine slows both.
        observations = random_positions(game, min(places, 256)).repeat(places)
        before = network_rate(evaluator, observations)
        stats = search.run(list(states))[0].stats
        after = network_rate(evaluator, observations)
    rate = 2.0 / (1.0 / before + 1.0 / after)
    # An asynchronous network works while the CPU selects, so that waiting for it says nothing about its own time.
    busy_s = stats.evaluate_s if stats.pipeline == 1 else stats.nn_positions / rate
    idle = max(0.0, 1.0 - busy_s / stats.total_s)
    return Profile(stats, tuple(recorder.rows), places, rate, idle)
