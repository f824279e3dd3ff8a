"""The contract of an engine, which holds the trees of a `Search` and grows them.

One thread at a time uses it:

    engine = SomeEngine(game, evaluator, config, cache)    raises ConfigError for what it cannot do
    engine.plant(roots)                                    fresh trees, one for each root
    engine.begin(order)                                    what the next search of all trees is to be
    for _ in engine.grow(should_stop): ...                 between two steps everything below may be asked
    engine.stats(), engine.roots()                         what it took, and what was found at that moment
    engine.advance(moves), engine.close()                  every root moves and keeps its subtree; all is freed

After an error or an interrupt in `grow` the trees are as after their last completed batch, with nothing in flight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.engines import EngineOptions
from windrow.evaluators.cache import PredictionCache
from windrow.games.core_game import CoreGame, State
from windrow.search.proofs import Proofs
from windrow.search.stats import SearchStats


class Order(NamedTuple):
    """Order for one search of all B trees."""

    budgets: npt.NDArray[np.int64]  # [B] simulations
    keys: npt.NDArray[np.uint32]  # [B], with `counts` and the seed the key of a tree's random numbers
    counts: npt.NDArray[np.uint32]  # [B]
    version: int  # of the evaluator's answers, for the cache


class Roots(NamedTuple):
    """Results at B roots; values and Q are for the player to move."""

    visits: npt.NDArray[np.int32]  # [B, A]
    priors: npt.NDArray[np.float32]  # [B, A]
    qs: npt.NDArray[np.float32]  # [B, A]
    values: npt.NDArray[np.float32]  # [B]
    player_values: npt.NDArray[np.float32] | None  # [B, players], where one value is not enough
    lines: list[list[int]]  # the most visited line of play of each
    improved_policies: npt.NDArray[np.float32] | None  # [B, A], of Gumbel roots
    chosen_actions: npt.NDArray[Any] | None  # [B], of Gumbel roots, or with `choose="lcb"`
    proofs: Proofs | None = None  # with `prove`


class Engine(ABC):
    """Grows the trees of one `Search`."""

    name: str  # of the engine that runs; `stats` repeat it
    reason: str = "as configured"  # why it is this engine
    patience_s: float | None = None  # seconds that a step of `grow` may take if it can be shorter; `Search` sets it
    capabilities: ClassVar[Capabilities]  # what it can do; nobody asks for its name
    Options: ClassVar[type[EngineOptions]] = EngineOptions  # the class of `config.engine`
    training: ClassVar[str] = "windrow.train.host:HostTraining"  # the `windrow.train.Strategy` that trains with it
    selfplay: ClassVar[str | None] = None  # its `SelfPlayBackend`, an import string too; None: no `SelfPlay`

    @abstractmethod
    def __init__(
        self, game: CoreGame, evaluator: object, config: SearchConfig, cache: PredictionCache | None
    ) -> None: ...

    @classmethod
    def fill_in(cls, config: SearchConfig, num_trees: int, *, evaluator_pipeline: int) -> dict[str, Any]:
        """Fill in the options that the config leaves open, for this number of trees."""
        return {}

    @property
    @abstractmethod
    def version(self) -> int:
        """Number of times the evaluator's weights have changed."""

    @abstractmethod
    def plant(self, roots: Sequence[State]) -> None:
        """Plant B fresh trees; B may change."""

    @abstractmethod
    def advance(self, moves: npt.NDArray[np.int64]) -> None:
        """Play a move, or a chance outcome, at every root [B]. Either all roots move or, after an error, none."""

    @property
    @abstractmethod
    def num_advances(self) -> int:
        """Number of times all roots have moved; also correct after an interrupt of `advance`."""

    @abstractmethod
    def begin(self, order: Order) -> None:
        """Take an order and check that it can be carried out; the clock of `stats` starts."""

    @abstractmethod
    def grow(self, should_stop: Callable[[], bool]) -> Iterator[None]:
        """Carry out the order, and yield often; once `should_stop` returns true, only roots are still evaluated."""

    @abstractmethod
    def roots(self) -> Roots:
        """The present results at the roots."""

    @abstractmethod
    def node(self, tree: int, moves: Sequence[int]) -> Any:
        """The node that moves lead to from a root, as a `_core.NodeView`; None if it was never reached."""

    @abstractmethod
    def num_in_flight(self, tree: int) -> int:
        """The sum of all in-flight marks of a tree."""

    @abstractmethod
    def stats(self) -> SearchStats:
        """Statistics of the present search so far. `Search` adds why it ended and its `total_s`."""

    @abstractmethod
    def close(self) -> None:
        """Free everything. May be called more than once."""
