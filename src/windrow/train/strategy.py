"""The contract of a training strategy: how and where a run makes positions and learns from them.

A `TrainingRun` looks after the folder, the limits, the metrics and the checkpoints. A strategy has the network, plays
and learns. It is used by one thread at a time, in this order:

    strategy = SomeStrategy(game, config)               raises ConfigError for what it cannot do; nothing is written yet
    strategy.open(folder, progress, learner_state)      makes the network, or restores it from a checkpoint
    strategy.prepare()                                  what takes long and is not training, such as compiling
    strategy.iterate(on_event)                          plays some games, learns from them; gives metrics
    strategy.measure_strength()                         every `evaluate_every` iterations
    strategy.net, strategy.learner_state()              what a checkpoint holds
    strategy.forget_before(iteration)                   after a checkpoint: no older one is left
    strategy.close()

`iterate` adds to `progress.counters` what it has played and learned. It ends when it has enough, and early when
`progress.is_late` or `progress.is_long()`: a run with a time limit has about twenty iterations or more. After an error
or an interrupt the run repeats the iteration, with the counters as `iterate` left them.
An engine names its strategy in `Engine.training`; `TrainingRun.create(..., strategy=...)` takes any other one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from windrow.games.core_game import CoreGame
from windrow.search.engine import Engine
from windrow.train.progress import Progress

if TYPE_CHECKING:
    from windrow.train.config import TrainConfig

Event: TypeAlias = Callable[[str, dict[str, float]], None]
"""Called often during an iteration: ("games", {"done": ..., "of": ...}) after games, ("steps", {"done": ..., "of": ...,
"loss": ...}) after learning steps. See `TrainingRun.iterations`."""


class Strategy(ABC):
    """Plays and learns for one run."""

    configs: ClassVar[str | None] = None
    """Folder of the shipped configs made for this strategy, next to the configs for all strategies."""
    section: ClassVar[str | None] = None
    """Section of a `TrainConfig` that no other strategy reads."""
    backend: str
    """Name of the backend that evaluates the network in self-play; known once the strategy is open."""
    choice: str
    """Description of that backend and why it was chosen."""

    def __init__(self, game: CoreGame, config: TrainConfig) -> None:
        self.game, self.config = game, config

    @abstractmethod
    def open(self, folder: Path, progress: Progress, learner_state: Mapping[str, Any] | None) -> None:
        """Make everything needed to play and learn.

        Args:
            folder: folder of the run, locked by this process.
            progress: counters and limits of the run; `iterate` needs them too.
            learner_state: None in a new run. On resume, the tensors of `learner_state()` and the network's weights,
                each named as in `net.state_dict()` with the prefix "net.": load both.
        """

    def prepare(self) -> None:  # noqa: B027 - most need no preparation
        """Do beforehand what takes long; the clock of the run is stopped meanwhile."""

    @abstractmethod
    def iterate(self, on_event: Event) -> dict[str, float]:
        """Play and learn for one iteration; blocks. Return its metrics, named as in docs/train.md.

        Raises:
            TrainingError: the weights are unusable; the run adds which checkpoint is the last good one.
        """

    def measure_strength(self) -> dict[str, float]:
        """Test the present network quickly, where the game has a test; return metrics."""
        return {}

    @property
    @abstractmethod
    def net(self) -> Any:
        """The network to save, made by `windrow.nets.make_network`."""

    @abstractmethod
    def learner_state(self) -> Mapping[str, Any]:
        """The tensors by name that `open` needs to continue, such as the optimizer's: a mapping like `Learner.state`.

        The weights need not be among them: a checkpoint has them from `net`.
        """

    def forget_before(self, iteration: int) -> None:  # noqa: B027 - there may be nothing to delete
        """Delete what only checkpoints before `iteration` would need."""

    @abstractmethod
    def close(self) -> None:
        """Free everything, also after a failed `open`. May be called more than once."""


def strategy_of(engine: type[Engine]) -> type[Strategy]:
    """The strategy that an engine names in `Engine.training`."""
    module, _, name = engine.training.partition(":")
    return getattr(import_module(module), name)
