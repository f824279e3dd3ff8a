"""Every deterministic engine grows the reference's tree: every node, every count, every bit of every prior."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import numpy as np
import pytest
from agreement_cases import GRID_GAMES, MANY_TREES, MORE_GAMES, PLAYERS_AND_DICE, SLOW_TO_DRAW, Case, cases
from hypothesis import strategies as st
from search_cases import (
    FullReference,
    assert_same_tree,
    linear_evaluator,
    random_position,
    reference_tree,
    snapshot,
)
from toy_games import PlainPig, PlainTicTacToe

from threaded_evaluator import ThreadedEvaluator
from windrow import CHANCE, TERMINAL, Search, SearchConfig, make_game
from windrow.engines import Vectorized
from windrow.evaluators import HashEvaluator
from windrow.games import CoreGame, State
from windrow.games.python_game import as_core_game
from windrow.reference import Node, ReferenceSearch, playable_edges, surest_edge


class ReferenceTrees:
    """The reference's tree of every tree of a case. Without noise and chance, trees of equal positions are one."""

    def __init__(self, case: Case) -> None:
        self._case = case
        num_positions = len(case.positions)
        has_noise = case.config.dirichlet_fraction > 0 or case.config.gumbel_scale > 0 or case.game.chance != "none"
        self._index = [tree if has_noise else tree % num_positions for tree in range(case.num_trees)]
        self._searches = {
            i: FullReference(case.game, case.evaluator, case.config, tree=i) for i in sorted(set(self._index))
        }
        self._copies = {i: self._index.count(i) for i in self._searches}
        self._counted = (0, 0)

    def run(self, budget: int, *, first: bool) -> tuple[list[Any], int, int, int]:
        """The trees after one more search, and the evaluations, collisions and simulations of all trees together."""
        trees = {}
        for i, search in self._searches.items():
            search.config = self._case.config.replace(num_simulations=budget)
            start = self._case.positions[i % len(self._case.positions)] if first else None
            trees[i] = reference_tree(search.run(start))
        counted = (
            sum(search.num_evaluations * self._copies[i] for i, search in self._searches.items()),
            sum(search.num_collisions * self._copies[i] for i, search in self._searches.items()),
        )
        evaluations, collisions = (new - old for new, old in zip(counted, self._counted, strict=True))
        self._counted = counted
        simulations = sum(search.num_started * self._copies[i] for i, search in self._searches.items())
        return [trees[i] for i in self._index], evaluations, collisions, simulations

    def gumbel_answer(self, tree: int) -> tuple[int, list[float]]:
        """The action to play and the policy to learn."""
        search = self._searches[self._index[tree]]
        assert search.root is not None and search.gumbel is not None
        policy, playable = [0.0] * self._case.game.num_actions, playable_edges(search.root)
        shares = playable.astype(float) if search.root.is_proven else search.gumbel.policy(search.root)
        for action, share in zip(search.root.actions, shares.tolist(), strict=True):
            policy[action] = share
        return search.root.actions[search.gumbel.best_edge(search.root, playable)], policy

    def surest_action(self, tree: int) -> int:
        """The action to play by its lower confidence bound."""
        search = self._searches[self._index[tree]]
        assert search.root is not None
        return search.root.actions[surest_edge(search.config, search.root)]

    def proven(self, tree: int) -> tuple[float | None, int, list[int]]:
        """The root's proven value and distance, and the playable actions."""
        root = self._searches[self._index[tree]].root
        assert root is not None
        playable = [root.actions[edge] for edge in np.flatnonzero(playable_edges(root))]
        return root.value if root.is_proven else None, root.distance, playable

    def advance(self, choice: int) -> list[list[int]] | None:
        """Play a move in every tree, and then what chance does; None if somewhere everything ends the game.

        Returns the rounds of it, each a move per tree. Chance must be to move in all trees or in none after each.
        """
        rounds: list[list[int]] = []
        roots = {i: search.root for i, search in self._searches.items() if search.root is not None}
        while not rounds or any(root.to_play == CHANCE for root in roots.values()):
            options = {i: self._options(root) for i, root in roots.items()}
            kinds = [kind for kind in (False, True) if all(option[kind] for option in options.values())]
            if not kinds:
                return None
            kind = kinds[choice % len(kinds)]
            moves: dict[int, int] = {}
            for i, search in self._searches.items():
                open_moves, root = options[i][kind], roots[i]
                # -1 stands for the most visited move, whose subtree is the largest.
                best = max(open_moves, key=lambda move, root=root: self._num_visits(root, move))
                moves[i] = best if choice < 0 else open_moves[choice % len(open_moves)]
                search.advance(moves[i])
                assert search.root is not None
                roots[i] = search.root
            rounds.append([moves[i] for i in self._index])
        return rounds

    def _num_visits(self, root: Node, move: int) -> int:
        if root.to_play != CHANCE:
            return int(root.edge_visits[root.actions.index(move)]) if root.visits else 0
        return root.children[move].visits if move in root.children else 0

    def _options(self, root: Node) -> dict[bool, list[int]]:
        """Moves that do not end the game, by whether chance is to move after them; also outcomes that never came."""
        game = self._case.game
        if root.to_play != CHANCE:
            moves = root.actions
        elif game.chance == "listed":
            moves = [outcome for outcome, _ in game.chance_outcomes(root.state)]
        else:
            moves = sorted({*root.children, *(game.sample_outcome(root.state, number << 58) for number in range(16))})
        options: dict[bool, list[int]] = {False: [], True: []}
        for move in moves:
            player = game.to_play(game.apply(root.state, move))
            if player != TERMINAL:
                options[player == CHANCE].append(move)
        return options


