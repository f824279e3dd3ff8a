"""The game's part of a simulation: a function from parents and actions to the data of the leaves.

The game's functions are traced once with fake tensors, which records them as a graph of torch ops. The graph is then
compiled. A game may therefore use any Python that PyTorch can trace. Without compilation the functions run directly.

Where chance is to move below an edge, an outcome is drawn at once, and the leaf is the position after it;
`chance_nodes.py` makes the chance nodes on the way. With K leaves per tree the next walk may pass the same chance node
and draw another outcome. The game is then called after each walk (`make`), and the leaves of a round are described
together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import GameError
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.game import TensorGame, as_chance_game, like, tensors_of
from windrow.tensor.tree.chance import Chance
from windrow.tensor.tree.chance_nodes import ChanceNodes
from windrow.tensor.tree.pools import Pools
from windrow.tensor.tree.under_way import UnderWay


def describe(game: TensorGame, state: Any, dtype: torch.dtype, memory_format: torch.memory_format) -> list[Tensor]:
    """Return [to_play, result, legal, *observations] of a batch, with observations in the network's type and layout.

    A position where chance is to move is described as a draw without legal moves, since it is not evaluated.
    """
    is_over, to_play = game.terminal(state), game.to_play(state)
    result, legal = game.returns(state)[:, 0], game.legal(state)
    if as_chance_game(game) is not None:
        of_chance = ~is_over & (to_play == CHANCE)
        result, legal = torch.where(of_chance, 0.0, result), legal & ~of_chance[:, None]
        is_over = is_over | of_chance
    to_play = torch.where(is_over, TERMINAL, to_play).to(torch.int32)
    shown: Any = game.observe(state)
    named = cast("Mapping[str, Tensor]", shown) if isinstance(shown, Mapping) else {"": shown}
    parts = [
        part.to(dtype).contiguous(memory_format=memory_format if part.dim() == 4 else torch.contiguous_format)
        for part in named.values()
    ]
    return [to_play, result.contiguous(), legal.contiguous(), *parts]


_COMPILE_OPTIONS: dict[str, Any] = {
    # Slots are always in range, and a check would be a branch in every kernel.
    "assert_indirect_indexing": False,
    # The outputs of a game have several shapes, each with its own kernel. One launch for all is cheaper than several.
    "combo_kernels": True,
    "combo_kernel_per_subkernel_blocks": True,
}


def _compile_options() -> dict[str, Any]:
    """Return the compile options that this version of PyTorch supports."""
    config: Any = import_module("torch._inductor.config")
    return {name: value for name, value in _COMPILE_OPTIONS.items() if hasattr(config, name)}


class Leaves:
    """Makes leaves in the pools, and describes them to the evaluator.

    Args:
        game: the rules.
        pools: the nodes of the trees.
        walks: the selected leaves, K rows per tree.
        chance: the state of the chance draws, in a game with chance.
        dtype: type of the observations.
        memory_format: memory format of observations that are boards.
        is_compiled: compile the game's functions with torch.compile.
    """

    def __init__(
        self,
        game: TensorGame,
        pools: Pools,
        walks: UnderWay,
        chance: Chance | None = None,
        *,
        dtype: torch.dtype,
        memory_format: torch.memory_format,
        is_compiled: bool,
    ) -> None:
        self._game, self._pools, self._walks = game, pools, walks
        self._names = list(game.observation) if isinstance(game.observation, Mapping) else None
        self._dtype, self._memory_format = dtype, memory_format
        device = pools.visits.device
        self.template = game.initial(1, device)
        self._base = torch.arange(pools.num_trees, device=device) * pools.num_slots
        num_leaves = len(walks.is_new) // pools.num_trees
        self._row_base = self._base if num_leaves == 1 else self._base.repeat_interleave(num_leaves)
        self._makes_first = num_leaves > 1 and chance is not None
        # Aliases of the same memory. If the compiler knew, it would separate writing from reading. But a slot is never
        # written and read in the same step, so both may share a kernel.
        self._targets = [torch.from_dlpack(state) for state in pools.states]
        rules = as_chance_game(game)
        self._nodes = None
        if rules is None or chance is None:
            self._new = self._record(self._describe_new, self._inputs(), is_compiled)
        else:
            self._nodes = ChanceNodes(rules, pools, chance, walks, self.template, self._base, self._targets)
            if self._makes_first:
                self._make = self._record(self._make_below, self._nodes.inputs(), is_compiled)
                self._new = self._record(self._describe_made, [*pools.states, walks.slot], is_compiled)
            else:
                self._new = self._record(self._describe_below, self._nodes.inputs(), is_compiled)
        self._roots = self._record(self._describe_roots, list(pools.states), is_compiled)

    def make(self, walk: int) -> None:
        """Make the leaves of one walk of a round: play its action in every tree, then draw outcomes of chance."""
        assert self._nodes is not None
        self._nodes.finish(self._make(*self._nodes.inputs(walk)), walk)

    def describe_new(self) -> tuple[Tensor, Tensor, Tensor, Any]:
        """Make the leaf of every row, and return (to_play, result, legal, observations) of the leaves.

        In a game with chance and several leaves per round, `make` has already made the leaves.
        """
        if self._nodes is None:
            return self._named(self._new(*self._inputs()))
        if self._makes_first:
            return self._named(self._new(*self._pools.states, self._walks.slot))
        made, *shown = self._new(*self._nodes.inputs())
        self._nodes.finish([made])
        return self._named(shown)

    def describe_roots(self) -> tuple[Tensor, Tensor, Tensor, Any]:
        """Return (to_play, result, legal, observations) of the roots."""
        return self._named(self._roots(*self._pools.states))

    def _inputs(self) -> list[Tensor]:
        return [*self._pools.states, *self._targets, self._walks.parent, self._walks.action, self._walks.slot]

    def _describe_new(self, *inputs: Tensor) -> list[Tensor]:
        *both, parent, action, slot = inputs
        states, targets = both[: len(both) // 2], both[len(both) // 2 :]
        above = like(self.template, [state.index_select(0, self._row_base + parent) for state in states])
        below = self._game.step(above, action.to(torch.int64))
        for target, tensor in zip(targets, tensors_of(below), strict=True):
            target.index_copy_(0, self._row_base + slot, tensor)
        return self._describe(below)

    def _describe_below(self, *inputs: Tensor) -> list[Tensor]:
        assert self._nodes is not None
        below, made = self._nodes.make(*inputs)
        return [made, *self._describe(below)]

    def _make_below(self, *inputs: Tensor) -> list[Tensor]:
        assert self._nodes is not None
        return [self._nodes.make(*inputs)[1]]

    def _describe_made(self, *inputs: Tensor) -> list[Tensor]:
        *states, slot = inputs
        return self._describe(like(self.template, [state.index_select(0, self._row_base + slot) for state in states]))

    def _describe_roots(self, *states: Tensor) -> list[Tensor]:
        return self._describe(like(self.template, [state.index_select(0, self._base) for state in states]))

    def _describe(self, state: Any) -> list[Tensor]:
        return describe(self._game, state, self._dtype, self._memory_format)

    def _named(self, outputs: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Any]:
        to_play, result, legal, *parts = outputs
        shown = parts[0] if self._names is None else dict(zip(self._names, parts, strict=True))
        return to_play, result, legal, shown

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
                f"{type(self._game).__name__} cannot be recorded as torch ops ({error}): its functions may look at the "
                "values of tensors; windrow.tensor.check_game shows where"
            ) from error
        compiled: Any = torch.compile(recorded, fullgraph=True, dynamic=False, options=_compile_options())
        return compiled
