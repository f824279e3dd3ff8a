"""The settings of the selection in the tensor engine: in any combination, trees and moves are the reference's."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402
from drawn_games import NUM_ACTIONS, TensorDrawnWithChance  # noqa: E402
from test_tensor_proofs import ROOTS, Case, play  # noqa: E402

from windrow import TERMINAL, ConfigError, SearchConfig  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.reference import Node, ReferenceSearch, playable_edges, surest_edge  # noqa: E402
from windrow.reference.node import USUAL_DEVIATION  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game, memory_needed  # noqa: E402
from windrow.tensor.game import observation_size  # noqa: E402
from windrow.tensor.play.replay import TensorReplay  # noqa: E402
from windrow.tensor.play.selfplay import TensorSelfPlay  # noqa: E402

CPU = torch.device("cpu")
_ROUGH = (1.37, 0.9137)
"""Factors for logits and values, so that these are no dyadic numbers, and sums of them round."""


class RoughReference:
    """The hash evaluator times these factors."""

    def __init__(self, game: Any) -> None:
        self._hash = HashEvaluator(cases.SEED).bind(game)

    def evaluate(self, observations: Any) -> Any:
        """(logits, values)."""
        logits, values = self._hash.evaluate(observations)
        return logits * np.float32(_ROUGH[0]), values * np.float32(_ROUGH[1])


class RoughTensor(torch.nn.Module):
    """The same in torch."""

    def __init__(self, game: Any) -> None:
        super().__init__()
        self.hash = TensorHashEvaluator(game.num_actions, observation_size(game), cases.SEED)

    def forward(self, x: Any) -> Any:
        """(logits, values)."""
        logits, values = self.hash(x)
        return logits * _ROUGH[0], values * _ROUGH[1]


def check(case: Case, **settings: Any) -> None:
    """Search by the tensor engine and by the reference, with a move of every tree in between, and compare."""
    native, game = cases.make_pair(case.game, case.options)
    tensor, states = cases.positions(case.game, case.options, case.plies)
    search = TensorSearch(
        game,
        RoughTensor(game),
        case.config,
        **{"num_trees": len(states), "keeps_subtrees": True, "device": "cpu", **settings},
    )
    references = [ReferenceSearch(native, RoughReference(native), case.config, tree=i) for i in range(len(states))]
    rng = random.Random(3)
    for choice in [None, *case.choices]:
        if choice is not None:
            search.advance(torch.tensor([play(reference, choice) for reference in references], device=search.device))
            cases.pass_chance(search, native, [r if r.root is not None else None for r in references], rng)
        result = search.run(cases.each(tensor, lambda part: part.to(search.device)) if choice is None else None)
        for tree, reference in enumerate(references):
            at = states[tree] if reference.root is None else reference.root.state
            if native.to_play(at) == TERMINAL:
                assert result.visits[tree].sum() == 0 and result.policy[tree].sum() == 0
                continue
            reference.run(at if reference.root is None else None)
            assert_same(search, result, tree, reference, f"tree {tree} of {case}")


def assert_same(search: TensorSearch, result: Any, tree: int, reference: ReferenceSearch, what: str) -> None:
    root, config = reference.root, reference.config
    assert root is not None
    num_actions = search.game.num_actions
    got, want = cases.tensor_tree(search, tree), cases.reference_tree(root, num_actions)
    assert got.keys() == want.keys(), what
    for path, facts in want.items():
        assert got[path] == facts, f"node {path} of {what}"
    assert_same_spread(search, tree, root, what)

    playable = playable_edges(root)
    if reference.gumbel is not None:
        best = reference.gumbel.best_edge(root, playable)
    elif config.choose == "lcb":
        best = surest_edge(config, root)
    else:
        weights = next(w for w in (root.edge_visits * playable, root.prior * playable, playable * 1) if w.any())
        best = int(np.argmax(weights))
    assert int(result.best_action[tree]) == root.actions[best], what
    if reference.gumbel is None:
        alone = np.zeros(num_actions)
        alone[root.actions[best]] = 1
        assert result.policy_at(0)[tree].tolist() == alone.tolist(), what


def assert_same_spread(search: TensorSearch, tree: int, root: Node, what: str) -> None:
    """The sums of squares, and the scales made of them, of every decision."""
    pools, todo = search.pools, [(0, root)]
    assert (pools.node_squares is None) == (search.config.value_scale == "fixed" and search.config.choose == "visits")
    assert (pools.node_scale is None) == (search.config.value_scale == "fixed")
    numbers = cases.outcome_numbers(search.game)
    while todo:
        slot, node = todo.pop()
        if node.to_play >= 0 and pools.node_squares is not None:
            assert float(pools.node_squares[tree, slot]) == node.square_sums[0], what
        if node.to_play >= 0 and pools.node_scale is not None:
            scale = np.float32(node.deviation(node.to_play) / USUAL_DEVIATION)
            assert float(pools.node_scale[tree, slot]) == scale, what
        for edge, child in node.children.items():
            place = node.actions[edge] if node.to_play >= 0 else numbers.index(edge)
            todo.append((int(pools.slot_of(pools.child[tree, slot, place])), child))


# --- Drawn games --------------------------------------------------------------------------------------------------

SELECTION = st.fixed_dictionaries(
    {},
    optional={
        "root_first_play": st.sampled_from([1.0, -1.0, 0.3, "parent"]),
        "root_policy_temperature": st.sampled_from([0.01, 0.3, 1.1, 3.0, 100.0]),
        "value_scale": st.sampled_from(["tree", "node"]),
        "choose": st.just("lcb"),
        "lcb_deviations": st.sampled_from([0.01, 0.3, 5.0]),
        "c_puct_growth": st.sampled_from([0.1, 1.0, 30.0]),
        "c_puct_base": st.sampled_from([1.0, 10.1, 19652.0]),
    },
)


@st.composite
def selection_cases(draw: st.DrawFn, *, max_budget: int) -> Case:
    """Any drawn game, any positions, any combination of the settings, with everything else that the engine can do."""
    selection = draw(SELECTION)
    root = draw(ROOTS)
    if "root" in root:
        selection.pop("choose", None)  # refused with a Gumbel root
    first_play = draw(
        st.sampled_from([{}, {"first_play": -1.0}, {"first_play": "parent", "first_play_reduction": 0.25}])
    )
    config = SearchConfig(
        prove=draw(st.booleans()),
        num_simulations=draw(st.integers(0, max_budget)),
        leaves_per_tree=1 if "root" in root else draw(st.sampled_from([1, 1, 2, 3, 8])),
        on_collision="share",
        in_flight=draw(st.sampled_from(["visits", "loss", "dilute"])),
        c_puct=draw(st.sampled_from([0.0, 0.3, 1.5, 7.0])),
        max_depth=draw(st.sampled_from([None, None, None, 1, 3])),
        seed=draw(st.sampled_from([0, 2**64 - 1])),
        **root,
        **first_play,
        **selection,
    )
    options = {
        "seed": draw(st.integers(0, 9999)),
        "depth": draw(st.integers(1, 7)),
        "has_chance": draw(st.booleans()),
    }
    plies = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    return Case("drawn", options, plies, config, draw(st.lists(st.integers(-1, 4), max_size=2)))


@hypothesis.given(selection_cases(max_budget=40))
@hypothesis.settings(max_examples=60, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_drawn_cases(case: Case):
    check(case)


@pytest.mark.slow
@hypothesis.given(selection_cases(max_budget=120))
@hypothesis.settings(max_examples=1500, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_many_drawn_cases(case: Case):
    check(case)


# --- Real games ---------------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "first play": {"root_first_play": 1.0, "first_play": "parent"},
    "flat": {"root_policy_temperature": 1.3, "dirichlet_fraction": 0.25, "root_first_play": "parent"},
    "growth": {"c_puct_growth": 1.0, "c_puct_base": 10.0, "choose": "lcb", "lcb_deviations": 1.0},
    "tree": {"value_scale": "tree", "c_puct_growth": 0.5, "prove": True, "choose": "lcb"},
    "node": {"value_scale": "node", "root_first_play": -1.0, "prove": True},
    "gumbel": {"value_scale": "tree", "root": "gumbel", "gumbel_scale": 1.0, "root_policy_temperature": 2.0},
    "rounds": {
        **{"leaves_per_tree": 6, "on_collision": "share", "in_flight": "loss", "root_first_play": 1.0},
        **{"value_scale": "node", "c_puct_growth": 1.0, "c_puct_base": 5.0, "choose": "lcb", "lcb_deviations": 0.5},
    },
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["connect4", "gomoku", "pig", "rafts"])
def test_equals_the_reference(name: str, setting: str):
    """Whole trees, through a move with the subtree kept."""
    game, options, plies = cases.GAMES[name]
    check(Case(game, options, plies[-4:], SearchConfig(num_simulations=30, **SETTINGS[setting]), [-1]))


# --- Worked by hand -----------------------------------------------------------------------------------------------

WIN, DRAW, LOSS = (1.0,), (0.0,), (-1.0,)  # for player 0


def search_tree(tree: Any, logits: list[float], **settings: Any) -> Any:
    """Search a drawn tree in two trees at once, with the same logits and values of 0 everywhere."""

    def fn(x: Any) -> Any:
        return torch.tensor([logits]).repeat(len(x), 1), torch.zeros(len(x))

    search = TensorSearch(TensorDrawnWithChance(tree), fn, SearchConfig(**settings), num_trees=2, device="cpu")
    return search.run(search.game.initial(2))


def test_every_move_of_the_root_is_tried_once():
    """One prior is nearly 1; below the root nothing changes."""
    tree = [0, *([[1, [0, DRAW, DRAW], [0, DRAW, DRAW]]] * 3)]
    logits = [8.0, 0.0, 0.0, 0.0, 0.0]
    settings = {"num_simulations": 3, "c_puct": 1.0}
    assert search_tree(tree, logits, **settings).visits[0].tolist() == [3, 0, 0, 0, 0]
    assert search_tree(tree, logits, root_first_play=1.0, **settings).visits[0].tolist() == [1, 1, 1, 0, 0]


def test_a_temperature_flattens_the_priors_of_the_root():
    """.5, .3, .2 to the power of 1/2 are as .7071, .5477, .4472, which sum to 1.702."""
    tree = [0, *([[1, [0, DRAW, DRAW], [0, DRAW, DRAW]]] * 3)]
    logits = [*np.log([5.0, 3.0, 2.0]).tolist(), 0.0, 0.0]
    prior = search_tree(tree, logits, num_simulations=1, root_policy_temperature=2.0).prior[0].tolist()
    assert prior == pytest.approx([0.7071 / 1.702, 0.5477 / 1.702, 0.4472 / 1.702, 0, 0], abs=1e-4)


def test_the_surest_move_is_played():
    """Action 0 is a coin that wins with 0.65, action 1 a draw; without proofs a finished game is still known for sure.

    Action 0 has more visits. The standard error of its mean is about 1 / sqrt(N), and 5 of them are more than 0.3.
    """
    tree = [0, ["?", (0.65, WIN), (0.35, LOSS)], DRAW]
    settings = {"num_simulations": 60, "c_puct": 1.0}
    most = search_tree(tree, [0.0] * NUM_ACTIONS, **settings)
    sure = search_tree(tree, [0.0] * NUM_ACTIONS, choose="lcb", **settings)
    assert most.visits.tolist() == sure.visits.tolist()
    assert most.best_action.tolist() == most.visits.argmax(1).tolist() == [0, 0]
    assert sure.best_action.tolist() == [1, 1] and sure.policy_at(0)[0].tolist() == [0, 1, 0, 0, 0]
    assert sure.policy[0].argmax() == 0
    narrow = search_tree(tree, [0.0] * NUM_ACTIONS, choose="lcb", lcb_deviations=0.01, **settings)
    assert narrow.best_action.tolist() == [0, 0]


# --- Around it ----------------------------------------------------------------------------------------------------


def test_memory_is_taken_where_a_setting_needs_it():
    """12 bytes a node for a scale, of which the squares are 8."""
    game = make_game("connect4")
    without = memory_needed(game, 40, 3)
    for settings, more in (
        ({"root_first_play": 1.0, "c_puct_growth": 1.0, "root_policy_temperature": 2.0}, 0),
        ({"choose": "lcb"}, 8),
        ({"value_scale": "tree"}, 12),
        ({"value_scale": "node", "choose": "lcb"}, 12),
    ):
        config = SearchConfig(num_simulations=40, **settings)
        search = TensorSearch(game, TensorHashEvaluator(7, 84), config, num_trees=3, device="cpu")
        assert search.num_bytes == without + 3 * 42 * more
        scale, choose = config.value_scale, config.choose
        assert memory_needed(game, 40, 3, value_scale=scale, choose=choose) == search.num_bytes


def test_selfplay_draws_moves_by_visits_while_its_temperature_is_on():
    """The surest move is played at temperature 0 alone, as in the other engines. Policies stay shares of visits."""
    game, slots = make_game("connect4"), 32
    config = SearchConfig(num_simulations=24, choose="lcb", lcb_deviations=2.0)
    played: dict[int, list[bool]] = {}
    for plies in (99, 0):
        generator = torch.Generator().manual_seed(3)
        replay = TensorReplay(game, slots, slots * 12, device=CPU, generator=generator)
        seen = played.setdefault(plies, [])

        class Watched(TensorSelfPlay):
            def _draw(self, result: Any, seen: list[bool] = seen) -> Any:
                actions = super()._draw(result)
                seen.extend((actions == result.best_action).tolist())
                return actions

        selfplay = Watched(
            *(game, TensorHashEvaluator(7, 84), config, replay),
            device=CPU,
            generator=generator,
            temperature_plies=plies,
        )
        for row in range(6):
            result = selfplay.step()
            shares = result.visits / result.visits.sum(1, keepdim=True)
            assert torch.allclose(replay._policy[row].to(torch.float32), shares, atol=1e-2)
    assert all(played[0]) and 0.1 < np.mean(played[99]) < 0.9


def test_what_is_refused():
    game = make_game("connect4")
    with pytest.raises(ConfigError, match="does not support interior='gumbel': set interior='puct'"):
        TensorSearch(game, TensorHashEvaluator(7, 84), SearchConfig(interior="gumbel"), num_trees=3, device="cpu")