def check(case: Case) -> None:
    """Run the reference and every engine of the case side by side."""
    reference = ReferenceTrees(case)
    searches = []
    for settings in case.engines:
        config = case.config.with_settings({key: value for key, value in settings.items() if key != "is_threaded"})
        evaluator = ThreadedEvaluator(
            case.evaluator.bind(case.game) if hasattr(case.evaluator, "bind") else case.evaluator
        )
        searches.append(
            (Search(case.game, evaluator if settings.get("is_threaded") else case.evaluator, config), evaluator)
        )
    roots = [case.positions[tree % len(case.positions)] for tree in range(case.num_trees)]
    for turn, budget in enumerate(case.budgets):
        trees, evaluations, collisions, simulations = reference.run(budget, first=turn == 0)
        for search, _ in searches:
            results = search.run(roots if turn == 0 else None, num_simulations=budget)
            for tree, want in enumerate(trees):
                assert_same_tree(search, tree, want, search.config, f"search {turn} of\n{case!r}")
                if search.config.root == "gumbel":
                    answer = (results[tree].best_action, results[tree].policy.tolist())
                    assert answer == reference.gumbel_answer(tree), f"tree {tree}, search {turn} of\n{case!r}"
                if search.config.choose == "lcb":
                    assert results[tree].best_action == reference.surest_action(tree), f"tree {tree} of\n{case!r}"
                    assert results[tree].principal_variation[:1] == [results[tree].best_action]
                if (proven := results[tree].proven) is not None:
                    found = proven.value, proven.distance, np.flatnonzero(proven.playable).tolist()
                    assert found == reference.proven(tree), f"tree {tree}, search {turn} of\n{case!r}"
                    assert proven.playable[results[tree].best_action]
            stats = search.stats
            assert stats is not None
            assert stats.evaluations == evaluations, f"evaluations, search {turn} of {case!r}"
            if search.cache is None:
                assert stats.nn_positions == evaluations, f"nn_positions, search {turn} of {case!r}"
            assert stats.collisions == collisions, f"collisions, search {turn} of {case!r}"
            assert stats.simulations == simulations
            if not search.config.prove:
                assert simulations == budget * case.num_trees
        if turn < len(case.choices):
            rounds = reference.advance(case.choices[turn])
            if rounds is None:
                break
            for moves in rounds:
                for search, _ in searches:
                    search.advance(moves)
    for search, evaluator in searches:
        search.close()
        evaluator.close()


# --- The full grid -----------------------------------------------------------------------------------------------

# A budget that is a multiple of K, one that is not (where there is one), and one for the search after a move.
GRID_BUDGETS = {1: (20, 33, 9), 2: (20, 33, 9), 8: (24, 37, 12), 32: (64, 45, 33)}

GRID_ENGINES: list[dict[str, Any]] = [
    {"engine": "batched"},
    {"engine": "vectorized", "num_threads": 1},
    {"engine": "vectorized", "num_threads": 2},
]


