"""Trees as tensors: a whole search in one piece, on the device of the evaluator.

The trees, the game and the network are all there (`windrow.tensor.forest`), so nothing can be reported on the way, and
nothing stops it but its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.tensor.forest import TensorForest


@dataclass(slots=True)
class TensorSession:
    """One search in progress."""

    forest: TensorForest

    @property
    def num_places(self) -> int:
        """Rows that the evaluator was given, those of nobody included."""
        return self.forest.num_places


def run_tensor(session: TensorSession) -> Iterator[None]:
    """Grow all trees to the end of their budgets."""
    session.forest.grow()
    yield
