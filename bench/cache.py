"""The prediction cache in self-play: evaluations saved, the speed it gives, and what is lost when it is small.

64 games of Connect-4 from the opening, 64 simulations a move with root noise, moves drawn in proportion to the visits,
the 64-channel 5-block ResNet through torch on the CPU. The first ten plies are played with a cache and without, ply by
ply in turns; every sample begins with an empty cache. Two ways to play: "fresh" plants new trees at every move, "kept"
keeps the subtree below the move played, which saves by itself some of what a cache would.

Then, one tree alone: what is saved there are transpositions, as no other tree can help. And the quality of eviction:
the positions that whole games ask for, one after another, replayed against the cache (CLOCK), LRU and FIFO, all with
room for the same number of entries.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from time import perf_counter
from typing import Any

import numpy as np
import torch
from machine import keep_freed_memory, num_cores, on_cores, take_quiet
from naive_selfplay import choose, play_together
from openings import openings
from report import Figure, print_table, run_alone
from resnet import make_resnet

import windrow
from windrow import TERMINAL, PredictionCache, Search, SearchConfig
from windrow.evaluators import Synchronous, TorchEvaluator

TARGET_SPEEDUP = 1.3
NUM_GAMES = 64
NUM_PLIES = 10
NUM_SIMULATIONS = 64
CACHE_BYTES = 64 << 20
NUM_ACTIONS = 7


@dataclass
class Ply:
    """All searches of one ply."""

    evaluations: int
    hits: int
    rows: int
    seconds: float


def self_play_config(num_simulations: int) -> SearchConfig:
    """As for training data: with noise at the root."""
    return SearchConfig(
        engine="vectorized", num_simulations=num_simulations, dirichlet_alpha=1.0, dirichlet_fraction=0.25
    )


# --- Speed --------------------------------------------------------------------------------------------------------


def play(
    game: Any,
    evaluator: Any,
    cache: PredictionCache | None,
    *,
    num_games: int,
    num_plies: int,
    num_simulations: int,
    is_kept: bool,
) -> Iterator[Ply]:
    """The first plies of some games, one when asked for. Moves that would end a game are not played: all games stay."""
    states = [game.initial_state() for _ in range(num_games)]
    rngs = [np.random.default_rng(seed) for seed in range(num_games)]
    with Search(game, evaluator, self_play_config(num_simulations), cache=cache) as search:
        for ply in range(num_plies):
            start = perf_counter()
            results = search.run(None if is_kept and ply > 0 else states)
            seconds = perf_counter() - start
            stats = search.stats
            assert stats is not None
            yield Ply(stats.evaluations, stats.cache_hits, stats.nn_positions, seconds)
            moves = [
                choose(open_visits(game, state, result.visits), ply, rng)
                for state, result, rng in zip(states, results, rngs, strict=True)
            ]
            states = [game.apply(state, move) for state, move in zip(states, moves, strict=True)]
            if is_kept:
                search.advance(moves)


def open_visits(game: Any, state: Any, visits: np.ndarray) -> np.ndarray:
    """The visits of moves that do not end the game; if none has any, one for each of those moves."""
    is_open = np.zeros(len(visits), bool)
    for action in game.legal_actions(state):
        is_open[action] = game.to_play(game.apply(state, action)) != TERMINAL
    found = np.where(is_open, visits, 0)
    return found if found.any() else is_open.astype(visits.dtype)


def measure_speed(game: Any, evaluator: Any, *, is_smoke: bool) -> list[Figure]:
    """Print what is saved, as a whole and ply by ply, and return the figures."""
    size = {"num_games": 4, "num_plies": 3, "num_simulations": 8} if is_smoke else {}
    size = {"num_games": NUM_GAMES, "num_plies": NUM_PLIES, "num_simulations": NUM_SIMULATIONS, **size}
    figures, rows, by_ply = [], [], []
    for way, is_kept in (("fresh trees", False), ("kept subtrees", True)):

        def take(is_kept: bool = is_kept) -> tuple[list[Ply], list[Ply]]:
            """Off and on, in turns of one ply."""
            off = play(game, evaluator, None, is_kept=is_kept, **size)
            on = play(game, evaluator, PredictionCache(CACHE_BYTES), is_kept=is_kept, **size)
            pairs = list(zip(off, on, strict=True))
            return [ply for ply, _ in pairs], [ply for _, ply in pairs]

        # Warms up.
        next(play(game, evaluator, None, is_kept=is_kept, **{**size, "num_simulations": 4}))
        samples = take_quiet(take, wanted=1 if is_smoke else 3, max_samples=5, max_s=0.0 if is_smoke else 60.0)
        ratios = [total(off).seconds / total(on).seconds for off, on in samples.values]
        off, on = samples.values[-1]
        rows.append(
            (
                way,
                f"{total(off).rows:,}",
                f"{total(on).evaluations:,}",
                f"{total(on).rows:,}",
                f"{1 - total(on).rows / total(on).evaluations:.1%}",
                f"{min(total(plies).seconds for plies, _ in samples.values):.2f}",
                f"{min(total(plies).seconds for _, plies in samples.values):.2f}",
                f"{statistics.median(ratios):.2f}",
                f"{min(ratios):.2f}-{max(ratios):.2f}",
                samples.noise,
            )
        )
        by_ply.append(on)
        figures.append(
            Figure.of(
                f"self-play with a cache, first {size['num_plies']} plies, {way}",
                ratios,
                unit="x",
                at_least=TARGET_SPEEDUP,
                note="median of turns",
                is_unclear=samples.leaves_open(ratios, TARGET_SPEEDUP),
            )
        )
    title = "Connect-4 self-play from the opening, {num_games} games, {num_plies} plies, {num_simulations} simulations"
    print_table(
        title.format(**size),
        (
            "way",
            "rows off",
            "nodes on",
            "rows on",
            "saved",
            "best s off",
            "best s on",
            "speed-up",
            "lowest-highest",
            "others",
        ),
        rows,
    )
    print("\n  nodes: expanded with the cache on; rows: of those, the ones that the network was asked about.")
    print_table(
        "Ply by ply: nodes known to the cache, and those equal to another in their batch, as a share of all",
        ("ply", *(f"{way}: {what}" for way in ("fresh", "kept") for what in ("nodes", "known", "equal"))),
        [
            (ply, *(cell for of_way in plies for cell in ply_cells(of_way)))
            for ply, plies in enumerate(zip(*by_ply, strict=True))
        ],
    )
    return figures


def total(plies: list[Ply]) -> Ply:
    """All plies together."""
    return Ply(
        sum(ply.evaluations for ply in plies),
        sum(ply.hits for ply in plies),
        sum(ply.rows for ply in plies),
        sum(ply.seconds for ply in plies),
    )


def ply_cells(ply: Ply) -> tuple[str, str, str]:
    """Nodes, and the shares of hits and of duplicates."""
    equal = ply.evaluations - ply.rows - ply.hits
    return f"{ply.evaluations:,}", f"{ply.hits / ply.evaluations:.1%}", f"{equal / ply.evaluations:.1%}"


# --- Transpositions -----------------------------------------------------------------------------------------------


def measure_transpositions(game: Any, evaluator: Any, *, is_smoke: bool) -> list[Figure]:
    """Print what is saved within single trees, each with a cache of its own, and return the shares."""
    positions = [game.initial_state(), *openings(game, 1 if is_smoke else 4)]
    figures, rows = [], []
    for budget in (8,) if is_smoke else (64, 400, 1600):
        nodes = saved = 0
        for state in positions:
            config = SearchConfig(engine="batched", leaves_per_tree=8, num_simulations=budget)
            with Search(game, evaluator, config, cache=PredictionCache(CACHE_BYTES)) as search:
                search.run(state)
                assert search.stats is not None
                nodes += search.stats.evaluations
                saved += search.stats.saved_evaluations
        rows.append((f"{budget:,}", f"{nodes:,}", f"{saved:,}", f"{saved / nodes:.1%}"))
        figures.append(
            Figure(
                name=f"evaluations shared inside one tree, {budget:,} simulations",
                value=saved / nodes,
                note=f"a share; {len(positions)} positions",
            )
        )
    print_table(
        f"Transpositions: evaluations shared inside one tree, {len(positions)} positions, K = 8",
        ("simulations", "nodes", "evaluations saved", "share"),
        rows,
    )
    return figures


# --- Eviction -----------------------------------------------------------------------------------------------------


class Tracer(Synchronous):
    """Another evaluator that is asked about every position once, and a list of all questions."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._known: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        self.trace: list[bytes] = []

    def evaluate(self, observations: Any) -> Any:
        """Remember, and evaluate what is new."""
        digests = [blake2b(row.tobytes(), digest_size=16).digest() for row in observations]
        self.trace += digests
        new = {digest: row for row, digest in enumerate(digests) if digest not in self._known}
        if new:
            logits, values = self._inner.evaluate(observations[list(new.values())])
            for digest, *answer in zip(new, logits.copy(), values.reshape(-1).copy(), strict=True):
                self._known[digest] = tuple(answer)
        answers = [self._known[digest] for digest in digests]
        return np.stack([logits for logits, _ in answers]), np.stack([value for _, value in answers])


