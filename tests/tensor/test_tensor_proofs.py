"""Proven values in the tensor engine: trees, proofs and moves are the reference's, in drawn games and in real ones."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402
from drawn_games import NUM_ACTIONS, TensorDrawn, TensorDrawnWithChance  # noqa: E402

from windrow import TERMINAL, ConfigError, SearchConfig  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.reference import Node, ReferenceSearch, playable_edges  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game, memory_needed  # noqa: E402
from windrow.tensor.play.replay import TensorReplay  # noqa: E402
from windrow.tensor.play.selfplay import TensorSelfPlay  # noqa: E402

CPU = torch.device("cpu")


@dataclass
class Case:
    """Searches of some positions of a game, with a move of every tree between two of them."""

    game: str
    options: dict[str, Any]
    plies: list[int]
    config: SearchConfig
    choices: list[int]  # between two searches, which move is played; -1: the most visited one


def check(case: Case, **settings: Any) -> int:
    """Search by the tensor engine and by the reference, and compare; how many roots were proven."""
    native, _ = cases.make_pair(case.game, case.options)
    tensor, states = cases.positions(case.game, case.options, case.plies)
    where = {"device": "cpu", **settings}
    search = cases.make_search(case.game, case.options, len(states), case.config, keeps_subtrees=True, **where)
    references = [ReferenceSearch(native, HashEvaluator(cases.SEED), case.config, tree=i) for i in range(len(states))]
    first: list[Any] = list(states)
    num_proven, rng = 0, random.Random(3)
    for choice in [None, *case.choices]:
        if choice is not None:
            search.advance(torch.tensor([play(reference, choice) for reference in references], device=search.device))
            cases.pass_chance(search, native, [r if r.root is not None else None for r in references], rng)
        tensor = cases.each(tensor, lambda part: part.to(search.device))
        result = search.run(tensor if choice is None else None)
        for tree, reference in enumerate(references):
            at = first[tree] if reference.root is None else reference.root.state
            if native.to_play(at) == TERMINAL:
                assert result.visits[tree].sum() == 0 and result.proven.values[tree].isnan()
                assert not result.proven.playable[tree].any() and result.policy[tree].sum() == 0
                continue
            root = reference.run(at if reference.root is None else None)
            assert_same(search, result, tree, reference, f"tree {tree} of {case}")
            num_proven += root.is_proven
    return num_proven


def play(reference: ReferenceSearch, choice: int) -> int:
    """Play a move in a reference search; the action, or -1 where there is none."""
    root = reference.root
    if root is None or root.to_play == TERMINAL:
        return -1
    edge = int(np.argmax(root.edge_visits)) if choice < 0 else choice % len(root.actions)
    reference.advance(root.actions[edge])
    return root.actions[edge]


def assert_same(search: TensorSearch, result: Any, tree: int, reference: ReferenceSearch, what: str) -> None:
    root = reference.root
    assert root is not None
    num_actions = search.game.num_actions
    got, want = cases.tensor_tree(search, tree), cases.reference_tree(root, num_actions)
    assert got.keys() == want.keys(), what
    for path, facts in want.items():
        assert got[path] == facts, f"node {path} of {what}"

    proven, actions = result.proven, root.actions
    value, mean = float(result.value[tree]), root.value_sum / root.visits
    assert value == (root.value if root.is_proven else float(np.float32(mean))), what
    assert math.isnan(proven.values[tree]) != root.is_proven, what
    assert int(proven.distances[tree]) == (root.distance if root.is_proven else 0), what
    children = {actions[edge]: root.children[edge] for edge in np.flatnonzero(root.is_edge_proven)}
    for action in range(num_actions):
        child: Node | None = children.get(action)
        own, distance = float(proven.action_values[tree, action]), int(proven.action_distances[tree, action])
        assert math.isnan(own) if child is None else own == child.values[root.to_play], what
        assert distance == (0 if child is None else 1 + child.distance), what
    playable = playable_edges(root)
    assert proven.playable[tree].nonzero()[:, 0].tolist() == [actions[e] for e in np.flatnonzero(playable)], what
    assert not result.is_full[tree], what

    policy = np.zeros(num_actions, np.float32)
    if reference.gumbel is not None:
        policy[actions] = playable.astype(float) if root.is_proven else reference.gumbel.policy(root)
        best = actions[reference.gumbel.best_edge(root, playable)]
    else:
        weights = next(w for w in (root.edge_visits * playable, root.prior * playable, playable * 1) if w.any())
        policy[actions] = weights.astype(np.float64) / weights.astype(np.float64).sum()
        best = actions[int(np.argmax(weights))]
    assert int(result.best_action[tree]) == best, what
    np.testing.assert_allclose(result.policy[tree].cpu().numpy(), policy, rtol=1e-6, err_msg=what)


# --- Drawn games --------------------------------------------------------------------------------------------------

ROOTS = st.one_of(
    st.builds(lambda noise: {"dirichlet_fraction": noise}, st.sampled_from([0.0, 0.0, 0.25])),
    st.builds(
        lambda considered, scale: {"root": "gumbel", "gumbel_considered": considered, "gumbel_scale": scale},
        st.sampled_from([1, 2, 5]),
        st.sampled_from([0.0, 1.0]),
    ),
)


@st.composite
def drawn_cases(draw: st.DrawFn, *, max_budget: int) -> Case:
    """Any drawn game, with or without chance, any positions, any setting that bears on proofs."""
    root = draw(ROOTS)
    leaves = 1 if "root" in root else draw(st.sampled_from([1, 1, 2, 3, 8]))
    first_play = draw(
        st.sampled_from([{}, {"first_play": -1.0}, {"first_play": "parent", "first_play_reduction": 0.25}])
    )
    config = SearchConfig(
        prove=True,
        num_simulations=draw(st.integers(1, max_budget)),
        leaves_per_tree=leaves,
        on_collision="share",
        in_flight=draw(st.sampled_from(["visits", "loss", "dilute"])),
        c_puct=draw(st.sampled_from([0.0, 0.3, 1.5, 7.0])),
        virtual_loss=draw(st.sampled_from([0.5, 1.0])),
        max_depth=draw(st.sampled_from([None, None, None, 1, 3])),
        seed=draw(st.sampled_from([0, 2**64 - 1])),
        **root,
        **first_play,
    )
    options = {
        "seed": draw(st.integers(0, 9999)),
        "depth": draw(st.integers(1, 7)),
        "has_chance": draw(st.booleans()),
    }
    return Case(
        "drawn",
        options,
        draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)),
        config,
        draw(st.lists(st.integers(-1, 4), max_size=2)),
    )


@hypothesis.given(drawn_cases(max_budget=40))
@hypothesis.settings(max_examples=60, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_drawn_cases(case: Case):
    check(case)


@pytest.mark.slow
@hypothesis.given(drawn_cases(max_budget=120))
@hypothesis.settings(max_examples=1000, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_many_drawn_cases(case: Case):
    check(case)


# --- Games with moves enough --------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "noise": {"dirichlet_fraction": 0.25, "first_play": "parent", "seed": 5},
    "gumbel": {"root": "gumbel", "gumbel_scale": 1.0},
    "rounds": {"leaves_per_tree": 6, "on_collision": "share", "in_flight": "loss"},
}
LATE = {
    "tictactoe": ("tictactoe", {}, [2, 3, 4, 5, 9]),
    "connect4": ("connect4", {"rows": 4, "columns": 5, "connect": 3}, [4, 8, 20, 5]),
    "othello": ("othello", {}, [53, 56, 57]),
    "rafts": ("rafts", {}, [7, 7, 8, 9]),
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", LATE)
def test_equals_the_reference(name: str, setting: str):
    game, options, plies = LATE[name]
    config = SearchConfig(prove=True, num_simulations=100, **SETTINGS[setting])
    assert check(Case(game, options, plies, config, [-1, 1])) > 0


def test_a_larger_tree_before_leaves_no_proofs():
    """Slots are used again without being cleared."""
    config = SearchConfig(prove=True, num_simulations=80)
    first, _ = cases.positions("tictactoe", {}, [5, 5, 4])
    second, states = cases.positions("tictactoe", {}, [0, 1, 2])
    search = cases.make_search("tictactoe", {}, 3, config, device="cpu")
    assert not search.run(first).proven.values.isnan().all()
    cases.assert_equals_reference(search, search.run(second), "tictactoe", {}, states)


# --- Trees on paper -----------------------------------------------------------------------------------------------

WIN, DRAW, LOSS = (1.0,), (0.0,), (-1.0,)  # for player 0


def search_tree(tree: Any, **settings: Any) -> tuple[TensorSearch, Any]:
    """Search a drawn tree, with equal priors and values of 0, in two trees at once."""

    def know_nothing(x: Any) -> Any:
        return torch.zeros(len(x), NUM_ACTIONS), torch.zeros(len(x))

    config = SearchConfig(**{"prove": True, "num_simulations": 60, **settings})
    search = TensorSearch(TensorDrawnWithChance(tree), know_nothing, config, num_trees=2, device="cpu")
    return search, search.run(search.game.initial(2))


@pytest.mark.parametrize("settings", [{}, {"root": "gumbel"}, {"leaves_per_tree": 2, "on_collision": "share"}])
def test_a_win_in_three(settings: dict[str, Any]):
    """Action 1 wins whatever player 1 answers. Action 0 is endless: nothing below it is proven in time."""
    endless: Any = [1, DRAW, DRAW]
    for _ in range(6):
        endless = [1, [0, endless, endless], [0, endless, endless]]
    search, result = search_tree([0, endless, [1, [0, WIN, DRAW], [0, DRAW, WIN]]], **settings)
    assert result.proven.values.tolist() == [1.0, 1.0] and result.proven.distances.tolist() == [3, 3]
    assert result.best_action.tolist() == [1, 1] and result.policy[0].tolist() == [0, 1, 0, 0, 0]
    assert result.proven.action_distances[0].tolist() == [0, 3, 0, 0, 0]
    assert result.value.tolist() == [1.0, 1.0] and result.q[0, 1] == 1.0
    assert result.visits[0].sum() < 60 and not result.is_full.any()
    again = search.run()
    assert torch.equal(again.visits, result.visits) and again.best_action.tolist() == [1, 1]


def test_a_loss_is_postponed():
    """Both actions lose: action 0 in two moves, action 1 in four."""
    _, result = search_tree([0, [1, LOSS, DRAW], [1, [0, [1, LOSS, WIN], [1, WIN, LOSS]], DRAW]])
    assert result.proven.values.tolist() == [-1.0, -1.0] and result.proven.distances.tolist() == [4, 4]
    assert result.proven.action_distances[0].tolist() == [2, 4, 0, 0, 0]
    assert result.best_action.tolist() == [1, 1]


def test_chance_is_proven_by_its_expectation():
    """Action 0: a quarter wins, three quarters lose: -1/2. Action 1: a draw. Action 2: half and half, 0 too."""
    tree = [0, ["?", (0.25, WIN), (0.75, LOSS)], [1, DRAW], ["?", (0.5, WIN), (0.5, LOSS)]]
    _, result = search_tree(tree, num_simulations=400)
    assert result.proven.action_values[0, :3].tolist() == [-0.5, 0.0, 0.0]
    assert result.proven.action_distances[0, :3].tolist() == [1, 2, 1]
    assert (result.proven.values[0], result.proven.distances[0], result.best_action[0]) == (0.0, 2, 1)


def test_a_lost_move_is_not_played_however_often_it_was_visited():
    """Action 0 has nearly all of the prior, and the visits, until it is lost; action 1 is open."""
    lost: Any = [1, [0, [1, LOSS], [1, LOSS]], [0, [1, LOSS], [1, LOSS]]]
    open_action: Any = DRAW
    for _ in range(7):
        open_action = [1, [0, open_action, open_action], [0, open_action, open_action]]
    game = TensorDrawn([0, lost, open_action])

    def prefer_the_first(x: Any) -> Any:
        return torch.tensor([[6.0, 0, 0, 0, 0]]).repeat(len(x), 1), torch.zeros(len(x))

    config = SearchConfig(prove=True, num_simulations=60)
    result = TensorSearch(game, prefer_the_first, config, num_trees=1, device="cpu").run(game.initial(1))
    assert result.proven.action_values[0, 0] == -1.0 and result.visits[0, 0] > 5
    assert result.best_action[0] == 1 and result.policy_at(1.0)[0].tolist() == [0, 1, 0, 0, 0]


# --- Around it ----------------------------------------------------------------------------------------------------


def test_memory_is_one_number_per_node():
    game = make_game("connect4")
    for leaves in (1, 4):
        config = SearchConfig(prove=True, num_simulations=40, on_collision="share", leaves_per_tree=leaves)
        search = TensorSearch(game, TensorHashEvaluator(7, 84), config, num_trees=3, device="cpu")
        without = memory_needed(game, 40, 3, leaves_per_tree=leaves)
        assert (
            memory_needed(game, 40, 3, leaves_per_tree=leaves, prove=True) == without + 3 * 42 * 4 == search.num_bytes
        )


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_selfplay_plays_what_no_proof_beats(root: Any):
    """Every move is playable, also where the most visited one is not, and proven values are kept as such."""
    game, slots = make_game("tictactoe"), 16
    generator = torch.Generator().manual_seed(3)
    replay = TensorReplay(game, slots, slots * 30, device=CPU, generator=generator, prove=True)
    config = SearchConfig(num_simulations=24, prove=True, root=root, gumbel_scale=1.0 if root == "gumbel" else 0.0)

    class Watched(TensorSelfPlay):
        def _draw(self, result: Any) -> Any:
            actions = super()._draw(result)
            assert result.proven.playable.gather(1, actions[:, None]).all()
            return actions

    selfplay = Watched(
        game, TensorHashEvaluator(9, 18), config, replay, device=CPU, generator=generator, temperature_plies=99
    )
    num_avoided = num_proven = 0
    for row in range(30):
        result = selfplay.step()
        num_avoided += int(((result.visits > 0) & ~result.proven.playable).any(1).sum())
        is_proven = ~result.proven.values.isnan()
        num_proven += int(is_proven.sum())
        assert torch.equal(replay._is_proven[row], is_proven)
        assert torch.equal(replay._value[row][is_proven], result.proven.values[is_proven])
    assert num_avoided > 20 and num_proven > 20
    with pytest.raises(ConfigError, match=r"TensorReplay\(prove=True\)"):
        other = TensorReplay(game, slots, slots * 30, device=CPU, generator=generator)
        TensorSelfPlay(game, TensorHashEvaluator(9, 18), config, other, device=CPU, generator=generator)
