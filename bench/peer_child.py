"""What every program of a contest does: read its task, say that it is ready, measure when told to.

peers.py and peers_tree.py start them. It needs NumPy only, since it runs in the environments of others too. A child is
started with the folder of its task: `task.json` with the games, `weights.npz` with the network (empty where trees are
compared without one). It warms up, prints one line that says what it is and how its network answers for the last
positions, and then one line for every line it reads, until there are no more. All lines are JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

MIN_ROUND_S = 0.4
"""Of a program that repeats its task until a round is long enough to be measured."""


@dataclass(frozen=True)
class Task:
    """What all programs do alike.

    games: the moves of every game, by column from the left, none of which ends it. The position before every move is
        searched, with a fresh tree.
    num_simulations: of every search.
    weights: of the network in resnet.py, by name; none where trees are compared without one.
    """

    games: list[list[int]]
    num_simulations: int
    weights: dict[str, np.ndarray]

    @property
    def moves(self) -> np.ndarray:
        """[plies, games]."""
        return np.array(self.games, np.int32).T


def read_arguments() -> tuple[Task, str | None]:
    """From the command line: the task, and what is to be tried, None for the usual; keeps to one core if told so."""
    parser = argparse.ArgumentParser(description="A program of a contest, which starts it.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--core", type=int)
    parser.add_argument("--way", help="what to try, where a program knows several")
    arguments = parser.parse_args()
    if arguments.core is not None:
        os.sched_setaffinity(0, {arguments.core})
    with np.load(arguments.folder / "weights.npz") as file:
        weights = {name: file[name] for name in file.files}
    task = json.loads((arguments.folder / "task.json").read_text(encoding="utf-8"))
    return Task(**task, weights=weights), arguments.way


def measure_rate(search: Callable[[], int]) -> dict[str, float]:
    """Simulations per second of searches that are repeated until the round is long enough.

    search: does the task once, and returns its simulations.
    """
    count, start = 0, perf_counter()
    while (elapsed := perf_counter() - start) < MIN_ROUND_S or count == 0:
        count += search()
    return {"rate": count / elapsed}


def serve_answers(
    logits: Any, values: Any, measure_round: Callable[[], dict[str, Any]], *, packages: list[str], **facts: Any
) -> None:
    """As `serve`, and say how the network answers.

    Args:
        logits: [games, 7] the network's for the positions after the last move.
        values: [games], for the player to move.
        measure_round: as for `serve`.
        packages: as for `serve`.
        facts: as for `serve`.
    """
    answers = {"logits": np.asarray(logits).tolist(), "values": np.asarray(values).reshape(-1).tolist()}
    serve(measure_round, packages=packages, **facts, **answers)


def serve(measure_round: Callable[[], dict[str, Any]], *, packages: list[str], **facts: Any) -> None:
    """Print what the program is, then measure a round for every line that is read.

    Args:
        measure_round: does the task once and returns what it measured.
        packages: whose versions to say.
        facts: to say beside them.
    """
    versions = {package: version(package) for package in packages}
    print(json.dumps({"versions": versions, **facts}), flush=True)
    for _ in sys.stdin:
        start, cpu_start = perf_counter(), process_time()
        measured = measure_round()
        used = {"cpu_s": process_time() - cpu_start, "wall_s": perf_counter() - start}
        print(json.dumps({**measured, **used}), flush=True)
