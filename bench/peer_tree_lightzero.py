"""LightZero's part in peers_tree.py: its MuZero tree in C++ (mz_tree), one core, all positions at once.

It knows no game: seven moves are legal everywhere and nothing ends, so that its work is the tree alone, without rules
and observations. The compiled module is loaded by itself: the package around it asks for much that no tree needs.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

from peer_child import Task, measure_rate, read_arguments, serve

NUM_ACTIONS = 7
PB_C_BASE, PB_C_INIT, DISCOUNT, VALUE_DELTA = 19652, 1.25, 1.0, 0.01
"""Its own defaults, without discount."""


def load_tree() -> Any:
    """The module mz_tree."""
    package = importlib.util.find_spec("lzero")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("LightZero is not installed: pip install --no-deps LightZero")
    folder = Path(package.submodule_search_locations[0]) / "mcts" / "ctree" / "ctree_muzero"
    (file,) = folder.glob("mz_tree*.so")
    spec = importlib.util.spec_from_file_location("mz_tree", file)
    assert spec is not None and spec.loader is not None
    tree = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tree)
    return tree


def search(tree: Any, num_trees: int, num_simulations: int) -> list[list[int]]:
    """Visits of the roots' actions."""
    roots = tree.Roots(num_trees, [list(range(NUM_ACTIONS))] * num_trees)
    zeros, logits, to_play = [0.0] * num_trees, [[0.0] * NUM_ACTIONS] * num_trees, [1] * num_trees
    roots.prepare_no_noise(zeros, logits, to_play)
    bounds = tree.MinMaxStatsList(num_trees)
    bounds.set_delta(VALUE_DELTA)
    for simulation in range(1, num_simulations + 1):
        paths = tree.ResultsWrapper(num_trees)
        *_, players = tree.batch_traverse(roots, PB_C_BASE, PB_C_INIT, DISCOUNT, bounds, paths, list(to_play))
        tree.batch_backpropagate(simulation, DISCOUNT, zeros, zeros, logits, bounds, paths, players)
    return roots.get_distributions()


def search_all(tree: Any, task: Task) -> int:
    """Search all positions; the simulations that were done."""
    visits = search(tree, len(task.games), task.num_simulations)
    assert all(sum(row) == task.num_simulations for row in visits)
    return len(task.games) * task.num_simulations


def main() -> None:
    """Get ready and serve."""
    task, _ = read_arguments()
    tree = load_tree()
    once = partial(search_all, tree, task)
    measure_rate(once)
    serve(partial(measure_rate, once), packages=["LightZero", "numpy"])


if __name__ == "__main__":
    main()
