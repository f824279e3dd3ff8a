"""The trained networks that come with windrow: one per game, with the record of its training beside it.

    networks/othello/model.safetensors      the weights, as in a checkpoint: game, options and settings in the header
    networks/othello/card.json              how it was trained (time, machine, games, command), and how strong it is

`bench/ship_network.py` writes both from a run. The games are told apart by their rules: a network for Gomoku on 9x9
plays no other size.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.registry import make_game

PRETRAINED = "pretrained"
"""The name of these networks, as a player and as an evaluator."""
CARD, MODEL = "card.json", "model.safetensors"
FOLDER = Path(__file__).parent / "networks"

LEVELS: dict[int, dict[str, Any]] = {
    1: {"num_simulations": 0, "temperature": 1.0, "temperature_plies": 10_000},
    2: {"num_simulations": 0},
    3: {"num_simulations": 16},
    4: {"num_simulations": 100},
    5: {"num_simulations": 800},
}
"""Settings of a player by level, from a beginner to full strength. Level 1 draws its moves from the network's policy,
level 2 plays the most probable one; the others search."""


class Pretrained(NamedTuple):
    """A network that comes with windrow."""

    game: CoreGame
    """The game with the rules that it was trained on."""
    path: Path
    """The file of the weights, which loads like any checkpoint."""
    card: dict[str, Any]
    """How it was trained and how strong it is."""


@cache
def pretrained_networks() -> tuple[Pretrained, ...]:
    """All of them, by name of the game."""
    found: list[Pretrained] = []
    for file in sorted(FOLDER.glob(f"*/{CARD}")):
        card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        game = make_game(card["game"], **card["game_options"])
        found.append(Pretrained(game, file.with_name(MODEL), card))
    return tuple(found)


def find_pretrained(game: CoreGame) -> Pretrained | None:
    """The network for a game with these rules; None if windrow has none."""
    return next((network for network in pretrained_networks() if network.game == game), None)


def require_pretrained(game: CoreGame) -> Pretrained:
    """The network for a game.

    Raises:
        ConfigError: windrow has none for these rules; the message names the games that have one.
    """
    found = find_pretrained(game)
    if found is None:
        known = ", ".join(repr(network.game) for network in pretrained_networks())
        raise ConfigError(
            f"windrow has no trained network for {game!r}, only for {known}. Train one with windrow train {game.name}"
        )
    return found


def default_for(game: CoreGame, other: str) -> str:
    """`pretrained` if the game has a network and PyTorch is installed to run it, and `other` if not."""
    is_usable = all(importlib.util.find_spec(package) for package in ("torch", "safetensors"))
    return PRETRAINED if is_usable and find_pretrained(game) else other
