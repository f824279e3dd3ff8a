"""Options that several commands share, what completes them, and how they become a config."""

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
from windrow.play.specs import parse_settings
from windrow.settings import Settings, read_file, read_section
from windrow.spelling import explain_unknown


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, each with what it does behind a #."""
    shown = [
        f"  [cyan]{command.rstrip()}[/cyan]" + (f"  [dim]# {what.strip()}[/dim]" if what else "")
        for command, _, what in (line.partition("#") for line in lines)
    ]
    return "\n\n".join(["[bold]Examples[/bold]", *shown])


# --- Completion ---------------------------------------------------------------------------------------------------


def complete_game(incomplete: str) -> list[str]:
    """Names of games."""
    return [name for name in game_names() if name.startswith(incomplete)]


def complete_player(incomplete: str) -> list[str]:
    """Kinds of players, and paths in which a checkpoint may be."""
    kinds = [{"rollout": "rollout:400", "uniform": "uniform:400"}.get(kind, kind) for kind in PLAYER_KINDS]
    return [kind for kind in kinds if kind.startswith(incomplete)] + list(_paths(incomplete))


def complete_evaluator(incomplete: str) -> list[str]:
    """Evaluators without a network, and paths."""
    return [name for name in ("uniform", "rollout") if name.startswith(incomplete)] + list(_paths(incomplete))


def complete_engine(incomplete: str) -> list[str]:
    """Names of engines."""
    return [name for name in engine_names() if name.startswith(incomplete)]


def complete_setting(incomplete: str) -> list[str]:
    """Keys of a search config."""
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
    """The option `--engine`; its help lists the engines, and the note after them."""
    *names, last = engine_names()
    return typer.Option(
        "--engine",
        help=f"{', '.join(names)} or {last}{note}. Your own: [cyan]myengine.py:Greedy[/cyan].",
        autocompletion=complete_engine,
        rich_help_panel="Search",
    )


GameArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="GAME",
        help="A game, with its options after a colon: [cyan]connect4[/cyan], [cyan]gomoku:size=9[/cyan].",
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
        help="The game of the run, if it does not come with windrow: such as [cyan]nim.py:Nim[/cyan].",
        autocompletion=complete_game,
    ),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="Key of all random numbers.", min=0)]
SimsOption: TypeAlias = Annotated[
    int | None, typer.Option("--sims", "-n", help="Simulations per position.", rich_help_panel="Search")
]
CPuctOption: TypeAlias = Annotated[
    float | None, typer.Option("--c-puct", help="Exploration constant.", rich_help_panel="Search")
]
LeavesOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--leaves", help="Leaves of one tree in flight at once (leaves_per_tree).", rich_help_panel="Search"),
]
MaxBatchOption: TypeAlias = Annotated[
    int | None, typer.Option("--max-batch", help="Most rows in one network call.", rich_help_panel="Search")
]
ThreadsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads", help="Threads of the network and of the trees; all cores.", min=1, rich_help_panel="Search"
    ),
]
WorkersOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--workers", help="Processes of the multiprocess engine.", min=1, rich_help_panel="Search"),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other setting of a search, such as [cyan]first_play=parent[/cyan]; may be repeated.",
        autocompletion=complete_setting,
        rich_help_panel="Search",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings from a TOML or JSON file, such as [cyan]windrow tune[/cyan] writes; "
        "flags and --set override the file.",
        rich_help_panel="Search",
    ),
]
EvaluatorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--evaluator",
        "-e",
        help="[cyan]rollout[/cyan] (random games; [cyan]rollout:8[/cyan] plays eight per position), "
        "[cyan]uniform[/cyan] (knows only the rules), a checkpoint, an ONNX file, or a network or function of your "
        "own, [cyan]mynet.py:Net[/cyan].",
        autocompletion=complete_evaluator,
    ),
]
NetworkEvaluatorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--evaluator",
        "-e",
        help="[cyan]resnet[/cyan] (random weights; [cyan]resnet:32x3[/cyan] has 32 channels and 3 blocks), another "
        "network such as [cyan]mlp:width=64[/cyan] or [cyan]mynet.py:Net[/cyan], [cyan]rollout[/cyan], "
        "[cyan]uniform[/cyan], a checkpoint or an ONNX file.",
        autocompletion=complete_evaluator,
    ),
]
NetOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--net",
        help="The network: channels x blocks of a new one, such as [cyan]64x5[/cyan], or the path of a checkpoint.",
        autocompletion=complete_evaluator,
    ),
]
NetworkOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--network",
        metavar="FILE.py:CLASS",
        help="The class of a checkpoint's network, if it is your own: such as [cyan]mynet.py:Net[/cyan]; "
        "may be repeated.",
    ),
]
BackendOption: TypeAlias = Annotated[
    str, typer.Option("--backend", help='What runs a network; "auto" takes the fastest.', rich_help_panel="Search")
]


# --- From options to configs --------------------------------------------------------------------------------------


def read_settings(pairs: Iterable[str] | None, *configs: type[Settings], **flags: Any) -> dict[str, Any]:
    """The settings of `--set` and of flags of their own, those that were given; a flag overrides `--set`.

    Args:
        pairs: texts `key=value`.
        configs: the configs the keys may belong to.
        flags: by the setting's name; None where the flag was not given.

    Raises:
        UnknownKeyError: none of the configs has such a setting.
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
    """A search config from `--set` and flags; what neither says is the default.

    `num_threads` is for the trees, if the engine grows them on threads: others leave `--threads` to the network.
    """
    config = (defaults or SearchConfig()).with_settings(read_settings(pairs, SearchConfig, **flags))
    if num_threads is None or "num_threads" not in config.options_for(EngineOptions).setting_names():
        return config
    return config.with_settings({"num_threads": num_threads})


def with_file(path: Path | None, defaults: SearchConfig) -> SearchConfig:
    """Defaults, and what the file of `--config` says instead."""
    return defaults.replace(**file_settings(path, "search", SearchConfig))


def file_settings(path: Path | None, section: str, config: type[Settings]) -> dict[str, Any]:
    """What a config file says about one of its sections; nothing without a file."""
    if path is None:
        return {}
    from windrow.train.config import TrainConfig

    for key in read_file(path):  # others have what only training reads
        if key not in (sections := TrainConfig.setting_names()):
            hint = explain_unknown(key, sections, what="sections and settings")
            raise UnknownKeyError(f"{path}: there is no section or setting {key!r}. {hint}")
    found, known = read_section(path, section), config.setting_names()
    for key in found:
        if key not in known:
            raise UnknownKeyError(f"{path}: in [{section}]: {config.explain_key(key, found)}")
    return found
