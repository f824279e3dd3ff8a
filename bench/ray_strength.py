"""What the ray engine's leaves in flight cost in strength: pairs of moves, in positions that are solved exactly.

    windrow train connect4 --time 3m --run runs/connect4
    python bench/ray_strength.py --run runs/connect4 --more 600

Every position is searched with 400 simulations, one leaf at a time and with 16 out in four batches that come back as
they like. A pair counts +1 where only the first kept what the position is worth, -1 where only the second did: the
mean, in percentage points, is what 16 leaves cost, and its standard error falls with the number of pairs. 600 pairs
leave half a point of it, too much to tell 0.5 from 1.5: so more positions are drawn like those of
`windrow.play.solved`, with another seed, none of them twice. (One leaf at a time is what the vectorized engine finds,
and it is the quicker one.)
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from report import print_table
from solver_data import draw_positions

from windrow import Search, SearchConfig, make_game
from windrow.evaluators import RolloutEvaluator, load
from windrow.inference import InferenceFleet, connect
from windrow.play.solved import PHASES, SolvedPosition, phase_of, solved_positions
from windrow.play.solver import Connect4Solver
from windrow.play.solver_book import mirror_key

GAME = make_game("connect4")
NUM_SIMULATIONS = 400
OUT = {"engine": "ray", "max_batch": 4, "max_inflight_batches": 4}
RAY = {"ray, share": {**OUT, "on_collision": "share"}, "ray, skip": {**OUT, "on_collision": "skip"}}
TABLE_BYTES = 256 << 20


def more_positions(per_phase: int, seed: int) -> list[SolvedPosition]:
    """More positions like the fixed ones, and none of those; by phase."""
    seen = {mirror_key(position.state) for position in solved_positions(GAME)}
    found: dict[str, list[SolvedPosition]] = {phase_of(first): [] for first, _ in PHASES}
    drawn = draw_positions(Connect4Solver(GAME, TABLE_BYTES), random.Random(seed), per_phase, seen=seen)
    for count, (position, _) in enumerate(drawn, 1):
        found[position.phase].append(position)
        tell("positions", count, per_phase * len(PHASES))
    return [position for some in found.values() for position in some]


def tell(what: str, done: int, whole: int) -> None:
    """How far it is."""
    print(f"\r{what} {done}/{whole} ", end="\n" if done == whole else "", file=sys.stderr, flush=True)


def kept(positions: Sequence[SolvedPosition], actions: Sequence[int]) -> list[int]:
    """1 for every move that keeps what the position is worth."""
    pairs = zip(positions, actions, strict=True)
    return [int(position.results[action] == position.value) for position, action in pairs]


def search_all(evaluator: Any, positions: Sequence[SolvedPosition], leaves: int) -> list[int]:
    """Moves of the vectorized engine."""
    config = SearchConfig(engine="vectorized", num_simulations=NUM_SIMULATIONS, leaves_per_tree=leaves)
    with Search(GAME, evaluator, config) as search:
        return [result.best_action for result in search.run([position.state for position in positions])]


def search_each(fleet: InferenceFleet, positions: Sequence[SolvedPosition], name: str) -> list[int]:
    """Moves of the ray engine, one position after another."""
    actions: list[int] = []
    with Search(GAME, fleet, SearchConfig(num_simulations=NUM_SIMULATIONS).with_settings(RAY[name])) as search:
        for position in positions:
            actions.append(search.run(position.state).best_action)
            tell(name, len(actions), len(positions))
    return actions


def row(name: str, base: list[int], found: list[int]) -> tuple[str, ...]:
    """One case for the table."""
    lost = [100.0 * (before - after) for before, after in zip(base, found, strict=True)]
    error = statistics.stdev(lost) / sqrt(len(lost))
    return name, f"{100 * statistics.mean(found):.2f} %", f"{statistics.mean(lost):+.2f}", f"{error:.2f}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", metavar="RUN", help="a trained run or checkpoint; without it, random games evaluate")
    parser.add_argument("--more", type=int, default=0, metavar="N", help="draw N more positions of each phase")
    parser.add_argument("--backend", default="torch", help="that evaluates the network (openvino is quicker)")
    parser.add_argument("--seed", type=int, default=2, help="of the drawing")
    arguments = parser.parse_args()
    positions = [*solved_positions(GAME), *more_positions(arguments.more, arguments.seed)]
    make: Callable[[], Any] = lambda: RolloutEvaluator(4)  # noqa: E731 - so that it is pickled by value
    if arguments.run:
        run, backend = Path(arguments.run).resolve(), arguments.backend
        make = lambda: load(run, game=GAME, backend=backend, num_threads=1)  # noqa: E731
    base = kept(positions, search_all(make(), positions, 1))
    rows = [row("one leaf at a time", base, base)]
    rows.append(row("batched, 16 leaves", base, kept(positions, search_all(make(), positions, 16))))
    with connect("local"), InferenceFleet(GAME, make, num_cpus=0) as fleet:
        rows += [row(name, base, kept(positions, search_each(fleet, positions, name))) for name in RAY]
    title = f"{NUM_SIMULATIONS} simulations, {len(positions)} positions"
    print_table(title, ("search", "keeps the result", "points lost", "standard error"), rows)


if __name__ == "__main__":
    main()
