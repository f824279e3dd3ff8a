"""Train one network per game with the shipped settings, for the studies that compare players.

    python bench/networks.py runs/networks connect4=1m othello=2m30s gomoku:size=9=2m backgammon=8m azul=8m

Each run is a folder like any other: runs/networks/othello. A run that is there goes on: the time is its total. Runs
of games that have a version in torch ops train on the GPU if there is one, one after the other; all others train side
by side, with the cores divided among them and the network on the GPU if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from windrow.cli.duration import parse_duration
from windrow.cores import num_cores
from windrow.play.specs import parse_game, parse_settings
from windrow.tensor.games import GAMES
from windrow.train import TrainingRun, config_for

ON_THE_HOST: dict[str, Any] = {
    "selfplay.num_slots": 1024,
    "games_per_iteration": 1024,
    "learner.batch_size": 1024,
    "replay.max_positions": 1_000_000,
}
"""Settings for games in C++ whose network is on a GPU: batches that a GPU is worth."""
SHOWN = ("games", "games_per_s", "moves_per_s", "policy_loss", "value_loss", "solved_policy")
"""Metrics printed after each iteration."""


@dataclass(frozen=True, slots=True)
class Job:
    """One game and its time."""

    text: str  # as on the command line
    game: str
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Job:
        """Read GAME[:options]=TIME."""
        game, _, duration = text.rpartition("=")
        if not game:
            raise SystemExit(f"{text!r}: write GAME=TIME, for example othello=2m")
        return cls(text, game, parse_duration(duration))

    @property
    def is_on_the_device(self) -> bool:
        """Whether the game has a version in torch ops."""
        return self.game.partition(":")[0] in GAMES


def main() -> int:
    """Read the command line, start the runs, wait for them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the runs")
    parser.add_argument("jobs", nargs="+", metavar="GAME=TIME")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in this process, one after the other
    parser.add_argument("--threads", type=int, help="cores for each run on the host")
    options = parser.parse_args()
    jobs = [Job.parse(text) for text in options.jobs]
    if options.here:
        for job in jobs:
            train(options.folder, job, parse_settings(options.settings), options.threads)
        return 0
    has_gpu = torch.cuda.is_available()
    device = [job for job in jobs if has_gpu and job.is_on_the_device]
    groups = [device] if device else []
    groups += [[job] for job in jobs if job not in device]
    threads = options.threads or max(1, (num_cores() - len(device)) // max(1, len(groups) - bool(device)))
    children: list[subprocess.Popen[bytes]] = []
    for group in groups:
        command = [sys.executable, __file__, str(options.folder), *(job.text for job in group), "--here"]
        command += [f"--set={setting}" for setting in options.settings] + [f"--threads={threads}"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        children.append(subprocess.Popen(command, env=environment))
    return max(child.wait() for child in children)


def train(folder: Path, job: Job, settings: dict[str, Any], threads: int | None) -> None:
    """Train one network to its time, and print what it took."""
    game = parse_game(job.game)
    place = folder / game.name
    has_gpu = torch.cuda.is_available()
    overrides = {"time_limit_s": job.seconds, **settings}
    if has_gpu and job.is_on_the_device:
        overrides = {"search.engine": "tensor", **overrides}
    elif has_gpu:
        engine = {"search.engine.name": "vectorized", "search.engine.num_threads": threads}
        overrides = {**ON_THE_HOST, **engine, **overrides}
    else:
        overrides = {"num_threads": threads, **overrides}
    if (place / "config.json").exists():
        run = TrainingRun.resume(place, overrides)
    else:
        run = TrainingRun.create(place, config_for(game, overrides))
    for report in run.iterations():
        found = {key: round(report.metrics[key], 3) for key in SHOWN if key in report.metrics}
        print(f"{job.game} {report.metrics['total_s']:6.0f} s {found}", flush=True)
    print(f"{job.game}: {json.dumps(run.summary())}", flush=True)
    run.close()


if __name__ == "__main__":
    sys.exit(main())
