"""The game's part of a simulation: one function from parents and actions to what a leaf shows.

The rules are recorded once as a graph of torch ops, by running them on tensors without data; the recording is what runs
from then on, compiled where that pays. So a game may be written in any Python that PyTorch can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import GameError
from windrow.games.protocol import TERMINAL
from windrow.tensor.flight import Flight
from windrow.tensor.game import TensorGame, like, tensors_of
from windrow.tensor.pools import Pools


def describe(game: TensorGame, state: Any, dtype: torch.dtype, memory_format: torch.memory_format) -> list[Tensor]:
    """[to_play, outcome, legal, *observations] of a batch; observations are in the network's type and layout."""
    is_over = game.terminal(state)
    to_play = torch.where(is_over, TERMINAL, game.to_play(state)).to(torch.int32)
    shown: Any = game.observe(state)
    named = cast("Mapping[str, Tensor]", shown) if isinstance(shown, Mapping) else {"": shown}
    parts = [
        part.to(dtype).contiguous(memory_format=memory_format if part.dim() == 4 else torch.contiguous_format)
        for part in named.values()
    ]
    return [to_play, game.returns(state)[:, 0].contiguous(), game.legal(state).contiguous(), *parts]


_COMPILE_OPTIONS: dict[str, Any] = {
    # Slots are ours and always in range; a check of each would be a branch in every kernel.
    "assert_indirect_indexing": False,
    # What a game says has several shapes, a kernel each; one launch for all of them is cheaper than three.
    "combo_kernels": True,
    "combo_kernel_per_subkernel_blocks": True,
}


def _compile_options() -> dict[str, Any]:
    """Those that this PyTorch knows."""
    config: Any = import_module("torch._inductor.config")
    return {name: value for name, value in _COMPILE_OPTIONS.items() if hasattr(config, name)}


class Leaves:
    """Makes leaves in the pools, and describes them.

    Args:
        game: whose leaves.
        pools: where they are.
        flight: rounds of several leaves per tree, if there are.
        dtype: of the observations.
        memory_format: of observations that are boards.
        is_compiled: translate the recording with torch.compile.
    """

    def __init__(
        self,
        game: TensorGame,
        pools: Pools,
        flight: Flight | None = None,
        *,
        dtype: torch.dtype,
        memory_format: torch.memory_format,
        is_compiled: bool,
    ) -> None:
        self._game, self._pools = game, pools
        self._names = list(game.observation) if isinstance(game.observation, Mapping) else None
        self._dtype, self._memory_format = dtype, memory_format
        device = pools.visits.device
        self.template = game.initial(1, device)
        self._base = torch.arange(pools.num_trees, device=device) * pools.num_slots
        self._row_base = self._base if flight is None else self._base.repeat_interleave(flight.num_leaves)
        self._rows = pools if flight is None else flight
        # The same memory under another name. A compiler that knew would keep writing apart from reading; but a slot is
        # never written and read in the same step, so both may share a kernel.
        self._targets = [torch.from_dlpack(state) for state in pools.states]
        self._new = self._record(self._describe_new, self._inputs(), is_compiled)
        self._roots = self._record(self._describe_roots, list(pools.states), is_compiled)

    def describe_new(self) -> tuple[Tensor, Tensor, Tensor, Any]:
        """Step every row's parent along its action into its slot: (to_play, outcome, legal, observations)."""
        return self._named(self._new(*self._inputs()))

    def describe_roots(self) -> tuple[Tensor, Tensor, Tensor, Any]:
        """The same of the positions in slot 0."""
        return self._named(self._roots(*self._pools.states))

    def _inputs(self) -> list[Tensor]:
        return [*self._pools.states, *self._targets, self._rows.parent, self._rows.action, self._rows.slot]

    def _describe_new(self, *inputs: Tensor) -> list[Tensor]:
        *both, parent, action, slot = inputs
        states, targets = both[: len(both) // 2], both[len(both) // 2 :]
        above = like(self.template, [state.index_select(0, self._row_base + parent) for state in states])
        below = self._game.step(above, action.to(torch.int64))
        for target, tensor in zip(targets, tensors_of(below), strict=True):
            target.index_copy_(0, self._row_base + slot, tensor)
        return describe(self._game, below, self._dtype, self._memory_format)

    def _describe_roots(self, *states: Tensor) -> list[Tensor]:
        roots = like(self.template, [state.index_select(0, self._base) for state in states])
        return describe(self._game, roots, self._dtype, self._memory_format)

    def _named(self, outputs: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Any]:
        to_play, outcome, legal, *parts = outputs
        shown = parts[0] if self._names is None else dict(zip(self._names, parts, strict=True))
        return to_play, outcome, legal, shown

    def _record(
        self, function: Callable[..., list[Tensor]], inputs: list[Tensor], is_compiled: bool
    ) -> Callable[..., list[Tensor]]:
        if not is_compiled:
            return function
        from torch.fx.experimental.proxy_tensor import make_fx

        try:
            recorded: Any = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*inputs)
        except Exception as error:
            raise GameError(
                f"{type(self._game).__name__} cannot be recorded as torch ops ({error}): it may look at the values of "
                "tensors; windrow.tensor.check_game says where"
            ) from error
        compiled: Any = torch.compile(recorded, fullgraph=True, dynamic=False, options=_compile_options())
        return compiled
