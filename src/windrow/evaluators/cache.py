"""The prediction cache: a position is evaluated only once.

`PredictionCache` is part of the C++ core. A `Search` asks it whenever it selects a leaf, so a known position never
enters a batch, and equal positions within a batch are evaluated once. `CachingEvaluator` puts a cache around any
evaluator, for callers that use evaluators directly. It recognises positions by their observations only and costs more
per position.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import ConfigError
from windrow.evaluators.protocol import (
    Evaluation,
    Evaluator,
    EvaluatorLike,
    GameAware,
    Observations,
    flatten_rows,
    off_device,
    select_rows,
    version_of,
)

FloatArray: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """Statistics of a cache since it was created."""

    hits: int
    """Lookups that found the position."""
    misses: int
    """Lookups that did not find the position."""
    insertions: int
    """Evaluations that were stored."""
    evictions: int
    """Entries that were removed to make room."""
    second_chances: int
    """Entries due for removal that stayed because they had been used."""
    mistaken: int
    """Entries found in the right place that belonged to another position; they were not used."""
    entries: int
    """Number of entries stored now."""
    bytes: int
    """Bytes in use, at most `max_bytes`."""

    @property
    def hit_rate(self) -> float:
        """Share of the lookups that were hits."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0


class PredictionCache:
    """Cache of priors and values of positions, within a number of bytes.

    A position is identified by the 128 bits of its hash and by its evaluator with the version of its weights. New
    weights need no clearing. Searches of the same game may share a cache, in several threads. They profit from it only
    if they use the same evaluator, because an evaluation is never given to another evaluator.

    Args:
        max_bytes: maximum memory in bytes, including the table.
        half_precision: store priors in 16 bits, which doubles the number of positions. Priors are then exact to three
            digits, so searches are not exactly those without a cache.
        canonical: treat a position and its images under the game's symmetries as one. This saves evaluations, most of
            all in openings. The network may evaluate an image differently, so searches are not exactly the same.
        place_bits: for tests: with fewer than 64, positions collide.
    """

    def __init__(
        self, max_bytes: int, *, half_precision: bool = False, canonical: bool = False, place_bits: int = 64
    ) -> None:
        try:
            self.native = _core.PredictionCache(
                max_bytes, half_precision=half_precision, canonical=canonical, place_bits=place_bits
            )
        except (ValueError, TypeError, RuntimeError) as error:
            raise ConfigError(f"a prediction cache of {max_bytes!r} bytes cannot be created: {error}") from None
        self.max_bytes = max_bytes
        self._game: object = None
        self._lock = threading.Lock()
        self._known: dict[int, tuple[Callable[[], object], int]] = {}
        """Evaluators by id: a function that gives the evaluator, or None when it is gone, and its number."""
        self._numbers = itertools.count()

    def claim(self, game: object) -> None:
        """Reserve the cache for one game: positions of another game could have the same hash."""
        if self._game is None:
            self._game = game
        elif self._game != game:
            raise ConfigError(
                f"this cache holds positions of {self._game!r}: create another PredictionCache for {game!r}"
            )

    def number_of(self, evaluator: object) -> int:
        """The number of an evaluator among all that have used this cache; numbers are never reused."""
        with self._lock:
            get, number = self._known.get(id(evaluator), (None, 0))
            if get is None or get() is not evaluator:  # an id is used again when its owner is gone
                number = next(self._numbers)
                self._known = {key: entry for key, entry in self._known.items() if entry[0]() is not None}
                self._known[id(evaluator)] = _reference(evaluator), number
            return number

    @property
    def stats(self) -> CacheStats:
        """Statistics so far."""
        return CacheStats(**self.native.counters())

    def clear(self) -> None:
        """Remove all positions."""
        self.native.clear()


def _reference(thing: object) -> Callable[[], object]:
    """A reference to an object while it lives; an object that cannot be referenced weakly is kept alive."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


def mix_version(number: int, version: int) -> int:
    """One version from an evaluator's number and its weights' version; the first evaluator's version is unchanged."""
    # Numbers are far apart: no evaluator counts its versions up to where another begins.
    return (number * 0x9E3779B97F4A7C15 + version) % 2**64


class CachingEvaluator(Evaluator):
    """An evaluator that asks another one only about unknown positions, and about equal positions once.

    Args:
        evaluator: the other evaluator.
        cache: cache for its evaluations; positions are identified by their observations.
        origin: the evaluator under which the cache stores the evaluations. It is the evaluator before `bind`, so that
            all evaluators bound from it share what is known. None: `evaluator`.
    """

    def __init__(self, evaluator: EvaluatorLike, cache: PredictionCache, *, origin: object = None) -> None:
        self._evaluator, self.cache = evaluator, cache
        self._origin = evaluator if origin is None else origin  # before it was bound to a game, perhaps as a copy
        self._width: int | None = None  # the number of actions, known from the first answer on
        self._num_values = 1  # the same

    @property
    def version(self) -> int:
        """Version of the other evaluator's weights."""
        return version_of(self._evaluator)

    def bind(self, game: Any) -> CachingEvaluator:
        """A caching evaluator around the other evaluator bound to that game."""
        if not isinstance(self._evaluator, GameAware):
            return self
        inner = self._evaluator.bind(game)
        if not isinstance(inner, EvaluatorLike):
            raise ConfigError(f"{inner!r} evaluates states, which this cache does not see: give the search a cache")
        return CachingEvaluator(inner, self.cache, origin=self._origin)

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions [K, ...], from the cache where possible; blocks.

        Returns logits [K, A], and values [K] in [-1, 1] for the player to move, or [K, players] with that player first.
        """
        rows = np.ascontiguousarray(flatten_rows(observations))
        digests = b"".join(blake2b(row.tobytes(), digest_size=16).digest() for row in rows)
        keys = np.frombuffer(digests, np.uint64).reshape(len(rows), 2)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        known = np.zeros(len(first), bool)
        width = self._width
        logits = np.empty((len(first), (width or 0) + self._num_values - 1), np.float32)
        values = np.empty(len(first), np.float32)
        version = mix_version(self.cache.number_of(self._origin), self.version)
        if width is not None:
            self.cache.native.find_rows(np.ascontiguousarray(keys[first]), version, logits, values, known)
        unknown = np.flatnonzero(~known)
        if len(unknown):
            answer = self._evaluator.evaluate(select_rows(observations, first[unknown]))
            new_logits = np.ascontiguousarray(off_device(answer[0]), np.float32)
            new_values = np.ascontiguousarray(off_device(answer[1]), np.float32).reshape(len(unknown), -1)
            if width is None:
                width, self._num_values = int(new_logits.shape[1]), int(new_values.shape[1])
                self._width = width
                logits = np.empty((len(first), width + self._num_values - 1), np.float32)
            # The values of the other players, if there is one for each, are kept behind the logits.
            new_logits = np.ascontiguousarray(np.concatenate([new_logits, new_values[:, 1:]], axis=1))
            new_values = np.ascontiguousarray(new_values[:, 0])
            logits[unknown], values[unknown] = new_logits, new_values
            # What is broken is not remembered; -inf is a mask.
            good = np.isfinite(new_values) & (new_logits < np.inf).all(axis=1)
            self.cache.native.insert_rows(
                np.ascontiguousarray(keys[first[unknown[good]]]), version, new_logits[good], new_values[good]
            )
        if self._num_values > 1:
            values = np.concatenate([values[:, None], logits[:, width:]], axis=1)
        return logits[inverse, :width], values[inverse]
