"""Searches to compare with the reference: games and positions that are listed, and settings that are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis
from hypothesis import strategies as st
from search_cases import linear_evaluator, random_position
from toy_games import Drawn, Grown, Lottery, Reroll, TakeAway, TwoDice

from windrow import SearchConfig, make_game
from windrow.evaluators import HashEvaluator
from windrow.games import CoreGame, State
from windrow.games.python_game import as_core_game

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


GRID_GAMES = {
    "tictactoe": (("tictactoe", {}), (0, 3, 5)),
    "connect4": (("connect4", {}), (0, 14, 30)),
    "gomoku": (("gomoku", {"size": 6}), (0, 12, 30)),
    "othello": (("othello", {}), (0, 40, 56)),
    "go": (("go", {"size": 5, "suicide": "allowed"}), (0, 20, 44)),
    "hex": (("hex", {"size": 4, "swap": "on"}), (0, 1, 6)),
}

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


# Every setting of the selection that is off by default, alone and in any combination.
SELECTION = st.fixed_dictionaries(
    {},
    optional={
        "c_puct_growth": st.sampled_from([0.5, 2.0]),
        "c_puct_base": st.sampled_from([3.0, 500.0]),
        "value_scale": st.sampled_from(["tree", "node"]),
        "root_first_play": st.sampled_from([1.0, -0.5, "parent"]),
        "root_policy_temperature": st.sampled_from([0.4, 1.3]),
        "interior": st.just("gumbel"),
    },
)
CHOICE = st.one_of(
    st.just({}), st.builds(lambda width: {"choose": "lcb", "lcb_deviations": width}, st.sampled_from([0.1, 1.0, 5.0]))
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
        prove=draw(st.booleans()),
        **root,
        **draw(FIRST_PLAY),
        **draw(SELECTION),
        **({} if "root" in root else draw(CHOICE)),
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
