"""The choice as a file: settings of a search and of self-play, as every command and a `TrainConfig` read them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from windrow.errors import ConfigError


def check_config_path(path: str | Path) -> None:
    """See that a config can be written there, before anything is measured for it.

    Raises:
        ConfigError: the name ends in neither .toml nor .json, or nothing can be written there.
    """
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise ConfigError(f"{path} cannot be a config: its name must end in .toml or .json")
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK) or (there != path and not there.is_dir()) or path.is_dir():
        raise ConfigError(f"cannot write {path}: {there} is in the way, or may not be written to")


def write_config(path: str | Path, sections: Mapping[str, Any], *, comments: Sequence[str] = ()) -> None:
    """Write settings, and tables of them, as TOML or JSON by the file's name; comments only in TOML.

    Raises:
        ConfigError: the name ends in neither, or the file cannot be written.
    """
    path = Path(path)
    check_config_path(path)
    text = json.dumps(sections, indent=2) + "\n" if path.suffix == ".json" else _to_toml(sections, comments)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


def _to_toml(sections: Mapping[str, Any], comments: Sequence[str]) -> str:
    lines = [f"# {line}".rstrip() for comment in comments for line in comment.splitlines()]
    if lines:
        lines.append("")
    return "\n".join([*lines, *_table(sections, "")]) + "\n"


def _table(settings: Mapping[str, Any], name: str) -> Iterator[str]:
    """The lines of a table: its own settings first, then the tables in it."""
    if name:
        yield ""
        yield f"[{name}]"
    for key, value in settings.items():
        if not isinstance(value, Mapping):
            yield f"{key} = {_value(value)}"
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _table(cast("Mapping[str, Any]", value), f"{name}.{key}" if name else key)


def _value(value: Any) -> str:
    """A number, a text or a truth as TOML has it; JSON writes these alike."""
    return json.dumps(value, ensure_ascii=False)
