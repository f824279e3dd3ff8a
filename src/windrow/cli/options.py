"""Options that several commands share, their shell completion, and how they become a config."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from windrow.cli.output import reserve_stdout
from windrow.config import SearchConfig
from windrow.engine_registry import engine_names
from windrow.engines import EngineOptions, option_names
from windrow.errors import UnknownKeyError
from windrow.games.registry import game_names
from windrow.play.players import PLAYER_KINDS
from windrow.play.pretrained import PRETRAINED
from windrow.play.specs import parse_settings
from windrow.settings import Settings, read_file, read_section
from windrow.spelling import explain_unknown


def examples(*lines: str) -> str:
    """The examples at the end of a help text: each command, and below it the comment that follows its #."""
    shown = [
        f"[cyan]{command.rstrip()}[/cyan]" + (f"\n    [dim]# {what.strip()}[/dim]" if what else "")
        for command, _, what in (line.partition("#") for line in lines)
    ]
    return "\n\n".join(["[bold]Examples[/bold]", *shown])


# --- Completion ---------------------------------------------------------------------------------------------------


def complete_game(incomplete: str) -> list[str]:
    """Names of the built-in games."""
    return [name for name in game_names() if name.startswith(incomplete)]


def complete_player(incomplete: str) -> list[str]:
    """Kinds of players, and paths that may hold a checkpoint."""
    kinds = [{"rollout": "rollout:400", "uniform": "uniform:400"}.get(kind, kind) for kind in PLAYER_KINDS]
    return [kind for kind in kinds if kind.startswith(incomplete)] + list(_paths(incomplete))


def complete_evaluator(incomplete: str) -> list[str]:
    """Evaluators with a name, and paths."""
    return [name for name in ("uniform", "rollout", PRETRAINED) if name.startswith(incomplete)] + list(
        _paths(incomplete)
    )


def complete_engine(incomplete: str) -> list[str]:
    """Names of the engines."""
    return [name for name in engine_names() if name.startswith(incomplete)]


def complete_setting(incomplete: str) -> list[str]:
    """Settings of a search."""
    return [f"{key}=" for key in (*SearchConfig.setting_names(), *option_names()) if key.startswith(incomplete)]


def _paths(incomplete: str) -> Iterator[str]:
    folder, _, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder or ("/" if incomplete.startswith("/") else ".")).iterdir())
    except OSError:
        return
    for path in found:
        if (
            path.name.startswith(start)
            and not path.name.startswith(".")
            and (path.is_dir() or path.suffix == ".safetensors")
        ):
            yield f"{folder}/{path.name}" if folder or incomplete.startswith("/") else path.name


# --- Options ------------------------------------------------------------------------------------------------------


def engine_option(note: str = "") -> Any:
    """The option `--engine`. Its help lists the engines, followed by `note`."""
    *names, last = engine_names()
    return typer.Option(
        "--engine",
        help=f"Search engine: {', '.join(names)}, {last}, or your own, [cyan]myengine.py:Greedy[/cyan].{note}",
        autocompletion=complete_engine,
        rich_help_panel="Search",
    )


GameArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="GAME",
        help="The game, such as [cyan]connect4[/cyan]. Options follow a colon: [cyan]gomoku:size=9[/cyan].",
        autocompletion=complete_game,
    ),
]


def _reserve_stdout(is_json: bool) -> bool:
    if is_json:
        reserve_stdout()
    return is_json


JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout.", callback=_reserve_stdout)
]
RunGameOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--game",
        metavar="GAME",
        help="The game of the run, if it is your own, such as [cyan]nim.py:Nim[/cyan].",
        autocompletion=complete_game,
    ),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="Random seed.", min=0)]
