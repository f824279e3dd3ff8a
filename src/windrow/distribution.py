"""The name under which windrow is installed, and the version that is installed."""

from __future__ import annotations

NAME = "windrow-mcts"
"""The name on PyPI, where `windrow` belongs to another project. The import name is `windrow`."""


def installed_version() -> str:
    """The version from the installed metadata. Reading it takes longer than `import windrow`."""
    from importlib.metadata import version

    return version(NAME)
