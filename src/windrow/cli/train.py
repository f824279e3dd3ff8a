"""`windrow train`: learn a game from nothing but its rules."""

from __future__ import annotations

import math
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.compiler import quiet_compiler
from windrow.cli.options import ConfigOption, JsonOption, complete_game, examples, file_settings
from windrow.cli.output import print_error, print_facts, print_json, stderr
from windrow.cli.ray_options import ActorsOption, AddressOption
from windrow.cli.training_display import TrainingDisplay
from windrow.errors import ConfigError
from windrow.games.registry import game_names, make_game
from windrow.nets.config import KINDS, spell_network
from windrow.play.specs import parse_game, parse_network, parse_settings
from windrow.search.engines import engine_class

NOTHING_LEARNED = 3
"""Exit code of a run that came to its end without a learning step."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "windrow train connect4 --time 3m # the shipped config; the run goes to runs/connect4",
            "windrow train configs/gomoku.toml --run runs/gomoku --iterations 200",
            "windrow train connect4 --sims 32 --set search.root=puct --set learner.learning_rate=0.002",
            "windrow train nim.py:Nim --time 2m # a class of your own, with the standard settings",
            "windrow train nim.py:Nim --time 2m --engine multiprocess --workers 4 # the same on four cores",
            "windrow train connect4 --time 3m --network mynet.py:Transformer:layers=2 # a network of your own",
            "windrow train connect4 --time 2m --engine tensor # all of it on the GPU",
            "windrow train connect4 --time 1h --engine ray --address auto --workers 32 --actors 4 # on a Ray cluster",
            "windrow train connect4 --time 3m --config tuned.toml # run as windrow tune found best",
            "windrow train --resume runs/connect4 --time 10m # goes on where it was, killed or not",
            "windrow train nim.py:Nim --resume runs/nim-py-Nim --time 10m # the same for a class of your own",
            "windrow train tictactoe --time 20s --no-save # try it, and keep nothing",
        )
    )(train)


def train(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="GAME",
            help="A game, yours such as [cyan]nim.py:Nim[/cyan], or a TOML file.",
            autocompletion=complete_game,
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", "-o", help="Folder of the run (runs/GAME, or runs/GAME-2, ...).")
    ] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Go on with the run in this folder.")] = None,
    iterations: Annotated[int | None, typer.Option("--iterations", "-i", help="Iterations in all.", min=0)] = None,
    time: Annotated[
        str | None, typer.Option("--time", "-t", help="Time in all, such as [cyan]90s[/cyan], [cyan]3m[/cyan].")
    ] = None,
    games: Annotated[int | None, typer.Option("--games", "-g", help="Games per iteration.", min=1)] = None,
    sims: Annotated[int | None, typer.Option("--sims", "-n", help="Simulations per move.", min=1)] = None,
    slots: Annotated[int | None, typer.Option("--slots", help="Games played at once.", min=1)] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            help="What learns: [cyan]resnet:64x5[/cyan], [cyan]mlp:width=256[/cyan], [cyan]transformer[/cyan], or your "
            "own, [cyan]mynet.py:Net:width=64[/cyan]. --resume needs it again only for your own.",
        ),
    ] = None,
    channels: Annotated[int | None, typer.Option("--channels", help="Width of the network.", min=1)] = None,
    blocks: Annotated[int | None, typer.Option("--blocks", help="Residual blocks of the network.", min=0)] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Positions per step.", min=1)] = None,
    backend: Annotated[str | None, typer.Option("--backend", help="What evaluates in self-play (auto).")] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads of the network.", min=1)] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="What plays: vectorized, multiprocess for a game in Python, tensor on a GPU, ray on a cluster.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Workers of the multiprocess and ray engines.", min=1)
    ] = None,
    actors: ActorsOption = None,
    address: AddressOption = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Key of all random numbers.", min=0)] = None,
    deterministic: Annotated[
        bool | None, typer.Option("--deterministic", help="The same weights to the last bit, every time.")
    ] = None,
    config_file: ConfigOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as [cyan]search.c_puct=2[/cyan]."),
    ] = None,
    is_saved: Annotated[bool, typer.Option("--save/--no-save", help="Keep the run.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Train a network by self-play: play, learn, save a checkpoint, again and again.

    Stop it with Ctrl-C, or kill it: `--resume` goes on from the last checkpoint, with the games that have ended. For a
    game of your own, name the game again: windrow imports no code that the files of a run name.
    """
    if config is None and resume is None:
        raise ConfigError("name a game or a config to begin, or --resume a run to go on")
    flags = {
        "num_iterations": iterations,
        "time_limit_s": None if time is None else parse_duration(time),
        "games_per_iteration": games,
        "search.num_simulations": sims,
        "selfplay.num_slots": slots,
        "network.channels": channels,
        "network.blocks": blocks,
        "learner.batch_size": batch_size,
        "backend": backend,
        "num_threads": threads,
        "search.engine": engine,
        "search.engine.num_workers": workers,
        "search.engine.num_actors": actors,
        "search.engine.address": address,
        "seed": seed,
        "deterministic": deterministic,
    }
    given = {key: value for key, value in flags.items() if value is not None}
    overrides: dict[str, Any] = {**_of_file(config_file), **parse_settings(settings or ()), **given}
    with ExitStack() as stack:
        if not is_saved:
            if run is not None or resume is not None:
                raise ConfigError("--no-save keeps nothing: leave --run and --resume out")
            run = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        training = _open(config, run, resume, overrides, network)
        stack.callback(training.close)
        if engine_class(training.config.search).capabilities.is_compiled:
            stack.enter_context(quiet_compiler())
        if training.is_over and not as_json:
            stderr().print(f"this run is at its end; to go on: {_more(training)}", markup=False)
        with TrainingDisplay(training, is_quiet=as_json) as display:
            try:
                for report in training.iterations(display.on_event):
                    display.on_iteration(report)
            finally:
                display.finish()
                summary = training.summary()
                if not is_saved:
                    summary.pop("run")
                if as_json:
                    print_json(summary)
                else:
                    print_facts(describe(summary, training))
        if not summary["steps"]:
            print_error(_explain_no_steps(training))
            raise typer.Exit(NOTHING_LEARNED)


