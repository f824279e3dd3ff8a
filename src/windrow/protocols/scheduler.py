"""Many searches at once, which come and go at any time, and one network call for the leaves of all.

A search is a tree in a forest. What the trees of a forest have in common (the rules of the search, the leaves in
flight, the seed) is fixed when it is made, so there is a forest for every kind of config in use; but a batch is
gathered from all of them, and goes to the evaluator in one call:

    forest A   | tree | tree | tree |  select ->  rows 0..23  |
    forest B   | tree |                select ->  rows 24..31 | -> one call -> complete, each forest its rows

Every tree draws the random numbers that a `Search` of that position alone would draw, and rounds decide what a search
finds and batches do not (cpp/forest.h). So the answer to a search is the one it would have had alone.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from windrow import _core
from windrow.config import SearchConfig
from windrow.engine_registry import AUTO
from windrow.engines import HostOptions
from windrow.errors import ConfigError, WindrowError
from windrow.evaluators.cache import PredictionCache, mix_version
from windrow.evaluators.port import EvaluatorPort
from windrow.games.core_game import CoreGame, State
from windrow.search.engines.batched import leaves_of_one_tree
from windrow.search.forest import make_forest, memory_for_trees, raise_in_words
from windrow.search.growth import Schedule

_NO_LIMIT = 2**31 - 2
_MAX_BATCH = 1024
"""Rows in one call, unless the config says: where the networks of most machines have no more to gain."""


@dataclass(eq=False, slots=True)
class Job:
    """One position to search, and how far it is.

    state: the position; a player is to move in it.
    config: how to search it.
    priority: a higher one begins first.
    tag: whatever the owner wants to know it by.
    """

    state: State
    config: SearchConfig
    priority: int = 0
    tag: Any = None
    pool: TreePool | None = field(default=None, init=False)
    tree: int = field(default=-1, init=False)
    started: float = field(default=0.0, init=False)
    is_waiting: bool = field(default=False, init=False)

    @property
    def is_running(self) -> bool:
        """Whether it has a tree."""
        return self.pool is not None


@dataclass(frozen=True, slots=True)
class Ending:
    """A job that has come to its end.

    stopped_by: "budget", "time", "memory" or "stop"; None if it failed.
    error: what went wrong, if something did.
    """

    job: Job
    stopped_by: str | None
    error: WindrowError | None = None


class TreePool:
    """One forest whose trees are lent to jobs with the same config."""

    def __init__(self, forest: _core.Forest, num_leaves: int) -> None:
        self.forest, self.num_leaves = forest, num_leaves
        self.jobs: dict[int, Job] = {}
        self.free: list[int] = []
        self.num_touched = 0
        """Trees that have been used since the forest was made: their memory stays with it."""

    @property
    def num_ready(self) -> int:
        """Trees that can be used without taking new memory."""
        return len(self.free)

    def take_tree(self, job: Job) -> int:
        """A tree for a job."""
        if self.free:
            tree = self.free.pop()
        else:
            tree, self.num_touched = self.num_touched, self.num_touched + 1
        self.jobs[tree] = job
        return tree

    def free_tree(self, tree: int) -> None:
        """Give a tree back, empty."""
        self.forest.uproot_many(np.array([tree], np.int32))
        del self.jobs[tree]
        self.free.append(tree)


class Scheduler:
    """Searches positions of one game with one evaluator, as many at once as there are trees.

        scheduler.add(Job(state, config))
        while scheduler.has_work:
            for ending in scheduler.step():
                ...                              # describe_tree(ending.job), then
                scheduler.remove(ending.job)

    Args:
        game: the rules.
        evaluator: priors and values.
        num_trees: positions searched at once; the others wait.
        config: the engine is "auto"; `max_memory` is shared by the trees, `max_batch` and `cache_memory` hold for all.
    """

    def __init__(self, game: CoreGame, evaluator: object, *, num_trees: int, config: SearchConfig) -> None:
        if num_trees < 1:
            raise ConfigError(f"num_trees must be at least 1, not {num_trees}")
        check_config(config)
        self.game, self.num_trees = game, num_trees
        self._max_memory = memory_for_trees(config)
        self.cache = PredictionCache(config.cache_memory) if config.cache_memory else None
        if self.cache is not None:
            self.cache.claim(game)
        self._number = 0 if self.cache is None else self.cache.number_of(evaluator)
        max_batch = config.options_for(HostOptions).max_batch
        self._max_batch = max_batch or _MAX_BATCH
        self._port = EvaluatorPort(game, evaluator, max_batch=max_batch)
        self._pools: dict[SearchConfig, TreePool] = {}
        self._waiting: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._turn = 0
        self.num_waiting = 0
        """Jobs that have no tree yet."""
        self.num_jobs = 0
        """Searches ended so far."""

    # --- Jobs -------------------------------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        """Queue a job; it begins as soon as there is a tree for it.

        Raises:
            ConfigError: its config asks for what belongs to all.
        """
        check_config(job.config)
        heapq.heappush(self._waiting, (-job.priority, next(self._numbers), job))
        job.is_waiting = True
        self.num_waiting += 1

    def remove(self, job: Job) -> None:
        """Forget a job, whether it waits, runs or has ended; its tree is given back, with all that was found in it."""
        if job.is_waiting:
            job.is_waiting = False
            self.num_waiting -= 1
        if job.pool is not None:
            job.pool.free_tree(job.tree)
            job.pool = None
            self.num_jobs += 1

    @property
    def running(self) -> list[Job]:
        """The jobs that have a tree."""
        return [job for pool in self._pools.values() for job in pool.jobs.values()]

    @property
    def has_work(self) -> bool:
        """Whether there is any job."""
        return any(pool.jobs for pool in self._pools.values()) or self.num_waiting > 0

    @property
    def num_batches(self) -> int:
        """Calls of the evaluator so far."""
        return self._port.num_batches

    @property
    def num_rows(self) -> int:
        """Positions evaluated so far."""
        return self._port.num_rows

    def close(self) -> None:
        """Free all trees."""
        for job in self.running:
            self.remove(job)
        self._waiting.clear()
        self.num_waiting = 0
        self._pools.clear()

    # --- One round --------------------------------------------------------------------------------------------

    def step(self) -> list[Ending]:
        """Begin what can begin, grow all trees by one batch, and tell which jobs have ended.

        Those keep their trees until they are removed.
        """
        endings = self._begin_waiting()
        pools = [pool for pool in self._pools.values() if pool.jobs]
        if pools:
            self._turn += 1
            first = self._turn % len(pools)
            endings += self._grow(pools[first:] + pools[:first])
        for pool in pools:
            endings += [Ending(pool.jobs[tree], self._why(pool, tree)) for tree in pool.forest.take_finished().tolist()]
        now = perf_counter()
        endings += [Ending(job, "time") for job in self.running if _is_late(job, now)]
        # A job ends once, by what happened first.
        return list({ending.job: ending for ending in reversed(endings)}.values())[::-1]

    def _grow(self, pools: list[TreePool]) -> list[Ending]:
        """Select from every pool, evaluate once, complete; what fails ends the jobs that it concerns."""
        port = self._port
        most = max(self._max_batch, *(pool.num_leaves for pool in pools))
        # Not more rows than all these trees can fill.
        wanted = min(most, sum(len(pool.jobs) * pool.num_leaves for pool in pools))
        (buffer,) = port.buffers(1, num_rows=_rounded(wanted, most))
        out: list[tuple[TreePool, _core.Batch, int]] = []
        endings: list[Ending] = []
        num_rows = 0
        try:
            for pool in pools:
                room = most - num_rows
                if num_rows and room < pool.num_leaves:
                    break
                rows = buffer.rows[num_rows:] if port.reads_observations else None
                room = min(room, len(buffer.rows) - num_rows)
                try:
                    batch = pool.forest.select(rows, room, 0, pool.forest.num_trees)
                except _core.GameFault as error:
                    endings.append(self._failed(pool, error))
                    continue
                if batch.num_rows:
                    out.append((pool, batch, num_rows))
                    num_rows += batch.num_rows
            if out:
                endings += self._evaluate(out, buffer, num_rows)
        except BaseException:
            for pool, _, _ in out:
                pool.forest.cancel_all()
            port.discard_buffers()
            raise
        return endings

    def _evaluate(self, out: list[tuple[TreePool, _core.Batch, int]], buffer: Any, num_rows: int) -> list[Ending]:
        port = self._port
        try:
            if port.takes_states:
                rows = np.concatenate([pool.forest.states(batch) for pool, batch, _ in out])
            else:
                rows = buffer.first(num_rows)
            logits, values = port.receive(port.submit_rows(rows, num_rows))
        except WindrowError as error:
            # Nobody knows whose position it was: all that took part fail, and the next ones may do better.
            port.discard_buffers()
            for pool, batch, _ in out:
                pool.forest.cancel(batch)
            return [Ending(job, None, error) for pool, _, _ in out for job in pool.jobs.values()]
        endings: list[Ending] = []
        for pool, batch, start in out:
            part = slice(start, start + batch.num_rows)
            try:
                pool.forest.complete(batch, logits[part], values[part])
            except (_core.BadEvaluation, _core.GameFault) as error:
                pool.forest.cancel_all()
                endings.append(self._failed(pool, error))
        return endings

    def _failed(self, pool: TreePool, error: Exception) -> Ending:
        """What a fault of one tree means for its job; the batch is cancelled already."""
        tree: int = error.args[1]
        roots = [self.game.initial_state()] * (tree + 1)
        roots[tree] = pool.jobs[tree].state
        try:
            raise_in_words(error, self.game, roots)
        except WindrowError as words:
            return Ending(pool.jobs[tree], None, words)

    def _why(self, pool: TreePool, tree: int) -> str:
        """What ended the search of a tree that has nothing left to do."""
        totals = pool.forest.totals(np.array([tree], np.int32))
        budget = pool.jobs[tree].config.num_simulations
        if totals["simulations"] == budget:
            return "budget"
        return "memory" if totals["full_trees"] else "proven" if totals["proven_trees"] else "budget"

    # --- Beginning --------------------------------------------------------------------------------------------

    def _begin_waiting(self) -> list[Ending]:
        """Give trees to those that wait, in order; who is first is waited for."""
        endings: list[Ending] = []
        while self._waiting:
            *_, job = self._waiting[0]
            if not job.is_waiting:  # removed meanwhile
                heapq.heappop(self._waiting)
                continue
            try:
                pool = self._pool_for(job)
                if pool is None:
                    break
                self._begin(pool, job)
            except WindrowError as error:
                endings.append(Ending(job, None, error))
            heapq.heappop(self._waiting)
            job.is_waiting = False
            self.num_waiting -= 1
        return endings

    def _pool_for(self, job: Job) -> TreePool | None:
        """A pool with a tree to spare; None if there is none at present.

        No more than `num_trees` trees hold memory, in all pools together: that is what keeps within `max_memory`.
        """
        key = shared_settings(job.config)
        pool = self._pools.get(key)
        if pool is not None and pool.num_ready:
            return pool
        if sum(other.num_touched for other in self._pools.values()) >= self.num_trees:
            # What other kinds of searches have left behind is given back to the system.
            for other in [other for other, kept in self._pools.items() if not kept.jobs and other != key]:
                del self._pools[other]
        if sum(other.num_touched for other in self._pools.values()) >= self.num_trees:
            return None
        if pool is None:
            schedule = Schedule(leaves_per_tree=key.leaves_per_tree or 1)
            config = key.replace(max_memory=self._max_memory)
            forest = make_forest(self.game, config, schedule, self.num_trees, self.cache)
            pool = self._pools[key] = TreePool(forest, schedule.leaves_per_tree)
        return pool

    def _begin(self, pool: TreePool, job: Job) -> None:
        tree = pool.take_tree(job)
        job.pool, job.tree, job.started = pool, tree, perf_counter()
        trees = np.array([tree], np.int32)
        budget = _NO_LIMIT if job.config.num_simulations is None else job.config.num_simulations
        key, move = self._random_key(job)
        rows = self.game.rows_of([job.state])
        try:
            pool.forest.reset_many(trees, self.game.to_references(rows))
            pool.forest.begin_many(
                trees,
                np.array([budget], np.int64),
                np.array([key], np.uint32),
                np.array([move], np.uint32),
                np.ones(1, bool),
                mix_version(self._number, self._port.version),
            )
        except _core.GameFault as error:
            raise_in_words(error, self.game, [job.state] * (tree + 1))

    def _random_key(self, job: Job) -> tuple[int, int]:
        """The key of the first search of a `Search` of this position alone."""
        if job.config.random_key == "tree":
            return 0, 0
        key = self.game.hash(job.state)
        return key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF


def check_config(config: SearchConfig) -> None:
    """Refuse what one search among many cannot have."""
    if config.trees_per_root > 1:
        raise ConfigError("every position has one tree here: set trees_per_root=1")
    if config.engine_name != AUTO:
        raise ConfigError(f"queries are searched together, in one way only: leave engine={config.engine_name} out")


def shared_settings(config: SearchConfig) -> SearchConfig:
    """What all trees of a forest have in common, as a config: equal ones can share a forest.

    The leaves in flight are those that a `Search` of one position would have.
    """
    is_gumbel = config.root == "gumbel"
    return config.replace(
        engine=AUTO,
        leaves_per_tree=leaves_of_one_tree(config),
        num_simulations=_NO_LIMIT if is_gumbel else None,
        time_limit_s=None if is_gumbel else 0.0,
        max_memory=None,
        cache_memory=None,
        temperature=1.0,
        random_key="tree",
    )


def _is_late(job: Job, now: float) -> bool:
    """Whether a job has used up its time; one whose root has no evaluation yet goes on until it has an answer."""
    limit = job.config.time_limit_s
    if limit is None or now < job.started + limit or job.pool is None:
        return False
    root = job.pool.forest.node(job.tree, [])
    return root is not None and root.kind == "expanded"


def _rounded(rows: int, most: int) -> int:
    """The next power of two, so that buffers are made anew only a few times."""
    return min(1 << max(rows - 1, 0).bit_length(), most)
