"""Self-play share: how much of the network's own throughput self-play keeps busy, and whether it stays so.

The 64-channel 5-block ResNet, Connect-4, `windrow.train.SelfPlay` on the backend that `backend="auto"` takes, with
root noise, subtree reuse and playout-cap randomization. Self-play and the network alone, at the batch size of the
slots, take turns; the figure is the median ratio of rows per second. With `--minutes M` it goes on for M minutes and
says whether the share decays and whether the memory of the process grows.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from machine import keep_freed_memory, num_cores
from openings import openings
from report import Figure, command_line, print_table, run_command_line
from resnet import make_resnet

import windrow
from windrow import SearchConfig
from windrow.train import SelfPlay, SelfPlayConfig
from windrow.tune.network import network_rate

TARGET_SHARE = 0.90
MAX_GROWTH = 1.02
"""Resident memory at the end by that after warm-up."""
HEADER = ("minute", "games/s", "moves/s", "sims/s", "rows/s", "network alone/s", "share", "fill", "resident MiB")


@dataclass
class Turn:
    """A few seconds of self-play, with the network alone before and after it."""

    seconds: float
    games: int
    moves: int
    simulations: int
    rows: int
    fill: float
    alone: float
    resident: float

    @property
    def share(self) -> float:
        """Of the network's own throughput."""
        return self.rows / self.seconds / self.alone


def take_turns(num_slots: int, turn_s: float) -> Iterator[Turn]:
    """Self-play and the network alone, in turn, for ever."""
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    evaluator = windrow.evaluators.load(network, game=game, batch=num_slots, num_threads=num_cores())
    print(evaluator.choice)
    observations = np.stack([game.observe(state) for state in openings(game, num_slots)])
    search = SearchConfig(num_simulations=64, dirichlet_fraction=0.25)
    selfplay = SelfPlay(game, evaluator, search, SelfPlayConfig(num_slots=num_slots, full_fraction=0.25))
    games = selfplay.play(2**31 - 1)
    for _ in range(num_slots):
        next(games)  # until games of all ages are under way
    while True:
        before = _counts(selfplay)
        alone = network_rate(evaluator, observations, seconds=turn_s / 6)
        while selfplay.stats.total_s - before["total_s"] < turn_s:
            next(games)
        after = _counts(selfplay)
        alone = (alone + network_rate(evaluator, observations, seconds=turn_s / 6)) / 2
        done = {name: after[name] - before[name] for name in after}
        yield Turn(
            done["total_s"],
            int(done["games"]),
            int(done["moves"]),
            int(done["simulations"]),
            int(done["nn_positions"]),
            done["nn_positions"] / done["nn_places"],
            alone,
            resident(),
        )


def resident() -> float:
    """Memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def _counts(selfplay: SelfPlay) -> dict[str, float]:
    return {name: getattr(selfplay.stats, name) for name in type(selfplay.stats).__slots__}


def measure(options: Any) -> list[Figure]:
    """Print the table and return the figures."""
    num_slots, minutes, is_smoke = options.slots, options.minutes, options.smoke
    keep_freed_memory()
    turn_s = 0.3 if is_smoke else 3.0
    turns: list[Turn] = []
    rows: list[tuple[str, ...]] = []
    start = perf_counter()
    for turn in take_turns(num_slots, turn_s):
        turns.append(turn)
        minute = (perf_counter() - start) / 60
        rows.append(
            (
                f"{minute:.1f}",
                f"{turn.games / turn.seconds:.1f}",
                f"{turn.moves / turn.seconds:.0f}",
                f"{turn.simulations / turn.seconds:.0f}",
                f"{turn.rows / turn.seconds:.0f}",
                f"{turn.alone:.0f}",
                f"{turn.share:.3f}",
                f"{turn.fill:.3f}",
                f"{turn.resident:.0f}",
            )
        )
        if minute >= minutes or (is_smoke and len(turns) >= 2):
            break
    shown = rows[:: max(1, len(rows) // 20)]
    print_table(f"Self-play, {num_slots} games at once, 64 simulations for a quarter of the moves", HEADER, shown)
    shares = [turn.share for turn in turns]
    figures = [
        Figure.of(
            f"self-play share of the network, {num_slots} games",
            shares,
            at_least=TARGET_SHARE,
            note="median of turns",
        )
    ]
    if len(turns) >= 12:
        third = len(turns) // 3
        decay = statistics.median(shares[-third:]) / statistics.median(shares[:third])
        figures.append(
            Figure(name="self-play share, last third by first third", value=decay, at_least=0.97, note="medians")
        )
        growth = turns[-1].resident / turns[third].resident
        figures.append(
            Figure(name="self-play memory, end by first third", value=growth, at_most=MAX_GROWTH, note="resident")
        )
    return figures


def main() -> None:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--slots", type=int, default=128, help="games at once")
    parser.add_argument("--minutes", type=float, default=0.7, help="how long to go on; 10 for the proof of steadiness")
    run_command_line(parser, measure)


if __name__ == "__main__":
    main()
