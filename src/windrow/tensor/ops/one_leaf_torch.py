"""The fast path for K = 1 in plain torch ops: one simulation of every tree. `one_leaf_triton.py` is the same in Triton.

`rounds_torch.py` does the same for K leaves, and would also work for K = 1. But it counts visits in flight, which a
single leaf does not need, because nothing is selected while the leaf waits. On a GPU these counts would cost reads and
writes in every step of a walk, and completing a simulation and selecting the next could not share a kernel. New roots
are evaluated here for every K.
"""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.ops.numerics_torch import softmax
from windrow.tensor.ops.outcomes_torch import draw, pick
from windrow.tensor.ops.proofs_torch import back_up_and_prove, score_proven
from windrow.tensor.ops.spread_torch import begin_spread, exploration, raise_spread
from windrow.tensor.rules import Rules
from windrow.tensor.tree.chance import Chance
from windrow.tensor.tree.pools import NO_CHILD, PROVEN, Pools
from windrow.tensor.tree.under_way import Answer, InFlightCounts, UnderWay

LARGEST_VALUE = 1.0
"""Maximum absolute value that an evaluator may return."""


def select(
    pools: Pools, rules: Rules, under_way: UnderWay, root_action: Tensor | None = None, chance: Chance | None = None
) -> None:
    """Walk every tree from its root to a leaf.

    Writes the simulation under way: `path` and `depth`, `leaf` (a free slot if `is_new`), `parent` and `action` above
    it, and `slot`, which the leaf's data is written to: the dummy slot, unless the leaf is new. Trees whose game is
    over, or that have no free slot, stay at depth 0; in a search that proves, so do trees with a proven root.

    With chance, the parent of a new leaf may be a chance node, and its action an outcome. Chance may also be to move at
    the new leaf, which only the game knows (`leaves.py`). A tree with chance to move at its root stays at depth 0.

    Args:
        pools: the trees.
        rules: parameters of the selection formula.
        under_way: rows to write, one per tree.
        root_action: [B] int32, the first action of every walk, if the root does not choose by PUCT.
        chance: the state of the chance draws, in a game with chance.
    """
    last = pools.num_slots - 1
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    node = torch.zeros_like(tree)
    depth, parent, action = torch.zeros_like(node), torch.zeros_like(node), torch.zeros_like(node)
    num_draws = torch.zeros_like(node)
    live = (pools.to_play[:, 0] >= 0) & (pools.next_free < last - (chance.max_draws if chance else 0))
    if pools.proof is not None:
        live = live & (pools.proof[:, 0] == 0)
    is_new = torch.zeros_like(live)
    while bool(live.any()):
        to_play = pools.to_play[tree, node]
        of_chance = to_play == CHANCE
        live = live & (to_play != TERMINAL) & (of_chance | (depth != rules.max_depth))
        best = best_action(pools, rules, tree, node)
        if root_action is not None:
            best = torch.where(depth == 0, root_action.to(torch.int64), best)
        if chance is not None:
            drawn = draw(chance.key, tree, num_draws, chance.num_started.to(torch.int64))
            best = torch.where(of_chance, pick(pools.prior[tree, node, : chance.num_outcomes], drawn), best)
            num_draws = num_draws + (live & of_chance)
        word = (node * pools.stride + best) * 2 + to_play
        decides = live & ~of_chance
        under_way.path[tree, depth] = torch.where(decides, word.to(torch.int32), under_way.path[tree, depth])
        parent, action = torch.where(live, node, parent), torch.where(live, best, action)
        depth = depth + decides
        child = pools.child[tree, node, best].to(torch.int64)
        is_new = is_new | (live & (child == NO_CHILD))
        live = live & (child != NO_CHILD)
        node = torch.where(live, pools.slot_of(child), node)
        if pools.proof is not None:
            live = live & (child < PROVEN)
    under_way.leaf.copy_(torch.where(is_new, pools.next_free, node))
    under_way.slot.copy_(torch.where(is_new, pools.next_free, last))
    for target, source in ((under_way.depth, depth), (under_way.parent, parent), (under_way.action, action)):
        target.copy_(source)
    under_way.is_new.copy_(is_new)
    if chance is not None:
        chance.simulation.copy_(chance.num_started)
        chance.num_draws.copy_(num_draws)
        chance.num_started += 1


