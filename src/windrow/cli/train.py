"""`windrow train`: learn a game from nothing but its rules."""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.compiler import quiet_compiler
from windrow.cli.duration import parse_duration
from windrow.cli.options import ConfigOption, JsonOption, complete_game, engine_option, examples, file_settings
from windrow.cli.output import counted, print_error, print_facts, print_json, stderr
from windrow.cli.ray_options import ActorsOption, AddressOption
from windrow.cli.training_display import TrainingDisplay, describe_forecast
from windrow.errors import ConfigError
from windrow.games.registry import game_names, make_game
from windrow.nets.config import KINDS, spell_network
from windrow.play.specs import parse_game, parse_network, parse_settings
from windrow.search.engines import engine_class

NOTHING_LEARNED = 3
"""Exit code of a run that came to its end without a learning step."""


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
    engine: Annotated[str | None, engine_option("; one that can search the positions of many games at once")] = None,
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
    is_verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more before it begins.")] = False,
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
        training, plan = _open(config, run, resume, overrides, network)
        stack.callback(training.close)
        if engine_class(training.config.search).capabilities.is_compiled:
            stack.enter_context(quiet_compiler())
        if training.is_over and not as_json:
            stderr().print(f"this run is at its end; to go on: {_more(training)}", markup=False)
        header = [] if plan is None else plan.describe(is_verbose=is_verbose)
        with TrainingDisplay(training, header, is_quiet=as_json, is_verbose=is_verbose, is_saved=is_saved) as display:
            try:
                for report in training.iterations(display.on_event):
                    display.on_iteration(report)
            finally:
                display.finish()
                summary = training.summary()
                if not is_saved:
                    summary.pop("run")
                if as_json:
                    print_json(summary if plan is None else {**summary, "forecast": asdict(plan.expected)})
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
) -> tuple[Any, _Plan | None]:
    """The run, and of a new one with a time limit what to expect of it."""
    from windrow.train import TrainConfig, TrainingRun, config_for

    is_file = config is not None and config.endswith((".toml", ".json"))
    if resume is not None:
        if run is not None and run != resume:
            raise ConfigError("--resume names the folder of the run: leave --run out")
        if is_file:
            raise ConfigError(f"a run has its own config: leave {config} out, and change settings by flags or --set")
        game = None if config is None else parse_game(config)
        return TrainingRun.resume(resume, overrides, game=game, network=network), None
    assert config is not None
    if network is not None:
        overrides = {"network": parse_network(network).to_dict(), **overrides}
    made = TrainConfig.read(config, overrides) if is_file else config_for(parse_game(config), overrides)
    if made.num_iterations is None and made.time_limit_s is None:
        stderr().print("no --time and no --iterations: this goes on until Ctrl-C", style="dim")
    plan = _plan(made, overrides, is_file=is_file)
    made = made if plan is None else plan.config
    return TrainingRun.create(run or free_folder(Path("runs") / _folder_name(made.game)), made), plan


@dataclass(frozen=True)
class _Plan:
    """A config that fits into its time, what was changed for that, and what to expect of it."""

    before: Any
    config: Any
    changes: dict[str, Any]
    measured: Any
    expected: Any
    is_own: bool

    def describe(self, *, is_verbose: bool) -> list[str]:
        from windrow.train.fit import setting

        num_changed = 0 if is_verbose or self.is_own else len(self.changes)
        lines = describe_forecast(self.expected, self.measured, self.config, num_changed=num_changed)
        if self.changes and is_verbose:
            changed = [f"{name} {setting(self.before, name)} -> {value}" for name, value in self.changes.items()]
            lines.append("for this time: " + ", ".join(changed))
        if is_verbose:
            figures = {name: value for name, value in asdict(self.measured).items() if isinstance(value, float)}
            lines.append("measured: " + ", ".join(f"{name} {value:.3g}" for name, value in figures.items()))
        return lines