@pytest.mark.parametrize("leaves", GRID_BUDGETS)
@pytest.mark.parametrize("on_collision", ["share", "skip"])
@pytest.mark.parametrize("rule", ["visits", "loss", "dilute"])
@pytest.mark.parametrize("name", GRID_GAMES)
def test_grid(name: str, rule: Any, on_collision: Any, leaves: int):
    (game_name, options), depths = GRID_GAMES[name]
    game = make_game(game_name, **options)
    positions = [random_position(game, depth, seed=1) for depth in depths]
    *budgets, reuse = GRID_BUDGETS[leaves]
    for budget, evaluator in zip(budgets, (HashEvaluator(7), linear_evaluator(game, 7)), strict=True):
        config = SearchConfig(leaves_per_tree=leaves, in_flight=rule, on_collision=on_collision, c_puct=1.25)
        check(
            Case(
                game=game,
                positions=positions,
                num_trees=MANY_TREES,
                evaluator=evaluator,
                config=config,
                budgets=[budget, reuse],
                choices=[-1],
                engines=GRID_ENGINES + ([{"engine": "sequential"}] if leaves == 1 else []),
            )
        )


@pytest.mark.parametrize("leaves", [1, 3, 8])
@pytest.mark.parametrize("name", PLAYERS_AND_DICE)
def test_grid_with_more_players_and_dice(name: str, leaves: int):
    make, depths = PLAYERS_AND_DICE[name]
    game = make()
    positions = [random_position(game, depth, seed=2) for depth in depths]
    for rule in ("visits", "loss", "dilute"):
        for on_collision in ("share", "skip"):
            is_first = rule == "visits" and on_collision == "share"
            check(
                Case(
                    game=game,
                    positions=positions,
                    num_trees=MANY_TREES if is_first else len(positions),
                    evaluator=HashEvaluator(7) if rule == "loss" else linear_evaluator(game, 7),
                    config=SearchConfig(leaves_per_tree=leaves, in_flight=rule, on_collision=on_collision),
                    budgets=[17, 8, 8],
                    choices=[-1, 2],
                    engines=GRID_ENGINES[::2]
                    + [{"engine": "batched", "cache_memory": 1 << 20}]
                    + ([{"engine": "sequential"}] if leaves == 1 else []),
                )
            )


@hypothesis.given(cases(max_budget=60))
@hypothesis.settings(max_examples=350, suppress_health_check=SLOW_TO_DRAW)
def test_drawn_cases(case: Case):
    check(case)


@pytest.mark.parametrize("name", MORE_GAMES)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=20, suppress_health_check=SLOW_TO_DRAW)
def test_drawn_cases_with_chance_and_more_players(name: str, data: st.DataObject):
    check(data.draw(cases(max_budget=30, games=MORE_GAMES[name])))


@pytest.mark.slow
@hypothesis.given(cases(max_budget=150))
@hypothesis.settings(max_examples=1500, suppress_health_check=SLOW_TO_DRAW)
def test_many_drawn_cases(case: Case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE_GAMES)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=400, suppress_health_check=SLOW_TO_DRAW)
def test_many_drawn_cases_with_chance_and_more_players(name: str, data: st.DataObject):
    check(data.draw(cases(max_budget=100, games=MORE_GAMES[name])))


# --- Corners that drawing may miss -------------------------------------------------------------------------------


def case_of(game: CoreGame, positions: list[State], **changes: Any) -> Case:
    settings: dict[str, Any] = {
        "game": game,
        "positions": positions,
        "num_trees": len(positions),
        "evaluator": HashEvaluator(3),
        "config": SearchConfig(leaves_per_tree=4),
        "budgets": [30],
        "choices": [],
        "engines": GRID_ENGINES,
    }
    return Case(**{**settings, **changes})


def test_a_move_to_a_child_that_was_never_reached():
    """After 3 simulations of 36 moves most children do not exist; a fresh root must not inherit anything."""
    game = make_game("gomoku", size=6)
    config = SearchConfig(leaves_per_tree=2, dirichlet_fraction=0.25)
    reference = ReferenceSearch(game, HashEvaluator(3), config.replace(num_simulations=3))
    root = reference.run(game.initial_state())
    unvisited = [edge for edge in range(len(root.actions)) if root.edge_visits[edge] == 0]
    assert unvisited[0] not in root.children
    check(
        case_of(
            game,
            [game.initial_state()],
            config=config,
            budgets=[3, 17, 1, 20],
            choices=[unvisited[0], unvisited[-1], -1],
        )
    )


def test_ten_moves_with_the_subtree_kept():
    game = make_game("othello")
    positions = [random_position(game, moves, seed=5) for moves in (0, 20, 45)]
    check(case_of(game, positions, budgets=[25] * 11, choices=[-1, 0] * 5, evaluator=linear_evaluator(game)))


