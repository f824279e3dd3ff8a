"""Self-play, the naive way against windrow: games per second.

The naive way is what a first AlphaZero in Python looks like: one game at a time, a tree of Python objects, and for each
leaf two calls of the network at batch 1, one for the policy and one for the value. It selects by windrow's rule, and so
both search the same trees; the last line says how often they agreed to the last visit. windrow plays all games at once,
one batch per round for all of them; a finished game leaves the batch. Same network, same simulations, same torch
threads, same random numbers for the moves; no tree is used again for the next move. Both ways take turns in blocks of
games, and the median over the blocks is the figure.
"""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import torch
from machine import num_cores, on_cores, take_quiet
from openings import openings
from report import Figure, print_table, run_alone
from resnet import ResNet, make_resnet

import windrow
from windrow import TERMINAL, Search, SearchConfig
from windrow.train import SelfPlay, SelfPlayConfig

TARGET_SPEEDUP = 2.5
NUM_GAMES = 20
NUM_SIMULATIONS = 20
NUM_SAMPLED_PLIES = 10
"""Moves at the beginning of a game that are drawn in proportion to the visits; later ones are the most visited."""
C_PUCT = 1.5
HEADER = ("way", "games", "moves/game", "games/s", "calls/game", "positions/game", "rows/call")


@dataclass
class Played:
    """What it took to play some games."""

    games: int = 0
    moves: int = 0
    calls: int = 0
    """Calls of the network."""
    positions: int = 0
    """Rows in those calls."""
    seconds: float = 0.0

    @property
    def games_per_second(self) -> float:
        """Of wall time."""
        return self.games / self.seconds

    def add(self, other: Played) -> None:
        """Count those games too."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


# --- The naive way ------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A position in the naive tree. Values are for the player to move at the parent."""

    prior: float = 1.0
    visits: int = 0
    value_sum: float = 0.0
    children: dict[int, Node] = field(default_factory=dict)


class NaiveSearch:
    """One tree, one leaf at a time, policy and value asked separately."""

    def __init__(self, game: Any, network: ResNet) -> None:
        self.game, self.network = game, network
        self.num_calls = 0

    def visits(self, state: Any, num_simulations: int) -> np.ndarray:
        """[A] visits of the root's actions after a search of `state`."""
        root = Node()
        self._expand(root, state)
        for _ in range(num_simulations):
            self._simulate(root, state)
        counts = np.zeros(self.game.num_actions, np.int32)
        for action, child in root.children.items():
            counts[action] = child.visits
        return counts

    def _simulate(self, root: Node, state: Any) -> None:
        node, path = root, []
        while node.children:
            mover = self.game.to_play(state)
            action, node = self._best_child(node)
            state = self.game.apply(state, action)
            path.append((mover, node))
        player = self.game.to_play(state)
        if player == TERMINAL:
            returns = self.game.returns(state)
        else:
            value = self._expand(node, state)
            returns = [value, -value] if player == 0 else [-value, value]
        for mover, visited in path:
            visited.visits += 1
            visited.value_sum += returns[mover]

    def _best_child(self, node: Node) -> tuple[int, Node]:
        num_visits = 1 + sum(child.visits for child in node.children.values())
        scale = C_PUCT * math.sqrt(num_visits)

        def score(child: Node) -> float:
            q = child.value_sum / child.visits if child.visits else 0.0
            return q + scale * child.prior / (1 + child.visits)

        return max(node.children.items(), key=lambda item: score(item[1]))

    def _expand(self, node: Node, state: Any) -> float:
        """Give `node` its children; the value of `state` for the player to move."""
        for action, prior in self._policy(state).items():
            node.children[action] = Node(prior)
        return self._value(state)

    def _policy(self, state: Any) -> dict[int, float]:
        logits, _ = self._ask(state)
        legal = self.game.legal_actions(state)
        weights = torch.softmax(logits[0, legal], dim=0)
        return dict(zip(legal, weights.tolist(), strict=True))

    def _value(self, state: Any) -> float:
        _, values = self._ask(state)
        return values.item()

    def _ask(self, state: Any) -> tuple[torch.Tensor, torch.Tensor]:
        self.num_calls += 1
        with torch.no_grad():
            return self.network(torch.from_numpy(self.game.observe(state)).unsqueeze(0))


def play_naively(game: Any, network: ResNet, seeds: range) -> Played:
    """One game per seed, one after another."""
    played = Played()
    start = perf_counter()
    for seed in seeds:
        search, rng = NaiveSearch(game, network), np.random.default_rng(seed)
        state, ply = game.initial_state(), 0
        while game.to_play(state) != TERMINAL:
            state = game.apply(state, choose(search.visits(state, NUM_SIMULATIONS), ply, rng))
            ply += 1
        played.add(Played(1, ply, search.num_calls, search.num_calls))
    played.seconds = perf_counter() - start
    return played


# --- With windrow -------------------------------------------------------------------------------------------------


def play_together(game: Any, evaluator: Any, seeds: range, config: SearchConfig) -> Played:
    """One game per seed, all at once; fresh trees at every move."""
    played = Played()
    start = perf_counter()
    with Search(game, evaluator, config) as search:
        running = [(game.initial_state(), np.random.default_rng(seed)) for seed in seeds]
        ply = 0
        while running:
            results = search.run([state for state, _ in running])
            played.add(Played(0, len(running), search.stats.nn_batches, search.stats.nn_positions))
            moved = [
                (game.apply(state, choose(result.visits, ply, rng)), rng)
                for result, (state, rng) in zip(results, running, strict=True)
            ]
            running = [(state, rng) for state, rng in moved if game.to_play(state) != TERMINAL]
            played.games += len(moved) - len(running)
            ply += 1
    played.seconds = perf_counter() - start
    return played


