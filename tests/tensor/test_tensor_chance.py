"""Chance in the tensor engine: the draws of the law, trees of the core, roots where chance is to move, games played.

That every node is the reference's, test_tensor_search.py, _gumbel, _flight and _reuse show, with pig and with the rafts
of chance_games.py among their games.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402
from chance_games import Rafts, TensorRafts  # noqa: E402

from windrow import ConfigError, GameError, Search, SearchConfig, SearchError  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.games.python_game import as_core_game  # noqa: E402
from windrow.numerics import Purpose, Stream  # noqa: E402
from windrow.reference import ReferenceSearch  # noqa: E402
from windrow.tensor import (  # noqa: E402
    TensorHashEvaluator,
    TensorReplay,
    TensorSearch,
    TensorSelfPlay,
    make_game,
    memory_needed,
)
from windrow.tensor.game import is_chance, like, rows, stack  # noqa: E402
from windrow.tensor.ops.outcomes_torch import draw, pick  # noqa: E402
from windrow.tensor.play.openings import Openings  # noqa: E402
from windrow.tensor.tree.chance import pass_chance  # noqa: E402

CPU = torch.device("cpu")

# --- Draws --------------------------------------------------------------------------------------------------------


def test_the_outcome_that_a_number_falls_on():
    """Bounds of 1/4, 0, 1/2, 1/4, 0 are 0.25, 0.25, 0.75, 1, 1; a number on a bound belongs to what comes after."""
    drawn = [0.1, 0.25, 0.7499, 0.75, 0.9999, 1 - 2.0**-53]
    shares = torch.tensor([0.25, 0.0, 0.5, 0.25, 0.0]).expand(len(drawn), 5)
    assert pick(shares, torch.tensor(drawn, dtype=torch.float64)).tolist() == [0, 2, 2, 3, 3, 3]


def test_nothing_possible_is_no_error():
    """As in rows that nobody asked about."""
    assert pick(torch.zeros(2, 4), torch.tensor([0.0, 0.9], dtype=torch.float64)).tolist() == [0, 0]


@pytest.mark.parametrize("seed", [0, 12345, 2**64 - 1])
def test_numbers_are_those_of_the_law(seed: int):
    key = torch.tensor([seed & 0xFFFFFFFF, seed >> 32, 9])
    tree, num_draws, simulation = (
        torch.arange(5),
        torch.tensor([0, 1, 2, 0, 7]),
        torch.tensor([0, 3, 799, 5, 2**31 - 1]),
    )
    want = [
        Stream(seed, t, 9, Purpose.OUTCOME, n, s).next_uniform()
        for t, n, s in zip(tree.tolist(), num_draws.tolist(), simulation.tolist(), strict=True)
    ]
    assert draw(key, tree, num_draws, simulation).tolist() == want


# --- The core's trees ---------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "noise": {"dirichlet_fraction": 0.25, "first_play": "parent", "seed": 2**64 - 1},
    "shallow": {"max_depth": 2},
    "gumbel": {"root": "gumbel", "gumbel_scale": 1.0, "seed": 3},
    "leaves": {"on_collision": "share", "leaves_per_tree": 6, "in_flight": "loss"},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("name", "throw", "number"), [("pig", 0, 3), ("rafts", 1, 3)])
def test_visits_are_those_of_the_core(name: str, throw: int, number: int, setting: str):
    """And values; then the dice are thrown in all trees, one outcome comes, and the subtrees are searched again."""
    game, options, _ = cases.GAMES[name]
    native, _ = cases.make_pair(game, options)
    config = SearchConfig(num_simulations=60, **SETTINGS[setting])
    tensor, states = cases.positions(game, options, [0, 1, 2, 3, 4, 5, 6], seed=8)
    after = [native.apply(native.apply(s, throw), number) if native.to_play(s) >= 0 else s for s in states]
    goes_on = [tree for tree, state in enumerate(after) if native.to_play(state) >= 0]
    assert len(goes_on) >= 4
    ours = cases.make_search(game, options, len(goes_on), config, keeps_subtrees=True, device="cpu")
    with Search(native, HashEvaluator(cases.SEED), config.replace(engine="vectorized")) as theirs:
        assert_same_results(ours.run(rows(tensor, goes_on)), theirs.run([states[tree] for tree in goes_on]))
        outcome = cases.outcome_numbers(ours.game).index(number)
        for move, core_move in ((throw, throw), (outcome, number)):
            ours.advance(torch.full((len(goes_on),), move))
            theirs.advance([core_move] * len(goes_on))
        assert_same_results(ours.run(), theirs.run())


def assert_same_results(got: Any, want: Any) -> None:
    assert got.visits.tolist() == [result.visits.tolist() for result in want]
    np.testing.assert_array_equal(got.q.numpy(), np.stack([result.q for result in want]))
    assert got.best_action.tolist() == [result.best_action for result in want]


@pytest.mark.parametrize("leaves", [1, 4])
def test_other_rows_do_not_change_the_first(leaves: int):
    config = SearchConfig(num_simulations=60, dirichlet_fraction=0.25, on_collision="share", leaves_per_tree=leaves)
    alone, _ = cases.positions("rafts", {}, [1])
    others, _ = cases.positions("rafts", {}, [0, 3, 20, 6, 20], seed=5)
    throwing = TensorRafts(starts_with_chance=True).initial(1)
    want = cases.make_search("rafts", {}, 1, config, device="cpu").run(alone)
    got = cases.make_search("rafts", {}, 7, config, device="cpu").run(stack([alone, others, throwing]))
    for name in ("visits", "value_sum", "prior", "value"):
        assert torch.equal(getattr(got, name)[0], getattr(want, name)[0]), name


def test_another_seed_and_another_search_draw_anew():
    config = SearchConfig(num_simulations=80)
    tensor, _ = cases.positions("pig", {"target": 20}, [4, 7])
    search = cases.make_search("pig", {"target": 20}, 2, config, device="cpu")
    first, second = search.run(tensor), search.run(tensor)
    other = cases.make_search("pig", {"target": 20}, 2, config.replace(seed=1), device="cpu").run(tensor)
    assert not torch.equal(first.value_sum, second.value_sum)
    assert not torch.equal(first.value_sum, other.value_sum)


# --- Roots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"root": "gumbel"}, {"on_collision": "share", "leaves_per_tree": 3}, {"dirichlet_fraction": 0.5}]
)
def test_where_chance_is_to_move_nothing_is_searched(settings: dict[str, Any]):
    """Until its outcome is played: then it is a root like any other, and the tree beside it has gone on."""
    natives = [as_core_game(Rafts(starts_with_chance=True)), as_core_game(Rafts())]
    config = SearchConfig(num_simulations=30, **settings)
    search = cases.make_search("rafts", {}, 2, config, keeps_subtrees=True, device="cpu")
    result = search.run(stack([TensorRafts(starts_with_chance=True).initial(1), TensorRafts().initial(1)]))
    for values in (result.visits, result.policy, result.prior, result.q, result.value):
        assert not values[0].any() and not values[0].isnan().any()
    assert not result.legal[0].any() and not result.is_full.any()
    assert result.visits[1].sum() == 30
    result.check()

    references = [
        ReferenceSearch(native, HashEvaluator(cases.SEED), config, tree=tree) for tree, native in enumerate(natives)
    ]
    references[1].run(natives[1].initial_state())
    assert cases.tensor_tree(search, 1) == cases.reference_tree(references[1].root, 5)
    search.advance(torch.tensor([0, -1]))
    search.run()
    references[0].num_searches = 1  # of this tree: its random numbers go on
    stuck = natives[0].apply(natives[0].initial_state(), 2)
    assert cases.tensor_tree(search, 0) == cases.reference_tree(references[0].run(stuck), 5)
    assert cases.tensor_tree(search, 1) == cases.reference_tree(references[1].run(), 5)


@pytest.mark.parametrize("name", ["connect4", "rafts", "pig"])
def test_moves_that_follow_each_other_without_a_search(name: str):
    """Along a line that was searched and beyond what was: roots that were never evaluated have no children."""
    game, options, _ = cases.GAMES[name]
    native, _ = cases.make_pair(game, options)
    config = SearchConfig(num_simulations=30)
    tensor, states = cases.positions(game, options, [0, 2, 3], seed=2)
    search = cases.make_search(game, options, 3, config, keeps_subtrees=True, device="cpu")
    references = [ReferenceSearch(native, HashEvaluator(cases.SEED), config, tree=tree) for tree in range(3)]
    search.run(tensor)
    for reference, state in zip(references, states, strict=True):
        reference.run(state)
    rng = random.Random(4)
    for _ in range(3):
        moves = []
        for reference in references:
            assert reference.root is not None
            is_player = native.to_play(reference.root.state) >= 0
            moves.append(rng.choice(native.legal_actions(reference.root.state)) if is_player else -1)
            if is_player:
                reference.advance(moves[-1])
        search.advance(torch.tensor(moves))
        cases.pass_chance(search, native, references, rng)
    search.run()
    for tree, reference in enumerate(references):
        assert reference.root is not None
        if native.to_play(reference.root.state) >= 0:
            assert cases.tensor_tree(search, tree) == cases.reference_tree(reference.run(), native.num_actions), tree


def test_a_tree_that_stays_keeps_everything():
    tensor, _ = cases.positions("pig", {"target": 20}, [4, 7])
    search = cases.make_search("pig", {"target": 20}, 2, SearchConfig(num_simulations=40), keeps_subtrees=True)
    search.run(tensor)
    before = [cases.tensor_tree(search, tree) for tree in (0, 1)]
    search.advance(torch.tensor([-1, -1]))
    assert [cases.tensor_tree(search, tree) for tree in (0, 1)] == before


# --- Limits -------------------------------------------------------------------------------------------------------


class Understated(TensorRafts):
    """Says that chance moves once in a row, and moves it twice."""

    max_draws = 1


@pytest.mark.parametrize("leaves", [1, 4])
def test_more_chance_in_a_row_than_was_said(leaves: int):
    config = SearchConfig(num_simulations=40, on_collision="share", leaves_per_tree=leaves)
    search = TensorSearch(Understated(), TensorHashEvaluator(5, 5), config, num_trees=2, device="cpu")
    result = search.run(cases.positions("rafts", {}, [0, 20])[0])
    assert result.visits.sum(1).tolist() == [40, 0]
    with pytest.raises(GameError, match=r"than the game's `max_draws` in 1 of 2 trees \(0\)"):
        result.check()
    search.run(cases.positions("rafts", {}, [20, 20])[0]).check()


def test_memory_is_predicted():
    """Per tree of pig: 1 + 2 * 40 + 1 slots of 8 edges of 20 bytes, 32 of node and 20 of state; 26; and 13 for draws.

    With four leaves 4 bytes more an edge and a node, 4; three more paths of 82 * 4 bytes, four more rows of 21, and 8
    for the draws of each walk.
    """
    game = make_game("pig")
    per_tree = 82 * (8 * 20 + 32 + 20) + 26 + 13
    assert memory_needed(game, 40, 3) == 3 * per_tree
    per_tree += 82 * (8 * 4 + 4) + 4 + 3 * 82 * 4 + 4 * 21 + 3 * 8
    assert memory_needed(game, 40, 3, leaves_per_tree=4) == 3 * per_tree
    for leaves in (1, 4):
        config = SearchConfig(num_simulations=40, on_collision="share", leaves_per_tree=leaves)
        search = TensorSearch(game, TensorHashEvaluator(2, 3), config, num_trees=3, device="cpu")
        assert search.num_bytes == memory_needed(game, 40, 3, leaves_per_tree=leaves)


@pytest.mark.parametrize("leaves", [1, 3])
def test_a_tree_without_room_ends_early(leaves: int):
    """A simulation begins only if a node of chance and a leaf have room, and then it is completed."""
    config = SearchConfig(num_simulations=60, on_collision="share", leaves_per_tree=leaves)
    tensor, _ = cases.positions("pig", {"target": 20}, [4, 90])
    search = cases.make_search("pig", {"target": 20}, 2, config, device="cpu", max_nodes=21)
    result = search.run(tensor)
    assert result.is_full.tolist() == [True, False]
    assert 9 <= int(result.visits[0].sum()) < 60
    assert int(search._pools.next_free[0]) in (19, 20)
    assert int(result.node_visits[0]) == 1 + int(result.visits[0].sum())
    with pytest.raises(ConfigError, match="max_nodes=3 leaves no room"):
        cases.make_search("pig", {}, 2, config, device="cpu", max_nodes=3)


@pytest.mark.parametrize("leaves", [1, 4])
def test_an_evaluator_that_raises_leaves_nothing_behind(leaves: int):
    inner, calls = TensorHashEvaluator(5, 5, cases.SEED), 0

    def fn(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise RuntimeError("planted")
        return inner(x)

    config = SearchConfig(num_simulations=40, on_collision="share", leaves_per_tree=leaves)
    tensor, states = cases.positions("rafts", {}, [0, 3])
    search = TensorSearch(TensorRafts(), fn, config, num_trees=2, device="cpu")
    with pytest.raises(RuntimeError, match="planted"):
        search.run(tensor)
    search._num_searches = 0
    cases.assert_equals_reference(search, search.run(tensor), "rafts", {}, states)


def test_what_is_refused():
    search = cases.make_search("pig", {}, 2, SearchConfig(num_simulations=5), keeps_subtrees=True, device="cpu")
    search.run(search.game.initial(2))
    with pytest.raises(SearchError, match=r"must be \(2,\) integers"):
        search.advance(torch.zeros(3, dtype=torch.int64))


# --- Games that are played ----------------------------------------------------------------------------------------


def test_chance_moves_as_often_as_it_should():
    """4,000 rafts at the first throw: shares of 0.1, 0.2 and 0.3, and of 0.4 * 0.25 and 0.4 * 0.75 after the current.

    A share is within five standard deviations but once in two million times.
    """
    game, count = TensorRafts(starts_with_chance=True), 4000
    state = pass_chance(game, game.initial(count), torch.Generator().manual_seed(2))
    assert not is_chance(game, state).any()
    place, mover = state.places[:, 0], state.mover
    found = [
        (0.1, (place == 0) & (mover == 0)),
        (0.2 + 0.4 * 0.25, (place == 1) & (mover == 1)),
        (0.3, place == 2),
        (0.4 * 0.75, place == 3),
    ]
    assert sum(int(which.sum()) for _, which in found) == count
    for share, which in found:
        assert abs(int(which.sum()) - share * count) < 5 * (count * share * (1 - share)) ** 0.5, share


def test_chance_leaves_the_others_alone():
    game = TensorRafts()
    tensor, _ = cases.positions("rafts", {}, [0, 3, 20])
    passed = pass_chance(game, tensor, torch.Generator())
    assert torch.equal(passed.places, tensor.places) and torch.equal(passed.phase, tensor.phase)
    connect4 = make_game("connect4")
    state = connect4.initial(2)
    assert pass_chance(connect4, state, torch.Generator()) is state


@pytest.mark.parametrize("most", [0, 3])
def test_openings_are_a_players(most: int):
    """Where chance begins, games begin with different throws even without random moves."""
    game = TensorRafts(starts_with_chance=True)
    openings = Openings(game, most, num_slots=100, device=CPU, generator=torch.Generator().manual_seed(1))
    states, plies = openings.take(torch.ones(100, dtype=torch.bool))
    assert not is_chance(game, states).any() and not game.terminal(states).any()
    assert set(plies.tolist()) == set(range(most + 1))
    assert len(states.places.unique(dim=0)) > 2


@pytest.mark.parametrize("root", ["gumbel", "puct"])
def test_selfplay(root: Any):
    """Every recorded position is a player's, and follows from the one before by an action and what chance did."""
    game = TensorRafts(starts_with_chance=True)
    slots, moves = 8, 40
    generator = torch.Generator().manual_seed(3)
    replay = TensorReplay(game, slots, slots * moves, device=CPU, generator=generator, value_mix=0.0)
    config = SearchConfig(num_simulations=6, root=root, gumbel_scale=1.0 if root == "gumbel" else 0.0)
    selfplay = TensorSelfPlay(
        game, TensorHashEvaluator(5, 5), config, replay, device=CPU, generator=generator, budgets=[3], opening_plies=1
    )
    for move in range(moves):
        selfplay.step(3 if move < 10 else 6)
    stats = selfplay.read_stats()
    assert stats["games"] > 20 and stats["bad_trees"] == 0
    num_ended = 0
    for slot in range(slots):
        states = like(game.initial(1), [kept[:, slot] for kept in replay._states])
        assert ((game.to_play(states) >= 0) & ~game.terminal(states)).all()
        assert game.legal(states).any(1).all() and torch.isfinite(replay._value[:, slot]).all()
        numbers: list[int] = replay._number[:, slot].tolist()
        for row in range(1, moves):
            if numbers[row] == numbers[row - 1]:
                assert states.turns[row] == states.turns[row - 1] + 1
            else:
                num_ended += 1
                assert float(replay._results[numbers[row - 1], slot]) in (-1.0, -0.5, 0.0, 0.5, 1.0)
    assert num_ended <= stats["games"] <= num_ended + slots
