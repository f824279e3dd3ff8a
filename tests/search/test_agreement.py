"""Every deterministic engine grows the reference's tree: every node, every count, every bit of every prior."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from search_cases import (
    FullReference,
    ThreadedEvaluator,
    assert_same_tree,
    linear_evaluator,
    random_position,
    reference_tree,
    snapshot,
)
from toy_games import Drawn, Grown, Lottery, PlainPig, PlainTicTacToe, Reroll, TakeAway, TwoDice

from windrow import CHANCE, TERMINAL, Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator
from windrow.games import CoreGame, State
from windrow.games.python_game import as_core_game
from windrow.reference import Node, ReferenceSearch

# A forest hands trees to its threads in pieces of eight at least: with fewer, the second thread has nothing to do.
MANY_TREES = 11


@dataclass
class Case:
    """Searches of some positions, each followed by a move and another search."""

    game: CoreGame
    positions: list[State]
    num_trees: int  # tree i starts at position i modulo their number
    evaluator: Any
    config: SearchConfig
    budgets: list[int]  # one per search
    choices: list[int]  # between two searches, which of the moves that do not end the game is played
    engines: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        drawn = "\n".join(f"{state}" for state in self.positions)
        return (
            f"{self.game!r}, {self.num_trees} trees, {type(self.evaluator).__name__}, budgets {self.budgets}, "
            f"choices {self.choices}, engines {self.engines}\n{self.config!r}\n{drawn}"
        )


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

    def run(self, budget: int, *, first: bool) -> tuple[list[Any], int, int]:
        """The trees after one more search, and the evaluations and collisions it took in all trees together."""
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
        return [trees[i] for i in self._index], evaluations, collisions

    def gumbel_answer(self, tree: int) -> tuple[int, list[float]]:
        """The action to play and the policy to learn."""
        search = self._searches[self._index[tree]]
        assert search.root is not None and search.gumbel is not None
        policy = [0.0] * self._case.game.num_actions
        for action, share in zip(search.root.actions, search.gumbel.policy(search.root).tolist(), strict=True):
            policy[action] = share
        return search.root.actions[search.gumbel.best_edge(search.root)], policy

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
        config = case.config.replace(**{key: value for key, value in settings.items() if key != "is_threaded"})
        evaluator = ThreadedEvaluator(
            case.evaluator.bind(case.game) if hasattr(case.evaluator, "bind") else case.evaluator
        )
        searches.append(
            (Search(case.game, evaluator if settings.get("is_threaded") else case.evaluator, config), evaluator)
        )
    roots = [case.positions[tree % len(case.positions)] for tree in range(case.num_trees)]
    for turn, budget in enumerate(case.budgets):
        trees, evaluations, collisions = reference.run(budget, first=turn == 0)
        for search, _ in searches:
            results = search.run(roots if turn == 0 else None, num_simulations=budget)
            for tree, want in enumerate(trees):
                assert_same_tree(search, tree, want, search.config, f"search {turn} of\n{case!r}")
                if search.config.root == "gumbel":
                    answer = (results[tree].best_action, results[tree].policy.tolist())
                    assert answer == reference.gumbel_answer(tree), f"tree {tree}, search {turn} of\n{case!r}"
            stats = search.stats
            assert stats is not None
            assert stats.evaluations == evaluations, f"evaluations, search {turn} of {case!r}"
            if search.cache is None:
                assert stats.nn_positions == evaluations, f"nn_positions, search {turn} of {case!r}"
            assert stats.collisions == collisions, f"collisions, search {turn} of {case!r}"
            assert stats.simulations == budget * case.num_trees
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

GRID_GAMES = {
    "tictactoe": (("tictactoe", {}), (0, 3, 5)),
    "connect4": (("connect4", {}), (0, 14, 30)),
    "gomoku": (("gomoku", {"size": 6}), (0, 12, 30)),
    "othello": (("othello", {}), (0, 40, 56)),
}

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


# Two players, of whom each has something to lose by being good to the other: the first may stop at (1/4, 0), then the
# second at (-1/4, 1/2), and so on; who never stops has the most in the end, but the other stops just before.
CENTIPEDE = (
    0,
    {0: (0.25, 0.0), 1: (1, {0: (-0.25, 0.5), 1: (0, {0: (0.5, 0.25), 1: (1, {0: (0.0, 1.0), 2: (0.75, 0.5)})})})},
)

# A Python game's trees are grown by one thread, whatever is asked for.
PLAYERS_AND_DICE: dict[str, tuple[Any, tuple[int, ...]]] = {
    "pig": (lambda: make_game("pig", target=20), (0, 5, 8)),
    "backgammon": (lambda: make_game("backgammon"), (0, 60, 90)),
    "azul for two": (lambda: make_game("azul"), (0, 19, 60)),
    "azul for three": (lambda: make_game("azul", players=3), (0, 29, 80)),
    "azul for four": (lambda: make_game("azul", players=4), (0, 36, 90)),
    "three players": (lambda: as_core_game(TakeAway(9)), (0, 1, 2)),
    "not zero-sum": (lambda: as_core_game(Drawn(CENTIPEDE, players=2, zero_sum=False)), (0, 1, 2)),
    "one player": (lambda: as_core_game(Reroll()), (0, 1, 2)),
    "two dice in a row": (lambda: as_core_game(TwoDice()), (0, 1, 2)),
    "too many to list": (lambda: as_core_game(Lottery(20, 3)), (0, 1, 2)),
}


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


# --- Drawn cases -------------------------------------------------------------------------------------------------


def built_in(name: str, longest: int, **options: Any) -> tuple[CoreGame, int]:
    """A game, and how many moves at most lead to where it is searched."""
    return make_game(name, **options), longest


GAMES = st.one_of(
    st.just(built_in("tictactoe", 7)),
    st.just(built_in("connect4", 38)),
    st.builds(
        lambda rows, columns, connect: built_in(
            "connect4", rows * columns, rows=rows, columns=columns, connect=connect
        ),
        st.integers(4, 5),
        st.integers(4, 6),
        st.integers(3, 4),
    ),
    st.builds(
        lambda size, rule: built_in("gomoku", size * size - 2, size=size, rule=rule),
        st.integers(5, 7),
        st.sampled_from(["freestyle", "standard"]),
    ),
    st.just(built_in("othello", 58)),
)

MORE_GAMES: dict[str, Any] = {
    "pig": st.builds(lambda target: built_in("pig", 12, target=target), st.integers(2, 30)),
    "backgammon": st.just(built_in("backgammon", 60)),
    "azul": st.builds(lambda players: built_in("azul", 70, players=players), st.integers(2, 4)),
    "take away": st.builds(
        lambda heap, players: (as_core_game(TakeAway(heap, players)), 2), st.integers(3, 12), st.integers(3, 5)
    ),
    "centipede": st.just((as_core_game(Drawn(CENTIPEDE, players=2, zero_sum=False)), 1)),
    "reroll": st.builds(lambda rerolls: (as_core_game(Reroll(rerolls)), 1), st.integers(1, 5)),
    "two dice": st.just((as_core_game(TwoDice()), 3)),
    "lottery": st.builds(lambda numbers: (as_core_game(Lottery(numbers, 3)), 2), st.sampled_from([2, 5, 10**12])),
    "grown": st.builds(
        lambda seed, players, chance, zero_sum: (
            as_core_game(Grown(seed, players, chance=chance, zero_sum=zero_sum)),
            3,
        ),
        st.integers(0, 999),
        st.integers(1, 4),
        st.sampled_from(["none", "listed", "sampled"]),
        st.booleans(),
    ),
}

FIRST_PLAY = st.one_of(
    st.builds(lambda value: {"first_play": value}, st.sampled_from([0.0, -1.0, 0.3, 1.0])),
    st.builds(
        lambda reduction: {"first_play": "parent", "first_play_reduction": reduction}, st.sampled_from([0.0, 0.25, 1.1])
    ),
)

ROOT = st.one_of(
    st.builds(lambda noise: {"dirichlet_fraction": noise}, st.sampled_from([0.0, 0.0, 0.25, 1.0])),
    st.builds(
        lambda considered, scale, offset, value_scale: {
            "root": "gumbel",
            "gumbel_considered": considered,
            "gumbel_scale": scale,
            "gumbel_visit_offset": offset,
            "gumbel_value_scale": value_scale,
        },
        st.sampled_from([1, 2, 5, 16]),
        st.sampled_from([0.0, 1.0, 2.5]),
        st.sampled_from([0.0, 50.0]),
        st.sampled_from([0.0, 0.1, 1.0]),
    ),
)


@st.composite
def cases(draw: st.DrawFn, max_budget: int, games: Any = GAMES) -> Case:
    """Any game, position, rule, K, budget, engine: all knobs of the law."""
    game, longest = draw(games)
    positions = [
        random_position(game, draw(st.integers(0, longest)), draw(st.integers(0, 999)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    leaves = draw(st.sampled_from([1, 2, 3, 8, 32]))
    root = draw(ROOT)
    num_trees = draw(st.sampled_from([len(positions), MANY_TREES]))
    has_noise = root.get("dirichlet_fraction") or root.get("gumbel_scale") or game.chance != "none"
    if has_noise and num_trees == MANY_TREES:
        max_budget = min(max_budget, 20)
    budgets = draw(st.lists(st.integers(1, max_budget), min_size=1, max_size=3))
    if draw(st.booleans()):
        budgets = [-(-budget // leaves) * leaves for budget in budgets]
    config = SearchConfig(
        leaves_per_tree=leaves,
        in_flight=draw(st.sampled_from(["visits", "loss", "dilute"])),
        on_collision=draw(st.sampled_from(["share", "skip"])),
        c_puct=draw(st.sampled_from([0.0, 0.3, 1.5, 7.0])),
        virtual_loss=draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        dirichlet_alpha=draw(st.sampled_from([0.03, 0.3, 1.0, 5.0])),
        max_depth=draw(st.sampled_from([None, None, 1, 2, 5])),
        seed=draw(st.sampled_from([0, 1, 2**64 - 1])),
        **root,
        **draw(FIRST_PLAY),
    )
    engines: list[dict[str, Any]] = [
        {
            "engine": "batched",
            "max_batch": draw(st.sampled_from([None, 1, 3, 40])),
            "cache_memory": draw(st.sampled_from([None, 1 << 20])),
        },
        *(
            {
                "engine": "vectorized",
                "num_threads": num_threads,
                "pipeline": draw(st.sampled_from([1, 2, 3])),
                "max_batch": draw(st.sampled_from([None, 1, 5, 64])),
                "cache_memory": draw(st.sampled_from([None, 1 << 16])),
                "is_threaded": draw(st.booleans()),
            }
            for num_threads in (1, 2)
        ),
    ]
    if leaves == 1:
        engines.append({"engine": "sequential"})
    return Case(
        game=game,
        positions=positions,
        num_trees=num_trees,
        evaluator=draw(st.sampled_from([HashEvaluator(draw(st.integers(0, 5))), linear_evaluator(game, 3)])),
        config=config,
        budgets=budgets,
        choices=draw(st.lists(st.integers(-1, 30), min_size=len(budgets) - 1, max_size=len(budgets) - 1)),
        engines=engines,
    )


SLOW_TO_DRAW = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]


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
    config = SearchConfig(num_simulations=40, leaves_per_tree=4, engine="vectorized", num_threads=2)
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
