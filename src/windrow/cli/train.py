"""`windrow train`: learns a game from its rules alone."""

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
from windrow.cli.options import (
    ActorsOption,
    AddressOption,
    ConfigOption,
    JsonOption,
    complete_game,
    engine_option,
    file_settings,
)
from windrow.cli.output import counted, print_error, print_facts, print_json, stderr
from windrow.cli.training_display import TrainingDisplay, describe_forecast
from windrow.errors import ConfigError
from windrow.games.registry import game_names, make_game
from windrow.nets.config import KINDS, spell_network
from windrow.play.specs import parse_game, parse_network, parse_settings
from windrow.search.engines import engine_class

NOTHING_LEARNED = 3
"""Exit code of a run that ended without a learning step."""


EXAMPLES = (
    "windrow train connect4 --time 3m # three minutes, with the shipped settings, in runs/connect4",
    "windrow train configs/gomoku.toml --run runs/gomoku --iterations 200",
    "windrow train connect4 --sims 32 --set learner.learning_rate=0.002",
    "windrow train nim.py:Nim --time 2m # your own game, with the default settings",
    "windrow train nim.py:Nim --time 2m --engine multiprocess --workers 4 # your own game, on four cores",
    "windrow train connect4 --network mynet.py:Transformer:layers=2 # your own network",
    "windrow train connect4 --time 2m --engine tensor # search, self-play and learning on the GPU",
    "windrow train connect4 --engine ray --address auto --workers 32 --actors 4 # on a Ray cluster",
    "windrow train connect4 --time 3m --config tuned.toml # with the settings of windrow tune",
    "windrow train --resume runs/connect4 --time 10m # continue a run, also after a kill",
    "windrow train nim.py:Nim --resume runs/nim-py-Nim --time 10m # continue a run of your own game",
    "windrow train tictactoe --time 20s --no-save # try it without saving anything",
)


def train(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="GAME",
            help="A built-in game, your own such as [cyan]nim.py:Nim[/cyan], or a TOML file with settings.",
            autocompletion=complete_game,
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", "-o", help="Folder of the run (default runs/GAME, runs/GAME-2, ...).")
    ] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Continue the run in this folder.")] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", "-i", help="Total number of iterations.", min=0)
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", "-t", help="Total time, such as [cyan]90s[/cyan] or [cyan]3m[/cyan].")
    ] = None,
    games: Annotated[int | None, typer.Option("--games", "-g", help="Games per iteration.", min=1)] = None,
    sims: Annotated[int | None, typer.Option("--sims", "-n", help="Simulations per move.", min=1)] = None,
    slots: Annotated[int | None, typer.Option("--slots", help="Games played at the same time.", min=1)] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            help="Network to train: [cyan]resnet:64x5[/cyan], [cyan]mlp:width=256[/cyan], [cyan]transformer[/cyan], or "
            "your own, [cyan]mynet.py:Net:width=64[/cyan], which --resume needs again.",
        ),
    ] = None,
    channels: Annotated[int | None, typer.Option("--channels", help="Channels of the network.", min=1)] = None,
    blocks: Annotated[int | None, typer.Option("--blocks", help="Residual blocks of the network.", min=0)] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Positions per learning step.", min=1)] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="Backend that runs the network in self-play (default auto).")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="CPU threads for the network (default: all cores).", min=1)
    ] = None,
    engine: Annotated[str | None, engine_option(" It must be able to search many games at once.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Workers of the multiprocess and ray engines.", min=1)
    ] = None,
    actors: ActorsOption = None,
    address: AddressOption = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Random seed.", min=0)] = None,
    deterministic: Annotated[
        bool | None, typer.Option("--deterministic", help="Make the run reproducible to the last bit.")
    ] = None,
    config_file: ConfigOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any setting, such as [cyan]search.c_puct=2[/cyan]; may be repeated."
        ),
    ] = None,
    is_saved: Annotated[bool, typer.Option("--save/--no-save", help="Save the run to its folder.")] = True,
    is_verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print more about the run before it starts.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a network by self-play.

    Each iteration plays games, learns from them and saves a checkpoint. Stop with Ctrl-C. [cyan]--resume[/cyan]
    continues from the last checkpoint and keeps all finished games, even after a kill. To
    resume a run of your own game, name the game again: windrow imports no code that only a run's files name.
    """
    if config is None and resume is None:
        raise ConfigError("name a game or a config to start a run, or continue one with --resume RUN")
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
                raise ConfigError("--no-save writes no run: remove --run and --resume")
            run = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        training, plan = _open(config, run, resume, overrides, network)
        stack.callback(training.close)
        if engine_class(training.config.search).capabilities.is_compiled:
            stack.enter_context(quiet_compiler())
        if training.is_over and not as_json:
            stderr().print(f"this run is finished; to continue it: {_more(training)}", markup=False)
        header = [] if plan is None else plan.describe(is_verbose=is_verbose)
        display = TrainingDisplay(training, header, is_quiet=as_json, is_verbose=is_verbose, is_saved=is_saved)
        try:
            with display:
                for report in training.iterations(display.on_event):
                    display.on_iteration(report)
        finally:
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
    """Search and self-play settings from the file of `--config`; the rest of a run has its own config."""
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
    """Open the run. A new run with a time limit also gets a forecast."""
    from windrow.train import TrainConfig, TrainingRun, config_for

    is_file = config is not None and config.endswith((".toml", ".json"))
    if resume is not None:
        if run is not None and run != resume:
            raise ConfigError("--resume already names the folder of the run: remove --run")
        if is_file:
            raise ConfigError(
                f"a resumed run has its own config: remove {config}, and change settings with flags or --set"
            )
        game = None if config is None else parse_game(config)
        return TrainingRun.resume(resume, overrides, game=game, network=network), None
    assert config is not None
    if network is not None:
        overrides = {"network": parse_network(network).to_dict(), **overrides}
    made = TrainConfig.read(config, overrides) if is_file else config_for(parse_game(config), overrides)
    if made.num_iterations is None and made.time_limit_s is None:
        stderr().print("neither --time nor --iterations is given: the run continues until Ctrl-C", style="dim")
    plan = _plan(made, overrides, is_file=is_file)
    made = made if plan is None else plan.config
    return TrainingRun.create(run or free_folder(Path("runs") / _folder_name(made.game)), made), plan


@dataclass(frozen=True)
class _Plan:
    """A config that fits its time limit, the settings changed for that, and the forecast."""

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
            lines.append("changed to fit the time: " + ", ".join(changed))
        if is_verbose:
            figures = {name: value for name, value in asdict(self.measured).items() if isinstance(value, float)}
            lines.append("measured: " + ", ".join(f"{name} {value:.3g}" for name, value in figures.items()))
        return lines


def _plan(config: Any, overrides: dict[str, Any], *, is_file: bool) -> _Plan | None:
    """Measure, and choose the settings that the user left open."""
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
    """A folder name for games such as `nim.py:Nim` and `openspiel:hex(board_size=7)`."""
    return re.sub(r"[^A-Za-z0-9=]+", "-", game.rpartition("/")[2]).strip("-")


def free_folder(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3` and so on that does not exist."""
    folder, number = wanted, 2
    while folder.exists():
        folder, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
    return folder


