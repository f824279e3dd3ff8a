"""Imports of packages that would otherwise send reports home.

OpenVINO reports every import of itself, and NNCF what it is used for, over the network and from a forked process. A
library must not do that to those who use it; and a fork in a program with threads, such as JAX's, may hang.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

_SWITCHES = {"CI": "true", "NNCF_CI": "1"}
"""What the packages take for a machine that tests software, where they send nothing."""


def import_discreetly(name: str) -> Any:
    """The module; while it is imported, its package believes that nobody is there to report on."""
    before = {switch: os.environ.get(switch) for switch in _SWITCHES}
    os.environ.update(_SWITCHES)
    try:
        return import_module(name)
    finally:
        for switch, value in before.items():
            if value is None:
                del os.environ[switch]
            else:
                os.environ[switch] = value
