"""Every error windrow raises on purpose.

All derive from `WindrowError`, and each also from the built-in a Python programmer would expect, so that
`except ValueError` around a bad move or a bad setting works too. Messages name the thing and say what to do.
"""

from __future__ import annotations

import re
import sys


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


_REQUIREMENT = re.compile(
    r"""(?P<what>[^;]+?)\s*;\s*(python_version < ["'](?P<below>[\d.]+)["'] and )?extra == ["'](?P<extra>\w+)["']"""
)


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of windrow brings: `pip install "ray>=2.30" (windrow's extra "ray")`.

    The packages are named, and windrow is not: by that name PyPI has another project, and who has a wheel has no
    checkout to install from.
    """
    packages = _packages_of(extra)
    if not packages:  # run from its source, without being installed
        return f'pip install ".[{extra}]" in a checkout of windrow'
    return f'pip install {" ".join(packages)} (windrow\'s extra "{extra}")'


def _packages_of(extra: str) -> list[str]:
    """What an extra asks for, each in quotation marks, those of the extras in it included; nothing if not known."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("windrow") or []
    except PackageNotFoundError:
        return []
    packages: list[str] = []
    for line in lines:
        found = _REQUIREMENT.fullmatch(line)
        if found is None or found["extra"] != extra:
            continue
        if found["below"] and tuple(map(int, found["below"].split("."))) <= sys.version_info[:2]:
            continue
        others = re.fullmatch(r"windrow\[(.+)\]", found["what"])
        packages += (
            [package for name in others[1].split(",") for package in _packages_of(name)]
            if others
            else [f'"{found["what"]}"']
        )
    return packages
