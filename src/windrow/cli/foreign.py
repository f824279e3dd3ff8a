"""Flags of other implementations and windrow's name for each.

`docs/coming-from.md` shows this table; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from windrow.engines import option_names

_BY_MEANING = {
    "--sims": "--mcts-sims --num-sims --num-simulations --simulations --num-mcts-sims --visits --nodes "
    "--n-playout --num-playouts --playouts",
    "--time": "--movetime --time-limit",
    "--max-batch": "--eval-batch --eval-batch-size --nn-batch-size --inference-batch-size",
    "--leaves": "--minibatch-size --mcts-batch-size --leaf-parallelism",
    "--threads": "--num-search-threads --num-threads",
    "--set virtual_loss=": "--mcts-virtual-loss --virtual-loss",
    "--c-puct": "--cpuct --mcts-c-puct",
    "--set first_play=": "--fpu-value",
    "--set first_play_reduction=": "--fpu-reduction",
    "--set dirichlet_alpha=": "--dirichlet-alpha",
    "--set dirichlet_fraction=": "--dirichlet-eps --noise-epsilon",
    "--iterations": "--num-iters --num-iterations",
    "--games": "--games-per-iter --num-eps --num-games --num-episodes",
    "windrow selfplay": "--no-train --self-play-only",
    "--no-save": "--no-checkpoints",
    "--resume": "--load-model",
    "--evaluator": "--checkpoint --model --weights --network",
    "--set learner.learning_rate=": "--lr --learning-rate",
    "--batch-size": "--train-batch-size",
    "--seed": "--random-seed",
}
"""By windrow's option, setting (ends in "="; a search setting if it names no section) or command, others' flags."""
FOREIGN = {flag: meant for meant, flags in _BY_MEANING.items() for flag in flags.split()}
"""The same from flag to meaning."""

ONLY_PLAYS = ("--no-train", "--self-play-only", "--no-checkpoints", "--num-iters", "--num-iterations")
"""Flags that `windrow selfplay` does not need."""

_NETWORKS = ("--evaluator", "--checkpoint", "--net", "--resume")
"""Options that take a network, by command."""

SETTINGS = {
    "--sims": "num_simulations",
    "--max-batch": "max_batch",
    "--leaves": "leaves_per_tree",
    "--threads": "num_threads",
    "--c-puct": "c_puct",
}
"""Options that some commands offer only as search settings."""


def explain_option(option: str, known: Sequence[str], command: str) -> str | None:
    """A hint for an option that the command does not have; None if no known option is close."""
    flag = option.partition("=")[0]
    name = flag.replace("_", "-")
    if name not in FOREIGN:
        nearest = get_close_matches(name, [other for other in known if other.startswith("--")], n=1)
        return f"there is no option {flag}. Did you mean {nearest[0]}?" if nearest else None
    if command.endswith(" selfplay") and name in ONLY_PLAYS:
        return f"{flag}: remove it; '{command}' only plays"
    meant = FOREIGN[name]
    if meant == "--evaluator":
        fitting = [other for other in _NETWORKS if other in known]
        if not fitting:
            return f"{flag}: '{command}' has no such option; '{command} --help' shows how to name a network"
        meant = fitting[0]
    if meant in SETTINGS and meant not in known and "--set" in known:
        meant = f"--set {SETTINGS[meant]}="
    if command.endswith(" train") and meant.endswith("=") and "." not in meant:
        # The settings of a training run have sections.
        is_option = meant.removeprefix("--set ").removesuffix("=") in option_names()
        meant = meant.replace("--set ", "--set search.engine." if is_option else "--set search.")
    if meant.startswith("windrow ") or meant.partition(" ")[0] in known:
        return f"{flag}: windrow says {meant}" + ("..." if meant.endswith("=") else "")
    return f"{flag}: windrow says {meant}, but '{command}' has no such option"
