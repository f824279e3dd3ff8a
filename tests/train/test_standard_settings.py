"""The standard settings: every kind of game trains with them, and a board game in Python is learned within minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_cases import finish

from windrow import TERMINAL, make_game
from windrow.games import CoreGame
from windrow.play import play_match
from windrow.testing import check_game
from windrow.train import TrainingRun, config_for

ROOT = Path(__file__).parents[2]
HEX = f"{ROOT / 'examples' / 'games' / 'hex.py'}:Hex"
TOYS = ROOT / "tests" / "search" / "toy_games.py"
GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "board": (HEX, {"size": 5}),
    "one move": (HEX, {"size": 1}),
    "fewer moves than an opening": (HEX, {"size": 2}),
    "flat": (f"{ROOT / 'tests' / 'tensor' / 'nim_sibling.py'}:Nim", {}),
    "three players": (f"{TOYS}:TakeAway", {"heap": 12}),
    "chance": (f"{TOYS}:PlainPig", {"target": 25}),
    "one player": (f"{TOYS}:Reroll", {}),
}


def own_game(kind: str) -> CoreGame:
    name, options = GAMES[kind]
    return make_game(name, **options)


@pytest.mark.parametrize("engine", ["auto", "multiprocess"])
@pytest.mark.parametrize("kind", GAMES)
def test_every_kind_of_game_trains(kind: str, engine: str, tmp_path: Path):
    fewer = {"games_per_iteration": 24, "min_positions": 16, "selfplay.num_slots": 16, "learner.batch_size": 16}
    workers = {"search.engine.num_workers": 1} if engine == "multiprocess" else {}
    where = {"search.engine": engine, **workers, "backend": "torch", "num_threads": 1}
    config = config_for(own_game(kind), {**fewer, **where, "num_iterations": 2})
    run = TrainingRun.create(tmp_path / "run", config)
    finish(run)
    assert run.counters.games >= 48 and run.counters.steps > 0


@pytest.mark.slow
def test_hex_is_learned(tmp_path: Path):
    """5x5, a minute or two: a network of few games already plays better than a search with many random ones."""
    game = make_game(HEX, size=5)
    folder = finish(TrainingRun.create(tmp_path / "run", config_for(game, {"num_iterations": 50})))
    result = play_match(game, f"{folder}:sims=24", "rollout:200", num_games=100, seed=1)
    assert result.score > 0.75


# --- The example ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5])
def test_hex_is_sound(size: int):
    check_game(make_game(HEX, size=size))


def winner_by_neighbours(size: int, owners: dict[tuple[int, int], int]) -> int | None:
    """Who has a chain, cell by cell: down from the top row for player 0, right from the left column for player 1."""
    for player in (0, 1):
        reached = {cell for cell, owner in owners.items() if owner == player and cell[player] == 0}
        border = list(reached)
        while border:
            row, column = border.pop()
            for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1)):
                cell = row + down, column + right
                if owners.get(cell) == player and cell not in reached:
                    reached.add(cell)
                    border.append(cell)
        if any(cell[player] == size - 1 for cell in reached):
            return player
    return None


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_hex_has_the_winner_that_its_chains_say(size: int):
    game, rng = make_game(HEX, size=size), np.random.default_rng(size)
    for _ in range(100):
        state, owners = game.initial_state(), {}
        while (player := game.to_play(state)) != TERMINAL:
            assert winner_by_neighbours(size, owners) is None
            action = int(rng.choice(game.legal_actions(state)))
            owners[divmod(action, size)] = player
            state = game.apply(state, action)
        winner = winner_by_neighbours(size, owners)
        assert list(game.returns(state)) == ([1, -1] if winner == 0 else [-1, 1])
