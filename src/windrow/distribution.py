"""The distribution's name and its installed version."""

from __future__ import annotations

NAME = "windrow-mcts"
"""Name of the distribution on PyPI, where `windrow` belongs to another project. The import name is `windrow`."""


def installed_version() -> str:
    """Return the version in the installed metadata. Reading it takes longer than `import windrow`."""
    from importlib.metadata import version

    return version(NAME)
