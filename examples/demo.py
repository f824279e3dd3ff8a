"""The main job in a few minutes: learn Connect-4 from nothing but its rules, and say how strong the player became.

    python examples/demo.py                     three minutes on two cores (make demo)
    python examples/demo.py --time 30s          a taste
    python examples/demo.py --run runs/mine     another folder

Ctrl-C ends the training early; the summary comes all the same. Everything here is windrow's public Python.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from windrow import SearchConfig, WindrowError
from windrow.cli.output import print_facts, print_table, progress_bar
from windrow.cli.train import free_folder, parse_duration
from windrow.cli.training_display import TrainingDisplay
from windrow.play import SearchPlayer, make_player, play_match, score_player, solved_positions
from windrow.train import TrainConfig, TrainingRun, shipped_config

SIMULATIONS = 100
"""Of the player that is tested."""
YARDSTICK = "rollout:1000"
OPPONENT = "rollout:400"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, test, print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", default="3m", help="how long to train: 30s, 3m")
    parser.add_argument("--run", type=Path, help="folder of the run (runs/demo, or runs/demo-2, ...)")
    parser.add_argument("--games", type=int, default=100, help=f"games against {OPPONENT}; 0 for none")
    options = parser.parse_args(arguments)
    try:
        return demonstrate(options)
    except WindrowError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2


def demonstrate(options: argparse.Namespace) -> int:
    """The whole demonstration."""
    config = TrainConfig.read(shipped_config("connect4"), {"time_limit_s": parse_duration(options.time)})
    run = TrainingRun.create(options.run or free_folder(Path("runs/demo")), config)
    before, was_interrupted = None, False
    try:
        before = score(run, "untrained")
        train(run)
    except KeyboardInterrupt:
        was_interrupted = True
    print()
    print_facts(facts_of(run))
    print()
    try:
        show_strength(run, before, options.games)
    except KeyboardInterrupt:
        was_interrupted = True
    run.close()
    print(f"\nPlay against it:   windrow play connect4 {run.folder}")
    print(f"Train it further:  windrow train --resume {run.folder} --time 10m")
    return 130 if was_interrupted else 0


def train(run: TrainingRun) -> None:
    """Until the time is up."""
    with TrainingDisplay(run) as display:
        for report in run.iterations(display.on_event):
            display.on_iteration(report)


def facts_of(run: TrainingRun) -> dict[str, str]:
    """What the training did."""
    summary = run.summary()
    alone = network_rate(run)
    rate = summary["nn_positions_per_s"]
    return {
        "games played": f"{summary['games']:,} in {summary['iterations']} iterations",
        "time": f"{summary['selfplay_s']:.0f} s of self-play; {summary['learn_s']:.0f} s of learning beside it, "
        f"{summary['steps']:,} steps",
        "simulations": f"{summary['simulations_per_s']:,.0f} a second",
        "network": f"{rate:,.0f} positions a second in self-play, {rate / alone:.0%} of what it does alone "
        f"({alone:,.0f} on {summary['backend']})",
    }


def network_rate(run: TrainingRun) -> float:
    """Positions per second of the network alone, at the batch size of self-play."""
    state = run.game.initial_state()
    observations = np.stack([run.game.observe(state)] * run.config.selfplay.num_slots)
    run.strategy.evaluator.evaluate(observations)
    start, num_batches = perf_counter(), 0
    while perf_counter() - start < 1.0:
        run.strategy.evaluator.evaluate(observations)
        num_batches += 1
    return num_batches * len(observations) / (perf_counter() - start)


def score(run: TrainingRun, name: str) -> Any:
    """How often the present network with a search keeps what a solved position is worth."""
    player = SearchPlayer(run.game, run.strategy.evaluator, SearchConfig(num_simulations=SIMULATIONS), name=name)
    return ask_solver(run, player)


def ask_solver(run: TrainingRun, player: Any) -> Any:
    """The same for any player."""
    positions = solved_positions(run.game)
    with progress_bar(f"{player.name} on {len(positions)} solved positions", len(positions)) as bar:
        return score_player(player, positions, progress=bar.update)


def in_words(share: Any) -> str:
    """A share with its standard error."""
    return f"{share.share:.1%} ± {share.standard_error:.1%}"


def show_strength(run: TrainingRun, before: Any, num_games: int) -> None:
    """What the solver says of it, and a match."""
    after = score(run, "trained")
    yardstick = ask_solver(run, make_player(run.game, YARDSTICK))
    results = {
        f"before, {SIMULATIONS} simulations": before,
        f"after, {SIMULATIONS} simulations": after,
        YARDSTICK: yardstick,
    }
    rows = [
        (name, *(in_words(phase) for phase in result.phases.values()), in_words(result.overall))
        for name, result in results.items()
        if result is not None
    ]
    header = ("Moves that keep the result", *(f"stones {phase}" for phase in after.phases), "all")
    print_table(header, rows)
    if not num_games:
        return
    player = SearchPlayer(run.game, run.strategy.evaluator, SearchConfig(num_simulations=SIMULATIONS), name="trained")
    opponent = make_player(run.game, OPPONENT, seed=1)
    with progress_bar(f"against {OPPONENT}", num_games) as bar:
        result = play_match(
            run.game,
            player,
            opponent,
            num_games=num_games,
            stop_when_sure=False,
            on_progress=lambda progress: bar.update(progress.num_finished),
        )
    print(
        f"\nAgainst {OPPONENT}: {result.wins} won, {result.draws} drawn, {result.losses} lost of {len(result.games)}: "
        f"{result.score:.1%}, {result.elo:+.0f} ± {result.elo_error:.0f} Elo"
    )


if __name__ == "__main__":
    sys.exit(main())