def record_trace(game: Any, evaluator: Any, *, num_games: int, num_simulations: int) -> np.ndarray:
    """[N, 2] keys of the positions that whole games ask for, in order; fresh trees at every move."""
    tracer = Tracer(evaluator)
    play_together(game, tracer, range(num_games), self_play_config(num_simulations))
    return np.frombuffer(b"".join(tracer.trace), np.uint64).reshape(-1, 2)


def replay_native(trace: np.ndarray, max_bytes: int) -> tuple[float, int]:
    """The cache's hit rate, and how many entries of Connect-4 it has room for."""
    rows, values, found = np.ones((1, NUM_ACTIONS), np.float32), np.zeros(1, np.float32), np.zeros(1, bool)
    cache = PredictionCache(max_bytes).native
    for key in trace.reshape(-1, 1, 2):
        cache.find_rows(key, 0, rows, values, found)
        if not found[0]:
            cache.insert_rows(key, 0, rows, values)
    full = PredictionCache(max_bytes).native
    strangers = np.random.default_rng(0).integers(0, 2**63, (2 * max_bytes // 64, 2), np.uint64)
    full.insert_rows(strangers, 0, np.ones((len(strangers), NUM_ACTIONS), np.float32), np.zeros(len(strangers), "f4"))
    return cache.counters()["hits"] / len(trace), full.counters()["entries"]


def replay(trace: list[int], capacity: int, *, is_lru: bool) -> float:
    """The hit rate of LRU or FIFO."""
    cache: OrderedDict[int, None] = OrderedDict()
    num_hits = 0
    for key in trace:
        if key in cache:
            num_hits += 1
            if is_lru:
                cache.move_to_end(key)
            continue
        if len(cache) == capacity:
            cache.popitem(last=False)
        cache[key] = None
    return num_hits / len(trace)


def capacities(num_positions: int) -> Iterator[int]:
    """Bytes, from a 128th of what all positions need up to all of it."""
    for share in (128, 64, 32, 16, 8, 1):
        yield max(72 * num_positions // share, 1 << 14)


def measure_eviction(game: Any, evaluator: Any, *, is_smoke: bool) -> list[Figure]:
    """Print hit rates side by side."""
    trace = record_trace(
        game, evaluator, num_games=4 if is_smoke else NUM_GAMES, num_simulations=8 if is_smoke else NUM_SIMULATIONS
    )
    numbers = [hash(key.tobytes()) for key in trace]
    num_positions = len(set(numbers))
    rows, behind = [], []
    for max_bytes in dict.fromkeys(capacities(num_positions)):
        native, capacity = replay_native(trace, max_bytes)
        lru, fifo = (replay(numbers, capacity, is_lru=is_lru) for is_lru in (True, False))
        behind.append(lru - native)
        rows.append((f"{max_bytes / 1024:,.0f}", f"{capacity:,}", f"{native:.2%}", f"{lru:.2%}", f"{fifo:.2%}"))
    print_table(
        f"Hit rates over whole games: {len(trace):,} questions about {num_positions:,} positions, of which"
        f" {1 - num_positions / len(trace):.2%} could be known",
        ("KiB", "entries", "CLOCK (the cache)", "LRU", "FIFO"),
        rows,
    )
    return [Figure(name="hit rate that LRU has beyond the cache's, at worst", value=max(behind), note="a share")]


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    keep_freed_memory()
    game = windrow.make_game("connect4")
    torch.set_num_threads(num_cores())
    with on_cores(num_cores()):
        evaluator = TorchEvaluator(make_resnet(game.observation, game.num_actions), "cpu")
        figures = measure_speed(game, evaluator, is_smoke=is_smoke)
        figures += measure_transpositions(game, evaluator, is_smoke=is_smoke)
        return [*figures, *measure_eviction(game, evaluator, is_smoke=is_smoke)]


if __name__ == "__main__":
    run_alone(measure, __doc__)