SimsOption: TypeAlias = Annotated[
    int | None, typer.Option("--sims", "-n", help="Number of simulations per position.", rich_help_panel="Search")
]
CPuctOption: TypeAlias = Annotated[
    float | None, typer.Option("--c-puct", help="Exploration constant of the search.", rich_help_panel="Search")
]
LeavesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--leaves", help="Leaves of each tree evaluated together (leaves_per_tree).", rich_help_panel="Search"
    ),
]
MaxBatchOption: TypeAlias = Annotated[
    int | None, typer.Option("--max-batch", help="Maximum batch size of a network call.", rich_help_panel="Search")
]
ThreadsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="CPU threads for the network and the trees (default: all cores).",
        min=1,
        rich_help_panel="Search",
    ),
]
WorkersOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--workers", help="Worker processes of the multiprocess engine.", min=1, rich_help_panel="Search"),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other search setting, such as [cyan]first_play=parent[/cyan]; may be repeated.",
        autocompletion=complete_setting,
        rich_help_panel="Search",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read settings from a TOML or JSON file, such as [cyan]windrow tune[/cyan] writes. "
        "Flags and --set override the file.",
        rich_help_panel="Search",
    ),
]
EvaluatorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--evaluator",
        "-e",
        help="[cyan]rollout[/cyan] (random games; [cyan]rollout:8[/cyan] plays eight per position), "
        "[cyan]uniform[/cyan] (no knowledge beyond the rules), [cyan]pretrained[/cyan] (the network that comes with "
        "windrow), [cyan]auto[/cyan] (pretrained where there is one, otherwise rollout), a checkpoint, an ONNX "
        "file, or your own network or function, such as [cyan]mynet.py:Net[/cyan].",
        autocompletion=complete_evaluator,
    ),
]
NetworkEvaluatorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--evaluator",
        "-e",
        help="[cyan]resnet[/cyan] (random weights; [cyan]resnet:32x3[/cyan] has 32 channels and 3 blocks), any "
        "other network such as [cyan]mlp:width=64[/cyan] or [cyan]mynet.py:Net[/cyan], a checkpoint, an ONNX file, "
        "[cyan]rollout[/cyan] or [cyan]uniform[/cyan].",
        autocompletion=complete_evaluator,
    ),
]
NetOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--net",
        help="Network: a checkpoint, or channels x blocks of a new one with random weights.",
        autocompletion=complete_evaluator,
    ),
]
NetworkOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--network",
        metavar="FILE.py:CLASS",
        help="Class of a checkpoint's network, if it is your own, such as [cyan]mynet.py:Net[/cyan]; may be repeated.",
    ),
]
ActorsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--actors",
        help="Inference actors of the ray engine. With 0, every worker runs its own network.",
        min=0,
        rich_help_panel="Ray",
    ),
]
AddressOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Address of the Ray cluster's head. [cyan]auto[/cyan] uses the running cluster or starts one here; "
        "[cyan]local[/cyan] always starts a new one.",
        rich_help_panel="Ray",
    ),
]
BackendOption: TypeAlias = Annotated[
    str,
    typer.Option("--backend", help="Backend that runs the network; auto picks the fastest.", rich_help_panel="Search"),
]


# --- From options to configs --------------------------------------------------------------------------------------


def read_settings(pairs: Iterable[str] | None, *configs: type[Settings], **flags: Any) -> dict[str, Any]:
    """Settings given by `--set` or by their own flags. A flag overrides `--set`.

    Args:
        pairs: texts of the form `key=value`.
        configs: the config classes that the keys may belong to.
        flags: values by setting name; None where a flag was not given.

    Raises:
        UnknownKeyError: none of the configs has this setting.
    """
    settings = parse_settings(pairs or ())
    known = [name for config in configs for name in config.setting_names()]
    if SearchConfig in configs:  # the options of its engine stand beside its own settings
        known += option_names()
    for key in settings:
        if key not in known:
            raise UnknownKeyError(f"--set {key}: no such setting. {explain_unknown(key, known, what='settings')}")
    return {**settings, **{key: value for key, value in flags.items() if value is not None}}


def search_config(
    pairs: Iterable[str] | None,
    defaults: SearchConfig | None = None,
    *,
    num_threads: int | None = None,
    **flags: Any,
) -> SearchConfig:
    """Build a search config from `--set` and flags; everything else keeps its default.

    `num_threads` sets the threads of the trees, if the engine uses any. Other engines give `--threads` to the network
    only.
    """
    config = (defaults or SearchConfig()).with_settings(read_settings(pairs, SearchConfig, **flags))
    if num_threads is None or "num_threads" not in config.options_for(EngineOptions).setting_names():
        return config
    return config.with_settings({"num_threads": num_threads})


def with_file(path: Path | None, defaults: SearchConfig) -> SearchConfig:
    """The defaults, overridden by the file of `--config`."""
    return defaults.replace(**file_settings(path, "search", SearchConfig))


def file_settings(path: Path | None, section: str, config: type[Settings]) -> dict[str, Any]:
    """The settings in one section of a config file; empty without a file."""
    if path is None:
        return {}
    from windrow.train.config import TrainConfig

    for key in read_file(path):  # others have what only training reads
        if key not in (sections := TrainConfig.setting_names()):
            hint = explain_unknown(key, sections, what="sections and settings")
            raise UnknownKeyError(f"{path}: there is no section or setting named {key!r}. {hint}")
    found, known = read_section(path, section), config.setting_names()
    for key in found:
        if key not in known:
            raise UnknownKeyError(f"{path}: in [{section}]: {config.explain_key(key, found)}")
    return found
