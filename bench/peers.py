"""Side by side with others: simulations per second of windrow, of mctx + pgx + JAX, and of OpenSpiel's MCTS in Python.

Connect-4, 64 games at once, 64 simulations a move, the 64-channel 5-block ResNet of resnet.py with the same random
weights everywhere: answers of all programs for the same positions are compared before anything is measured. Every
program searches the positions before the first six moves of the same games, with fresh trees and without a cache.

    windrow        vectorized engine, the backend that "auto" takes, all cores
    windrow, f32   the same with nothing of reduced precision allowed, as the others compute
    mctx           mctx.muzero_policy over pgx, jitted, all games in one batch; it may use all cores, but JAX uses one
    2 x mctx       two such processes at once, each on a core of its own with 64 games, throughputs added
    OpenSpiel      its Python MCTS with a torch evaluator at batch 1, game after game, eight of the games

Each is a process of its own that is ready and warm before the first round. They take turns, and ratios are taken within
a round; the median over the rounds is the figure. The share of the backend's throughput is what windrow's searches
leave of the rows per second that the same backend, in the same process, has with batches of 64 before and after each.

The others are optional and live in an environment of their own, so that what they need does not disturb windrow's:
`make bench-peers` makes it from peers-requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import torch
from machine import ROOT, Samples, busy_s
from report import Figure, print_figures, print_table, write_json
from resnet import make_resnet

import windrow
from windrow import TERMINAL

FOLDER = Path(__file__).parent
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
NUM_GAMES = 64
NUM_PLIES = 6
NUM_SIMULATIONS = 64
NUM_ROUNDS = 5
MIN_SHARE = 0.93
MIN_RATIOS = {"mctx": 4.5, "2 x mctx": 2.2, "OpenSpiel": 15.0}
MAX_DIFFERENCE = 1e-4
"""Between the answers of float32 networks in different frameworks."""

KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""For all programs, what `machine.keep_freed_memory` does for one."""


# --- The task -----------------------------------------------------------------------------------------------------


def draw_games(game: Any, num_games: int, num_plies: int) -> list[list[int]]:
    """Random moves from the opening, none of which ends a game."""
    draw = random.Random(0)
    games: list[list[int]] = []
    while len(games) < num_games:
        state, moves = game.initial_state(), []
        while len(moves) < num_plies and game.to_play(state) != TERMINAL:
            moves.append(draw.choice(game.legal_actions(state)))
            state = game.apply(state, moves[-1])
        if game.to_play(state) != TERMINAL:
            games.append(moves)
    return games


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


