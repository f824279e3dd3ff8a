"""Words in place of code: `rollout:400,c_puct=2`, `connect4:rows=5`, `--set num_simulations=50`.

A spec is a name, and after a colon, with commas between them, settings `key=value` and bare words. Values are read as
Python would write them; whether one is possible is for whoever takes it to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.registry import FAMILIES, GAMES, make_game

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT])i?B?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d[\d_]*")
_NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_WORDS: dict[str, bool | None] = {"true": True, "yes": True, "false": False, "no": False, "none": None}


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec taken apart.

    text: the whole of it, as it was written.
    name: what stands before the colon.
    words: settings without a value, in order.
    settings: the others, with their values read.
    """

    text: str
    name: str
    words: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def parse_spec(text: str) -> Spec:
    """Take a spec apart; a colon within a path does not begin settings."""
    name, colon, tail = text.strip().rpartition(":")
    if not colon or not name or "/" in tail or "\\" in tail or Path(text.strip()).exists():
        return Spec(text, text.strip())
    words: list[str] = []
    settings: dict[str, Any] = {}
    for piece in filter(None, (piece.strip() for piece in tail.split(","))):
        if "=" in piece:
            settings.update(parse_settings([piece]))
        else:
            words.append(piece)
    return Spec(text, name, tuple(words), settings)


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Settings by name from texts `key=value`; dashes in a key are underscores, a later one replaces an earlier one.

    Raises:
        ConfigError: a text is not of that form.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            raise ConfigError(f"a setting is written key=value, such as c_puct=2.5, not {pair!r}")
        settings[key.strip().replace("-", "_")] = parse_value(value.strip())
    return settings


def parse_value(text: str) -> Any:
    """What `text` means: a whole number, a number, a size such as 64MB, true, false, none, or else itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number, form in ((int, _WHOLE), (float, _NUMBER)):
        if form.fullmatch(text):
            return number(text)
    if size := _SIZE.fullmatch(text):
        return int(float(size[1]) * 1024 ** (1 + "KMGT".index(size[2].upper())))
    return text


def parse_game(text: str) -> CoreGame:
    """The game that a spec names, with its options.

    `gomoku`, `connect4:rows=5,columns=6`, `openspiel:hex(board_size=7)`, `nim.py:Nim`, `nim.py:Nim:sticks=15`.
    """
    name, _, rest = text.strip().partition(":")
    if name in FAMILIES or (rest and name not in GAMES and ":" not in rest and "=" not in rest):
        return make_game(text.strip())
    spec = parse_spec(text)
    if spec.words:
        raise ConfigError(f"an option of a game is written name=value, such as gomoku:size=9, not {spec.words[0]!r}")
    return make_game(spec.name, **spec.settings)