def _of_file(path: Path | None) -> dict[str, Any]:
    """How to search and play, as the file of `--config` says; the rest of a run is for its own config."""
    from windrow.config import SearchConfig
    from windrow.train.selfplay_config import SelfPlayConfig

    kinds = {"search": SearchConfig, "selfplay": SelfPlayConfig}
    return {
        f"{section}.{key}": value
        for section, kind in kinds.items()
        for key, value in file_settings(path, section, kind).items()
    }


def _open(
    config: str | None, run: Path | None, resume: Path | None, overrides: dict[str, Any], network: str | None
) -> Any:
    from windrow.train import TrainConfig, TrainingRun, config_for

    is_file = config is not None and config.endswith((".toml", ".json"))
    if resume is not None:
        if run is not None and run != resume:
            raise ConfigError("--resume names the folder of the run: leave --run out")
        if is_file:
            raise ConfigError(f"a run has its own config: leave {config} out, and change settings by flags or --set")
        game = None if config is None else parse_game(config)
        return TrainingRun.resume(resume, overrides, game=game, network=network)
    assert config is not None
    if network is not None:
        overrides = {"network": parse_network(network).to_dict(), **overrides}
    made = TrainConfig.read(config, overrides) if is_file else config_for(parse_game(config), overrides)
    if made.num_iterations is None and made.time_limit_s is None:
        stderr().print("no --time and no --iterations: this goes on until Ctrl-C", style="dim")
    return TrainingRun.create(run or free_folder(Path("runs") / _folder_name(made.game)), made)


def _folder_name(game: str) -> str:
    """`nim.py:Nim` and `openspiel:hex(board_size=7)` as names of folders."""
    return re.sub(r"[^A-Za-z0-9=]+", "-", game.rpartition("/")[2]).strip("-")


