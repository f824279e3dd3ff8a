"""Times on the command line: `90s`, `3m`, `1.5h`."""

from __future__ import annotations

from windrow.errors import ConfigError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Parse a duration such as `500ms`, `90s`, `3m`, `1.5h` or `2d` into seconds.

    Raises:
        ConfigError: `text` is not a duration, or its unit is missing.
    """
    number = text.strip().lower().rstrip("".join(_UNITS))
    unit = text.strip().lower()[len(number) :]
    try:
        seconds = float(number) * _UNITS.get(unit, 1.0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9 or unit not in ("", *_UNITS):
        raise ConfigError(f"--time {text}: this is not a duration; write 90s, 3m or 1.5h")
    if not seconds:
        raise ConfigError(f"--time {text}: give more than zero, such as 90s, 3m or 1.5h")
    if not unit:
        raise ConfigError(f"--time {text} has no unit: write {text}s, {text}m or {text}h (seconds, minutes, hours)")
    return seconds
