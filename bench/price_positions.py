"""Hard positions of Connect-4 for the price of batching, with what every move leads to.

    python bench/price_positions.py            # writes price_positions.txt: some minutes on two cores
    python bench/price_positions.py --check    # solves every position once more

A position is taken if some moves keep its result and others do not, and if a search of 400 simulations that knows only
the rules plays a wrong one: what lies a few moves ahead is found by any search, whatever it costs. The games are those
of players who look one move ahead, more or less often. A line of the file is the moves, and for each column `+`, `=` or
`-` if dropping a stone there wins, draws or loses, `.` if it is full. The file is always written the same, however many
processes work at it.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from machine import num_cores
from solver_data import careful_choices

from windrow import TERMINAL, Search, SearchConfig, make_game
from windrow.engines import Vectorized
from windrow.evaluators import UniformEvaluator
from windrow.play.solved import MARKS
from windrow.play.solver import Connect4Solver
from windrow.play.solver_book import mirror_key

FILE = Path(__file__).with_name("price_positions.txt")
PHASES = {(8, 11): 800, (12, 15): 1200, (16, 21): 1000}
"""First and last number of stones on the board, and how many positions to find."""
SEARCH = SearchConfig(engine=Vectorized(num_threads=1), num_simulations=400)
"""What must go wrong, without a network."""
STRENGTHS = (0.0, 0.4, 0.7, 0.9)
"""How often a player looks before it moves."""
CHUNK = 100
"""Candidates that a process looks at before it reports."""
SEED = 1

_RESULTS = {mark: result for result, mark in MARKS.items()}


@dataclass(frozen=True, slots=True)
class HardPosition:
    """A position and the actions that keep what it is worth."""

    state: Any
    num_stones: int
    best_actions: frozenset[int]


def read_positions(path: Path = FILE) -> list[HardPosition]:
    """All positions of the file, mixed, so that the first hundred are like all."""
    game = make_game("connect4")
    lines = path.read_text(encoding="utf-8").splitlines()
    random.Random(SEED).shuffle(lines)
    found: list[HardPosition] = []
    for line in lines:
        moves, marks = line.split()
        results = {action: _RESULTS[mark] for action, mark in enumerate(marks) if mark != "."}
        best = frozenset(action for action, result in results.items() if result == max(results.values()))
        found.append(HardPosition(game.state_from_moves(moves), len(moves), best))
    return found


def find_hard(task: tuple[int, int, int]) -> list[str]:
    """Lines of the file, from the candidates of one chunk: (first, last number of stones, number of the chunk)."""
    first, last, number = task
    game, solver, search = _tools()
    draw = random.Random(f"{SEED} {first} {last} {number}")
    candidates = list(_candidates(game, draw, first, last))
    chosen = [result.best_action for result in search.run([state for state, _ in candidates])]
    lines: list[str] = []
    for (state, moves), action in zip(candidates, chosen, strict=True):
        results = solver.results(state)
        if results[action] != max(results.values()):
            marks = "".join(MARKS[results[a]] if a in results else "." for a in range(game.num_actions))
            lines.append(f"{moves} {marks}")
    return lines


def write_positions(path: Path, num_processes: int) -> None:
    """Find as many as are wanted of each phase, in the order of their chunks."""
    game = make_game("connect4")
    lines: list[str] = []
    seen: set[bytes] = set()
    with get_context("spawn").Pool(num_processes) as pool:
        for (first, last), wanted in PHASES.items():
            goal, number = len(lines) + wanted, 0
            while len(lines) < goal:
                tasks = [(first, last, number + offset) for offset in range(num_processes)]
                number += num_processes
                for line in (line for found in pool.map(find_hard, tasks, chunksize=1) for line in found):
                    key = mirror_key(game.state_from_moves(line.split()[0]))
                    if key not in seen and len(lines) < goal:
                        seen.add(key)
                        lines.append(line)
                print(f"\r{first} to {last} stones: {len(lines) + wanted - goal} of {wanted} ", end="", file=sys.stderr)
            print(file=sys.stderr)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def check_positions() -> int:
    """Solve every position once more; how many are wrong."""
    solver = Connect4Solver(make_game("connect4"))
    wrong = 0
    for count, position in enumerate(positions := read_positions(), 1):
        results = solver.results(position.state)
        best = {action for action, result in results.items() if result == max(results.values())}
        wrong += best != position.best_actions
        print(f"\r{count} of {len(positions)}, {wrong} wrong ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return wrong


@cache
def _tools() -> tuple[Any, Connect4Solver, Search]:
    game = make_game("connect4")
    return game, Connect4Solver(game), Search(game, UniformEvaluator(), SEARCH)


def _candidates(game: Any, draw: random.Random, first: int, last: int) -> Iterator[tuple[Any, str]]:
    """Positions of games that are not over, and the moves that led to them."""
    count = 0
    while count < CHUNK:
        strengths = [draw.choice(STRENGTHS) for _ in range(2)]
        state, moves, num_stones = game.initial_state(), "", draw.randint(first, last)
        while len(moves) < num_stones and (player := game.to_play(state)) != TERMINAL:
            choices = game.legal_actions(state)
            if draw.random() < strengths[player]:
                choices = careful_choices(game, state)
            action = draw.choice(choices)
            state, moves = game.apply(state, action), moves + game.action_name(action)
        if game.to_play(state) != TERMINAL:
            yield state, moves
            count += 1


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="solve the positions of the file once more")
    parser.add_argument("--processes", type=int, default=num_cores(), metavar="N", help="one per core by default")
    arguments = parser.parse_args()
    if arguments.check:
        return 1 if check_positions() else 0
    write_positions(FILE, arguments.processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
