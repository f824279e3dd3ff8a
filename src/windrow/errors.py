"""Every error windrow raises on purpose.

All derive from `WindrowError`, and each also from the built-in a Python programmer would expect, so that
`except ValueError` around a bad move or a bad setting works too. Messages name the thing and say what to do.
"""

from __future__ import annotations

from windrow.distribution import NAME


class WindrowError(Exception):
    """Base of all errors raised on purpose by windrow."""


class ConfigError(WindrowError, ValueError):
    """A setting has an impossible value."""


class UnknownKeyError(ConfigError, TypeError):
    """A setting with that name does not exist."""


class GameError(WindrowError, ValueError):
    """A game, its options or its rules cannot be used as asked."""


class IllegalMoveError(GameError):
    """A move, or a string of moves, is not legal where it was tried."""


class FinishedGameError(GameError):
    """A search was asked for a position in which the game is over."""


class EvaluatorError(WindrowError, RuntimeError):
    """An evaluator returned something a search cannot use, or raised."""


class SearchError(WindrowError, RuntimeError):
    """A search was used in a way its present state does not allow."""


class TrainingError(WindrowError, RuntimeError):
    """Training cannot go on: the loss is not a number, or what was given does not fit the network."""


class CheckpointError(WindrowError, RuntimeError):
    """A checkpoint or a log of games cannot be written or read; the message names the file and what to do."""


class MissingExtraError(WindrowError, ImportError):
    """A feature needs an optional package; the message names the extra, and what `pip` has to install for it."""


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of windrow brings: `pip install "windrow-mcts[ray]"`.

    pip and uv keep the windrow that is installed, wherever it came from, and add the packages of the extra: nothing is
    compiled again.
    """
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        extras = metadata(NAME).get_all("Provides-Extra", [])
    except PackageNotFoundError:
        extras = []
    if extra not in extras:  # run from its source, without being installed by pip
        return f'pip install ".[{extra}]" in a checkout of windrow'
    return f'pip install "{NAME}[{extra}]"'
