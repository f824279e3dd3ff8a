"""Rounds of K leaves per tree in plain torch ops: leaves are selected without each other's results.

Visits that are selected and not yet backed up count as in flight (I), by the rule `SearchConfig.in_flight`. A leaf that
is selected again while it waits is shared: every simulation that chose it backs up its one value. A round is K walks
one after the other, one batch of B * K rows, and K backups in the same order; row b * K + k is walk k of tree b. In a
game with chance each walk is a separate call, and the game makes its leaves before the next walk begins.
"""

from __future__ import annotations

import torch

from windrow.games.protocol import CHANCE
from windrow.tensor.ops.one_leaf_torch import back_up, best_action, describe_leaves
from windrow.tensor.ops.outcomes_torch import draw, pick
from windrow.tensor.rules import Rules
from windrow.tensor.tree.chance import Chance
from windrow.tensor.tree.pools import NO_CHILD, PROVEN, Pools
from windrow.tensor.tree.under_way import Answer, InFlightCounts, UnderWay


def select(
    pools: Pools,
    rules: Rules,
    under_way: UnderWay,
    in_flight: InFlightCounts,
    chance: Chance | None = None,
    walk: int = 0,
) -> None:
    """Walk every tree K times from its root to a leaf, or as often as simulations remain, and mark the paths.

    With chance, make only walk number `walk` of the K.
    """
    last, num_leaves = pools.num_slots - 1, in_flight.num_leaves
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    for k in range(num_leaves) if chance is None else [walk]:
        row = tree * num_leaves + k
        node = torch.zeros_like(tree)
        depth, parent, action = torch.zeros_like(node), torch.zeros_like(node), torch.zeros_like(node)
        num_draws = torch.zeros_like(node)
        live = (k < in_flight.remaining) & (pools.next_free < last - (chance.max_draws if chance else 0))
        live = live & (pools.to_play[:, 0] >= 0)
        if pools.proof is not None:
            live = live & (pools.proof[:, 0] == 0)
        is_new = torch.zeros_like(live)
        while bool(live.any()):
            to_play = pools.to_play[tree, node]
            # A node without visits waits for its evaluation, is a finished game, or is a chance node.
            decides = live & (pools.node_visits[tree, node] > 0) & (depth != rules.max_depth)
            best = best_action(pools, rules, tree, node, in_flight)
            if chance is None:
                live = decides
            else:
                of_chance = live & (to_play == CHANCE)
                drawn = draw(chance.key, tree, num_draws, (chance.num_started + k).to(torch.int64))
                best = torch.where(of_chance, pick(pools.prior[tree, node, : chance.num_outcomes], drawn), best)
                num_draws = num_draws + of_chance
                live = decides | of_chance
            word = (node * pools.stride + best) * 2 + to_play
            under_way.path[row, depth] = torch.where(decides, word.to(torch.int32), under_way.path[row, depth])
            in_flight.edges[tree, node, best] += decides.to(torch.int32)
            in_flight.nodes[tree, node] += decides.to(torch.int32)
            parent, action = torch.where(live, node, parent), torch.where(live, best, action)
            depth = depth + decides
            child = pools.child[tree, node, best].to(torch.int64)
            is_new = is_new | (live & (child == NO_CHILD))
            live = live & (child != NO_CHILD)
            node = torch.where(live, pools.slot_of(child), node)
            if pools.proof is not None:
                live = live & (child < PROVEN)
        free = torch.where(is_new, pools.next_free, last)
        # The slot is assigned at once, so that the next walk finds the waiting leaf.
        pools.child[tree, parent, action] = torch.where(is_new, free, pools.child[tree, parent, action])
        pools.node_visits[tree, free.to(torch.int64)] = 0
        pools.next_free += is_new.to(torch.int32)
        under_way.leaf[row] = torch.where(is_new, free, node).to(torch.int32)
        under_way.slot[row] = free
        under_way.depth[row], under_way.parent[row], under_way.action[row] = (
            part.to(torch.int32) for part in (depth, parent, action)
        )
        under_way.is_new[row] = is_new
        if chance is not None:
            chance.simulation[row] = chance.num_started + k
            chance.num_draws[row] = num_draws.to(torch.int32)
    if chance is None or walk == num_leaves - 1:
        in_flight.remaining.copy_(torch.clamp_min(in_flight.remaining - num_leaves, 0))
        if chance is not None:
            chance.num_started += num_leaves


def complete(pools: Pools, answer: Answer, under_way: UnderWay, in_flight: InFlightCounts) -> None:
    """Make the new leaves of a round, back up all paths in the order of the walks, and clear their marks in flight."""
    num_leaves = in_flight.num_leaves
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    every = torch.arange(len(under_way.depth), device=tree.device) // num_leaves
    is_bad = describe_leaves(pools, answer, every, under_way)
    pools.is_bad |= is_bad.view(-1, num_leaves).any(1)
    for k in range(num_leaves):
        back_up(pools, under_way, tree, tree * num_leaves + k, in_flight)
