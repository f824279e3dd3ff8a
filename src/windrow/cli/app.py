"""The command line as a whole: its commands, error messages, exit codes and hints for foreign flags."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from windrow.cli.foreign import explain_option
from windrow.cli.options import examples
from windrow.cli.output import print_error, print_warning
from windrow.distribution import installed_version
from windrow.errors import WindrowError
from windrow.games import targets

COMMANDS = (
    *("games", "check", "search", "play", "match", "ladder", "evaluate", "train", "selfplay", "doctor"),
    *("report", "watch", "protocol", "bench", "profile", "tune", "info"),
)
"""Modules of this package, in the order of the help. Each has a function of its name and `EXAMPLES`, or a `group`."""

INTERRUPTED = 130

_TYPES: dict[Any, str] = {int: "N", list[int]: "N", float: "X", str: "TEXT", list[str]: "TEXT", Path: "PATH"}
"""How a help shows the value of an option, by type."""

# Typer brings Click along in some versions and depends on it in others; this names the same class in both.
_UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])
_NAMES_OF_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class WindrowGroup(TyperGroup):
    """The whole command line. An error in any command becomes one clear line and an exit code."""

    def main(self, args: Sequence[str] | None = None, *other: Any, standalone_mode: bool = True, **more: Any) -> Any:
        """Run a command and exit with its code (in standalone mode, the usual one)."""
        if not standalone_mode:
            return super().main(args, *other, standalone_mode=False, **more)
        _shorten_types(self)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _print_warning
                code: Any = super().main(args, *other, standalone_mode=False, **more)
            sys.stdout.flush()
        except _UsageError as error:
            code = _explain_usage(error)
        except WindrowError as error:
            print_error(str(error))
            code = 1
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except BrokenPipeError:
            # Whoever read the output has enough. What is left in the buffer must not complain when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except Exception as error:
            if not _was_imported(error):
                raise
            print_error(f"the game's file cannot be imported:\n{_describe_import(error)}")
            code = 1
        if code == INTERRUPTED:
            print_error("interrupted")
        sys.exit(code if isinstance(code, int) else 0)


def _shorten_types(command: Any) -> None:
    """Show N for a number and nothing for a flag in every help, where Typer writes <int range> and <bool>."""
    for inner in getattr(command, "commands", {}).values():
        _shorten_types(inner)
    # Typer makes the option of --help when it is asked for, and keeps it.
    helping = command.get_help_option(typer.Context(command, **_NAMES_OF_HELP))
    for parameter in (*command.params, *filter(None, (helping,))):
        if parameter.metavar is None and parameter.param_type_name == "option":
            of = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)  # newer Typer only
            parameter.metavar = "" if parameter.is_flag else _TYPES.get(of)


def _was_imported(error: Exception) -> bool:
    """Whether a game's own file raised this error while it was imported."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return targets.__file__ in frames and (isinstance(error, SyntaxError) or "<frozen importlib._bootstrap>" in frames)


def _describe_import(error: Exception) -> str:
    """The traceback as Python prints it, starting at the imported file's own lines."""
    inside, is_past = error.__traceback__, False
    while inside is not None:
        name = inside.tb_frame.f_code.co_filename
        is_past = is_past or name == targets.__file__
        if is_past and name != targets.__file__ and "importlib" not in name:
            break
        inside = inside.tb_next
    return "".join(traceback.format_exception(type(error), error, inside, chain=False)).rstrip()


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_warning(str(message))


def _explain_usage(error: Any) -> int:
    """Print what is wrong with the arguments and what was probably meant; return the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":  # the help is on the screen already
        return 2
    context = error.ctx
    path = "windrow" if context is None else context.command_path
    option = getattr(error, "option_name", None)
    hint = None
    if option is not None and context is not None and type(error).__name__ == "NoSuchOption":
        hint = explain_option(option, [name for parameter in context.command.params for name in parameter.opts], path)
    print_error(hint or error.format_message())
    print(f"Try '{path} --help' for help.", file=sys.stderr)
    return 2


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"windrow {installed_version()}")
        raise typer.Exit


app = typer.Typer(
    name="windrow",
    cls=WindrowGroup,
    help="Neural Monte-Carlo tree search for your own games and networks.",
    rich_markup_mode="rich",
    context_settings=_NAMES_OF_HELP,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _windrow(  # pyright: ignore[reportUnusedFunction]
    context: typer.Context,
    is_version_wanted: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None and (text := context.get_help()):
        print(text)  # with rich it is printed already


def _unwrap_help(group: typer.Typer) -> None:
    """Join every paragraph of the commands' docstrings into one line, so that the help wraps to the terminal."""
    for command in group.registered_commands:
        paragraphs = (command.help or inspect.getdoc(command.callback) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _unwrap_help(inner.typer_instance)


for _command in COMMANDS:
    _module: Any = import_module(f"windrow.cli.{_command}")
    if hasattr(_module, "group"):
        app.add_typer(_module.group, name=_command)
    else:
        app.command(_command, epilog=examples(*_module.EXAMPLES))(getattr(_module, _command))
_unwrap_help(app)