def best_action(
    pools: Pools, rules: Rules, tree: Tensor, node: Tensor, in_flight: InFlightCounts | None = None
) -> Tensor:
    """Return the action [B] int64 that PUCT selects at one node of each tree; `in_flight` is given for K > 1."""
    edges = (tree, node, slice(None, pools.num_actions))
    visits, prior, own = pools.visits[edges], pools.prior[edges], pools.node_visits[tree, node]
    mean = pools.node_sum[tree, node].to(torch.float32) / own.to(torch.float32)
    first_play = mean - rules.first_play if rules.is_parent else torch.full_like(mean, rules.first_play)
    if rules.root_play != "same":
        at_root = mean if rules.root_play == "parent" else torch.full_like(mean, rules.root_first_play)
        first_play = torch.where(node == 0, at_root, first_play)
    tries, numerator, denominator = visits, pools.value_sum[edges].to(torch.float32), visits
    if in_flight is not None:
        waiting, own = in_flight.edges[edges], own + in_flight.nodes[tree, node]
        tries = visits + waiting
        if in_flight.rule != "visits":
            denominator = tries
        if in_flight.rule == "loss":
            numerator = numerator - in_flight.virtual_loss * waiting.to(torch.float32)
    q = numerator / torch.clamp_min(denominator, 1).to(torch.float32)
    q = torch.where(denominator > 0, q, first_play[:, None])
    sqrt_visits = torch.sqrt(own.to(torch.float32))[:, None]
    score = q + exploration(pools, rules, tree, node, own) * prior * sqrt_visits / (1 + tries).to(torch.float32)
    if pools.proof is not None:
        score = score_proven(score, pools.value_sum[edges], visits, pools.child[edges])
    return torch.where(prior >= 0, score, -torch.inf).argmax(1)


def describe_leaves(pools: Pools, answer: Answer, tree: Tensor, rows: UnderWay) -> Tensor:
    """Write what is known of new leaves, one per row, into their slots; `tree` [rows] is whose they are.

    Returns:
        [rows] bool: new leaves about which the evaluator said anything but numbers, or a value that cannot be.
    """
    slot, is_over = rows.slot.to(torch.int64), answer.to_play == TERMINAL
    values = answer.values.to(torch.float32)
    is_bad = ~((values.abs() <= LARGEST_VALUE) & (torch.isfinite(answer.logits) | ~answer.legal).all(1))
    # NaN would spread through the tree. It is replaced, and the result reports it.
    values = torch.where(is_bad, 0.0, values)
    logits = torch.where(is_bad[:, None], 0.0, answer.logits.to(torch.float32))
    for_first = torch.where(is_over, answer.result, torch.where(answer.to_play == 0, values, -values))

    # Rows without a new leaf are written to the dummy slot.
    prior = torch.where(answer.legal, softmax(logits, answer.legal), -1.0)
    pools.prior[tree, slot] = -1.0
    pools.prior[tree, slot, : pools.num_actions] = prior
    pools.visits[tree, slot] = 0
    pools.value_sum[tree, slot] = 0.0
    pools.child[tree, slot] = NO_CHILD
    pools.to_play[tree, slot] = answer.to_play
    pools.value[tree, slot] = for_first
    pools.node_sum[tree, slot] = torch.where(is_over, 0.0, values).to(torch.float64)
    pools.node_visits[tree, slot] = (~is_over).to(torch.int32)
    begin_spread(pools, tree, slot)
    pools.parent_of[tree, slot] = rows.parent
    pools.action_of[tree, slot] = rows.action
    if pools.proof is not None:
        # Of a finished game; at the root it is not searched, and chance may be to move there.
        pools.proof[tree, slot] = (is_over & (rows.depth > 0)).to(torch.int32)
    return is_bad & rows.is_new & ~is_over


def complete(pools: Pools, answer: Answer, under_way: UnderWay) -> None:
    """Make the new leaves, and back up the value of every leaf along its path."""
    is_new = under_way.is_new
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    pools.is_bad |= describe_leaves(pools, answer, tree, under_way)
    parent, action = under_way.parent.to(torch.int64), under_way.action.to(torch.int64)
    has_parent = is_new & (under_way.depth > 0)
    child = pools.child[tree, parent, action]
    pools.child[tree, parent, action] = torch.where(has_parent, under_way.slot, child)
    pools.next_free.copy_(torch.where(is_new, under_way.slot + 1, pools.next_free))

    back_up(pools, under_way, tree, tree)


def back_up(
    pools: Pools, under_way: UnderWay, tree: Tensor, row: Tensor, in_flight: InFlightCounts | None = None
) -> None:
    """Add the values of the leaves in rows `row` [B], one per tree, to their paths, and clear their marks in flight."""
    leaf, depth = under_way.leaf[row].to(torch.int64), under_way.depth[row]
    if pools.proof is not None:
        back_up_and_prove(pools, tree, leaf, depth, in_flight)
        return
    value = pools.value[tree, leaf]
    for step in range(int(depth.max())):
        is_on = step < depth
        word = torch.where(is_on, under_way.path[row, step], 0).to(torch.int64)
        node, action = (word >> 1) // pools.stride, (word >> 1) % pools.stride
        gain = torch.where((word & 1) != 0, -value, value).to(torch.float64)
        gain, once = torch.where(is_on, gain, 0.0), is_on.to(torch.int32)
        pools.visits[tree, node, action] += once
        pools.value_sum[tree, node, action] += gain
        pools.node_sum[tree, node] += gain
        pools.node_visits[tree, node] += once
        raise_spread(pools, tree, node, action, gain, is_on)
        if in_flight is not None:
            in_flight.edges[tree, node, action] -= once
            in_flight.nodes[tree, node] -= once


def complete_and_select(
    pools: Pools, answer: Answer, rules: Rules, under_way: UnderWay, chance: Chance | None = None
) -> None:
    """Complete one simulation and select the next."""
    complete(pools, answer, under_way)
    select(pools, rules, under_way, chance=chance)
