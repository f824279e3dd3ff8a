"""One simulation in plain torch ops: what the kernels in `kernels.py` do, in words that run anywhere.

Signatures are equal, results are equal to the last bit. Loops end when every tree is done, which asks the device: on a
GPU these are slow, and they are the base of comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.chance import Chance, draw, pick
from windrow.tensor.numerics import exp64, log64, softmax, uniform
from windrow.tensor.pools import NO_CHILD, Pools
from windrow.tensor.rules import Rules

ROOT_NOISE = 0
"""The purpose of its random numbers; see `windrow.numerics.Purpose`."""

LARGEST_VALUE = 1.0
"""How far from 0 an evaluator's value may be."""


@dataclass(slots=True)
class Answer:
    """What game and evaluator say about one position per tree, [B, ...].

    logits, values: from the evaluator, any floating type; values are for the player to move.
    """

    to_play: Tensor  # int32, TERMINAL where the game is over
    outcome: Tensor  # float32: the result for player 0 where it is
    legal: Tensor  # [B, A] bool
    logits: Tensor  # [B, A]
    values: Tensor


def select(pools: Pools, rules: Rules, root_action: Tensor | None = None, chance: Chance | None = None) -> None:
    """Walk every tree from its root to a leaf.

    Writes the simulation under way: `path` and `depth`, `leaf` (a free slot if `is_new`), `parent` and `action` above
    it, and `slot`, where the leaf's facts go: the last one, which is nobody's, unless it is new. Trees whose game is
    over, or that have no slot left, stay at depth 0.

    With chance, the parent of a new leaf may be a node of chance, and its action an outcome; what is made there may be
    of chance again, which is the game's to say (`leaves.py`). A tree at whose root chance is to move stays at depth 0.

    Args:
        pools: the trees.
        rules: how to choose.
        root_action: [B] int32, the first step of every walk if the root does not choose by PUCT.
        chance: what the draws need, in a game of chance.
    """
    last = pools.num_slots - 1
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    node = torch.zeros_like(tree)
    depth, parent, action = torch.zeros_like(node), torch.zeros_like(node), torch.zeros_like(node)
    num_draws = torch.zeros_like(node)
    live = (pools.to_play[:, 0] >= 0) & (pools.next_free < last - (chance.max_draws if chance else 0))
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
        pools.path[tree, depth] = torch.where(decides, word.to(torch.int32), pools.path[tree, depth])
        parent, action = torch.where(live, node, parent), torch.where(live, best, action)
        depth = depth + decides
        child = pools.child[tree, node, best].to(torch.int64)
        is_new = is_new | (live & (child == NO_CHILD))
        live = live & (child != NO_CHILD)
        node = torch.where(live, child, node)
    pools.leaf.copy_(torch.where(is_new, pools.next_free, node))
    pools.slot.copy_(torch.where(is_new, pools.next_free, last))
    for target, source in ((pools.depth, depth), (pools.parent, parent), (pools.action, action)):
        target.copy_(source)
    pools.is_new.copy_(is_new)
    if chance is not None:
        chance.simulation.copy_(chance.num_started)
        chance.num_draws.copy_(num_draws)
        chance.num_started += 1


def best_action(pools: Pools, rules: Rules, tree: Tensor, node: Tensor) -> Tensor:
    """[B] int64: the law's choice at one node of each tree."""
    edges = (tree, node, slice(None, pools.num_actions))
    visits, prior = pools.visits[edges], pools.prior[edges]
    num_visits = pools.node_visits[tree, node].to(torch.float32)[:, None]
    if rules.is_parent:
        first_play = pools.node_sum[tree, node].to(torch.float32)[:, None] / num_visits - rules.first_play
    else:
        first_play = torch.full_like(num_visits, rules.first_play)
    q = pools.value_sum[edges].to(torch.float32) / torch.clamp_min(visits, 1).to(torch.float32)
    q = torch.where(visits > 0, q, first_play)
    score = q + rules.c_puct * prior * torch.sqrt(num_visits) / (1 + visits).to(torch.float32)
    return torch.where(prior >= 0, score, -torch.inf).argmax(1)


class UnderWay(Protocol):
    """Simulations that were selected: one per row."""

    leaf: Tensor
    parent: Tensor
    action: Tensor
    slot: Tensor
    is_new: Tensor


def describe_leaves(pools: Pools, answer: Answer, tree: Tensor, rows: UnderWay) -> Tensor:
    """Write what is known of new leaves, one per row, into their slots; `tree` [rows] is whose they are.

    Returns:
        [rows] bool: new leaves about which the evaluator said anything but numbers, or a value that cannot be.
    """
    slot, is_over = rows.slot.to(torch.int64), answer.to_play == TERMINAL
    values = answer.values.to(torch.float32)
    is_bad = ~((values.abs() <= LARGEST_VALUE) & (torch.isfinite(answer.logits) | ~answer.legal).all(1))
    # What is no number would spread; the search goes on without it, and the result says so.
    values = torch.where(is_bad, 0.0, values)
    logits = torch.where(is_bad[:, None], 0.0, answer.logits.to(torch.float32))
    for_first = torch.where(is_over, answer.outcome, torch.where(answer.to_play == 0, values, -values))

    # The rows that nobody wants go to the last slot.
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
    pools.parent_of[tree, slot] = rows.parent
    pools.action_of[tree, slot] = rows.action
    return is_bad & rows.is_new & ~is_over


