"""Analyse a position: what the search thinks of each move, and its tree as a picture.

    python examples/analyse.py                                     the first move of Connect-4; writes tree.svg
    python examples/analyse.py gomoku:size=9 --moves "e5 d5 e6"    another game
    python examples/analyse.py connect4 --moves 4453 --evaluator runs/connect4    with a network you have trained
    python examples/analyse.py connect4 --moves 4453 --nodes 100 --out wide.svg   more of the tree

Without --evaluator random games stand in for a network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from windrow import Search, SearchConfig, WindrowError
from windrow.evaluators import RolloutEvaluator, load
from windrow.play import parse_game
from windrow.search import draw_tree


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, print, draw; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="connect4", help="a game by name, or yours: noughts.py:Noughts")
    parser.add_argument("--moves", default="", help="moves that lead to the position")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--evaluator", type=Path, help="a run, a checkpoint or an ONNX file (random games)")
    parser.add_argument("--nodes", type=int, default=40, help="how much of the tree is drawn")
    parser.add_argument("--out", type=Path, default=Path("tree.svg"))
    options = parser.parse_args(arguments)
    try:
        game = parse_game(options.game)
        state = game.state_from_moves(options.moves)
        evaluator = RolloutEvaluator() if options.evaluator is None else load(options.evaluator, game=game)
        search = Search(game, evaluator, SearchConfig(num_simulations=options.simulations))
        result = search.run(state)
        print(game.render(state), result.table(), sep="\n\n")

        # What does the opponent do against the second-best move? Every move has a line of play of its own.
        ranked = sorted(game.legal_actions(state), key=lambda action: -result.visits[action])
        for action in ranked[:3]:
            line = " ".join(game.action_name(move) for move in search.line_after(action))
            print(f"{game.action_name(action)}: {line}")

        options.out.write_text(draw_tree(search, count=options.nodes), encoding="utf-8")
        print(f"the most visited part of the tree is in {options.out}")
    except (WindrowError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
