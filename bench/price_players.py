"""A trained network and the searches made with it, which share a cache of what it has said.

All cases search the same or like positions with the same network, so that most evaluations are known after the first:
the cache changes no visit (docs/search.md), and a machine measures several times as much in the same time.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from price_cases import Case

from windrow import Search, SearchConfig
from windrow.cores import num_cores
from windrow.engines import Vectorized
from windrow.evaluators import Evaluator, NetworkEvaluator, PredictionCache, load
from windrow.evaluators.protocol import Observations, Pending
from windrow.memory import spare_memory
from windrow.nets import fold
from windrow.train import load_model

MAX_BATCH = 8192
_MORE_COPIES = 2
"""Of the network on a GPU, beside the first."""
_AS_TRAINED = ("c_puct", "first_play", "first_play_reduction")


@dataclass(slots=True)
class Counts:
    """What was done so far."""

    simulations: int = 0
    rows: int = 0

    def rates(self, seconds: float) -> str:
        """In words."""
        return f"{self.simulations / seconds:,.0f} simulations/s, {self.rows / seconds:,.0f} rows/s"


class Crew(Evaluator):
    """A network for searches in several threads: copies of it, each of which takes one call after another.

    Calls of few rows do not fill a GPU; those of several copies, each on a stream of its own, run side by side.
    """

    def __init__(self, copies: Sequence[NetworkEvaluator]) -> None:
        self._copies = [(copy, threading.Lock()) for copy in copies]
        self._turns = itertools.count()
        self.pipeline, self.allocate = copies[0].pipeline, copies[0].allocate

    def bind(self, game: Any) -> Crew:
        """Itself: a cache must know it again."""
        for copy, _ in self._copies:
            copy.bind(game)
        return self

    def evaluate(self, observations: Observations) -> Any:
        """Evaluate K positions; blocks."""
        return self.submit(observations).result()

    def submit(self, observations: Observations) -> Pending:
        """Begin to evaluate K positions."""
        copy, lock = self._copies[next(self._turns) % len(self._copies)]
        with lock:
            return copy.submit(observations)

    def close(self) -> None:
        """Free them."""
        for copy, _ in self._copies:
            copy.close()


class Trained:
    """A network of a run's folder or a checkpoint, ready to search with.

    Args:
        path: of the folder or the model.safetensors file.
        backend: what runs the network; "auto" is bfloat16 in CUDA graphs where there is a GPU, else what is fastest.
        cache_bytes: for evaluations; None takes a third of what the machine has to spare.
        max_batch: most rows in one call.
        num_at_once: searches at the same time, each in a thread; None: on a GPU, which waits for rounds of few trees,
            three quarters of the cores, and else one search on all of them.
    """

    def __init__(
        self,
        path: Path,
        *,
        backend: str,
        cache_bytes: int | None,
        max_batch: int = MAX_BATCH,
        num_at_once: int | None = None,
    ) -> None:
        model = load_model(path)
        self.game: Any = model.game
        self.label = describe_network(model.metadata, model.spec)
        if backend == "auto":
            import torch

            backend = "cuda-bf16" if torch.cuda.is_available() else "auto"
        self.evaluator: Any = load(fold(model.net), game=model.game, backend=backend, batch=256)
        copies = [self.evaluator]
        trained_with: dict[str, Any] = model.metadata.get("search") or {}
        settings = {key: trained_with[key] for key in _AS_TRAINED if key in trained_with}
        has_gpu = self.evaluator.device == "cuda"
        # With every core taken by trees the GPU's driver waits for one.
        threads = max(1, num_cores() - num_cores() // 4) if has_gpu else None
        self.num_at_once = num_at_once or threads or 1
        if has_gpu:
            copies += [load(fold(model.net), game=model.game, backend=backend) for _ in range(_MORE_COPIES)]
            self._capture_graphs(copies, max_batch)
        self._crew = Crew(copies)
        self._config, self._max_batch, self._num_threads = SearchConfig().with_settings(settings), max_batch, threads
        self._threads_of_many = max(1, (threads or num_cores()) // self.num_at_once)
        self._cache = PredictionCache(spare_memory() // 3 if cache_bytes is None else cache_bytes)
        self._lock = threading.Lock()
        self.counts = Counts()

    def _capture_graphs(self, copies: Sequence[NetworkEvaluator], max_batch: int) -> None:
        """All there will be, now: while one is captured no other thread may use the device."""
        from windrow.evaluators.backends.torch_cuda import SIZES

        num_rows = 1
        while num_rows <= max_batch:
            for copy in copies:
                copy.evaluate(np.zeros((num_rows, *self.game.observation), np.float32))
            num_rows = SIZES.fit(num_rows) + 1

    def search(
        self, case: Case, *, engine: str = "vectorized", evaluator: Any = None, is_one_of_many: bool = False
    ) -> Search:
        """A search as the case says; with another evaluator, without the cache.

        is_one_of_many: others run at the same time, so it gets its share of the cores.
        """
        options = Vectorized(num_threads=self._num_threads, max_batch=self._max_batch)
        if is_one_of_many and self.num_at_once > 1:
            # The others fill the time in which one waits: its batches need not be halved for that.
            options = options.replace(num_threads=self._threads_of_many, pipeline=1)
        config = self._config.replace(
            num_simulations=case.simulations,
            in_flight=case.in_flight,
            on_collision=case.on_collision,
            leaves_per_tree=case.leaves,
            engine=options if engine == options.name else engine,
        )
        if evaluator is not None:
            return Search(self.game, evaluator, config)
        return Search(self.game, self._crew, config, cache=self._cache)

    def choose(self, search: Search, states: Sequence[Any]) -> list[int]:
        """The most visited move in every position."""
        chosen = [result.best_action for result in search.run(list(states))]
        self.count(search)
        return chosen

    def count(self, search: Search) -> None:
        """Add what the search has just done to the counts."""
        stats = search.stats
        assert stats is not None
        if stats.stopped_by != "budget":
            raise SystemExit(
                f"a search ended by {stats.stopped_by}, not by its budget: try --cache-gb, or fewer --pairs"
            )
        with self._lock:
            self.counts.simulations += stats.simulations
            self.counts.rows += stats.nn_positions

    def cache_use(self) -> str:
        """How full the cache is."""
        used = self._cache.stats
        return f"cache {used.bytes / 2**30:.1f} of {self._cache.max_bytes / 2**30:.1f} GiB, {used.evictions:,} evicted"

    def close(self) -> None:
        """Free the network."""
        self._crew.close()


def describe_network(metadata: dict[str, Any], spec: dict[str, Any]) -> str:
    """Its shape and how long it has learned."""
    shape = ", ".join(f"{spec[key]} {key}" for key in ("channels", "blocks") if key in spec)
    metrics: dict[str, float] = metadata.get("metrics") or {}
    learned = f"{metrics['games']:,.0f} games in {metrics['total_s']:.0f} s" if "games" in metrics else "unknown"
    return f"{spec.get('kind', 'network')} of {shape}; trained on {learned}"