def play_itself(game: Any, network: ResNet, num_games: int) -> Played:
    """The same by `windrow.train.SelfPlay`, which draws random numbers of its own."""
    search = SearchConfig(num_simulations=NUM_SIMULATIONS, c_puct=C_PUCT)
    config = SelfPlayConfig(num_slots=num_games, temperature_plies=NUM_SAMPLED_PLIES, reuse_tree=False)
    start = perf_counter()
    selfplay = SelfPlay(game, windrow.evaluators.TorchEvaluator(network, "cpu"), search, config)
    moves = sum(len(record.actions) for record in selfplay.play(num_games, refill=False))
    stats = selfplay.stats
    return Played(stats.games, moves, stats.nn_batches, stats.nn_positions, perf_counter() - start)


def choose(visits: np.ndarray, ply: int, rng: np.random.Generator) -> int:
    """The move to play: by temperature 1 at first, then by temperature 0."""
    if ply < NUM_SAMPLED_PLIES:
        return int(rng.choice(len(visits), p=visits / visits.sum()))
    return int(np.argmax(visits))


# --- Against each other -------------------------------------------------------------------------------------------


def count_agreement(game: Any, network: ResNet, num_positions: int) -> int:
    """On how many positions both ways give the same visits to the last one."""
    config = SearchConfig(engine="sequential", num_simulations=NUM_SIMULATIONS, c_puct=C_PUCT)
    naive = NaiveSearch(game, network)
    with Search(game, windrow.evaluators.TorchEvaluator(network, "cpu"), config) as search:
        return sum(
            np.array_equal(naive.visits(state, NUM_SIMULATIONS), search.run(state).visits)
            for state in openings(game, num_positions)
        )


def measure_threads(game: Any, network: ResNet, num_threads: int, *, is_smoke: bool) -> list[Figure]:
    """Print the table for one number of torch threads and return its figures."""
    num_games, games_per_block, max_s = (2, 2, 0.0) if is_smoke else (NUM_GAMES, NUM_GAMES // 4, 40.0)
    starts = itertools.cycle(range(0, num_games, games_per_block))

    evaluator = windrow.evaluators.TorchEvaluator(network, "cpu")
    config = SearchConfig(engine="vectorized", num_simulations=NUM_SIMULATIONS, c_puct=C_PUCT)

    def take() -> tuple[Played, Played, Played]:
        """A block of games each way."""
        start = next(starts)
        return (
            play_naively(game, network, range(start, start + games_per_block)),
            play_together(game, evaluator, range(num_games), config),
            play_itself(game, network, num_games),
        )

    torch.set_num_threads(num_threads)
    with on_cores(num_threads):
        play_together(game, evaluator, range(2), config)  # warms up
        samples = take_quiet(take, wanted=num_games // games_per_block, max_samples=6, max_s=max_s)
    naive, together, itself = Played(), Played(), Played()
    for sample in samples.values:
        for total, played in zip((naive, together, itself), sample, strict=True):
            total.add(played)
    rows = [
        (
            name,
            played.games,
            f"{played.moves / played.games:.1f}",
            f"{played.games_per_second:.2f}",
            f"{played.calls / played.games:,.0f}",
            f"{played.positions / played.games:,.0f}",
            f"{played.positions / played.calls:.1f}",
        )
        for name, played in (
            ("naive, batch 1, two calls", naive),
            ("windrow.Search, vectorized", together),
            ("windrow.train.SelfPlay", itself),
        )
    ]
    threads = f"{num_threads} torch thread{'s' if num_threads > 1 else ''}"
    print_table(f"Connect-4 self-play, {NUM_SIMULATIONS} simulations a move, {threads}", HEADER, rows)
    figures: list[Figure] = []
    for index, way in enumerate(("Search", "SelfPlay"), start=1):
        ratios = [sample[index].games_per_second / sample[0].games_per_second for sample in samples.values]
        figures.append(
            Figure.of(
                f"{way}: games/s against the naive way, {threads}",
                ratios,
                unit="x",
                at_least=TARGET_SPEEDUP,
                note="median of blocks",
                is_unclear=samples.leaves_open(ratios, TARGET_SPEEDUP),
            )
        )
        print(
            f"\n  {way} is {statistics.median(ratios):.2f} times as fast ({len(ratios)} of {samples.num_taken} blocks,"
            f" others' cores {samples.noise})"
        )
    return figures


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    figures = [
        figure
        for num_threads in sorted({1, num_cores()})
        for figure in measure_threads(game, network, num_threads, is_smoke=is_smoke)
    ]
    num_positions = 2 if is_smoke else 20
    num_same = count_agreement(game, network, num_positions)
    print(f"\n  Both ways gave the same visits to the last one on {num_same} of {num_positions} positions.")
    return [
        *figures,
        Figure(name="naive and windrow agree", value=num_same / num_positions, at_least=1.0, note="share"),
    ]


if __name__ == "__main__":
    run_alone(measure, __doc__)