class Child:
    """One process: made ready, then told when to measure."""

    def __init__(self, python: Path, program: str, folder: Path, *options: str) -> None:
        self.program, self.options = program, options
        command = [str(python), str(FOLDER / f"{program}.py"), str(folder), *options]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **KEEP_FREED_MEMORY, "TF_CPP_MIN_LOG_LEVEL": "3"},  # XLA's remarks on its compiler
        )
        self.facts: dict[str, Any] = {}
        self.rounds: list[dict[str, Any]] = []

    def is_ready(self) -> bool:
        """Wait until it is warm; False if it has failed."""
        try:
            self.facts = self.read()
        except subprocess.CalledProcessError:
            return False
        return True

    def answers(self) -> np.ndarray:
        """[games, A + 1] as `right_answers`, by its own network."""
        return np.column_stack([np.array(self.facts.pop("logits")), np.array(self.facts.pop("values"))])

    def begin(self) -> None:
        """Let it measure a round."""
        assert self._process.stdin is not None
        self._process.stdin.write("measure\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Its next line; blocks."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise subprocess.CalledProcessError(self._process.wait(), self.program)
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


@dataclass
class Contender:
    """One row of the table: one process, or several that measure at the same time."""

    name: str
    children: list[Child]
    rates: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """Cores that other programs used meanwhile."""

    def measure(self) -> None:
        """A round."""
        sleep(0.2)  # whoever was at work before has come to rest
        busy, start = busy_s(), perf_counter()
        for child in self.children:
            child.begin()
        rounds = [child.read() for child in self.children]
        elapsed = perf_counter() - start
        own = sum(measured["cpu_s"] for measured in rounds)
        self.others.append(max(0.0, (busy_s() - busy - own) / elapsed))
        self.rates.append(sum(measured["rate"] for measured in rounds))
        for child, measured in zip(self.children, rounds, strict=True):
            child.rounds.append(measured)

    @property
    def cores(self) -> float:
        """That it used."""
        return sum(child.rounds[-1]["cpu_s"] / child.rounds[-1]["wall_s"] for child in self.children)


def start_contenders(folder: Path, python: Path | None) -> list[Contender]:
    """All that can be started."""
    own = Path(sys.executable)
    contenders: list[Contender] = []
    for name, options in (("windrow", []), ("windrow, f32", ["--precision=f32"])):
        child = Child(own, "peer_windrow", folder, *options)
        if not child.is_ready():  # one after the other: "auto" measures
            raise RuntimeError(f"{name} does not start (see above)")
        contenders.append(Contender(name, [child]))
    if python is None:
        print("the others are left out: `make bench-peers` installs them")
        return contenders
    cores = sorted(os.sched_getaffinity(0))
    programs: dict[str, tuple[str, list[list[str]]]] = {
        "mctx": ("peer_mctx", [[]]),
        "2 x mctx": ("peer_mctx", [[f"--core={cores[0]}"], [f"--core={cores[-1]}"]]),
        "OpenSpiel": ("peer_openspiel", [[]]),
    }
    peers = [
        Contender(name, [Child(python, program, folder, *options) for options in processes])
        for name, (program, processes) in programs.items()
    ]
    for peer in peers:
        if all([child.is_ready() for child in peer.children]):
            contenders.append(peer)
        else:
            print(f"{peer.name} is left out: it does not start with {python} (see above)")
    return contenders


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


def ratio_figure(ours: Contender, theirs: Contender) -> Figure:
    """How many times as fast windrow is."""
    ratios = [one / other for one, other in zip(ours.rates, theirs.rates, strict=True)]
    noise = [max(pair) for pair in zip(ours.others, theirs.others, strict=True)]
    target = MIN_RATIOS[theirs.name]
    return Figure(
        name=f"simulations/s against {theirs.name}",
        value=statistics.median(ratios),
        unit="x",
        at_least=target,
        note=f"median of {len(ratios)}; {min(ratios):.2f}-{max(ratios):.2f}",
        is_unclear=Samples(ratios, noise, len(ratios)).leaves_open(ratios, target),
    )


def share_figure(ours: Contender) -> Figure:
    """What a search leaves of its backend's throughput."""
    child = ours.children[0]
    shares = [share for measured in child.rounds for share in measured["shares"]]
    return Figure(
        name=f"share of the throughput of {child.facts['backend']}",
        value=statistics.median(shares),
        at_least=MIN_SHARE,
        note=f"median of {len(shares)} searches; {min(shares):.3f}-{max(shares):.3f}",
        is_unclear=Samples(shares, ours.others, len(shares)).leaves_open(shares, MIN_SHARE),
    )


def print_children(contenders: list[Contender]) -> None:
    """One line of JSON per process."""
    print()
    for contender in contenders:
        for number, child in enumerate(contender.children, start=1):
            rates = [round(measured["rate"], 1) for measured in child.rounds]
            content = {
                "program": contender.name,
                "process": number,
                "options": child.options,
                "median": statistics.median(rates),
                "rates": rates,
                **child.facts,
                "last_round": {key: np.round(value, 3).tolist() for key, value in child.rounds[-1].items()},
            }
            print(json.dumps(content))


def measure(is_quick: bool, python: Path | None) -> list[Figure]:
    """Print the table and return the figures."""
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    num_games, num_plies, num_simulations = (8, 2, 8) if is_quick else (NUM_GAMES, NUM_PLIES, NUM_SIMULATIONS)
    games = draw_games(game, num_games, num_plies)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "weights.npz", **{key: value.numpy() for key, value in network.state_dict().items()})
        task = {"games": games, "num_simulations": num_simulations}
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        contenders = start_contenders(folder, python)
    try:
        check_answers(contenders, right_answers(game, network, games))
        for _ in range(1 if is_quick else NUM_ROUNDS):
            for contender in contenders:
                contender.measure()
    finally:
        for contender in contenders:
            for child in contender.children:
                child.close()
    print_children(contenders)
    ours, _, *others = contenders
    ratios = {theirs.name: ratio_figure(ours, theirs) for theirs in others}
    figures = [share_figure(ours), *ratios.values()]
    print_table(
        f"Simulations per second, {num_games} games, {num_plies} plies, {num_simulations} simulations a move, "
        f"median of {len(ours.rates)} rounds",
        ("program", "simulations/s", "lowest-highest", "cores", "windrow is faster", "target", "others' cores"),
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
    return figures


def table_row(contender: Contender, figure: Figure | None) -> Sequence[str]:
    """Of one contender."""
    return (
        contender.name,
        f"{statistics.median(contender.rates):,.0f}",
        f"{min(contender.rates):,.0f}-{max(contender.rates):,.0f}",
        f"{contender.cores:.2f}",
        "" if figure is None else f"{figure.value:.2f} x",
        "" if figure is None else figure.target,
        f"{statistics.median(contender.others):.2f}",
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run: few repeats, figures of no worth")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    parser.add_argument(
        "--peers-python",
        type=Path,
        metavar="PYTHON",
        help="the interpreter that has peers-requirements.txt installed (.venv-peers/bin/python if there is one)",
    )
    arguments = parser.parse_args()
    python = arguments.peers_python or (PEERS_PYTHON if PEERS_PYTHON.exists() else None)
    figures = measure(arguments.quick, python)
    if arguments.json is not None:
        write_json(arguments.json, figures)
    else:
        print_figures(figures)


if __name__ == "__main__":
    main()