def _more(training: Any) -> str:
    """The command that continues a run; for a run that has reached its limit, with a later limit."""
    from windrow.train.config import spell_game

    # A game that does not come with windrow is named again: nothing that a run's files name is imported.
    game, config = training.game, training.config
    named = [] if game.name in game_names() else [spell_game(game.name, game.options)]
    own = [] if config.network.kind in KINDS else [f"--network {spell_network(config.network)}"]
    command = " ".join(["windrow train", *named, f"--resume {training.folder}", *own])
    for name, value in config.search.engine.foreign_code().items():
        command += f" --set search.engine.{name}={value}"
    if not training.is_over:
        return command
    if config.num_iterations is not None and training.counters.iteration >= config.num_iterations:
        return f"{command} --iterations {2 * training.counters.iteration or 10}"
    return f"{command} --time {2 * config.time_limit_s:g}s"


def describe(summary: dict[str, Any], training: Any) -> dict[str, str]:
    """The summary at the end of a run."""
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
            from windrow.train.config import spell_game

            game = spell_game(training.game.name, training.game.options)
            run, network = summary["run"], training.config.network
            named = "" if training.game.name in game_names() else f" --game {game}"
            own = "" if network.kind in KINDS else f" --network {spell_network(network)}"
            facts["play"] = f"windrow play {game} --checkpoint {run}{own}"
            facts["watch"] = f"windrow watch {run}{named}"
            facts["report"] = f"windrow report {run}{named}"
            if (num_others := training.game.num_players - 1) > 0:
                facts["compare"] = f"windrow match {game} {run}{' rollout:400' * num_others}{own}"
        facts["resume"] = _more(training)
    return facts


def _explain_no_steps(training: Any) -> str:
    """Why a run has learned nothing and what to do about it, as the diagnosis says it."""
    from windrow.train.diagnosis.evidence import Evidence
    from windrow.train.diagnosis.learning import no_steps
    from windrow.train.metrics import read_metrics

    found = no_steps(Evidence(training.config, read_metrics(training.folder), True))
    return (
        "no learning step was taken: the run has no iterations"
        if found is None
        else f"{found.evidence}\n{found.remedy}"
    )
