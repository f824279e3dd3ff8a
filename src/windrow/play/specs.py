"""Specs: descriptions of players, games and networks as text, such as `rollout:400,c_puct=2` or `connect4:rows=5`.

A spec is a name, followed by a colon and by settings `key=value` or bare words, separated by commas. Values are written
as in Python. Parsing a spec does not check its values; the class that takes a setting does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.registry import FAMILIES, GAMES, make_game
from windrow.nets.config import KINDS, NetworkConfig, as_network

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT])i?B?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d[\d_]*")
_NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_RESNET_SIZE = re.compile(r"(\d+)x(\d+)")
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_WORDS: dict[str, bool | None] = {"true": True, "yes": True, "false": False, "no": False, "none": None}


@dataclass(frozen=True, slots=True)
class Spec:
    """The parts of a spec.

    text: the whole spec, as it was written.
    name: the text before the colon.
    words: settings without a value, in order.
    settings: settings with a value, by key.
    """

    text: str
    name: str
    words: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def parse_spec(text: str) -> Spec:
    """Split a spec into its parts; a colon within a path does not begin settings."""
    name, colon, tail = _split(text.strip())
    if not colon or not name:
        return Spec(text, text.strip())
    words: list[str] = []
    settings: dict[str, Any] = {}
    for piece in filter(None, (piece.strip() for piece in tail.split(","))):
        if "=" in piece:
            settings.update(parse_settings([piece]))
        else:
            words.append(piece)
    return Spec(text, name, tuple(words), settings)


def _split(text: str) -> tuple[str, str, str]:
    """Split a spec into its name, its colon and its settings; ("", "", text) if it has no settings."""
    if Path(text).exists():
        return "", "", text
    for colon in re.finditer(":", text):  # the settings of a checkpoint may contain colons: network=mynet.py:Net
        name = text[: colon.start()]
        if not name.endswith(".py") and Path(name).exists():
            return name, ":", text[colon.end() :]
    name, colon, tail = text.rpartition(":")
    return ("", "", text) if "/" in tail or "\\" in tail else (name, colon, tail)


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse texts `key=value` into settings by name. Dashes in keys become underscores; later settings win.

    Raises:
        ConfigError: a text does not have this form.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            raise ConfigError(f"write a setting as key=value, such as c_puct=2.5, not {pair!r}")
        settings[key.strip().replace("-", "_")] = parse_value(value.strip())
    return settings


def parse_value(text: str) -> Any:
    """Parse a value: an integer, a float, a size such as 64MB in bytes, true, false or none; else the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number, form in ((int, _WHOLE), (float, _NUMBER)):
        if form.fullmatch(text):
            return number(text)
    if size := _SIZE.fullmatch(text):
        return int(float(size[1]) * 1024 ** (1 + "KMGT".index(size[2].upper())))
    return text


def parse_game(text: str) -> CoreGame:
    """Make the game that a spec describes.

    Examples: `gomoku`, `connect4:rows=5,columns=6`, `openspiel:hex(board_size=7)`, `nim.py:Nim`,
    `nim.py:Nim:sticks=15`.
    """
    name, _, rest = text.strip().partition(":")
    if name in FAMILIES or (rest and name not in GAMES and ":" not in rest and "=" not in rest):
        return make_game(text.strip())
    spec = parse_spec(text)
    if spec.words:
        raise ConfigError(f"write an option of a game as name=value, such as gomoku:size=9, not {spec.words[0]!r}")
    return make_game(spec.name, **spec.settings)


def parse_network(network: object) -> NetworkConfig:
    """Make the config of a network from a spec, a table of settings, a class or a config. No network code is imported.

    Examples: `resnet:64x5`, `resnet:channels=64`, `mlp:width=256,layers=2`, `transformer`, `mynet.py:Net`,
    `mynet.py:Net:width=64`.
    """
    if not isinstance(network, str):
        return as_network(network)
    name, _, rest = network.strip().partition(":")
    if name not in KINDS and ":" not in rest and "=" not in rest:
        return as_network({"kind": network.strip()})
    spec = parse_spec(network)
    settings = dict(spec.settings)
    for word in spec.words:
        size = _RESNET_SIZE.fullmatch(word) if spec.name == "resnet" else None
        if size is None:
            example = "resnet:64x5 or resnet:channels=64" if spec.name == "resnet" else "mlp:width=256"
            raise ConfigError(f"write a setting of a network as name=value, such as {example}, not {word!r}")
        settings |= {"channels": int(size[1]), "blocks": int(size[2])}
    return as_network({"kind": spec.name, **settings})


def parse_networks(networks: object) -> list[NetworkConfig]:
    """Apply `parse_network` to one network or to each of several; None gives an empty list."""
    if networks is None:
        return []
    if isinstance(networks, Sequence) and not isinstance(networks, str):
        return [parse_network(one) for one in cast("Sequence[object]", networks)]
    return [parse_network(networks)]
