"""The base class of all configs, which refuses unknown settings and impossible values, and the readers of files."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from windrow.errors import ConfigError, UnknownKeyError
from windrow.files import read_regular
from windrow.spelling import explain_unknown

S = TypeVar("S", bound="Settings")

_FILES = {".toml", ".json"}


def read_file(path: str | Path) -> dict[str, Any]:
    """Read the settings in a TOML or JSON file, as nested dictionaries.

    Raises:
        ConfigError: the file cannot be read, or holds no settings.
    """
    path = Path(path)
    if path.suffix not in _FILES:
        raise ConfigError(f"{path} is not a config file: its name must end in .toml or .json")
    try:
        text = read_regular(path).decode()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file") from None
    try:
        settings: Any = json.loads(text) if path.suffix == ".json" else _toml().loads(text)
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} cannot be read: it is nested too deeply") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} must hold a table of settings, not {settings!r:.100}")
    return cast("dict[str, Any]", settings)


def read_section(path: str | Path, name: str) -> dict[str, Any]:
    """Read one table of a TOML or JSON file; it is empty if the file does not have it.

    Raises:
        ConfigError: the file cannot be read, or the entry is not a table.
    """
    section = read_file(path).get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: [{name}] must be a table of settings, not {section!r:.100}")
    return cast("dict[str, Any]", section)


def _toml() -> Any:
    try:
        return import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10
        return import_module("tomli")


class Settings:
    """Base class of a config: a dataclass `(frozen, kw_only, slots, repr=False)` that checks itself when it is made."""

    __slots__ = ()

    def __new__(cls: type[S], *args: Any, **settings: Any) -> S:
        """Refuse unknown keys with a hint; the dataclass does the rest."""
        known = cls.setting_names()
        for key in settings:
            if key not in known:
                raise UnknownKeyError(cls.explain_key(key, settings))
        return object.__new__(cls)

    @classmethod
    def explain_key(cls, key: str, settings: Mapping[str, Any]) -> str:
        """Explain why a key among `settings` is unknown, and suggest a known one."""
        return f"there is no setting {key!r}. {explain_unknown(key, cls.setting_names(), what='settings')}"

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Return the names of all settings, in order."""
        return tuple(field.name for field in dataclasses.fields(cls))  # pyright: ignore[reportArgumentType]

    def replace(self: S, **changes: Any) -> S:
        """Return a copy with some settings changed."""
        return type(self)(**{**self.values(), **changes})

    def values(self) -> dict[str, Any]:
        """Return all settings by name."""
        return {name: getattr(self, name) for name in self.setting_names()}

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as plain values by name; `type(config)(**config.to_dict())` gives an equal config."""
        return {
            name: value.to_dict() if isinstance(value, Settings) else value for name, value in self.values().items()
        }

    def __repr__(self) -> str:
        """The call that makes an equal config, with the settings that differ from their defaults."""
        default = type(self)().values()
        changed = [f"{name}={value!r}" for name, value in self.values().items() if value != default[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check_choice(self, key: str, choices: Any) -> None:
        value, known = getattr(self, key), get_args(choices)
        if value not in known:
            raise ConfigError(f"{key} cannot be {value!r}. {explain_unknown(str(value), known, what='choices')}")

    def _check_integer(self, key: str, low: int, high: int, *, is_optional: bool = False) -> None:
        if (value := getattr(self, key)) is None and is_optional:
            return
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ConfigError(f"{key} must be a whole number, not {value!r}")
        if not low <= (number := int(value)) <= high:
            raise ConfigError(f"{key} must be from {low} to {high}, not {value}")
        object.__setattr__(self, key, number)  # a NumPy number becomes a Python number

    def _check_number(self, key: str, low: float, high: float, *, is_optional: bool = False, hint: str = "") -> None:
        if (value := getattr(self, key)) is None and is_optional:
            return
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(number := _to_float(value)):
            raise ConfigError(f"{key} must be a number{hint}, not {value!r:.100}")
        if not low <= number <= high:
            raise ConfigError(f"{key} must be from {low:g} to {high:g}{hint}, not {value!r}")
        object.__setattr__(self, key, number)

    def _check_flag(self, key: str) -> None:
        if not isinstance(value := getattr(self, key), bool):
            raise ConfigError(f"{key} must be true or false, not {value!r}")


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number that is larger than any float
        return math.inf