def _plan(config: Any, overrides: dict[str, Any], *, is_file: bool) -> _Plan | None:
    """Measure, and choose what the user has left open; None without a time limit, or if it cannot be measured here."""
    if not config.time_limit_s:
        return None
    from windrow.train.config import TrainConfig, has_config, merge
    from windrow.train.fit import choose, forecast, shorten
    from windrow.train.measurement import can_measure, measure

    if not can_measure(config):
        return None
    game = make_game(config.game, **config.game_options)
    is_own = not is_file and not has_config(game)
    with stderr().status("measuring the game, the network and this machine"):
        measured = measure(game, config, seconds=min(max(config.time_limit_s / 30, 0.5), 2.5))
    changes = {} if is_file else (choose if is_own else shorten)(measured, config, given=overrides)
    made = TrainConfig.from_dict(merge(config.to_dict(), changes))
    return _Plan(config, made, changes, measured, forecast(measured, made), is_own)


def _folder_name(game: str) -> str:
    """`nim.py:Nim` and `openspiel:hex(board_size=7)` as names of folders."""
    return re.sub(r"[^A-Za-z0-9=]+", "-", game.rpartition("/")[2]).strip("-")


def free_folder(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3` and so on that is not there."""
    folder, number = wanted, 2
    while folder.exists():
        folder, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
    return folder


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
        return f"{command} --iterations {2 * training.counters.iteration or 10}"
    return f"{command} --time {2 * config.time_limit_s:g}s"


def _spell(game: Any) -> str:
    """The game as a command takes it: its name, and the options that are not as they are by default."""
    usual: dict[str, Any] = dict(make_game(game.name).options) if game.name in game_names() else {}
    options = [f"{name}={value}" for name, value in game.options.items() if usual.get(name) != value]
    return f"{game.name}:{','.join(options)}" if options else game.name


def describe(summary: dict[str, Any], training: Any) -> dict[str, str]:
    """The end of a run in words."""
    facts = {
        "games": f"{summary['games']:,} in {counted(summary['iterations'], 'iteration')}",
        "self-play": f"{summary['selfplay_s']:.0f} s, {summary['simulations_per_s']:,.0f} simulations/s",
        "network": f"{summary['nn_positions_per_s']:,.0f} positions/s on {summary['backend']}",
        "learning": f"{summary['learn_s']:.0f} s, {counted(summary['steps'], 'step')}",
    }
    if summary.get("loss") is not None:
        facts["loss"] = (
            f"{summary['loss']:.3f} (policy {summary['policy_loss']:.3f}, value {summary['value_loss']:.3f})"
        )
    if summary.get("solved_policy") is not None:
        facts["strength"] = f"{summary['solved_policy']:.1%} of solved positions right without a search"
    if summary.get("elo_error"):  # the first rated checkpoint has the rating 0 and no error
        rating = f"{summary['elo']:+.0f} ± {summary['elo_error']:.0f} Elo"
        facts["rating"] = f"{rating} after iteration {summary['elo_iteration']:.0f}; the first rated one is 0"
    if "run" in summary:
        facts["run"] = str(summary["run"])
        if summary["steps"]:
            game, run, network = _spell(training.game), summary["run"], training.config.network
            named = "" if training.game.name in game_names() else f" --game {game}"
            own = "" if network.kind in KINDS else f" --network {spell_network(network)}"
            facts["play"] = f"windrow play {game} --checkpoint {run}{own}"
            facts["look"] = f"windrow watch {run}{named}"
            facts["keep"] = f"windrow report {run}{named}"
            if (num_others := training.game.num_players - 1) > 0:
                facts["compare"] = f"windrow match {game} {run}{' rollout:400' * num_others}{own}"
        facts["go on"] = _more(training)
    return facts


def _explain_no_steps(training: Any) -> str:
    """Why a run has learned nothing and what to do about it, in the words of the diagnosis."""
    from windrow.train.diagnosis.evidence import Evidence
    from windrow.train.diagnosis.learning import no_steps
    from windrow.train.metrics import read_metrics

    found = no_steps(Evidence(training.config, read_metrics(training.folder), True))
    return (
        "no learning step was taken: the run has no iterations"
        if found is None
        else f"{found.evidence}\n{found.remedy}"
    )
