"""One position, every engine: the same search in three ways, and what each costs.

    python examples/engines.py                                      a Connect-4 position that one move wins
    python examples/engines.py --moves 4433 --simulations 2000      another one
    python examples/engines.py --game gomoku --moves "h8 i9"        another game

The rollout evaluator plays random games and needs nothing but windrow. With PyTorch installed the same search is done
with a small network too; its weights are random, so that its moves mean nothing, but its speed does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import windrow

TACTIC = "6546625432113356"
"""A Connect-4 position, x to move: 4 wins in three moves whatever o replies, and every other move loses (by exhaustive
search)."""
TACTIC_MOVE = "4"
LEGEND = """
K          leaves of one tree in flight at once
calls      of the evaluator; positions: rows in them; fill: of the rows they had room for
visits     whether they equal the sequential search's, move by move. With K = 1 they do in every engine, as long as the
           evaluator's answer for a position does not depend on the batch it is in; K > 1 is a slightly other search. In
           a game of chance every tree draws for itself: the first one is the sequential search's."""
HEADER = ("engine", "trees", "K", "simulations", "calls", "positions", "fill", "seconds", "sims/s", "best", "visits")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, search, print; the exit status."""
    options = parse(arguments)
    try:
        game = windrow.make_game(options.game)
        state = game.state_from_moves(options.moves)
        while game.to_play(state) == windrow.CHANCE:
            state = game.apply(state, game.sample_outcome(state, seed=0))
        windrow.SearchConfig(num_simulations=options.simulations)
        if game.to_play(state) == windrow.TERMINAL:
            raise windrow.FinishedGameError(f"there is nothing to search: the game is over.\n{state}")
    except windrow.WindrowError as error:
        print(f"engines: {error}", file=sys.stderr)
        return 2

    print(f"{game!r} after {options.moves!r}\n\n{state}")
    if (options.game, options.moves) == ("connect4", TACTIC):
        print(f"\nOnly {TACTIC_MOVE} wins here, in three moves of x; after any other move o wins.")

    print("\n\nRandom games as evaluator")
    compare(game, state, windrow.evaluators.RolloutEvaluator(), options, show_moves=True)
    network = make_network(game)
    if network is None:
        print(f'{LEGEND}\n\nNo network: PyTorch is not installed (pip install ".[torch]" in the checkout).')
        return 0
    print("\n\nA small network with random weights as evaluator: only the speed means something")
    compare(game, state, windrow.evaluators.TorchEvaluator(network, "cpu"), options, show_moves=False)
    print(LEGEND)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; ends the program with status 2 and a message if it makes no sense."""
    summary, _, rest = __doc__.partition("\n\n")
    examples, _, note = rest.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=f"{summary}\n\n{note}",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--game", default="connect4", help=f"one of {', '.join(windrow.game_names())} (connect4)")
    parser.add_argument("--moves", help="moves played before the search, such as 4453 or h8i9 (a tactic in connect4)")
    parser.add_argument("--simulations", type=int, default=800, help="for each tree (800)")
    parser.add_argument("--trees", type=int, default=64, help="copies the vectorized engine searches together (64)")
    options = parser.parse_args(arguments)
    if options.simulations < 1:
        parser.error(f"--simulations must be 1 or more, not {options.simulations}")
    if options.trees < 1:
        parser.error(f"--trees must be 1 or more, not {options.trees}")
    if options.moves is None:
        options.moves = TACTIC if options.game == "connect4" else ""
    return options


def compare(game: Any, state: Any, evaluator: object, options: argparse.Namespace, *, show_moves: bool) -> None:
    """Search with every engine and print what each found and what it took."""
    num_leaves = max(2, min(8, options.simulations // 50))
    searches = [
        ("sequential", 1, 1),
        ("batched", 1, 1),
        ("batched", 1, num_leaves),
        ("vectorized", options.trees, 1),
    ]
    rows: list[tuple[str, ...]] = []
    expected: np.ndarray | None = None
    for engine, num_trees, leaves_per_tree in searches:
        config = windrow.SearchConfig(
            engine=engine, num_simulations=options.simulations, leaves_per_tree=leaves_per_tree
        )
        with windrow.Search(game, evaluator, config) as search:
            results = search.run([state] * num_trees)
        if expected is None:
            expected = results[0].visits
            if show_moves:
                print(f"\n{results[0].table()}")
        num_same = sum(np.array_equal(result.visits, expected) for result in results)
        rows.append(describe(game, results[0], num_same))
    print()
    print_table(HEADER, rows)


def describe(game: Any, result: windrow.SearchResult, num_same: int) -> tuple[str, ...]:
    """One line of the table."""
    stats = result.stats
    same = "same" if num_same == stats.num_trees else "other" if num_same == 0 else f"{num_same} same"
    return (
        stats.engine,
        str(stats.num_trees),
        str(stats.leaves_per_tree),
        f"{stats.simulations:,}",
        f"{stats.nn_batches:,}",
        f"{stats.nn_positions:,}",
        f"{stats.batch_fill:.0%}",
        f"{stats.total_s:.3f}",
        f"{stats.simulations_per_second:,.0f}",
        game.action_name(result.best_action),
        same,
    )


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *cells[1:]]))


def make_network(game: Any) -> Any:
    """A small policy and value network, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)  # so small a network gains nothing from more
    return windrow.nets.ResNet.for_game(game, channels=16, blocks=1)


if __name__ == "__main__":
    sys.exit(main())
