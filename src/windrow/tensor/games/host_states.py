"""States as the sibling in C++ keeps them: bytes, a row each. What is on the host becomes a batch on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Bytes: TypeAlias = npt.NDArray[np.uint8]


@runtime_checkable
class HostStates(Protocol):
    """A `TensorGame` that can begin where a game on the host is."""

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> Any:
        """A batch of B states from [B, state bytes] of the game of the same name and options in C++."""
        ...


def fields_of(rows: Bytes, layout: Mapping[str, str]) -> dict[str, npt.NDArray[Any]]:
    """The columns of C++ structs that lie in `rows`, by name; `layout` has NumPy's names of their types, in order."""
    struct = np.dtype(list(layout.items()))
    assert rows.shape[1] == struct.itemsize, f"states of {rows.shape[1]} bytes are no {struct}"
    table = np.ascontiguousarray(rows).view(struct)[:, 0]
    return {name: table[name] for name in layout}


def to_tensor(column: npt.NDArray[Any], dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """A column on the device."""
    return torch.from_numpy(np.array(column)).to(device, dtype)
