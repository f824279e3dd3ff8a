"""The memory that trees need, and a check before anything is allocated."""

from __future__ import annotations

import torch

from windrow.config import Choose, SearchConfig, ValueScale
from windrow.errors import SearchError
from windrow.tensor.game import TensorGame, as_chance_game
from windrow.tensor.tree.chance import bytes_of_chance
from windrow.tensor.tree.pools import NodeFields, bytes_per_tree, row_stride, slots_for
from windrow.tensor.tree.under_way import bytes_under_way

_SHARE = 0.9
"""Share of the free memory that trees may use; the rest is for the network's activations and PyTorch itself."""


def memory_needed(
    game: TensorGame,
    num_simulations: int,
    num_trees: int,
    *,
    max_nodes: int | None = None,
    leaves_per_tree: int | None = None,
    prove: bool = False,
    value_scale: ValueScale = "fixed",
    choose: Choose = "visits",
) -> int:
    """Return the memory of the trees of a `TensorSearch` with these settings, in bytes, without the network."""
    num_slots = slots_for(game, num_simulations) if max_nodes is None else max_nodes
    more = NodeFields.of(SearchConfig(prove=prove, value_scale=value_scale, choose=choose))
    return num_trees * _per_tree(game, num_slots, leaves_per_tree or 1, more)


def _per_tree(game: TensorGame, num_slots: int, num_leaves: int, more: NodeFields) -> int:
    under_way = bytes_under_way(row_stride(game), num_slots, num_leaves)
    of_chance = 0 if as_chance_game(game) is None else bytes_of_chance(num_leaves)
    return bytes_per_tree(game, num_slots, more) + under_way + of_chance


def check_memory(
    game: TensorGame,
    num_trees: int,
    max_nodes: int,
    num_leaves: int,
    device: torch.device,
    max_memory: int | None,
    more: NodeFields,
) -> None:
    """Raise `SearchError` if B trees do not fit; the message has the memory needed and the largest B that fits."""
    per_tree = _per_tree(game, max_nodes, num_leaves, more)
    free = int(_SHARE * _free(device))
    limit = free if max_memory is None else min(free, max_memory)
    if num_trees * per_tree <= limit:
        return
    where = "max_memory allows" if max_memory is not None and max_memory < free else f"{device} has to spare"
    most = limit // per_tree
    advice = f"use num_trees={most:,} at most" if most else "one tree is too large"
    need = num_trees * per_tree
    raise SearchError(
        f"{num_trees:,} trees of {max_nodes:,} nodes with {game.num_actions} actions need {_size(need)}, "
        f"but {where} {_size(limit)}: {advice}, or fewer num_simulations"
    )


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # Memory that PyTorch has reserved but not allocated is also available.
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    from windrow.memory import spare_memory

    return spare_memory()


def _size(count: int) -> str:
    """Format a number of bytes: in GiB from 1 GiB on, otherwise exactly."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count:,} bytes"
