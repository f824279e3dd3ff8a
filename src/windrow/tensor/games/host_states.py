"""States of a game on the host as a batch on the device: what a search needs that begins at such states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.tensor.game import TensorGame

Bytes: TypeAlias = npt.NDArray[np.uint8]


@runtime_checkable
class HostStates(Protocol):
    """A `TensorGame` that can begin where a game on the host is."""

    def from_host(self, states: Any, device: torch.device | str = "cpu") -> Any:
        """A batch of B states, as `initial` and `step` make them.

        Args:
            states: of the same game with the same options: a list of B objects as the Python class makes them; of a
                game in C++ or compiled, [B, state bytes] uint8. Finished games and positions of chance are among them.
            device: where the tensors are to be.
        """
        ...


def check_host_states(game: TensorGame) -> HostStates:
    """The game, if it can begin where a game on the host is.

    Raises:
        GameError: it cannot.
    """
    if isinstance(game, HostStates):
        return game
    raise GameError(
        f"{type(game).__name__} has no from_host(states, device), which turns states of the game on the host into "
        "tensors (docs/tensor.md): windrow.Search needs it. windrow.tensor.TensorSearch takes tensors, and does without"
    )


def to_device(game: HostStates, host_game: CoreGame, states: Sequence[State], device: torch.device | str) -> Any:
    """The batch that `from_host` makes of states of `host_game`.

    Raises:
        GameError: `from_host` failed.
    """
    rows = host_game.rows_of(states)
    try:
        return game.from_host(list(rows) if rows.dtype == object else rows, device)
    except Exception as error:
        name = type(game).__name__
        raise GameError(f"{name}.from_host failed on {len(states)} states of {host_game!r}: {error}") from error


# --- For games in C++ -------------------------------------------------------------------------------------------------


def fields_of(rows: Bytes, layout: Mapping[str, str]) -> dict[str, npt.NDArray[Any]]:
    """The columns of C++ structs that lie in `rows`, by name; `layout` has NumPy's names of their types, in order."""
    struct = np.dtype(list(layout.items()))
    assert rows.shape[1] == struct.itemsize, f"states of {rows.shape[1]} bytes are no {struct}"
    table = np.ascontiguousarray(rows).view(struct)[:, 0]
    return {name: table[name] for name in layout}


def to_tensor(column: npt.NDArray[Any], dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """A column on the device."""
    return torch.from_numpy(np.array(column)).to(device, dtype)
