"""The chance nodes that a simulation makes, and the leaves below them.

There may be a chance node below the edge that `select` chose, and another one below its outcome. Each of them gets a
slot, and the leaf gets the next one. These nodes are written here in torch ops, not in a kernel, because their contents
come from the game's functions. The rows under way then hold the leaf's own slot, parent and edge, so a simulation is
completed in the same way with and without chance.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.game import ChanceGame, choose, is_chance, like, tensors_of
from windrow.tensor.ops.outcomes_torch import draw, pick
from windrow.tensor.tree.chance import Chance, play
from windrow.tensor.tree.pools import NO_CHILD, Pools
from windrow.tensor.tree.under_way import UnderWay

_WHOLE = ("to_play", "node_visits")
"""Fields that are also written for the leaf, since a walk of the same round may reach it before it is evaluated."""
_OF_CHANCE = ("prior", "child", "visits", "value_sum", "value", "node_sum", "parent_of", "action_of")


class ChanceNodes:
    """Makes the chance nodes and leaves of simulations.

    Args:
        game: the rules.
        pools: the nodes of the trees.
        chance: the state of the chance draws.
        walks: the selected leaves, K rows per tree.
        template: a state of the game.
        base: [B] index of every tree's first slot.
        targets: aliases of `pools.states` (the same memory), which are written while `pools.states` are read.
    """

    def __init__(
        self,
        game: ChanceGame,
        pools: Pools,
        chance: Chance,
        walks: UnderWay,
        template: Any,
        base: Tensor,
        targets: list[Tensor],
    ) -> None:
        self._game, self._pools, self._chance, self._walks = game, pools, chance, walks
        self._template, self._base, self._targets = template, base, targets
        self._tree = torch.arange(pools.num_trees, device=base.device)
        self._is_round = len(walks.is_new) > pools.num_trees  # K > 1
        self._names = (
            *(*_WHOLE, *_OF_CHANCE),
            *(() if pools.proof is None else ("proof",)),
            *(("node_squares",) if pools.has_chance_squares else ()),
        )
        fields = [getattr(pools, name) for name in self._names]
        self._fields = [field.view(-1, *field.shape[2:]) for field in fields]
        # An alias again: if the compiler saw two writes to one tensor, it would copy the whole tensor.
        self._links = torch.from_dlpack(pools.child).view(-1)

    def inputs(self, walk: int = 0) -> list[Tensor]:
        """Return the tensors that `make` needs, for the simulation under way or for one walk of a round."""
        pools, chance, walks = self._pools, self._chance, self._walks
        under_way = [walks.numbers[1:], walks.is_new, chance.simulation, chance.num_draws]
        if self._is_round:
            under_way = [self._of_walk(row, walk).contiguous() for row in under_way]
        return [*pools.states, *self._targets, *self._fields, self._links, chance.key, *under_way]

    def _of_walk(self, rows: Tensor, walk: int) -> Tensor:
        """Return a view [..., B] of `rows` [..., B * K] with one walk of each tree."""
        return rows.view(*rows.shape[:-1], self._pools.num_trees, -1)[..., walk]

    def make(self, *inputs: Tensor) -> tuple[Any, Tensor]:
        """Write the states and the nodes, and return what `finish` needs.

        Returns:
            (states of the leaves; [6, B] int32: the new leaf, parent, action and slot, the number of chance nodes made,
            and whether chance is still to move).
        """
        count = len(self._targets)
        states, targets = inputs[:count], inputs[count : 2 * count]
        fields: dict[str, Tensor] = dict(zip(self._names, inputs[2 * count :], strict=False))
        links, key, under_way, is_new, simulation, num_draws = inputs[-6:]
        leaf, parent, move, slot = under_way.to(torch.int64).unbind(0)
        game, pools, base, last = self._game, self._pools, self._base, self._pools.num_slots - 1
        lane = torch.arange(pools.stride, device=base.device)
        first_parent, first_move, first_slot = parent, move, slot

        above = like(self._template, [state.index_select(0, base + parent) for state in states])
        state = play(game, above, move)
        nothing, places, made_states = torch.zeros_like(parent), list[Tensor](), list[list[Tensor]]()
        written: dict[str, list[Tensor]] = {name: [] for name in fields}
        for number in range(self._chance.max_draws):
            of_chance = is_new & is_chance(game, state)
            shares = game.outcomes(state)
            drawn = draw(key, self._tree, num_draws.to(torch.int64) + number, simulation.to(torch.int64))
            outcome = pick(shares, drawn)
            places.append(base + torch.where(of_chance, slot, last))
            made_states.append(tensors_of(state))
            row = nothing[:, None].expand(-1, pools.stride)
            is_taken = of_chance[:, None] & (lane == outcome[:, None])
            facts: dict[str, Tensor] = {
                "to_play": nothing + CHANCE,
                "node_visits": nothing,
                "prior": torch.nn.functional.pad(shares, (0, pools.stride - shares.shape[1])),
                "child": torch.where(is_taken, slot[:, None] + 1, NO_CHILD),
                "visits": row,
                "value_sum": row,
                "value": nothing,
                "node_sum": nothing,
                "parent_of": parent,
                "action_of": move,
                "proof": nothing,
                "node_squares": nothing,
            }
            for name, field in fields.items():
                written[name].append(facts[name].to(field.dtype))
            state = choose(of_chance, game.happen(state, outcome), state)
            parent, move = torch.where(of_chance, slot, parent), torch.where(of_chance, outcome, move)
            slot = slot + of_chance

        # Every tensor is written only once, so that the compiler makes no copies.
        is_overdrawn = is_new & is_chance(game, state)
        is_over = is_overdrawn | game.terminal(state)
        to_play = torch.where(is_over, TERMINAL, game.to_play(state).to(torch.int64))
        for name, values in zip(_WHOLE, (to_play, nothing), strict=True):
            written[name].append(values.to(fields[name].dtype))
        of_nodes, of_all = torch.cat(places), torch.cat([*places, base + slot])
        for name, field in fields.items():
            field.index_copy_(0, of_all if name in _WHOLE else of_nodes, torch.cat(written[name]))
        made_states.append(tensors_of(state))
        for target, *parts in zip(targets, *made_states, strict=True):
            target.index_copy_(0, of_all, torch.cat(parts))
        num_made = slot - first_slot
        edge = torch.where(num_made > 0, first_parent * pools.stride + first_move, last * pools.stride)
        links.index_copy_(0, base * pools.stride + edge, first_slot.to(links.dtype))

        leaf = torch.where(is_new, slot, leaf)
        return state, torch.stack([leaf, parent, move, slot, num_made, is_overdrawn.to(torch.int64)]).to(torch.int32)

    def finish(self, outputs: list[Tensor], walk: int = 0) -> None:
        """Store the numbers that `make` has returned."""
        pools, walks, (made,) = self._pools, self._walks, outputs
        self._chance.is_overdrawn.logical_or_(made[5] != 0)
        if self._is_round:
            self._of_walk(walks.numbers[1:], walk).copy_(made[:4])
            pools.next_free += made[4]
        else:
            walks.numbers[1:].copy_(made[:4])