def free_folder(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3` and so on that is not there."""
    folder, number = wanted, 2
    while folder.exists():
        folder, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
    return folder


def parse_duration(text: str) -> float:
    """Seconds from `90s`, `3m`, `1.5h` or `2d`."""
    unit = _UNITS.get(text[-1:].lower())
    try:
        seconds = float(text if unit is None else text[:-1]) * (unit or 1.0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise ConfigError(f"--time {text}: a time is written like 90s, 3m or 1.5h")
    if unit is None:
        raise ConfigError(f"--time {text} has no unit: write {text}s, {text}m or {text}h (seconds, minutes, hours)")
    return seconds


def _more(training: Any) -> str:
    """The command that goes on with a run: where it has come to its limit, with a later one."""
    # A game that does not come with windrow is named again: nothing that a run's files name is imported.
    game, config = training.game, training.config
    named = [] if game.name in game_names() else [_spell(game)]
    own = [] if config.network.kind in KINDS else [f"--network {spell_network(config.network)}"]
    command = " ".join(["windrow train", *named, f"--resume {training.folder}", *own])
    for name, value in config.search.engine.foreign_code().items():
        command += f" --set search.engine.{name}={value}"
    if not training.is_over:
        return command
    if config.num_iterations is not None and training.counters.iteration >= config.num_iterations:
        return f"{command} --iterations {2 * training.counters.iteration}"
    return f"{command} --time {2 * config.time_limit_s:g}s"


def _spell(game: Any) -> str:
    """The game as a command takes it: its name, and the options that are not as they are by default."""
    usual: dict[str, Any] = dict(make_game(game.name).options) if game.name in game_names() else {}
    options = [f"{name}={value}" for name, value in game.options.items() if usual.get(name) != value]
    return f"{game.name}:{','.join(options)}" if options else game.name


def describe(summary: dict[str, Any], training: Any) -> dict[str, str]:
    """The end of a run in words."""
    facts = {
        "games": f"{summary['games']:,} in {summary['iterations']} iterations",
        "self-play": f"{summary['selfplay_s']:.0f} s, {summary['simulations_per_s']:,.0f} simulations/s",
        "network": f"{summary['nn_positions_per_s']:,.0f} positions/s on {summary['backend']}",
        "learning": f"{summary['learn_s']:.0f} s, {summary['steps']:,} steps",
    }
    if summary.get("loss") is not None:
        facts["loss"] = (
            f"{summary['loss']:.3f} (policy {summary['policy_loss']:.3f}, value {summary['value_loss']:.3f})"
        )
    if summary.get("solved_policy") is not None:
        facts["strength"] = f"{summary['solved_policy']:.1%} of solved positions right without a search"
    if "run" in summary:
        facts["run"] = str(summary["run"])
        facts["go on"] = _more(training)
        if summary["steps"]:
            kind = training.config.network.kind
            own = "" if kind in KINDS else f" --network {spell_network(training.config.network)}"
            facts["play"] = f"windrow play {_spell(training.game)} {summary['run']}{own}"
    return facts


def _explain_no_steps(training: Any) -> str:
    """Why a run has learned nothing, and what to do about it."""
    config, counters = training.config, training.counters
    positions, batch_size = counters.positions, config.learner.batch_size
    owed = positions * config.samples_per_position
    more = [f"--iterations {2 * max(counters.iteration, 1)}"] if config.num_iterations is not None else []
    if config.time_limit_s is not None:
        # As long as ten times what it takes to record the positions that learning begins with.
        factor = min(max(10 * config.min_positions / max(positions, 1), 2.0), 20.0)
        more = [f"--time {math.ceil(factor * config.time_limit_s / 60)}m"]
    if not counters.games:
        reason = "not one game had ended when the run did"
        slots, sims = config.selfplay.num_slots, config.search.num_simulations
        more += [f"--slots {max(1, slots // 8)}", f"--sims {max(2, sims // 4)}"]
    elif not owed:
        reason, more = "samples_per_position is 0", ["--set samples_per_position=4"]
    elif positions < config.min_positions:
        reason = (
            f"the run ended with {positions:,} recorded positions, and learning begins with {config.min_positions:,}"
        )
        more += [f"--set min_positions={max(1, positions // 2)}"]
    elif owed < batch_size:
        reason = (
            f"{positions:,} recorded positions allow {owed:,.0f} samples (samples_per_position), less than a batch of "
            f"{batch_size:,}"
        )
        more += [f"--batch-size {max(1, int(owed) // 8)}"]
    else:
        reason = "the run ended in its first iteration, and the games of one are learned from during the next"
    return f"0 learning steps: {reason}.\nThe network is as it was at the beginning. Try {' or '.join(more)}"
