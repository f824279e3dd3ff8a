"""The settings of a run by section, and which of them were changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from windrow.engines import BUILT_IN
from windrow.errors import WindrowError
from windrow.train.config import TrainConfig, config_for, has_config
from windrow.web.run_data import RunData

_WHOLE_RUN = "run"
"""Name of the section of the settings that are in no table."""


def describe_settings(run: RunData) -> dict[str, Any]:
    """The settings by section, those that were changed first.

    Returns:
        changed_from: the settings that they are compared with, in words.
        num_changed: how many of them are other ones.
        sections: each with its name and its rows: name, value and, if it was changed, the value before.
    """
    config, changed_from = _usual(run)
    usual = dict(_flatten(config.to_dict()))
    usual |= {
        name: value for name, value in _flatten(run.settings) if name.partition(".")[0] in ("game", "game_options")
    }
    sections = dict[str, list[list[str | None]]]()
    for name, value in _flatten(run.settings):
        section, dot, rest = name.partition(".")
        before = _spell(usual[name]) if name in usual else "not set"
        row = [rest if dot else name, _spell(value), None if before == _spell(value) else before]
        sections.setdefault(section if dot else _WHOLE_RUN, []).append(row)
    for rows in sections.values():
        rows.sort(key=lambda row: row[2] is None)
    return {
        "changed_from": changed_from,
        "num_changed": sum(row[2] is not None for rows in sections.values() for row in rows),
        "sections": [{"name": name, "rows": rows} for name, rows in sections.items()],
    }


def _usual(run: RunData) -> tuple[TrainConfig, str]:
    """What the settings would be if the user had chosen nothing but the game and the engine; and what that is."""
    engine: Any = run.section("search").get("engine")
    engine = cast("dict[str, Any]", engine).get("name") if isinstance(engine, dict) else engine
    if run.game is not None and has_config(run.game):
        # Only engines that come with windrow: looking for another one would import what the file names.
        overrides = {"search.engine": engine} if isinstance(engine, str) and engine in BUILT_IN else {}
        try:
            return config_for(run.game, overrides), f"the config that windrow ships for {run.game.name}"
        except WindrowError:
            pass  # the engine needs a package that is not installed
    return TrainConfig(), "the defaults"


def _flatten(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flatten(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _spell(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, default=str)
