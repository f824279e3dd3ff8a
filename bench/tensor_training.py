"""Connect-4 from random weights with everything on the device: right moves against seconds of training.

The positions are those of `windrow.play.solved`. Tests with a search stand outside the training clock, as does
compilation; the quick tests of the bare network are part of it. Runs on a CPU too, slowly.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from report import Figure, command_line, run_command_line

from windrow import make_game
from windrow.play.specs import parse_settings
from windrow.train import TrainingRun, config_for

SHOWN = {
    "num_simulations": "{:.0f} sims",
    "games": "{:.0f} games",
    "moves_per_s": "{:,.0f} positions/s",
    "samples_per_s": "{:,.0f} samples/s",
    "selfplay_s": "play {:.1f} s",
    "learn_s": "learn {:.1f} s",
    "policy_loss": "policy {:.3f}",
    "value_loss": "value {:.3f}",
    "policy_entropy": "entropy {:.3f}",
    "game_length": "length {:.1f}",
    "solved_policy": "bare {:.3%}",
}


def train(arguments: argparse.Namespace) -> list[Figure]:
    """Train, print the curve, keep it in the folder."""
    begin = time.perf_counter()
    overrides = {"search.engine": "tensor", **parse_settings(arguments.settings), "time_limit_s": arguments.seconds}
    training = TrainingRun.create(arguments.run, config_for(make_game("connect4"), overrides))
    strategy = training.strategy
    print(strategy.choice, f"made in {time.perf_counter() - begin:.1f} s", flush=True)
    for name in ("copy", "selfplay", "solved", "learner"):
        start = time.perf_counter()
        getattr(strategy, name).prepare()
        print(f"{name} prepared in {time.perf_counter() - start:.1f} s", flush=True)
    assert strategy.solved is not None
    next_test = arguments.test_every
    curve: list[dict[str, Any]] = []
    for report in training.iterations():
        found = report.metrics
        shown = [text.format(found[name]) for name, text in SHOWN.items() if name in found]
        print(f"{found['total_s']:6.1f} s  {', '.join(shown)}", flush=True)
        if found["total_s"] >= next_test or training.is_over:
            next_test = found["total_s"] + arguments.test_every
            searched, bare = (strategy.solved.score(count) for count in (arguments.test_simulations, 0))
            point = {"seconds": found["total_s"], "searched": searched.to_dict(), "bare": bare.to_dict()}
            curve.append(point)
            (arguments.run / "curve.json").write_text(json.dumps(curve, indent=1))
            count = arguments.test_simulations
            by_phase = ", ".join(f"{name} {share.share:.1%}" for name, share in searched.phases.items())
            print(
                f"== {found['total_s']:.1f} s: {searched.overall.share:.2%} right with {count} simulations "
                f"({by_phase}), {bare.overall.share:.2%} bare, {time.perf_counter() - begin:.0f} s since the start",
                flush=True,
            )
    print(searched.table(), bare.table(), sep="\n")
    print(json.dumps(training.summary()))
    if torch.cuda.is_available():
        print(f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB at most")
    training.close()
    last = curve[-1]
    seconds = f"{last['seconds']:.0f} s of training"
    return [
        right_moves(f"right moves with {arguments.test_simulations} simulations", last["searched"], 0.99, seconds),
        right_moves("right moves, bare policy", last["bare"], 0.96, seconds),
    ]


def right_moves(name: str, found: dict[str, Any], target: float, seconds: str) -> Figure:
    """A share of the solved positions, with the error of their number."""
    note = f"one run, {seconds}, {found['positions']} positions"
    error = found["standard_error"]
    return Figure(name=name, value=found["share"], standard_error=error, at_least=target, note=note)


def measure(arguments: argparse.Namespace) -> list[Figure]:
    """Train in the folder that was named, or in one that is deleted."""
    if arguments.smoke:
        arguments.seconds, arguments.test_simulations = 5.0, 8
    with tempfile.TemporaryDirectory() as folder:
        arguments.run = arguments.run or Path(folder) / "run"
        return train(arguments)


def main() -> None:
    """Read the command line, train, print."""
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="keep the run there")
    parser.add_argument("--test-every", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--test-simulations", type=int, default=400)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    run_command_line(parser, measure)


if __name__ == "__main__":
    main()