def complete(pools: Pools, answer: Answer) -> None:
    """Make the new leaves, and back up the value of every leaf along its path."""
    stride, is_new = pools.stride, pools.is_new
    tree = torch.arange(pools.num_trees, device=pools.visits.device)
    pools.is_bad |= describe_leaves(pools, answer, tree, pools)
    parent, action = pools.parent.to(torch.int64), pools.action.to(torch.int64)
    has_parent = is_new & (pools.depth > 0)
    child = pools.child[tree, parent, action]
    pools.child[tree, parent, action] = torch.where(has_parent, pools.slot, child)
    pools.next_free.copy_(torch.where(is_new, pools.slot + 1, pools.next_free))

    value = pools.value[tree, pools.leaf.to(torch.int64)]
    for step in range(int(pools.depth.max())):
        is_on = step < pools.depth
        word = torch.where(is_on, pools.path[:, step], 0).to(torch.int64)
        edge, is_second = word >> 1, (word & 1) != 0
        node, action = edge // stride, edge % stride
        gain = torch.where(is_second, -value, value).to(torch.float64)
        gain = torch.where(is_on, gain, 0.0)
        once = is_on.to(torch.int32)
        pools.visits[tree, node, action] += once
        pools.value_sum[tree, node, action] += gain
        pools.node_sum[tree, node] += gain
        pools.node_visits[tree, node] += once


def complete_and_select(pools: Pools, answer: Answer, rules: Rules, chance: Chance | None = None) -> None:
    """One after the other: the end of one simulation and the beginning of the next."""
    complete(pools, answer)
    select(pools, rules, chance=chance)


def root_noise(legal: Tensor, *, seed: int, move: int, alpha: float, noise: Tensor) -> None:
    """Write Dirichlet(alpha) noise over the legal actions of every tree into `noise` [B, A] float32; 0 elsewhere."""
    num_trees, num_actions = legal.shape
    tree = torch.arange(num_trees, device=legal.device)[:, None].expand(legal.shape)
    lane = ROOT_NOISE + 256 * torch.arange(num_actions, device=legal.device).expand(legal.shape)
    index = torch.zeros_like(tree)

    def draw(at: Tensor) -> Tensor:
        return uniform(seed, tree, move, lane, at)

    shift = torch.zeros(legal.shape, dtype=torch.float64, device=legal.device)
    divisor = torch.full_like(shift, alpha)
    if alpha < 1.0:
        shift = log64(draw(index)) / divisor
        index = index + 1
    d = (alpha + 1.0 if alpha < 1.0 else alpha) - 1.0 / 3.0
    c = 1.0 / torch.sqrt(torch.full_like(shift, 9.0 * d))
    log_d = log64(torch.full_like(shift, d))
    logs = torch.full_like(shift, -torch.inf)
    waiting = legal.clone()
    while bool(waiting.any()):
        # Marsaglia's polar method, then Marsaglia and Tsang's test; a draw that fails either begins anew.
        x, y = 2.0 * draw(index) - 1.0, 2.0 * draw(index + 1) - 1.0
        s = x * x + y * y
        inside = s < 1.0
        s = torch.where(inside, s, 0.5)
        normal = x * torch.sqrt(-2.0 * log64(s) / s)
        root = 1.0 + c * normal
        inside = inside & (root > 0.0)
        root = torch.where(inside, root, 1.0)
        v = root * root * root
        log_v = log64(v)
        is_taken = log64(draw(index + 2)) < 0.5 * normal * normal + d - d * v + d * log_v
        is_taken = is_taken & inside & waiting
        logs = torch.where(is_taken, log_d + log_v + shift, logs)
        index = index + 2 + inside.to(torch.int64)
        waiting = waiting & ~is_taken
    largest = torch.where(legal, logs, -torch.inf).amax(1, keepdim=True)
    powers = exp64(torch.where(legal, logs - largest, -1000.0))
    total = torch.zeros_like(powers[:, 0])
    for action in range(num_actions):  # in this order, since the sum is rounded
        total = total + powers[:, action]
    # A finished game has no legal action and no noise.
    total = torch.where(total > 0.0, total, 1.0)
    noise.copy_(powers / total[:, None])


def mix_noise(pools: Pools, clean: Tensor, noise: Tensor, fraction: float) -> None:
    """Give every root the priors (1 - fraction) * `clean` + fraction * `noise`, both [B, A] float32."""
    rest = float(torch.tensor(1.0) - torch.tensor(fraction))
    mixed = rest * clean + fraction * noise
    pools.root_priors.copy_(torch.where(clean >= 0, mixed, -1.0))
