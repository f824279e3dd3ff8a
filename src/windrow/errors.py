"""The exceptions that windrow raises on purpose.

Every class derives from `WindrowError` and from the built-in exception that a Python programmer would expect, so that
`except ValueError` also catches a bad move or a bad setting. A message names what is wrong and says what to do.
"""

from __future__ import annotations

from windrow.distribution import NAME


class WindrowError(Exception):
    """Base class of all errors that windrow raises on purpose."""


class ConfigError(WindrowError, ValueError):
    """A setting has an impossible value."""


class UnknownKeyError(ConfigError, TypeError):
    """A setting of this name does not exist."""


class GameError(WindrowError, ValueError):
    """A game cannot be created from these options, its rules break the protocol, or it was used in a wrong way."""


class IllegalMoveError(GameError):
    """A move, or one of a sequence of moves, is not legal in its position."""


class FinishedGameError(GameError):
    """A search was asked for a position in which the game is over."""


class EvaluatorError(WindrowError, RuntimeError):
    """An evaluator raised an error, or returned arrays that a search cannot use."""


class SearchError(WindrowError, RuntimeError):
    """A search was used in a way that its current state does not allow."""


class TrainingError(WindrowError, RuntimeError):
    """Training cannot continue: the loss is not a finite number, or the data does not fit the network."""


class CheckpointError(WindrowError, RuntimeError):
    """A checkpoint or a game log cannot be written or read; the message names the file and says what to do."""


class ProgramError(WindrowError, RuntimeError):
    """An outside program could not be started, or broke its protocol; the message names it and quotes its stderr."""


class MissingExtraError(WindrowError, ImportError):
    """A feature needs an optional package; the message names the extra and the `pip` command that installs it."""


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of windrow: `pip install "windrow-mcts[ray]"`.

    pip and uv keep the installed windrow, whatever it was installed from, and add the packages of the extra. Nothing is
    compiled again.
    """
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        extras = metadata(NAME).get_all("Provides-Extra", [])
    except PackageNotFoundError:
        extras = []
    if extra not in extras:  # windrow runs from its source and was not installed by pip
        return f'pip install ".[{extra}]" in a checkout of windrow'
    return f'pip install "{NAME}[{extra}]"'


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
