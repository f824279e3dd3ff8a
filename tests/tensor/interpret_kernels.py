"""Run by test_tensor_kernels.py with TRITON_INTERPRET=1: Triton's kernels against their twins, without a GPU."""

from __future__ import annotations

import warnings

import tensor_cases as cases

from windrow import SearchConfig
from windrow.tensor.ops import one_leaf_triton, spread_triton

CONFIGS = [
    SearchConfig(num_simulations=12, dirichlet_fraction=0.25, first_play="parent"),
    SearchConfig(num_simulations=9, max_depth=2, first_play=-0.5),
    SearchConfig(num_simulations=25, c_puct=0.1),
    SearchConfig(num_simulations=12, root="gumbel", gumbel_scale=1.0, gumbel_considered=4),
    SearchConfig(num_simulations=11, on_collision="share", leaves_per_tree=4, first_play="parent"),
    SearchConfig(
        num_simulations=8,
        on_collision="share",
        leaves_per_tree=4,
        in_flight="loss",
        virtual_loss=1.5,
        dirichlet_fraction=0.25,
    ),
    SearchConfig(num_simulations=9, on_collision="share", leaves_per_tree=3, in_flight="dilute", max_depth=2),
]
PROVING = [
    SearchConfig(num_simulations=40, dirichlet_fraction=0.25),
    SearchConfig(num_simulations=16, root="gumbel", gumbel_scale=1.0, first_play="parent"),
    SearchConfig(num_simulations=36, on_collision="share", leaves_per_tree=6, in_flight="loss"),
    SearchConfig(num_simulations=20, on_collision="share", leaves_per_tree=3, in_flight="dilute", max_depth=3),
]
SELECTING = [
    SearchConfig(
        num_simulations=14, root_first_play=0.5, root_policy_temperature=1.7, c_puct_growth=1.0, c_puct_base=4.0
    ),
    SearchConfig(
        num_simulations=14, root_first_play="parent", value_scale="tree", choose="lcb", dirichlet_fraction=0.25
    ),
    SearchConfig(num_simulations=12, value_scale="node", first_play="parent", root_first_play=1.0, choose="lcb"),
    SearchConfig(num_simulations=10, value_scale="tree", root="gumbel", root_policy_temperature=0.3, c_puct_growth=2.0),
    SearchConfig(
        **{
            "num_simulations": 14,
            "on_collision": "share",
            "leaves_per_tree": 4,
            "value_scale": "node",
            "choose": "lcb",
        },
        **{"root_first_play": 1.0, "c_puct_growth": 0.5, "c_puct_base": 3.0},
    ),
    SearchConfig(
        **{
            "num_simulations": 9,
            "on_collision": "share",
            "leaves_per_tree": 3,
            "value_scale": "tree",
            "in_flight": "loss",
        },
        root_first_play="parent",
    ),
]
# (seed, depth, chance) of games in which equal moves have different distances.
TREES = [(9, 4, False), (11, 5, False), (8, 4, True), (9, 4, True), (3, 5, True)]


def main() -> None:
    """Every kernel on small trees."""
    # The interpreter computes with NumPy, which warns where a lane that is thrown away divides by zero.
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    one_leaf_triton.LEVELS = 2  # so that paths are longer
    for config in PROVING:
        proving = config.replace(prove=True)
        for seed, depth, has_chance in TREES:
            tree = {"seed": seed, "depth": depth, "has_chance": has_chance}
            cases.compare_kernels("drawn", tree, [0, 1, 0, 2, 1], proving, "cpu")
        cases.compare_kernels("connect4", {}, [36, 38, 30], proving, "cpu")
    for config in CONFIGS:
        cases.compare_kernels("connect4", {}, [0, 8, 42, 30, 5], config, "cpu")
        cases.compare_kernels("gomoku", {"size": 6}, [0, 33], config, "cpu")
        cases.compare_kernels("pig", {"target": 20}, [0, 8, 90, 30, 5], config, "cpu")
        cases.compare_kernels("rafts", {}, [0, 2, 20, 6, 4], config, "cpu")
    spread_triton.TABLE_SIZE = 6  # so that some nodes have more visits
    for config in SELECTING:
        for seed, depth, has_chance in TREES[1:4:2]:
            tree = {"seed": seed, "depth": depth, "has_chance": has_chance}
            cases.compare_kernels("drawn", tree, [0, 1, 2], config.replace(prove=True), "cpu")
        cases.compare_kernels("connect4", {}, [0, 8, 42, 30, 5], config, "cpu")
        cases.compare_kernels("rafts", {}, [0, 2, 20, 6], config, "cpu")
    for leaves in (1, 3):
        cases.compare_bad_values("tictactoe", leaves, "cpu")
    print("equal")


if __name__ == "__main__":
    main()
