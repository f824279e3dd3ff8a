"""The choice as a file: settings of a search and of self-play, as every command and a `TrainConfig` read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from windrow.errors import ConfigError


def write_config(path: str | Path, sections: Mapping[str, Any], *, comments: Sequence[str] = ()) -> None:
    """Write settings, and tables of them, as TOML or JSON by the file's name; comments only in TOML.

    Raises:
        ConfigError: the name ends in neither, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix == ".json":
        text = json.dumps(sections, indent=2) + "\n"
    elif path.suffix == ".toml":
        text = _to_toml(sections, comments)
    else:
        raise ConfigError(f"{path} cannot be a config: its name must end in .toml or .json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


def _to_toml(sections: Mapping[str, Any], comments: Sequence[str]) -> str:
    lines = [f"# {line}".rstrip() for comment in comments for line in comment.splitlines()]
    if lines:
        lines.append("")
    plain = {key: value for key, value in sections.items() if not isinstance(value, Mapping)}
    tables = {key: cast("Mapping[str, Any]", sections[key]) for key in sections if key not in plain}
    lines += [f"{key} = {_value(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A number, a text or a truth as TOML has it; JSON writes these alike."""
    return json.dumps(value, ensure_ascii=False)
