"""mctx's part in peers_tree.py: `mctx.muzero_policy` over pgx's Connect-4, one core, all positions in one jit.

Logits and values are 0, so that tree and game are all there is; pgx keeps the observation in every state.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from peer_child import measure_rate, read_arguments, serve

TASK, _ = read_arguments()  # pins the process to its core: before JAX starts its threads

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from mctx_connect4 import COLUMNS, first_states, make_search, step_games  # noqa: E402


def evaluate_nothing(_params: Any, boards: Any) -> tuple[Any, Any]:
    """Zeros: (logits [K, 7], values [K])."""
    return jnp.zeros((len(boards), COLUMNS)), jnp.zeros(len(boards))


def main() -> None:
    """Get ready and serve."""
    search = make_search(evaluate_nothing, TASK.num_simulations, dirichlet_fraction=0.0)
    state, numbers = first_states(len(TASK.games)), count()
    for moves in TASK.moves:
        state = step_games(state, moves)
    assert not bool(state.terminated.any())

    def search_all() -> int:
        shares = jax.block_until_ready(search((), jax.random.PRNGKey(next(numbers)), state))
        assert abs(float(shares.sum()) / len(TASK.games) - 1) < 1e-3
        return len(TASK.games) * TASK.num_simulations

    measure_rate(search_all)
    serve(lambda: measure_rate(search_all), packages=["mctx", "pgx", "jax", "numpy"])


if __name__ == "__main__":
    main()
