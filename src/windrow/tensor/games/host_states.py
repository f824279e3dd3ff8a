"""Conversion of states on the host to a batch on the device, for searches that start from states on the host."""

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
    """A `TensorGame` that can convert states of the same game on the host."""

    def from_host(self, states: Any, device: torch.device | str = "cpu") -> Any:
        """Return a batch of B states in the form that `initial` and `step` return.

        Args:
            states: states of the same game with the same options: for a game in Python a list of B state objects, for a
                game in C++ or a compiled game [B, state bytes] uint8. They may include finished games and positions
                where chance is to move.
            device: device of the tensors.
        """
        ...


def check_host_states(game: TensorGame) -> HostStates:
    """Return the game if it can convert states on the host.

    Raises:
        GameError: the game has no `from_host`.
    """
    if isinstance(game, HostStates):
        return game
    raise GameError(
        f"{type(game).__name__} has no from_host(states, device), which converts states on the host to tensors "
        "(docs/tensor.md): windrow.Search needs it; windrow.tensor.TensorSearch takes tensors and does not"
    )


def to_device(game: HostStates, host_game: CoreGame, states: Sequence[State], device: torch.device | str) -> Any:
    """Convert states of `host_game` with `from_host`.

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
    """Return the fields of the C++ structs in `rows` by name; `layout` has their NumPy types, in order."""
    struct = np.dtype(list(layout.items()))
    assert rows.shape[1] == struct.itemsize, f"states of {rows.shape[1]} bytes are no {struct}"
    table = np.ascontiguousarray(rows).view(struct)[:, 0]
    return {name: table[name] for name in layout}


def to_tensor(column: npt.NDArray[Any], dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """Copy a column to the device."""
    return torch.from_numpy(np.array(column)).to(device, dtype)
