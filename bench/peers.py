"""Side by side with others: simulations per second of windrow, of mctx + pgx + JAX, and of OpenSpiel's MCTS in Python.

Connect-4, 64 games at once, 64 simulations a move, the 64-channel 5-block ResNet of resnet.py with the same random
weights everywhere: answers of all programs for the same positions are compared before anything is measured. Every
program searches the positions before the first four moves of the same games, with fresh trees and without a cache.

    windrow        vectorized engine, the backend that "auto" takes, all cores
    windrow, f32   the same with nothing of reduced precision allowed, as the others compute
    mctx           mctx.muzero_policy over pgx, jitted, all games in one batch; it may use all cores, but JAX uses one
    2 x mctx       two such processes at once, each on a core of its own with 64 games, throughputs added
    OpenSpiel      its Python MCTS with a torch evaluator at batch 1, game after game, eight of the games

Each is a process of its own that is ready and warm before the first round. They take turns, and ratios are taken within
a round; the median over the rounds is the figure. The share of the backend's throughput is what windrow's searches
leave of the rows per second that the same backend, in the same process, has with batches of 64 before and after each.

The others are optional and live in an environment of their own, so that what they need does not disturb windrow's:
`make bench-peers` makes it from peers-requirements.txt. WINDROW_PEERS_PYTHON names another interpreter that has them.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
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
from machine import Samples
from openings import draw_games
from report import Figure, print_table, run_alone
from resnet import make_resnet

import windrow

NUM_GAMES = 64
NUM_PLIES = 4
NUM_SIMULATIONS = 64
NUM_ROUNDS = 5
MIN_SHARE = 0.93
MIN_RATIOS = {"mctx": 4.5, "2 x mctx": 2.2, "OpenSpiel": 15.0}
MAX_DIFFERENCE = 1e-4
"""Between the answers of float32 networks in different frameworks."""


# --- The task -----------------------------------------------------------------------------------------------------


def right_answers(game: Any, network: Any, games: list[list[int]]) -> np.ndarray:
    """[games, A + 1] logits and value for the positions after the last move, by torch in float32."""
    last = []
    for moves in games:
        state = game.initial_state()
        for move in moves:
            state = game.apply(state, move)
        last.append(game.observe(state))
    with torch.inference_mode():
        logits, values = network(torch.from_numpy(np.stack(last)))
    return np.concatenate([logits.numpy(), values.numpy()[:, None]], axis=1)


# --- The programs -------------------------------------------------------------------------------------------------


def start_contenders(folder: Path) -> list[Contender]:
    """All that can be started, windrow's first."""
    ours: list[Contender] = []
    for name, options in (("windrow", []), ("windrow, f32", ["--way=f32"])):
        one = Contender(name, [Child(Path(sys.executable), "peer_windrow", folder, *options)])
        ours += keep_ready([one], is_required=True)  # one after the other: "auto" measures
    python = find_peers()
    if python is None:
        return ours
    cores = sorted(os.sched_getaffinity(0))
    programs: dict[str, tuple[str, list[list[str]]]] = {
        "mctx": ("peer_mctx", [[]]),
        "2 x mctx": ("peer_mctx", [[f"--core={cores[0]}"], [f"--core={cores[-1]}"]]),
        "OpenSpiel": ("peer_openspiel", [[]]),
    }
    theirs = [
        Contender(name, [Child(python, program, folder, *options) for options in processes])
        for name, (program, processes) in programs.items()
    ]
    return ours + keep_ready(theirs)


def check_answers(contenders: list[Contender], exact: np.ndarray) -> None:
    """See that all have the same network and the same positions."""
    for contender in contenders:
        for child in contender.children:
            difference = float(np.abs(child.answers() - exact).max())
            child.facts["difference"] = difference
            # Of windrow's backend, which may compute in reduced precision, `load` has seen that it agrees.
            if contender.name != "windrow" and not difference <= MAX_DIFFERENCE:
                raise RuntimeError(f"{contender.name} has another network or other positions: {difference} apart")


# --- The figures --------------------------------------------------------------------------------------------------


def share_figure(ours: Contender) -> Figure:
    """What a search leaves of its backend's throughput."""
    child = ours.children[0]
    shares = [share for measured in child.rounds for share in measured["shares"]]
    return Figure.of(
        f"{ours.name}: share of the backend's throughput",
        shares,
        at_least=MIN_SHARE,
        note=f"median of searches; {child.facts['backend']}",
        is_unclear=Samples(shares, ours.others, len(shares)).leaves_open(shares, MIN_SHARE),
    )


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    num_games, num_plies, num_simulations = (8, 2, 8) if is_smoke else (NUM_GAMES, NUM_PLIES, NUM_SIMULATIONS)
    games = draw_games(game, num_games, num_plies)
    weights = {key: value.numpy() for key, value in network.state_dict().items()}
    with task_folder(games, num_simulations, weights) as folder:
        contenders = start_contenders(folder)
    check_answers(contenders, right_answers(game, network, games))
    take_turns(contenders, 1 if is_smoke else NUM_ROUNDS)
    print_children(contenders)
    ours, exact, *others = contenders
    ratios = {
        theirs.name: ratio_figure(f"windrow against {theirs.name}", ours, theirs, MIN_RATIOS[theirs.name])
        for theirs in others
    }
    print_table(
        f"Simulations per second, {num_games} games, {num_plies} plies, {num_simulations} simulations a move, "
        f"median of {len(ours.rates)} rounds",
        TABLE_HEADER,
        [table_row(contender, ratios.get(contender.name)) for contender in contenders],
    )
    print()
    for contender in contenders[:2]:
        child = contender.children[0]
        rows, alone = (
            statistics.median(measured[key] for measured in child.rounds) for key in ("positions_rate", "backend_rate")
        )
        print(
            f"  {contender.name} evaluates {rows:,.0f} positions/s; {child.facts['backend']} alone at batch "
            f"{num_games}: {alone:,.0f} positions/s; share {share_figure(contender).value:.3f}."
        )
    return [
        *ratios.values(),
        *(ratio_figure(f"windrow, f32, against {theirs.name}", exact, theirs) for theirs in others),
        *(share_figure(contender) for contender in contenders[:2]),
        *(rate_figure(f"{contender.name}, with the network", contender) for contender in contenders),
    ]


if __name__ == "__main__":
    run_alone(measure, __doc__)
