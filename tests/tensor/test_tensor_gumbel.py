"""The Gumbel root of the tensor engine is the reference's: visits, survivor and improved policy."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402

from windrow import TERMINAL, ConfigError, SearchConfig  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.reference import ReferenceSearch  # noqa: E402

CONFIGS = {
    "play": SearchConfig(num_simulations=32, root="gumbel"),
    "self-play": SearchConfig(num_simulations=40, root="gumbel", gumbel_scale=1.0, seed=2**64 - 1),
    "few": SearchConfig(num_simulations=21, root="gumbel", gumbel_considered=4, gumbel_scale=2.5, first_play="parent"),
    "one": SearchConfig(num_simulations=6, root="gumbel", gumbel_considered=1, gumbel_visit_offset=0.0),
    "none": SearchConfig(num_simulations=0, root="gumbel", gumbel_scale=1.0),
}


def assert_equals_reference(search: Any, result: Any, references: list[Any], roots: list[Any]) -> None:
    """Every node, the action to play, and the policy to learn."""
    num_actions = search.game.num_actions
    for tree, (reference, root) in enumerate(zip(references, roots, strict=True)):
        if reference is None:
            assert result.visits[tree].sum() == 0 and result.policy[tree].sum() == 0
            continue
        assert cases.tensor_tree(search, tree) == cases.reference_tree(root, num_actions), tree
        policy = [0.0] * num_actions
        for action, share in zip(root.actions, reference.gumbel.policy(root).tolist(), strict=True):
            policy[action] = share
        assert result.policy[tree].tolist() == policy, tree
        assert result.best_action[tree] == root.actions[reference.gumbel.best_edge(root)], tree


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", cases.GAMES)
def test_equals_the_reference(name: str, config: SearchConfig):
    """Two searches and a move between them, so that visits from before are not counted."""
    game, options, plies = cases.GAMES[name]
    native, _ = cases.make_pair(game, options)
    tensor, states = cases.positions(game, options, plies)
    search = cases.make_search(game, options, len(plies), config, keeps_subtrees=True, device="cpu")
    references = [
        None
        if native.to_play(state) == TERMINAL
        else ReferenceSearch(native, HashEvaluator(cases.SEED), config, tree=tree)
        for tree, state in enumerate(states)
    ]
    result = search.run(tensor)
    roots = [reference and reference.run(state) for reference, state in zip(references, states, strict=True)]
    assert_equals_reference(search, result, references, roots)
    for tree, reference in enumerate(references):
        if reference is not None:
            reference.advance(int(result.best_action[tree]))
    search.advance(result.best_action)
    cases.pass_chance(search, native, references, random.Random(1))
    references = [
        None if reference is None or reference.root.to_play == TERMINAL else reference for reference in references
    ]
    result = search.run()
    assert_equals_reference(search, result, references, [reference and reference.run() for reference in references])


def test_the_budget_is_the_config_s():
    search = cases.make_search("connect4", {}, 1, CONFIGS["play"], device="cpu")
    with pytest.raises(ConfigError, match="divides the config's number of simulations"):
        search.run(search.game.initial(1), num_simulations=8)
