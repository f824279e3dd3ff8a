"""mctx's part in peers.py: `mctx.muzero_policy` over pgx's Connect-4 with the network in JAX, all games in one jit.

The policy is used as it comes, with its own noise and formula: what is compared is how fast it is, not how it plays.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from peer_child import read_arguments, serve_answers

TASK, _ = read_arguments()  # pins the process to its core: before JAX starts its threads

import jax  # noqa: E402
from mctx_connect4 import evaluate_resnet, first_states, make_search, step_games, to_jax  # noqa: E402

search = make_search(evaluate_resnet, TASK.num_simulations)


def play(weights: dict[str, Any], first: Any) -> tuple[float, Any]:
    """Search the position before every move: seconds, and the positions after the last move."""
    state, start = first, perf_counter()
    for ply, moves in enumerate(TASK.moves):
        jax.block_until_ready(search(weights, jax.random.PRNGKey(ply), state))
        state = step_games(state, moves)
    jax.block_until_ready(state)
    return perf_counter() - start, state


def main() -> None:
    """Get ready and serve."""
    weights, first = to_jax(TASK.weights), first_states(len(TASK.games))
    _, last = play(weights, first)  # compiles
    shares = search(weights, jax.random.PRNGKey(0), first)
    assert abs(float((shares * TASK.num_simulations).sum()) / (len(TASK.games) * TASK.num_simulations) - 1) < 1e-3
    num_simulations = len(TASK.games) * len(TASK.games[0]) * TASK.num_simulations
    serve_answers(
        *jax.jit(evaluate_resnet)(weights, last.observation),
        lambda: {"rate": num_simulations / play(weights, first)[0]},
        packages=["mctx", "pgx", "jax", "numpy"],
    )


if __name__ == "__main__":
    main()
