"""Small trees written out, node by node. A change of the law, a rounding or a tie shows as a diff that can be read.

`make golden` writes the files anew; review what changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windrow import Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator

CASES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "tictactoe_sequential": (
        "tictactoe",
        {},
        "b2 a3 c3",
        {"engine": "sequential", "num_simulations": 24},
    ),
    "connect4_dilute_skip": (
        "connect4",
        {},
        "4453",
        {
            "engine": "batched",
            "num_simulations": 25,
            "leaves_per_tree": 4,
            "in_flight": "dilute",
            "on_collision": "skip",
            "c_puct": 2.5,
        },
    ),
    "othello_pass_noise_reuse": (
        "othello",
        {},
        "d3c3e6d2d1e1b2",
        {
            "engine": "vectorized",
            "num_simulations": 14,
            "leaves_per_tree": 2,
            "on_collision": "share",
            "dirichlet_fraction": 0.25,
            "first_play": "parent",
            "first_play_reduction": 0.25,
            "seed": 9,
        },
    ),
}


def draw_tree(search: Search) -> list[str]:
    """One line per node: indented by depth, with its move, N of the edge, Q of the edge and the edge's prior."""
    game = search.game
    lines: list[str] = []

    def visit(path: list[int], label: str, depth: int) -> None:
        node = search.node(path)
        kind = "" if node.kind == "expanded" else f" {node.kind}"
        player = "" if node.kind == "over" else f" {'xo'[node.to_play]} to move,"
        lines.append(f"{'  ' * depth}{label}:{kind}{player} value {node.value:+.6f}")
        for edge, action in enumerate(node.actions.tolist()):
            if node.edge_visits[edge] > 0:
                visits, total = int(node.edge_visits[edge]), float(node.edge_value_sums[edge])
                name = game.action_name(action)
                visit([*path, action], f"{name} N {visits} W {total:+.6f} P {node.priors[edge]:.6f}", depth + 1)

    visit([], "root", 0)
    return lines


def describe(name: str) -> str:
    game_name, options, moves, settings = CASES[name]
    game = make_game(game_name, **options)
    search = Search(game, HashEvaluator(1), SearchConfig(**settings))
    result = search.run(game.state_from_moves(moves))
    lines = [f"{game!r} after {moves}", *str(result.state).splitlines()]
    lines += [f"{key} = {value!r}" for key, value in settings.items()]
    if name.endswith("reuse"):
        search.advance(game.parse_action("c1"))
        result = search.run()
        lines.append("c1 played, after which x cannot move; searched again")
    lines += draw_tree(search)
    lines.append(f"collisions {result.stats.collisions}, evaluations {result.stats.nn_positions}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_tree(name: str, update_golden: bool):
    path = Path(__file__).parent / f"{name}.txt"
    text = describe(name)
    assert len(text.splitlines()) < 50, "a golden file is small enough to be read"
    if update_golden:
        path.write_text(text)
    assert path.exists(), f"{path.name} is missing: run make golden"
    assert text == path.read_text(), "if the change is meant, run make golden and review the diff"


def test_every_golden_file_has_its_case():
    assert {path.stem for path in Path(__file__).parent.glob("*.txt")} == set(CASES)