def test_the_same_root_searched_again():
    """`run()` without a move adds simulations; the noise of the first search is replaced, not added to."""
    game = make_game("connect4")
    config = SearchConfig(leaves_per_tree=2, dirichlet_fraction=0.25, num_simulations=15)
    search = Search(game, HashEvaluator(3), config)
    reference = ReferenceSearch(game, HashEvaluator(3), config)
    for turn in range(3):
        start = game.initial_state() if turn == 0 else None
        search.run(start)
        assert_same_tree(search, 0, reference_tree(reference.run(start)), config)


def test_a_search_planted_anew_has_forgotten_the_last():
    """The memory of a forest is used again; what an earlier, larger tree left there must not show."""
    game = make_game("connect4")
    config = SearchConfig(num_simulations=40, leaves_per_tree=4, engine=Vectorized(num_threads=2))
    search = Search(game, HashEvaluator(3), config)
    search.run([random_position(game, 2, seed) for seed in range(MANY_TREES)], num_simulations=300)
    positions = [random_position(game, 8, seed) for seed in range(MANY_TREES)]
    search.run(positions)
    for tree, state in enumerate(positions):
        assert_same_tree(
            search, tree, reference_tree(ReferenceSearch(game, HashEvaluator(3), config).run(state)), config
        )


def test_more_leaves_than_the_budget_and_a_single_legal_move():
    """With one legal move and K = 32 every simulation of the first round wants the same leaf."""
    game = make_game("connect4", rows=4, columns=4)
    state = next(
        position for seed in range(500) if len(game.legal_actions(position := random_position(game, 14, seed))) == 1
    )
    for on_collision in ("share", "skip"):
        config = SearchConfig(leaves_per_tree=32, on_collision=on_collision)
        check(case_of(game, [state, game.initial_state()], config=config, budgets=[7, 40], choices=[]))


@pytest.mark.parametrize("name", ["pig", "backgammon", "azul for three", "two dice in a row", "too many to list"])
def test_a_game_played_with_the_subtree_kept(name: str):
    """Nine moves and all that chance does between them: outcomes that the tree has seen, and some that it has not."""
    make, depths = PLAYERS_AND_DICE[name]
    game = make()
    check(
        case_of(
            game,
            [random_position(game, depths[1] // 2, seed=8)],
            budgets=[14] * 10,
            choices=[-1, 0, 3, -1, 5, -1, 1, 11, -1],
            config=SearchConfig(leaves_per_tree=3, dirichlet_fraction=0.25, seed=9),
            evaluator=linear_evaluator(game),
        )
    )


@pytest.mark.parametrize(
    ("plain", "name", "options"),
    [(PlainPig(20), "pig", {"target": 20}), (PlainTicTacToe(), "tictactoe", {})],
    ids=["pig", "tictactoe"],
)
@pytest.mark.parametrize("leaves", [1, 5])
def test_a_twin_in_python_has_the_trees_of_the_built_in_game(plain: Any, name: str, options: Any, leaves: int):
    """The same rules twice, once in C++ and once in Python: every node of every tree is the same, move after move."""
    twins = [make_game(name, **options), as_core_game(plain)]
    config = SearchConfig(num_simulations=120, leaves_per_tree=leaves, dirichlet_fraction=0.25, engine="vectorized")
    searches = [Search(game, linear_evaluator(game), config) for game in twins]
    for turn in range(6):
        for game, search in zip(twins, searches, strict=True):
            search.run([game.initial_state()] * 3 if turn == 0 else None)
        for tree in range(3):
            assert snapshot(searches[0], tree) == snapshot(searches[1], tree)
        for search in searches:
            search.advance([search.game.legal_actions(state)[-1] for state in search.states])
        while (player := twins[0].to_play(searches[0].states[0])) == CHANCE:
            for search in searches:
                search.advance([6 if turn % 2 else 3] * 3)
        if player == TERMINAL:
            break


def test_many_trees_of_unequal_length_on_two_threads():
    """130 trees, some of which end at once: all pieces of the thread pool, both threads, three batches out."""
    game = make_game("tictactoe")
    positions = [random_position(game, random.Random(seed).randrange(8), seed) for seed in range(13)]
    check(
        case_of(
            game,
            positions,
            num_trees=130,
            budgets=[21, 20],
            choices=[0],
            engines=[
                {"engine": "vectorized", "num_threads": 2, "pipeline": 3, "max_batch": 100, "is_threaded": True},
                {"engine": "vectorized", "num_threads": 2, "pipeline": 1, "max_batch": 7},
            ],
        )
    )
