"""A game whose states are bytes of one size: those in C++, and those that numba compiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import GameError
from windrow.games.core_game import CoreGame, Rows, State
from windrow.games.protocol import FloatArray, Symmetry


class ByteGame(CoreGame):
    """A game whose states are bytes that the core can read on its own."""

    def _ask(self, function: str, *arguments: Any) -> Any:
        """What a function of the core's object answers, here for one state."""
        return getattr(self.native, function)(*arguments)

    def initial_state(self) -> State:
        return State(self, self._ask("initial_state"))

    def to_play(self, state: State) -> int:
        return self._ask("to_play", self._check_own(state))

    def legal_actions(self, state: State) -> list[int]:
        return self._ask("legal_actions", self._check_own(state)).tolist()

    def returns(self, state: State) -> list[float]:
        data = self._check_own(state)
        try:
            return self._ask("returns", data).tolist()
        except ValueError:
            raise GameError(f"returns exist only for finished games, and this one is not over:\n{state}") from None

    def observe(self, state: State) -> FloatArray | Mapping[str, FloatArray]:
        return self._by_part(self._ask("observe", self._check_own(state)))

    def _chance_outcomes(self, state: State) -> list[tuple[int, float]]:
        outcomes, probabilities = self._ask("chance_outcomes", state.data)
        return list(zip(outcomes.tolist(), probabilities.tolist(), strict=True))

    def hash(self, state: State) -> int:
        low, high = self._ask("hash", self._check_own(state))
        return high << 64 | low

    def symmetries(self) -> Sequence[Symmetry]:
        return [Symmetry(*self.native.symmetry(number)) for number in range(self.native.num_symmetries)]

    def _apply(self, state: State, move: int) -> State:
        return State(self, self._ask("apply", state.data, move))

    def _sample_outcome(self, state: State, seed: int) -> int:
        return self._ask("sample_outcome", state.data, seed)

    def check_data(self, data: Any) -> None:
        if not isinstance(data, bytes) or len(data) != self.native.state_bytes:
            size = f"{len(data)}" if isinstance(data, bytes) else f"{data!r:.100}"
            raise GameError(
                f"a state of {self!r} has {self.native.state_bytes} bytes, not {size}: it was made for another game."
            )

    def rows_of(self, states: Sequence[State]) -> Rows:
        return np.frombuffer(b"".join(state.data for state in states), np.uint8).reshape(len(states), -1)

    def to_references(self, rows: Rows) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(rows)

    def empty_rows(self, count: int) -> Rows:
        return np.empty((count, self.native.state_bytes), np.uint8)

    def roots_of(self, forest: _core.Forest, trees: npt.NDArray[np.int32]) -> Rows:
        return forest.root_states(trees)

    def state_of(self, row: Any) -> State:
        return State(self, row.tobytes())

    def play_many(self, initial: State, moves: npt.NDArray[np.int64]) -> Rows:
        return self.native.play_many(initial.data, moves)

    def observe_many(self, rows: Rows) -> FloatArray:
        return self.native.observe_many(rows)

    def to_play_many(self, rows: Rows) -> npt.NDArray[np.int8]:
        return self.native.to_play_many(rows)

    def legal_many(self, rows: Rows) -> npt.NDArray[np.bool_]:
        return self.native.legal_many(rows)
