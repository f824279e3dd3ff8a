"""K leaves of every tree in one round, in plain torch ops: selections that do not know of each other's results.

What is selected and not yet backed up counts as in flight (I), by the law's rules. A leaf that is selected again while
it waits is shared: it has one row of the network's batch, and every simulation that chose it backs up its value. A
round is K walks one after the other, one batch of B * K rows, and K backups in the same order; row b * K + k is walk k
of tree b. In a game of chance each walk is a call of its own, and the game makes what it found before the next begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windrow.config import InFlight, SearchConfig
from windrow.games.protocol import CHANCE
from windrow.tensor.chance import Chance, draw, pick
from windrow.tensor.pools import NO_CHILD, Pools
from windrow.tensor.rules import Rules
from windrow.tensor.twins import Answer, describe_leaves


@dataclass(slots=True)
class Flight:
    """What is in flight. All of `edges` and `nodes` is zero between rounds."""

    num_leaves: int  # K
    rule: InFlight
    virtual_loss: float  # rounded to float32
    edges: Tensor  # [B, M, S] int32: I of each edge
    nodes: Tensor  # [B, M] int32: I of each node, the sum of its edges'
    remaining: Tensor  # [B] int32: simulations of this search that are not yet selected
    path: Tensor  # [B * K, M] int32, as in the pools
    under_way: Tensor  # [5, B * K] int32: the next five in one piece
    depth: Tensor
    leaf: Tensor
    parent: Tensor
    action: Tensor
    slot: Tensor
    is_new: Tensor  # [B * K] bool


def bytes_in_flight(stride: int, num_slots: int, num_leaves: int) -> int:
    """Of one tree, beside its pools."""
    return num_slots * (stride * 4 + 4) + 4 + num_leaves * (num_slots * 4 + 5 * 4 + 1)


def make_flight(config: SearchConfig, pools: Pools) -> Flight:
    """Everything that rounds of K leaves need, allocated once."""
    num_leaves = config.leaves_per_tree or 1
    device, rows = pools.visits.device, pools.num_trees * num_leaves
    under_way = torch.zeros((5, rows), dtype=torch.int32, device=device)
    return Flight(
        num_leaves=num_leaves,
        rule=config.in_flight,
        virtual_loss=float(torch.tensor(config.virtual_loss, dtype=torch.float32)),
        edges=torch.zeros_like(pools.visits),
        nodes=torch.zeros_like(pools.node_visits),
        remaining=torch.zeros_like(pools.next_free),
        path=torch.zeros((rows, pools.num_slots), dtype=torch.int32, device=device),
        under_way=under_way,
        depth=under_way[0],
        leaf=under_way[1],
        parent=under_way[2],
        action=under_way[3],
        slot=under_way[4],
        is_new=torch.zeros(rows, dtype=torch.bool, device=device),
    )


def select(pools: Pools, rules: Rules, flight: Flight, chance: Chance | None = None, walk: int = 0) -> None:
    """Walk every tree K times from its root to a leaf, or as often as simulations remain, and mark the paths.

    With chance only walk number `walk` of the K.
    """
    last, num_leaves = pools.num_slots - 1, flight.num_leaves
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    for k in range(num_leaves) if chance is None else [walk]:
        row = tree * num_leaves + k
        node = torch.zeros_like(tree)
        depth, parent, action = torch.zeros_like(node), torch.zeros_like(node), torch.zeros_like(node)
        num_draws = torch.zeros_like(node)
        live = (k < flight.remaining) & (pools.next_free < last - (chance.max_draws if chance else 0))
        live = live & (pools.to_play[:, 0] >= 0)
        is_new = torch.zeros_like(live)
        while bool(live.any()):
            to_play = pools.to_play[tree, node]
            # A node without visits waits for its evaluation, or its game is over: a leaf either way; or is of chance.
            decides = live & (pools.node_visits[tree, node] > 0) & (depth != rules.max_depth)
            best = _best_action(pools, rules, flight, tree, node)
            if chance is None:
                live = decides
            else:
                of_chance = live & (to_play == CHANCE)
                drawn = draw(chance.key, tree, num_draws, (chance.num_started + k).to(torch.int64))
                best = torch.where(of_chance, pick(pools.prior[tree, node, : chance.num_outcomes], drawn), best)
                num_draws = num_draws + of_chance
                live = decides | of_chance
            word = (node * pools.stride + best) * 2 + to_play
            flight.path[row, depth] = torch.where(decides, word.to(torch.int32), flight.path[row, depth])
            flight.edges[tree, node, best] += decides.to(torch.int32)
            flight.nodes[tree, node] += decides.to(torch.int32)
            parent, action = torch.where(live, node, parent), torch.where(live, best, action)
            depth = depth + decides
            child = pools.child[tree, node, best].to(torch.int64)
            is_new = is_new | (live & (child == NO_CHILD))
            live = live & (child != NO_CHILD)
            node = torch.where(live, child, node)
        free = torch.where(is_new, pools.next_free, last)
        # The slot is given out at once, so that the next walk finds the leaf waiting.
        pools.child[tree, parent, action] = torch.where(is_new, free, pools.child[tree, parent, action])
        pools.node_visits[tree, free.to(torch.int64)] = 0
        pools.next_free += is_new.to(torch.int32)
        flight.leaf[row] = torch.where(is_new, free, node).to(torch.int32)
        flight.slot[row] = free
        flight.depth[row], flight.parent[row], flight.action[row] = (
            part.to(torch.int32) for part in (depth, parent, action)
        )
        flight.is_new[row] = is_new
        if chance is not None:
            chance.simulation[row] = chance.num_started + k
            chance.num_draws[row] = num_draws.to(torch.int32)
    if chance is None or walk == num_leaves - 1:
        flight.remaining.copy_(torch.clamp_min(flight.remaining - num_leaves, 0))
        if chance is not None:
            chance.num_started += num_leaves


def _best_action(pools: Pools, rules: Rules, flight: Flight, tree: Tensor, node: Tensor) -> Tensor:
    """[B] int64: the law's choice at one node of each tree, with what is in flight."""
    edges = (tree, node, slice(None, pools.num_actions))
    visits, prior, in_flight = pools.visits[edges], pools.prior[edges], flight.edges[edges]
    own = pools.node_visits[tree, node]
    if rules.is_parent:
        mean = pools.node_sum[tree, node].to(torch.float32) / own.to(torch.float32)
        first_play = (mean - rules.first_play)[:, None]
    else:
        first_play = torch.full_like(prior[:, :1], rules.first_play)
    denominator = visits if flight.rule == "visits" else visits + in_flight
    numerator = pools.value_sum[edges].to(torch.float32)
    if flight.rule == "loss":
        numerator = numerator - flight.virtual_loss * in_flight.to(torch.float32)
    q = numerator / torch.clamp_min(denominator, 1).to(torch.float32)
    q = torch.where(denominator > 0, q, first_play)
    root = torch.sqrt((own + flight.nodes[tree, node]).to(torch.float32))[:, None]
    score = q + rules.c_puct * prior * root / (1 + visits + in_flight).to(torch.float32)
    return torch.where(prior >= 0, score, -torch.inf).argmax(1)


def complete(pools: Pools, answer: Answer, flight: Flight) -> None:
    """Make the new leaves of a round, back up every path in the order of the walks, and clear its marks."""
    num_leaves, stride = flight.num_leaves, pools.stride
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    every = torch.arange(len(flight.depth), device=tree.device) // num_leaves
    is_bad = describe_leaves(pools, answer, every, flight)
    pools.is_bad |= is_bad.view(-1, num_leaves).any(1)
    for k in range(num_leaves):
        row = tree * num_leaves + k
        value = pools.value[tree, flight.leaf[row].to(torch.int64)]
        for step in range(int(flight.depth[row].max())):
            is_on = step < flight.depth[row]
            word = torch.where(is_on, flight.path[row, step], 0).to(torch.int64)
            node, action = (word >> 1) // stride, (word >> 1) % stride
            gain = torch.where((word & 1) != 0, -value, value).to(torch.float64)
            gain, once = torch.where(is_on, gain, 0.0), is_on.to(torch.int32)
            pools.visits[tree, node, action] += once
            pools.value_sum[tree, node, action] += gain
            pools.node_sum[tree, node] += gain
            pools.node_visits[tree, node] += once
            flight.edges[tree, node, action] -= once
            flight.nodes[tree, node] -= once
