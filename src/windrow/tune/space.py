"""What there is to choose from: engines, trees, leaves per tree, threads or workers, batches and how many are out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.engine_registry import engine_names
from windrow.search.engine import Engine
from windrow.search.engines import engines_that, find_engine

_MIN_TREES = 8
_MAX_LEAVES = 64
"""The most that the price was measured for."""
_LEAST_EFFICIENCY = 0.25
"""Candidates that must be four times as fast to be worth anything are not tried."""
_FREE_TREES = (-3, -2, -1, 0, 1, 2)
"""Powers of two around the trees whose leaves fill a batch."""
_COMPILED_TREES = (1024, 4096)
"""Each is compiled anew, which takes long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way to run a search. What is None does not matter to its engine.

    engine, leaves_per_tree: as in `SearchConfig`.
    num_threads, num_workers, pipeline, max_batch: as in the options of the engine.
    """

    engine: str
    num_trees: int
    """Positions searched together."""
    leaves_per_tree: int = 1
    num_threads: int | None = None
    num_workers: int | None = None
    pipeline: int | None = None
    max_batch: int | None = None
    on_collision: str | None = None
    """What happens to a leaf that is selected again, with several leaves per tree."""

    @property
    def able(self) -> Capabilities:
        """What its engine can do."""
        return find_engine(self.engine).capabilities

    @property
    def rows(self) -> int:
        """Rows of a full call of the network."""
        if not self.able.batches_trees:
            return self.leaves_per_tree
        rows = -(-self.num_trees // (self.pipeline or 1)) * self.leaves_per_tree
        return rows if self.max_batch is None else min(rows, max(self.max_batch, self.leaves_per_tree))

    def settings(self) -> dict[str, Any]:
        """Its settings of a search and of the engine, by name, for `SearchConfig.with_settings`."""
        names = ("num_threads", "num_workers", "pipeline", "max_batch", "on_collision")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"engine": self.engine, "leaves_per_tree": self.leaves_per_tree, **given}

    def simplicity(self) -> tuple[int, ...]:
        """Smaller is simpler: fewer leaves in flight, trees, engines' parts. Decides between equals."""
        return (
            self.leaves_per_tree,
            self.num_trees,
            engine_names().index(self.engine),  # simpler ones come first
            self.num_workers or 0,
            self.num_threads or 0,
            self.pipeline or 0,
            0 if self.max_batch is None else 1,
            0 if self.on_collision != "skip" else 1,
        )

    def in_words(self) -> str:
        """The candidate in a few words."""
        trees = f"{self.num_trees} tree{'s' if self.num_trees > 1 else ''} x {self.leaves_per_tree}"
        more = [
            f"{value} {name}"
            for value, name in (
                (self.num_threads, "threads"),
                (self.num_workers, "workers"),
                (self.pipeline, "batches out"),
            )
            if value is not None and value > 1
        ]
        if self.max_batch is not None:
            more.append(f"batches of {self.max_batch}")
        if self.on_collision is not None:
            more.append(self.on_collision)
        return ", ".join([f"{self.engine} {trees}", *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The limits within which is chosen.

    base: the search as the user wants it, with its budget.
    engines: which may be chosen.
    num_positions: searched together; None if that may be chosen too, as in self-play.
    num_cores: of this machine.
    evaluator_pipeline: batches that the evaluator likes to have out at once.
    full_batch: rows at which the network is about as fast as it gets.
    max_trees: most trees.
    collisions: the collision modes to choose from, with several leaves per tree.
    """

    base: SearchConfig
    engines: tuple[str, ...]
    num_positions: int | None
    num_cores: int
    evaluator_pipeline: int
    full_batch: int
    max_trees: int
    collisions: tuple[str, ...] = ("share", "skip")

    def coarse(self, efficiency: Callable[[Candidate], float]) -> list[Candidate]:
        """What is tried first; `efficiency` says what a candidate's simulation is worth."""
        found: list[Candidate] = []
        for engine in self.engines:
            for candidate in self._of_engine(engine, list(_doubling(self._max_leaves()))):
                found += [
                    self.resolve(variant)
                    for variant in self._collisions(candidate)
                    if efficiency(variant) >= _LEAST_EFFICIENCY
                ]
        return list(dict.fromkeys(found))

    def references(self) -> list[Candidate]:
        """What is measured to compare with, and not chosen: one leaf at a time."""
        single = one_leaf_engine()
        if self.num_positions == 1 or single in self.engines:
            return []
        return [Candidate(engine=single, num_trees=self.num_positions or 1)]

    def around(self, candidate: Candidate) -> list[Candidate]:
        """Candidates that differ from a good one in one thing."""
        found: list[Candidate] = []
        knobs = candidate.able.knobs
        if "leaves_per_tree" in knobs and candidate.leaves_per_tree > 1:
            found += [
                replace(candidate, leaves_per_tree=leaves)
                for leaves in (candidate.leaves_per_tree * 3 // 4, candidate.leaves_per_tree * 3 // 2)
                if 1 < leaves <= self._max_leaves() and leaves != candidate.leaves_per_tree
            ]
        if "num_threads" in knobs:
            threads = {count for count in (*_doubling(self.num_cores), self.num_cores) if count <= candidate.num_trees}
            found += [replace(candidate, num_threads=count) for count in sorted(threads)]
            if self.evaluator_pipeline > 1:
                found += [replace(candidate, pipeline=depth) for depth in (1, 2, 3)]
        if "max_batch" in knobs and candidate.rows > 1.5 * self.full_batch:
            found.append(replace(candidate, max_batch=self.full_batch))
        if "num_workers" in knobs:
            workers = {max(1, self.num_cores // 2), max(1, self.num_cores - 1), self.num_cores}
            found += [self.resolve(replace(candidate, num_workers=count, pipeline=None)) for count in sorted(workers)]
            found += [replace(candidate, pipeline=depth) for depth in (1, 2)]
        if self.num_positions is None and {"trees", "leaves_per_tree"} <= set(knobs):
            trees = (candidate.num_trees * 3 // 4, candidate.num_trees * 3 // 2)
            found += [replace(candidate, num_trees=count) for count in trees if _MIN_TREES <= count <= self.max_trees]
        return [other for other in dict.fromkeys(found) if other != candidate]

    def resolve(self, candidate: Candidate) -> Candidate:
        """The candidate with what windrow itself would choose for what is left open."""
        config, pipeline = self.base.with_settings(candidate.settings()), self.evaluator_pipeline
        chosen = find_engine(candidate.engine).fill_in(config, candidate.num_trees, evaluator_pipeline=pipeline)
        return replace(candidate, **chosen)

    def _of_engine(self, engine: str, leaves: Sequence[int]) -> Iterator[Candidate]:
        able = find_engine(engine).capabilities
        if "trees" not in able.knobs:
            for count in leaves if "leaves_per_tree" in able.knobs else [1]:
                if count > 1 or able.max_leaves == 1:
                    yield Candidate(engine=engine, num_trees=self.num_positions or 1, leaves_per_tree=count)
            return
        for num_trees in self._trees(able):
            if "num_workers" in able.knobs:
                if num_trees >= max(2, self.num_cores):
                    yield Candidate(engine=engine, num_trees=num_trees, num_workers=self.num_cores)
                continue
            for count in leaves if "leaves_per_tree" in able.knobs else [1]:
                # A round of many more rows than the network wants only waits longer.
                if count == 1 or num_trees * count <= 2 * self.full_batch:
                    yield Candidate(engine=engine, num_trees=num_trees, leaves_per_tree=count)

    def _collisions(self, candidate: Candidate) -> list[Candidate]:
        if candidate.leaves_per_tree == 1:
            return [candidate]
        return [replace(candidate, on_collision=mode) for mode in self.collisions]

    def _trees(self, able: Capabilities) -> Sequence[int]:
        """How many positions are tried together."""
        if self.num_positions is not None:
            return [self.num_positions] if self.num_positions <= self.max_trees or not able.is_compiled else []
        if able.is_compiled:
            return [count for count in _COMPILED_TREES if count <= self.max_trees]
        around = (int(self.full_batch * 2.0**power) for power in _FREE_TREES)
        counts = sorted({max(min(_MIN_TREES, self.max_trees), min(self.max_trees, count)) for count in around})
        return counts if able.is_deterministic else counts[-3:]  # with actors elsewhere, few trees never pay

    def _max_leaves(self) -> int:
        return max(1, min(_MAX_LEAVES, self.base.num_simulations or _MAX_LEAVES))


def default_engines(num_positions: int | None, *, has_device: bool) -> tuple[str, ...]:
    """The engines to choose from where nobody says: a cluster only if asked for, trees on a device if there is one."""
    batches = num_positions != 1

    def is_candidate(engine: type[Engine]) -> bool:
        able = engine.capabilities
        if able.evaluator == "device":
            return batches and has_device
        return able.batches_trees == batches and able.evaluator == "here" and not able.is_choice

    return engines_that(is_candidate)


def one_leaf_engine() -> str:
    """The engine that has one leaf in flight: what others are compared with."""
    (name, *_) = engines_that(lambda engine: engine.capabilities.max_leaves == 1)
    return name


def _doubling(most: int) -> Iterable[int]:
    """1, 2, 4 and so on up to `most`."""
    count = 1
    while count <= most:
        yield count
        count *= 2
