"""The prediction cache: an evaluation is paid for once.

`PredictionCache` lives in the core. Given to a `Search`, it is asked when a leaf is selected, so that a known position
never enters a batch, and positions that are equal within a batch are evaluated once. `CachingEvaluator` puts one around
any evaluator, for those who call evaluators themselves; it sees observations only, and costs more per position.
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
    """What a cache has done since it was made."""

    hits: int
    """Questions that were answered."""
    misses: int
    """Questions that were not."""
    insertions: int
    """Answers that were remembered."""
    evictions: int
    """Entries that had to go."""
    second_chances: int
    """Entries that would have had to go, but had been used."""
    mistaken: int
    """Entries found in the right place that another position had left there; not used."""
    entries: int
    """Answers that are remembered now."""
    bytes: int
    """Memory in use, at most `max_bytes`."""

    @property
    def hit_rate(self) -> float:
        """Hits as a share of questions."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0


class PredictionCache:
    """Priors and values of positions, within a number of bytes.

    A position is known by the 128 bits of its hash, and by who evaluated it: which evaluator, with which version of its
    weights. New weights need no clearing. May be shared by searches of the same game, in several threads; what one
    evaluator said is never told to another, so they gain by sharing only if they have the same evaluator.

    Args:
        max_bytes: for everything, table included.
        half_precision: keep priors in 16 bits: twice the positions, priors good to three digits. Searches are then no
            longer exactly those without a cache.
        canonical: take a position for its images under the game's symmetries: fewer evaluations, most of all in
            openings. The network may have answered otherwise for the image, so searches are not exactly the same.
        place_bits: for tests: fewer than 64 make positions collide.
    """

    def __init__(
        self, max_bytes: int, *, half_precision: bool = False, canonical: bool = False, place_bits: int = 64
    ) -> None:
        try:
            self.native = _core.PredictionCache(
                max_bytes, half_precision=half_precision, canonical=canonical, place_bits=place_bits
            )
        except (ValueError, TypeError, RuntimeError) as error:
            raise ConfigError(f"cannot make a prediction cache of {max_bytes!r} bytes: {error}") from None
        self.max_bytes = max_bytes
        self._game: object = None
        self._lock = threading.Lock()
        self._known: dict[int, tuple[Callable[[], object], int]] = {}
        """Evaluators by id: what gives the evaluator, or None when it is gone, and its number."""
        self._numbers = itertools.count()

    def claim(self, game: object) -> None:
        """Keep the cache for one game: positions of another could have the same hash."""
        if self._game is None:
            self._game = game
        elif self._game != game:
            raise ConfigError(f"this cache holds positions of {self._game!r}; {game!r} needs one of its own")

    def number_of(self, evaluator: object) -> int:
        """The number of an evaluator among all that have used this cache; never given again."""
        with self._lock:
            get, number = self._known.get(id(evaluator), (None, 0))
            if get is None or get() is not evaluator:  # an id is used again when its owner is gone
                number = next(self._numbers)
                self._known = {key: entry for key, entry in self._known.items() if entry[0]() is not None}
                self._known[id(evaluator)] = _reference(evaluator), number
            return number

    @property
    def stats(self) -> CacheStats:
        """What it has done so far."""
        return CacheStats(**self.native.counters())

    def clear(self) -> None:
        """Forget all positions."""
        self.native.clear()


def _reference(thing: object) -> Callable[[], object]:
    """What gives the thing while it lives; what cannot be watched is kept alive."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


def mix_version(number: int, version: int) -> int:
    """One version for (number of an evaluator, version of its weights); that of the first is left as it is."""
    # Numbers are far apart: no evaluator counts its versions up to where another begins.
    return (number * 0x9E3779B97F4A7C15 + version) % 2**64


class CachingEvaluator(Evaluator):
    """An evaluator that asks another one only about what it does not know, and about equal positions once.

    Args:
        evaluator: the other one.
        cache: where answers are kept; positions are known by their observations.
        origin: whose answers they are in the cache, if that is another object than `evaluator`: the evaluator as it was
            before `bind` made one for a game of it, so that all that are bound share what is known. None: `evaluator`.
    """

    def __init__(self, evaluator: EvaluatorLike, cache: PredictionCache, *, origin: object = None) -> None:
        self._evaluator, self.cache = evaluator, cache
        self._origin = evaluator if origin is None else origin  # before it was bound to a game, perhaps as a copy
        self._width: int | None = None  # the number of actions, known from the first answer on
        self._num_values = 1  # the same

    @property
    def version(self) -> int:
        """That of the evaluator inside."""
        return version_of(self._evaluator)

    def bind(self, game: Any) -> CachingEvaluator:
        """The same around the inner evaluator for that game."""
        if not isinstance(self._evaluator, GameAware):
            return self
        inner = self._evaluator.bind(game)
        if not isinstance(inner, EvaluatorLike):
            raise ConfigError(f"{inner!r} evaluates states, which this cache does not see: give the search a cache")
        return CachingEvaluator(inner, self.cache, origin=self._origin)

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions [K, ...], most of them perhaps from memory; blocks.

        Logits [K, A], and values [K] in [-1, 1] for the player to move, or [K, players] with that player first.
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
