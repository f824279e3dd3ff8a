"""`windrow games`: lists the built-in games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from windrow.cli.options import JsonOption
from windrow.cli.output import print_json, print_table
from windrow.games.registry import game_names, make_game

EXAMPLES = (
    "windrow games",
    "windrow games --json # JSON, for scripts",
    "windrow search gomoku:size=9 # a game with an option changed",
)


def games(as_json: JsonOption = False) -> None:
    """List the built-in games and their options."""
    described = [_describe(name) for name in game_names()]
    if as_json:
        print_json({"games": described})
        return
    rows = [
        (
            game["name"],
            ", ".join(f"{option}={value}" for option, value in game["options"].items()) or "-",
            str(game["num_players"]),
            game["chance"],
            f"{game['num_actions']}, {game['moves'][0]} to {game['moves'][1]}",
            _shapes(game["observation"]),
            str(game["num_symmetries"]),
        )
        for game in described
    ]
    print_table(("game", "<options", "players", "<chance", "<actions", "<observation", "symmetries"), rows)


def _shapes(observation: Any) -> str:
    """One shape, or several named shapes."""
    if isinstance(observation, dict):
        return ", ".join(f"{part} {_shapes(shape)}" for part, shape in cast("dict[str, Any]", observation).items())
    return "x".join(str(size) for size in observation)


def _describe(name: str) -> dict[str, Any]:
    game = make_game(name)
    names = sorted((game.action_name(action) for action in range(game.num_actions)), key=lambda text: (len(text), text))
    shapes = game.observation
    return {
        "name": name,
        "options": dict(game.options),
        "num_actions": game.num_actions,
        "num_players": game.num_players,
        "chance": game.chance,
        "moves": [names[0], names[-1]],
        "observation": {part: list(shape) for part, shape in shapes.items()}
        if isinstance(shapes, Mapping)
        else list(shapes),
        "num_symmetries": game.native.num_symmetries,
    }
