"""A network that other machines can make again, and whose new weights can be sent to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.evaluators.backends.weights import read_weights
from windrow.evaluators.loading import load
from windrow.evaluators.network import NetworkEvaluator
from windrow.evaluators.protocol import Evaluation, Evaluator, Observations, Pending


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRecipe:
    """How to make an evaluator on the machine that this was sent to; the backend is chosen there.

    module: the network, a `torch.nn.Module` on the CPU.
    weights: to begin with; None: those that `module` has.
    game, backend, batch, num_threads, max_update_s: as for `windrow.evaluators.load`.
    """

    module: Any
    weights: dict[str, npt.NDArray[Any]] | None
    game: Any
    backend: str
    batch: int
    num_threads: int | None
    max_update_s: float | None

    def __call__(self) -> NetworkEvaluator:
        """The evaluator."""
        evaluator = load(
            self.module,
            game=self.game,
            backend=self.backend,
            batch=self.batch,
            num_threads=self.num_threads,
            max_update_s=self.max_update_s,
        )
        if self.weights is not None:
            evaluator.update(self.weights)
        return evaluator


class PortableNetwork(Evaluator):
    """A network here, as `windrow.evaluators.load` gives it, that self-play on a cluster can have elsewhere too.

    Args:
        module: the network; of windrow's own, folded (`windrow.nets.fold`). It is not changed.
        game: what it evaluates.
        backend: what runs it, here and elsewhere; "auto" measures in every place.
        batch: rows in a typical call here.
        num_threads: threads that evaluate here.
        max_update_s: longest that new weights may take, for "auto".
    """

    def __init__(
        self,
        module: Any,
        *,
        game: Any,
        backend: str = "auto",
        batch: int = 64,
        num_threads: int | None = None,
        max_update_s: float | None = 0.05,
    ) -> None:
        self._recipe = NetworkRecipe(
            module=module,
            weights=None,
            game=game,
            backend=backend,
            batch=batch,
            num_threads=num_threads,
            max_update_s=max_update_s,
        )
        self.here = self._recipe()
        """The network in this process."""
        self.weights = _copied(module)
        """The present weights, arrays by name."""

    def __repr__(self) -> str:
        return f"<PortableNetwork {self.here!r}>"

    @property
    def backend(self) -> str:
        """What runs it here."""
        return self.here.backend

    @property
    def choice(self) -> str:
        """What was chosen here, and why."""
        return self.here.choice

    @property
    def version(self) -> int:
        """How often the weights were updated."""
        return self.here.version

    @property
    def pipeline(self) -> int:
        """Batches best out at once here."""
        return self.here.pipeline

    def allocate(self, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Memory of this shape for observations, from which the backend here reads fastest."""
        return self.here.allocate(shape)

    def evaluate(self, observations: Observations) -> Evaluation:
        return self.here.evaluate(observations)

    def submit(self, observations: Observations) -> Pending:
        return self.here.submit(observations)

    def bind(self, game: Any) -> PortableNetwork:
        """This evaluator, if it takes what `game` gives."""
        self.here.bind(game)
        return self

    def update(self, weights: object) -> None:
        """Go on with other weights; whoever has a recipe's network is sent `weights` by self-play."""
        self.here.update(weights)
        self.weights = _copied(weights)

    def recipe(self, *, batch: int, num_threads: int) -> Callable[[], NetworkEvaluator]:
        """What makes the same network elsewhere, with the present weights."""
        weights = self.weights if self.version else None
        return replace(self._recipe, weights=weights, batch=batch, num_threads=num_threads)

    def close(self) -> None:
        """Free what the runtime here holds; may be called more than once."""
        self.here.close()


def _copied(weights: object) -> dict[str, npt.NDArray[Any]]:
    """Arrays of their own: the module may go on learning."""
    return {name: np.array(value) for name, value in read_weights(weights).items()}
