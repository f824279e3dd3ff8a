"""Trees alone, side by side with others': simulations per second with an evaluator that costs nothing, on one core.

Connect-4, 64 positions after four random moves, 64 and 400 simulations. Equal priors, value 0.

    windrow                        the vectorized engine, all positions at once; writes the observation of every leaf
    mctx                           mctx.muzero_policy over pgx, jitted, all positions in one batch
    LightZero                      its MuZero tree in C++, 64 trees; it steps no game and knows no end
    windrow, one by one            the sequential engine, one position after another, one leaf at a time
    OpenSpiel, Python              its MCTS in Python, one position after another
    windrow, rollouts              all positions at once, a random game for every leaf
    windrow, rollouts one by one   the same, one position after another, one leaf at a time
    OpenSpiel, C++                 its MCTS in C++, one position after another, a random game for every leaf: the
                                   cheapest evaluator it has

All but LightZero do the same: so many simulations of the same positions, on one core. Ratios are taken within a round.
A uniform evaluator makes shallow trees, so all of these are upper bounds. Whoever is not installed is left out;
peers.py says how they are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from contest import (
    TABLE_HEADER,
    Child,
    Contender,
    find_peers,
    keep_ready,
    print_children,
    rate_figure,
    ratio_figure,
    table_row,
    take_turns,
    task_folder,
)
from openings import draw_games
from report import Figure, print_table, run_alone

import windrow

NUM_GAMES = 64
NUM_PLIES = 4
BUDGETS = (64, 400)
NUM_ROUNDS = 5
OURS = {
    "windrow": "together",
    "windrow, one by one": "one by one",
    "windrow, rollouts": "rollouts together",
    "windrow, rollouts one by one": "rollouts one by one",
}
"""Ways of peer_tree_windrow."""
THEIRS = {
    "mctx": ("peer_tree_mctx", []),
    "LightZero": ("peer_tree_lightzero", []),
    "OpenSpiel, Python": ("peer_tree_openspiel", ["--way=python"]),
    "OpenSpiel, C++": ("peer_tree_openspiel", ["--way=c++"]),
}
"""Programs, and how to start them."""
PAIRS = (
    ("windrow", "mctx"),
    ("windrow", "LightZero"),
    ("windrow", "OpenSpiel, Python"),
    ("windrow, one by one", "OpenSpiel, Python"),
    ("windrow, rollouts", "OpenSpiel, C++"),
    ("windrow, rollouts one by one", "OpenSpiel, C++"),
)
"""Who is compared."""


def start_contenders(folder: Path) -> list[Contender]:
    """All that can be started, each on the same core: they take turns."""
    core = f"--core={max(os.sched_getaffinity(0))}"
    own, python = Path(sys.executable), find_peers()
    ours = [
        Contender(name, [Child(own, "peer_tree_windrow", folder, core, f"--way={way}")]) for name, way in OURS.items()
    ]
    theirs = [
        Contender(name, [Child(python, program, folder, core, *options)])
        for name, (program, options) in THEIRS.items()
        if python is not None
    ]
    return keep_ready(ours, is_required=True) + keep_ready(theirs)


def measure_budget(num_simulations: int, num_rounds: int) -> list[Figure]:
    """Print the table of one budget and return its figures."""
    games = draw_games(windrow.make_game("connect4"), NUM_GAMES, NUM_PLIES)
    with task_folder(games, num_simulations, {}) as folder:
        contenders = start_contenders(folder)
    take_turns(contenders, num_rounds)
    print_children(contenders)
    by_name = {contender.name: contender for contender in contenders}
    ratios = {
        (ours, theirs): ratio_figure(
            f"{ours} against {theirs}, trees alone, {num_simulations} simulations", by_name[ours], by_name[theirs]
        )
        for ours, theirs in PAIRS
        if theirs in by_name
    }
    shown = {theirs: figure for (ours, theirs), figure in reversed(ratios.items())}
    title = f"Trees alone, {num_simulations} simulations, one core, median of {num_rounds} rounds"
    print_table(title, TABLE_HEADER, [table_row(contender, shown.get(contender.name)) for contender in contenders])
    rates = [rate_figure(f"{one.name}, trees alone, {num_simulations} simulations", one) for one in contenders]
    return [*ratios.values(), *rates]


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    budgets, num_rounds = ((8,), 1) if is_smoke else (BUDGETS, NUM_ROUNDS)
    return [figure for budget in budgets for figure in measure_budget(budget, num_rounds)]


if __name__ == "__main__":
    run_alone(measure, __doc__)
